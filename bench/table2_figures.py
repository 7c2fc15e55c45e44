"""Figures of Table 2's applications: FLOP rates and delays, from a trace. Pure.

The trace is that of hocketd or of the simulator. One function reads both, so both figures mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median, pstdev

from hocket.analysis import Application, analyse
from hocket.errors import HocketError
from hocket.toml_checks import Table
from hocket.trace import Trace

LEAST_PERIODS = 2


@dataclass(frozen=True)
class Rates:
    """An application between its first and its last I/O phase of a window. Times are means over its periods."""

    processes: int  # at the end
    flops: float
    delay_s: float  # waits for grants in a period
    io_s: float
    period_s: float
    period_spread_s: float
    periods: int


@dataclass(frozen=True)
class Figures:
    applications: Mapping[str, Rates]
    resizes: int  # that ended in the window

    @property
    def flops(self) -> float:
        return sum(one.flops for one in self.applications.values())

    @property
    def delay_s(self) -> float:
        """The sum of the applications' mean delays in a period, as in the paper's Fig. 18."""
        return sum(one.delay_s for one in self.applications.values())


def figures_of(trace: Trace, scenario: Table, since_ns: int, until_ns: int) -> Figures:
    """Return the figures of the scenario's applications in a window. Raises HocketError if it has too few periods."""
    analysis = analyse(trace)
    rates, resizes = {}, 0
    for one in scenario["applications"]:
        try:
            application = analysis.named(one["name"])
        except KeyError:
            raise HocketError(f"{trace.path}: {one['name']} is not there: did it reach hocketd?") from None
        rates[one["name"]] = _rates(application, one["flop_per_iteration"], since_ns, until_ns)
        resizes += sum(each.done and since_ns <= each.time_ns <= until_ns for each in application.reconfigurations)
    return Figures(rates, resizes)


def _rates(application: Application, flop_per_iteration: float, since_ns: int, until_ns: int) -> Rates:
    phases = [one for one in application.io_phases if since_ns <= one.end_ns <= until_ns and one.iteration >= 0]
    periods = len(phases) - 1
    if periods < LEAST_PERIODS:
        told = f"{application.name} has {max(periods, 0)} whole periods in the {(until_ns - since_ns) / 1e9:.0f} s"
        raise HocketError(f"{told} that are measured, and needs {LEAST_PERIODS}: measure for longer")
    length_s = (phases[-1].end_ns - phases[0].end_ns) / 1e9
    lengths_s = [(after.end_ns - before.end_ns) / 1e9 for before, after in pairwise(phases)]
    iterations = phases[-1].iteration - phases[0].iteration
    return Rates(
        processes=application.size_at(until_ns),
        flops=iterations * flop_per_iteration / length_s,
        delay_s=fmean(one.wait_ns for one in phases[1:]) / 1e9,
        io_s=fmean(one.io_ns for one in phases[1:]) / 1e9,
        period_s=length_s / periods,
        period_spread_s=pstdev(lengths_s),
        periods=periods,
    )


def medians(figures: Sequence[Figures], faster: float) -> dict[str, dict[str, float]]:
    """Return medians over runs, by application. Seconds are those of the scenario, so `faster` times those measured."""
    found: dict[str, dict[str, float]] = {}
    for name in figures[0].applications:
        of_all = [one.applications[name] for one in figures]
        found[name] = {
            "processes": median(one.processes for one in of_all),
            "flops": median(one.flops for one in of_all),
            **{
                key: median(getattr(one, key) for one in of_all) * faster
                for key in ("delay_s", "io_s", "period_s", "period_spread_s")
            },
        }
    return found


def total(of_applications: Mapping[str, Mapping[str, float]], key: str) -> float:
    return sum(one[key] for one in of_applications.values())
