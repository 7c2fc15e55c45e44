"""Δ-graphs of two simulated applications (`hocket delta --simulate`), as results that JSON can hold.

Times are seconds. A graph is {policy: [{"dt_s", "a_s", "b_s", "a", "b", "stops"}]}; `a` and `b` are interference
factors, `stops` is how often A was preempted.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hocket.delta.model import PROPORTIONAL
from hocket.delta.simulated import ROUND, Machine, Spec, measure

MB = 1e6
Graph = dict[str, Any]


def spec(processes: int, mb_per_process: float, files: int = 1, most_bytes_per_s: float = 0.0) -> Spec:
    """Return an application that once writes so much for each process, in `files` files."""
    text = f"{processes} processes, {mb_per_process:g} MB each"
    return Spec(text, processes, processes * mb_per_process * MB, files, most_bytes_per_s)


def graph(
    specs: Sequence[Spec],
    bandwidth: float,
    policies: Sequence[str],
    dts_s: Sequence[float],
    grain: str = ROUND,
    metric: str = "cpu-time",
) -> Graph:
    """Simulate and return the points of each policy by dt, and the times alone."""
    machine = Machine(bandwidth, PROPORTIONAL, grain, 0.0)
    with tempfile.TemporaryDirectory() as directory:
        made = measure(specs, machine, policies, list(dts_s), metric, Path(directory))
    points = {
        policy: [
            {
                "dt_s": point.dt_s,
                "a_s": point.a.io_s,
                "b_s": point.b.io_s,
                "a": point.a.factor,
                "b": point.b.factor,
                "stops": point.a.interruptions,
            }
            for point in made.of(policy)
        ]
        for policy in policies
    }
    return {"alone_s": [one.io_s for one in made.alone], "points": points}


def alone_s(one: Spec, bandwidth: float) -> float:
    return one.bytes / min(one.bandwidth or bandwidth, bandwidth)


def spread(low: float, high: float, count: int) -> list[float]:
    """Return `count` even values from `low` to `high`, in whole milliseconds."""
    return sorted({round(low + (high - low) * step / (count - 1), 3) for step in range(count)})


def curve(made: Graph, policy: str, key: str) -> list[tuple[float, float]]:
    return [(point["dt_s"], point[key]) for point in made["points"][policy]]


def most(made: Graph, policy: str, key: str, from_dt_s: float = -math.inf) -> float:
    """Return the largest value, of all dts or of those from `from_dt_s` on."""
    return max(point[key] for point in made["points"][policy] if point["dt_s"] >= from_dt_s)


def at(made: Graph, policy: str, dt_s: float, key: str) -> float:
    """Return the value at the dt that is nearest to the wanted one."""
    return min(made["points"][policy], key=lambda point: abs(point["dt_s"] - dt_s))[key]
