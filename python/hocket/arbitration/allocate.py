"""Asks hocket-arbitrate, which has the policies of hocketd, what each policy gives out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from hocket import paths
from hocket.arbitration.jobs import MB, MOST, Job
from hocket.errors import HocketError, UsageError

POLICIES = ("zero", "one", "static", "size", "process", "mckp", "oracle")
MOST_SUM = 2**62  # bytes/s
MOST_SERVERS = 2**31 - 1
MOST_CELLS = 2**28  # jobs · servers


@dataclass(frozen=True)
class Rules:
    """What allocations may do (AllocationRules in src/core/allocation/allocation.hpp)."""

    direct: bool = True
    divides_evenly: bool = False
    most_loss: float | None = None  # of a job under mckp, beside static: 0.2 means 20 %
    shared_server: bool = False


@dataclass(frozen=True)
class Given:
    """What one job gets: `bandwidth` in bytes/s, and `loss` as a part of the best that it could have alone.

    Both are None for a job that nobody has measured, the loss also with more servers than the pool has.
    """

    servers: int
    shared: bool
    bandwidth: int | None
    loss: float | None


@dataclass(frozen=True)
class Allocation:
    """What a policy gives out, or why it cannot (`error`)."""

    policy: str
    jobs: list[Given]
    servers: int
    bandwidth: int
    error: str = ""


def allocate(
    jobs: Sequence[Job], servers: int, system: tuple[int, int], policies: Sequence[str], rules: Rules
) -> list[Allocation]:
    """Return what each policy gives out of `servers`. `system` has the machine's nodes and servers.

    A job without measurements has one choice, the default number of `static`, as in section 3.1 of the paper. Raises
    UsageError for numbers that are too large to add up.
    """
    _check_sums(jobs, servers)
    asked = {
        "servers": servers,
        "system_nodes": system[0],
        "system_servers": system[1],
        "rules": {"direct": rules.direct, "divides_evenly": rules.divides_evenly, "shared_server": rules.shared_server},
        "policies": list(policies),
        "jobs": [
            {
                "name": job.name,
                "nodes": job.nodes,
                "processes": job.processes,
                "choices": list(job.bandwidth.items()) or [(min(-(-job.nodes * system[1] // system[0]), MOST), 0)],
            }
            for job in jobs
        ],
    }
    if rules.most_loss is not None:
        asked["rules"]["least_of_static"] = 1 - rules.most_loss
    answer = _ask(json.dumps(asked))
    return [_allocation(policy, answer[policy], jobs, servers) for policy in policies]


def _check_sums(jobs: Sequence[Job], servers: int) -> None:
    """Check that sums stay within the integers of hocket-arbitrate, and the table of mckp within 1 GiB."""
    if sum(max(job.bandwidth.values(), default=0) for job in jobs) > MOST_SUM:
        raise UsageError(f"the bandwidths of the jobs add up to more than {MOST_SUM / MB:.1g} MB/s")
    if sum(max(job.bandwidth, default=MOST) for job in jobs) > MOST_SERVERS:
        raise UsageError(f"the servers that the jobs may have add up to more than {MOST_SERVERS}")
    useful = min(servers, sum(max(job.bandwidth, default=0) for job in jobs))
    if useful * len(jobs) > MOST_CELLS:
        raise UsageError(f"{len(jobs)} jobs that may use {useful} servers are too many; describe fewer of either")


def _ask(asked: str) -> dict[str, dict]:
    program = paths.prefix() / "libexec" / "hocket" / "hocket-arbitrate"
    try:
        done = subprocess.run([program], input=asked, capture_output=True, text=True, check=False)
    except OSError as error:
        raise HocketError(f"cannot start {program}: {error.strerror}; install hocket anew") from error
    if done.returncode != 0:
        raise HocketError(done.stderr.strip() or f"{program} ended with {done.returncode}")
    return json.loads(done.stdout)


def _allocation(policy: str, answer: dict, jobs: Sequence[Job], servers: int) -> Allocation:
    if "error" in answer:
        return Allocation(policy, [], 0, 0, answer["error"])
    given = [_given(job, one, servers) for job, one in zip(jobs, answer["jobs"], strict=True)]
    return Allocation(policy, given, answer["servers"], answer["bandwidth"])


def _given(job: Job, one: dict, servers: int) -> Given:
    if not job.bandwidth:
        return Given(one["servers"], one["shared"], None, None)
    if one["servers"] > servers and not one["shared"]:  # oracle's
        return Given(one["servers"], False, one["bandwidth"], None)
    # Figure 7: beside the best that the job would have alone with as many servers.
    alone = max((rate for number, rate in job.bandwidth.items() if number <= servers), default=0)
    loss = 1 - one["bandwidth"] / alone if alone > 0 else 0.0
    return Given(one["servers"], one["shared"], one["bandwidth"], loss)
