"""hocket: MPI applications that share storage take turns at it. The Python side: the command, and tools on the bus."""

__version__ = "0.1.0"
