"""The queue and what is predicted of it, beside simple models."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hocket.arbitration.allocate import Given
from hocket.arbitration.jobs import Job
from hocket.exploration.measure import Program
from hocket.workload.jobs import QueuedJob, WorkloadJob, queue_of
from hocket.workload.prediction import UnpredictableError, predict
from hocket.workload.queue import FifoQueue


def kind(name: str, nodes: int, bytes_: int = 100, arrival_s: float = 0.0) -> WorkloadJob:
    return WorkloadJob(
        Job(name, nodes, nodes, {1: 1}), Program(name, nodes, nodes, ("x",)), bytes_, arrival_s, 1, 9, {}
    )


def jobs(*kinds: WorkloadJob) -> list[QueuedJob]:
    return queue_of([(one, one.arrival_s) for one in kinds], Path("x.toml"))


def names(queued: Sequence[QueuedJob]) -> str:
    return "".join(one.name for one in queued)


def test_no_job_overtakes_the_first():
    large, small = kind("l", 6), kind("s", 2)
    queue = FifoQueue(jobs(kind("a", 4), large, small), 8)
    (first,) = queue.start(0)
    assert first.name == "a" and queue.start(1) == []
    queue.end(first)
    assert names(queue.start(2)) == "ls"
    assert names(queue.running) == "ls"


def test_jobs_join_the_queue_when_they_arrive():
    queue = FifoQueue(jobs(kind("a", 1, arrival_s=5), kind("b", 1, arrival_s=2), kind("c", 9, arrival_s=2)), 9)
    assert queue.start(0) == [] and queue.next_arrival(0) == 2
    (b,) = queue.start(2)
    assert b.name == "b" and queue.next_arrival(2) is None, "c has arrived, and waits for nodes"
    assert queue.start(6) == [], "c is the first"
    queue.end(b)
    assert names(queue.start(6)) == "c"
    queue.end(queue.running[0])
    assert names(queue.start(6)) == "a" and not queue.done
    queue.end(queue.running[0])
    assert queue.done and queue.next_arrival(6) is None


def test_without_nodes_each_job_starts_when_it_arrives():
    queue = FifoQueue(jobs(kind("a", 100), kind("b", 100), kind("c", 1, arrival_s=1)), None)
    assert names(queue.start(0)) == "ab" and names(queue.start(1)) == "c"


def test_the_room_may_be_cores():
    """a and b need 3 and 2 of 4 cores, whatever their nodes."""
    need = {"a": 3, "b": 2}
    queue = FifoQueue(jobs(kind("a", 9), kind("b", 9)), 4, lambda one: need[one.name])
    (first,) = queue.start(0)
    assert queue.start(0) == []
    queue.end(first)
    assert names(queue.start(1)) == "b"


@pytest.mark.parametrize("seed", range(200))
def test_random_queues_keep_order_and_nodes(seed: int):
    draw = random.Random(seed)
    nodes = draw.randint(4, 20)
    queued = jobs(
        *(kind(f"j{n}", draw.randint(1, nodes), arrival_s=draw.randint(0, 9)) for n in range(draw.randint(1, 30)))
    )
    queue, now_s, started = FifoQueue(queued, nodes), 0, []
    while not queue.done:
        started += queue.start(now_s)
        used = sum(one.nodes for one in queue.running)
        assert used <= nodes
        waiting = [one for one in sorted(queued, key=lambda one: (one.arrival_s, one.number)) if one not in started]
        if waiting and waiting[0].arrival_s <= now_s:
            assert used + waiting[0].nodes > nodes, "the first of the queue waits although it has room"
        if queue.running and draw.random() < 0.7:
            queue.end(draw.choice(queue.running))
        else:
            now_s += 1
    assert started == sorted(queued, key=lambda one: (one.arrival_s, one.number))


def equally(rate: int):
    """Return a policy that divides a rate by the number of running jobs, which is also their number of servers."""

    def give_out(running: Sequence[QueuedJob]) -> list[Given]:
        return [Given(len(running), False, rate // len(running), 0.0) for _ in running]

    return give_out


def test_bandwidths_follow_the_servers():
    """a and b share 10 bytes/s until b has its 40; a then has all."""
    found = predict(jobs(kind("a", 1), kind("b", 1)), 2, equally(10), {"a": 100, "b": 40})
    a, b = found.jobs["a"], found.jobs["b"]
    assert (b.started_s, b.ended_s, b.bytes_per_s) == (0, 8, 5)
    assert (a.ended_s, a.servers) == (pytest.approx(14), ((0, 2), (pytest.approx(8), 1)))
    assert found.bytes_per_s == pytest.approx(5 + 100 / 14) and found.makespan_s == pytest.approx(14)


def test_jobs_wait_for_nodes_and_arrivals():
    queued = jobs(kind("a", 2), kind("b", 1), kind("c", 1, arrival_s=30))
    found = predict(queued, 2, equally(10), {"a": 100, "b": 50, "c": 10})
    times = {name: (one.started_s, pytest.approx(one.ended_s)) for name, one in found.jobs.items()}
    assert times == {"a": (0, 10), "b": (10, 15), "c": (30, 31)}


@pytest.mark.parametrize("seed", range(100))
def test_whatever_runs_the_bytes_are_those_of_the_rates(seed: int):
    """Where all jobs share one rate without a pause, the last one ends when all bytes have been moved at it."""
    draw = random.Random(seed)
    kinds = [kind(f"j{n}", draw.randint(1, 4), draw.randint(1, 10**6)) for n in range(draw.randint(1, 12))]
    bytes_of = {one.name: one.bytes for one in kinds}
    # 27720 is divisible by each number of running jobs.
    found = predict(jobs(*kinds), draw.randint(4, 12), equally(27720), bytes_of)
    assert found.makespan_s == pytest.approx(sum(bytes_of.values()) / 27720, rel=1e-6)
    assert found.jobs.keys() == bytes_of.keys()


def test_what_is_not_known_is_said():
    def unmeasured(running: Sequence[QueuedJob]) -> list[Given]:
        return [Given(3, False, None, None) for _ in running]

    with pytest.raises(UnpredictableError, match="'a' has no bandwidth_mb_s with 3 servers"):
        predict(jobs(kind("a", 1)), 1, unmeasured, {"a": 1})
    with pytest.raises(UnpredictableError, match="'a' has a bandwidth of 0 with 1 server;"):
        predict(jobs(kind("a", 1)), 1, equally(0), {"a": 1})
    with pytest.raises(UnpredictableError, match="nobody knows how many bytes 'a' moves"):
        predict(jobs(kind("a", 1)), 1, equally(1), {})
