"""Writes allocations as tables and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hocket.arbitration.allocate import Allocation, Given
from hocket.arbitration.jobs import MB, Job
from hocket.tables import columns


def table_of(jobs: Sequence[Job], allocations: Sequence[Allocation], servers: int) -> str:
    """Return one table of the policies, and of each job's servers, bandwidth, and loss under each policy."""
    found = [one for one in allocations if not one.error]
    lines = [_policies(allocations, servers)]
    unknown = [job.name for job in jobs if not job.bandwidth]
    lines += [f"the sums leave out jobs that nobody has measured: {', '.join(unknown)}"] if unknown else []
    if found:
        shared = any(given.shared for one in found for given in one.jobs)
        lines += ["", _jobs("servers", _servers, jobs, found)]
        lines += ["* shared with other jobs, which divides their bandwidth"] if shared else []
        lines += ["", _jobs("MB/s", _rate, jobs, found), "", _jobs("loss", _loss, jobs, found)]
        lines += [f"loss: of the best bandwidth that the job has alone with at most {servers} servers"]
    lines += [f"{one.policy}: {one.error}" for one in allocations if one.error]
    return "\n".join(lines)


def json_of(jobs: Sequence[Job], allocations: Sequence[Allocation], servers: int) -> dict[str, Any]:
    return {
        "servers": servers,
        "policies": [
            {"policy": one.policy, "error": one.error}
            if one.error
            else {
                "policy": one.policy,
                "servers": one.servers,
                "bandwidth_mb_s": one.bandwidth / MB,
                "jobs": [
                    {
                        "name": job.name,
                        "servers": given.servers,
                        "shared": given.shared,
                        "bandwidth_mb_s": None if given.bandwidth is None else given.bandwidth / MB,
                        "loss": given.loss,
                    }
                    for job, given in zip(jobs, one.jobs, strict=True)
                ],
            }
            for one in allocations
        ],
    }


def _policies(allocations: Sequence[Allocation], servers: int) -> str:
    by_name = {one.policy: one for one in allocations if not one.error}
    fixed = by_name.get("static")

    def row(one: Allocation) -> list[str]:
        if one.error:
            return [one.policy, "-", "-", "-"]
        beside = f"{one.bandwidth / fixed.bandwidth:.2f}" if fixed and fixed.bandwidth else "-"
        return [one.policy, f"{one.servers} of {servers}", f"{one.bandwidth / MB:.1f}", beside]

    return columns(["policy", "servers", "MB/s", "x static"], [row(one) for one in allocations], right=(1, 2, 3))


def _jobs(what: str, cell: Callable[[Given], str], jobs: Sequence[Job], allocations: Sequence[Allocation]) -> str:
    heading = [what, "nodes", *(one.policy for one in allocations)]
    rows = [
        [job.name, str(job.nodes), *(cell(one.jobs[number]) for one in allocations)] for number, job in enumerate(jobs)
    ]
    return columns(heading, rows, right=range(1, len(heading)))


def _servers(given: Given) -> str:
    return f"{given.servers}{'*' if given.shared else ''}"


def _rate(given: Given) -> str:
    return "unknown" if given.bandwidth is None else f"{given.bandwidth / MB:.1f}"


def _loss(given: Given) -> str:
    return "-" if given.loss is None else f"{100 * given.loss:.0f} %"
