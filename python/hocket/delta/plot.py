"""Draws a Δ-graph: measured points, and the expected values as thin dashed lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from hocket.delta.graph import Graph
from hocket.pictures import save

COLOURS = {"interfere": "#a8326e", "fcfs": "#0072b2", "interrupt": "#e69f00", "dynamic": "#009e73"}
MARKERS = {"interfere": "x", "fcfs": "s", "interrupt": "^", "dynamic": "o"}
MORE = ("#8457c9", "#3a4046", "#56b4e9", "#d55e00")  # for other policies
SOFT, GRID = "#5b6168", "#e4e7e9"
DPI = 160
STEPS = 600  # number of steps of the expected lines
MANY = 60  # above so many points of a policy, its markers are smaller
UNITS = {"cpu-time": "process seconds", "io-time": "s", "makespan": "s", "interference": "sum of factors"}


def write_plot(graph: Graph, path: Path) -> None:
    """Draw the I/O times of A and of B, with interference factors at the right, and the metric. Raises HocketError."""
    with pyplot.rc_context({"font.size": 10, "font.family": "sans-serif"}):
        figure, axes = pyplot.subplots(1, 3, figsize=(15, 4.8), layout="constrained")
        for which, (axis, one) in enumerate(zip(axes, graph.alone, strict=False)):
            curves = [_curve_of_side(graph, policy, which) for policy in graph.policies]
            _draw(graph, axis, curves)
            factors = axis.secondary_yaxis("right", functions=_scaled(one.io_s))
            factors.set_ylabel("interference factor", color=SOFT)
            factors.spines["right"].set_visible(False)
            processes = f"{one.processes} process{'' if one.processes == 1 else 'es'}"
            title = f"{one.name}: {processes}, {one.io_s:.3g} s alone"
            axis.set_title(title, loc="left", fontsize=11, fontweight="bold")
            axis.set_ylabel("I/O time with waits, s", color=SOFT)
        _draw(graph, axes[2], [_curve_of_metric(graph, policy) for policy in graph.policies])
        axes[2].set_title(f"metric: {_short(graph.model.metric)}", loc="left", fontsize=11, fontweight="bold")
        axes[2].set_ylabel(UNITS.get(graph.model.metric, ""), color=SOFT)
        figure.legend(handles=_key(graph), loc="outside upper left", ncols=8, frameon=False, fontsize=9.5)
        save(figure, path, DPI)


def colour_of(graph: Graph, policy: str) -> str:
    others = [one for one in graph.policies if one not in COLOURS]
    return COLOURS.get(policy) or MORE[others.index(policy) % len(MORE)]


@dataclass(frozen=True)
class Curve:
    """(dt, value) pairs. `spread`: (least, most) over the runs of each measured point."""

    policy: str
    measured: list[tuple[float, float]]
    spread: list[tuple[float, float]]
    expected: list[tuple[float, float]]


def _curve_of_side(graph: Graph, policy: str, which: int) -> Curve:
    points = graph.of(policy)
    sides = [(point.a, point.b)[which] for point in points]
    measured = [(point.dt_s, side.io_s) for point, side in zip(points, sides, strict=True)]
    expected = [(dt_s, graph.expected(policy, dt_s)) for dt_s in _grid(graph)]
    known = [(dt_s, (one.a_s, one.b_s)[which]) for dt_s, one in expected if one]
    return Curve(policy, measured, [(side.least_s, side.most_s) for side in sides], known)


def _curve_of_metric(graph: Graph, policy: str) -> Curve:
    costs = [(point.dt_s, point.cost) for point in graph.of(policy)]
    expected = [(dt_s, graph.cost(graph.expected(policy, dt_s), dt_s)) for dt_s in _grid(graph)]
    measured = [(dt_s, cost) for dt_s, cost in costs if cost is not None]
    known = [(dt_s, cost) for dt_s, cost in expected if cost is not None]
    return Curve(policy, measured, [(cost, cost) for _, cost in measured], known)


def _grid(graph: Graph) -> list[float]:
    """Return the dts of the expected lines: even ones, and both sides of 0, where the lines jump."""
    dts = [point.dt_s for point in graph.points]
    low, high = min(dts, default=0.0), max(dts, default=0.0)
    even = [low + (high - low) * step / STEPS for step in range(STEPS + 1)]
    return sorted([*even, *((-1e-6, 0.0) if low < 0 <= high else ())])


def _draw(graph: Graph, axis: Axes, curves: Sequence[Curve]) -> None:
    for curve in curves:
        colour = colour_of(graph, curve.policy)
        if curve.expected:
            axis.plot(*zip(*curve.expected, strict=True), color=colour, linewidth=0.9, linestyle="--")
        bars = [
            (value - low, high - value) for (_, value), (low, high) in zip(curve.measured, curve.spread, strict=True)
        ]
        axis.errorbar(
            [dt_s for dt_s, _ in curve.measured],
            [value for _, value in curve.measured],
            yerr=list(zip(*bars, strict=True)) if any(map(any, bars)) else None,
            color=colour,
            marker=MARKERS.get(curve.policy, "D"),
            markersize=5.5 if len(curve.measured) <= MANY else 3,
            markerfacecolor="none",
            linestyle="none",
            linewidth=1.0,
        )
    values = [value for curve in curves for _, value in [*curve.measured, *curve.expected]]
    values += [high for curve in curves for _, high in curve.spread]
    axis.set_ylim(0, 1.06 * max(values, default=1.0) or 1.0)
    axis.set_xlabel("B starts its I/O so many seconds after A", color=SOFT)
    axis.grid(color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _scaled(alone_s: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    return (lambda seconds: seconds / alone_s), (lambda factor: factor * alone_s)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _key(graph: Graph) -> list[Line2D]:
    def item(policy: str) -> Line2D:
        marker = MARKERS.get(policy, "D")
        return Line2D([], [], color=colour_of(graph, policy), marker=marker, markerfacecolor="none", linestyle="none")

    found = [item(policy) for policy in graph.policies]
    for line, policy in zip(found, graph.policies, strict=True):
        line.set_label(policy)
    how = "simulated" if graph.about.get("simulated") else "measured"
    return [*found, Line2D([], [], color=SOFT, linewidth=0.9, linestyle="--", label=f"expected (points: {how})")]
