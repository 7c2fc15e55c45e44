"""`./dev bench regret`: a Python program with mpi4py and NumPy that computes and writes its arrays at intervals.

    mpiexec -n RANKS python numpy_probe.py DIRECTORY PHASES COMPUTE_S BYTES [--sync]

In each phase every rank writes its part of BYTES by `ndarray.tofile`, to one file for each rank and phase. All ranks
append the norms of their parts to one file by collective MPI-IO.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy
from mpi4py import MPI

SIDE = 200  # of the multiplied matrices: a few milliseconds, the rest of the time is sleep


def compute(seconds: float, own: numpy.ndarray) -> float:
    """Compute for `seconds`, whatever the machine, and return the norm of the result."""
    until = time.monotonic() + seconds
    matrix = own[: SIDE * SIDE].reshape(SIDE, SIDE)
    matrix[:] = matrix @ matrix.T / SIDE
    matrix /= numpy.abs(matrix).max() or 1.0
    time.sleep(max(0.0, until - time.monotonic()))
    return float(numpy.linalg.norm(own))


def write(path: Path, own: numpy.ndarray, sync: bool) -> None:
    with path.open("wb") as file:
        own.tofile(file)
        if sync:
            file.flush()
            os.fsync(file.fileno())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("phases", type=int)
    parser.add_argument("compute_s", type=float)
    parser.add_argument("bytes", type=float)
    parser.add_argument("--sync", action="store_true")
    arguments = parser.parse_args()
    world = MPI.COMM_WORLD
    count = max(SIDE * SIDE, int(arguments.bytes / 8 / world.size))
    own = numpy.random.default_rng(world.rank).random(count)
    norms = MPI.File.Open(world, str(arguments.directory / "norms"), MPI.MODE_CREATE | MPI.MODE_WRONLY)
    for phase in range(arguments.phases):
        norm = numpy.array([compute(arguments.compute_s, own)])
        write(arguments.directory / f"part-{phase}-{world.rank}", own, arguments.sync)
        norms.Write_at_all((phase * world.size + world.rank) * norm.nbytes, norm)
    norms.Close()


if __name__ == "__main__":
    main()
