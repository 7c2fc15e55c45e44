"""Datatypes of each MPI as layouts (src/libhocket/collective/datatypes.hpp), compared with MPI_Pack and MPI_Unpack.

The program tests/programs/decode_types.cpp makes and compares them. It includes the parts that libhocket hides.
"""

from __future__ import annotations

from pathlib import Path

import runtime_kit
from checkout import PROGRAMS, REPO

TYPES = 3000
SOURCES = [
    *(
        REPO / "src" / "core" / "layout" / f"{name}.cpp"
        for name in ("arrays", "copy", "layout", "measure", "node", "walk")
    ),
    REPO / "src" / "libhocket" / "collective" / "datatypes.cpp",
    REPO / "src" / "libhocket" / "mpi_shim" / "next.cpp",
    PROGRAMS / "decode_types.cpp",
]


def test_layouts_are_the_mpi_librarys_datatypes(mpi: runtime_kit.Mpi, built_programs: tuple[Path, dict]) -> None:
    """Every combiner, nested up to four deep, pair types, absolute addresses, 2^40 bytes; the handles are freed."""
    program = mpi.compile_with(SOURCES, built_programs[0] / f"decode_types-{mpi.name}")
    run = mpi.run([program, 2026, TYPES], ranks=1, preload="")
    assert run.code == 0, f"{mpi.name}: exit {run.code}\n{run.out}{run.err}"
    compared, word = run.out.split()
    # Types that overlap or have no data are not compared with every MPI.
    assert word == "types" and int(compared) > TYPES // 2, run.out
