"""The picture of `./dev bench strategies`: each draw under each policy, beside the best fixed policy of that draw."""

from __future__ import annotations

import random
from pathlib import Path
from statistics import median

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot, ticker
from matplotlib.axes import Axes

WIDE = [0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20]
NARROW = [0.6, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5]
COLOURS = {
    "interfere": "#7a7a7a",
    "fcfs": "#f2a65a",
    "interrupt": "#d95f02",
    "set-10": "#009e73",
    "dynamic": "#1b6ca8",
}


def draw(axes: Axes, ratios: dict[str, list[float]], bound: float) -> None:
    """Draw a column of points for each policy, with its median as a bar."""
    scatter = random.Random(1)
    axes.axhline(1, color="#202020", linewidth=0.8)
    axes.axhline(bound, color="#202020", linewidth=0.8, linestyle="dotted")
    for column, (policy, values) in enumerate(ratios.items()):
        at = [column + scatter.uniform(-0.25, 0.25) for _ in values]
        axes.scatter(at, values, s=14, color=COLOURS[policy], alpha=0.7, linewidths=0)
        axes.hlines(median(values), column - 0.38, column + 0.38, colors=COLOURS[policy], linewidth=2.5)
        axes.annotate(f"{median(values):.2f}", (column + 0.4, median(values)), fontsize=8, va="center", ha="left")
    axes.set_yscale("log")
    everything = [value for values in ratios.values() for value in values]
    ticks = WIDE if max(everything) > 2 * min(everything) else NARROW
    axes.yaxis.set_major_locator(ticker.FixedLocator(ticks))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.tick_params(axis="y", which="both", labelsize=8)
    axes.set_xlim(-0.6, len(ratios) - 0.2)
    axes.set_xticks(range(len(ratios)), list(ratios))
    axes.grid(axis="y", which="both", alpha=0.25)


def write_plot(ratios: dict[str, dict[str, list[float]]], bound: float, path: Path) -> None:
    """Write the picture; `ratios` has, by metric and policy, one value for each draw."""
    figure, grid = pyplot.subplots(2, 2, figsize=(12, 8))
    for axes, (metric, of_metric) in zip(grid.flat, ratios.items(), strict=True):
        draw(axes, of_metric, bound)
        axes.set_title(metric, fontsize=11)
    for row in grid:
        row[0].set_ylabel("beside the best fixed policy of the draw")
    draws = len(next(iter(ratios["cpu-time"].values())))
    figure.suptitle(
        f"Six applications on one target, {draws} draws: 1 is the best of interfere, fcfs and interrupt; "
        f"bars are medians, the dotted line is {bound:g}"
    )
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
