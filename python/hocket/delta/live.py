"""Measures a Δ-graph of two real applications.

All runs share a private hocketd, and all times come from its trace.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median

from hocket import mpi
from hocket.analysis import Analysis, Application
from hocket.bus import Bus, BusError
from hocket.delta.graph import Alone, Graph, Phase, Together, first_phase
from hocket.delta.model import Model, Side, rates
from hocket.delta.simulated import FILE, ROUND
from hocket.errors import HocketError, UsageError
from hocket.mounts import with_mount_points
from hocket.paths import prefix
from hocket.private_daemon import private_daemon
from hocket.process_group import end_group
from hocket.profile.points import Point
from hocket.profile.store import Profile, Store, fingerprint_of
from hocket.reconfigure.runs import last_line
from hocket.trace import events_of

WHO_DOES_IO = {ROUND: "hocket", FILE: "mpi"}  # HOCKET_IO for each grain of preemption
LEAST_LEAD_S = 0.05  # margin for the first application to be started in time
TRACE_LIMIT_S = 5.0  # time limit for hocketd to write what it has seen
LOOK_S = 0.02  # polling interval for the end of the applications
SEED = 10
ALIKE = 1.1  # times alone are alike if one is at most this many times the other
REMEMBERED = 5  # number of last runs that give an application's lead time


@dataclass
class Program:
    """One of the two applications: its command, and the time from its start to its first I/O phase."""

    name: str
    job: mpi.Job
    executable: str = ""  # as it reported it to hocketd
    leads_s: list[float] = field(default_factory=list)

    @property
    def told(self) -> str:
        return shlex.join(self.job.command)

    @property
    def lead_s(self) -> float:
        return median(self.leads_s[-REMEMBERED:])


@dataclass(frozen=True)
class Storage:
    """A target of limited bandwidth (apps/limited_target). With 0 bytes/s the storage stays as it is."""

    bytes_per_s: float = 0
    directory: Path | None = None

    def environment(self) -> dict[str, str]:
        """Return the variables that set the limit. Raises HocketError or UsageError."""
        if not self.bytes_per_s:
            return {}
        library = prefix() / "lib" / "hocket" / "liblimited_target.so"
        if not library.exists():
            raise HocketError(f"no {library}: --limit needs it; is hocket built and installed?")
        if self.directory is None or not self.directory.is_dir():
            raise UsageError(f"--limit: '{self.directory}' is no directory")
        before = os.environ.get("LD_PRELOAD", "")
        return {
            "LD_PRELOAD": f"{library}:{before}" if before else str(library),
            "HOCKET_LIMIT_DIR": str(self.directory.resolve()),
            "HOCKET_LIMIT_BYTES_PER_S": f"{self.bytes_per_s:.0f}",
        }


@dataclass(frozen=True)
class Plan:
    policies: Sequence[str]
    dts_s: Sequence[float]
    repetitions: int
    metric: str  # "": the default of hocketd
    grain: str
    sharing: str  # bandwidth sharing that the model assumes
    timeout_s: float  # time limit of a run
    storage: Storage = Storage()
    traces: Path | None = None  # directory that keeps the traces


Say = Callable[[str], None]


def program_of(name: str, command: str) -> Program:
    """Return the program of a command line. Raises UsageError, and HocketError if the program does not exist."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--app '{command}': {error}") from error
    if not words:
        raise UsageError(f"--app '{command}': give the launcher and its arguments, 'mpiexec -n 4 ./app'")
    return Program(name, mpi.examine(words))


class Live:
    """Runs of the two applications under one private hocketd, which learns from them as it would from others.

    Use it as a context: the daemon ends with it. `say` receives warnings.
    """

    def __init__(self, plan: Plan, programs: Sequence[Program], say: Say = lambda _: None) -> None:
        self.plan, self.programs = plan, programs
        self._environment = dict(os.environ) | plan.storage.environment()
        for name in [key for key in self._environment if key in ("HOCKET_SOCKET", "HOCKET_DIR")]:
            del self._environment[name]
        for warning in (words for program in programs for words in program.job.warnings):
            say(warning)
        self._count = 0
        self._kept, self._kept_bytes = "", 0  # name of the last kept trace, and its end in hocketd's trace
        self._stack = ExitStack()
        self._say = say

    def __enter__(self) -> Live:
        """Start the daemon.

        Raises HocketError if there is no hocketd, and UsageError if it refuses a policy or the metric.
        """
        with ExitStack() as stack:
            # the path of a socket must be short
            self._directory = Path(tempfile.mkdtemp(prefix="hocket-delta-", dir="/tmp"))
            stack.callback(shutil.rmtree, self._directory, ignore_errors=True)
            self._store = self._directory / "profiles.db"
            settings = {"profiles": str(self._store)}
            self._trace = stack.enter_context(private_daemon(self._directory, settings))
            for policy in self.plan.policies:
                self._set_policy(policy)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def alone(self, program: Program) -> tuple[Phase, int]:
        """Run a program alone. Return its phase and its number of processes. Raises HocketError."""
        found = self._run("interfere", [(program, 0.0)], f"alone-{program.name}")
        return found[program.name]

    def tell_alone(self, alone: Sequence[Alone]) -> None:
        """Store the times alone as profiles, as if `hocket profile` had measured them.

        The policy `dynamic` needs them for programs that do not report in advance what they will write. A program has
        one time for each size.
        """
        points: dict[str, dict[int, float]] = {}
        for program, one in zip(self.programs, alone, strict=True):
            times = points.setdefault(program.executable, {})
            before_s = times.setdefault(one.processes, one.io_s)
            if max(before_s, one.io_s) > ALIKE * min(before_s, one.io_s):
                self._say(
                    "A and B are the same program with equal numbers of processes: hocketd cannot distinguish them "
                    "before they write, and 'dynamic' decides as if they took equally long, unless they announce "
                    "their writes"
                )
        store = Store(self._store, write=True)
        for path, times in points.items():
            found = tuple(Point(size, 1.0, 0.0, io_s, 0.0, self.plan.repetitions) for size, io_s in times.items())
            store.put(Profile(Path(path).name, fingerprint_of(Path(path)), self.programs[0].job.mpi, "", found))

    def together(self, policy: str, dt_s: float) -> Together:
        """Run both applications, B's I/O phase `dt_s` after A's. Raises HocketError."""
        a, b = self.programs
        first_s = min(-a.lead_s, dt_s - b.lead_s) - LEAST_LEAD_S
        delays = [(a, -a.lead_s - first_s), (b, dt_s - b.lead_s - first_s)]
        found = self._run(policy, delays, f"{policy}-{dt_s:+g}")
        return Together(policy, dt_s, found[a.name][0], found[b.name][0])

    def _set_policy(self, policy: str) -> None:
        with Bus.connect(self._directory / "hocketd.sock") as bus:
            bus.send("SET_POLICY", policy=policy, metric=self.plan.metric)
            try:
                bus.list()  # a refusal arrives before this answer
            except BusError as error:
                raise UsageError(str(error)) from error

    def _run(self, policy: str, delays: Sequence[tuple[Program, float]], name: str) -> dict[str, tuple[Phase, int]]:
        """Do one run. Return the phase and the number of processes of each application."""
        self._count += 1
        self._set_policy(policy)
        begin = self._trace.stat().st_size if self._trace.exists() else 0
        started_ns = self._start_and_wait(delays, name)
        applications = self._traced(begin, [program for program, _ in delays], name)
        found = {}
        for program, _ in delays:
            mine = applications.get(program.name)
            phase = first_phase(mine) if mine else None
            if mine is None or phase is None:
                why = "no collective MPI-IO was seen" if mine else "hocketd did not see it"
                raise HocketError(f"{program.name} ('{program.told}') did no I/O: {why}")
            program.executable = mine.program
            program.leads_s.append((phase.start_ns - started_ns[program.name]) / 1e9)
            found[program.name] = phase, max(mine.processes, 1)
        return found

    def _traced(self, begin: int, programs: Sequence[Program], name: str) -> dict[str, Application]:
        """Return the applications of this run, from the trace after `begin`.

        Waits until hocketd has written that they have ended, or until the time limit.
        """
        jobs = {self._job(program): program.name for program in programs}
        deadline_s = time.monotonic() + TRACE_LIMIT_S
        while True:
            lines = self._trace.read_bytes()[begin:]
            analysis = Analysis()
            for event in events_of(lines):
                analysis.feed(event)
            found = {jobs[one.job]: one for one in analysis.applications if one.job in jobs}
            left = len(found) == len(jobs) and all(one.end_ns is not None for one in found.values())
            if left or time.monotonic() > deadline_s:
                break
            time.sleep(LOOK_S)
        if self.plan.traces:
            self._keep(self.plan.traces / f"{name}-{self._count}.jsonl")
        return found

    def _keep(self, path: Path) -> None:
        """Write what hocketd has traced since the last kept trace, as a trace that continues that one.

        The daemon decides by what it has learnt in earlier runs, so a replay must know them.
        """
        text = b""
        while (now := self._trace.read_bytes()) != text:  # hocketd may still be writing
            text = now
            time.sleep(LOOK_S)
        header, begin = json.loads(text.split(b"\n", 1)[0]), self._kept_bytes or text.index(b"\n") + 1
        if self._kept:
            header["continues"] = self._kept
        path.write_bytes(json.dumps(header).encode() + b"\n" + text[begin:])
        self._kept, self._kept_bytes = path.name, len(text)

    def _job(self, program: Program) -> str:
        return f"delta-{os.getpid()}-{self._count}-{program.name}"

    def _start_and_wait(self, delays: Sequence[tuple[Program, float]], name: str) -> dict[str, int]:
        """Start the applications and wait for their end. Return the start of each.

        Raises HocketError if one fails, or at the time limit.
        """
        begin_s, started = time.monotonic(), {}
        running: list[tuple[Program, subprocess.Popen]] = []
        with ExitStack() as stack:
            for program, delay_s in sorted(delays, key=lambda one: one[1]):
                while (left_s := begin_s + delay_s - time.monotonic()) > 0:
                    time.sleep(min(left_s, 1.0))
                    self._look(running)
                started[program.name] = time.monotonic_ns()
                process = self._start(program)
                stack.callback(end_group, process)
                running.append((program, process))
            deadline_s = time.monotonic() + self.plan.timeout_s
            while self._look(running):
                if time.monotonic() > deadline_s:
                    left = " and ".join(program.name for program, process in running if process.poll() is None)
                    raise HocketError(f"run {name}: {left} did not end within {self.plan.timeout_s:g} s (--timeout)")
                time.sleep(LOOK_S)
        return started

    def _look(self, running: Sequence[tuple[Program, subprocess.Popen]]) -> bool:
        """Return True if any application still runs. Raises HocketError if one has failed."""
        codes = [process.poll() for _, process in running]
        for (program, _), code in zip(running, codes, strict=True):
            if code:
                said = last_line((self._directory / f"{program.name}.stderr").read_text(errors="replace"))
                ended = f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
                raise HocketError(f"{program.name} ('{program.told}') {ended}" + (f": {said}" if said else ""))
        return any(code is None for code in codes)

    def _start(self, program: Program) -> subprocess.Popen:
        """Start a program as `hocket run` does, but without the time that takes."""
        how = mpi.preload(program.job, self._environment)
        settings = {
            "HOCKET_SOCKET": str(self._directory / "hocketd.sock"),
            "HOCKET_JOB": self._job(program),
            "HOCKET_NAME": program.name,
            "HOCKET_IO": WHO_DOES_IO[self.plan.grain],
        }
        with (self._directory / f"{program.name}.stderr").open("wb") as messages:
            return subprocess.Popen(
                [str(program.job.program), *how.command[1:]],
                env=self._environment | how.environment | settings,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=messages,
                start_new_session=True,
            )


def measure_alone(live: Live, done: Callable[[str], None]) -> list[Alone]:
    """Run each application by itself, in turn."""
    runs: Mapping[str, list[tuple[Phase, int]]] = {program.name: [] for program in live.programs}
    for _ in range(live.plan.repetitions):
        for program in live.programs:
            runs[program.name].append(live.alone(program))
            done(f"{program.name} alone")
    return [
        Alone(one.name, one.told, runs[one.name][0][1], tuple(phase for phase, _ in runs[one.name]))
        for one in live.programs
    ]


def model_of(plan: Plan, alone: Sequence[Alone]) -> Model:
    """Return the model of both. Each is assumed to use all of the target when it is alone."""
    speeds = rates(plan.sharing, (1.0, alone[0].processes), (1.0, alone[1].processes), 1.0)
    sides = [
        Side(one.io_s, one.processes, one.accesses if plan.grain == FILE else 0, rate)
        for one, rate in zip(alone, speeds, strict=True)
    ]
    return Model(sides[0], sides[1], plan.metric or "cpu-time", plan.sharing == "queued")


def measure(live: Live, say: Say, done: Callable[[str], None]) -> Graph:
    """Measure the graph: all runs, with policies and dts in random order in each repetition.

    Ctrl-C ends the measurement; the graph then shows the runs that were done.
    """
    plan = live.plan
    alone = measure_alone(live, done)
    live.tell_alone(alone)
    targets = [one.runs[0].target for one in alone]
    if targets[0] != targets[1]:
        named = [with_mount_points(target) for target in targets]
        say(f"A does I/O on {named[0]}, B on {named[1]}: they do not meet, and neither waits")
    order, made = Random(SEED), []
    wanted = [(policy, dt_s) for dt_s in plan.dts_s for policy in plan.policies]
    interrupted = False
    try:
        for _ in range(plan.repetitions):
            order.shuffle(wanted)
            for policy, dt_s in wanted:
                made.append(live.together(policy, dt_s))
                done(f"{policy}, dt {dt_s:g} s")
    except KeyboardInterrupt:
        if not made:
            raise
        interrupted = True
        say(f"interrupted after {len(made)} of {len(wanted) * plan.repetitions} runs, which are shown")
    place = {policy: at for at, policy in enumerate(plan.policies)}
    made.sort(key=lambda run: (place[run.policy], run.wanted_dt_s))
    about = {"simulated": False, "grain": plan.grain, "sharing": plan.sharing, "repetitions": plan.repetitions}
    about |= {"bandwidth_bytes_per_s": plan.storage.bytes_per_s or None, "interrupted": interrupted}
    return Graph(alone, model_of(plan, alone), made, about)
