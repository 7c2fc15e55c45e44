"""The Python side of hocket: the `hocket` command, and the library for tools on the bus.

hocket lets MPI applications that share storage take turns at I/O.
"""

__version__ = "0.1.0"
