"""CALCioM's Fig. 8: strided collective buffering, where a round exchanges data before it writes them.

Two applications of 2,048 processes write 16 MB each in rounds. Only writing contends for the target. The share of the
exchange in a round alone is assumed.
"""

from __future__ import annotations

from pathlib import Path

from reproduce import plots
from reproduce.figure import AGREES, DIFFERS, Finding, Options, Results, Value
from reproduce.scenarios import Scenario, simulate

PROCESSES, BLOCKS, BLOCK_BYTES = 2048, 16, 1e6
BANDWIDTH = 1e9
EXCHANGE = 0.3  # of a round alone; an assumption
POLICIES = ("interfere", "fcfs")
COMPUTE_S = 100.0
SHARES = tuple(step / 10 for step in range(-10, 11))  # dt / time alone


def round_s() -> tuple[float, float]:
    """Return the seconds of the exchange and of the write of a round alone."""
    write_s = PROCESSES * BLOCK_BYTES / BANDWIDTH
    return write_s * EXCHANGE / (1 - EXCHANGE), write_s


def application(name: str, start_s: float) -> dict:
    exchange_s, _ = round_s()
    phase = {
        "io_bytes": PROCESSES * BLOCKS * BLOCK_BYTES,
        "gap_s": exchange_s,
        "operations": BLOCKS,
        "operation_gap_s": exchange_s,
    }
    return {
        "name": name,
        "processes": PROCESSES,
        "start_s": start_s,
        "iterations": 1,
        "iterations_per_phase": 1,
        "iteration_s": COMPUTE_S,
        "phases": [phase],
        "phase_gap_s": 2 * exchange_s,
    }


def make(_: Options) -> Results:
    alone_s = BLOCKS * sum(round_s())
    target = {"bandwidth_bytes_per_s": BANDWIDTH}
    # hocketd's idle hold keeps the target for the next round, so fcfs serialises whole accesses.
    coordinator = {"linger_s": 2 * round_s()[0]}
    wanted = {}
    for policy in POLICIES:
        for share in SHARES:
            dt_s = share * alone_s
            both = [application("A", max(0.0, -dt_s)), application("B", max(0.0, dt_s))]
            wanted[policy, dt_s] = (Scenario(target, both, coordinator=coordinator), policy)
    made = dict(zip(wanted, simulate(list(wanted.values())), strict=True))
    points: dict[str, list[dict]] = {policy: [] for policy in POLICIES}
    for (policy, dt_s), (result, _events) in made.items():
        a, b = ({"write_s": one["io_s"] + one["wait_s"]} for one in result["applications"])
        points[policy].append({"dt_s": dt_s, "a": a, "b": b})
    exchange_s, write_s = (BLOCKS * each for each in round_s())
    return {"exchange_s": exchange_s, "write_s": write_s, "points": points}


def factor(results: Results, write_s: float) -> float:
    return (results["exchange_s"] + write_s) / (results["exchange_s"] + results["write_s"])


def worst(results: Results, policy: str, name: str) -> float:
    return max(factor(results, point[name]["write_s"]) for point in results["points"][policy])


def judge(results: Results) -> Finding:
    interfere, fcfs = (worst(results, policy, "b") for policy in POLICIES)
    write = max(point["b"]["write_s"] for point in results["points"]["interfere"]) / results["write_s"]
    values = (
        Value("B's largest factor, interfere", "", "less than fcfs", interfere),
        Value("B's largest factor, fcfs", "", "more", fcfs),
        Value("write time beside alone, interfere, at most", "", "most impacted", write),
        Value("exchange time beside alone", "", "almost 1", 1.0),
    )
    verdict = (
        "Serialising whole accesses makes B wait for A's exchanges too, in which the target is idle; interfering "
        f"overlaps them with writes. The exchange is assumed to take {EXCHANGE:.0%} of a round and never to be "
        "disturbed, so its factor of 1 is an assumption, not a result."
    )
    return Finding(values, AGREES if fcfs > interfere * 1.02 else DIFFERS, verdict)


def draw(results: Results, path: Path) -> None:
    def curve(policy: str, name: str) -> list[tuple[float, float]]:
        return [(one["dt_s"], results["exchange_s"] + one[name]["write_s"]) for one in results["points"][policy]]

    with plots.picture(path, 2) as (left, right):
        plots.lines(left, {f"B, {policy}": curve(policy, "b") for policy in POLICIES})
        left.plot(*zip(*curve("fcfs", "a"), strict=True), color=plots.PAPER, linewidth=1, label="A, fcfs")
        left.set_ylim(0)
        plots.finish(left, "(a) time of the access", "B starts so many seconds after A", "s")
        writes = [(one["dt_s"], one["b"]["write_s"]) for one in results["points"]["interfere"]]
        exchanges = [(dt_s, results["exchange_s"]) for dt_s, _ in writes]
        plots.lines(right, {"write": writes, "exchange": exchanges})
        right.set_ylim(0)
        plots.finish(right, "(b) the two parts of B, interfering", "B starts so many seconds after A", "s")
