"""Start MPI programs on a machine with fewer cores than ranks, for the demo and for the tests of apps/."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
MPIS = ("mpich", "openmpi")

# MPICH's device collectives spin: with more ranks than cores they are a thousand times slower. Its UCX transport
# sometimes fails to start processes.
_MPICH_SETTINGS = {
    "MPIR_CVAR_DEVICE_COLLECTIVES": "none",
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
    "MPIR_CVAR_CH4_NETMOD": "ofi",
}
_OPENMPI_SETTINGS = {
    "OMPI_MCA_coll": "^han",  # after a resize, old and new ranks would choose different algorithms
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
    **{f"{who}_ALLOW_RUN_AS_ROOT{what}": "1" for who in ("OMPI", "PRTE") for what in ("", "_CONFIRM")},
}


@dataclass(frozen=True)
class Mpi:
    """One of MPIS: that of $HOCKET_MPICH_PREFIX or $HOCKET_OPENMPI_PREFIX, else as `./dev setup` installed it."""

    name: str

    @property
    def bin(self) -> Path:
        usual = REPO / ".venv" if self.name == "mpich" else REPO / ".venv" / "openmpi"
        return Path(os.environ.get(f"HOCKET_{self.name.upper()}_PREFIX", usual)) / "bin"

    def command(self, ranks: int, program: Path | str, *arguments: object) -> list[str]:
        return [str(self.bin / "mpiexec"), "-n", str(ranks), str(program), *map(str, arguments)]

    def environment(self, base: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return `base` and the settings that this MPI needs on this machine."""
        settings = _MPICH_SETTINGS if self.name == "mpich" else _OPENMPI_SETTINGS
        return {**base, **settings, "PATH": f"{self.bin}:{base.get('PATH', '')}"}

    def app(self, name: str, prefix: Path) -> Path:
        """Return the build for this MPI of one of the programs in apps/."""
        return prefix / "lib" / "hocket" / "apps" / f"{name}-{self.name}"
