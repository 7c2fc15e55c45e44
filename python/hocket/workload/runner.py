"""Runs a queue of jobs once, through I/O servers that are started for it.

    queue ── start(now) ──► hocket forward … ── exit, time limit ──► end ──► start(now) …
                                │ HELLO, BYE                  hocketd gives out the servers anew, by its policy
                                └─────────────► hocketd ──────► SERVER_MAP, in its trace

A job that fails, or that exceeds its time limit, is recorded, and the queue goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hocket.arbitration.allocate import Rules
from hocket.arbitration.jobs import MB
from hocket.errors import HocketError
from hocket.exploration.measure import command_of, replayed
from hocket.exploration.patterns import Pattern
from hocket.exploration.results import jobs_text
from hocket.private_servers import private_servers
from hocket.workload.jobs import QueuedJob, Workload, arbitration_settings
from hocket.workload.maps import servers_of
from hocket.workload.queue import FifoQueue
from hocket.workload.results import JobRun

KILL_AFTER_S = 5.0  # between SIGTERM and SIGKILL for a job that exceeds its time limit


@dataclass
class _Started:
    """A running job."""

    queued: QueuedJob
    directory: Path
    process: subprocess.Popen
    pidfd: int
    started_s: float
    deadline_s: float  # when it gets its next signal
    late: bool = False  # it has exceeded its time limit


class Runner:
    """Starts the jobs of a queue and records what becomes of them. Times are seconds from the start of the queue."""

    def __init__(
        self,
        workload: Workload,
        nodes: int | None,
        directory: Path,
        environment: Mapping[str, str],
        tell: Callable[[int, int], None],
    ) -> None:
        """`tell` gets the numbers of running and ended jobs."""
        self._queue = FifoQueue(workload.queue, nodes)
        self._directory = directory
        self._environment = environment
        self._curves = directory / "curves.toml"
        self._curves.write_text(_curves_of(workload), encoding="utf-8")
        self._tell = tell
        self._running: list[_Started] = []
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
                _kill(one.process, signal.SIGKILL)
                one.process.wait()
                os.close(one.pidfd)
        return self._ended

    def _now_s(self) -> float:
        return (time.monotonic_ns() - self.began_ns) / 1e9

    def _start(self, one: QueuedJob) -> None:
        directory = self._directory / f"{one.number:05}"
        files = directory / "files"
        files.mkdir(parents=True)
        how = ["--mount", str(files), "--group", str(one.kind.subject.group), f"--name={one.name}"]
        how += ["--counts", str(directory / "counts.json"), "--curves", str(self._curves)]
        words = [sys.executable, "-m", "hocket.cli", "forward", *how, "--"]
        words += command_of(one.kind.subject, files)
        with (directory / "out").open("w") as out, (directory / "err").open("w") as err:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self._environment, start_new_session=True
            )
        now_s = self._now_s()
        pidfd = os.pidfd_open(process.pid)
        self._running.append(_Started(one, directory, process, pidfd, now_s, now_s + one.kind.time_limit_s))

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
                _kill(one.process, signal.SIGKILL if one.late else signal.SIGTERM)
                one.late, one.deadline_s = True, self._now_s() + KILL_AFTER_S

    def _end(self, one: _Started) -> None:
        ended_s = self._now_s()
        os.close(one.pidfd)
        _kill(one.process, signal.SIGKILL)  # what it left behind in its session
        self._running.remove(one)
        self._queue.end(one.queued)
        self._ended.append(_job_run(one, ended_s))
        shutil.rmtree(one.directory, ignore_errors=True)


def _curves_of(workload: Workload) -> str:
    """Return a file that tells hocketd the size and the curve of each job of the queue, by its name there."""
    jobs = [one.job for one in workload.queue]
    curves = [{servers: rate / MB for servers, rate in one.bandwidth.items()} for one in jobs]
    return jobs_text((one.name, one.nodes, one.processes, rates) for one, rates in zip(jobs, curves, strict=True))


def _kill(process: subprocess.Popen, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _job_run(one: _Started, ended_s: float) -> JobRun:
    """Return what became of a job that has ended."""
    kind = one.queued.kind
    counts = _counts(one.directory / "counts.json")
    bytes_, seconds, failure = 0, ended_s - one.started_s, _failure(one, counts)
    if not failure and isinstance(kind.subject, Pattern):
        try:
            bytes_, seconds = replayed((one.directory / "out").read_text(errors="replace"), one.queued.name)
        except HocketError as error:
            failure = str(error)
    elif not failure:
        bytes_ = kind.bytes or counts["bytes"]
    return JobRun(one.queued.name, one.started_s, ended_s, bytes_, seconds, failure, ())


def _failure(one: _Started, counts: Mapping[str, int]) -> str:
    """Return why a job failed; "" if it did not. One that hocket could not serve did not run as it should."""
    code = one.process.returncode
    if one.late:
        return f"it exceeded its time limit of {one.queued.kind.time_limit_s:g} s"
    if code == 0 and counts:
        return ""
    ended = f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
    said = (one.directory / "err").read_text(errors="replace").strip().splitlines()[-1:]
    return ": ".join(["it ran directly" if code == 0 else f"it {ended}", *said])


def _counts(path: Path) -> dict[str, int]:
    """Return what was forwarded; nothing if the program ran without hocket, or did not end by itself."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def run_queue(
    workload: Workload,
    nodes: int | None,
    directory: Path,
    policy: str,
    rules: Rules,
    tell: Callable[[int, int], None],
    trace: Path,
) -> list[JobRun]:
    """Run the queue through servers of its own, which a policy gives out, and keep the daemon's trace.

    Raises HocketError if servers cannot be started or files cannot be made.
    """
    options = ["--forward-limit", str(workload.limit)] if workload.limit else []
    try:
        with (
            private_servers(
                workload.servers,
                directory,
                options,
                coordinator={"policy": policy, "slow_server": 0},
                arbitration=arbitration_settings(workload, rules),
                trace=trace,
            ) as environment,
            tempfile.TemporaryDirectory(prefix="hocket-workload-", dir=directory) as files,
        ):
            runner = Runner(workload, nodes, Path(files), environment, tell)
            jobs = runner.run()
    except OSError as error:
        raise HocketError(f"cannot run the queue below {directory}: {error.strerror}: {error.filename}") from error
    maps = servers_of(trace, runner.began_ns)
    return [replace(one, servers=tuple(maps.get(one.name, ()))) for one in jobs]
