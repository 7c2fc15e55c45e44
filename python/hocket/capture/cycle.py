"""Finds the iterations of a program: the longest repetition in a sequence of calls. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

LONGEST_PERIOD = 2000  # calls in an iteration
LEAST_REPEATS = 3
EXAMINED = 200_000  # calls; a longer sequence is examined at its middle first
CLOSE = 0.98  # a shorter period is chosen if it covers this part of what the best one covers

Tokens = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Cycle:
    start: int  # index of its first call
    period: int  # calls in an iteration
    repeats: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.repeats


def find_cycle(tokens: Tokens) -> Cycle | None:
    """Return the repetition that covers the most calls, with the shortest period; None if nothing repeats."""
    if len(tokens) < LEAST_REPEATS:
        return None
    middle = len(tokens) // 2
    sample = tokens[max(0, middle - EXAMINED // 2) : middle + EXAMINED // 2]
    covered = {
        period: _longest_run(sample, period)[1]
        for period in range(1, min(LONGEST_PERIOD, len(sample) // LEAST_REPEATS) + 1)
    }
    if not covered:
        return None
    most = max(covered.values())
    period = next(one for one, calls in covered.items() if calls >= CLOSE * most)
    start, calls = _longest_run(tokens, period)
    repeats = calls // period
    return Cycle(start, period, repeats) if repeats >= LEAST_REPEATS else None


def _longest_run(tokens: Tokens, period: int) -> tuple[int, int]:
    """Return start and length of the longest stretch in which each call equals the one a period before; (0, 0)."""
    same = np.flatnonzero(tokens[:-period] != tokens[period:]) if period < len(tokens) else None
    if same is None:
        return 0, 0
    edges = np.concatenate(([-1], same, [len(tokens) - period]))
    gaps = np.diff(edges) - 1
    at = int(gaps.argmax())
    if gaps[at] == 0:
        return 0, 0
    return int(edges[at]) + 1, int(gaps[at]) + period
