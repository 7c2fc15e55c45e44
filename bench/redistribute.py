"""Redistribution of 1 GiB beside a bare MPI_Alltoallv of the same intervals (bench/README.md, "redistribute").

It prints one JSON object a line (bench/run.py). Bounds hold for the default, p2p blocking; the other methods are shown.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path

import figures

BUILD = Path(__file__).resolve().parent.parent / "build" / "release" / "bench"
REPETITIONS = 9
report = partial(figures.report, "redistribute")
LIMIT_S = 1800
DEFAULT = "p2p blocking"
SPEED = 1 / 1.1  # least speed relative to the bare call: at most 1.1 times its time
MEMORY_MIB = 64  # most memory above the arrays before and after
SLOWDOWN = 1.15  # most time relative to an iteration beside copying threads


def start(worlds: str, processes: int, arguments: list[str]) -> str:
    """Run the program and return its output. Spawned processes are worlds of one process each."""
    first = 1 if worlds == "many" else processes
    command = ["mpiexec", "-n", str(first), str(BUILD / "redistribute-mpich"), worlds, *arguments]
    environment = os.environ | {"MPIR_CVAR_CH4_NETMOD": "ofi"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, env=environment, check=True)
    return done.stdout


def speeds(worlds: str, sources: int, targets: int, layout: str, strategies: str) -> bool:
    """Report every method, interleaved in the same processes."""
    arguments = [str(sources), str(targets), layout, str(REPETITIONS), strategies]
    seconds: dict[str, list[float]] = defaultdict(list)
    above: dict[str, list[float]] = defaultdict(list)
    for line in start(worlds, max(sources, targets), arguments).splitlines():
        variant, taken, rest = line.split("\t")
        seconds[variant].append(float(taken))
        above[variant].append(float(rest) / 2**20)
    reference = 1 / statistics.median(seconds["bare"])
    good = True
    for variant, samples in seconds.items():
        bound = SPEED if variant == DEFAULT else None
        speed = 1 / statistics.median(samples)
        memory = max(above[variant])
        good &= report(
            f"{variant}, {layout}, {sources} to {targets}, {worlds} world{'s' if worlds == 'many' else ''}",
            speed,
            "GiB/s",
            reference,
            bound,
            bound is None or (speed >= bound * reference and memory <= MEMORY_MIB),
            seconds=[min(samples), statistics.median(samples), max(samples)],
            memory_above_arrays_mib=round(memory, 1),
            repetitions=len(samples),
        )
    return good


def slowdown(worlds: str, strategy: str) -> bool:
    """Report iterations while constant data move, beside iterations with threads that copy as many bytes."""
    arguments = ["2", "4", "block", str(REPETITIONS), f"compute {strategy}"]
    samples: dict[str, list[float]] = defaultdict(list)
    for line in start(worlds, 4, arguments).splitlines():
        variant, taken, _ = line.split("\t")
        samples[variant].append(float(taken))
    moving, copying, alone = (samples[name] for name in ("moving", "copying", "alone"))
    value, reference = statistics.median(moving), statistics.median(copying)
    return report(
        f"iterations while data move, {strategy}, {worlds} world{'s' if worlds == 'many' else ''}",
        value * 1e3,
        "ms",
        reference * 1e3,
        SLOWDOWN,
        value <= SLOWDOWN * reference,
        alone_ms=statistics.median(alone) * 1e3,
        spread_ms=[1e3 * min(moving), 1e3 * max(moving)],
        reference_spread_ms=[1e3 * min(copying), 1e3 * max(copying)],
        repetitions=len(moving),
    )


def main() -> int:
    good = True
    for worlds in ("one", "many"):
        good &= speeds(worlds, 2, 4, "block", "all")
        for layout, sources, targets in (("block", 4, 2), ("csr", 2, 4), ("csr", 4, 2)):
            good &= speeds(worlds, sources, targets, layout, "blocking")
        for strategy in ("p2p wait-sources", "p2p thread"):
            good &= slowdown(worlds, strategy)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
