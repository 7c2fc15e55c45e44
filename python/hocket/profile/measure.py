"""Runs a program alone at several sizes under a private daemon, and reads its times from the daemon's trace.

A malleable program runs once and is resized from size to size. Any other program runs once for each size, with the
number of processes replaced on the launcher's command line. A run is ended when enough phases were seen, because nobody
waits for its result.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hocket import mpi
from hocket.analysis import Analysis, analyse
from hocket.bus import Bus, BusError, Event
from hocket.errors import HocketError, UsageError
from hocket.private_daemon import private_daemon
from hocket.process_group import end_group
from hocket.profile.points import Point, points_from
from hocket.profile.store import Profile, fingerprint_of
from hocket.reconfigure.runs import last_line
from hocket.trace import read_trace

NAME = "profile"
GONE_LIMIT_S = 10
LOOK_S = 0.2  # polling interval for the end of the program
# Phases of each size besides those that count: one that reads input before the first control point, the first one after
# it, which only begins a period, and that of the first period, which is not counted.
MORE_PHASES = 3
MORE_REPORTS = 1  # reports of iterations of each size that do not count: the first one
PATIENCE_S = 10  # time limit for the second I/O phase of a size, if iterations are reported


@dataclass(frozen=True)
class Plan:
    job: mpi.Job
    sizes: Sequence[int]
    phases: int  # number that counts, of each size


Say = Callable[[str], None]


def measure(plan: Plan, say: Say) -> Profile:
    """Measure the program and return its profile.

    Raises HocketError if nothing could be measured. `say` receives what was left out, and why.
    """
    directory = Path(tempfile.mkdtemp(prefix="hocket-profile-", dir="/tmp"))  # the path of a socket must be short
    try:
        # Nobody waits, and applications may grow to the largest size.
        settings = {"cores": max(plan.sizes), "policy": "interfere"}
        with private_daemon(directory, settings) as trace, Bus.connect(directory / "hocketd.sock") as bus:
            runs = _Runs(plan, directory, bus, say)
            if plan.job.malleable:
                runs.resized()
            else:
                runs.one_for_each_size()
        analysis = analyse(read_trace(trace))
        return _profile(plan, analysis, runs.problem, say)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def with_count(job: mpi.Job, processes: int) -> mpi.Job:
    """Return the job with this number of processes. Raises UsageError if its launcher cannot be given one."""
    if not job.launcher:
        raise UsageError(f"cannot set the number of processes of '{job.command[0]}': write mpiexec -n N ./app")
    if ":" in job.command:
        raise UsageError("a command of several programs (':') cannot be profiled: give one program")
    command = list(job.command)
    at = _count_at(command)
    if at is None:
        command[1:1] = ["-n", str(processes)]
    else:
        command[at] = str(processes)
    return job._replace(command=command)


def count_of(job: mpi.Job) -> int | None:
    """Return the number of processes that the command starts, or None if it names none."""
    at = _count_at(job.command) if job.launcher else None
    if at is None:
        return None
    try:
        return int(job.command[at])
    except ValueError:
        raise UsageError(f"'{job.command[at - 1]} {job.command[at]}': no number of processes") from None


def without_count(job: mpi.Job) -> mpi.Job:
    at = _count_at(job.command)
    return job if at is None else job._replace(command=job.command[: at - 1] + job.command[at + 1 :])


def _count_at(command: Sequence[str]) -> int | None:
    """Return the index of the launcher's number of processes in the command, or None."""
    for at, argument in enumerate(command[1:-1], start=1):
        if not argument.startswith("-") and shutil.which(argument):
            return None  # the program and its arguments follow
        if argument.startswith("-") and argument.lstrip("-") in mpi.COUNT_OPTIONS:
            return at + 1
    return None


class _Runs:
    """The runs of one profile."""

    def __init__(self, plan: Plan, directory: Path, bus: Bus, say: Say) -> None:
        self._plan, self._directory, self._bus, self._say = plan, directory, bus, say
        self._phases = bus.subscribe("IO_PHASE")
        self._iterations = bus.subscribe("ITERATIONS")
        self._count = 0
        self.problem = ""  # reason that the last run ended early

    def one_for_each_size(self) -> None:
        for processes in self._plan.sizes:
            with self._started(with_count(self._plan.job, processes), {}) as process:
                self._await_phases(process, processes)

    def resized(self) -> None:
        first, *others = self._plan.sizes
        job, settings = mpi.start_small(without_count(self._plan.job), first, os.environ)
        with self._started(job, settings) as process:
            running = self._await_phases(process, first)
            for processes in others:
                if running and self._resize(processes):
                    running = self._await_phases(process, processes)

    def _resize(self, processes: int) -> bool:
        """Resize the program. Return False if that size is left out."""
        self._bus.send("RESIZE", application_asked=self._name, processes=processes)
        try:
            answer = self._bus.answer(None)
        except BusError as error:
            self._say(f"{processes} processes are left out: {error}")
            return False
        if answer is None or not answer.get("done", False):
            reason = "no answer" if answer is None else answer.get("reason", "")
            self._say(f"{processes} processes are left out: the resize was given up: {reason}")
            return False
        return True

    def _await_phases(self, process: subprocess.Popen, processes: int) -> bool:
        """Wait until enough phases were seen. Return False if the program ended before."""
        seen: Counter[int] = Counter()
        reports = 0
        for subscription in (self._phases, self._iterations):
            while subscription.test():  # late reports of the previous size
                pass
        began = time.monotonic()
        while max(seen.values(), default=0) < self._plan.phases + MORE_PHASES:
            event: Event | None = self._phases.wait(LOOK_S)
            if event is not None:
                counts = event.application == self._name and not event.get("of_one_process", False)
                seen[event.member] += counts
            while told := self._iterations.test():
                reports += told.application == self._name and told.get("processes", 0) == processes
            # A program without I/O by then does none, or so seldom that waiting for it does not pay.
            enough = reports >= self._plan.phases + MORE_REPORTS and time.monotonic() - began >= PATIENCE_S
            if enough and max(seen.values(), default=0) < 2:
                return True
            if event is None and process.poll() is not None:
                break
        else:
            return True
        ended = f"the program ended after {max(seen.values(), default=0)} I/O phases at {processes} processes"
        code = f" with exit code {process.returncode}" if process.returncode else ""
        said = last_line((self._directory / "stderr").read_text(errors="replace"))
        self.problem = f"{ended}{code}" + (f": {said}" if said and process.returncode else "")
        return False

    @property
    def _name(self) -> str:
        return f"{NAME}-{self._count}"

    @contextmanager
    def _started(self, job: mpi.Job, settings: dict[str, str]) -> Iterator[subprocess.Popen]:
        """Run the program until it ends or the context ends."""
        self._count += 1
        environment = dict(os.environ) | settings
        how = mpi.preload(job, environment)
        environment |= how.environment | {
            "HOCKET_SOCKET": str(self._directory / "hocketd.sock"),
            "HOCKET_JOB": f"{NAME}-{os.getpid()}-{self._count}",
            "HOCKET_NAME": self._name,
        }
        with (self._directory / "stderr").open("wb") as messages:
            process = subprocess.Popen(
                [str(job.program), *how.command[1:]],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=messages,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            end_group(process)
            self._until_gone()

    def _until_gone(self) -> None:
        """Wait until the processes of the last run have left, so that they do not share the machine with the next."""
        deadline = time.monotonic() + GONE_LIMIT_S
        while self._bus.list().applications and time.monotonic() < deadline:
            time.sleep(0.05)  # no event reports the last of several members


def _profile(plan: Plan, analysis: Analysis, problem: str, say: Say) -> Profile:
    points: list[Point] = points_from(analysis.applications, time.time())
    programs = {application.program for application in analysis.applications if application.program}
    if not points or not programs:
        why = problem or "no I/O phase was seen"
        raise HocketError(
            f"nothing was measured: {why}; at least 5 I/O phases at one size are needed, "
            "or some seconds of iterations with control points"
        )
    if left := [size for size in plan.sizes if size not in {point.processes for point in points}]:
        say(f"not measured: {', '.join(map(str, left))} processes{f': {problem}' if problem else ''}")
    program = Path(sorted(programs)[0])
    command = plan.job.command
    arguments = " ".join(command[command.index(plan.job.application) + 1 :]) if plan.job.application in command else ""
    return Profile(program.name, fingerprint_of(program), plan.job.mpi, arguments, tuple(points))
