"""The simulator from the command line: `runs` runs hocket-sim, `figures` sets policies side by side, `swf` and
`scenario` make a scenario from a log of jobs.
"""
