"""Proteo's Figs. 9 to 14: resizes of CG and of its emulation, from the record of bench/reconfigure_cg.py --emulated.

What the record lacks is not measured, and the page says so. Quotients are medians of the emulation over CG's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

from hocket.reconfigure.heatmap import colour
from hocket.reconfigure.results import EXECUTION, MEASURES, RECONFIGURATION
from hocket.reconfigure.statistics import ALPHA
from matplotlib.patches import Patch, Rectangle
from reconfigure_cg import results_of
from reconfigure_cg_plan import REFERENCES
from reconfigure_cg_record import Run, read

from reproduce import plots
from reproduce.figure import UNMEASURED, Finding, Options, Results, Value, agreement

REPO = Path(__file__).resolve().parents[2]
RECORDS = (REPO / "bench" / "reconfigure-cg" / "record.jsonl", REPO / "build" / "reconfigure-cg" / "record.jsonl")
REAL, EMULATED = "real", "emulated"
NONE = "not measured"
HOW = "`bench/reconfigure_cg.py --emulated` measures it, in hours."

STRATEGIES = {"blocking": "S", "wait-sources": "A", "thread": "T"}
DATA = {"collective": "COL", "p2p": "P2P"}
PAPER_NAMES = {
    f"{spawn}/plain/{data}/{strategy}": f"{spawn.capitalize()}-{DATA[data]}{letter}"
    for spawn in ("merge", "baseline")
    for data in DATA
    for strategy, letter in STRATEGIES.items()
}
REFERENCE = "baseline/plain/collective/blocking"
SYNCHRONOUS = [name for name in PAPER_NAMES if name.endswith("/blocking")]
LEAST_CELLS, LEAST_SHARE = 20, 0.9  # that statistics can tell apart, and in which the best must be the same
MOST = 0.5  # the text's "most"

Samples = Mapping[str, Mapping[str, Sequence[float]]]  # by cell and method


def make(_: Options) -> Results:
    found = [path for path in RECORDS if path.exists()]
    if not found:
        return {"samples": {}, "bare": {}, "verdicts": {}, "command": ""}
    setup, runs = read(found[-1])
    return figures_of(runs, str((setup or {}).get("command", "")))


def figures_of(runs: Sequence[Run], command: str) -> Results:
    """Return the samples and verdicts of both sides by measure and cell, and those of bare MPI calls."""
    samples, verdicts = {}, {}
    for side in (REAL, EMULATED):
        if not any(run.job.emulated == (side == EMULATED) and run.job.method not in REFERENCES for run in runs):
            continue
        results = results_of(runs, {}, side == EMULATED)
        cells = [
            pair for pair in results.pairs if any(results.samples(EXECUTION, pair, name) for name in results.names)
        ]
        samples[side] = {
            measure: {
                _cell(pair): {
                    name: values for name in results.names if (values := results.samples(measure, pair, name))
                }
                for pair in cells
            }
            for measure in MEASURES
        }
        verdicts[side] = {
            measure: {
                _cell(pair): {
                    "best": list(results.verdicts[measure][pair].best),
                    "p": results.verdicts[measure][pair].kruskal_p,
                    "shown": results.shown[measure].get(pair),
                }
                for pair in cells
            }
            for measure in MEASURES
        }
    bare: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        if run.job.method in REFERENCES and not run.outcome.reason:
            bare.setdefault(_cell(run.job.pair), {}).setdefault(run.job.method, []).append(run.spawn_s + run.data_s)
    return {"samples": samples, "bare": bare, "verdicts": verdicts, "command": command}


def _cell(pair: tuple[int, int]) -> str:
    return f"{pair[0]} → {pair[1]}"


def _sizes(cell: str) -> tuple[int, int]:
    sources, _, targets = cell.partition(" → ")
    return int(sources), int(targets)


def _shrinks(cell: str) -> bool:
    sources, targets = _sizes(cell)
    return sources > targets


def _of(results: Results, side: str, measure: str) -> Samples:
    return results["samples"].get(side, {}).get(measure, {})


def medians(samples: Samples) -> dict[str, dict[str, float]]:
    return {cell: {name: median(values) for name, values in one.items()} for cell, one in samples.items()}


def quotients(results: Results, measure: str) -> dict[str, dict[str, float]]:
    """Return the median of the emulation over that of CG by cell and method, where both are measured."""
    real, emulated = (medians(_of(results, side, measure)) for side in (REAL, EMULATED))
    both = {
        cell: {name: emulated[cell][name] / value for name, value in one.items() if name in emulated.get(cell, {})}
        for cell, one in real.items()
    }
    return {cell: one for cell, one in both.items() if one}


def _kind(values: Mapping[str, Mapping[str, float]], kind: str) -> list[float]:
    return [value for one in values.values() for name, value in one.items() if name.startswith(kind)]


def _share(values: Sequence[float], least: float, most: float) -> float:
    return sum(least <= one <= most for one in values) / len(values)


def _unmeasured(what: Iterable[tuple[str, str, str]]) -> Finding:
    return Finding(tuple(Value(name, unit, paper, NONE) for name, unit, paper in what), UNMEASURED, HOW)


def _about(results: Results) -> str:
    return f" Measured with `{results['command']}`." if results["command"] else ""


def merge_wins(times: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> tuple[int, int]:
    """Return in how many cells each Merge method takes less time than each Baseline method, and of how many."""
    wins = cells = 0
    for one in times.values():
        merge = [value for name, value in one.items() if name in names and name.startswith("merge")]
        baseline = [value for name, value in one.items() if name in names and name.startswith("baseline")]
        if merge and baseline:
            cells += 1
            wins += max(merge) < min(baseline)
    return wins, cells


# ---- Figs. 9 and 10: reconfiguration times ---------------------------------------------------------------------------


def judge_synchronous(results: Results) -> Finding:
    times = medians(_of(results, REAL, RECONFIGURATION))
    wins, cells = merge_wins(times, SYNCHRONOUS)
    if not cells:
        return _unmeasured([("cells in which Merge beats Baseline", "", "all")])
    values = [Value("cells in which both Merge methods beat both Baselines", "", "all", f"{wins} of {cells}")]
    for words, shrinks, paper in (("shrinking", True, "more than 2"), ("expanding", False, "slightly less")):
        most = [_largest_gap(one) for cell, one in times.items() if _shrinks(cell) == shrinks]
        found = [one for one in most if one is not None]
        values.append(Value(f"the most that a Baseline takes longer, {words}", "s", paper, max(found, default=NONE)))
    inter = [_bare_quotient(cell, one) for cell, one in results["bare"].items()]
    known = [one for one in inter if one is not None]
    told = median(known) if known else NONE
    values.append(
        Value("bare calls: Baseline by MPI_Alltoallv / Merge, median of cells", "x", "much more than 1", told)
    )
    verdict = (
        "The four methods are those of CG, which stops for them; the paper resizes nothing but data. Its "
        "“Baseline Inter-COLS” is here the program of bare MPI calls, with another algorithm of "
        f"MPI_Alltoallv (`nb`), because MPICH's usual one ends most runs.{_about(results)}"
    )
    return Finding(tuple(values), agreement([wins == cells]), verdict)


def _largest_gap(times: Mapping[str, float]) -> float | None:
    merge = [times[name] for name in SYNCHRONOUS if name in times and name.startswith("merge")]
    baseline = [times[name] for name in SYNCHRONOUS if name in times and name.startswith("baseline")]
    return max(baseline) - min(merge) if merge and baseline else None


def _bare_quotient(_: str, one: Mapping[str, Sequence[float]]) -> float | None:
    merge, baseline = (one.get(name) for name in ("bare/merge", "bare/baseline"))
    return median(baseline) / median(merge) if merge and baseline else None


def draw_synchronous(results: Results, path: Path) -> None:
    times = medians(_of(results, REAL, RECONFIGURATION))
    for cell, one in results["bare"].items():
        times.setdefault(cell, {}).update({name: median(values) for name, values in one.items()})
    rows = [*SYNCHRONOUS, *REFERENCES]
    _draw_grids(times, rows, "Reconfiguration time of synchronous methods, s", path)


def judge_times(results: Results) -> Finding:
    times = medians(_of(results, REAL, RECONFIGURATION))
    wins, cells = merge_wins(times, list(PAPER_NAMES))
    if not cells:
        return _unmeasured([("cells in which Merge beats Baseline", "", "all"), ("slowest Merge", "s", "below 3")])
    slowest = max(_kind({cell: _paper_only(one) for cell, one in times.items()}, "merge"))
    values = [
        Value("cells in which each Merge method beats each Baseline method", "", "all", f"{wins} of {cells}"),
        Value("slowest Merge method, median", "s", "below 3", slowest),
    ]
    for one in ("thread", "wait-sources"):
        over = _over(times, one)
        told = median(over) if over else NONE
        values.append(Value(f"Baseline, {one} / blocking, median of cells", "x", "above 1", told))
    verdict = (
        "The paper moves 3.9 GB between up to eight nodes, here 1 GB within one. With a strategy, the reconfiguration "
        f"time has the iterations that overlap it, here as there.{_about(results)}"
    )
    return Finding(tuple(values), agreement([wins == cells, slowest < 3]), verdict)


def _paper_only(times: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in times.items() if name in PAPER_NAMES}


def _over(times: Mapping[str, Mapping[str, float]], strategy: str) -> list[float]:
    """Return the times of Baseline with a strategy over those without, of the same cell and kind of redistribution."""
    found = []
    for one in times.values():
        for data in DATA:
            name, plain = (f"baseline/plain/{data}/{word}" for word in (strategy, "blocking"))
            found += [one[name] / one[plain]] if name in one and plain in one else []
    return found


def draw_times(results: Results, path: Path) -> None:
    times = medians(_of(results, REAL, RECONFIGURATION))
    _draw_grids(times, _rows(times), "Reconfiguration time of CG, s", path)


# ---- Figs. 11 and 13: emulated over real -----------------------------------------------------------------------------


def judge_reconfiguration_quotients(results: Results) -> Finding:
    return _judge_quotients(results, RECONFIGURATION, (0.75, 1.25), "Baseline above, Merge below 1")


def judge_execution_quotients(results: Results) -> Finding:
    return _judge_quotients(results, EXECUTION, (0.90, 1.15), "no clear difference")


def _judge_quotients(results: Results, measure: str, usual: tuple[float, float], kinds: str) -> Finding:
    found = quotients(results, measure)
    what = f"quotients within {usual[0]} to {usual[1]}"
    if not found:
        return _unmeasured([(what, "", "most")])
    every = _kind(found, "")
    share = _share(every, *usual)
    values = [
        Value(what, "", "most", f"{round(share * len(every))} of {len(every)}"),
        Value("median", "x", None, median(every)),
        Value("least and most", "x", None, f"{min(every):.2f} to {max(every):.2f}"),
    ]
    for kind in ("baseline", "merge"):
        one = _kind(found, kind)
        values.append(Value(f"median of {kind.capitalize()} methods", "x", kinds, median(one) if one else NONE))
    verdict = (
        f"{len(found)} cells, and the methods that both sides have there. The emulation moves as many bytes as CG, in "
        f"two arrays instead of seven.{_about(results)}"
    )
    return Finding(tuple(values), agreement([share > MOST]), verdict)


def draw_reconfiguration_quotients(results: Results, path: Path) -> None:
    found = quotients(results, RECONFIGURATION)
    _draw_grids(found, _rows(found), "Reconfiguration time, emulated / real", path, True)


def draw_execution_quotients(results: Results, path: Path) -> None:
    found = quotients(results, EXECUTION)
    _draw_grids(found, _rows(found), "Execution time, emulated / real", path, True)


# ---- Fig. 12: speedup over Baseline-COLS -----------------------------------------------------------------------------


def speedups(results: Results) -> dict[str, dict[str, float]]:
    times = medians(_of(results, REAL, EXECUTION))
    return {
        cell: {name: one[REFERENCE] / value for name, value in one.items() if name != REFERENCE}
        for cell, one in times.items()
        if REFERENCE in one
    }


def judge_speedups(results: Results) -> Finding:
    found = speedups(results)
    merge, baseline = _kind(found, "merge"), _kind(found, "baseline")
    if not merge:
        return _unmeasured([("speedups within 0.85 to 1.15", "", "all"), ("Merge faster", "", "in general")])
    every = [*merge, *baseline]
    faster, slower = sum(one > 1 for one in merge), sum(one < 1 for one in baseline)
    values = [
        Value(
            "speedups within 0.85 to 1.15", "", "all", f"{sum(0.85 <= one <= 1.15 for one in every)} of {len(every)}"
        ),
        Value("least and most", "x", "0.85 to 1.15", f"{min(every):.2f} to {max(every):.2f}"),
        Value("Merge faster than Baseline-COLS", "", "in general", f"{faster} of {len(merge)}"),
        Value("other Baselines slower than it", "", "in general", f"{slower} of {len(baseline)}"),
    ]
    verdict = (
        "How much a method is worth depends on how long the program computes beside its resize: 1,000 iterations in "
        f"the paper, 60 here, so speedups may be larger.{_about(results)}"
    )
    checks = [faster > MOST * len(merge), not baseline or slower > MOST * len(baseline)]
    return Finding(tuple(values), agreement(checks), verdict)


def draw_speedups(results: Results, path: Path) -> None:
    found = speedups(results)
    _draw_grids(found, _rows(found), "Speedup over Baseline-COLS, execution time of CG", path, True)


# ---- Fig. 14: the best methods ---------------------------------------------------------------------------------------


def winners_found(results: Results, side: str, other: str) -> tuple[int, int]:
    """Return in how many cells the fastest method of one side is among the best of the other, and of how many.

    Cells are those of all measures in which the tests tell methods of the first side apart, and that both have.
    """
    inside = cells = 0
    for measure in MEASURES:
        theirs = results["verdicts"].get(other, {}).get(measure, {})
        for cell, verdict in results["verdicts"].get(side, {}).get(measure, {}).items():
            best = theirs.get(cell, {}).get("best")
            if best and verdict["p"] is not None and verdict["p"] < ALPHA:
                cells += 1
                inside += verdict["best"][0] in best
    return inside, cells


def judge_best(results: Results) -> Finding:
    values, checks = [], []
    for side, paper in ((REAL, "Merge-P2PA, 38 of 42"), (EMULATED, "Merge-COLT, 36 of 42")):
        shown = [one["shown"] for one in results["verdicts"].get(side, {}).get(EXECUTION, {}).values() if one["shown"]]
        ((name, times),) = Counter(shown).most_common(1) or [("", 0)]
        told = f"{PAPER_NAMES.get(name, name)}, {times} of {len(shown)}" if shown else NONE
        values.append(Value(f"{side}: method that is best most often, execution time", "", paper, told))
    for side, other, paper in ((REAL, EMULATED, "35 of 42"), (EMULATED, REAL, "33 of 42")):
        inside, cells = winners_found(results, side, other)
        told = f"{inside} of {cells}" if cells else NONE
        values.append(Value(f"winner of the {side} one in the best set of the {other} one", "", paper, told))
        checks += [cells >= LEAST_CELLS and inside >= LEAST_SHARE * cells] if cells else []
    if not checks:
        return Finding(tuple(values), UNMEASURED, HOW)
    verdict = (
        f"The last two count the cells of {len(MEASURES)} measures ({', '.join(MEASURES.values())}) in which the tests "
        f"tell methods apart; hocket wants at least {LEAST_CELLS} of them, and {LEAST_SHARE:.0%} of these. The paper's "
        f"are its 42 cells by execution time.{_about(results)}"
    )
    return Finding(tuple(values), agreement(checks), verdict)


def draw_best(results: Results, path: Path) -> None:
    """Draw the shown method of each cell, sizes before the resize down, after it across; both sides."""
    verdicts = {side: results["verdicts"].get(side, {}).get(EXECUTION, {}) for side in (REAL, EMULATED)}
    cells = [cell for of_side in verdicts.values() for cell in of_side]
    if not cells:
        return plots.nothing(path)
    sizes = sorted({size for cell in cells for size in _sizes(cell)})
    names = sorted({one["shown"] for of_side in verdicts.values() for one in of_side.values() if one["shown"]})
    with plots.picture(path, 2, height=5.2) as axes:
        for axis, (side, of_side) in zip(axes, verdicts.items(), strict=True):
            _draw_winners(axis, of_side, sizes, names)
            title = f"Fastest, CG {side}" + ("" if of_side else ": not measured")
            axis.set_title(title, loc="left", fontsize=11, fontweight="bold")
        key = [Patch(color=colour(at), label=f"{at}  {_name(name)}") for at, name in enumerate(names, 1)]
        axes[0].figure.legend(handles=key, loc="outside lower left", ncols=3, frameon=False, fontsize=9)
    return None


def _draw_winners(
    axis: plots.Axes, verdicts: Mapping[str, Mapping], sizes: Sequence[int], names: Sequence[str]
) -> None:
    for cell, one in verdicts.items():
        row, column = (sizes.index(size) for size in _sizes(cell))
        if one["shown"] is None:
            continue
        number = names.index(one["shown"]) + 1
        paper = colour(number)
        ink = "black" if sum(paper) > 1.55 else "white"
        axis.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=paper, edgecolor="white", linewidth=2))
        axis.text(column, row - 0.08, str(number), ha="center", va="center", fontsize=14, color=ink)
        tied = f"{len(one['best'])} tie" if len(one["best"]) > 1 else ""
        axis.text(column, row + 0.3, tied, ha="center", va="center", fontsize=8, color=ink)
    axis.set_xlim(-0.5, len(sizes) - 0.5)
    axis.set_ylim(len(sizes) - 0.5, -0.5)
    axis.set_aspect("equal")
    axis.set_xticks(range(len(sizes)), list(map(str, sizes)))
    axis.set_yticks(range(len(sizes)), list(map(str, sizes)))
    axis.set_xlabel("targets", color=plots.SOFT)
    axis.set_ylabel("sources", color=plots.SOFT)


# ---- pictures --------------------------------------------------------------------------------------------------------


def _rows(values: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the methods to be drawn: the paper's, then others that are measured."""
    seen = {name for one in values.values() for name in one}
    return [*(name for name in PAPER_NAMES if name in seen), *sorted(seen - PAPER_NAMES.keys())]


def _name(method: str) -> str:
    return PAPER_NAMES.get(method, method)


def _draw_grids(
    values: Mapping[str, Mapping[str, float]], rows: Sequence[str], title: str, path: Path, around_one: bool = False
) -> None:
    """Draw the cells that shrink beside those that grow, as in the paper's pictures."""
    sides = [
        (words, sorted((cell for cell in values if _shrinks(cell) == shrinks), key=_sizes))
        for words, shrinks in (("shrinking", True), ("expanding", False))
    ]
    drawn = [(words, cells) for words, cells in sides if cells]
    if not drawn or not rows:
        return plots.nothing(path)
    with plots.picture(path, len(drawn), height=max(2.4, 1 + 0.28 * len(rows))) as axes:
        for axis, (words, cells) in zip(axes, drawn, strict=True):
            numbers = [[values[cell].get(row) for cell in cells] for row in rows]
            names = list(map(_name, rows)) if axis is axes[0] else [""] * len(rows)
            plots.grid(axis, names, cells, numbers, f"{title}: {words}" if axis is axes[0] else words, around_one)
    return None
