"""The verdict on the default policy: total times of pairs of runs, uncoordinated and default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

MOST_SLOWER = 0.03  # most slowdown by the default, beside uncoordinated


@dataclass(frozen=True)
class Pair:
    """Total time of each solver, in seconds."""

    uncoordinated: Mapping[str, float]
    default: Mapping[str, float]


@dataclass(frozen=True)
class Outcome:
    """The outcome of at least one pair. `policy` is its name for users."""

    policy: str
    pairs: Sequence[Pair]

    def change(self, solver: str) -> float:
        """Return the relative change of the solver's time under the default, as median of the pairs."""
        return median(pair.default[solver] / pair.uncoordinated[solver] for pair in self.pairs) - 1

    def noise(self, solver: str) -> float:
        """Return the noise of uncoordinated: the excess of its longest run over its shortest."""
        times = [pair.uncoordinated[solver] for pair in self.pairs]
        return max(times) / min(times) - 1

    def most(self, solver: str) -> float:
        """Return the largest change that does not count as slower."""
        return max(MOST_SLOWER, self.noise(solver))

    def sentence(self) -> str:
        """Return the outcome in one sentence."""
        first, *others = self._names()
        changes = [f"{first} {_change(self.change(first), ' than uncoordinated', ' as uncoordinated')}"]
        changes += [f"{name} {_change(self.change(name))}" for name in others]
        noise = max(map(self.noise, self._names()))
        count = f"median of {len(self.pairs)} pairs" if len(self.pairs) > 1 else "one pair"
        itself = f"; uncoordinated differs from itself by up to {100 * noise:.0f} %" if len(self.pairs) > 1 else ""
        return f"{self.policy}: {', '.join(changes)} ({count} of runs{itself})"

    def complaint(self) -> str:
        """Return a complaint about slower solvers, or "" if no solver became slower."""
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
