"""Runs a queue of jobs once: starts each when its turn comes, and ends those that exceed their time limits.

A launcher knows how a job is started, and what became of it. A job that fails, or that exceeds its time limit, is
recorded, and the queue continues.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hocket.process_group import signal_group
from hocket.workload.jobs import QueuedJob
from hocket.workload.queue import FifoQueue
from hocket.workload.results import JobRun

HOCKET = (sys.executable, "-m", "hocket.cli")
KILL_AFTER_S = 5.0  # between SIGTERM and SIGKILL for a job that exceeds its time limit


@dataclass
class StartedJob:
    """A job that runs, or has just ended. What it printed is in `out` and `err` of its directory."""

    queued: QueuedJob
    directory: Path
    process: subprocess.Popen
    pidfd: int
    started_s: float
    deadline_s: float  # when it gets its next signal
    late: bool = False  # it has exceeded its time limit

    def failure(self) -> str:
        """Return why a job that has ended failed; "" if it did not."""
        code = self.process.returncode
        if self.late:
            return f"it exceeded its time limit of {self.queued.kind.time_limit_s:g} s"
        if code == 0:
            return ""
        return self.said(f"it ended with exit code {code}" if code > 0 else f"it was ended by signal {-code}")

    def said(self, what: str) -> str:
        """Return `what` with the last line of its messages."""
        return ": ".join([what, *(self.directory / "err").read_text(errors="replace").strip().splitlines()[-1:]])


class Launcher(Protocol):
    def words(self, one: QueuedJob, directory: Path, files: Path) -> list[str]:
        """Return the command that runs a job. `directory` is the job's own; `files`, in it, is for what it writes."""

    def outcome(self, one: StartedJob, ended_s: float) -> JobRun:
        """Return what became of a job that has ended. Its directory is removed afterwards."""


class Runner:
    """Starts the jobs of a queue and records what becomes of them. Times are seconds from the start of the queue."""

    def __init__(
        self,
        queue: FifoQueue,
        directory: Path,
        environment: Mapping[str, str],
        launcher: Launcher,
        tell: Callable[[int, int], None],
    ) -> None:
        """`tell` gets the numbers of running and ended jobs."""
        self._queue = queue
        self._directory = directory
        self._environment = environment
        self._launcher = launcher
        self._tell = tell
        self._running: list[StartedJob] = []
        self._ended: list[JobRun] = []
        self.began_ns = time.monotonic_ns()

    def run(self) -> list[JobRun]:
        """Run the queue to its end. However it is left, no process of a job stays."""
        try:
            while not self._queue.done:
                for one in self._queue.start(self._now_s()):
                    self._start(one)
                self._tell(len(self._running), len(self._ended))
                self._wait()
                for one in [one for one in self._running if one.process.poll() is not None]:
                    self._end(one)
                self._limit()
        finally:
            for one in self._running:
                signal_group(one.process, signal.SIGKILL)
                one.process.wait()
                os.close(one.pidfd)
        return self._ended

    def _now_s(self) -> float:
        return (time.monotonic_ns() - self.began_ns) / 1e9

    def _start(self, one: QueuedJob) -> None:
        directory = self._directory / f"{one.number:05}"
        files = directory / "files"
        files.mkdir(parents=True)
        words = self._launcher.words(one, directory, files)
        with (directory / "out").open("w") as out, (directory / "err").open("w") as err:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self._environment, start_new_session=True
            )
        now_s = self._now_s()
        pidfd = os.pidfd_open(process.pid)
        self._running.append(StartedJob(one, directory, process, pidfd, now_s, now_s + one.kind.time_limit_s))

    def _wait(self) -> None:
        """Wait until a job ends, one exceeds its time limit, or one arrives."""
        now_s = self._now_s()
        awaited = [one.deadline_s for one in self._running]
        if (arrival_s := self._queue.next_arrival(now_s)) is not None:
            awaited.append(arrival_s)
        poll = select.poll()
        for one in self._running:
            poll.register(one.pidfd, select.POLLIN)
        poll.poll(max(0.0, min(awaited) - now_s) * 1000 + 1)

    def _limit(self) -> None:
        """End jobs that exceed their time limits."""
        for one in self._running:
            if self._now_s() >= one.deadline_s:
                signal_group(one.process, signal.SIGKILL if one.late else signal.SIGTERM)
                one.late, one.deadline_s = True, self._now_s() + KILL_AFTER_S

    def _end(self, one: StartedJob) -> None:
        ended_s = self._now_s()
        os.close(one.pidfd)
        signal_group(one.process, signal.SIGKILL)  # what it left behind in its session
        self._running.remove(one)
        self._queue.end(one.queued)
        self._ended.append(self._launcher.outcome(one, ended_s))
        shutil.rmtree(one.directory, ignore_errors=True)
