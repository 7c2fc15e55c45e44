"""Accesses that a policy asked to stop, and that could not: how often, and what that cost the others.

One access of the MPI library has no place to stop before its end. FINISH_IO of such an access, instead of PAUSED_IO,
answers PAUSE_IO and says so (`unstopped`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hocket.tables import printable, times

if TYPE_CHECKING:
    from hocket.comparison import Row

ADVICE = "run it with --io hocket, make its accesses smaller, or use the steps of hocket/io.h"


@dataclass(frozen=True)
class Unstopped:
    """One such access. From `asked_ns` to `end_ns` the application `waiting` waited for its end."""

    asked_ns: int
    end_ns: int
    waiting: str


def waited_s(found: Iterable[Unstopped]) -> float:
    """Return the seconds in which at least one other application waited for the end of such an access."""
    total_ns, until_ns = 0, 0
    for one in sorted(found, key=lambda one: one.asked_ns):
        total_ns += max(0, one.end_ns - max(one.asked_ns, until_ns))
        until_ns = max(until_ns, one.end_ns)
    return total_ns / 1e9


def waiting_for(found: Iterable[Unstopped]) -> tuple[str, ...]:
    """Return the names of the applications that waited."""
    return tuple(sorted({one.waiting for one in found if one.waiting}))


def sentence(row: Row) -> str:
    """Return how often it could not stop, what that cost, and what to do."""
    name, others = printable(row.application), printable(", ".join(row.unstopped_for)) or "others"
    happened = f"{name} could not stop {times(row.unstopped)} when it was asked to"
    return f"{happened}, and {others} waited {row.unstopped_wait_s:.2f} s for the end of its access; {ADVICE}"
