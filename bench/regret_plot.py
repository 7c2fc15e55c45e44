"""The picture of `./dev bench regret`: total times and I/O times beside uncoordinated, under each policy.

It shows each program's total time, and each set's I/O time with waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from hocket.delta.plot import COLOURS, GRID, SOFT
from matplotlib import pyplot
from matplotlib.axes import Axes
from regret_bounds import Set
from regret_results import AGAIN, DEFAULT, FCFS, INTERRUPT, UNCOORDINATED
from regret_statistics import Ratio

DPI = 150
SHOWN = (AGAIN, FCFS, INTERRUPT, DEFAULT)
COLOUR = {AGAIN: "#9aa1a7", FCFS: COLOURS["fcfs"], INTERRUPT: COLOURS["interrupt"], DEFAULT: COLOURS["dynamic"]}
MARKER = {AGAIN: "x", FCFS: "s", INTERRUPT: "^", DEFAULT: "o"}
LABEL = {AGAIN: "uncoordinated again (the noise)", DEFAULT: "the default"}
LEAST, MOST = 0.5, 2.0  # of the axes: larger and smaller values are drawn at the edge

Row = tuple[str, float, dict[str, Ratio]]  # label, place from above, the ratio under each of SHOWN


def write_plot(sets: Sequence[Set], path: Path) -> None:
    """Write the picture; a set's sum stands beside its programs."""
    programs, sums, ends = [], [], [0]
    for one in sets:
        begin = len(programs)
        programs += _programs(one, begin)
        sums.append(_sum(one, (begin + len(programs) - 1) / 2))
        ends.append(len(programs))
    with pyplot.rc_context({"font.size": 8.5, "font.family": "sans-serif"}):
        figure, axes = pyplot.subplots(1, 2, figsize=(14, 1.6 + 0.24 * len(programs)), layout="constrained")
        _draw(axes[0], programs, ends, "total time of each program / uncoordinated")
        _draw(axes[1], sums, ends, "I/O time with waits, sum of the set / uncoordinated")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=len(SHOWN), frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=DPI)
        pyplot.close(figure)


def _programs(one: Set, begin: int) -> list[Row]:
    ratios = [{arm: one.of_program(name, "total_s", arm, UNCOORDINATED) for arm in SHOWN} for name in one.programs]
    return [(name, begin + at, its) for at, (name, its) in enumerate(zip(one.programs, ratios, strict=True))]


def _sum(one: Set, place: float) -> Row:
    where = ("busy, " if one.case.busy else "") + ("real storage, " if one.case.where == "real" else "")
    label = f"{one.case.set.replace('+', ' + ')}\n{where}I = {one.interference:.2f}"
    return label, place, {arm: one.of_sum(arm, UNCOORDINATED) for arm in SHOWN}


def _draw(axis: Axes, rows: Sequence[Row], ends: Sequence[int], title: str) -> None:
    """Draw the rows; `ends` has the ends of the sets' programs."""
    for which, arm in enumerate(SHOWN):
        places = [place + 0.18 * (which - (len(SHOWN) - 1) / 2) for _, place, _ in rows]
        values = [_within(ratios[arm].value) for *_, ratios in rows]
        intervals = [[_within(end) for end in ratios[arm].interval()] for *_, ratios in rows]
        bars = [[value - low for value, (low, _) in zip(values, intervals, strict=True)]]
        bars += [[high - value for value, (_, high) in zip(values, intervals, strict=True)]]
        axis.errorbar(
            values,
            places,
            xerr=bars,
            color=COLOUR[arm],
            marker=MARKER[arm],
            markersize=4,
            markerfacecolor="none",
            linestyle="none",
            linewidth=0.9,
            label=LABEL.get(arm, arm),
        )
    for end in ends:
        axis.axhline(end - 0.5, color=GRID, linewidth=0.8)
    axis.axvline(1.0, color=SOFT, linewidth=0.9)
    axis.set_xscale("log")
    ticks = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 2.0)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.set_xlim(LEAST * 0.97, MOST * 1.03)
    axis.set_yticks([place for _, place, _ in rows], [label for label, *_ in rows])
    axis.set_ylim(ends[-1] - 0.4, -0.6)
    axis.set_title(title, loc="left", fontsize=10, fontweight="bold")
    axis.set_xlabel("95 % intervals; what lies beyond the axis is drawn at its end", color=SOFT)
    axis.grid(axis="x", color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _within(ratio: float) -> float:
    return min(max(ratio, LEAST), MOST)
