"""Paired ratios with intervals, and the test of many ratios against their bounds.

A ratio is judged by its logarithms, one for each round, whose mean has a t distribution. Of many comparisons, some
exceed a bound by chance. Holm's procedure limits the probability of any false miss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

ALPHA = 0.05  # two-sided: half of it lies above an interval


@dataclass(frozen=True)
class Ratio:
    """The geometric mean of ratios: mean and standard error of their logarithms, and degrees of freedom.

    With 0 degrees of freedom there is one value, whose error is unknown.
    """

    log: float
    error: float
    freedom: float

    @property
    def value(self) -> float:
        return math.exp(self.log)

    def interval(self, alpha: float = ALPHA) -> tuple[float, float]:
        """Return the interval that holds the true ratio with probability 1 - alpha."""
        if self.freedom <= 0:
            return 0.0, math.inf
        half = float(stats.t.ppf(1 - alpha / 2, self.freedom)) * self.error
        return math.exp(self.log - half), math.exp(self.log + half)

    def p_beyond(self, bound: float) -> float:
        """Return the probability of such a large ratio if the true one is `bound`."""
        if self.freedom <= 0:
            return 1.0
        distance = self.log - math.log(bound)
        if self.error == 0:
            return 0.0 if distance > 1e-12 else 1.0
        return float(stats.t.sf(distance / self.error, self.freedom))


def paired(values: Sequence[float], references: Sequence[float]) -> Ratio:
    """Return the ratio of values to their references, measured pair by pair."""
    logs = [math.log(value / reference) for value, reference in zip(values, references, strict=True)]
    count, mean = len(logs), math.fsum(logs) / len(logs)
    if count < 2:
        return Ratio(mean, math.inf, 0)
    variance = math.fsum((one - mean) ** 2 for one in logs) / (count - 1)
    return Ratio(mean, math.sqrt(variance / count), count - 1)


def together(ratios: Sequence[Ratio]) -> Ratio:
    """Return the geometric mean of ratios that were measured independently.

    The degrees of freedom are those of Welch and Satterthwaite.
    """
    count = len(ratios)
    mean = math.fsum(one.log for one in ratios) / count
    if any(one.freedom <= 0 for one in ratios):
        return Ratio(mean, math.inf, 0)
    squares = [(one.error / count) ** 2 for one in ratios]
    total = math.fsum(squares)
    if total == 0:
        return Ratio(mean, 0.0, sum(one.freedom for one in ratios))
    parts = math.fsum(square**2 / one.freedom for square, one in zip(squares, ratios, strict=True))
    return Ratio(mean, math.sqrt(total), total**2 / parts)


@dataclass(frozen=True)
class Verdict:
    """The verdict of Holm's procedure. `alpha` is its level, and the interval of that level is the corrected one."""

    missed: bool
    alpha: float


def holm(probabilities: Sequence[float], alpha: float = ALPHA) -> list[Verdict]:
    """Return, for each (one-sided) probability, if it is too small to be chance, for all of them together."""
    order = sorted(range(len(probabilities)), key=lambda at: probabilities[at])
    verdicts: list[Verdict | None] = [None] * len(probabilities)
    going_on = True
    for rank, at in enumerate(order):
        level = alpha / (len(order) - rank)
        going_on = going_on and probabilities[at] < level / 2
        verdicts[at] = Verdict(going_on, level)
    return [one for one in verdicts if one]
