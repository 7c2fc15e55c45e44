"""Has the default policy helped? The total times of pairs of runs, uncoordinated and default, beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

MOST_SLOWER = 0.03  # that the default may make a solver, beside uncoordinated


@dataclass(frozen=True)
class Pair:
    """Total time of each solver, seconds."""

    uncoordinated: Mapping[str, float]
    default: Mapping[str, float]


@dataclass(frozen=True)
class Outcome:
    """Of some pairs; without any there is nothing to say. `policy`: what people are told it is."""

    policy: str
    pairs: Sequence[Pair]

    def change(self, solver: str) -> float:
        """By how much longer the default made it, as a part of uncoordinated, in the median of the pairs."""
        return median(pair.default[solver] / pair.uncoordinated[solver] for pair in self.pairs) - 1

    def noise(self, solver: str) -> float:
        """By how much uncoordinated differs from itself: its longest run beside its shortest."""
        times = [pair.uncoordinated[solver] for pair in self.pairs]
        return max(times) / min(times) - 1

    def most(self, solver: str) -> float:
        """The change from which on the default has made the solver slower."""
        return max(MOST_SLOWER, self.noise(solver))

    def sentence(self) -> str:
        """In plain words."""
        first, *others = self._names()
        changes = [f"{first} {_change(self.change(first), ' than uncoordinated', ' as uncoordinated')}"]
        changes += [f"{name} {_change(self.change(name))}" for name in others]
        noise = max(map(self.noise, self._names()))
        count = f"median of {len(self.pairs)} pairs" if len(self.pairs) > 1 else "one pair"
        itself = f"; uncoordinated differs from itself by up to {100 * noise:.0f} %" if len(self.pairs) > 1 else ""
        return f"{self.policy}: {', '.join(changes)} ({count} of runs{itself})"

    def complaint(self) -> str:
        """ "" where no solver became slower."""
        slower = [name for name in self._names() if self.change(name) > self.most(name)]
        if not slower:
            return ""
        told = " and ".join(f"{name} {100 * self.change(name):.1f} %" for name in slower)
        allowed = " and ".join(f"{100 * self.most(name):.1f} %" for name in slower)
        return f"{self.policy} made {told} slower than uncoordinated, where {allowed} is allowed"

    def _names(self) -> list[str]:
        return sorted(self.pairs[0].default)


def _change(change: float, than: str = "", as_: str = "") -> str:
    if round(100 * change) == 0:
        return "as soon" + as_
    return f"{100 * abs(change):.0f} % {'later' if change > 0 else 'sooner'}{than}"
