"""`hocket bench reconfigure`: compares all resize methods on a real program (Proteo, sections 5.2 and 5.4).

methods.py    the methods, and the environment that selects one
runs.py       one run with one resize, under a private daemon
statistics.py the fastest methods, and those that the tests cannot tell apart from them (pure)
results.py    the summary of the runs: JSON, Markdown (pure)
heatmap.py    the picture of the winners
"""
