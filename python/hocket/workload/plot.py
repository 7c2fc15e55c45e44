"""Draws a queue under several policies, as Figure 9 of GekkoFWD: who ran when, with how many servers, and how fast."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import colormaps, pyplot

from hocket.arbitration.jobs import MB
from hocket.errors import HocketError
from hocket.pictures import save
from hocket.workload.jobs import QueuedJob
from hocket.workload.prediction import PredictedJob
from hocket.workload.results import JobRun, Steps
from hocket.workload.text import Outcome

SOFT, GRID, FORESEEN = "#5b6168", "#e4e7e9", "#1c2024"
DPI = 130
MOST_ROWS = 60  # jobs that are drawn


def write_plot(queue: Sequence[QueuedJob], outcomes: Sequence[Outcome], path: Path) -> None:
    """Write the picture: a row of panels for each policy. Raises HocketError if it cannot be written."""
    drawn = [one for one in outcomes if one.runs or one.prediction]
    if not drawn:
        raise HocketError(f"cannot write {path}: no policy has runs or a prediction")
    shown = queue[:MOST_ROWS]
    colours = colours_of(queue)
    last_s = max(job.ended_s for one in drawn for job in _jobs(one).values())
    with pyplot.rc_context({"font.size": 9, "font.family": "sans-serif"}):
        height = 0.9 + len(drawn) * (0.9 + 0.19 * len(shown))
        figure, rows = pyplot.subplots(
            len(drawn), 2, figsize=(13, min(height, 100)), layout="constrained", squeeze=False, width_ratios=(7, 4)
        )
        fastest = max(job.bytes_per_s for one in drawn for job in _jobs(one).values()) / MB
        for (left, right), one in zip(rows, drawn, strict=True):
            _draw_timeline(left, shown, one, colours, last_s)
            _draw_rates(right, shown, one, colours, fastest)
        rows[-1][0].set_xlabel("seconds from the start of the queue; in the bars: number of I/O servers", color=SOFT)
        line = "; line: predicted from the curves" if any(one.runs and one.prediction for one in drawn) else ""
        rows[-1][1].set_xlabel(f"bandwidth of each job, MB/s{line}", color=SOFT)
        save(figure, path, DPI)


def colours_of(queue: Sequence[QueuedJob]) -> dict[str, tuple]:
    """Return a colour for each job of the file: all its appearances have the same."""
    kinds = list(dict.fromkeys(one.kind.name for one in queue))
    return {name: colormaps["tab20"](at % 20) for at, name in enumerate(kinds)}


def _jobs(one: Outcome) -> dict[str, JobRun | PredictedJob]:
    """Return the jobs of the run that is shown; without runs, those of the prediction."""
    if one.runs:
        return {job.name: job for job in one.example.jobs}
    assert one.prediction is not None
    return dict(one.prediction.jobs)


def _draw_timeline(axis: pyplot.Axes, queue: Sequence[QueuedJob], one: Outcome, colours: dict, last_s: float) -> None:
    jobs = _jobs(one)
    for at, queued in enumerate(queue):
        job = jobs[queued.name]
        failed = isinstance(job, JobRun) and bool(job.failure)
        draw_bar(axis, at, (job.started_s, job.ended_s), colours[queued.kind.name], failed)
        draw_numbers(axis, at, job.servers, (job.started_s, job.ended_s), last_s)
    axis.set_xlim(0, last_s * 1.02)
    label_rows(axis, [f"{one.name} ({one.nodes})" for one in queue])
    makespan_s = max(job.ended_s for job in jobs.values())
    axis.set_title(f"{one.policy}: {one.shown}, {makespan_s:.1f} s", loc="left", fontsize=11, fontweight="bold")


def draw_bar(axis: pyplot.Axes, row: int, times_s: tuple[float, float], colour: tuple, failed: bool) -> None:
    look = {"facecolor": "none", "edgecolor": colour, "hatch": "////"} if failed else {"color": colour}
    axis.barh(row, times_s[1] - times_s[0], left=times_s[0], height=0.8, **look)


def draw_numbers(axis: pyplot.Axes, row: int, steps: Steps, times_s: tuple[float, float], last_s: float) -> None:
    """Write the numbers into a job's bar, each where it has that many."""
    started_s, ended_s = times_s
    for (begin_s, count), (end_s, _) in pairwise([*steps, (ended_s, 0)]):
        begin_s = max(begin_s, started_s)
        if begin_s > started_s + 0.004 * last_s:
            axis.plot([begin_s, begin_s], [row - 0.4, row + 0.4], color="white", linewidth=1)
        if end_s - begin_s > 0.016 * last_s:
            axis.text((begin_s + end_s) / 2, row, str(count), ha="center", va="center", fontsize=8)


def _draw_rates(axis: pyplot.Axes, queue: Sequence[QueuedJob], one: Outcome, colours: dict, fastest: float) -> None:
    jobs = _jobs(one)
    for at, queued in enumerate(queue):
        job = jobs[queued.name]
        axis.barh(at, job.bytes_per_s / MB, height=0.8, color=colours[queued.kind.name])
        failed = isinstance(job, JobRun) and job.failure
        text = "failed" if failed else f"{job.bytes_per_s / MB:.1f}"
        end = job.bytes_per_s / MB
        if one.runs and one.prediction:
            rate = one.prediction.jobs[queued.name].bytes_per_s / MB
            axis.plot([rate, rate], [at - 0.45, at + 0.45], color=FORESEEN, linewidth=1.4)
            end = max(end, rate)
        axis.text(end + 0.01 * fastest, at, text, va="center", fontsize=8)
    axis.set_xlim(0, fastest * 1.15)
    label_rows(axis, ["" for _ in queue])
    whole = sum(job.bytes_per_s for job in jobs.values()) / MB
    told = f"aggregate {whole:.1f} MB/s"
    if one.runs and one.prediction:
        told += f" (predicted {one.prediction.bytes_per_s / MB:.1f})"
    axis.set_title(told, loc="left", fontsize=11, fontweight="bold")


def label_rows(axis: pyplot.Axes, labels: Sequence[str]) -> None:
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="x", color=GRID)
    axis.set_axisbelow(True)
