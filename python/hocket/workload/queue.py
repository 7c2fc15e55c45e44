"""A queue of jobs in strict first in, first out order (GekkoFWD, section 5.3). Pure.

Jobs join the queue when they arrive. The first one starts as soon as the machine has room for it, in nodes or in cores.
No later one overtakes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter

from hocket.workload.jobs import QueuedJob


class FifoQueue:
    """The jobs that wait, and those that run. Times are seconds from the start of the queue."""

    def __init__(
        self, jobs: Iterable[QueuedJob], room: int | None, need: Callable[[QueuedJob], int] = attrgetter("nodes")
    ) -> None:
        """`need` says how much of the room a job takes. Without a room each job starts when it arrives."""
        self._waiting = sorted(jobs, key=lambda one: (one.arrival_s, one.number))
        self._free = room
        self._need = need
        self.running: list[QueuedJob] = []

    def start(self, now_s: float) -> list[QueuedJob]:
        """Return the jobs that start now, in order."""
        started = []
        while self._waiting and self._waiting[0].arrival_s <= now_s and self._fits(self._waiting[0]):
            one = self._waiting.pop(0)
            if self._free is not None:
                self._free -= self._need(one)
            self.running.append(one)
            started.append(one)
        return started

    def end(self, one: QueuedJob) -> None:
        """Note that a running job has ended."""
        self.running.remove(one)
        if self._free is not None:
            self._free += self._need(one)

    @property
    def done(self) -> bool:
        return not self._waiting and not self.running

    def next_arrival(self, now_s: float) -> float | None:
        """Return when the first job of the queue arrives; None if it has, or if there is none."""
        if not self._waiting or self._waiting[0].arrival_s <= now_s:
            return None
        return self._waiting[0].arrival_s

    def _fits(self, one: QueuedJob) -> bool:
        return self._free is None or self._need(one) <= self._free
