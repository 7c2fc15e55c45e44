"""Workloads: a queue of jobs that share I/O servers (GekkoFWD, section 5.3).

jobs.py        reads a file of jobs and their queue; writes one
generate.py    draws a random queue (pure)
queue.py       which job may start: strict first in, first out (pure)
prediction.py  what becomes of the queue if each job has the bandwidth of its curve (pure, but for the allocations)
runner.py      runs the queue once through I/O servers of its own
simulated.py   runs it in the simulator
maps.py        reads the numbers of servers of each job from hocketd's trace
results.py     the runs so far, and figures over repeated runs
text.py        tables and JSON
plot.py        the picture: who ran when, with how many servers, and how fast
"""
