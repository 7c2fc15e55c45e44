"""Profiles: the measured times of an application by its number of processes (CLARISSE+FlexMPI, section 4.1).

`points` defines and checks a point, `store` keeps points in the file that hocketd reads, `exchange` writes and reads
them as JSON, `measure` makes them from a run, and `plot` draws them.
"""
