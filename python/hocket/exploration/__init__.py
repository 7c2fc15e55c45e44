"""Exploration: the bandwidth of access patterns and programs by number of I/O servers (GekkoFWD, section 2).

patterns.py  reads a file of patterns (pure, but for the file)
results.py   the runs so far, in a file that grows; medians; curves for 'hocket arbitrate'
measure.py   one run of a pattern or program through a number of servers
"""
