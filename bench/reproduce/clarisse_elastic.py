"""CLARISSE's Figs. 8 to 13 at the paper's scale: one loaded I/O server of 128 to 1,024, and its removal."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

from reproduce import plots
from reproduce.clarisse_scale import (
    DISKS_BYTES_PER_S,
    ELASTIC_SIZES,
    OPERATIONS,
    SERVERS,
    SIOR_BYTES,
    WEAK_BYTES,
    scenario,
    server_keys,
    writer,
)
from reproduce.figure import NEAR, Finding, Options, Results, Value, agreement, near
from reproduce.scenarios import Scenario, phases_of, simulate

DELAYS_US = (0, 8, 16, 32, 64, 128, 256, 512)
MOST_US = DELAYS_US[-1]
COMPUTE_S = 1e-3  # between two operations, which follow each other
LOADED = "s.2"
LOAD_BEFORE = 2  # operations before the load
FOR_GOOD_S = 3600.0  # hold-off: the paper's server does not return
WITHOUT = {"slow_server": 0}  # nobody is taken out
WITH = {"slow_server_hold_off_s": FOR_GOOD_S}


def bytes_of(kernel: str, clients: int) -> float:
    return SIOR_BYTES if kernel == "S-IOR" else WEAK_BYTES[kernel] * clients


def elastic(kernel: str, clients: int, load: list[dict], coordinator: dict, **servers) -> Scenario:
    """Return a scenario of one application, with `servers` as in server_keys()."""
    keys = server_keys(servers.pop("count", SERVERS[clients]), **servers)
    application = writer(kernel, clients, bytes_of(kernel, clients), COMPUTE_S)
    return scenario([application], keys, load=load, coordinator=coordinator)


def operation_s(result: Results) -> float:
    return result["applications"][0]["io_s"] / OPERATIONS


# Fig. 8


def make_load(_: Options) -> Results:
    wanted = {
        (clients, delay): elastic(
            "S-IOR", clients, [{"server": LOADED, "delay_s": delay * 1e-6}] if delay else [], WITHOUT
        )
        for clients in ELASTIC_SIZES
        for delay in DELAYS_US
    }
    made = dict(zip(wanted, simulate([(one, "none") for one in wanted.values()]), strict=True))
    return {
        str(clients): [[delay, operation_s(made[clients, delay][0])] for delay in DELAYS_US]
        for clients in ELASTIC_SIZES
    }


def slowdowns(points: list[list[float]]) -> dict[float, float]:
    return {delay: seconds / points[0][1] for delay, seconds in points}


def judge_load(results: Results) -> Finding:
    factors = {int(clients): slowdowns(points) for clients, points in results.items()}
    first = ELASTIC_SIZES[0]
    worst = max(one[MOST_US] for one in factors.values())
    values = (
        Value("slowdown by 8 µs, 1,920 clients", "", "not noticeable", factors[first][8], calibrated=True),
        Value("slowdown by 16 µs, 1,920 clients", "", "significant", factors[first][16], calibrated=True),
        *(
            Value(f"slowdown by 16 µs, {clients:,} clients", "", "significant", factors[clients][16])
            for clients in ELASTIC_SIZES[1:]
        ),
        *(
            Value(f"slowdown by 512 µs, {clients:,} clients", "", "up to 4", one[MOST_US])
            for clients, one in factors.items()
        ),
    )
    checks = [
        3 <= worst <= 4.4,
        *(one[MOST_US] >= 3 for one in factors.values()),
        *(one[16] >= 1.02 for one in factors.values()),
    ]
    verdict = (
        "One loaded server of 128 slows the whole operation, as its time of a request grows beside the others'. The "
        "number of requests that a server has in an operation decides the sizes: with requests of at most 16 KiB there "
        "are eight for each client at 1,920 clients, two at 3,840, and one from 7,680 on, where a client has less than "
        "16 KiB for a server. The middle sizes have half the requests of the others, and disks hide half of the load. "
        "The paper has about the same loss at all sizes, so its servers had about as many requests at each."
    )
    return Finding(values, agreement(checks), verdict)


def draw_load(results: Results, path: Path) -> None:
    with plots.picture(path, 2) as (left, right):
        seconds = {f"{int(clients):,} clients": points for clients, points in results.items()}
        plots.lines(left, seconds)
        plots.finish(left, "write of 30 GiB, one server loaded", "delay of a request, µs", "s")
        plots.lines(right, {name: list(slowdowns(points).items()) for name, points in seconds.items()})
        plots.paper_line(right, 4, "paper: up to 4 at 512 µs")
        plots.finish(right, "slowdown", "delay of a request, µs", "beside no load")
        for axis in (left, right):
            axis.set_xscale("symlog", base=2, linthresh=8)
            axis.set_xticks(DELAYS_US, map(str, DELAYS_US))
            axis.set_xlim(-2, 600)
            # Sizes with the same times lie on each other.
            for number, line in enumerate(axis.get_lines()[: len(ELASTIC_SIZES)]):
                line.set_markersize(10 - 2 * number)
            axis.set_ylim(bottom=0)


# Fig. 9

REMOVED = (0, 1, 2, 4, 8, 16, 32, 64, 96, 112)  # of 128 servers; in proportion at other sizes


def make_removed(_: Options) -> Results:
    wanted = {
        (clients, removed): elastic("S-IOR", clients, [], WITHOUT, count=SERVERS[clients] * (128 - removed) // 128)
        for clients in ELASTIC_SIZES
        for removed in REMOVED
    }
    made = dict(zip(wanted, simulate([(one, "none") for one in wanted.values()]), strict=True))
    return {
        str(clients): [
            [removed / 128, SIOR_BYTES / operation_s(made[clients, removed][0]) / 1e9] for removed in REMOVED
        ]
        for clients in ELASTIC_SIZES
    }


def judge_removed(results: Results) -> Finding:
    few = 8 / 128
    kept = {
        int(clients): {removed: rate / points[0][1] for removed, rate in points} for clients, points in results.items()
    }
    best = {clients: max(one.values()) for clients, one in kept.items()}
    values = (
        *(
            Value(f"throughput without 6 % of the servers, {clients:,} clients", "", "about 1", one[few])
            for clients, one in kept.items()
        ),
        *(
            Value(f"throughput without half of them, {clients:,} clients", "", None, one[0.5])
            for clients, one in kept.items()
        ),
        Value("best with fewer servers, 15,360 clients", "", "more than 1", best[ELASTIC_SIZES[-1]]),
    )
    checks = [*(one[few] >= 1 - NEAR for one in kept.values()), best[ELASTIC_SIZES[-1]] > 1.01]
    verdict = (
        "A few servers less cost nothing from 3,840 clients on, since the disks are the limit. At 1,920 clients they "
        "cost 5 %: a client sends each of the others nine requests instead of eight. With many clients far fewer "
        "servers would do: a client then sends each of them one larger request. That performance even improves has no "
        "cause here: the paper explains it by contention of many servers at the file system, and the disks of the "
        "simulator give the same rate to any number of servers."
    )
    return Finding(values, agreement(checks), verdict)


def draw_removed(results: Results, path: Path) -> None:
    with plots.picture(path, 1) as (axis,):
        curves = {
            f"{int(clients):,} clients, {SERVERS[int(clients)]:,} servers": [(100 * one, rate) for one, rate in points]
            for clients, points in results.items()
        }
        plots.lines(axis, curves)
        plots.paper_line(axis, DISKS_BYTES_PER_S / 1e9, "the disks")
        axis.set_ylim(bottom=0)
        plots.finish(axis, "aggregate write throughput", "servers removed, %", "GB/s")


# Figs. 10 to 13


def runs(kernel: str, sizes: tuple[int, ...], by_bytes: bool = False) -> Results:
    """Return the seconds of each operation by size, without load, with the loaded server, and with its removal."""
    idle = simulate([(elastic(kernel, clients, [], WITHOUT, by_bytes=by_bytes), "none") for clients in sizes])
    wanted, healthy = [], {}
    for clients, (result, _) in zip(sizes, idle, strict=True):
        healthy[clients] = operation_s(result)
        from_s = LOAD_BEFORE * (healthy[clients] + COMPUTE_S) + COMPUTE_S / 2
        load = [{"server": LOADED, "from_s": from_s, "delay_s": MOST_US * 1e-6}]
        wanted += [(elastic(kernel, clients, load, how, by_bytes=by_bytes), "none") for how in (WITHOUT, WITH)]
    made = iter(simulate(wanted, traces=True))
    results: Results = {}
    for clients in sizes:
        (_, without), (_, told) = next(made), next(made)
        slow = [event["time_ns"] / 1e9 for event in told if event.get("out") == "SLOW_IO_SERVER"]
        starts = [phase["start_ns"] / 1e9 for phase in phases_of(told, kernel)]
        results[str(clients)] = {
            "healthy": healthy[clients],
            "without": seconds_of(without, kernel),
            "with": seconds_of(told, kernel),
            "found_in": sum(start <= slow[0] for start in starts) if slow else 0,
        }
    return results


def seconds_of(told: list[dict], kernel: str) -> list[float]:
    return [phase["io_ns"] / 1e9 for phase in phases_of(told, kernel)]


def gains(one: Results) -> tuple[float, float, float]:
    """Return the speedups of an operation after the removal and of the whole, and of the whole if the server had been
    removed an operation later."""
    after = mean(one["with"][one["found_in"] :])
    slow = mean(one["without"][LOAD_BEFORE:])
    whole = sum(one["without"])
    return slow / after, whole / sum(one["with"]), whole / (sum(one["with"]) + slow - after)


def make_timeline(_: Options) -> Results:
    return runs("S-IOR", (3840, 15360))


def judge_timeline(results: Results) -> Finding:
    values = []
    for clients, one in results.items():
        after = mean(one["with"][one["found_in"] :])
        values += [
            Value(f"{int(clients):,} clients: found slow in operation", "", "3 or 4", one["found_in"]),
            Value(f"{int(clients):,} clients: first operation without it", "", 5, one["found_in"] + 1),
            Value(
                f"{int(clients):,} clients: operation with it / before", "", "up to 4", one["with"][2] / one["healthy"]
            ),
            Value(f"{int(clients):,} clients: operation after it / before", "", "about 1", after / one["healthy"]),
        ]
    checks = [
        *(one["found_in"] == 4 for one in results.values()),
        *(mean(one["with"][one["found_in"] :]) <= 1.05 * one["healthy"] for one in results.values()),
    ]
    verdict = (
        "The server is slow from the third operation on, is taken out, and the operations after it are as before. "
        "hocket finds it an operation earlier: its servers report every 50 ms, so three reports come early in the "
        "third operation, and the fourth begins in a new epoch. The paper's monitor reports after the third."
    )
    return Finding(tuple(values), agreement(checks), verdict)


def draw_timeline(results: Results, path: Path) -> None:
    with plots.picture(path, len(results)) as axes:
        for axis, (clients, one) in zip(axes, results.items(), strict=True):
            numbers = [str(number) for number in range(1, OPERATIONS + 1)]
            series = {
                "server stays": [SIOR_BYTES / seconds / 1e9 for seconds in one["without"]],
                "server is removed": [SIOR_BYTES / seconds / 1e9 for seconds in one["with"]],
            }
            plots.bars(axis, numbers, series, numbers=False)
            axis.axvline(LOAD_BEFORE - 0.5, color=plots.PAPER, linewidth=1, linestyle="dotted", label="load begins")
            axis.set_ylim(top=1.45 * DISKS_BYTES_PER_S / 1e9)
            plots.finish(axis, f"S-IOR, {int(clients):,} clients", "operation", "GB/s")


def make_elastic(kernel: str) -> Results:
    return {"by request": runs(kernel, ELASTIC_SIZES), "by bytes": runs(kernel, ELASTIC_SIZES, by_bytes=True)}


# The paper says this of the speedup of an operation and of the whole: least and most; None: no number.
PAPER_GAINS = {"S-IOR": ((3.59, 4.73), (1.88, 2.20)), "VPIC": (None, None), "VORPAL": (None, None)}
ORDER_OF_MAGNITUDE = 10.0  # VPIC's operations at 7,680 and 15,360 clients


def within(ours: float, paper: tuple[float, float]) -> bool:
    """Return whether a value is in the paper's range, or as near to it as a value that agrees."""
    return paper[0] * (1 - NEAR) <= ours <= paper[1] * (1 + NEAR)


def judge_elastic(results: Results, kernel: str) -> Finding:
    of_operation, of_whole = PAPER_GAINS[kernel]
    values, checks = [], []
    for clients in ELASTIC_SIZES:
        operation, whole, later = gains(results["by request"][str(clients)])
        by_bytes = gains(results["by bytes"][str(clients)])[0]
        text = f"{of_operation[0]} to {of_operation[1]}" if of_operation else "substantial"
        if kernel == "VPIC" and clients >= 7680:
            text = "about 10"
            checks.append(near(operation, ORDER_OF_MAGNITUDE, 0.3))
        elif of_operation:
            checks.append(within(operation, of_operation))
        else:
            checks.append(operation >= 1.5)
        name = f"{clients:,} clients"
        values += [
            Value(f"{name}: speedup of an operation", "", text, operation),
            Value(f"{name}: … handling in proportion to bytes", "", text, by_bytes),
        ]
        told = f"{of_whole[0]:.2f} to {of_whole[1]:.2f}" if of_whole else None
        values.append(Value(f"{name}: speedup of the whole", "", told, whole))
        if of_whole:
            values.append(Value(f"{name}: … removed an operation later", "", told, later))
            checks.append(within(whole, of_whole))
    return Finding(tuple(values), agreement(checks), VERDICTS[kernel])


VERDICTS = {
    "S-IOR": (
        "The removal pays at each size. At the middle sizes it pays less than in the paper, because a server has half "
        "as many requests there as at the others (clarisse-8). The whole gains more than in the paper where an "
        "operation gains as much, because hocket's server is out an operation earlier. The cost of the control plane "
        "is not simulated, as messages take no time there: clarisse-11-live measures it."
    ),
    "VPIC": (
        "The removal pays at each size, but by a factor of 4, not of 10. What decides is the time of a request without "
        "load: a client has 0.5 to 4 KB for a server, which here take as long to handle as 16 KiB. If handling takes "
        "time in proportion to bytes, the gain is the paper's order of magnitude."
    ),
    "VORPAL": (
        "The removal pays at each size. The paper calls it substantial, without a number. As for VPIC, the time of a "
        "small request without load decides how much it pays."
    ),
}


def draw_elastic(results: Results, kernel: str, path: Path) -> None:
    with plots.picture(path, 2) as (left, right):
        groups = [f"{clients:,}" for clients in ELASTIC_SIZES]
        made = {name: [gains(sizes[str(clients)]) for clients in ELASTIC_SIZES] for name, sizes in results.items()}
        for axis, place, title in (
            (left, 0, "an operation after the removal"),
            (right, 1, "the whole, ten operations"),
        ):
            series = {f"handling {name}": [one[place] for one in each] for name, each in made.items()}
            plots.bars(axis, groups, series)
            paper = PAPER_GAINS[kernel][place]
            if paper:
                axis.axhspan(*paper, color=plots.PAPER, alpha=0.15, linewidth=0, label="paper")
            elif kernel == "VPIC" and place == 0:
                axis.hlines(ORDER_OF_MAGNITUDE, 1.5, 3.5, color=plots.PAPER, linewidth=2, label="paper: about 10")
            axis.margins(y=0.3)
            plots.finish(axis, f"{kernel}: speedup of {title}", "clients", "beside the loaded server")
