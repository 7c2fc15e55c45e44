"""CALCioM's Figs. 10 and 11, live: four real files in steps beside one file, under all four policies.

A writes four files, each as one step of one I/O phase (`bench/four_files.c`); B writes one file of the same size, so A
is four times B. Both share a storage target of 40 MB/s (apps/limited_target), as in `./dev bench delta`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from hocket.delta.graph import Graph
from hocket.delta.live import Live, Plan, Storage, measure, program_of
from hocket.errors import HocketError

from reproduce import plots
from reproduce.figure import Finding, Options, Results, Value, agreement

REPO = Path(__file__).resolve().parents[2]
PROGRAM = REPO / "build" / "release" / "bench" / "four_files-mpich"
POLICIES = ("interfere", "fcfs", "interrupt", "dynamic")
FILES, FILE_BYTES, BYTES_PER_S = 4, 24 << 20, 40e6
RANKS = (2, 1)  # the number of processes tells hocketd a program's time alone
SHARES = (0.15, 0.4, 0.65)  # of A's time alone, when B comes
TIMEOUT_S = 120.0
MOST_BESIDE_BEST = 1.1


def make_four_files(_: Options) -> Results:
    if not PROGRAM.exists():
        raise HocketError(f"no {PROGRAM}: run ./dev build")
    sys.path.insert(0, str(REPO / "demo"))
    from mpi_launch import Mpi

    mpi = Mpi("mpich")
    before = dict(os.environ)
    os.environ.update(mpi.environment())
    try:
        with tempfile.TemporaryDirectory(prefix="hocket-reproduce-") as directory:
            return _measured(mpi, Path(directory))
    finally:
        os.environ.clear()
        os.environ.update(before)


def _measured(mpi, directory: Path) -> Results:
    programs = []
    for name, ranks, files in zip("AB", RANKS, (FILES, 1), strict=True):
        words = mpi.command(ranks, PROGRAM, directory / name, files, FILE_BYTES // ranks)
        programs.append(program_of(name, " ".join(words)))
    alone_s = FILES * FILE_BYTES / BYTES_PER_S
    plan = Plan(
        policies=POLICIES,
        dts_s=[round(alone_s * share, 2) for share in SHARES],
        repetitions=3,
        metric="cpu-time",
        grain="file",
        sharing="fair",
        timeout_s=TIMEOUT_S,
        storage=Storage(BYTES_PER_S, directory),
    )
    with Live(plan, programs) as live:
        return as_results(measure(live, lambda _: None, lambda _: None))


def as_results(graph: Graph) -> Results:
    points = {
        policy: [
            {"dt_s": one.dt_s, "a_s": one.a.io_s, "b_s": one.b.io_s, "stops": one.a.interruptions, "cost": one.cost}
            for one in graph.of(policy)
        ]
        for policy in POLICIES
    }
    return {"alone_s": [one.io_s for one in graph.alone], "points": points}


def of_b(results: Results, policy: str) -> float:
    """Return B's I/O time beside that alone, the median over the dts."""
    return median(one["b_s"] for one in results["points"][policy]) / results["alone_s"][1]


def beside_best(results: Results) -> float:
    """Return the metric of the dynamic choice beside the best of the three others at the same dt, the largest."""
    others = [results["points"][policy] for policy in POLICIES[:3]]
    return max(
        one["cost"] / min(other[at]["cost"] for other in others) for at, one in enumerate(results["points"]["dynamic"])
    )


def judge_four_files(results: Results) -> Finding:
    factors = {policy: of_b(results, policy) for policy in POLICIES}
    ratio = beside_best(results)
    stops = sum(one["stops"] for one in results["points"]["interrupt"])
    longest = max(one["b_s"] for one in results["points"]["interrupt"])
    file_s = results["alone_s"][0] / FILES
    dynamic, interfering = (median(one["cost"] for one in results["points"][p]) for p in ("dynamic", "interfere"))
    values = (
        Value("A alone, four files", "s", None, results["alone_s"][0]),
        Value("B alone, one file", "s", None, results["alone_s"][1]),
        *(
            Value(f"B's I/O time beside alone, {policy}, median of the dts", "", None, factors[policy])
            for policy in POLICIES
        ),
        Value("B's longest I/O time under interruption", "s", "at most its own and a file of A", longest),
        Value("interruptions of A, of 3 dts", "", "one each", stops),
        Value("CPU time of I/O, dynamic / interference, A = 4 x B", "", "less than 1", dynamic / interfering),
        Value("CPU time of I/O, dynamic / best other policy, largest", "", "about 1", ratio),
    )
    checks = [
        factors["interrupt"] < factors["fcfs"],
        longest <= results["alone_s"][1] + 1.5 * file_s,
        dynamic < interfering,
        ratio <= MOST_BESIDE_BEST,
    ]
    verdict = (
        "Between two of A's files B goes first, so it waits for the rest of one file at most (Fig. 10). The dynamic "
        "choice costs less CPU time than interference (Fig. 11). Times are of this machine, and the target is limited "
        "to 40 MB/s: the paper's pictures have 2,048 processes and no numbers in the text for these curves."
    )
    return Finding(values, agreement(checks), verdict)


def draw_four_files(results: Results, path: Path) -> None:
    with plots.picture(path, 2) as axes:
        for axis, key, name in zip(axes, ("a_s", "b_s"), ("A, four files", "B, one file"), strict=True):
            series = {policy: [(p["dt_s"], p[key]) for p in results["points"][policy]] for policy in POLICIES}
            plots.lines(axis, series)
            axis.axhline(results["alone_s"]["ab".index(key[0])], color=plots.SOFT, linewidth=0.8)
            axis.set_ylim(0)
            plots.finish(axis, name, "B begins after A by, s", "I/O time with waits, s")
