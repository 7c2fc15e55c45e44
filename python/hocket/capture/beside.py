"""Compares runs of an application with runs of its emulation (Proteo, sections 5.2 and 5.3). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from hocket.capture.stages import Run
from hocket.reconfigure.statistics import Spread, judge, shapiro_p, spread
from hocket.tables import columns

MEASURES = ("elapsed_s", "computing_s", "communication_s", "io_s", "control_s", "cpu_s")
NAMES = {
    "elapsed_s": "elapsed",
    "computing_s": "computing",
    "communication_s": "communication",
    "io_s": "I/O",
    "control_s": "control points",
    "cpu_s": "CPU",
}
HEADINGS = ("mean of ranks", "runs", "real s", "emulated s", "ratio", "of pairs", "p (same median)", "normal")
LEAST_S = 1e-4  # a shorter time has no ratio
ALPHA = 0.05


@dataclass(frozen=True)
class Measure:
    """One time of all runs. Pairs are runs that followed each other."""

    name: str
    real: Spread
    emulated: Spread
    ratio: float | None  # emulated over real, of the medians; None: the application has no such time
    deviation: float  # standard deviation of the quotients of pairs: STDQ of the paper
    kruskal_p: float | None  # that both have the same median; None: too few runs, or all equal
    normal: bool | None  # neither fails Shapiro-Wilk; None: too few runs


def measure(name: str, real: Sequence[float], emulated: Sequence[float]) -> Measure:
    """Return the figures of as many runs of each, at least one."""
    middle = median(real)
    pairs = [b / a for a, b in zip(real, emulated, strict=True) if a >= LEAST_S]
    ps = [shapiro_p(real), shapiro_p(emulated)]
    known = [p for p in ps if p is not None]
    return Measure(
        name,
        spread(real),
        spread(emulated),
        median(emulated) / middle if middle >= LEAST_S else None,
        spread(pairs).deviation if pairs else 0.0,
        judge({"real": real, "emulated": emulated}).kruskal_p,
        all(p >= ALPHA for p in known) if known else None,
    )


def compare(real: Sequence[Run], emulated: Sequence[Run]) -> list[Measure]:
    """Return all measures of runs of both."""
    return [
        measure(NAMES[one], [getattr(run, one) for run in real], [getattr(run, one) for run in emulated])
        for one in MEASURES
    ]


def table(measures: Sequence[Measure]) -> str:
    rows = [
        (
            one.name,
            str(one.real.samples),
            f"{one.real.median:.4f} ± {one.real.deviation:.4f}",
            f"{one.emulated.median:.4f} ± {one.emulated.deviation:.4f}",
            "-" if one.ratio is None else f"{one.ratio:.3f}",
            "-" if one.ratio is None else f"± {one.deviation:.3f}",
            "-" if one.kruskal_p is None else f"{one.kruskal_p:.3g}",
            "-" if one.normal is None else "yes" if one.normal else "no",
        )
        for one in measures
    ]
    return columns(HEADINGS, rows, right=range(1, len(HEADINGS)))
