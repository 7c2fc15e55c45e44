"""CLARISSE's Figs. 14 and 16 to 19: first-come-first-served scheduling of two applications (section V-C).

Each pair runs at the paper's four sizes through the I/O servers of that size, which both share, and past the servers,
where the size makes no difference. The ratio of I/O to computing is varied from 0.1 to 2, past the servers.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean, median

from reproduce import plots
from reproduce.clarisse_scale import DISKS_BYTES_PER_S, PAIR_SIZES, SERVERS, SIOR_BYTES, scenario, server_keys, writer
from reproduce.figure import DIFFERS, PARTLY, Finding, Options, Results, Value, agreement
from reproduce.scenarios import phases_of, simulate

COMPUTE_S = 20.0  # of S-IOR between two writes
RATIOS = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)  # I/O alone / computing
# The paper says of VPIC beside VORPAL "more than 1 for 960 processes and between 0.5 and 1 for 1,920 and 3,840". The
# last is assumed.
RATIO_OF_SIZE = {960: 1.25, 1920: 0.75, 3840: 0.75, 7680: 0.35}
JITTER = 0.01  # of the computing time; an assumption
SEEDS = range(1, 11)
POLICIES = ("none", "fcfs")
COORDINATOR = {"slow_server": 0}


def pair(applications: list[dict], servers: dict | None = None) -> Results:
    """Return medians over the seeds: I, C, and speedups of writes, of all I/O, and of the whole."""
    both = [one | {"jitter": JITTER} for one in applications]
    wanted = [
        (scenario(both, servers, about={"seed": seed}, coordinator=COORDINATOR), policy)
        for policy in POLICIES
        for seed in SEEDS
    ]
    made = [result["applications"] for result, _ in simulate(wanted)]
    runs = list(zip(made[: len(SEEDS)], made[len(SEEDS) :], strict=True))

    def of(figure) -> float:
        return median(figure(without, scheduled) for without, scheduled in runs)

    return {
        "interference": of(lambda without, _: mean(map(_factor, without))),
        "cost": of(lambda _, scheduled: mean(map(_factor, scheduled))),
        "write_speedup": of(lambda without, scheduled: mean(map(_factor, without)) / mean(map(_factor, scheduled))),
        "speedup": of(lambda without, scheduled: _total(without) / _total(scheduled)),
        "computing": of(lambda without, _: sum(one["compute_s"] for one in without) / _total(without)),
        "ratio": of(lambda without, _: sum(one["io_alone_s"] for one in without) / sum(map(_compute_s, without))),
    }


def _factor(one: dict) -> float:
    return (one["io_s"] + one["wait_s"]) / one["io_alone_s"]


def _compute_s(one: dict) -> float:
    return one["compute_s"]


def _total(applications: list[dict]) -> float:
    return sum(one["total_s"] for one in applications)


def values_of_sizes(sizes: Results, key: str, what: str, paper: dict[int, str | None]) -> tuple[Value, ...]:
    return tuple(
        Value(f"{what}, {int(clients):,} clients through servers", "", paper[int(clients)], one[key])
        for clients, one in sizes.items()
    )


# Figs. 14 and 16


def sior(clients: int, through_servers: bool) -> list[dict]:
    return [writer(name, clients, SIOR_BYTES, COMPUTE_S, through_servers) for name in "AB"]


def make_sior(_: Options) -> Results:
    return {
        "past": pair(sior(PAIR_SIZES[0], through_servers=False)),
        "sizes": {
            str(clients): pair(sior(clients, through_servers=True), server_keys(SERVERS[clients]))
            for clients in PAIR_SIZES
        },
    }


def judge_sior(results: Results) -> Finding:
    sizes = results["sizes"]
    writes = [one["write_speedup"] for one in sizes.values()]
    whole = [one["speedup"] for one in sizes.values()]
    values = (
        *values_of_sizes(sizes, "write_speedup", "speedup of writes", dict.fromkeys(PAIR_SIZES, "1.32 to 1.98")),
        *values_of_sizes(sizes, "speedup", "speedup of the whole", dict.fromkeys(PAIR_SIZES, "1.03 to 1.12")),
        *values_of_sizes(sizes, "computing", "share of computing", dict.fromkeys(PAIR_SIZES, "more than 0.82")),
        Value("interference factor I, mean", "", "larger than C", mean(one["interference"] for one in sizes.values())),
        Value("scheduling cost factor C, mean", "", "much lower than I", mean(one["cost"] for one in sizes.values())),
        Value("speedup of writes past the servers", "", "1.32 to 1.98", results["past"]["write_speedup"]),
    )
    checks = [
        all(1.32 <= one <= 1.98 for one in writes),
        all(1.03 <= one <= 1.12 for one in whole),
        all(one["interference"] > one["cost"] for one in sizes.values()),
        all(one["computing"] > 0.82 for one in sizes.values()),
    ]
    verdict = (
        "After one wait the two alternate and no longer meet, so scheduling costs little, at each size. At 960 clients "
        "servers are the limit, and a write takes longer. The share of computing is below the paper's 82 %: a write of "
        "30 GiB takes at least 3.2 s at the drives' nominal 10 GB/s, and twice as long when both write. The paper does "
        "not give the bytes of this pair. The spread of its speedups by size needs a file system that takes some "
        "numbers of writers worse than others."
    )
    return Finding(values, agreement(checks), verdict)


def draw_sior(results: Results, path: Path) -> None:
    sizes = results["sizes"]
    groups = [f"{int(clients):,}" for clients in sizes]
    with plots.picture(path, 3) as (left, middle, right):
        for axis, key, title, (low, high) in (
            (left, "write_speedup", "average write", (1.32, 1.98)),
            (middle, "speedup", "whole benchmark", (1.03, 1.12)),
        ):
            plots.bars(axis, groups, {"hocket": [one[key] for one in sizes.values()]})
            axis.axhspan(low, high, color=plots.PAPER, alpha=0.15, linewidth=0, label="paper")
            axis.axhline(1, color=plots.SOFT, linewidth=0.8)
            axis.margins(y=0.3)
            plots.finish(axis, f"fcfs: {title}", "clients of each", "speedup")
        draw_factors(right, sizes)


def draw_factors(axis, sizes: Results) -> None:
    groups = [f"{int(clients):,}" for clients in sizes]
    series = {"I": [one["interference"] for one in sizes.values()], "C": [one["cost"] for one in sizes.values()]}
    plots.bars(axis, groups, series)
    axis.margins(y=0.3)
    plots.finish(axis, "interference and scheduling cost", "clients of each", "factor")


def make_timeline(_: Options) -> Results:
    results: Results = {}
    for clients in (960, 3840):
        both = [one | {"jitter": JITTER} for one in sior(clients, through_servers=True)]
        whole = scenario(both, server_keys(SERVERS[clients]), coordinator=COORDINATOR)
        keys = ("start_ns", "end_ns", "wait_ns")
        results[str(clients)] = {
            policy: {name: [[phase[key] / 1e9 for key in keys] for phase in phases_of(told, name)] for name in "AB"}
            for policy, (_result, told) in zip(
                POLICIES, simulate([(whole, policy) for policy in POLICIES], traces=True), strict=True
            )
        }
    return results


def judge_timeline(results: Results) -> Finding:
    values, shorter = [], []
    for clients, made in results.items():
        of = {policy: [phase for one in both.values() for phase in one] for policy, both in made.items()}
        mean_s = {policy: mean(end - start for start, end, _ in phases) for policy, phases in of.items()}
        shorter.append(mean_s["fcfs"] < mean_s["none"])
        name = f"{int(clients):,} clients"
        values += [
            Value(f"{name}: writes that wait, fcfs, of 20", "", None, sum(wait > 0.01 for _, _, wait in of["fcfs"])),
            Value(f"{name}: mean write with its wait, unscheduled", "s", None, mean_s["none"]),
            Value(f"{name}: mean write with its wait, fcfs", "s", "shorter", mean_s["fcfs"]),
        ]
    verdict = (
        "Unscheduled, the two stay in step and share each write. Under fcfs the second waits at first, and the two "
        "then alternate. The paper's picture is lost, and the text has no number for it; how long the two keep apart "
        "depends on how much their periods vary, 1 % here."
    )
    return Finding(tuple(values), PARTLY if all(shorter) else DIFFERS, verdict)


def draw_timeline(results: Results, path: Path) -> None:
    rows = [(clients, policy, both) for clients, made in results.items() for policy, both in made.items()]
    with plots.picture(path, 1, len(rows), 1.7) as axes:
        for axis, (clients, policy, both) in zip(axes, rows, strict=True):
            for row, phases in enumerate(both.values()):
                waits = [(start, wait) for start, _, wait in phases if wait > 0]
                writes = [(start + wait, end - start - wait) for start, end, wait in phases]
                axis.broken_barh(writes, (row - 0.35, 0.7), color="#0072b2", label=None if row else "write")
                axis.broken_barh(waits, (row - 0.35, 0.7), color="#d55e00", label=None if row else "waits")
            axis.set_yticks([0, 1], ["A", "B"])
            axis.set_xlim(0, max(end for _, _, all_of in rows for one in all_of.values() for _, end, _ in one) * 1.12)
            named = "without scheduling" if policy == "none" else "fcfs"
            plots.finish(axis, f"{int(clients):,} clients each, {named}", "s", "")


# Figs. 17 to 19


def kernels(first_bytes: float, second_bytes: float, clients: int, compute_s: float, servers: bool) -> list[dict]:
    pairs = zip("AB", (first_bytes, second_bytes), strict=True)
    return [writer(name, clients, each, compute_s, through_servers=servers) for name, each in pairs]


def make_kernels(first_bytes: float, second_bytes: float) -> Results:
    """Both compute as long, so the smaller one has the smaller ratio."""
    first_s = first_bytes / DISKS_BYTES_PER_S
    return {
        "ratios": {
            str(ratio): pair(kernels(first_bytes, second_bytes, PAIR_SIZES[0], first_s / ratio, servers=False))
            for ratio in RATIOS
        },
        "sizes": {str(clients): _through_servers(first_bytes, second_bytes, clients) for clients in PAIR_SIZES},
    }


def _through_servers(first_bytes: float, second_bytes: float, clients: int) -> Results:
    """Return the pair at this size. It computes as long as the ratio of the size says, by the time of a write alone."""
    keys = server_keys(SERVERS[clients])
    alone = kernels(first_bytes, second_bytes, clients, 1.0, servers=True)[:1]
    [(result, _)] = simulate([(scenario(alone, keys, coordinator=COORDINATOR), "none")])
    compute_s = result["applications"][0]["io_s"] / alone[0]["iterations"] / RATIO_OF_SIZE[clients]
    return pair(kernels(first_bytes, second_bytes, clients, compute_s, servers=True), keys)


def judge_kernels(results: Results, mixed: bool) -> Finding:
    ratios, sizes = results["ratios"], results["sizes"]
    every = [*ratios.values(), *sizes.values()]
    best = max(one["write_speedup"] for one in sizes.values())
    whole = max(one["speedup"] for one in sizes.values())
    pays = all((one["write_speedup"] > 1) == (one["interference"] > one["cost"]) for one in every)
    paper = {clients: "about 1" if clients <= 3840 else "more than 1" for clients in PAIR_SIZES}
    none = dict.fromkeys(PAIR_SIZES, None)
    values = (
        Value("best speedup of writes", "", "up to 1.84", best),
        Value("best speedup of the whole", "", "up to 1.25", whole),
        *values_of_sizes(sizes, "write_speedup", "speedup of writes", paper if mixed else none),
        *values_of_sizes(sizes, "interference", "I", none),
        *values_of_sizes(sizes, "cost", "C", none),
        Value("speedup of writes past the servers, ratio of 1", "", "about 1" if mixed else None, at(ratios, 1.0)),
        Value("speedup of writes past the servers, ratio of 2", "", "about 1" if mixed else None, at(ratios, 2.0)),
        Value("scheduling pays where I > C", "", "yes", "yes" if pays else "no"),
    )
    small = [sizes[str(clients)]["write_speedup"] for clients in (960, 1920, 3840)]
    at_most = sizes[str(PAIR_SIZES[-1])]["write_speedup"]
    checks = (
        [pays, all(one < 1.1 for one in small), at_most > max(small)]
        if mixed
        else [pays, best <= 1.84 * 1.1, whole <= 1.25 * 1.1]
    )
    verdict = (
        (
            "The paper finds no gain where I/O takes half as long as computing, or longer. Here the gain past the "
            "servers is largest at 1 to 1.25: kernels of unequal length drift apart below that, and above it whoever "
            "waits does so always. Through servers it is smallest at 1,920 and 3,840 clients, and by far the largest "
            "at 7,680, as in the paper: both kernels have one small request of each client for each server there, so "
            "their writes become alike and meet each time. "
            if mixed
            else "The gain falls once I/O takes longer than computing, since whoever waits then waits in every period. "
            "The paper does not give the ratio of this pair; that of the sizes is taken from VPIC with VORPAL. Two "
            "equal kernels depend on that ratio only, and not on their bytes. "
        )
        + "A target that serves one application at full speed, and two with no loss but sharing, decides it: the "
        "paper's exclusive writes may not have used the whole file system."
    )
    return Finding(values, agreement(checks), verdict)


def at(ratios: Results, ratio: float) -> float:
    return ratios[str(ratio)]["write_speedup"]


def draw_kernels(results: Results, path: Path) -> None:
    ratios, sizes = results["ratios"], results["sizes"]

    def curve(key: str) -> list[tuple[float, float]]:
        return [(float(ratio), one[key]) for ratio, one in ratios.items()]

    with plots.picture(path, 2, 2, 3.2) as (left, right, below_left, below_right):
        plots.lines(left, {"average write": curve("write_speedup"), "application": curve("speedup")})
        left.axhline(1, color=plots.SOFT, linewidth=0.8)
        plots.finish(left, "speedup by fcfs, past the servers", "I/O alone / computing", "")
        plots.lines(right, {"I": curve("interference"), "C": curve("cost")})
        plots.finish(right, "interference and scheduling cost", "I/O alone / computing", "factor")
        groups = [f"{int(clients):,}\nratio {RATIO_OF_SIZE[int(clients)]}" for clients in sizes]
        series = {"average write": "write_speedup", "application": "speedup"}
        plots.bars(below_left, groups, {name: [one[key] for one in sizes.values()] for name, key in series.items()})
        below_left.axhline(1, color=plots.SOFT, linewidth=0.8)
        below_left.margins(y=0.3)
        plots.finish(below_left, "speedup by fcfs, through servers", "clients of each", "")
        draw_factors(below_right, sizes)
