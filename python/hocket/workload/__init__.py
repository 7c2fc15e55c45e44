"""Workloads: queues of jobs that share cores (Proteo, section 1), or I/O servers (GekkoFWD, section 5.3).

jobs.py             reads a file of jobs and their queue; writes one
subjects.py         reads what a job runs: a pattern, a command, or a description
generate.py         draws a random queue (pure)
queue.py            which job may start: strict first in, first out (pure)
runner.py           runs a queue once
results.py          the runs so far, and figures over repeated runs
maps.py             reads from hocketd's trace what each job had: servers, processes
text.py, plot.py    tables, JSON, and the picture of queues that share I/O servers

Cores:
core_runs.py        runs a queue rigidly or malleably, each job as an application of a daemon of its own
core_figures.py     waiting, turnaround, makespan, utilisation, and the cost of resizes (pure)
core_text.py, core_plot.py
simulated_cores.py  runs the queue in the simulator

I/O servers:
server_runs.py      runs a queue through I/O servers of its own
prediction.py       what becomes of the queue if each job has the bandwidth of its curve (pure, but for the allocations)
simulated.py        runs the queue in the simulator
"""
