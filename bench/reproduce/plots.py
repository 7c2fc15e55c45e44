"""Panels that several figures share, in the style of the Δ-graphs of `hocket delta`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy
from hocket.delta.plot import COLOURS, GRID, MARKERS, SOFT
from matplotlib import pyplot
from matplotlib.axes import Axes

DPI = 110
SERIES = ("#0072b2", "#e69f00", "#009e73", "#a8326e", "#8457c9")
PAPER = "#3a4046"
POLICY_COLOURS = COLOURS | {
    "none": COLOURS["interfere"],
    "phase-shift": COLOURS["interrupt"],
    "period-coupling": COLOURS["dynamic"],
    "fair": SERIES[0],
    "speedup": SERIES[1],
    "io-aware": SERIES[2],
}
# More than SERIES has, for parts of a bar.
PARTS = (*SERIES, "#56b4e9", "#d0b400", "#8a939b", "#3a4046")
Points = Sequence[tuple[float, float]]


def colour(number: int) -> str:
    return PARTS[number % len(PARTS)]


@contextmanager
def picture(path: Path, columns: int, rows: int = 1, height: float = 3.6):
    """Yield the axes of a picture, which is written at the end."""
    with pyplot.rc_context({"font.size": 10, "font.family": "sans-serif"}):
        figure, axes = pyplot.subplots(rows, columns, figsize=(12, height * rows), layout="constrained", squeeze=False)
        try:
            yield list(axes.flat)
            figure.savefig(path, dpi=DPI)
        finally:
            pyplot.close(figure)


def finish(axis: Axes, title: str, x: str, y: str, key: bool = True) -> None:
    axis.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axis.set_xlabel(x, color=SOFT)
    axis.set_ylabel(y, color=SOFT)
    axis.grid(color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    if key and axis.get_legend_handles_labels()[0]:
        axis.legend(frameon=False, fontsize=9)


def lines(axis: Axes, series: Mapping[str, Points], marker_size: float = 4) -> None:
    """Draw a line with markers for each name; policies have the colours that they have everywhere."""
    for number, (name, points) in enumerate(series.items()):
        axis.plot(
            *zip(*points, strict=True),
            label=name,
            color=POLICY_COLOURS.get(name, colour(number)),
            marker=MARKERS.get(name, "o"),
            markersize=marker_size,
            markerfacecolor="none",
            linewidth=1.2,
        )


def nothing(path: Path) -> None:
    """Draw the picture of a figure of which nothing is measured."""
    with picture(path, 1, height=1.2) as (axis,):
        axis.text(0.5, 0.5, "not measured", ha="center", va="center", color=SOFT)
        axis.set_axis_off()


def grid(
    axis: Axes,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    title: str,
    quotients: bool = False,
) -> None:
    """Draw a table whose cells are coloured by their value on a logarithmic scale. None: the cell is not measured.

    `quotients`: white is 1, and the colours end at 1/2 and 2.
    """
    numbers = numpy.array([[numpy.nan if one is None else one for one in row] for row in values], dtype=float)
    shades = numpy.ma.masked_invalid(numpy.log(numbers))
    limits = {"vmin": -numpy.log(2), "vmax": numpy.log(2)} if quotients else {}
    image = axis.imshow(shades, cmap="PuOr" if quotients else "YlOrBr", aspect="auto", alpha=0.75, **limits)
    dark = numpy.ma.filled(numpy.ma.array(image.cmap(image.norm(shades))[..., :3].sum(axis=2) < 1.3), False)
    for row, of_row in enumerate(numbers):
        for column, value in enumerate(of_row):
            text = "\N{EN DASH}" if numpy.isnan(value) else f"{value:.2f}"
            ink = "white" if dark[row, column] else "black"
            axis.text(column, row, text, ha="center", va="center", fontsize=8, color=ink)
    axis.set_xticks(range(len(columns)), columns, fontsize=8)
    axis.set_yticks(range(len(rows)), rows, fontsize=8)
    axis.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)


def paper_line(axis: Axes, value: float, label: str) -> None:
    axis.axhline(value, color=PAPER, linewidth=1, linestyle="dotted", label=label)


def bars(axis: Axes, groups: Sequence[str], series: Mapping[str, Sequence[float]], numbers: bool = True) -> None:
    """Draw a group of bars for each group, one bar for each series."""
    width = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        at = numpy.arange(len(groups)) + (number - (len(series) - 1) / 2) * width
        colour = POLICY_COLOURS.get(name, SERIES[number % len(SERIES)])
        drawn = axis.bar(at, values, width * 0.92, label=name, color=colour)
        if numbers:
            axis.bar_label(drawn, fmt=lambda value: f"{value:.3g}" if value < 1e3 else f"{value:.0f}", fontsize=8)
    axis.set_xticks(range(len(groups)), groups)
    axis.margins(y=0.15)
