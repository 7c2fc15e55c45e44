"""Draws panels as PNG with matplotlib, for papers and slides: the same pictures as on the page."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from hocket.lanes import COMPUTING, IO, WAITING
from hocket.reconfigurations import CONSTANT, PARTS, RESUMING, SPAWNING, VARIABLE
from hocket.report.panels import (
    EXPANDS,
    LEAVES,
    MARK_WORDS,
    MET,
    OFF,
    PART_WORDS,
    SHRINKS,
    Lane,
    Panel,
    opacity,
    ticks,
)

COLOURS = {IO: "#0072b2", WAITING: "#e69f00", COMPUTING: "#9aa1a8"}
HEIGHTS = {IO: 0.64, WAITING: 0.32, COMPUTING: 0.05}
PART_COLOURS = {SPAWNING: "#d55e00", CONSTANT: "#009e73", VARIABLE: "#8457c9", RESUMING: "#3a4046"}
SIZE, EXPANDED = "#d8e0e6", "#a9cbe4"
MARKS = {EXPANDS: "^", SHRINKS: "v", LEAVES: "o", MET: "o", OFF: "x"}
MARK_COLOURS = {EXPANDS: "#1c1f23", SHRINKS: "#1c1f23", LEAVES: "#1c1f23", MET: "#009e73", OFF: "#a8326e"}
MARK_ROWS = 0.95  # height of the rows of decisions and outcomes, in lanes
STEPS = 0.7  # height of the row of the number of processes, in lanes
PART_HEIGHT, OVERLAPPED_HEIGHT = 0.82, 0.22
BOTH, SOFT, GRID = "#a8326e", "#5b6168", "#e4e7e9"
LANE_INCHES = 0.5
DPI = 160
PLOT_PIXELS = 1450  # width of the axis, at least
TITLE_INCHES, NOTE_INCHES = 0.34, 0.19  # height of a line
NOTE_LETTERS = 150  # letters in a line
KEY_COLUMNS, KEY_INCHES = 5, 0.2  # columns of the key, and height of a line


def write_png(panels: Sequence[Panel], length_s: float, title: str, note: str, io_verb: str, path: Path) -> None:
    """Draw all panels below each other on one time axis, with title and note above them."""
    rows = [
        _tops(panel)[-1] + (0.6 if panel.both_s is not None else 0) + (MARK_ROWS if panel.marks else 0)
        for panel in panels
    ]
    lines = textwrap.wrap(note, NOTE_LETTERS)
    head = TITLE_INCHES + NOTE_INCHES * len(lines) + 0.08
    key = _key(panels, io_verb)
    legend = KEY_INCHES * max(math.ceil(len(key) / KEY_COLUMNS) - 2, 0)
    height = LANE_INCHES * sum(rows) + 0.55 * len(panels) + 0.95 + head + legend
    with pyplot.rc_context({"font.size": 10, "font.family": "sans-serif"}):
        figure, axes = pyplot.subplots(
            len(panels), 1, figsize=(11, height), sharex=True, squeeze=False, layout="constrained", height_ratios=rows
        )
        figure.get_layout_engine().set(rect=(0, 0, 1, 1 - head / height))
        for panel, axis in zip(panels, axes[:, 0], strict=True):
            _draw(panel, axis, length_s)
        axes[-1, 0].set_xlabel("seconds since the first application began", color=SOFT, loc="right")
        figure.text(0.01, 1 - 0.1 / height, title, va="top", fontsize=13, fontweight="bold")
        figure.text(0.01, 1 - TITLE_INCHES / height, "\n".join(lines), va="top", fontsize=9.5, color=SOFT)
        figure.legend(handles=key, loc="outside lower left", ncols=KEY_COLUMNS, frameon=False, fontsize=9.5)
        figure.savefig(path, dpi=DPI)
        pyplot.close(figure)


def _key(panels: Sequence[Panel], io_verb: str) -> list[Patch | Line2D]:
    """Return the meaning of the shapes that occur in the pictures."""
    texts = {IO: io_verb, WAITING: "waits for a grant", COMPUTING: "computes"}
    key = [Patch(color=COLOURS[kind], label=text) for kind, text in texts.items()]
    if any(panel.both_s is not None for panel in panels):
        key.append(Patch(color=BOTH, label="two or more at once"))
    if any(lane.changes for panel in panels for lane in panel.lanes):
        key += [Patch(color=PART_COLOURS[kind], label=PART_WORDS[kind]) for kind in PARTS]
    if any(step.expanded for panel in panels for lane in panel.lanes for step in lane.steps):
        key.append(Patch(color=EXPANDED, label="expanded by a policy"))
    shown = {mark.kind for panel in panels for mark in panel.marks}
    key += [Line2D([], [], linestyle="", label=MARK_WORDS[kind], **_style(kind)) for kind in MARKS if kind in shown]
    if any(panel.conflicts for panel in panels):
        key.append(Patch(facecolor=to_rgba(BOTH, 0.1), edgecolor=BOTH, linestyle="--", label="predicted: I/O at once"))
    return key


def _tops(panel: Panel) -> list[float]:
    """Return the middle of the bars of each lane, and of one more lane. A lane without steps is 1 high."""
    tops = [0.0]
    for lane in panel.lanes:
        tops.append(tops[-1] + 1 + (STEPS if lane.steps else 0))
    return tops


def _draw(panel: Panel, axis: Axes, length_s: float) -> None:
    tops = _tops(panel)
    for row, lane in zip(tops, panel.lanes, strict=False):
        for kind in (COMPUTING, WAITING, IO):
            bars = [bar for bar in lane.bars if bar.kind == kind]
            least = 0 if kind == COMPUTING else length_s / PLOT_PIXELS  # thinner bars may not be painted at all
            spans = [(bar.start_s, max(bar.end_s - bar.start_s, least)) for bar in bars]
            colours = [to_rgba(COLOURS[kind], opacity(bar)) for bar in bars]
            axis.broken_barh(spans, (row - HEIGHTS[kind] / 2, HEIGHTS[kind]), facecolors=colours, linewidth=0)
        if lane.steps:
            _draw_sizes(lane, row, panel.most_processes, axis, length_s)
        axis.text(1.008, row, "\n".join(lane.notes), transform=axis.get_yaxis_transform(), va="center", fontsize=9)
    names, places = [lane.name for lane in panel.lanes], tops[:-1]
    bottom = tops[-1] - 0.5
    if panel.both_s is not None:
        spans = [(start, end - start) for start, end in panel.both]
        axis.broken_barh(spans, (bottom + 0.05, 0.16), facecolors=BOTH, linewidth=0)
        text = f"{panel.both_s:.2f} s"
        axis.text(1.008, bottom + 0.13, text, transform=axis.get_yaxis_transform(), va="center", fontsize=9)
        names.append("at once")
        places.append(bottom + 0.13)
        bottom += 0.35
    if panel.marks:
        decided, came = bottom + 0.3, bottom + 0.72
        for bar in panel.conflicts:
            axis.broken_barh(
                [(bar.start_s, max(bar.end_s - bar.start_s, length_s / PLOT_PIXELS))],
                (decided - 0.2, 0.4),
                facecolors=to_rgba(BOTH, 0.1),
                edgecolors=BOTH,
                linestyles="--",
                linewidth=0.8,
            )
        for kind in dict.fromkeys(mark.kind for mark in panel.marks):  # a line without points spoils the layout
            times = [mark.at_s for mark in panel.marks if mark.kind == kind]
            row = came if kind in (MET, OFF) else decided
            axis.plot(times, [row] * len(times), linestyle="", clip_on=False, **_style(kind))
        names.append("decisions")
        places.append(decided)
        if any(mark.kind in (MET, OFF) for mark in panel.marks):
            names.append("predictions")
            places.append(came)
        if panel.more_marks:
            text = f"{panel.more_marks} more"
            axis.text(1.008, decided, text, transform=axis.get_yaxis_transform(), va="center", fontsize=9)
        bottom += MARK_ROWS
    axis.set_yticks(places, names)
    axis.set_ylim(bottom, -0.5)
    axis.set_xlim(0, length_s)
    axis.set_xticks(ticks(length_s))
    axis.set_title(panel.label, loc="left", fontsize=10.5, fontweight="bold")
    axis.grid(axis="x", color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    axis.tick_params(length=0, colors=SOFT)
    axis.tick_params(axis="y", labelcolor="black")
    for side in ("top", "left", "right"):
        axis.spines[side].set_visible(False)
    axis.spines["bottom"].set_color(SOFT)


def _style(kind: str) -> dict[str, object]:
    """Return the style of a mark."""
    style: dict[str, object] = {"marker": MARKS[kind], "color": MARK_COLOURS[kind], "markersize": 6}
    return style | ({"markerfacecolor": "white"} if kind == LEAVES else {})


def _draw_sizes(lane: Lane, row: float, most_processes: int, axis: Axes, length_s: float) -> None:
    """Draw the row of steps below the bars of the lane, and a band over both for each reconfiguration."""
    floor = row + 0.5 + STEPS - 0.12
    for step in lane.steps:
        height = 0.1 + 0.5 * step.processes / max(most_processes, 1)
        axis.broken_barh(
            [(step.start_s, step.end_s - step.start_s)],
            (floor - height, height),
            facecolors=EXPANDED if step.expanded else SIZE,
        )
        if step.end_s - step.start_s > 0.009 * (len(str(step.processes)) + 0.6) * length_s:
            middle = (step.start_s + step.end_s) / 2
            axis.text(middle, floor - 0.03, str(step.processes), ha="center", va="bottom", fontsize=8)
    least = 2 * length_s / PLOT_PIXELS
    for change in lane.changes:
        span = (change.start_s, max(change.end_s - change.start_s, least))
        colour = to_rgba("#1c1f23", 0.16) if change.done else to_rgba(BOTH, 0.3)
        axis.broken_barh([span], (row - 0.45, 0.95 + STEPS - 0.12), facecolors=colour, linewidth=0)
        for part in change.parts:
            stopped_s = (part.end_s - part.start_s) * part.share
            low, tall = (part.start_s, part.end_s - part.start_s - stopped_s), (part.end_s - stopped_s, stopped_s)
            for (start_s, width_s), high in ((low, OVERLAPPED_HEIGHT), (tall, PART_HEIGHT)):
                if width_s > 0:
                    wide = [(start_s, max(width_s, least / 2))]
                    axis.broken_barh(wide, (row - high / 2, high), facecolors=PART_COLOURS[part.kind], linewidth=0)
        mark, colour = ("v", "#1c1f23") if change.done else ("x", BOTH)
        axis.plot(span[0] + span[1] / 2, row - 0.46, marker=mark, color=colour, markersize=5, clip_on=False)
