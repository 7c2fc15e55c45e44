"""Fixtures for programs that announce their own steps."""

from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit


@pytest.fixture
def coordinate(mpi: runtime_kit.Mpi, built: Callable[..., Path], prefix: Path) -> Path:
    """The program that executes its arguments with the calls of hocket/io.h."""
    # As in pkg-config's flags, hocket's headers come after the MPI's own: the folder may hold headers of another MPI.
    headers = ("-isystem", prefix / "include")
    return built("coordinate.c", *headers, f"-L{mpi.library}", f"-Wl,-rpath,{mpi.library}", f"-lhocket-{mpi.name}")
