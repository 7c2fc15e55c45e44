"""Redistribution of arrays (src/libhocket/malleable/redistribution.hpp): every method and strategy, on real MPIs.

The program tests/programs/move_arrays.cpp moves arrays in merged communicators of 1 to 6 ranks and checks each byte. It
includes the parts that libhocket hides.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit
from checkout import PROGRAMS, REPO

RANKS = 6
LIMIT_S = 120
# The first test of an MPI also compiles the program.
pytestmark = pytest.mark.timeout(300)
METHODS = ["collective", "p2p", "rma-lock", "rma-lockall"]
SOURCES = [
    *(REPO / "src" / "core" / "redistribute" / name for name in ("distribution.cpp", "partition.cpp", "plan.cpp")),
    *(
        REPO / "src" / "libhocket" / "malleable" / name
        for name in (
            "exchange_collective.cpp",
            "exchange_p2p.cpp",
            "exchange_rma.cpp",
            "memory.cpp",
            "packing.cpp",
            "redistribution.cpp",
        )
    ),
    *(REPO / "src" / "libhocket" / "mpi_shim" / name for name in ("calls.cpp", "next.cpp")),
    PROGRAMS / "move_arrays.cpp",
]
# If UCX finds no network, Open MPI's one-sided component for it prints an error for each rank, and another one works.
NEEDED = {"OMPI_MCA_osc": "^ucx"}

Move = Callable[..., subprocess.CompletedProcess]


@pytest.fixture
def move(mpi: runtime_kit.Mpi, built_programs: tuple[Path, dict]) -> Move:
    """Return a function that runs the program with this test's MPI; it compiles once for each MPI."""
    directory, done = built_programs
    key = (mpi.name, "move_arrays")
    if key not in done:
        done[key] = mpi.compile_with(SOURCES, directory / f"move_arrays-{mpi.name}")

    def run(ranks: int, *arguments: str | int, limit_s: int = LIMIT_S) -> subprocess.CompletedProcess:
        options = ["--oversubscribe"] if mpi.name == "openmpi" else []
        command = [*mpi.mpiexec, *options, "-n", str(ranks), done[key], *map(str, arguments)]
        environment = {**os.environ, **runtime_kit.ENVIRONMENT, **mpi.environment, **NEEDED}
        return subprocess.run(command, capture_output=True, text=True, timeout=limit_s, env=environment, check=False)

    return run


@pytest.mark.parametrize("method", METHODS)
def test_every_byte_arrives(move: Move, method: str) -> None:
    """The program grows, shrinks to any ranks, changes shares, replaces all ranks (baseline), and moves from any ranks
    to any. It does so with block, weighted, block-cyclic, two-dimensional, listed, and replicated arrays and four
    strategies.
    """
    runs = 1 if method.startswith("rma") else 3
    done = move(RANKS, METHODS.index(method), 2016, runs)
    assert done.returncode == 0, f"{method}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    arrays, word = done.stdout.split()
    # 6 merged communicators and 4 strategies, with 1 to 4 arrays each
    assert word == "arrays" and int(arrays) >= 24 * runs, done.stdout


def test_every_byte_arrives_by_one_copy(move: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    """With HOCKET_SINGLE_COPY, p2p within a node makes one copy."""
    monkeypatch.setenv("HOCKET_SINGLE_COPY", "1")
    test_every_byte_arrives(move, "p2p")


@pytest.mark.timeout(5 * LIMIT_S)
def test_messages_of_more_than_two_gib(move: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    """MPI's counts are int: longer data move in chunks."""
    # MPICH's ranks poll and pass on 64 KiB at a time, which took 240 s on two busy cores. So they copy whole messages:
    # 46 s beside six runnable processes, and more than 240 s beside fifteen.
    monkeypatch.setenv("MPIR_CVAR_CH4_CMA_ENABLE", "1")
    done = move(2, "large", limit_s=4 * LIMIT_S)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.stdout == "4 arrays\n"
