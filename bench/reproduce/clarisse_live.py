"""CLARISSE's Figs. 8 to 13 and 15, live and small: loaded I/O servers, their removal, and what control costs.

The programs are those of `./dev bench elastic` and `./dev bench grant`.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from hocket.errors import HocketError

from reproduce import plots
from reproduce.figure import AGREES, DIFFERS, LIVE, Figure, Finding, Options, Results, Value, agreement

MOST_AFTER = 1.2  # of an operation before the load
OPERATION_S = 1.0  # shortest operation that the paper's bounds are for
MOST_OVERHEAD, MOST_CONTROL, LEAST_SPEEDUP = 0.0002, 0.003, 3.59
LEAST_LOADED = 3.0
UNNOTICED = 1.1
BUSY = (
    "Other work on the machine makes operations longer, but not the delay, so the factor is smaller on a busy machine. "
)


def elastic():
    """Return the module of the benchmark, if what it runs is built."""
    import elastic as module

    for program in (module.PROBE, module.PREFIX / "bin" / "hocket-server"):
        if not program.exists():
            raise HocketError(f"no {program}: run ./dev build")
    return module


def spread(one: Results) -> str:
    """Return a median in milliseconds with its range."""
    return f"{one['median'] * 1e3:.3g} ({one['least'] * 1e3:.3g} to {one['most'] * 1e3:.3g})"


# Fig. 8


def make_load(_: Options) -> Results:
    return elastic().delays()


def loaded(results: Results) -> dict[int, float]:
    """Return how many times as long an operation takes as before the load, by delay."""
    return {int(delay): one["stays"]["median"] / one["before"]["median"] for delay, one in results.items()}


def judge_load(results: Results) -> Finding:
    factors = loaded(results)
    values = tuple(
        value
        for delay, factor in factors.items()
        for value in (
            Value(f"{delay} µs: operation with the loaded server", "ms", None, spread(results[str(delay)]["stays"])),
            Value(f"{delay} µs: … beside before", "", {0: 1, 512: "up to 4"}.get(delay), factor),
        )
    )
    rises = sorted(factors.values()) == list(factors.values())
    checks = [factors[512] >= LEAST_LOADED, factors[0] <= UNNOTICED, rises]
    verdict = (
        f"Each request of one server takes so much longer. It has {requests()} of them in an operation. "
        + ("" if factors[512] >= LEAST_LOADED else BUSY)
        + "The paper notices 16 µs and more."
    )
    return Finding(values, agreement(checks), verdict)


def requests() -> int:
    """Return the requests of an operation at the loaded server."""
    import elastic_runs

    return elastic_runs.Setup().requests()


def draw_load(results: Results, path: Path) -> None:
    with plots.picture(path, 2) as (left, right):
        series = {"before the load": "before", "the loaded server stays": "stays", "after its removal": "after"}
        for number, (label, place) in enumerate(series.items()):
            found = [(place_of, one[place]) for place_of, one in enumerate(results.values()) if one[place]]
            if not found:
                continue
            at, ones = zip(*found, strict=True)
            middle = [one["median"] * 1e3 for one in ones]
            below = [m - one["least"] * 1e3 for m, one in zip(middle, ones, strict=True)]
            above = [one["most"] * 1e3 - m for m, one in zip(middle, ones, strict=True)]
            where = [one + (number - 1) * 0.08 for one in at]
            colour = plots.SERIES[number]
            left.errorbar(where, middle, (below, above), label=label, color=colour, marker="o", capsize=3, linewidth=1)
        left.set_xticks(range(len(results)), results)
        left.set_ylim(bottom=0)
        plots.finish(left, "collective write, median and range of runs", "delay of a request, µs", "ms")
        plots.bars(right, list(results), {"hocket": list(loaded(results).values())})
        plots.paper_line(right, 4, "paper: up to 4 at 512 µs")
        plots.finish(right, "slowdown by the loaded server", "delay of a request, µs", "beside before the load")


# Fig. 9


def make_counts(_: Options) -> Results:
    return elastic().counts()


def judge_counts(results: Results) -> Finding:
    *_, fewer, most = sorted(results, key=int)
    rates = {count: results[most]["median"] / one["median"] for count, one in results.items()}
    values = tuple(
        value
        for count, one in results.items()
        for value in (
            Value(f"{count} servers: operation", "ms", None, spread(one)),
            Value(f"{count} servers: throughput beside {most}", "", None, rates[count]),
        )
    )
    checks = [rates[fewer] >= 0.8, max(rates.values()) > 1.05]
    verdict = (
        f"{fewer} servers instead of {most} cost little, as in the paper. "
        if checks[0]
        else f"{fewer} servers instead of {most} cost more than a fifth, unlike in the paper. "
    ) + "Ranks and servers share two cores here, so fewer servers also mean fewer changes between processes."
    return Finding(values, agreement(checks), verdict)


def draw_counts(results: Results, path: Path) -> None:
    import elastic
    import elastic_runs

    operation_bytes = elastic_runs.RANKS * elastic.COUNTED.kib << 10
    with plots.picture(path, 1) as (axis,):
        for at, one in enumerate(results.values()):
            rates = [operation_bytes / one[key] / 1e6 for key in ("median", "most", "least")]
            axis.bar(at, rates[0], 0.6, color=plots.SERIES[0], label=None if at else "median, and range of runs")
            axis.vlines(at, rates[1], rates[2], color=plots.PAPER, linewidth=1.5)
        axis.set_xticks(range(len(results)), results)
        plots.finish(axis, "collective writes of two ranks", "I/O servers", "MB/s")


# Figs. 10 and 11


def make_elastic(_: Options) -> Results:
    module = elastic()
    [*runs] = module.repeated(module.Setup(), 1, module.was_removed)
    if not runs:
        raise HocketError(
            f"in {module.ATTEMPTS} runs the slow server was not the first one taken out: is it busy here?"
        )
    run = runs[0]
    return {"before": run.before, "slow": run.slow, "after": run.after, "control_s": run.control_s}


def judge_elastic(results: Results) -> Finding:
    before, slow, after = (median(results[key]) for key in ("before", "slow", "after"))
    values = (
        Value("operation with the slow server / after its removal", "", "3.59 to 4.73 (Fig. 11)", slow / after),
        Value("operation after the removal / before the load", "", "about 1", after / before),
        Value("operations until the removal", "", 2, len(results["slow"])),
        Value("operation before the load", "ms", None, before * 1e3),
    )
    checks = [slow / after >= LEAST_SPEEDUP, after / before <= MOST_AFTER]
    verdict = (
        "The slow server is found and taken out. "
        + (
            "The following operations are as fast as before. "
            if after / before <= MOST_AFTER
            else "Other work on this machine hides the rest: operations after it are slower than before the load. "
        )
        + ("" if slow / after >= LEAST_SPEEDUP else BUSY)
        + "hocket counts three reports, 50 ms apart, so operations that are shorter than that are several."
    )
    return Finding(values, agreement(checks), verdict)


def draw_elastic(results: Results, path: Path) -> None:
    with plots.picture(path, 1) as (axis,):
        at = 1
        for number, key in enumerate(("before", "slow", "after")):
            values = results[key]
            label = {"before": "before the load", "slow": "with the slow server", "after": "without it"}[key]
            axis.bar(
                range(at, at + len(values)), [one * 1e3 for one in values], color=plots.SERIES[number], label=label
            )
            at += len(values)
        plots.finish(axis, "collective writes, two ranks and three servers", "operation", "ms")


def make_cost(_: Options) -> Results:
    return elastic().long_operations()


def judge_cost(results: Results) -> Finding:
    share, operation = results["share"], results["operation"]["median"]
    values = (
        Value("operation", "s", "at least 1", operation),
        Value("time at control points of one operation", "ms", None, spread(results["control"])),
        Value("cost: control / operation, median of runs", "", "less than 0.003", share["median"]),
        Value("cost: largest of a run", "", "less than 0.003", share["most"]),
    )
    checks = [share["median"] <= MOST_CONTROL and operation >= OPERATION_S, share["most"] <= MOST_CONTROL]
    verdict = (
        "The paper's definition: the longest time of a process at a control point beside the operation, here the wait "
        "for an uncontended grant. A new map comes with numbers that ranks exchange before each operation anyway, with "
        "servers or without, so it is not in the figure."
    )
    return Finding(values, agreement(checks), verdict)


def draw_cost(results: Results, path: Path) -> None:
    with plots.picture(path, 1) as (axis,):
        one = results["share"]
        names = ["least of the runs", "median", "largest"]
        plots.bars(axis, names, {"hocket": [1e2 * one[key] for key in ("least", "median", "most")]})
        plots.paper_line(axis, 1e2 * MOST_CONTROL, "paper: less than 0.3 %")
        plots.finish(axis, "time at control points beside an operation of at least 1 s", "", "%")


# Figs. 12 and 13


def make_kernel(name: str) -> Results:
    results = elastic().kernel(name)
    if not results["removed"]["runs"]:
        raise HocketError(f"{name}: the slow server was not taken out in any run: is it busy here?")
    return results


def judge_kernel(results: Results, kernel: str) -> Finding:
    stays, removed = results["stays"], results["removed"]
    operation = stays["operation"]["median"] / removed["operation"]["median"]
    whole = stays["whole"]["median"] / removed["whole"]["median"]
    paper = "about 10 at 7,680 clients and more" if kernel == "VPIC" else "substantial"
    values = (
        Value("operation, the loaded server stays", "ms", None, spread(stays["operation"])),
        Value("operation after its removal", "ms", None, spread(removed["operation"])),
        Value("speedup of an operation by the removal", "", paper, operation),
        Value("speedup of the whole", "", None, whole),
        Value("operation with the loaded server / before the load", "", None, operation_factor(stays)),
        Value("runs in which it was taken out", "", None, removed["runs"]),
    )
    checks = [operation > 1.2, whole > 1.0, operation >= (7 if kernel == "VPIC" else 1.5)]
    verdict = (
        f"{kernel} writes through parallel HDF5 and hocket's collective I/O. A time step has few requests for a server "
        "beside the paper's 15,360 clients, so a delay of each costs less. " + BUSY
    )
    return Finding(values, agreement(checks), verdict)


def operation_factor(stays: Results) -> float:
    return stays["operation"]["median"] / stays["before"]["median"]


def draw_kernel(results: Results, kernel: str, path: Path) -> None:
    with plots.picture(path, 2) as axes:
        for axis, key, title, unit, scale in zip(
            axes, ("operation", "whole"), ("a time step", "all time steps"), ("ms", "s"), (1e3, 1.0), strict=True
        ):
            for at, (name, one) in enumerate(results.items()):
                axis.bar(at, one[key]["median"] * scale, 0.6, color=plots.SERIES[at])
                axis.vlines(at, one[key]["least"] * scale, one[key]["most"] * scale, color=plots.PAPER, linewidth=1.5)
                axis.text(at, one[key]["median"] * scale / 2, f"{one[key]['median'] * scale:.3g}", ha="center")
                assert name in ("stays", "removed")
            axis.set_xticks(range(2), ["the loaded server stays", "it is removed"])
            plots.finish(axis, f"{kernel}: {title}, median and range of runs", "", unit)


# Fig. 15


def make_grant(_: Options) -> Results:
    import run

    try:
        lines, _ended_well = run.run("grant", echo=False)
    except OSError as error:
        raise HocketError(f"cannot run bench grant: {error}; run ./dev build") from error
    if not lines:
        raise HocketError("bench grant printed nothing: run ./dev bench grant")
    return {line["case"]: {"value": line["value"], "unit": line["unit"]} for line in lines}


def seconds_of(one: Results) -> float:
    return one["value"] * {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9}[one["unit"]]


def judge_grant(results: Results) -> Finding:
    shares = {case: seconds_of(one) / OPERATION_S for case, one in results.items()}
    values = tuple(
        Value(f"{case}: grant / operation of 1 s", "", "less than 0.0002", share) for case, share in shares.items()
    )
    verdict = (
        "One grant for an operation of 1 s, through a real hocketd over a Unix socket. The paper's clients ask a "
        "controller over the network of a Blue Gene/Q, which is not in these figures."
    )
    return Finding(values, AGREES if max(shares.values()) <= MOST_OVERHEAD else DIFFERS, verdict)


def draw_grant(results: Results, path: Path) -> None:
    with plots.picture(path, 1) as (axis,):
        names = [case.replace(", ", "\n") for case in results]
        plots.bars(axis, names, {"hocket": [1e2 * seconds_of(one) / OPERATION_S for one in results.values()]})
        plots.paper_line(axis, 1e2 * MOST_OVERHEAD, "paper: less than 0.02 %")
        plots.finish(axis, "grant beside an operation of 1 s", "", "%")


HERE = "two ranks and three I/O servers on this machine (./dev bench elastic), in place of thousands"


def _kernel(number: int, kernel: str, program: str) -> Figure:
    return Figure(
        f"clarisse-{number}-live",
        f"Elastic collective I/O, live: {kernel}",
        LIVE,
        f"{program}, {HERE}",
        lambda _: make_kernel(program),
        lambda results: judge_kernel(results, kernel),
        lambda results, path: draw_kernel(results, kernel, path),
    )


FIGURES = (
    Figure("clarisse-8-live", "Server load injection, live", LIVE, HERE, make_load, judge_load, draw_load),
    Figure("clarisse-9-live", "Number of servers, live", LIVE, HERE, make_counts, judge_counts, draw_counts),
    Figure("clarisse-10-live", "Removal of a slow server, live", LIVE, HERE, make_elastic, judge_elastic, draw_elastic),
    Figure("clarisse-11-live", "Cost of control, live", LIVE, HERE, make_cost, judge_cost, draw_cost),
    _kernel(12, "VPIC", "vpic_io"),
    _kernel(13, "VORPAL", "vorpal_io"),
)
