"""Proteo's Figs. 7 and 8, Tables 1 and 2: an application beside its emulation, from the record of bench/emulator.py.

`./dev bench emulator` makes the record. What it lacks is not measured, and the page says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

import numpy
from emulator_cases import GATHERED, GATHERERS, Gather, Solve, size_name
from emulator_figures import BALANCED, EVEN, UNBALANCED, measures_of, pairs_of
from emulator_record import COMMUNICATING, COMPUTING, CPU, RESIZING, TOTAL, Ran, read
from hocket.capture.beside import Measure, measure
from hocket.capture.stages import Run

from reproduce import plots
from reproduce.figure import AGREES, PARTLY, UNMEASURED, Finding, Options, Results, Value, agreement

REPO = Path(__file__).resolve().parents[2]
# The last one that is there: of this machine, or the one that came with hocket.
RECORDS = (REPO / "bench" / "emulator" / "record.jsonl", REPO / "build" / "emulator" / "record.jsonl")
NONE = "not measured"
HOW = "`./dev bench emulator` measures it."

# The paper's values of two processes on Systems 1 to 3: Table 1's mean and deviation (s), Table 2's mean (%) and STDQ.
TABLE1 = {
    100_000: ((2.11e-2, 1.04e-2, 1.04e-2), (2.96e-3, 8.41e-5, 1.01e-4)),
    10_000_000: ((2.79, 1.62, 1.88), (3.75e-2, 1.61e-2, 9.38e-3)),
    1_000_000_000: ((37.9, 26.2, 22.3), (0.625, 1.36, 0.163)),
}
TABLE2 = {
    100_000: ((105.60, 113.15, 111.45), (1.51e-1, 2.23e-2, 3.71e-2)),
    10_000_000: ((97.37, 100.60, 101.44), (1.86e-2, 1.21e-2, 1.79e-2)),
    1_000_000_000: ((98.55, 98.88, 101.07), (1.83e-2, 2.46e-2, 7.47e-3)),
}
WITHIN_PERCENT = 3.0  # of 100
PAPER_COMPUTING = "1 to 1.05, more if unbalanced"
PAPER_TOTAL = "0.8 to 1.2; unbalanced: 0.5 to 1.5"
PAPER_MALLEABLE = "most 0.90 to 1.15"


def make(_: Options) -> Results:
    """Return the times of all pairs of runs, by case and measure."""
    found = [path for path in RECORDS if path.exists()]
    return results_of(read(found[-1])) if found else {"cases": {}, "imbalance": {}, "load": None}


def results_of(runs: list[Ran]) -> Results:
    cases = {}
    for case in sorted({one.job.case for one in runs}):
        pairs = pairs_of(case, runs)
        if measures_of(case, runs):
            cases[case] = {
                name: {"real": [a.times[name] for a, _ in pairs], "emulated": [b.times[name] for _, b in pairs]}
                for name in pairs[0][0].times
            }
    captured: dict[str, list[Run]] = {}
    for one in runs:
        if one.captured:
            captured.setdefault(one.job.case, []).append(one.captured)
    imbalance = {case: fmean(map(imbalance_of, several)) for case, several in captured.items()}
    return {"cases": cases, "imbalance": imbalance, "load": fmean(one.load for one in runs) if runs else None}


def imbalance_of(run: Run) -> float:
    """Return the largest CPU time of a rank's computing in the iterations over the mean."""
    phase = max(run.phases, key=lambda one: one.iterations)
    of_ranks = [sum(times) for times in zip(*(one.cpu_s for one in phase.stages if one.kind == "compute"), strict=True)]
    return max(of_ranks) / fmean(of_ranks) if of_ranks and fmean(of_ranks) > 0 else 1.0


def measured(results: Results, case: str, name: str) -> Measure | None:
    times = results["cases"].get(case, {}).get(name)
    return measure(name, times["real"], times["emulated"]) if times else None


def _solves(results: Results, resized: bool) -> list[Solve]:
    found = []
    for case in results["cases"]:
        kind, matrix, *ranks = case.split("/")
        if kind == "cg" and (":" in ranks[0]) == resized:
            found.append(Solve(matrix, *map(int, ranks[0].split(":"))))
    return sorted(found, key=lambda one: (one.matrix, one.ranks, one.targets))


def _bound(results: Results, case: Solve) -> tuple[float, float]:
    known = results["imbalance"]
    uneven = max(known.get(one.name, 1.0) for one in case.captured) >= EVEN
    return UNBALANCED if uneven else BALANCED


def _load(results: Results) -> str:
    return f" The mean load of the machine was {results['load']:.1f}." if results["load"] is not None else ""


# ---- Figs. 7 and 8 ---------------------------------------------------------------------------------------------------


def judge_computing(results: Results) -> Finding:
    return _judge(results, _solves(results, False), [COMPUTING, CPU], PAPER_COMPUTING)


def judge_total(results: Results) -> Finding:
    return _judge(results, _solves(results, False), [TOTAL, COMMUNICATING], PAPER_TOTAL)


def judge_resized(results: Results) -> Finding:
    return _judge(results, _solves(results, True), [TOTAL, COMPUTING, CPU, COMMUNICATING, RESIZING], PAPER_MALLEABLE)


def _judge(results: Results, cases: list[Solve], names: list[str], paper: str) -> Finding:
    """Return the ratios. Those of the first name are judged by hocket's own bounds."""
    values, checks = [], []
    for case in cases:
        bound = _bound(results, case)
        for name in names:
            one = measured(results, case.name, name)
            if one is None or one.ratio is None:
                continue
            values.append(Value(f"{_words(case)}: {name}", "x", paper if name == names[0] else None, one.ratio))
            if name == names[0]:
                checks.append(bound[0] <= one.ratio <= bound[1])
    if not checks:
        return Finding((Value(names[0], "x", paper, NONE),), UNMEASURED, HOW)
    verdict = (
        f"{names[0].capitalize()} of the emulation over the application's is within {BALANCED[0]} to {BALANCED[1]} "
        f"({UNBALANCED[0]} to {UNBALANCED[1]} if a rank computes {EVEN} times the mean) in {sum(checks)} of "
        f"{len(checks)} cases. The paper has 2 to 256 processes on three clusters, and matrices of 78 and 317 million "
        f"nonzeros; here up to four ranks share two cores.{_load(results)}"
    )
    return Finding(tuple(values), agreement(checks), verdict)


def _words(case: Solve) -> str:
    ranks = f"{case.ranks} → {case.targets}" if case.targets else str(case.ranks)
    return f"{case.matrix}, {ranks} {'rank' if ranks == '1' else 'ranks'}"


def draw_computing(results: Results, path: Path) -> None:
    _draw(results, _solves(results, False), [COMPUTING, CPU], path)


def draw_total(results: Results, path: Path) -> None:
    _draw(results, _solves(results, False), [TOTAL, COMMUNICATING], path)


def draw_resized(results: Results, path: Path) -> None:
    _draw(results, _solves(results, True), [TOTAL, COMPUTING, COMMUNICATING], path)


def _draw(results: Results, cases: list[Solve], names: list[str], path: Path) -> None:
    if not cases:
        return plots.nothing(path)
    places = sorted({(case.ranks, case.targets) for case in cases})
    with plots.picture(path, len(names)) as axes:
        for axis, name in zip(axes, names, strict=True):
            _draw_ratios(axis, results, cases, places, name)
    return None


def _draw_ratios(axis: plots.Axes, results: Results, cases: list[Solve], places: list, name: str) -> None:
    """Draw the ratios of medians, with the quotients of the pairs as dots."""
    for number, matrix in enumerate(dict.fromkeys(case.matrix for case in cases)):
        points = []
        for case in cases:
            one = measured(results, case.name, name)
            if case.matrix != matrix or one is None or one.ratio is None:
                continue
            at = places.index((case.ranks, case.targets)) + 0.06 * number
            points.append((at, one.ratio))
            times = results["cases"][case.name][name]
            quotients = [b / a for a, b in zip(times["real"], times["emulated"], strict=True) if a > 0]
            axis.plot([at] * len(quotients), quotients, ".", color=plots.colour(number), markersize=4, alpha=0.5)
        if points:
            axis.plot(*zip(*points, strict=True), "o-", color=plots.colour(number), linewidth=1.2, label=matrix)
    axis.axhline(1, color=plots.SOFT, linewidth=0.8)
    for limit in BALANCED:
        plots.paper_line(axis, limit, "bounds of balanced matrices" if limit == BALANCED[0] else "")
    axis.set_xticks(range(len(places)), [f"{a} → {b}" if b else str(a) for a, b in places])
    axis.margins(x=0.15)
    plots.finish(axis, f"{name[0].upper()}{name[1:]}, emulated / real", "ranks", "quotient")


# ---- Tables 1 and 2 --------------------------------------------------------------------------------------------------


def _gathers(results: Results) -> Iterable[tuple[Gather, Measure | None]]:
    for size, count in GATHERED:
        case = Gather(size, count)
        yield case, measured(results, case.name, TOTAL)


def _several(numbers: Iterable[float]) -> str:
    return " / ".join(f"{one:.3g}" for one in numbers)


def judge_times(results: Results) -> Finding:
    values, missing = [], []
    for case, one in _gathers(results):
        means, deviations = TABLE1[case.bytes]
        what = f"{size_name(case.bytes)}, {case.count} times"
        missing += [] if one else [what]
        values.append(Value(f"{what}: mean", "s", _several(means), one.real.mean if one else NONE))
        values.append(Value(f"{what}: deviation", "s", _several(deviations), one.real.deviation if one else NONE))
    if len(missing) == len(GATHERED):
        return Finding(tuple(values), UNMEASURED, HOW)
    verdict = (
        f"{GATHERERS} processes, as in the first row of each system (Systems 1 / 2 / 3). The times are this machine's, "
        "where both share its memory; the paper's are over InfiniBand. The text says 1,000 times also for 1 GB; here "
        f"it is 20 times.{_missing(missing)}{_load(results)}"
    )
    return Finding(tuple(values), PARTLY if missing else AGREES, verdict)


def judge_quotients(results: Results) -> Finding:
    values, checks, missing = [], [], []
    for case, one in _gathers(results):
        means, deviations = TABLE2[case.bytes]
        what = f"{size_name(case.bytes)}, {case.count} times"
        percent = 100 * one.emulated.mean / one.real.mean if one else None
        checks += [abs(percent - 100) <= WITHIN_PERCENT] if percent is not None else []
        missing += [] if one else [what]
        values.append(Value(f"{what}: emulated", "%", _several(means), NONE if percent is None else percent))
        values.append(Value(f"{what}: of medians", "%", None, 100 * one.ratio if one and one.ratio else NONE))
        values.append(Value(f"{what}: STDQ", "", _several(deviations), one.deviation if one else NONE))
    if not checks:
        return Finding(tuple(values), UNMEASURED, HOW)
    verdict = (
        f"{sum(checks)} of {len(checks)} sizes are within {WITHIN_PERCENT:g} % of the application, by means "
        f"(the paper's Systems 1 / 2 / 3 with two processes: 97 to 113 %).{_missing(missing)}{_load(results)}"
    )
    return Finding(tuple(values), agreement(checks), verdict)


def _missing(what: list[str]) -> str:
    return f" Not measured: {'; '.join(what)}." if what else ""


def draw_times(results: Results, path: Path) -> None:
    """Draw the time of one gather, real and emulated, with the deviations of runs."""
    shown = [(case, one) for case, one in _gathers(results) if one]
    if not shown:
        return plots.nothing(path)
    with plots.picture(path, len(shown), height=3.2) as axes:
        for axis, (case, one) in zip(axes, shown, strict=True):
            sides = {"real": one.real, "emulated": one.emulated}
            means = [side.mean / case.count * 1e3 for side in sides.values()]
            errors = [side.deviation / case.count * 1e3 for side in sides.values()]
            axis.bar(range(2), means, 0.55, yerr=errors, capsize=4, color=plots.SERIES[:2])
            axis.set_xticks(range(2), list(sides))
            plots.finish(axis, f"{size_name(case.bytes)}, {case.count} times", "", "ms a gather", key=False)
    return None


def draw_quotients(results: Results, path: Path) -> None:
    """Draw the quotient of each pair, with its mean and deviation."""
    shown = [(case, one) for case, one in _gathers(results) if one]
    if not shown:
        return plots.nothing(path)
    with plots.picture(path, 1) as (axis,):
        for at, (case, _) in enumerate(shown):
            times = results["cases"][case.name][TOTAL]
            quotients = [b / a for a, b in zip(times["real"], times["emulated"], strict=True)]
            axis.plot([at - 0.1] * len(quotients), quotients, ".", color=plots.PAPER, alpha=0.6)
            deviation = numpy.std(quotients, ddof=1) if len(quotients) > 1 else 0.0
            axis.errorbar([at + 0.1], [fmean(quotients)], [deviation], fmt="o", capsize=5, color=plots.SERIES[0])
        for limit in (1 - WITHIN_PERCENT / 100, 1 + WITHIN_PERCENT / 100):
            plots.paper_line(axis, limit, "bounds: 3 %" if limit < 1 else "")
        axis.set_xticks(range(len(shown)), [size_name(case.bytes) for case, _ in shown])
        axis.margins(x=0.3)
        plots.finish(axis, "Emulated over real, two ranks", "bytes of a gather", "quotient")
    return None
