"""Runs an emulated application as any other: with the launcher of an MPI, under hocketd or without it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hocket import mpi, paths
from hocket.emulator.calibration import calibrated
from hocket.emulator.description import Description
from hocket.emulator.plan import granularities, plan_of
from hocket.errors import HocketError, UsageError
from hocket.supervise import run_child

# Ranks that wait leave their core to others by these settings, where there are more ranks than cores.
CROWDED = {
    mpi.MPICH: {"MPIR_CVAR_DEVICE_COLLECTIVES": "none", "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"},
    mpi.OPENMPI: {
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
    },
}


@dataclass(frozen=True)
class Launcher:
    """The mpiexec of an MPI, and the emulator that is built for it."""

    mpi: str
    mpiexec: Path
    program: Path


def find_launcher(wanted: str | None) -> Launcher:
    """Return the launcher of the wanted MPI: the first in PATH, else that of the installation. Raises UsageError."""
    in_path = shutil.which("mpiexec")
    candidates = [Path(in_path)] if in_path else []
    for prefix in (paths.prefix(), Path(sys.prefix)):
        candidates += [prefix / "bin" / "mpiexec", prefix / "openmpi" / "bin" / "mpiexec"]
    for mpiexec in candidates:
        kind = mpi.mpi_of_launcher(mpiexec) if mpiexec.exists() else None
        if kind is not None and wanted in (None, kind):
            return Launcher(kind, mpiexec, _program(kind))
    raise UsageError(f"no mpiexec of {wanted or 'MPICH or Open MPI'} in PATH or {paths.prefix()}; put it in PATH")


def _program(kind: str) -> Path:
    program = paths.prefix() / "lib" / "hocket" / "apps" / f"emulator-{kind}"
    if not program.exists():
        raise HocketError(f"no {program}: is hocket built and installed? (HOCKET_PREFIX says where)")
    return program


def settings_of(description: Description, launcher: Launcher, most: int = 0) -> dict[str, str]:
    """Return the variables that this MPI needs for the description, without those that the user has set.

    `most`: processes that the application may have, if it may have more than its file says.
    """
    told: dict[str, str] = {}
    if len(description.groups) > 1:
        told |= mpi.MALLEABLE_SETTINGS[launcher.mpi]
    if max(most, *(one.processes for one in description.groups)) > len(os.sched_getaffinity(0)):
        told |= CROWDED[launcher.mpi]
    settings = {key: value for key, value in told.items() if key not in os.environ}
    return settings | {"PATH": f"{launcher.mpiexec.parent}:{os.environ.get('PATH', '')}"}


def prepare(description: Description, launcher: Launcher, directory: Path, record: Path, kept: Path) -> list[str]:
    """Begin the record with the plan, write the plan into `kept`, and return the launcher's command.

    Raises HocketError if the files cannot be written, or the machine cannot be calibrated.
    """
    plan = plan_of(description, calibrated(granularities(description), launcher.program))
    try:
        record.write_text(json.dumps({"about": plan}) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write the record {record}: {error.strerror}; give another --record") from error
    file = kept / "plan.json"
    file.write_text(json.dumps(plan), encoding="utf-8")
    command = [str(launcher.mpiexec), "-n", str(description.groups[0].processes), str(launcher.program)]
    return [*command, str(file), str(directory), str(record)]


def run(description: Description, launcher: Launcher, directory: Path, record: Path, under_daemon: bool) -> int:
    """Run the description, and return the launcher's exit code. The record begins with the plan.

    Raises HocketError if it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="hocket-emulate-") as kept:
        command = prepare(description, launcher, directory, record, Path(kept))
        if under_daemon:
            run_verb = [
                sys.executable,
                "-P",
                "-m",
                "hocket.cli",
                "run",
                "--name",
                description.name,
                "--mpi",
                launcher.mpi,
            ]
            command = [*run_verb, "--", *command]
        with _stdout_is_stderr():
            return run_child(command[0], command, {**os.environ, **settings_of(description, launcher)})


@contextlib.contextmanager
def _stdout_is_stderr() -> Iterator[None]:
    """Keep stdout for the summary: what a launcher prints there when ranks fail goes to stderr."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
