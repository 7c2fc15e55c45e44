"""Finds the fastest methods, and those that cannot be told apart from them (Proteo, section 5.2). Pure.

A cell is a pair of sizes, before and after the resize. In it each method has its samples. Kruskal-Wallis tests if all
methods have the same median. If not, Conover's test finds the methods that differ from the one with the least median,
with p values adjusted by Holm's method for many comparisons. Those that do not differ from it are the best of the cell:
one winner, or several that tie.

Medians and ranks are used because samples may not be normal, which Shapiro-Wilk tests.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

ALPHA = 0.05
P_ADJUST = "holm"
LEAST_SAMPLES = 2  # least samples of a method to be tested: one sample has no spread

Pair = tuple[int, int]  # number of processes before and after


@dataclass(frozen=True)
class Verdict:
    """The result of the tests for one cell."""

    best: tuple[str, ...]  # cannot be told apart from the fastest; by median, the fastest first; () without samples
    kruskal_p: float | None  # None: not tested, because there was too little to compare, or all values were equal
    p_of: Mapping[str, float]  # Conover's adjusted p of each method against the fastest; {} if not tested

    @property
    def tie(self) -> bool:
        return len(self.best) > 1


@dataclass(frozen=True)
class Spread:
    samples: int
    median: float
    mean: float
    deviation: float  # standard deviation of the samples; 0 for one sample
    least: float
    most: float


def spread(values: Sequence[float]) -> Spread:
    """Return the figures of at least one value."""
    mean = math.fsum(values) / len(values)
    square = math.fsum((value - mean) ** 2 for value in values)
    deviation = math.sqrt(square / (len(values) - 1)) if len(values) > 1 else 0.0
    return Spread(len(values), median(values), mean, deviation, min(values), max(values))


def shapiro_p(values: Sequence[float]) -> float | None:
    """Return the p value of "these are normal".

    None if it cannot be tested: less than three values, or all equal.
    """
    if len(values) < 3 or min(values) == max(values):
        return None
    from scipy.stats import shapiro

    return _number(shapiro(values).pvalue)


def judge(samples: Mapping[str, Sequence[float]]) -> Verdict:
    """Return the best methods of a cell.

    Methods with too few samples are left out. If all have too few, all tie.
    """
    several = [name for name, values in samples.items() if len(values) >= LEAST_SAMPLES]
    present = {name: values for name, values in samples.items() if (name in several if several else values)}
    order = sorted(present, key=lambda name: median(present[name]))  # equal medians: in the order given
    groups = [list(present[name]) for name in order]
    if len(several) < 2 or len({value for group in groups for value in group}) == 1:
        return Verdict(tuple(order), None, {})
    from scipy.stats import kruskal

    p = _number(kruskal(*groups).pvalue)
    if p is None or p >= ALPHA:
        return Verdict(tuple(order), p, {})
    p_of = dict(zip(order, _conover(groups), strict=True))
    return Verdict(tuple(name for name in order if p_of[name] >= ALPHA), p, p_of)


def _conover(groups: Sequence[Sequence[float]]) -> list[float]:
    """Return the adjusted p of each group against the first. That of the first against itself is 1."""
    import numpy
    from scikit_posthocs import posthoc_conover

    with warnings.catch_warnings(), numpy.errstate(all="ignore"):  # groups without any overlap divide by zero
        warnings.simplefilter("ignore")
        table = posthoc_conover([list(group) for group in groups], p_adjust=P_ADJUST).to_numpy()
    found = [_number(value) for value in table[0]]
    alike = [sorted(group) == sorted(groups[0]) for group in groups]
    # If the ranks leave no spread at all, the test gives 0 / 0: groups are alike, or they differ.
    return [(1.0 if same else 0.0) if p is None else p for p, same in zip(found, alike, strict=True)]


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def settle(verdicts: Mapping[Pair, Verdict]) -> dict[Pair, str]:
    """Return the method that is shown for each cell.

    It is the winner. Of several that tie, it is the one that is most often among the best of the nearest cells (Proteo,
    Fig. 14), then of the next nearest, and at last the one with the least median. Distances are counted in rows and
    columns of the table, whose axes are the sizes in rising order.
    """
    sizes = sorted({size for pair in verdicts for size in pair})
    place = {size: index for index, size in enumerate(sizes)}

    def distance(one: Pair, other: Pair) -> int:
        return max(abs(place[a] - place[b]) for a, b in zip(one, other, strict=True))

    shown = {}
    for pair, verdict in verdicts.items():
        left = list(verdict.best)
        for ring in range(1, len(sizes)):
            if len(left) <= 1:
                break
            near = [other for at, other in verdicts.items() if distance(pair, at) == ring]
            counts = Counter(name for other in near for name in other.best)
            most = max(counts[name] for name in left)
            left = [name for name in left if counts[name] == most]
        if left:
            shown[pair] = left[0]
    return shown
