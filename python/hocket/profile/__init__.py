"""Profiles: the measured times of an application by its number of processes (CLARISSE+FlexMPI, section 4.1).

points.py    a point, and its checks (pure)
store.py     the file of points, which hocketd reads
exchange.py  profiles as JSON
measure.py   the measurement of points in a run
plot.py      the picture of a profile
"""
