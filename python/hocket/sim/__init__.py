"""The simulator on the command line.

`runs` runs hocket-sim, `figures` compares policies side by side, and `swf` and `scenario` make a scenario from a log of
jobs.
"""
