"""What the calls of a program mean to the emulator. Pure."""

from __future__ import annotations

import re

# MPI routine without MPI_, "I" of the non-blocking form, and "v" or "w" of unequal parts → kind of stage. A routine
# that the emulator lacks has the nearest one in its place, and the description says so.
COLLECTIVES = {
    "Bcast": "broadcast",
    "Allgather": "allgatherv",
    "Reduce": "reduce",
    "Allreduce": "allreduce",
    "Alltoall": "alltoall",
}
STAND_INS = {
    "Barrier": "allreduce",
    "Gather": "reduce",
    "Scatter": "broadcast",
    "Reduce_scatter": "allreduce",
    "Reduce_scatter_block": "allreduce",
    "Scan": "allreduce",
    "Exscan": "allreduce",
}
LEAST_BYTES = 8  # of a message without data, e.g. that of a barrier
SYNCS = ("fsync", "fdatasync", "syncfs", "sync_file_range", "MPI_File_sync")
STARTS = re.compile(r"(Isend|Ibsend|Issend|Irsend|Irecv|Imrecv|Isendrecv|Isendrecv_replace|Start|Startall)$")


def collective_of(routine: str) -> str | None:
    """Return the basic name of a collective routine, e.g. Allgather of MPI_Iallgatherv; None for other routines."""
    name = routine.removeprefix("MPI_").removesuffix("_c")
    if re.match("I[a-z]", name):
        name = name[1:].capitalize()
    for base in (name, name.removesuffix("v"), name.removesuffix("w")):
        if base in COLLECTIVES or base in STAND_INS:
            return base
    return None


def is_send(routine: str) -> bool:
    return "send" in routine.lower()


def is_start(routine: str) -> bool:
    """True if the routine begins a message that a later call completes."""
    return STARTS.search(routine) is not None


def access_of(routine: str) -> str:
    """Return the emulator's kind of access of a file; POSIX means one file or several, which the files decide."""
    if not routine.startswith("MPI_"):
        return "posix"
    collective = "_all" in routine or "_ordered" in routine or routine in ("MPI_File_sync", "MPI_File_close")
    return "collective" if collective else "independent"
