"""Predicts a queue from curves: each running job has the bandwidth that a policy expects for it.

Whenever a job starts or ends, the policy gives out the servers anew. Jobs start at once, and nothing else limits them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hocket.arbitration.allocate import Given, Rules, allocate
from hocket.errors import HocketError
from hocket.workload.jobs import QueuedJob, Workload
from hocket.workload.queue import FifoQueue

# Returns what a policy gives to each of these jobs.
GiveOut = Callable[[Sequence[QueuedJob]], Sequence[Given]]


class UnpredictableError(HocketError):
    """The curves do not say what becomes of the queue. The text says why."""


@dataclass(frozen=True)
class PredictedJob:
    """When a job runs, and its servers: (second, number) of each change."""

    name: str
    started_s: float
    ended_s: float
    bytes: int
    servers: tuple[tuple[float, int], ...]

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / (self.ended_s - self.started_s)


@dataclass(frozen=True)
class Prediction:
    jobs: dict[str, PredictedJob]

    @property
    def bytes_per_s(self) -> float:
        """The aggregate bandwidth: the sum of those of the jobs (Equation 2)."""
        return sum(one.bytes_per_s for one in self.jobs.values())

    @property
    def makespan_s(self) -> float:
        return max(one.ended_s for one in self.jobs.values())


@dataclass
class _Running:
    started_s: float
    left: float  # bytes
    rate: float
    servers: list[tuple[float, int]]


def giving_out(workload: Workload, policy: str, rules: Rules) -> GiveOut:
    """Return the function that asks hocket-arbitrate what a policy gives. It raises UnpredictableError."""
    known: dict[tuple[str, ...], Sequence[Given]] = {}
    system = (workload.system_nodes, workload.system_servers)

    def give_out(jobs: Sequence[QueuedJob]) -> Sequence[Given]:
        key = tuple(one.kind.name for one in jobs)
        if key not in known:
            asked = [policy, "static"]  # by which hocketd decides where a policy cannot
            found, fixed = allocate([one.job for one in jobs], workload.servers, system, asked, rules)
            if found.error and fixed.error:
                raise UnpredictableError(found.error)
            known[key] = fixed.jobs if found.error else found.jobs
        return known[key]

    return give_out


def predict(jobs: Sequence[QueuedJob], nodes: int | None, give_out: GiveOut, bytes_of: Mapping[str, int]) -> Prediction:
    """Return what becomes of the queue.

    `bytes_of` has the bytes of each job of the file. Raises UnpredictableError if those of one are not known, if a
    policy expects no bandwidth of a job, or if nobody has measured it.
    """
    queue, now_s = FifoQueue(jobs, nodes), 0.0
    running: dict[QueuedJob, _Running] = {}
    ended: dict[str, PredictedJob] = {}
    while not queue.done:
        for one in queue.start(now_s):
            if not bytes_of.get(one.kind.name):
                raise UnpredictableError(f"nobody knows how many bytes '{one.kind.name}' moves; give 'bytes'")
            running[one] = _Running(now_s, float(bytes_of[one.kind.name]), 0.0, [])
        _give_out(running, now_s, give_out)
        next_s = min((now_s + one.left / one.rate for one in running.values()), default=math.inf)
        arrival_s = queue.next_arrival(now_s)
        then_s = next_s if arrival_s is None else min(next_s, arrival_s)
        for job, one in list(running.items()):
            if now_s + one.left / one.rate <= then_s * (1 + 1e-12):
                servers = tuple(one.servers)
                ended[job.name] = PredictedJob(job.name, one.started_s, then_s, bytes_of[job.kind.name], servers)
                queue.end(job)
                del running[job]
            else:
                one.left -= (then_s - now_s) * one.rate
        now_s = then_s
    return Prediction(ended)


def _give_out(running: dict[QueuedJob, _Running], now_s: float, give_out: GiveOut) -> None:
    """Set the rate of each job."""
    for (job, one), given in zip(running.items(), give_out(list(running)) if running else (), strict=True):
        if not given.bandwidth:
            told = "no bandwidth_mb_s" if given.bandwidth is None else "a bandwidth of 0"
            number = f"{given.servers} server{'' if given.servers == 1 else 's'}"
            raise UnpredictableError(f"'{job.kind.name}' has {told} with {number}; 'hocket explore' measures it")
        one.rate = given.bandwidth
        if not one.servers or one.servers[-1][1] != given.servers:
            one.servers.append((now_s, given.servers))
