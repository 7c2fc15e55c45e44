"""Writes what became of a queue that shared cores as tables and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from hocket.tables import columns
from hocket.workload.core_figures import (
    Case,
    CoreQueue,
    compared,
    figures_of,
    overhead_s,
    policy_quotients,
    quotients,
    reconfiguring_s,
    run_s,
    turnaround_s,
    waiting_s,
)
from hocket.workload.results import JobRun, Mean
from hocket.workload.text import failures, numbers, with_interval

HEADING = ("mode", "policy", "runs")
HEADING_OF_FIGURES = {
    "makespan_s": "makespan s",
    "utilisation": "utilisation %",
    "waiting_s": "waiting s",
    "turnaround_s": "turnaround s",
    "access_s": "I/O s",
}
HEADING_OF_RESIZES = ("resizes", "reconfiguring s", "stopped s", "failed")
PERCENT = 0.01


def table_of(queue: CoreQueue, cases: Sequence[Case]) -> str:
    """Return a table of the cases, one of the jobs in each, and a line for each failure."""
    shown = [one for one in cases if one.runs]
    parts = [_cases(queue, shown), *(_jobs(queue, one) for one in shown), "\n".join(failures(shown))]
    return "\n\n".join(part for part in parts if part)


def _cases(queue: CoreQueue, cases: Sequence[Case]) -> str:
    names = compared(cases)

    def of_quotients(mode: str, policy: str, found: Mapping[str, Mean]) -> list[str]:
        return [mode, policy, "", *(_quotient(found.get(name)) for name in names), *([""] * len(HEADING_OF_RESIZES))]

    rows = [_case(queue, one, names) for one in cases]
    for policy in dict.fromkeys(one.policy for one in cases):
        if found := quotients(cases, policy, queue):
            rows.append(of_quotients("malleable/rigid", policy, found))
    for one in cases:
        if found := policy_quotients(cases, one, queue):
            rows.append(of_quotients(one.mode, f"{one.policy}/{first_policy(cases, one)}", found))
    heading = [*HEADING, *(HEADING_OF_FIGURES[name] for name in names), *HEADING_OF_RESIZES]
    return columns(heading, rows, right=range(2, len(heading)))


def first_policy(cases: Sequence[Case], case: Case) -> str:
    """Return the policy with which others of the same mode are compared."""
    return next(one.policy for one in cases if one.mode == case.mode)


def _case(queue: CoreQueue, case: Case, names: Sequence[str]) -> list[str]:
    figures = figures_of(case, queue)
    units = {"utilisation": PERCENT}
    cells = [with_interval(figures[name], units.get(name, 1.0)) if name in figures else "-" for name in names]
    resizes = [with_interval(figures[name], 1.0) for name in ("resizes", "reconfiguring_s", "stopped_s")]
    failed = sum(len(run.failed) for run in case.runs)
    return [case.mode, case.policy, str(len(case.runs)), *cells, *resizes, str(failed)]


def _quotient(one: Mean | None) -> str:
    if one is None:
        return "-"
    return f"{one.value:.2f}" + (f" ± {one.half:.2f}" if one.half is not None else "")


def _jobs(queue: CoreQueue, case: Case) -> str:
    def usual(name: str, of: Callable[[JobRun, float], float]) -> str:
        return f"{fmean(of(run.job(name), queue.arrivals[name]) for run in case.runs):.2f}"

    rows = []
    for one in queue.jobs:
        job = case.example.job(one.name)
        times = [usual(one.name, of) for of in (waiting_s, lambda job, _: run_s(job), turnaround_s)]
        cost = [usual(one.name, of) for of in (lambda job, _: len(job.resizes), lambda job, _: overhead_s(job))]
        failed = "failed" if job.failure else ""
        rows.append([one.name, f"{one.arrival_s:.2f}", *times, *cost, numbers(job.processes), failed])
    heading = ["job", "arrival s", "waiting s", "run s", "turnaround s", "resizes", "overhead s", "processes", ""]
    of = "the run with the median makespan" if case.simulated else case.shown
    return f"{case.mode}, {case.policy}: means; processes of {of}\n" + columns(heading, rows, right=range(1, 7))


def json_of(queue: CoreQueue, cases: Sequence[Case]) -> dict[str, Any]:
    """Return all figures. Times are seconds."""
    return {
        "cores": queue.cores,
        "queue": [{"name": one.name, "job": one.kind.name, "arrival_s": one.arrival_s} for one in queue.jobs],
        "cases": [_json(queue, one) for one in cases if one.runs],
        "quotients": {
            policy: {name: _mean(one) for name, one in quotients(cases, policy, queue).items()}
            for policy in dict.fromkeys(one.policy for one in cases)
        },
        "policy_quotients": [
            {"mode": one.mode, "policy": one.policy, "over": first_policy(cases, one)}
            | {name: _mean(value) for name, value in found.items()}
            for one in cases
            if (found := policy_quotients(cases, one, queue))
        ],
    }


def _json(queue: CoreQueue, case: Case) -> dict[str, Any]:
    def job_of(job: JobRun) -> dict[str, Any]:
        arrival_s = queue.arrivals[job.name]
        own = {
            "waiting_s": waiting_s(job, arrival_s),
            "run_s": run_s(job),
            "turnaround_s": turnaround_s(job, arrival_s),
            "overhead_s": overhead_s(job),
            "reconfiguring_s": reconfiguring_s(job),
        }
        return asdict(job) | own | {"core_seconds": job.core_seconds}

    figures = {name: _mean(one) for name, one in figures_of(case, queue).items()}
    runs = [{"repetition": run.run.repetition, "jobs": [job_of(job) for job in run.jobs]} for run in case.runs]
    return {"mode": case.mode, "policy": case.policy, **figures, "runs": runs}


def _mean(one: Mean) -> dict[str, float | None]:
    return {"mean": one.value, "half_interval": one.half}
