"""Profiles: the measured times of an application by its number of processes (CLARISSE+FlexMPI, section 4.1).

`points` says what a point is and checks it, `store` keeps points (the file that hocketd reads), `exchange` writes and
reads them as JSON, `measure` makes them from a run, `plot` draws them.
"""
