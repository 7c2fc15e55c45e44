"""Draws a profile: the times of an iteration and of an I/O phase by the number of processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from hocket.pictures import save
from hocket.profile.store import SHORT, Profile

COMPUTING, IO, EVEN = "#3a4046", "#0072b2", "#9aa1a8"
DPI = 160


def write_curve(profile: Profile, path: Path) -> None:
    """Draw the curves with logarithmic axes, on which evenly divided work is a straight line. Raises HocketError."""
    sizes = [point.processes for point in profile.points]
    first = profile.points[0]
    with pyplot.rc_context({"font.size": 10, "font.family": "sans-serif"}):
        figure, axis = pyplot.subplots(figsize=(7.5, 4.6), layout="constrained")
        even = [first.iteration_s * first.processes / size for size in sizes]
        axis.plot(sizes, even, color=EVEN, linewidth=1, linestyle="--", label="work divided evenly")
        kinds = [("iteration: computing and communication", COMPUTING, "o", "iteration")]
        if any(point.io_s for point in profile.points):
            kinds.append(("I/O phase, undisturbed", IO, "s", "io"))
        for label, colour, marker, key in kinds:
            means = [getattr(point, f"{key}_s") for point in profile.points]
            spreads = [2 * getattr(point, f"{key}_spread_s") for point in profile.points]
            below = [min(spread, 0.9 * mean) for mean, spread in zip(means, spreads, strict=True)]
            bars = [below, spreads]
            axis.errorbar(sizes, means, yerr=bars, color=colour, marker=marker, capsize=3, linewidth=1.6, label=label)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.xaxis.set_major_locator(FixedLocator(sizes))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_formatter(FuncFormatter(_few(axis)))
        axis.set_xlabel("processes")
        axis.set_ylabel("seconds; bars: two standard deviations")
        axis.set_title(f"{profile.program}  {profile.fingerprint[:SHORT]}  {profile.mpi}", loc="left", fontsize=11)
        axis.grid(color="#e4e7e9", linewidth=0.8)
        axis.set_axisbelow(True)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
        axis.legend(frameon=False, fontsize=9.5)
        save(figure, path, DPI)


def _few(axis: Axes) -> Callable[[float, int], str]:
    """Return a formatter that also labels values between the decades, if the axis shows less than three decades."""

    def text(value: float, _: int) -> str:
        low, high = axis.get_ylim()
        return f"{value:g}" if high / low < 1000 and f"{value:e}"[0] in "25" else ""

    return text
