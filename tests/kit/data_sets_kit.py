"""MPI programs that exchange versions of a data set (tests/programs/exchange.c)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import runtime_kit as kit
from processes import descendants

NAME = "hocket:/field"
WORDS = 60_000  # of a version: 480 kB


class Coupled:
    """Starts programs of `exchange.c`, and kills those that are left at the end."""

    def __init__(self, built: Callable[..., Path], settings: dict[str, str]):
        self._built, self._settings = built, settings
        self._jobs: list[subprocess.Popen] = []

    def start(
        self, mpi: kit.Mpi, what: str, versions: int = 1, *options: object, ranks: int = 2, words: int = WORDS
    ) -> subprocess.Popen:
        program = [self._built(mpi, "exchange.c"), what, NAME, versions, words, *options]
        settings = self._settings | {"HOCKET_JOB": f"job-{len(self._jobs)}"}  # each program is a job
        self._jobs.append(mpi.start(program, settings, ranks=ranks))
        return self._jobs[-1]

    def run(self, *arguments, **how) -> kit.Run:
        return kit.finish(self.start(*arguments, **how))

    def end(self) -> None:
        for job in self._jobs:
            kill(job)


def kill(job: subprocess.Popen) -> None:
    """Kill the launcher and all ranks."""
    for pid in [*descendants(job.pid), job.pid]:
        subprocess.run(["kill", "-9", str(pid)], capture_output=True, check=False)
    if job.stdout and not job.stdout.closed:
        job.communicate()


def await_line(job: subprocess.Popen, wanted: str) -> None:
    """Read lines of the job up to this one."""
    assert job.stdout
    for line in job.stdout:
        if line.strip() == wanted:
            return
    raise AssertionError(f"the job ended without '{wanted}': {job.stderr.read() if job.stderr else ''}")


def versions(*numbers: int) -> str:
    return "".join(f"opened\nversion {number}\n" for number in numbers)
