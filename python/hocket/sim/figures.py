"""Compares simulated policies side by side: medians over the seeds, and their confidence intervals. Pure.

All policies run with the same seeds, so that they are compared run by run. An interval is that of the median, by order
statistics. From 6 seeds on it contains the true median with at least 95 %. For fewer seeds it is the least and the
greatest value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from statistics import median
from typing import Any

from hocket.comparison import OTHER, SCHEDULED, UNCOORDINATED, Row
from hocket.tables import columns

Result = dict[str, Any]
UNCOORDINATED_POLICIES = ("none", "interfere")
CONFIDENCE = 0.95
LEAST_SEEDS = 6


@dataclass(frozen=True)
class Estimate:
    median: float
    low: float
    high: float


def estimate(values: Sequence[float]) -> Estimate:
    """Return the median of at least one value, and its interval."""
    ordered = sorted(values)
    count = len(ordered)
    below, tail = 0, 0.0  # number of values that may lie outside at either end
    while below < count // 2:
        tail += comb(count, below) / 2**count
        if tail > (1 - CONFIDENCE) / 2:
            break
        below += 1
    at = max(below - 1, 0)
    return Estimate(median(ordered), ordered[at], ordered[count - 1 - at])


@dataclass(frozen=True)
class Series:
    """The runs under one policy, one for each seed."""

    policy: str
    runs: list[Result]

    @property
    def role(self) -> str:
        return UNCOORDINATED if self.policy in UNCOORDINATED_POLICIES else SCHEDULED

    def of(self, figure: Callable[[Result], float]) -> list[float]:
        return [figure(run) for run in self.runs]

    def application(self, name: str, figure: Callable[[Result], float]) -> float:
        """Return the median of an application's figure over the runs."""
        found = [figure(one) for run in self.runs for one in run["applications"] if one["application"] == name]
        return median(found) if found else 0.0


def io_with_delay(run: Result) -> float:
    """Return the seconds of I/O and waiting over all applications: the paper's "I/O time incl. delay"."""
    return sum(one["io_s"] + one["wait_s"] for one in run["applications"])


def delay(run: Result) -> float:
    return sum(one["wait_s"] for one in run["applications"])


def flops(run: Result) -> float:
    return float(run["flops"])


def length(run: Result) -> float:
    return float(run["simulated_s"])


def decisions(run: Result) -> int:
    """Return the number of decisions about cores. If there are many, most are conflicts that were left alone."""
    return int(run["decisions"])


def resizes(run: Result) -> int:
    """Return the number of resizes over all applications. An application that was expanded for a while counts twice."""
    return sum(one["reconfigurations"] for one in run["applications"])


FIGURES: dict[str, Callable[[Result], float]] = {
    "io_with_delay_s": io_with_delay,
    "delay_s": delay,
    "flops": flops,
    "simulated_s": length,
}


def rows(series: Sequence[Series], most: int = 0) -> list[Row]:
    """Return rows as for live runs: each application alone, then under each policy.

    `most`: only this many applications, those with most I/O (0: all).
    """
    names = [one["application"] for one in series[0].runs[0]["applications"]]
    if most and len(names) > most:
        by_io = sorted(names, key=lambda name: -series[0].application(name, lambda one: one["io_s"] + one["wait_s"]))
        names = [name for name in names if name in set(by_io[:most])]
    return [row for name in names for row in _rows_of(name, series)]


def _rows_of(name: str, series: Sequence[Series]) -> list[Row]:
    io_alone_s = series[0].application(name, lambda one: one["io_alone_s"])
    processes = int(series[0].application(name, lambda one: one["processes_first"]))
    alone_s = series[0].application(name, lambda one: one["alone_s"])
    found = [Row(name, "alone", OTHER, processes, io_alone_s, 0.0, alone_s, 0, 0, 0)]
    for one in series:
        io_s, wait_s = (one.application(name, lambda told, key=key: told[key]) for key in ("io_s", "wait_s"))
        factor = {UNCOORDINATED: "interference", SCHEDULED: "cost"}[one.role]
        value = (io_s + (wait_s if one.role == SCHEDULED else 0.0)) / io_alone_s if io_alone_s > 0 else None
        found.append(
            Row(
                name,
                one.policy,
                one.role,
                int(one.application(name, lambda told: told["processes_last"])),
                io_s,
                wait_s,
                one.application(name, lambda told: told["total_s"]),
                int(one.application(name, lambda told: told["phases"])),
                0,
                int(one.application(name, lambda told: told["bytes_written"])),
                **{factor: value},
            )
        )
    return found


def changes(series: Series, reference: Series, figure: Callable[[Result], float]) -> Estimate | None:
    """Return the relative change of a figure against the reference, seed by seed.

    None if the reference has a value of 0.
    """
    before, after = reference.of(figure), series.of(figure)
    if any(value <= 0 for value in before):
        return None
    return estimate([new / old - 1 for old, new in zip(before, after, strict=True)])


def worst_slowdown(series: Series, reference: Series) -> float:
    """Return how much longer the application took that lost most, as a share: the median over the seeds.

    The time of an iteration is compared, because a run may be cut off before its applications have ended.
    """
    worst = []
    for run, other in zip(series.runs, reference.runs, strict=True):
        before = {one["application"]: _pace(one) for one in other["applications"]}
        shares = [_pace(one) / before[one["application"]] - 1 for one in run["applications"] if one["total_s"] > 0]
        worst.append(max(shares, default=0.0))
    return median(worst)


def _pace(application: dict[str, Any]) -> float:
    return application["total_s"] / max(application["iterations"], 1)


def summary(series: Sequence[Series]) -> list[dict[str, object]]:
    """Return the figures of each policy, and their changes against the first policy."""
    told: list[dict[str, object]] = []
    for one in series:
        entry: dict[str, object] = {"policy": one.policy, "seeds": len(one.runs)}
        for name, figure in FIGURES.items():
            entry[name] = vars(estimate(one.of(figure)))
            change = changes(one, series[0], figure)
            entry[f"{name}_change"] = vars(change) if change and one is not series[0] else None
        entry["worst_slowdown"] = worst_slowdown(one, series[0]) if one is not series[0] else None
        entry["decisions"] = median(one.of(decisions))
        entry["resizes"] = median(one.of(resizes))
        told.append(entry)
    return told


def summary_table(series: Sequence[Series]) -> str:
    """Return a line for each policy, and below it the changes against the first one."""
    several = len(series[0].runs) > 1
    named = ("I/O + waited s", "waited s", "FLOP/s", "end s", "decisions", "resizes", "worst slowdown")
    heading = ("all applications", *named)
    lines: list[tuple[str, ...]] = []
    for one in series:
        figures = [estimate(one.of(figure)) for figure in FIGURES.values()]
        counts = [f"{median(one.of(count)):g}" for count in (decisions, resizes)]
        worst = f"{worst_slowdown(one, series[0]):+.1%}" if one is not series[0] else ""
        texts = [_number(figure.median) for figure in figures]
        lines.append((one.policy, *texts, *counts, worst))
        if several:
            lines.append(("", *(_range(figure) for figure in figures), "", "", ""))
        if one is not series[0]:
            found = [changes(one, series[0], figure) for figure in FIGURES.values()]
            lines.append(("", *(_change(change, several) for change in found), "", "", ""))
    return columns(heading, lines, right=range(1, len(heading)))


def forwarded_lines(series: Sequence[Series]) -> list[str]:
    """Return a line for each policy, if applications forward their I/O: their bandwidths, added up (Equation 2)."""
    sums = [median(run.get("forwarded_bandwidth", 0.0) for run in one.runs) for one in series]
    if not any(sums):
        return []
    lines = ["", "bandwidth of all forwarded applications, each bytes over run time (GekkoFWD, Equation 2)"]
    for one, value in zip(series, sums, strict=True):
        beside = f", {value / sums[0]:.2f} times that of {series[0].policy}" if one is not series[0] and sums[0] else ""
        lines.append(f"  {one.policy}: {value / 1e6:.1f} MB/s{beside}")
    return lines


def _number(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 1e5 else f"{value:.4g}"


def _range(figure: Estimate) -> str:
    return f"({_number(figure.low)} to {_number(figure.high)})" if figure.high > figure.low else ""


def _change(change: Estimate | None, several: bool) -> str:
    if change is None:
        return ""
    interval = f" ({change.low:+.1%} to {change.high:+.1%})" if several and change.high > change.low else ""
    return f"{change.median:+.1%}{interval}"
