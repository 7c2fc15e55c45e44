"""The picture of `./dev bench collective-io`: bandwidth of each pattern, by the method of access."""

from __future__ import annotations

from pathlib import Path
from statistics import median, quantiles

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

COLOURS = {"hocket": "#1b6ca8", "romio": "#d95f02", "best": "#f2a65a", "ompio": "#7a7a7a", "plain": "#202020"}


def quartiles(values: list[float]) -> tuple[float, float]:
    low, _, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return low, high


def draw(axes: Axes, cases: list[dict], way: str, names: dict[str, str]) -> None:
    """Draw bars of the medians with their quartiles; the plain process is a mark across each group."""
    bars = [method for method in names if method != "plain"]
    width = 0.8 / len(bars)
    for i, method in enumerate(bars):
        samples = [case["samples"][method][way] for case in cases]
        middles = [median(values) / 1000 for values in samples]
        ends = [quartiles(values) for values in samples]
        errors = [
            [middle - low / 1000 for middle, (low, _) in zip(middles, ends, strict=True)],
            [high / 1000 - middle for middle, (_, high) in zip(middles, ends, strict=True)],
        ]
        at = [group - 0.4 + width * (i + 0.5) for group in range(len(cases))]
        axes.bar(at, middles, width, yerr=errors, capsize=2, color=COLOURS[method], label=names[method])
    for group, case in enumerate(cases):
        limit = median(case["samples"]["plain"][way]) / 1000
        label = names["plain"] if group == 0 else None
        axes.hlines(limit, group - 0.45, group + 0.45, colors=COLOURS["plain"], linestyles="dotted", label=label)
    axes.set_xticks(range(len(cases)), [f"{case['case']}\n{case['ranks']} ranks" for case in cases], fontsize=8)
    axes.set_ylabel(f"{way}, GB/s")
    axes.grid(axis="y", alpha=0.3)


def write_plot(cases: list[dict], names: dict[str, str], path: Path) -> None:
    """Write the picture; `cases` is as in results.json."""
    halves = [cases[: (len(cases) + 1) // 2], cases[(len(cases) + 1) // 2 :]]
    halves = [half for half in halves if half]
    figure, grid = pyplot.subplots(2, len(halves), figsize=(7 * len(halves), 8), squeeze=False, sharey="row")
    for row, way in enumerate(("write", "read")):
        for column, half in enumerate(halves):
            draw(grid[row][column], half, way, names)
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="lower center", ncols=len(names), fontsize=8)
    figure.suptitle("Collective MPI-IO: medians and quartiles; writes make a new file, reads come from the page cache")
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
