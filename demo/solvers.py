"""The two Jacobi solvers of the demo: their sizes, and one of them running under `hocket run`."""

from __future__ import annotations

import json
import math
import os
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from errors import DemoError
from hocket.process_group import end_group
from mpi_launch import Mpi

RANKS = 2
# libhocket tells this of long accesses, which a busy machine makes. The solver has run as it should.
NOTICE = "could not stop for other applications"
MAX_CHECKPOINT_BYTES = 250_000_000  # a system of this size still computes its iterations in the time stated below


@dataclass(frozen=True)
class Solver:
    """One application: a system of n unknowns, and a checkpoint of it after every `checkpoint_every` iterations."""

    name: str
    n: int
    seed: int
    core: int  # shared by its ranks in every run, so that total times compare
    checkpoint_every: int  # iterations
    checkpoints: int
    iteration_time_s: float

    @property
    def iterations(self) -> int:
        return self.checkpoint_every * self.checkpoints

    @property
    def checkpoint_bytes(self) -> int:
        return 64 + self.n * (self.n + 2) * 8

    def __str__(self) -> str:
        period_s = self.checkpoint_every * self.iteration_time_s
        return (
            f"{self.name}: n = {self.n}, {RANKS} ranks on core {self.core}, {self.checkpoints} checkpoints of "
            f"{self.checkpoint_bytes / 1e6:.0f} MB, {self.checkpoint_every} iterations of {self.iteration_time_s:g} s "
            f"({period_s:.1f} s) before each"
        )


def two_solvers(bytes_per_s: float, small: bool, checkpoints: int) -> tuple[Solver, Solver]:
    """Return solvers of different sizes and periods, which are so close that their I/O phases meet repeatedly.

    Alone on storage of this bandwidth, they write for 1.5 s every 3.9 s, and for 1.1 s every 3.7 s (small: 0.6 s, 1.3
    s, 0.45 s, 1.2 s).
    """
    cores = sorted(os.sched_getaffinity(0))
    phase_s = (0.6, 0.45) if small else (1.5, 1.1)
    every = (12, 15) if small else (40, 50)
    share = min(1, MAX_CHECKPOINT_BYTES / (bytes_per_s * phase_s[0]))  # of the wanted size, on fast storage
    return tuple(
        Solver(
            name=f"jacobi-{letter}",
            n=int(math.sqrt(share * bytes_per_s * phase_s[which] / 8)),
            seed=which + 1,
            core=cores[which % len(cores)],
            checkpoint_every=every[which],
            checkpoints=checkpoints,
            iteration_time_s=(0.06, 0.052)[which],
        )
        for which, letter in enumerate("ab")
    )


def generate(solver: Solver, mpi: Mpi, program: Path, system: Path) -> None:
    """Write the solver's system, without hocket. Raises DemoError."""
    command = mpi.command(RANKS, program, "--system", system, "--generate", solver.n, "--seed", solver.seed)
    done = subprocess.run([*command, "--iterations", "0"], env=mpi.environment(), capture_output=True, text=True)
    if done.returncode != 0:
        raise DemoError(f"{solver.name} could not generate its system: {_complaint(done.stderr) or done.stdout}")


class RunningSolver:
    """A solver under `hocket run`. A thread reads its output, so that its progress is known while it runs."""

    def __init__(self, solver: Solver, command: Sequence[str], environment: dict[str, str], messages: Path):
        self.solver = solver
        self.iteration, self.residual = 0, math.nan
        self.checkpoints = 0  # verified
        self.summary: dict = {}
        self._messages = messages
        with messages.open("wb") as stderr:
            self._process = subprocess.Popen(
                ["taskset", "-c", str(solver.core), *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout:
            words = line.split()
            if words[:1] == ["iteration"]:
                self.iteration, self.residual = int(words[1]), float(words[3])
            elif words[:1] == ["checkpoint"] and words[-1] == "verified":
                self.checkpoints += 1
            elif line.startswith("{"):
                self.summary = json.loads(line)

    def running(self) -> bool:
        return self._process.poll() is None or self._reader.is_alive()

    def progress(self) -> str:
        if self.iteration == 0:
            return f"{self.solver.name}: starts"
        return (
            f"{self.solver.name}: iteration {self.iteration}/{self.solver.iterations}, residual {self.residual:.2e}, "
            f"{self.checkpoints} checkpoints verified"
        )

    def check(self) -> None:
        """Check, after the end, that it solved its system and verified every checkpoint. Raises DemoError."""
        name, code, expected = self.solver.name, self._process.returncode, self.solver.checkpoints
        said = self._messages.read_text(errors="replace")
        if code != 0:
            raise DemoError(f"{name} ended with code {code}: {_complaint(said) or f'see {self._messages}'}")
        complaints = [line for line in said.splitlines() if "hocket:" in line and NOTICE not in line]
        if complaints:
            raise DemoError(f"{name} did not run as it should: {complaints[0]}")
        if not self.summary or self.summary["checkpoints"] != expected or self.summary["verified"] != expected:
            raise DemoError(f"{name} verified {self.summary.get('verified', 0)} of {expected} checkpoints")

    def __enter__(self) -> RunningSolver:
        return self

    def __exit__(self, *_: object) -> None:
        """End what is left of the solver: SIGTERM first, because the launcher knows its ranks."""
        end_group(self._process)


def _complaint(stderr: str) -> str:
    """Return the line with the cause of a failure, among what the launchers add."""
    lines = [line for line in stderr.splitlines() if line.startswith(("jacobi:", "hocket:"))]
    return next(iter(lines or stderr.strip().splitlines()[-1:]), "")
