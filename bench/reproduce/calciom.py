"""CALCioM: interference, first come first served, interruption, and the dynamic choice between two applications.

Figs. 6 and 9 are calibrated on one figure: 24 of 768 processes take 14 times as long beside the other 744. On a target
that is shared in proportion to processes, a full load of its own would give them 768 / 24 = 32. So 24 processes alone
must be limited to 14 / 32 of the target: a process of Grid'5000 can use `PROCESS_SHARE` of it. Fig. 4 has the same
limit, without a calibration of its own. Bandwidths are choices; they scale all times, and no factor depends on them.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hocket.delta.simulated import FILE, ROUND

from reproduce import calciom_cache, calciom_jobs, calciom_live, calciom_rounds, plots
from reproduce.delta_graphs import alone_s, at, curve, graph, most, spec, spread
from reproduce.figure import (
    AGREES,
    DIFFERS,
    FORMULA,
    LIVE,
    PARTLY,
    SIMULATOR,
    Figure,
    Finding,
    Options,
    Results,
    Value,
    drawing,
)

CORES, SMALL, PAPER_FACTOR = 768, 24, 14.0
PROCESS_SHARE = PAPER_FACTOR * SMALL / CORES / SMALL  # of the target, for one process alone
GRID_BANDWIDTH = 0.6e9  # 12 servers with local disks
SURVEYOR_BANDWIDTH = 1e9  # 4 servers
SPLITS = (24, 48, 96, 192, 384)  # processes of B
LIMITED = 0.7  # of Surveyor's file system, for 1,024 processes
INTERFERE, FCFS, INTERRUPT, DYNAMIC = "interfere", "fcfs", "interrupt", "dynamic"
DT = "B starts so many seconds after A"
FACTOR = "interference factor"


def grid_spec(processes: int, mb_per_process: float):
    """Return an application on Grid'5000, where a process cannot use more than its share."""
    limit = processes * PROCESS_SHARE * GRID_BANDWIDTH
    return spec(processes, mb_per_process, most_bytes_per_s=limit if limit < GRID_BANDWIDTH else 0.0)


def whole_range(specs, bandwidth: float, count: int) -> list[float]:
    """Return dts at which the two phases meet in every way: from before B's end to after A's."""
    a_s, b_s = (alone_s(one, bandwidth) for one in specs)
    return sorted({*spread(-1.1 * b_s, 1.1 * a_s, count), 0.0})


# Fig. 2


def make_equal(_: Options) -> Results:
    specs = [spec(336, 16), spec(336, 16)]
    return {"graph": graph(specs, GRID_BANDWIDTH, [INTERFERE], whole_range(specs, GRID_BANDWIDTH, 25))}


def judge_equal(results: Results) -> Finding:
    made = results["graph"]
    a_s = made["alone_s"][0]
    values = (
        Value("A's factor at dt = 0, expected", "", 2.0, at(made, INTERFERE, 0, "a")),
        Value("B's factor at dt = 0, expected", "", 2.0, at(made, INTERFERE, 0, "b")),
        Value(
            "A's factor less B's at dt = T_A / 2",
            "",
            "negative",
            at(made, INTERFERE, a_s / 2, "a") - at(made, INTERFERE, a_s / 2, "b"),
        ),
    )
    verdict = (
        "The shape is the paper's expected piecewise linear one. The paper measured that the first to arrive is "
        "favoured; here both lose the same. The assumption that decides it is how servers order requests: the "
        "simulator shares in proportion from the first byte on, while requests in queues favour who is ahead."
    )
    return Finding(values, PARTLY, verdict)


def draw_equal(results: Results, path: Path) -> None:
    made = results["graph"]
    with plots.picture(path, 2) as (left, right):
        plots.lines(left, {"A": curve(made, INTERFERE, "a_s"), "B": curve(made, INTERFERE, "b_s")})
        plots.finish(left, "2 x 336 processes, 16 MB each", DT, "I/O time, s")
        plots.lines(right, {"A": curve(made, INTERFERE, "a"), "B": curve(made, INTERFERE, "b")})
        plots.finish(right, "the same, beside alone", DT, FACTOR)


# Fig. 4


def make_small_beside_big(_: Options) -> Results:
    sizes = (8, 16, 32, 64, 128, 336)
    made = {}
    for size in sizes:
        specs = [grid_spec(336, 16), grid_spec(size, 16)]
        found = graph(specs, GRID_BANDWIDTH, [INTERFERE], [0.0])
        beside = specs[1].bytes / at(found, INTERFERE, 0, "b_s")
        made[str(size)] = {"alone": specs[1].bytes / found["alone_s"][1], "beside": beside}
    return {"throughput": made}


def judge_small_beside_big(results: Results) -> Finding:
    least = results["throughput"]["8"]
    loss = least["alone"] / least["beside"]
    values = (Value("loss of throughput, 8 processes beside 336", "x", 6.0, loss),)
    verdict = (
        "The limit of a process is the one that Fig. 6's factor of 14 gives, on another cluster with other servers. "
        "Without that limit the loss would be 344 / 8 = 43; with equal shares for both applications it would be small."
    )
    return Finding(values, AGREES if abs(loss - 6) <= 0.6 else DIFFERS, verdict)


def draw_small_beside_big(results: Results, path: Path) -> None:
    made = results["throughput"]
    with plots.picture(path, 1) as (axis,):
        values = {
            "B alone": [one["alone"] / 1e6 for one in made.values()],
            "B beside A on 336": [one["beside"] / 1e6 for one in made.values()],
        }
        plots.bars(axis, list(made), values)
        plots.finish(axis, "throughput of B", "processes of B", "MB/s")


# Figs. 6 and 9


def make_splits(policies: list[str]) -> Results:
    made = {}
    for small in SPLITS:
        specs = [grid_spec(CORES - small, 8), grid_spec(small, 8)]
        made[str(small)] = graph(specs, GRID_BANDWIDTH, policies, whole_range(specs, GRID_BANDWIDTH, 29))
    return {"splits": made}


def judge_interference(results: Results) -> Finding:
    splits = results["splits"]
    values = [
        Value(
            f"B on {small} beside A on {CORES - int(small)}: B's largest factor",
            "",
            PAPER_FACTOR if int(small) == SMALL else None,
            most(made, INTERFERE, "b"),
            calibrated=int(small) == SMALL,
        )
        for small, made in splits.items()
    ]
    values.append(Value("A's largest factor beside 24 processes", "", "about 1", most(splits["24"], INTERFERE, "a")))
    verdict = (
        f"One parameter is calibrated: a process can use {PROCESS_SHARE:.2%} of the target. That the small application "
        "loses and the large one does not follows from sharing in proportion to processes. By this limit 48 processes "
        "lose as much as 24, because neither fills the target alone, while the text names 24 alone; it has no numbers "
        "for the other splits. Fig. 4 tests the same limit without a calibration."
    )
    return Finding(tuple(values), PARTLY, verdict)


def draw_interference(results: Results, path: Path) -> None:
    with plots.picture(path, 2) as axes:
        for axis, key, name in zip(axes, "ab", ("A, the large one", "B, the small one"), strict=True):
            curves = {
                f"{CORES - int(b)} / {b}": _relative(made, INTERFERE, key) for b, made in results["splits"].items()
            }
            plots.lines(axis, curves, 3)
            plots.finish(axis, name, "dt / time of A alone", FACTOR)


def _relative(made, policy: str, key: str) -> list[tuple[float, float]]:
    return [(dt_s / made["alone_s"][0], value) for dt_s, value in curve(made, policy, key)]


def judge_policies(results: Results) -> Finding:
    small, equal = results["splits"]["24"], results["splits"]["384"]
    cost = {policy: _worst_sum(equal, policy) for policy in (INTERFERE, FCFS, INTERRUPT)}
    values = (
        Value("24 beside 744, B's largest factor, interfere", "", PAPER_FACTOR, most(small, INTERFERE, "b"), True),
        Value("the same, fcfs", "", "very bad", most(small, FCFS, "b", 0)),
        Value("the same, interrupt", "", "about 1", most(small, INTERRUPT, "b", 0)),
        Value("A's largest factor, interrupt", "", "negligible cost", most(small, INTERRUPT, "a", 0)),
        Value("384 beside 384, A's largest factor, interrupt", "", "very bad", most(equal, INTERRUPT, "a", 0)),
        Value("the same, sum of factors at its worst: interfere", "", None, cost[INTERFERE]),
        Value("the same, fcfs", "", "less than interfere", cost[FCFS]),
    )
    good = (
        values[2].ours < 1.2
        and values[3].ours < 1.2
        and most(small, FCFS, "b", 0) > 10
        and cost[FCFS] < cost[INTERFERE]
    )
    verdict = (
        "Interruption frees the small application at almost no cost to the large one; first come, first served "
        "punishes it as much as interference does; at equal sizes fcfs costs less than interference and interruption "
        "gains nothing. Interruption at any byte is assumed (the paper: between atomic writes of collective buffering)."
    )
    return Finding(values, AGREES if good else DIFFERS, verdict)


def _worst_sum(made, policy: str) -> float:
    return max(point["a"] + point["b"] for point in made["points"][policy])


def draw_policies(results: Results, path: Path) -> None:
    splits = results["splits"]
    with plots.picture(path, len(splits), 2, 3.0) as axes:
        for column, (small, made) in enumerate(splits.items()):
            for row, key in enumerate("ab"):
                axis = axes[row * len(splits) + column]
                plots.lines(axis, {policy: _relative(made, policy, key) for policy in made["points"]}, 2.5)
                size = CORES - int(small) if key == "a" else small
                plots.finish(
                    axis,
                    f"{key.upper()} on {size}",
                    "dt / T_A" if row else "",
                    "" if column else FACTOR,
                    not column and not row,
                )


# Figs. 7 and 12


def surveyor_specs(processes: int, limited: bool):
    limit = LIMITED * SURVEYOR_BANDWIDTH if limited else 0.0
    return [spec(processes, 32, most_bytes_per_s=limit), spec(processes, 32, most_bytes_per_s=limit)]


def make_two_sizes(_: Options) -> Results:
    made = {}
    for name, processes, limited in (("large", 2048, False), ("small", 1024, True)):
        specs = surveyor_specs(processes, limited)
        dts = whole_range(specs, SURVEYOR_BANDWIDTH, 25)
        made[name] = graph(specs, SURVEYOR_BANDWIDTH, [INTERFERE, FCFS], dts)
    return made


def judge_two_sizes(results: Results) -> Finding:
    def sums(name: str, policy: str) -> float:
        return at(results[name], policy, 0, "a") + at(results[name], policy, 0, "b")

    values = (
        Value("2 x 2048, dt = 0, B's factor, interfere", "", None, at(results["large"], INTERFERE, 0, "b")),
        Value("2 x 2048, dt = 0, B's factor, fcfs", "", "as interfering", at(results["large"], FCFS, 0, "b")),
        Value("2 x 2048, A's factor, fcfs, dt ≥ 0", "", 1.0, at(results["large"], FCFS, 0, "a")),
        Value("2 x 1024, dt = 0, B's factor, interfere", "", "low", at(results["small"], INTERFERE, 0, "b")),
        Value("2 x 1024, sum of factors at dt = 0, interfere", "", "less than fcfs", sums("small", INTERFERE)),
        Value("2 x 1024, sum of factors at dt = 0, fcfs", "", None, sums("small", FCFS)),
    )
    good = sums("small", INTERFERE) < sums("small", FCFS) and sums("large", FCFS) < sums("large", INTERFERE)
    verdict = (
        f"Two applications that fill the target gain from taking turns; two that do not lose by it. 1,024 processes "
        f"are assumed to use {LIMITED:.0%} of the target alone, as the text has no number: below 75 % interference "
        "costs less than serialisation, above it more."
    )
    return Finding(values, AGREES if good else DIFFERS, verdict)


def draw_two_sizes(results: Results, path: Path) -> None:
    with plots.picture(path, 2) as axes:
        for axis, made, title in zip(axes, results.values(), ("(a) 2 x 2048", "(b) 2 x 1024"), strict=True):
            plots.lines(axis, {f"B, {policy}": curve(made, policy, "b_s") for policy in made["points"]}, 3)
            axis.plot(*zip(*curve(made, FCFS, "a_s"), strict=True), color=plots.PAPER, linewidth=1, label="A, fcfs")
            plots.finish(axis, f"{title} processes, 32 MB each", DT, "I/O time, s")


def make_delays(_: Options) -> Results:
    specs = surveyor_specs(1024, limited=True)
    alone = alone_s(specs[0], SURVEYOR_BANDWIDTH)
    return {"graph": graph(specs, SURVEYOR_BANDWIDTH, [INTERFERE], spread(0, alone, 21))}


def delay_costs(made) -> list[tuple[float, float, float]]:
    """Return, for each delay of B, the times of A and B. Both want to begin at 0; B's time contains its delay."""
    return [(point["dt_s"], point["a_s"], point["dt_s"] + point["b_s"]) for point in made["points"][INTERFERE]]


def judge_delays(results: Results) -> Finding:
    costs = delay_costs(results["graph"])
    alone = results["graph"]["alone_s"][0]
    best = min(costs, key=lambda one: one[1] + one[2])
    values = (
        Value("best delay / time alone, for the sum of times", "", "between 0 and 1", best[0] / alone),
        Value("sum of times / time alone, no delay", "", None, (costs[0][1] + costs[0][2]) / alone),
        Value("the same, fully serialised", "", "more", (costs[-1][1] + costs[-1][2]) / alone),
    )
    inside = 0 < best[0] < alone
    verdict = (
        "Serialising costs more than interfering, as in the paper. A delay in between is never best here: while both "
        "write, the target does the same work per second whatever the overlap, so the sum of times changes linearly "
        "with the delay. A gain from a slight delay needs interference that grows faster than the overlap."
    )
    return Finding(values, AGREES if inside else PARTLY, verdict)


def draw_delays(results: Results, path: Path) -> None:
    costs = delay_costs(results["graph"])
    with plots.picture(path, 1) as (axis,):
        series = {
            "A": [(delay, a) for delay, a, _ in costs],
            "B, with its delay": [(delay, b) for delay, _, b in costs],
            "both": [(delay, a + b) for delay, a, b in costs],
        }
        plots.lines(axis, series)
        axis.set_ylim(0)
        plots.finish(axis, "2 x 1024 processes, B delayed", "delay of B, s", "I/O time, s")


# Figs. 10 and 11

FOUR = (INTERFERE, FCFS, INTERRUPT, DYNAMIC)
A_FILES = 4  # of A; B writes one


def make_four_files(_: Options) -> Results:
    specs = [spec(2048, 4 * A_FILES, files=A_FILES), spec(2048, 4)]
    dts = whole_range(specs, SURVEYOR_BANDWIDTH, 61)
    return {grain: graph(specs, SURVEYOR_BANDWIDTH, FOUR, dts, grain) for grain in (ROUND, FILE)}


def teeth(made) -> int:
    """Return how often B's time under interruption jumps up while A writes: the teeth of the saw."""
    within = [point["b_s"] for point in made["points"][INTERRUPT] if 0 <= point["dt_s"] < made["alone_s"][0]]
    step = 0.1 * made["alone_s"][1]
    return sum(after > before + step for before, after in pairwise(within))


def judge_four_files(results: Results) -> Finding:
    by_round, by_file = results[ROUND], results[FILE]
    mean_file = _mean_of_b(by_file)
    values = (
        Value("B's largest factor, interrupt between rounds", "", "about 1", most(by_round, INTERRUPT, "b", 0)),
        Value("B's largest factor, interrupt between files", "", "the saw", most(by_file, INTERRUPT, "b", 0)),
        Value("B's mean factor, interrupt between files", "", None, mean_file),
        Value("teeth of the saw", "", "a saw", teeth(by_file)),
        Value("B's largest factor, fcfs", "", None, most(by_round, FCFS, "b", 0)),
        Value("A's largest factor, interrupt", "", None, most(by_round, INTERRUPT, "a", 0)),
    )
    good = most(by_round, INTERRUPT, "b", 0) < 1.1 and teeth(by_file) == A_FILES
    verdict = (
        "Between files A finishes the file that it writes, so B's time is a saw with a tooth for each file; between "
        "rounds B does not wait. If B starts first (dt < 0), A interrupts it under this policy. Files are assumed to "
        "take the same time and a round none, which is what the shape rests on."
    )
    return Finding(values, AGREES if good else DIFFERS, verdict)


def _mean_of_b(made) -> float:
    within = [point["b"] for point in made["points"][INTERRUPT] if 0 <= point["dt_s"] < made["alone_s"][0]]
    return sum(within) / len(within)


def draw_four_files(results: Results, path: Path) -> None:
    with plots.picture(path, 2, 2, 3.2) as axes:
        for row, (grain, made) in enumerate(results.items()):
            for column, key in enumerate("ab"):
                axis = axes[2 * row + column]
                plots.lines(axis, {policy: curve(made, policy, key) for policy in FOUR}, 3)
                title = f"{'A, four files' if key == 'a' else 'B, one file'}; stops between {grain}s"
                plots.finish(axis, title, DT if row else "", FACTOR, not row and not column)


def make_choice(_: Options) -> Results:
    specs = [spec(2048, 4 * A_FILES, files=A_FILES), spec(2048, 4)]
    a_s = alone_s(specs[0], SURVEYOR_BANDWIDTH)
    dts = spread(-0.2 * a_s, 1.05 * a_s, 101)
    return {"graph": graph(specs, SURVEYOR_BANDWIDTH, (INTERFERE, DYNAMIC), dts)}


def wasted(made, policy: str) -> list[tuple[float, float]]:
    """Return f / cores by dt: the I/O seconds of all cores, per core. Both applications have the same size."""
    return [(point["dt_s"], (point["a_s"] + point["b_s"]) / 2) for point in made["points"][policy]]


def judge_choice(results: Results) -> Finding:
    made = results["graph"]
    a_s, b_s = made["alone_s"]
    stopped = [point["dt_s"] for point in made["points"][DYNAMIC] if point["stops"] and point["dt_s"] >= 0]
    switch = max(stopped, default=0.0) / a_s
    pairs = list(zip(wasted(made, DYNAMIC), wasted(made, INTERFERE), strict=True))
    worst = max(ours / theirs for (_, ours), (_, theirs) in pairs)
    best = min(ours / theirs for (_, ours), (_, theirs) in pairs)
    values = (
        Value("last dt at which A is interrupted / T_A", "", (a_s - b_s) / a_s, switch),
        Value("f of dynamic / f of interference, at worst", "", "never above 1", worst),
        Value("the same, at best", "", None, best),
    )
    good = abs(switch - (a_s - b_s) / a_s) <= 0.02 and worst <= 1.001
    verdict = (
        "hocketd's dynamic policy knows nothing of the paper's formula. It compares the metric cpu-time of each "
        "choice, and so interrupts A until dt = T_A - T_B and serialises B after that, as the paper derives."
    )
    return Finding(values, AGREES if good else DIFFERS, verdict)


def draw_choice(results: Results, path: Path) -> None:
    made = results["graph"]
    a_s, b_s = made["alone_s"]
    with plots.picture(path, 1) as (axis,):
        plots.lines(axis, {policy: wasted(made, policy) for policy in (INTERFERE, DYNAMIC)}, 3)
        axis.axvline(a_s - b_s, color=plots.PAPER, linewidth=1, linestyle="dotted", label="paper: T_A - T_B")
        axis.set_ylim(0)
        plots.finish(axis, "seconds of I/O per core (f / cores)", DT, "s")


FIGURES = (
    Figure(
        "calciom-1",
        "Job sizes, concurrent jobs, and P(another is doing I/O)",
        FORMULA,
        "a log of jobs (--swf FILE); without it a made-up one",
        calciom_jobs.make,
        calciom_jobs.judge,
        calciom_jobs.draw,
    ),
    Figure(
        "calciom-2",
        "Δ-graph of two equal applications, 2 x 336",
        SIMULATOR,
        "nothing more",
        make_equal,
        judge_equal,
        draw_equal,
    ),
    Figure(
        "calciom-3",
        "Two periodic writers and a cache",
        SIMULATOR,
        "a write cache of a target",
        calciom_cache.make,
        calciom_cache.judge,
        calciom_cache.draw,
    ),
    Figure(
        "calciom-4",
        "Throughput of a small application beside a large one",
        SIMULATOR,
        "the limit of Fig. 6",
        make_small_beside_big,
        judge_small_beside_big,
        draw_small_beside_big,
    ),
    drawing("calciom-5", "The three policies", "`hocket report` of live runs; docs/coordinate.md"),
    Figure(
        "calciom-6",
        "Interference of five splits of 768 cores",
        SIMULATOR,
        "a calibration: I = 14 at 24/744",
        lambda _: make_splits([INTERFERE]),
        judge_interference,
        draw_interference,
    ),
    Figure(
        "calciom-7",
        "Interfering or serialised, large and small",
        SIMULATOR,
        "an assumed limit of 1,024 processes",
        make_two_sizes,
        judge_two_sizes,
        draw_two_sizes,
    ),
    Figure(
        "calciom-8",
        "Collective buffering: exchange and write",
        SIMULATOR,
        "an assumed share of the exchange",
        calciom_rounds.make,
        calciom_rounds.judge,
        calciom_rounds.draw,
    ),
    Figure(
        "calciom-9",
        "Three policies at five splits of 768 cores",
        SIMULATOR,
        "Fig. 6's calibration",
        lambda _: make_splits([INTERFERE, FCFS, INTERRUPT]),
        judge_policies,
        draw_policies,
    ),
    Figure(
        "calciom-10",
        "Four files beside one: between rounds and files",
        SIMULATOR,
        "nothing more",
        make_four_files,
        judge_four_files,
        draw_four_files,
    ),
    Figure(
        "calciom-11",
        "The dynamic choice beside interference, A = 4 x B",
        SIMULATOR,
        "nothing more",
        make_choice,
        judge_choice,
        draw_choice,
    ),
    Figure(
        "calciom-live",
        "Figs. 10 and 11, live: four real files in steps beside one",
        LIVE,
        "two MPI programs on this machine, on a target of 40 MB/s; some minutes",
        calciom_live.make_four_files,
        calciom_live.judge_four_files,
        calciom_live.draw_four_files,
    ),
    Figure(
        "calciom-12",
        "Low interference, and a delay",
        SIMULATOR,
        "an assumed limit of 1,024 processes",
        make_delays,
        judge_delays,
        draw_delays,
    ),
)
