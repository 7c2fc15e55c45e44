"""The runs of a queue, in a file that grows, and figures over repeated runs."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from hocket.arbitration.allocate import Rules
from hocket.run_file import RunFile, digest
from hocket.workload.jobs import Workload

CONFIDENCE = 0.95
RUNS = "runs.jsonl"


Steps = tuple[tuple[float, int], ...]  # (second, number) of each change


@dataclass(frozen=True)
class Resize:
    """A reconfiguration. `seconds` is its length, `stopped_s` the part for which the job did not compute."""

    at_s: float
    seconds: float
    stopped_s: float


@dataclass(frozen=True)
class JobRun:
    """One job in one run. Times are seconds from the start of the queue.

    `seconds` is its makespan at the client: of its accesses, or of its command. `servers` and `processes` have
    (second, number) of each change. `cores_wait_s` is the part of its time before it had its cores. A job that failed
    says why in `failure`.
    """

    name: str
    started_s: float
    ended_s: float
    bytes: int
    seconds: float
    failure: str
    servers: Steps
    processes: Steps = ()
    cores_wait_s: float = 0.0
    resizes: tuple[Resize, ...] = ()
    emulator_s: float | None = None  # that the emulator spent outside of the application's stages; None: not emulated
    control_s: float | None = None  # in its control points, waits for each other included
    access_s: float | None = None  # in accesses of files, waits for other jobs included; None: not known

    @property
    def bytes_per_s(self) -> float:
        return 0.0 if self.failure else self.bytes / self.seconds

    @property
    def computed_from_s(self) -> float:
        """The time from which it had its cores."""
        return self.started_s + self.cores_wait_s

    @property
    def core_seconds(self) -> float:
        steps = [*self.processes, (self.ended_s, 0)]
        return math.fsum(number * (then - at) for (at, number), (then, _) in pairwise(steps))

    @property
    def stopped_s(self) -> float:
        return math.fsum(one.stopped_s for one in self.resizes)


@dataclass(frozen=True)
class PlannedRun:
    policy: str
    repetition: int
    mode: str = ""  # of those that share cores; "": servers are shared


@dataclass(frozen=True)
class QueueRun:
    """One run of the queue under a policy."""

    run: PlannedRun
    jobs: tuple[JobRun, ...]  # in the order of their ends

    @property
    def bytes_per_s(self) -> float:
        """The aggregate bandwidth: the sum of those of the jobs (Equation 2)."""
        return math.fsum(one.bytes_per_s for one in self.jobs)

    @property
    def makespan_s(self) -> float:
        return max(one.ended_s for one in self.jobs)

    @property
    def failed(self) -> list[JobRun]:
        return [one for one in self.jobs if one.failure]

    def job(self, name: str) -> JobRun:
        return next(one for one in self.jobs if one.name == name)


class QueueRuns(RunFile[QueueRun]):
    """The runs in the file of an output directory."""

    def __init__(self, output: Path, workload: Workload, settings: Mapping[str, Any]) -> None:
        """Open the file, or make it. Raises UsageError if it has runs of another workload, or with other settings."""
        about = digest(workload.about() | dict(settings))
        super().__init__(output / RUNS, "workload", about, _run_of, _fields_of)

    def missing(self, planned: Iterable[PlannedRun]) -> list[PlannedRun]:
        done = {one.run for one in self.runs}
        return [one for one in planned if one not in done]

    def of(self, policy: str, mode: str = "") -> list[QueueRun]:
        return [one for one in self.runs if (one.run.policy, one.run.mode) == (policy, mode)]

    def bytes_of(self, workload: Workload) -> dict[str, int]:
        """Return the bytes of each job of the file, as far as the file or a run says them."""
        found = {one.name: one.bytes for one in workload.jobs if one.bytes}
        for kind in workload.jobs:
            names = {one.name for one in workload.queue if one.kind.name == kind.name}
            moved = [job.bytes for run in self.runs for job in run.jobs if job.name in names and not job.failure]
            if kind.name not in found and any(moved):
                found[kind.name] = int(median(one for one in moved if one))
        return found


def forwarding_settings(workload: Workload, fifo: bool, rules: Rules) -> dict[str, Any]:
    """Return what identifies runs that share I/O servers, besides the workload."""
    return {"fifo": fifo, "rules": asdict(rules), "curves": {one.name: one.job.bandwidth for one in workload.jobs}}


def plan(policies: Sequence[str], repetitions: int, seed: int, modes: Sequence[str] = ("",)) -> list[PlannedRun]:
    """Return all runs: each repetition has every policy in every mode once, in random order."""
    generator = random.Random(seed)
    cases = [(policy, mode) for policy in policies for mode in modes]
    runs = []
    for repetition in range(repetitions):
        runs += [PlannedRun(policy, repetition, mode) for policy, mode in generator.sample(cases, len(cases))]
    return runs


@dataclass(frozen=True)
class Mean:
    """A mean, and half of the width of its confidence interval; None: one value has none."""

    value: float
    half: float | None


def mean(values: Sequence[float]) -> Mean:
    """Return the mean of at least one value and its 95 % confidence interval, by Student's t."""
    if len(values) < 2:
        return Mean(values[0], None)
    from scipy.stats import t  # imported here: it takes long to load

    width = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    return Mean(fmean(values), width * stdev(values) / math.sqrt(len(values)))


def _run_of(fields: dict) -> QueueRun:
    jobs = tuple(
        JobRun(
            str(one["name"]),
            float(one["started_s"]),
            float(one["ended_s"]),
            int(one["bytes"]),
            float(one["seconds"]),
            str(one["failure"]),
            _steps(one["servers"]),
            _steps(one["processes"]),
            float(one["cores_wait_s"]),
            tuple(Resize(**resize) for resize in one["resizes"]),
            one["emulator_s"],
            one["control_s"],
            one.get("access_s"),
        )
        for one in fields["jobs"]
    )
    return QueueRun(PlannedRun(fields["policy"], fields["repetition"], fields["mode"]), jobs)


def _steps(told: list) -> Steps:
    return tuple((float(at_s), int(number)) for at_s, number in told)


def _fields_of(one: QueueRun) -> dict:
    return {**asdict(one.run), "jobs": [asdict(job) for job in one.jobs]}
