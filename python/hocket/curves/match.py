"""Matches the accesses of an application to access patterns that were measured (GekkoFWD, section 3.1). Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CONTIGUOUS, STRIDED, RANDOM = "contiguous", "strided", "random"
SPATIALITIES = (CONTIGUOUS, STRIDED, RANDOM)  # by distance: neighbours are 1 apart
OTHER_FILES = 2.0  # distance of a file for each process from a shared one
OTHER_OPERATION = 2.0  # of reads from writes
UNKNOWN = 0.5  # for each of these that is not known of the accesses
FACTOR_FOUR = 2.0  # log2 of the ratio of sizes, nodes, or processes whose distance is 1
LEAST_CONFIDENCE = 0.25  # below it a match tells nothing


@dataclass(frozen=True)
class Access:
    """A kind of access of an application, and its part of all bytes. None: not known."""

    shared: bool | None  # one file for all processes; else a file for each
    spatiality: str | None  # of one process in its file
    operation: str  # write, read
    request_bytes: float
    bytes: float


@dataclass(frozen=True)
class MeasuredPattern:
    """A pattern that was measured, and its bandwidth in bytes/s by number of servers."""

    name: str
    nodes: int
    processes: int
    shared: bool
    spatiality: str
    operation: str
    request_bytes: int
    direct: bool
    rates: Mapping[int, float]


@dataclass(frozen=True)
class Part:
    """The pattern that is nearest to one kind of access."""

    access: Access
    pattern: MeasuredPattern
    distance: float
    share: float  # of the application's bytes

    @property
    def confidence(self) -> float:
        return 2.0**-self.distance


@dataclass(frozen=True)
class Match:
    """The patterns that an application is like, its largest part first, and what follows for it.

    `rates` has the bytes/s of its I/O by number of servers: the parts follow one another, each at its pattern's rate.
    """

    parts: Sequence[Part]
    rates: Mapping[int, float]

    @property
    def confidence(self) -> float:
        """Return 1 if all bytes are moved exactly as in the patterns; each unit of distance halves a part's worth."""
        return sum(part.share * part.confidence for part in self.parts)

    @property
    def names(self) -> str:
        return ", ".join(dict.fromkeys(part.pattern.name for part in self.parts))


def distance(access: Access, nodes: int, processes: int, pattern: MeasuredPattern) -> float:
    """Return how unlike an access and a pattern are; 0: as far as is known, they are the same.

    O_DIRECT does not count, because logs do not tell it.
    """
    total = _ratio(access.request_bytes, pattern.request_bytes)
    total += _ratio(nodes, pattern.nodes) + _ratio(processes, pattern.processes)
    total += OTHER_OPERATION if access.operation != pattern.operation else 0
    if access.shared is None:
        total += UNKNOWN
    elif access.shared != pattern.shared:
        total += OTHER_FILES
    if access.spatiality is None:
        return total + UNKNOWN
    return total + abs(SPATIALITIES.index(access.spatiality) - SPATIALITIES.index(pattern.spatiality))


def match(accesses: Sequence[Access], nodes: int, processes: int, patterns: Sequence[MeasuredPattern]) -> Match | None:
    """Return the nearest pattern of each access; None if there are no patterns, or no accesses."""
    total = sum(access.bytes for access in accesses)
    usable = [one for one in patterns if any(rate > 0 for rate in one.rates.values())]
    if total <= 0 or not usable:
        return None
    parts = []
    for access in accesses:
        # Programs are more like the pattern without O_DIRECT, if both are equally near.
        near = min(usable, key=lambda one: (round(distance(access, nodes, processes, one), 9), one.direct, one.name))
        parts.append(Part(access, near, distance(access, nodes, processes, near), access.bytes / total))
    parts.sort(key=lambda part: -part.share)
    return Match(parts, _rates(parts))


def _rates(parts: Sequence[Part]) -> dict[int, float]:
    """Return the rate of all bytes, for each number of servers with which every pattern was measured."""
    numbers = set.intersection(*({n for n, rate in part.pattern.rates.items() if rate > 0} for part in parts))
    return {n: 1 / sum(part.share / part.pattern.rates[n] for part in parts) for n in sorted(numbers)}


def _ratio(a: float, b: float) -> float:
    return abs(math.log2(a / b)) / FACTOR_FOUR


def grade(confidence: float) -> str:
    """Return the confidence as a word."""
    if confidence >= 0.75:
        return "high"
    return "fair" if confidence >= 0.5 else "low" if confidence >= LEAST_CONFIDENCE else "none"
