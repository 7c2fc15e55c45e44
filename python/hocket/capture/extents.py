"""Finds how the accesses of a stage lie in their file, from the offsets in the logs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Placement:
    """Where a rank's accesses lie, beside those before them in the same file.

    All are False if a log lacks an offset.
    """

    advances: bool = False  # those of one iteration follow one another: they are the requests of one access
    strided: bool = False  # between two of them there is room for those of other ranks
    appends: bool = False  # those of an iteration lie behind those of the iteration before


def placement_of(accesses: Sequence[Array], iterations: Sequence[Array]) -> Placement:
    """Return the placement of the accesses of each rank. `iterations`: in which of them each access took place."""
    inside, lengths, between = [], [], []
    ranks = 0
    for calls, at in zip(accesses, iterations, strict=True):
        moves = calls["bytes"] > 0
        calls, at = calls[moves], at[moves]
        if len(calls) == 0:
            continue
        if (calls["offset"] < 0).any():
            return Placement()
        ranks += 1
        same = np.diff(at) == 0
        begins = calls[np.concatenate([[True], ~same])]
        same &= _same_file(calls)
        inside.append(np.diff(calls["offset"])[same])
        lengths.append(calls["bytes"][:-1][same])
        between.append(np.diff(begins["offset"])[_same_file(begins)])
    step, length = _usual(inside), _usual(lengths)
    return Placement(step > 0, ranks > 1 and step > length, _usual(between) > 0)


def _same_file(calls: Array) -> Array:
    """Return for each call but the first if it accesses the file of the one before."""
    return calls["file"][1:] == calls["file"][:-1]


def _usual(values: Sequence[Array]) -> float:
    """Return the median of all; 0 if there are none."""
    every = np.concatenate(values) if values else np.zeros(0)
    return float(np.median(every)) if len(every) else 0.0
