"""The bounds of `./dev bench regret` on the default policy, and the figures that it prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import geometric_mean

import figures
from regret_programs import SETS
from regret_results import AGAIN, ALONE, ARMS, DEFAULT, FCFS, INTERRUPT, UNCOORDINATED, Case, Round
from regret_statistics import Ratio, holm, paired, together

report = partial(figures.report, "regret")

MOST_TOTAL, MOST_TOTAL_ELSEWHERE = 1.02, 1.05  # beside uncoordinated, of each program
INTERFERING = 1.3  # the interference factor from which on a set must gain
MOST_IO_INTERFERING, MOST_IO_OTHERS = 0.92, 1.02  # beside uncoordinated
LEAST_OF_GAIN = 0.7  # of what the best schedule gains
MOST_IO_BESIDE_BEST = 1.05
COMPARED = (UNCOORDINATED, FCFS, INTERRUPT, DEFAULT)
BOUNDED = {one.name: one.bounded for one in SETS}


@dataclass(frozen=True)
class Set:
    """All rounds of a case."""

    case: Case
    rounds: Sequence[Round]

    @property
    def bounded(self) -> bool:
        return BOUNDED.get(self.case.set, True)

    @property
    def programs(self) -> list[str]:
        return self.rounds[0].programs

    def of_program(self, program: str, key: str, arm: str, beside: str) -> Ratio:
        values = [[one.figure(which, program, key) for one in self.rounds] for which in (arm, beside)]
        return paired(*values)

    def of_sum(self, arm: str, beside: str) -> Ratio:
        """Return the ratio of I/O time with waits, summed over the programs."""
        return paired(*[[one.io_sum(which) for one in self.rounds] for which in (arm, beside)])

    @property
    def interference(self) -> float:
        """The geometric mean over the programs of I/O time together, uncoordinated, over alone.

        A program counts if I/O was seen in all of its runs. A log of few bytes is below what libhocket counts.
        """
        key = "io_with_waits_s"
        seen = [
            name
            for name in self.programs
            if all(one.figure(arm, name, key) > 0 for one in self.rounds for arm in (UNCOORDINATED, ALONE))
        ]
        return together([self.of_program(name, key, UNCOORDINATED, ALONE) for name in seen]).value

    @property
    def best_arm(self) -> str:
        return min(COMPARED, key=lambda arm: sum(math.log(one.io_sum(arm)) for one in self.rounds))


@dataclass(frozen=True)
class Comparison:
    """One ratio and its bound; with the bound None it is only reported.

    `value` and `reference` are geometric means over the rounds, in seconds. Their ratio is the geometric mean of the
    paired ratios.
    """

    case: str
    ratio: Ratio
    bound: float | None
    value: float
    reference: float
    more: dict


def sets_of(rounds: Iterable[Round]) -> list[Set]:
    found: dict[Case, list[Round]] = {}
    for one in rounds:
        found.setdefault(one.case, []).append(one)
    return [Set(case, its) for case, its in found.items()]


def totals(sets: Sequence[Set]) -> list[Comparison]:
    """Compare total times: no program is slower than uncoordinated."""
    made = []
    for one in sets:
        elsewhere = one.case.busy or one.case.where == "real"
        bound = (MOST_TOTAL_ELSEWHERE if elsewhere else MOST_TOTAL) if one.bounded else None
        for name in one.programs:
            ratios = {arm: one.of_program(name, "total_s", arm, UNCOORDINATED) for arm in ARMS[1:]}
            made.append(
                Comparison(
                    f"{one.case}: total time of {name} beside uncoordinated",
                    ratios[DEFAULT],
                    bound,
                    _mean(one, lambda r, name=name: r.figure(DEFAULT, name, "total_s")),
                    _mean(one, lambda r, name=name: r.figure(UNCOORDINATED, name, "total_s")),
                    _others(ratios),
                )
            )
    return made


def sums(sets: Sequence[Set]) -> list[Comparison]:
    """Compare I/O time with waits: less where programs interfere, as geometric mean; hardly more in each other set."""
    made, interfering = [], []
    for one in sets:
        ratios = {arm: one.of_sum(arm, UNCOORDINATED) for arm in ARMS[1:]}
        factor = one.interference
        gains = one.bounded and factor >= INTERFERING
        if gains:
            interfering.append(one)
        case = f"{one.case}: I/O time with waits beside uncoordinated"
        bound = None if gains or not one.bounded else MOST_IO_OTHERS
        more = {"interference": factor} | _others(ratios)
        made.append(Comparison(case, ratios[DEFAULT], bound, *_sums(one, DEFAULT, UNCOORDINATED), more))
    if interfering:
        ratio = together([one.of_sum(DEFAULT, UNCOORDINATED) for one in interfering])
        case = f"I/O time with waits, {len(interfering)} sets with an interference factor of {INTERFERING} or more"
        seconds = map(geometric_mean, zip(*(_sums(one, DEFAULT, UNCOORDINATED) for one in interfering), strict=True))
        told = {"sets": [str(one.case) for one in interfering]}
        made.append(Comparison(case, ratio, MOST_IO_INTERFERING, *seconds, told))
    return made


def besides_best(sets: Sequence[Set]) -> list[Comparison]:
    """Compare with the best arm of each set: the default is about as good."""
    made = []
    for one in sets:
        best = one.best_arm
        case = f"{one.case}: I/O time with waits beside the best of all ({best})"
        bound = MOST_IO_BESIDE_BEST if one.bounded else None
        made.append(Comparison(case, one.of_sum(DEFAULT, best), bound, *_sums(one, DEFAULT, best), {}))
    return made


def share_of_gain(sets: Sequence[Set], best_ratio: Callable[[Set], float | None]) -> bool:
    """Report the gain of the default in the sets that interfere, beside that of the best schedule with perfect
    knowledge.

    `best_ratio` returns that schedule's I/O time with waits beside uncoordinated, or None if it is unknown.
    """
    known = [
        (one, best)
        for one in sets
        if one.bounded and one.interference >= INTERFERING and (best := best_ratio(one)) is not None
    ]
    if not known:
        return True
    gained = together([one.of_sum(DEFAULT, UNCOORDINATED) for one, _ in known])
    best = math.exp(sum(math.log(ratio) for _, ratio in known) / len(known))
    most = 1 - LEAST_OF_GAIN * (1 - best)  # of the default's ratio
    missed = gained.freedom > 0 and gained.interval()[0] > most
    more = {"interval": [1 - high for high in reversed(gained.interval())], "best": {str(s.case): b for s, b in known}}
    case = "gain in I/O time with waits beside that of the best schedule with perfect knowledge"
    return report(case, 1 - gained.value, "of uncoordinated", 1 - best, LEAST_OF_GAIN, not missed, **more)


def judge(comparisons: Sequence[Comparison]) -> bool:
    """Print the comparisons, as one family for Holm's procedure. Return True if none misses its bound."""
    bounded = [one for one in comparisons if one.bound]
    verdicts = dict(zip(map(id, bounded), holm([one.ratio.p_beyond(one.bound) for one in bounded]), strict=True))
    good = True
    for one in comparisons:
        verdict = verdicts.get(id(one))
        more = {"interval": one.ratio.interval()} | one.more
        if verdict:
            more["corrected_interval"] = one.ratio.interval(verdict.alpha)
        ok = not (verdict and verdict.missed)
        good &= report(one.case, one.value, "s", one.reference, one.bound, ok, **_finite(more))
    return good


def _finite(more: dict) -> dict:
    """Replace infinite intervals, which JSON cannot hold, by None. With one round an interval is unknown."""
    return {key: None if isinstance(one, tuple) and math.inf in one else one for key, one in more.items()}


def _others(ratios: dict[str, Ratio]) -> dict:
    """Return the ratios of the other arms. `again` is the noise: uncoordinated beside itself."""
    told = {arm: ratios[arm].value for arm in (AGAIN, FCFS, INTERRUPT)}
    return _finite(told | {"noise_interval": ratios[AGAIN].interval()})


def _mean(one: Set, figure: Callable[[Round], float]) -> float:
    return geometric_mean(map(figure, one.rounds))


def _sums(one: Set, *arms: str) -> list[float]:
    return [_mean(one, lambda r, arm=arm: r.io_sum(arm)) for arm in arms]
