"""A curve: the bandwidth of one application by number of I/O servers, from measurements and patterns. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

EXPLORED, DARSHAN, SEEN = "explored", "darshan", "seen"
MOST_WEIGHT = 7.0  # of earlier runs: a whole run counts for an eighth at least, so that a curve follows its machine
MOST_RATE = 10**15  # bytes/s: files of jobs and hocketd take no more
SAME_SIZE = 2.0  # runs whose numbers of processes differ by less than this factor are of one size


@dataclass(frozen=True)
class Measured:
    """Bytes/s that runs have reached with one number of servers, and how many runs that stands for."""

    rate: float
    weight: float

    def joined(self, rate: float, weight: float) -> Measured:
        """Return the weighted mean with a further run."""
        before = min(self.weight, MOST_WEIGHT)
        return Measured((self.rate * before + rate * weight) / (before + weight), self.weight + weight)


@dataclass(frozen=True)
class Curve:
    """What is known of an application.

    `measured` counts all time of a run, as Eq. 2 of the paper does: bytes over makespan. `shape` has the rates of I/O
    alone that the matched patterns reach, and `other_s_per_byte` the time of a run outside of I/O.
    """

    name: str
    nodes: int
    processes: int
    found: tuple[str, ...]  # explored, darshan, seen, in the order in which they came
    when: datetime
    runs: int = 0
    measured: Mapping[int, Measured] = field(default_factory=dict)
    shape: Mapping[int, float] = field(default_factory=dict)
    other_s_per_byte: float = 0.0
    pattern: str = ""  # that the shape is of
    confidence: float | None = None  # in the shape

    @property
    def bandwidth(self) -> dict[int, float]:
        """Return bytes/s by number of servers: what was measured, and the shape beside it, moved to where that is.

        The time of a byte is that outside of I/O, and that of I/O, which depends on the number of servers as the
        shape says. Without a measured number the shape counts as it is.
        """
        rates = {number: one.rate for number, one in self.measured.items()}
        both = [(rate, number) for number, rate in rates.items() if rate > 0 and self.shape.get(number, 0) > 0]
        for number, shape in self.shape.items():
            if number in rates or shape <= 0:
                continue
            if not both:
                rates[number] = 1 / (self.other_s_per_byte + 1 / shape)
                continue
            weights = [self.measured[known].weight for _, known in both]
            times = [self._time(rate, self.shape[known] / shape) for rate, known in both]
            mean = sum(weight * time for weight, time in zip(weights, times, strict=True)) / sum(weights)
            rates[number] = 1 / mean
        return dict(sorted(rates.items()))

    @property
    def rates(self) -> dict[int, int]:
        """Return the bandwidth in whole bytes/s, as arbitration takes it."""
        return {number: min(round(rate), MOST_RATE) for number, rate in self.bandwidth.items()}

    def _time(self, rate: float, factor: float) -> float:
        """Return the seconds of a byte if its I/O takes `factor` times as long as where `rate` was measured."""
        other = min(self.other_s_per_byte, 1 / rate)
        return max(other + (1 / rate - other) * factor, 1e-15)

    def is_of_size(self, processes: int) -> bool:
        larger, smaller = max(processes, self.processes), min(processes, self.processes)
        return larger < SAME_SIZE * smaller

    def refined(self, run: Run, when: datetime) -> Curve:
        """Return the curve after a further run."""
        measured = dict(self.measured)
        for number, (rate, weight) in run.rates.items():
            known = measured.get(number)
            measured[number] = known.joined(rate, weight) if known else Measured(rate, weight)
        before = min(sum(one.weight for one in self.measured.values()), MOST_WEIGHT)
        other = (self.other_s_per_byte * before + run.other_s_per_byte) / (before + 1)
        found = self.found if SEEN in self.found else (*self.found, SEEN)
        return replace(self, measured=measured, other_s_per_byte=other, runs=self.runs + 1, when=when, found=found)

    def reshaped(self, found: str, shape: Mapping[int, float], pattern: str, confidence: float) -> Curve:
        """Return the curve with the shape of other patterns; what was measured stays."""
        sources = self.found if found in self.found else (*self.found, found)
        return replace(self, found=sources, shape=dict(shape), pattern=pattern, confidence=confidence)


@dataclass(frozen=True)
class Run:
    """What one run showed: bytes/s, and their weight, by number of servers; and the time of a byte outside of I/O."""

    rates: Mapping[int, tuple[float, float]]
    other_s_per_byte: float


def run_of(moved: Mapping[int, int], busy_s: Mapping[int, float], seconds: float, least_bytes: int) -> Run | None:
    """Return what a run showed that moved so many bytes in so much I/O time, by number of servers.

    If the number changed meanwhile, each gets the bandwidth that the run would have had with it alone. Numbers with
    which less than `least_bytes` were moved show nothing. Returns None if there is no other number.
    """
    total = sum(moved.values())
    usable = {number: one for number, one in moved.items() if one >= least_bytes and busy_s.get(number, 0) > 0}
    if not usable or seconds <= 0:
        return None
    other = max(seconds - sum(busy_s.values()), 0.0) / total
    rates = {number: (1 / (other + busy_s[number] / one), one / total) for number, one in usable.items()}
    return Run(rates, other)
