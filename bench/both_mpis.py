"""How benchmarks start programs of either MPI."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hocket import paths


def environment(**settings: str) -> dict[str, str]:
    """Return the environment of a run: no setting of hocket but its prefix, and both MPIs may run as root."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HOCKET_")}
    kept |= {f"{kind}_ALLOW_RUN_AS_ROOT{end}": "1" for kind in ("OMPI", "PRTE") for end in ("", "_CONFIRM")}
    return kept | {"HOCKET_PREFIX": str(paths.prefix())} | settings


def mpiexec(mpi: str) -> str:
    return str(Path(sys.prefix) / ("bin/mpiexec" if mpi == "mpich" else "openmpi/bin/mpiexec"))
