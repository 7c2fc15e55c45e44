"""Draws the winners like Proteo's Fig. 14: sizes before the resize down, sizes after it across.

The number and the colour of a cell name the method.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch, Rectangle

from hocket.reconfigure.results import MEASURES, Results
from hocket.reconfigure.statistics import spread

SOFT, EMPTY = "#5b6168", "#f1f2f3"
DPI = 160
CELL_INCHES = 0.95
KEY_LETTERS = 60  # letters in a line of the key


def write_heatmap(results: Results, path: Path) -> None:
    """Draw the measures beside each other. The key holds only methods that are shown in a cell."""
    side = max(CELL_INCHES * len(results.sizes), 3.2)
    used = {name for shown in results.shown.values() for name in shown.values()}
    key = [(number, name) for number, name in enumerate(results.names, 1) if name in used]
    height = side + 1.5 + 0.24 * ((len(key) + 1) // 2)
    with pyplot.rc_context({"font.size": 10, "font.family": "sans-serif"}):
        figure, axes = pyplot.subplots(
            1, len(MEASURES), figsize=(len(MEASURES) * side + 2.4, height), layout="constrained"
        )
        for axis, (measure, words) in zip(axes, MEASURES.items(), strict=True):
            _draw(results, measure, axis)
            axis.set_title(f"Least {words}", fontsize=11, fontweight="bold", loc="left", pad=8)
        handles = [Patch(color=colour(number), label=f"{number}  {_words(name)}") for number, name in key]
        figure.legend(handles=handles, loc="outside lower left", ncols=2, frameon=False, fontsize=9)
        figure.suptitle(_title(results), x=0.01, ha="left", fontsize=9.5, color=SOFT)
        figure.savefig(path, dpi=DPI)
        pyplot.close(figure)


def colour(number: int) -> tuple[float, float, float]:
    """Return the colour of the method with this number, counted from 1."""
    return to_rgb(pyplot.get_cmap("tab20")((2 * (number - 1)) % 20 + (number - 1) // 10 % 2))


def _draw(results: Results, measure: str, axis: Axes) -> None:
    sizes = list(results.sizes)
    numbers = {name: number for number, name in enumerate(results.names, 1)}
    for row, sources in enumerate(sizes):
        for column, targets in enumerate(sizes):
            name = results.shown[measure].get((sources, targets))
            paper = colour(numbers[name]) if name else to_rgb(EMPTY)
            axis.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=paper, edgecolor="white", linewidth=2))
            if not name:
                if sources != targets:
                    axis.text(column, row, "none", ha="center", va="center", color=SOFT)
                continue
            verdict = results.verdicts[measure][sources, targets]
            ink = "black" if sum(paper) > 1.55 else "white"
            axis.text(column, row - 0.1, str(numbers[name]), ha="center", va="center", fontsize=15, color=ink)
            middle = spread(results.samples(measure, (sources, targets), name)).median
            tied = f", {len(verdict.best)} tie" if verdict.tie else ""
            axis.text(column, row + 0.28, f"{middle:.3f} s{tied}", ha="center", va="center", fontsize=7, color=ink)
    axis.set_xlim(-0.5, len(sizes) - 0.5)
    axis.set_ylim(len(sizes) - 0.5, -0.5)
    axis.set_aspect("equal")
    places = [float(place) for place in range(len(sizes))]
    axis.set_xticks(places, [str(size) for size in sizes])
    axis.set_yticks(places, [str(size) for size in sizes])
    axis.set_xlabel("targets", color=SOFT)
    axis.set_ylabel("sources", color=SOFT)
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)


def _words(name: str) -> str:
    spawn, strategy, data, data_strategy, *worlds = name.split("/")
    words = f"{spawn} {strategy}, {data} {data_strategy}" + "".join(f", worlds of a {one}" for one in worlds)
    return textwrap.shorten(words, KEY_LETTERS)


def _title(results: Results) -> str:
    failed = f", {len(results.failed)} failed" if results.failed else ""
    return (
        f"{results.about['app']}, {results.about['repeat']} runs a cell and method{failed}; "
        "above the diagonal expansion, below it shrinkage"
    )
