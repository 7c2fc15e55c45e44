"""Draws allocations: the bandwidth in all of each policy, and what each job has beside its best alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from hocket.arbitration.allocate import Allocation
from hocket.arbitration.jobs import MB, Job
from hocket.errors import HocketError

SOFT, GRID = "#5b6168", "#e4e7e9"
BAR, BEST, BOUND = "#8a939b", "#0072b2", "#c9ced2"
COLOURS = ("#8a939b", "#a8326e", "#e69f00", "#8457c9", "#56b4e9", "#0072b2", "#3a4046")
MARKERS = ("v", "x", "s", "^", "D", "o", "+")
DPI = 160


def write_plot(jobs: Sequence[Job], allocations: Sequence[Allocation], servers: int, path: Path) -> None:
    """Write the picture. Raises HocketError if it cannot be written."""
    found = [one for one in allocations if not one.error]
    with pyplot.rc_context({"font.size": 10, "font.family": "sans-serif"}):
        width = 7 + max(4.0, 0.7 * len(jobs))
        figure, (whole, single) = pyplot.subplots(
            1, 2, figsize=(min(width, 40.0), 4.6), layout="constrained", width_ratios=(5, max(5.0, 0.7 * len(jobs)))
        )
        for axis in (whole, single):
            axis.spines[["top", "right"]].set_visible(False)
            axis.grid(axis="y", color=GRID)
            axis.set_axisbelow(True)
        _draw_whole(whole, found, servers)
        _draw_single(single, jobs, found)
        try:
            figure.savefig(path, dpi=DPI)
        except (OSError, ValueError) as error:
            raise HocketError(f"cannot write {path}: {error}; choose another with --plot") from error
        finally:
            pyplot.close(figure)


def _draw_whole(axis: pyplot.Axes, found: Sequence[Allocation], servers: int) -> None:
    colours = [{"mckp": BEST, "oracle": BOUND}.get(one.policy, BAR) for one in found]
    bars = axis.bar([one.policy for one in found], [one.bandwidth / MB for one in found], color=colours)
    axis.bar_label(bars, [f"{one.bandwidth / MB:.0f}\n{one.servers} srv" for one in found], fontsize=8.5, padding=2)
    axis.margins(y=0.18)
    axis.set_ylabel("bandwidth of all jobs, MB/s", color=SOFT)
    title = f"{servers} I/O server{'' if servers == 1 else 's'} to give out"
    axis.set_title(title, loc="left", fontsize=11, fontweight="bold")


def _draw_single(axis: pyplot.Axes, jobs: Sequence[Job], found: Sequence[Allocation]) -> None:
    for number, one in enumerate(found):
        shift = (number - (len(found) - 1) / 2) * 0.8 / len(found)
        known = [(at + shift, 100 * (1 - given.loss)) for at, given in enumerate(one.jobs) if given.loss is not None]
        if known:
            at, part = zip(*known, strict=True)
            axis.scatter(at, part, s=30, color=COLOURS[number % 7], marker=MARKERS[number % 7], label=one.policy)
    axis.set_xticks(range(len(jobs)), [job.name for job in jobs], rotation=30 if len(jobs) > 6 else 0)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("bandwidth, % of its best alone", color=SOFT)
    axis.set_title("each job", loc="left", fontsize=11, fontweight="bold")
    axis.legend(frameon=False, fontsize=9, ncols=4, loc="upper left", bbox_to_anchor=(0.15, 1.12))
