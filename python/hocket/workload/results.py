"""The runs of a queue, in a file that grows, and figures over repeated runs."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median, stdev

from hocket.arbitration.allocate import Rules
from hocket.run_file import RunFile, digest
from hocket.workload.jobs import Workload

CONFIDENCE = 0.95
RUNS = "runs.jsonl"


@dataclass(frozen=True)
class JobRun:
    """One job in one run. Times are seconds from the start of the queue.

    `seconds` is its makespan at the client: of its accesses, or of its command. `servers` has (second, number) of each
    change. A job that failed says why in `failure`.
    """

    name: str
    started_s: float
    ended_s: float
    bytes: int
    seconds: float
    failure: str
    servers: tuple[tuple[float, int], ...]

    @property
    def bytes_per_s(self) -> float:
        return 0.0 if self.failure else self.bytes / self.seconds


@dataclass(frozen=True)
class PlannedRun:
    policy: str
    repetition: int


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

    def __init__(self, output: Path, workload: Workload, fifo: bool, rules: Rules) -> None:
        """Open the file, or make it. Raises UsageError if it has runs of another workload."""
        curves = {one.name: one.job.bandwidth for one in workload.jobs}
        about = digest(workload.about() | {"fifo": fifo, "rules": asdict(rules), "curves": curves})
        super().__init__(output / RUNS, "workload", about, _run_of, _fields_of)

    def missing(self, planned: Iterable[PlannedRun]) -> list[PlannedRun]:
        done = {one.run for one in self.runs}
        return [one for one in planned if one not in done]

    def of(self, policy: str) -> list[QueueRun]:
        return [one for one in self.runs if one.run.policy == policy]

    def bytes_of(self, workload: Workload) -> dict[str, int]:
        """Return the bytes of each job of the file, as far as the file or a run says them."""
        found = {one.name: one.bytes for one in workload.jobs if one.bytes}
        for kind in workload.jobs:
            names = {one.name for one in workload.queue if one.kind.name == kind.name}
            moved = [job.bytes for run in self.runs for job in run.jobs if job.name in names and not job.failure]
            if kind.name not in found and any(moved):
                found[kind.name] = int(median(one for one in moved if one))
        return found


def plan(policies: Sequence[str], repetitions: int, seed: int) -> list[PlannedRun]:
    """Return all runs: each repetition has every policy once, in random order."""
    generator = random.Random(seed)
    runs = []
    for repetition in range(repetitions):
        runs += [PlannedRun(policy, repetition) for policy in generator.sample(list(policies), len(policies))]
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
            tuple((float(at_s), int(number)) for at_s, number in one["servers"]),
        )
        for one in fields["jobs"]
    )
    return QueueRun(PlannedRun(fields["policy"], fields["repetition"]), jobs)


def _fields_of(one: QueueRun) -> dict:
    return {**asdict(one.run), "jobs": [asdict(job) for job in one.jobs]}
