"""CALCioM's Fig. 3: two instances of IOR that write every 10 and every 7 seconds, before a write cache in the servers.

The text has neither volumes nor rates. Each write is that of Fig. 2 (16 MB for each of 336 processes). The cache is
assumed to hold one such write, and to take data five times as fast as the disks of 35 servers do.
"""

from __future__ import annotations

from pathlib import Path

from reproduce import plots
from reproduce.figure import AGREES, PARTLY, Finding, Options, Results, Value
from reproduce.scenarios import Scenario, phases_of, simulate

PROCESSES, WRITE_BYTES = 336, 336 * 16e6
DISKS = 35 * 60e6  # bytes/s
CACHE_RATE = 5 * DISKS
CACHE_BYTES = WRITE_BYTES
PERIODS_S = (10.0, 7.0)  # of computing between two writes
WRITES = 10
STARTS_S = tuple(25.0 + step for step in range(8))  # of B, which the text does not say; the picture has the first
PAPER_SLOW = (4, 5, 8, 9)


def application(name: str, start_s: float, period_s: float, writes: int) -> dict:
    return {
        "name": name,
        "processes": PROCESSES,
        "start_s": start_s,
        "iterations": writes,
        "iterations_per_phase": 1,
        "iteration_s": period_s,
        "io_bytes": WRITE_BYTES,
    }


def make(_: Options) -> Results:
    target = {
        "bandwidth_bytes_per_s": DISKS,
        "write_cache_bytes": CACHE_BYTES,
        "write_cache_bytes_per_s": CACHE_RATE,
    }
    a = application("A", 0.0, PERIODS_S[0], WRITES)
    wanted = [(Scenario(target, [a]), "none")]
    for start_s in STARTS_S:
        b = application("B", start_s, PERIODS_S[1], 2 * WRITES)
        wanted.append((Scenario(target, [a, b]), "none"))
    alone, *together = (throughputs(events) for _, events in simulate(wanted, traces=True))
    return {"alone": alone, "together": dict(zip(map(str, STARTS_S), together, strict=True))}


def throughputs(events: list[dict]) -> list[float]:
    """Return the bytes per second of each write of A."""
    return [WRITE_BYTES / (phase["end_ns"] - phase["start_ns"]) * 1e9 for phase in phases_of(events, "A")]


def slow(writes: list[float], alone: list[float]) -> list[int]:
    """Return the numbers, from 1, of the writes that lose more than a fifth of their throughput."""
    return [number for number, (one, best) in enumerate(zip(writes, alone, strict=True), 1) if one < 0.8 * best]


def judge(results: Results) -> Finding:
    shown = results["together"][str(STARTS_S[0])]
    counts = [len(slow(writes, results["alone"])) for writes in results["together"].values()]
    numbers = slow(shown, results["alone"])
    values = (
        Value("writes of A that lose, of ten", "", len(PAPER_SLOW), len(numbers)),
        Value("which", "", ", ".join(map(str, PAPER_SLOW)), ", ".join(map(str, numbers)) or "none"),
        Value("for other starts of B", "", None, f"{min(counts)} to {max(counts)}"),
        Value("least throughput of a write / alone", "", "drops dramatically", min(shown) / results["alone"][0]),
        Value("alone: throughput / that of the disks", "", "above 1", results["alone"][0] / DISKS),
    )
    good = tuple(numbers) == PAPER_SLOW and min(shown) < 0.6 * results["alone"][0]
    verdict = (
        "Writes that meet fill the cache and fall to the speed of the disks; the others keep the cache's. Which "
        "writes meet depends on when B starts and how long a write takes, which the text does not say; how deep they "
        "fall depends on the assumed cache."
    )
    return Finding(values, AGREES if good else PARTLY, verdict)


def draw(results: Results, path: Path) -> None:
    with plots.picture(path, 2) as axes:
        shown = (("(a) A alone", results["alone"]), ("(b) with B", results["together"][str(STARTS_S[0])]))
        for axis, (title, writes) in zip(axes, shown, strict=True):
            axis.bar(range(1, len(writes) + 1), [one / 1e9 for one in writes], color=plots.SERIES[0])
            plots.paper_line(axis, DISKS / 1e9, "disks")
            axis.set_ylim(0, 1.15 * max(results["alone"]) / 1e9)
            plots.finish(axis, title, "write of A", "GB/s")
