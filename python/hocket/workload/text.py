"""Writes what became of a queue under each policy as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Protocol

from hocket.arbitration.jobs import MB
from hocket.tables import columns
from hocket.workload.jobs import QueuedJob
from hocket.workload.prediction import Prediction
from hocket.workload.results import Mean, QueueRun, Steps, mean


class HasRuns(Protocol):
    @property
    def runs(self) -> Sequence[QueueRun]: ...


@dataclass(frozen=True)
class Outcome:
    """The runs of the queue under a policy, and what the curves predict: else `unpredictable` says why not."""

    policy: str
    runs: Sequence[QueueRun]
    prediction: Prediction | None
    unpredictable: str
    simulated: bool = False

    @property
    def shown(self) -> str:
        """What its table of jobs and its picture show."""
        if self.simulated:
            return "simulated"
        return f"run {self.example.run.repetition + 1}" if self.runs else "predicted"

    @property
    def example(self) -> QueueRun:
        """The run that is shown: that with the median aggregate bandwidth. There must be a run."""
        return sorted(self.runs, key=lambda one: one.bytes_per_s)[(len(self.runs) - 1) // 2]

    @property
    def bytes_per_s(self) -> Mean | None:
        return mean([one.bytes_per_s for one in self.runs]) if self.runs else None

    @property
    def makespan_s(self) -> Mean | None:
        return mean([one.makespan_s for one in self.runs]) if self.runs else None


def table_of(queue: Sequence[QueuedJob], outcomes: Sequence[Outcome]) -> str:
    """Return a table of the policies, and one of the jobs under each: in its median run, or as predicted."""
    parts = [_policies(outcomes)]
    parts += [_jobs(queue, one) for one in outcomes if one.runs or one.prediction]
    parts += [_notes(outcomes)]
    return "\n\n".join(part for part in parts if part)


def _policies(outcomes: Sequence[Outcome]) -> str:
    fixed = next((one for one in outcomes if one.policy == "static"), None)
    measured = any(one.runs for one in outcomes)
    heading = ["policy", "predicted MB/s", "x static", "makespan s"]
    if measured:
        heading = ["policy", "runs", "MB/s", "x static", "makespan s", *(f"predicted {one}" for one in heading[2:])]
        heading = [*heading[:5], "predicted MB/s", "of predicted", *heading[5:], "failed"]
    rows = [_policy(one, fixed, measured) for one in outcomes]
    return columns(heading, rows, right=range(1, len(heading)))


def _policy(one: Outcome, fixed: Outcome | None, measured: bool) -> list[str]:
    predicted = one.prediction
    beside = predicted.bytes_per_s / fixed.prediction.bytes_per_s if predicted and fixed and fixed.prediction else None
    foreseen = [_number(predicted and predicted.makespan_s, 1)]
    cells = [_number(predicted and predicted.bytes_per_s / MB, 1)]
    if not measured:
        return [one.policy, *cells, _number(beside, 2), *foreseen]
    rate, makespan = one.bytes_per_s, one.makespan_s
    live = (
        rate.value / fixed.bytes_per_s.value
        if rate and fixed and fixed.bytes_per_s and fixed.bytes_per_s.value
        else None
    )
    part = rate.value / predicted.bytes_per_s if rate and predicted else None
    return [
        one.policy,
        str(len(one.runs)),
        with_interval(rate, MB),
        _number(live, 2),
        with_interval(makespan, 1),
        *cells,
        _number(part, 2),
        _number(beside, 2),
        *foreseen,
        str(sum(len(run.failed) for run in one.runs)),
    ]


def _jobs(queue: Sequence[QueuedJob], outcome: Outcome) -> str:
    heading = ["job", "nodes", "start s", "end s", "servers", "MB/s"]
    if not outcome.runs:
        rows = [_predicted_row(one, outcome) for one in queue]
        return f"{outcome.policy}, {outcome.shown}:\n" + columns(heading, rows, right=(1, 2, 3, 5))
    rows = [_row(one, outcome) for one in queue]
    heading = [*heading[:-1], "MB/s", "mean of runs", "predicted servers", "MB/s", ""]
    return f"{outcome.policy}, {outcome.shown}:\n" + columns(heading, rows, right=(1, 2, 3, 5, 6, 8))


def _predicted_row(one: QueuedJob, outcome: Outcome) -> list[str]:
    assert outcome.prediction is not None
    job = outcome.prediction.jobs[one.name]
    times = [f"{job.started_s:.2f}", f"{job.ended_s:.2f}"]
    return [one.name, str(one.nodes), *times, numbers(job.servers), f"{job.bytes_per_s / MB:.1f}"]


def _row(one: QueuedJob, outcome: Outcome) -> list[str]:
    job = outcome.example.job(one.name)
    usual = fmean(run.job(one.name).bytes_per_s for run in outcome.runs)
    foreseen = ["-", "-"]
    if outcome.prediction:
        predicted = outcome.prediction.jobs[one.name]
        foreseen = [numbers(predicted.servers), f"{predicted.bytes_per_s / MB:.1f}"]
    times = [f"{job.started_s:.2f}", f"{job.ended_s:.2f}"]
    rates = [f"{job.bytes_per_s / MB:.1f}", f"{usual / MB:.1f}"]
    return [one.name, str(one.nodes), *times, numbers(job.servers), *rates, *foreseen, "failed" if job.failure else ""]


def _notes(outcomes: Sequence[Outcome]) -> str:
    """Return a line for each failure, and for each policy that cannot be predicted."""
    lines = failures(outcomes)
    lines += [f"{one.policy}: no prediction: {one.unpredictable}" for one in outcomes if one.unpredictable]
    return "\n".join(lines)


def failures(cases: Sequence[HasRuns]) -> list[str]:
    """Return a line for each job that failed."""
    return [
        f"{' '.join(filter(None, (run.run.mode, run.run.policy)))}, run {run.run.repetition + 1}: '{job.name}' failed: "
        f"{job.failure}"
        for one in cases
        for run in one.runs
        for job in run.failed
    ]


def numbers(steps: Steps) -> str:
    """Return the numbers of servers or processes that a job had, one after the other; "-" if that is not known."""
    return " ".join(str(count) for _, count in steps) or "-"


def with_interval(one: Mean | None, unit: float) -> str:
    """Return a mean and half of its confidence interval."""
    if one is None:
        return "-"
    return f"{one.value / unit:.1f}" + (f" ± {one.half / unit:.1f}" if one.half is not None else "")


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def json_of(queue: Sequence[QueuedJob], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return all figures. Bandwidths are in bytes/s."""
    return {
        "queue": [{"name": one.name, "job": one.kind.name, "nodes": one.nodes} for one in queue],
        "policies": [_json(one) for one in outcomes],
    }


def _json(one: Outcome) -> dict[str, Any]:
    figures = {
        name: None if figure is None else {"mean": figure.value, "half_interval": figure.half}
        for name, figure in (("bytes_per_s", one.bytes_per_s), ("makespan_s", one.makespan_s))
    }
    runs = [
        {
            "repetition": run.run.repetition,
            "bytes_per_s": run.bytes_per_s,
            "makespan_s": run.makespan_s,
            "jobs": [asdict(job) | {"bytes_per_s": job.bytes_per_s} for job in run.jobs],
        }
        for run in one.runs
    ]
    predicted = one.prediction and {
        "bytes_per_s": one.prediction.bytes_per_s,
        "makespan_s": one.prediction.makespan_s,
        "jobs": [asdict(job) | {"bytes_per_s": job.bytes_per_s} for job in one.prediction.jobs.values()],
    }
    return {"policy": one.policy, **figures, "runs": runs, "predicted": predicted, "unpredictable": one.unpredictable}
