"""Draws a queue that shared cores: who waited and ran when, with how many processes, and how many cores were busy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib import pyplot

from hocket.errors import HocketError
from hocket.pictures import save
from hocket.workload.core_figures import Case, CoreQueue, utilisation
from hocket.workload.plot import DPI, MOST_ROWS, SOFT, colours_of, draw_bar, draw_numbers, label_rows
from hocket.workload.results import QueueRun, Steps


def write_plot(queue: CoreQueue, cases: Sequence[Case], path: Path) -> None:
    """Write the picture: a row of panels for each case. Raises HocketError if it cannot be written."""
    drawn = [one for one in cases if one.runs]
    if not drawn:
        raise HocketError(f"cannot write {path}: there are no runs")
    shown = queue.jobs[:MOST_ROWS]
    last_s = max(one.example.makespan_s for one in drawn)
    with pyplot.rc_context({"font.size": 9, "font.family": "sans-serif"}):
        height = min(0.9 + len(drawn) * (0.9 + 0.19 * len(shown)), 100)
        size = {"figsize": (13, max(height, 3)), "layout": "constrained", "squeeze": False, "width_ratios": (7, 4)}
        figure, rows = pyplot.subplots(len(drawn), 2, sharex=True, **size)
        for (left, right), one in zip(rows, drawn, strict=True):
            _draw_jobs(left, queue, one, last_s)
            _draw_cores(right, queue, one)
        rows[-1][0].set_xlabel("seconds; line: waits; in the bars: number of processes", color=SOFT)
        rows[-1][1].set_xlabel("seconds; area: cores that jobs have", color=SOFT)
        save(figure, path, DPI)


def _draw_jobs(axis: pyplot.Axes, queue: CoreQueue, case: Case, last_s: float) -> None:
    colours = colours_of(queue.jobs)
    shown = queue.jobs[:MOST_ROWS]
    for at, one in enumerate(shown):
        job = case.example.job(one.name)
        times_s = (job.computed_from_s, job.ended_s)
        axis.plot([one.arrival_s, times_s[0]], [at, at], color=SOFT, linewidth=1)
        draw_bar(axis, at, times_s, colours[one.kind.name], bool(job.failure))
        draw_numbers(axis, at, job.processes, times_s, last_s)
    axis.set_xlim(0, last_s * 1.02)
    label_rows(axis, [one.name for one in shown])
    told = f"{case.mode}, {case.policy}: {case.shown}, {case.example.makespan_s:.1f} s"
    axis.set_title(told, loc="left", fontsize=11, fontweight="bold")


def _draw_cores(axis: pyplot.Axes, queue: CoreQueue, case: Case) -> None:
    busy = busy_cores(case.example)
    axis.step([at_s for at_s, _ in busy], [count for _, count in busy], where="post", color=SOFT, linewidth=1)
    axis.fill_between([at_s for at_s, _ in busy], [count for _, count in busy], step="post", color=SOFT, alpha=0.3)
    axis.set_ylim(0, queue.cores * 1.05)
    axis.spines[["top", "right"]].set_visible(False)
    told = f"{utilisation(case.example, queue):.0%} of {queue.cores} cores"
    axis.set_title(told, loc="left", fontsize=11, fontweight="bold")


def busy_cores(run: QueueRun) -> Steps:
    """Return (second, cores that jobs have) of each change."""
    changes: dict[float, int] = {0.0: 0}
    for job in run.jobs:
        before = 0
        for at_s, count in [*job.processes, (job.ended_s, 0)]:
            changes[at_s] = changes.get(at_s, 0) + count - before
            before = count
    steps, busy = [], 0
    for at_s, change in sorted(changes.items()):
        busy += change
        steps.append((at_s, busy))
    return tuple(steps)
