"""CLARISSE: elastic collective I/O, and first-come-first-served scheduling of two applications.

The simulator has no I/O servers and no aggregators, so the four sizes of the paper are one here. What differs between
the paper's cases in the simulator is the ratio of I/O to computing, which is varied instead.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean, median

from reproduce import clarisse_live, plots
from reproduce.figure import (
    DIFFERS,
    LIVE,
    PARTLY,
    SIMULATOR,
    Figure,
    Finding,
    Options,
    Results,
    Value,
    agreement,
    drawing,
    missing,
)
from reproduce.scenarios import Scenario, phases_of, simulate

PHASES = 10
COMPUTE_S = 20.0  # of S-IOR between two writes
LEAST_COMPUTING = 0.82  # share of the time in all of the paper's runs, the slowest of which is uncoordinated
INTERFERENCE = 2.0  # of two equal writers that share fairly
SIOR_IO_S = COMPUTE_S * (1 - LEAST_COMPUTING) / LEAST_COMPUTING / INTERFERENCE  # of a write alone
VPIC_GB, VORPAL_GB = 15.0, 11.25  # of a step
RATIOS = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)  # I/O alone / computing
JITTER = 0.01  # of the computing time; an assumption
SEEDS = range(1, 11)
POLICIES = ("none", "fcfs")


def application(name: str, io_s: float, compute_s: float) -> dict:
    """Return an application that writes `io_s` alone after each `compute_s` of computing."""
    return {
        "name": name,
        "processes": 960,
        "iterations": PHASES,
        "iterations_per_phase": 1,
        "iteration_s": compute_s,
        "io_bytes": io_s * 1e9,
        "jitter": JITTER,
    }


def pair(io_s: tuple[float, float], compute_s: tuple[float, float]) -> Results:
    """Return medians over the seeds: I, C, and speedups of writes, of all I/O, and of the whole."""
    both = [application(name, *each) for name, each in zip("AB", zip(io_s, compute_s, strict=True), strict=True)]
    target = {"bandwidth_bytes_per_s": 1e9}
    wanted = [(Scenario(target, both, {"seed": seed}), policy) for policy in POLICIES for seed in SEEDS]
    made = [result["applications"] for result, _ in simulate(wanted)]
    runs = list(zip(made[: len(SEEDS)], made[len(SEEDS) :], strict=True))

    def factor(one: dict) -> float:
        return (one["io_s"] + one["wait_s"]) / one["io_alone_s"]

    def of(figure) -> float:
        return median(figure(without, scheduled) for without, scheduled in runs)

    return {
        "interference": of(lambda without, _: mean(map(factor, without))),
        "cost": of(lambda _, scheduled: mean(map(factor, scheduled))),
        "write_speedup": of(lambda without, scheduled: mean(map(factor, without)) / mean(map(factor, scheduled))),
        "speedup": of(lambda without, scheduled: _total(without) / _total(scheduled)),
        "computing": of(lambda without, _: sum(one["compute_s"] for one in without) / _total(without)),
    }


def _total(applications: list[dict]) -> float:
    return sum(one["total_s"] for one in applications)


# Figs. 14 and 16


def make_sior(_: Options) -> Results:
    return pair((SIOR_IO_S,) * 2, (COMPUTE_S,) * 2)


def judge_sior(results: Results) -> Finding:
    values = (
        Value("share of computing, uncoordinated", "", "more than 0.82", results["computing"], calibrated=True),
        Value("speedup of writes", "", "1.32 to 1.98", results["write_speedup"]),
        Value("speedup of the whole", "", "1.03 to 1.12", results["speedup"]),
        Value("interference factor I", "", "larger than C", results["interference"]),
        Value("scheduling cost factor C", "", "much lower than I", results["cost"]),
    )
    checks = [
        1.32 <= results["write_speedup"] <= 1.98,
        1.03 <= results["speedup"] <= 1.12,
        results["interference"] > results["cost"],
    ]
    verdict = (
        "After one wait the two alternate and no longer meet, so scheduling costs little. One case stands for the "
        "paper's four sizes: the simulator knows neither aggregators nor servers, and which of the paper's speedups a "
        "size has depends on how badly the file system takes that many writers."
    )
    return Finding(values, agreement(checks), verdict)


def draw_sior(results: Results, path: Path) -> None:
    with plots.picture(path, 2) as (left, right):
        plots.bars(left, ["writes", "whole benchmark"], {"hocket": [results["write_speedup"], results["speedup"]]})
        for at, (low, high) in enumerate(((1.32, 1.98), (1.03, 1.12))):
            left.vlines(at, low, high, color=plots.PAPER, linewidth=3, label=None if at else "paper, four sizes")
        plots.finish(left, "speedup by fcfs", "", "")
        plots.bars(right, ["I", "C"], {"hocket": [results["interference"], results["cost"]]})
        plots.finish(right, "interference and scheduling cost", "", "factor", key=False)


def make_timeline(_: Options) -> Results:
    both = [application(name, SIOR_IO_S, COMPUTE_S) for name in "AB"]
    scenario = Scenario({"bandwidth_bytes_per_s": 1e9}, both)
    made = simulate([(scenario, policy) for policy in POLICIES], traces=True)
    keys = ("start_ns", "end_ns", "wait_ns")
    return {
        policy: {name: [[phase[key] / 1e9 for key in keys] for phase in phases_of(told, name)] for name in "AB"}
        for policy, (_result, told) in zip(POLICIES, made, strict=True)
    }


def judge_timeline(results: Results) -> Finding:
    waits = [[wait for _, _, wait in phases if wait > 0.01] for phases in results["fcfs"].values()]
    longest = {
        policy: max(end - start for one in made.values() for start, end, _ in one) for policy, made in results.items()
    }
    mean_s = {
        policy: mean(end - start for one in made.values() for start, end, _ in one) for policy, made in results.items()
    }
    values = (
        Value("writes that wait, fcfs, of 20", "", None, sum(map(len, waits))),
        Value("mean write with its wait, unscheduled", "s", None, mean_s["none"]),
        Value("mean write with its wait, fcfs", "s", "shorter", mean_s["fcfs"]),
        Value("longest, unscheduled / fcfs", "s", None, f"{longest['none']:.2f} / {longest['fcfs']:.2f}"),
    )
    verdict = (
        "Unscheduled, the two stay in step and share each write. Under fcfs the second waits at first, and the two "
        "then alternate. The paper's picture is lost, and the text has no number for it; how long the two keep apart "
        "depends on how much their periods vary, 1 % here."
    )
    return Finding(values, PARTLY if mean_s["fcfs"] < mean_s["none"] else DIFFERS, verdict)


def draw_timeline(results: Results, path: Path) -> None:
    with plots.picture(path, 1, 2, 2.0) as axes:
        for axis, (policy, made) in zip(axes, results.items(), strict=True):
            for row, phases in enumerate(made.values()):
                waits = [(start, wait) for start, _, wait in phases]
                writes = [(start + wait, end - start - wait) for start, end, wait in phases]
                axis.broken_barh(writes, (row - 0.35, 0.7), color="#0072b2", label=None if row else "write")
                axis.broken_barh(waits, (row - 0.35, 0.7), color="#d55e00", label=None if row else "waits")
            axis.set_yticks([0, 1], ["A", "B"])
            plots.finish(axis, "without scheduling" if policy == "none" else "fcfs", "s", "")


# Figs. 17 to 19


def make_kernels(first_gb: float, second_gb: float) -> Results:
    """Vary the ratio of I/O to computing. Both compute as long, so the smaller one has the smaller ratio."""
    return {str(ratio): pair((first_gb, second_gb), (first_gb / ratio,) * 2) for ratio in RATIOS}


def judge_kernels(results: Results, mixed: bool) -> Finding:
    best = max(one["write_speedup"] for one in results.values())
    whole = max(one["speedup"] for one in results.values())
    at_high = results["1.0"]["write_speedup"], results["2.0"]["write_speedup"]
    pays = all((one["write_speedup"] > 1) == (one["interference"] > one["cost"]) for one in results.values())
    values = (
        Value("best speedup of writes", "", "up to 1.84", best),
        Value("best speedup of the whole", "", "up to 1.25", whole),
        Value("speedup of writes at a ratio of 1", "", "about 1" if mixed else None, at_high[0]),
        Value("speedup of writes at a ratio of 2", "", "about 1" if mixed else None, at_high[1]),
        Value("scheduling pays where I > C", "", "yes", "yes" if pays else "no"),
    )
    checks = [pays, at_high[0] < 1.1] if mixed else [pays, best <= 1.84 * 1.1, whole <= 1.25 * 1.1]
    verdict = (
        (
            "The paper finds no gain where I/O takes half as long as computing, or longer. Here the gain is largest at "
            "1 to 1.25: kernels of unequal length drift apart below that, and above it whoever waits does so always. "
            if mixed
            else "The gain falls once I/O takes longer than computing, since whoever waits then waits in every period. "
            "The paper does not give the ratio of this pair; the whole gains more here than there at a ratio near 1. "
        )
        + "A target that serves one application at full speed, and two with no loss but sharing, decides it: the "
        "paper's exclusive writes may not have used the whole file system."
    )
    return Finding(values, agreement(checks), verdict)


def draw_kernels(results: Results, path: Path) -> None:
    def curve(key: str) -> list[tuple[float, float]]:
        return [(float(ratio), one[key]) for ratio, one in results.items()]

    with plots.picture(path, 2) as (left, right):
        plots.lines(left, {"average write": curve("write_speedup"), "application": curve("speedup")})
        left.axhline(1, color=plots.SOFT, linewidth=0.8)
        plots.finish(left, "speedup by fcfs", "I/O alone / computing", "")
        plots.lines(right, {"I": curve("interference"), "C": curve("cost")})
        plots.finish(right, "interference and scheduling cost", "I/O alone / computing", "factor")


SERVERS = "I/O servers, maps and injected load in the simulator (live: ./dev bench elastic, four servers)"
KERNELS = "vpic_io and vorpal_io through loaded I/O servers, with and without removal, in ./dev bench elastic"
PARALLEL = "an assumed jitter of 1 %; the ratio of I/O to computing is varied in place of the size"


def _kernels(number: int, title: str, first_gb: float, second_gb: float) -> Figure:
    mixed = first_gb != second_gb
    return Figure(
        f"clarisse-{number}",
        f"fcfs scheduling: {title}",
        SIMULATOR,
        PARALLEL,
        lambda _: make_kernels(first_gb, second_gb),
        lambda results: judge_kernels(results, mixed),
        draw_kernels,
    )


FIGURES = (
    drawing("clarisse-1", "Mapping of the I/O software stack", "docs/data-plane.md"),
    drawing("clarisse-2", "Data path of two applications", "docs/data-plane.md"),
    drawing("clarisse-3", "Data, control and policy", "ARCHITECTURE.md"),
    drawing("clarisse-4", "Control backplane", "docs/design/bus.md"),
    drawing("clarisse-5", "View-based and list-based collective I/O", "docs/design/collective-io.md"),
    drawing("clarisse-6", "Elastic collective I/O protocol", "docs/design/io-servers.md"),
    drawing("clarisse-7", "FCFS parallel I/O scheduling", "docs/design/arbitration.md"),
    drawing("clarisse-table1", "Published information", "docs/design/bus.md"),
    drawing("clarisse-table2", "Benchmark parameters", "bench/reproduce/clarisse.py"),
    missing("clarisse-8", "Server load injection, 0 to 512 µs", SERVERS),
    missing("clarisse-9", "Throughput by number of removed servers", SERVERS),
    Figure(
        "clarisse-10",
        "Removal of a slow server while an application writes",
        LIVE,
        "four ranks and four I/O servers on this machine, in place of 3,840 processes",
        clarisse_live.make_elastic,
        clarisse_live.judge_elastic,
        clarisse_live.draw_elastic,
    ),
    missing("clarisse-11", "Elastic collective I/O: speedup and overhead of S-IOR at four sizes", SERVERS),
    missing("clarisse-12", "Elastic collective I/O: VPIC", KERNELS),
    missing("clarisse-13", "Elastic collective I/O: VORPAL", KERNELS),
    Figure(
        "clarisse-14",
        "fcfs scheduling: two S-IOR",
        SIMULATOR,
        "the share of computing, 82 %, which sets the length of a write",
        make_sior,
        judge_sior,
        draw_sior,
    ),
    Figure(
        "clarisse-15",
        "Overhead of an uncontended grant",
        LIVE,
        "./dev bench grant, on this machine",
        clarisse_live.make_grant,
        clarisse_live.judge_grant,
        clarisse_live.draw_grant,
    ),
    Figure(
        "clarisse-16",
        "Timeline of two S-IOR without and with fcfs",
        SIMULATOR,
        "Fig. 14's length of a write",
        make_timeline,
        judge_timeline,
        draw_timeline,
    ),
    _kernels(17, "two VPIC", VPIC_GB, VPIC_GB),
    _kernels(18, "two VORPAL", VORPAL_GB, VORPAL_GB),
    _kernels(19, "VPIC with VORPAL", VPIC_GB, VORPAL_GB),
)
