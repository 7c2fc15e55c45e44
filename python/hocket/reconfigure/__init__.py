"""`hocket bench reconfigure`: every way to resize beside every other, on a real program (Proteo, sections 5.2 and 5.4).

methods.py    what can be chosen, and how a run is told
runs.py       one run with one resize, under a daemon of its own
statistics.py which methods are fastest, and which are not told apart (pure)
results.py    the runs summed up: JSON, Markdown (pure)
heatmap.py    the picture of the winners
"""
