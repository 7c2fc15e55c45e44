"""Computes how long an application was in I/O, and how long it waited.

All figures use this definition, which is that of the coordinator (src/core/model/busy_time.hpp). I/O time is the time
during which at least one of its processes is in I/O. Waited is the time during which at least one waits for a grant and
none is in I/O. Pure; times are nanoseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Part:
    """The activity of one process from `start_ns` to `end_ns`: fractions of that time, together at most 1."""

    start_ns: int
    end_ns: int
    io: float = 0.0
    wait: float = 0.0


@dataclass(frozen=True)
class Times:
    io_ns: float = 0.0
    wait_ns: float = 0.0

    def __add__(self, other: Times) -> Times:
        return Times(self.io_ns + other.io_ns, self.wait_ns + other.wait_ns)


_Interval = tuple[int, int, float]  # start, end, share


def parts_of(
    start_ns: int, end_ns: int, io_ns: int, wait_ns: int, io_text: str = "", wait_text: str = ""
) -> list[Part]:
    """Return the parts of a report (IO_PHASE).

    They come from its intervals. If it has none, or invalid ones, they come from its sums.
    """
    if end_ns <= start_ns:
        return []
    io, waits = _read(io_text, start_ns, end_ns), _read(wait_text, start_ns, end_ns)
    if io is None or waits is None or not (io or waits):
        length = end_ns - start_ns
        share = min(max(io_ns / length, 0.0), 1.0)
        return [Part(start_ns, end_ns, share, min(max(wait_ns / length, 0.0), 1.0 - share))]
    edges = sorted({at for start, end, _ in [*io, *waits] for at in (start, end)})
    parts = []
    for start, end in pairwise(edges):
        share = _share_at(io, start)
        wait = min(_share_at(waits, start), 1.0 - share)
        if share + wait > 0:
            parts.append(Part(start, end, share, wait))
    return parts


def times_of(parts: Iterable[Part]) -> Times:
    """Return the times of all processes together.

    Parts that are partly busy at the same time are assumed to be independent of each other.
    """
    changes: list[tuple[int, int, float, float]] = []
    for part in parts:
        if part.end_ns > part.start_ns:
            free, idle = 1.0 - part.io, max(0.0, 1.0 - part.io - part.wait)
            changes += [(part.start_ns, 1, free, idle), (part.end_ns, -1, free, idle)]
    no_io, idle_all, before = _Product(), _Product(), 0
    io_ns = wait_ns = 0.0
    for at, by, free, idle in sorted(changes):
        length = at - before
        io_ns += length * (1.0 - no_io.value)
        wait_ns += length * (no_io.value - idle_all.value)
        no_io.change(free, by)
        idle_all.change(idle, by)
        before = at
    return Times(io_ns, wait_ns)


class _Product:
    """A product of numbers from 0 to 1, to which factors can be added and removed."""

    def __init__(self) -> None:
        self._zeros = self._others = 0
        self._logarithm = 0.0

    def change(self, factor: float, by: int) -> None:
        if factor < 1e-12:
            self._zeros += by
        elif factor < 1:
            self._others += by
            self._logarithm = self._logarithm + by * math.log(factor) if self._others else 0.0

    @property
    def value(self) -> float:
        return 0.0 if self._zeros else min(1.0, math.exp(self._logarithm))


def _read(text: str, start_ns: int, end_ns: int) -> list[_Interval] | None:
    """Return the intervals of "START:LENGTH:BUSY …" within a phase, or None if the text is invalid."""
    found: list[_Interval] = []
    last_ns = -math.inf
    for word in text.split(" ") if text else []:
        try:
            offset, length, *busy = (int(number) for number in word.split(":"))
        except ValueError:
            return None
        begin = start_ns + offset
        busy_ns = busy[0] if busy else length
        if len(busy) > 1 or length <= 0 or not 0 <= busy_ns <= length or begin < last_ns:
            return None
        last_ns = begin + length
        inside = max(begin, start_ns), min(last_ns, end_ns)
        if inside[1] > inside[0]:
            found.append((*inside, busy_ns / length))
    return found


def _share_at(intervals: Iterable[_Interval], at_ns: int) -> float:
    return next((share for start, end, share in intervals if start <= at_ns < end), 0.0)
