"""Writes allocations as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hocket.arbitration.allocate import Allocation, Given
from hocket.arbitration.jobs import MB, Job
from hocket.tables import columns


def table_of(jobs: Sequence[Job], allocations: Sequence[Allocation], servers: int) -> str:
    """Return one table of the policies, and one of the jobs under each."""
    found = [one for one in allocations if not one.error]
    lines = [_policies(allocations, servers)]
    if found:
        lines += ["", _jobs(jobs, found), "", "loss: beside the best that the job has alone in the pool; * shared"]
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


def _jobs(jobs: Sequence[Job], allocations: Sequence[Allocation]) -> str:
    heading = ["job", "nodes"]
    for one in allocations:
        heading += [one.policy, "MB/s", "loss"]
    rows = []
    for number, job in enumerate(jobs):
        cells = [job.name, str(job.nodes)]
        for one in allocations:
            cells += _cells(one.jobs[number])
        rows.append(cells)
    return columns(heading, rows, right=range(1, len(heading)))


def _cells(given: Given) -> list[str]:
    servers = f"{given.servers}{'*' if given.shared else ''}"
    if given.bandwidth is None or given.loss is None:
        return [servers, "unknown", "-"]
    return [servers, f"{given.bandwidth / MB:.1f}", f"{100 * given.loss:.0f} %"]
