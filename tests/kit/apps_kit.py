"""Run a program of apps/ for its tests."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from mpi_launch import REPO, Mpi

PREFIX = Path(os.environ.get("HOCKET_PREFIX", REPO / ".venv")).resolve()


def runner(app: str, mpi_name: str, limit_s: float) -> Callable[..., subprocess.CompletedProcess]:
    """Return a function that runs `mpiexec -n RANKS APP ARGUMENTS…`.

    Its result has the attributes `complaints`, the program's lines on stderr, and `summary`. The latter is None if the
    program printed no summary.
    """
    mpi = Mpi(mpi_name)
    program = mpi.app(app, PREFIX)
    assert program.exists(), f"no {program}: ./dev build installs it (or set HOCKET_PREFIX)"

    def run(ranks, *arguments, code=0, **environment):
        done = subprocess.run(
            mpi.command(ranks, program, *arguments),
            env={**mpi.environment(), **environment},
            capture_output=True,
            text=True,
            timeout=limit_s,
        )
        assert done.returncode == code, f"{ranks} ranks, {mpi.name}: {done.stdout}{done.stderr}"
        done.complaints = [line for line in done.stderr.splitlines() if line.startswith(f"{app}: ")]
        last = done.stdout.splitlines()[-1:]
        done.summary = json.loads(last[0]) if last and last[0].startswith("{") else None
        return done

    return run
