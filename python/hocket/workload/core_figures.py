"""Figures of queues that share cores: waiting, turnaround, makespan, utilisation, and the cost of resizes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean

from hocket.workload.core_runs import MALLEABLE, RIGID
from hocket.workload.jobs import QueuedJob
from hocket.workload.results import JobRun, Mean, QueueRun, mean


@dataclass(frozen=True)
class CoreQueue:
    """The queue and the number of cores, from which the figures of a run follow."""

    jobs: Sequence[QueuedJob]
    cores: int

    @property
    def arrivals(self) -> Mapping[str, float]:
        return {one.name: one.arrival_s for one in self.jobs}


@dataclass(frozen=True)
class Case:
    """The runs of the queue in one mode under one policy."""

    mode: str
    policy: str
    runs: Sequence[QueueRun]
    simulated: bool = False

    @property
    def example(self) -> QueueRun:
        """The run that is shown: that with the median makespan. There must be a run."""
        return sorted(self.runs, key=lambda one: one.makespan_s)[(len(self.runs) - 1) // 2]

    @property
    def shown(self) -> str:
        return "simulated" if self.simulated else f"run {self.example.run.repetition + 1}"


def waiting_s(job: JobRun, arrival_s: float) -> float:
    """Return the time in the queue, and that for cores which others returned."""
    return job.computed_from_s - arrival_s


def turnaround_s(job: JobRun, arrival_s: float) -> float:
    return job.ended_s - arrival_s


def run_s(job: JobRun) -> float:
    return job.ended_s - job.computed_from_s


def overhead_s(job: JobRun) -> float:
    """Return what its resizes cost the job: the time for which it did not compute because of them."""
    return job.stopped_s


def reconfiguring_s(job: JobRun) -> float:
    """Return the time of its resizes from begin to end. The job may have computed for a part of it."""
    return fsum(one.seconds for one in job.resizes)


def utilisation(run: QueueRun, queue: CoreQueue) -> float:
    """Return the part of all cores' time, until the end of the last job, in which a job had the core."""
    return sum(one.core_seconds for one in run.jobs) / (queue.cores * run.makespan_s)


def _mean_over_jobs(of: Callable[[JobRun, float], float]) -> Callable[[QueueRun, CoreQueue], float]:
    return lambda run, queue: fmean(of(job, queue.arrivals[job.name]) for job in run.jobs)


# Times are seconds. Waiting, turnaround, and access times are means over the jobs, the others are of all jobs together.
FIGURES: Mapping[str, Callable[[QueueRun, CoreQueue], float]] = {
    "makespan_s": lambda run, _: run.makespan_s,
    "utilisation": utilisation,
    "waiting_s": _mean_over_jobs(waiting_s),
    "turnaround_s": _mean_over_jobs(turnaround_s),
    "access_s": lambda run, _: fmean(job.access_s or 0.0 for job in run.jobs),  # of emulated jobs
    "reconfiguring_s": lambda run, _: sum(reconfiguring_s(job) for job in run.jobs),
    "stopped_s": lambda run, _: sum(overhead_s(job) for job in run.jobs),
    "resizes": lambda run, _: sum(len(job.resizes) for job in run.jobs),
}
COMPARED = ("makespan_s", "utilisation", "waiting_s", "turnaround_s", "access_s")


def access_times_known(cases: Sequence[Case]) -> bool:
    """Return whether a job of these cases says how long it accessed files: an emulated or a simulated one does."""
    return any(job.access_s is not None for case in cases for run in case.runs for job in run.jobs)


def compared(cases: Sequence[Case]) -> list[str]:
    """Return the figures by which these cases are compared."""
    return [name for name in COMPARED if name != "access_s" or access_times_known(cases)]


def figures_of(case: Case, queue: CoreQueue) -> dict[str, Mean]:
    """Return each known figure's mean over the runs, of which there is at least one."""
    known = [name for name in FIGURES if name not in COMPARED or name in compared([case])]
    return {name: mean([FIGURES[name](run, queue) for run in case.runs]) for name in known}


def quotients(cases: Sequence[Case], policy: str, queue: CoreQueue) -> dict[str, Mean]:
    """Return malleable over rigid for each figure, from pairs of runs with the same repetition; {} without pairs."""
    by_mode = {one.mode: one for one in cases if one.policy == policy}
    return _quotients(by_mode.get(MALLEABLE), by_mode.get(RIGID), queue)


def policy_quotients(cases: Sequence[Case], case: Case, queue: CoreQueue) -> dict[str, Mean]:
    """Return a case over that of the first policy in the same mode, for each figure; {} for the first policy itself."""
    first = next(one for one in cases if one.mode == case.mode)
    return {} if first is case else _quotients(case, first, queue)


def _quotients(case: Case | None, reference: Case | None, queue: CoreQueue) -> dict[str, Mean]:
    if case is None or reference is None:
        return {}
    others = {run.run.repetition: run for run in reference.runs}
    pairs = [(run, others[run.run.repetition]) for run in case.runs if run.run.repetition in others]
    found = {}
    for name in COMPARED:
        values = [(FIGURES[name](one, queue), FIGURES[name](other, queue)) for one, other in pairs]
        if values and all(other > 0 for _, other in values):
            found[name] = mean([one / other for one, other in values])
    return found
