"""Draws allocations: the bandwidth in all of each policy, and what each job has beside its best alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from hocket.arbitration.allocate import POLICIES, Allocation
from hocket.arbitration.jobs import MB, Job
from hocket.pictures import save

SOFT, GRID = "#5b6168", "#e4e7e9"
BAR, BEST, BOUND = "#8a939b", "#0072b2", "#c9ced2"
COLOURS = ("#8a939b", "#a8326e", "#e69f00", "#8457c9", "#56b4e9", "#0072b2", "#3a4046")
MARKERS = ("v", "x", "s", "^", "D", "o", "+")
DPI = 160
MOST_NAMED = 40  # jobs


def write_plot(jobs: Sequence[Job], allocations: Sequence[Allocation], servers: int, path: Path) -> None:
    """Write the picture. Raises HocketError if it cannot be written."""
    found = [one for one in allocations if not one.error]
    with pyplot.rc_context({"font.size": 10, "font.family": "sans-serif"}):
        width = max(5.0, 0.7 * len(jobs)) if len(jobs) <= MOST_NAMED else 8.0
        figure, (whole, single) = pyplot.subplots(
            1, 2, figsize=(7 + width, 4.6), layout="constrained", width_ratios=(5, width)
        )
        for axis in (whole, single):
            axis.spines[["top", "right"]].set_visible(False)
            axis.grid(axis="y", color=GRID)
            axis.set_axisbelow(True)
        _draw_whole(whole, found, servers)
        (_draw_single if len(jobs) <= MOST_NAMED else _draw_many)(single, jobs, found)
        title = f"each job, beside its best alone with {servers} server{'' if servers == 1 else 's'}"
        single.set_title(title, loc="left", fontsize=11, fontweight="bold")
        single.set_ylim(0, 105)
        single.set_ylabel("%", color=SOFT)
        if single.get_legend_handles_labels()[0]:
            single.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
        save(figure, path, DPI)


def _draw_whole(axis: pyplot.Axes, found: Sequence[Allocation], servers: int) -> None:
    colours = [{"mckp": BEST, "oracle": BOUND}.get(one.policy, BAR) for one in found]
    bars = axis.bar(range(len(found)), [one.bandwidth / MB for one in found], color=colours)
    axis.bar_label(bars, [f"{one.bandwidth / MB:.0f}" for one in found], fontsize=8.5, padding=2)
    axis.set_xticks(range(len(found)), [f"{one.policy}\n{one.servers}" for one in found])
    axis.margins(y=0.1)
    axis.set_xlabel(f"policy, and servers that it gives out of {servers}", color=SOFT)
    axis.set_ylabel("MB/s", color=SOFT)
    axis.set_title("bandwidth of all jobs", loc="left", fontsize=11, fontweight="bold")


def _draw_single(axis: pyplot.Axes, jobs: Sequence[Job], found: Sequence[Allocation]) -> None:
    for number, one in enumerate(found):
        shift = (number - (len(found) - 1) / 2) * 0.8 / len(found)
        known = [(at + shift, 100 * (1 - given.loss)) for at, given in enumerate(one.jobs) if given.loss is not None]
        if known:
            at, part = zip(*known, strict=True)
            colour, marker = _style(one)
            axis.scatter(at, part, s=30, color=colour, marker=marker, label=one.policy)
    axis.set_xticks(range(len(jobs)), [job.name for job in jobs], rotation=30 if len(jobs) > 6 else 0)


def _style(one: Allocation) -> tuple[str, str]:
    """Return the colour and marker that a policy has in every picture."""
    return COLOURS[POLICIES.index(one.policy)], MARKERS[POLICIES.index(one.policy)]


def _draw_many(axis: pyplot.Axes, jobs: Sequence[Job], found: Sequence[Allocation]) -> None:
    """Draw how many jobs have how much; each policy has its own order."""
    for one in found:
        parts = sorted(100 * (1 - given.loss) for given in one.jobs if given.loss is not None)
        axis.step(range(1, len(parts) + 1), parts, color=_style(one)[0], label=one.policy, linewidth=1.4)
    axis.set_xlabel(f"{len(jobs)} jobs, each policy's from its largest loss on", color=SOFT)
