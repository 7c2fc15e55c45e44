"""The figures of bench/emulator.py from its record, and their bounds. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from emulator_cases import EMULATED, REAL, Calibrate, Case, Job, Solve
from emulator_matrices import Matrix
from emulator_record import COMMUNICATING, RESIZING, Ran
from figures import line
from hocket.capture.beside import Measure, measure

BALANCED, UNBALANCED, GATHERS = (0.95, 1.05), (0.90, 1.10), (0.97, 1.03)
EVEN = 1.1  # imbalance below which a matrix counts as balanced
LEAST_PAIRS = 2
OWN_PERCENT = (0, 0.5)  # of an emulation's time, outside of the stages
CALIBRATION_S, STORED_S = (0, 5), (0, 0.5)  # once a machine; afterwards what is stored is read
FIRST, AGAIN = "first", "again"


def pairs_of(case: str, runs: Sequence[Ran]) -> list[tuple[Ran, Ran]]:
    """Return the runs of the application and of its emulation that belong together, of which none failed."""
    by_job = {one.job: one for one in runs if not one.failed}
    numbers = sorted({job.repeat for job in by_job if job.case == case})
    found = []
    for number in numbers:
        pair = [by_job.get(Job(case, kind, number)) for kind in (REAL, EMULATED)]
        if pair[0] and pair[1]:
            found.append((pair[0], pair[1]))
    return found


def measures_of(case: str, runs: Sequence[Ran]) -> list[Measure]:
    """Return the measures of a case; none if it has too few pairs."""
    pairs = pairs_of(case, runs)
    if len(pairs) < LEAST_PAIRS:
        return []
    names = pairs[0][0].times
    return [measure(name, *([one.times[name] for one in side] for side in zip(*pairs, strict=True))) for name in names]


def captured_beside(case: str, runs: Sequence[Ran], name: str) -> dict[str, float]:
    """Return what the captured runs of a case without a resize tell about a measure (bench/README.md)."""
    captured = {one.job.repeat: one.times.get(name, 0.0) for one in runs if one.job.case == case and one.captured}
    pairs = [pair for pair in pairs_of(case, runs) if captured.get(pair[0].job.repeat, 0.0) > 0]
    if not pairs:
        return {}
    numbers = [real.job.repeat for real, _ in pairs]
    quotients = [emulated.times[name] / captured[emulated.job.repeat] for _, emulated in pairs]
    real_s = median(real.times[name] for real, _ in pairs)
    itself = {"itself": median(captured[number] for number in numbers) / real_s} if real_s > 0 else {}
    return {"of_captured": median(quotients), **itself}


def bound_of(case: Case, name: str, imbalance: float, cores: int) -> tuple[float, float] | None:
    """Return the bound of a measure's ratio; None: it has none."""
    if not isinstance(case, Solve):
        return GATHERS
    most = max(case.ranks, case.targets)
    # Communication is mostly waiting for a core if there are more ranks than cores. One rank does not communicate.
    if name == RESIZING or (name == COMMUNICATING and (most > cores or most == 1)):
        return None
    return BALANCED if imbalance < EVEN else UNBALANCED


def imbalance_of(case: Case, matrices: Mapping[str, Matrix]) -> float:
    if not isinstance(case, Solve) or case.matrix not in matrices:
        return 1.0
    return max(matrices[case.matrix].imbalance(ranks) for ranks in (case.ranks, case.targets) if ranks)


def own_work(case: str, runs: Sequence[Ran]) -> list[dict[str, Any]]:
    """Return the line of the emulator's own work in a case; none if no run says it."""
    shares = [one.own_share for one in runs if one.job.case == case and one.own_share is not None]
    if not shares:
        return []
    percent = 100 * median(shares)
    ok, more = percent <= OWN_PERCENT[1], {"most": 100 * max(shares), "runs": len(shares)}
    return [line("emulator", f"{case}, own work", percent, "%", None, OWN_PERCENT, ok, **more)]


def calibration_lines(case: Calibrate, runs: Sequence[Ran]) -> list[dict[str, Any]]:
    """Return the lines of the calibration: the first one, and what it costs to read it again."""
    mine = [one.times for one in runs if one.job.case == case.name and not one.failed]
    lines = []
    for name, bound in ((FIRST, CALIBRATION_S), (AGAIN, STORED_S)) if mine else ():
        seconds = [times[name] for times in mine]
        most = max(seconds)
        more = {"most": most, "runs": len(seconds)}
        lines.append(
            line("emulator", f"{case.name}, {name}", median(seconds), "s", None, bound, most <= bound[1], **more)
        )
    return lines


def lines_of(case: Case, runs: Sequence[Ran], imbalance: float, cores: int) -> list[dict[str, Any]]:
    """Return the lines of a case (bench/README.md). A measure without a ratio, because it takes no time, has none."""
    if isinstance(case, Calibrate):
        return calibration_lines(case, runs)
    failed = sum(1 for one in runs if one.job.case == case.name and one.failed)
    load = [one.load for pair in pairs_of(case.name, runs) for one in pair]
    lines = []
    for one in measures_of(case.name, runs):
        if one.ratio is None:
            continue
        bound = bound_of(case, one.name, imbalance, cores)
        more = {"stdq": one.deviation, "p_same_median": one.kruskal_p, "runs": one.real.samples, "failed": failed}
        more |= {"mean": [one.emulated.mean, one.real.mean], "spread": [one.emulated.deviation, one.real.deviation]}
        more |= {"imbalance": imbalance, "load": sum(load) / len(load)}
        more |= captured_beside(case.name, runs, one.name)
        ok = bound is None or bound[0] <= one.ratio <= bound[1]
        what = f"{case.name}, {one.name}"
        lines.append(line("emulator", what, one.emulated.median, "s", one.real.median, bound, ok, **more))
    # A case of gathers has no own work: the emulator has one iteration there, and records nothing outside of it.
    return lines + (own_work(case.name, runs) if isinstance(case, Solve) else [])
