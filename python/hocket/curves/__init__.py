"""Curves of applications: their bandwidth by number of I/O servers, kept for arbitration (GekkoFWD, section 3.1).

curve.py        a curve: what is known, and what follows from it (pure)
match.py        access patterns: the nearest measured one, and the confidence in it (pure)
store.py        the file of curves
seen.py         what a run under `hocket forward` showed
darshan_log.py  access patterns from Darshan logs
"""
