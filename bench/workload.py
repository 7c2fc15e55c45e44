"""A random workload for hocket-sim: the TOML text of a scenario, drawn by a seed.

The draw covers everything that a policy could be tuned to. It includes the number of applications and their similarity,
the load of the target and its sharing, and the cycle of I/O phases with their operations. It also includes what an
application announces, where it can stop, what fails, and the cost of a resize. A new key draws from its own stream
(`_Stream`), so that it changes no other value of a seed.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass

APPLICATIONS = (2, 40)
TARGET_BYTES_PER_S = (1e8, 1e10)
LOAD = (0.05, 1.2)  # of each target: the sum of the I/O ratios of its applications, each alone
MOST_IO_RATIO = 0.7
PERIOD_S = (4.0, 600.0)
PERIODS = (6, 40)  # of an application with the median period of its workload
MOST_PERIODS = 120
ITERATIONS = (5, 10, 20, 50)  # of a period
JITTER = (0.0, 0.2)
PROCESSES = (1, 512)
RESIZE_S = (0.2, 15.0)  # of one that starts PROCESSES[1] processes and moves MOST_DATA
MOST_DATA = 1e10  # bytes
OPERATIONS = (1, 12)  # of a phase
OPERATION_GAP_S = (1e-3, 0.5)
LEAST_CHANCE = 0.02  # least chance of a failure, in applications that have it


class _Stream:
    """A stream of random values for one name; draws of other names do not change it."""

    def __init__(self, seed: int, name: str) -> None:
        self._rng = random.Random(f"{seed}/{name}")

    def uniform(self, limits: tuple[float, float]) -> float:
        return self._rng.uniform(*limits)

    def log_uniform(self, limits: tuple[float, float]) -> float:
        low, high = map(math.log, limits)
        return math.exp(self._rng.uniform(low, high))

    def happens(self, chance: float) -> bool:
        return self._rng.random() < chance

    def one_of(self, choices, weights=None):
        return self._rng.choices(choices, weights)[0]

    def shares(self, count: int, evenness: float) -> list[float]:
        """Return `count` shares with the sum 1; they differ more with a lower evenness."""
        drawn = [self._rng.gammavariate(evenness, 1) + 1e-6 for _ in range(count)]
        return [one / sum(drawn) for one in drawn]


@dataclass(frozen=True)
class _Target:
    name: str
    bandwidth: float
    text: list[str]


@dataclass(frozen=True)
class _Application:
    """The common values of the applications of a workload."""

    name: str
    target: _Target
    other: _Target  # target that some of its phases may use
    io_ratio: float
    period_s: float  # alone
    periods: int
    processes: int
    start_s: float
    malleable: bool


def _targets(seed: int) -> list[_Target]:
    made = []
    for number in range(1 + _Stream(seed, "targets").happens(0.25)):
        draw = _Stream(seed, f"target {number}")
        bandwidth = draw.log_uniform(TARGET_BYTES_PER_S)
        name = f"disk{number + 1}"
        sharing = draw.one_of(("fair", "proportional", "queued"), (5, 5, 1))
        interference = draw.uniform((1, 1.5)) if draw.happens(0.4) else 1.0
        text = [
            "[[targets]]",
            f'name = "{name}"',
            f"bandwidth_bytes_per_s = {bandwidth:.6e}",
            f'sharing = "{sharing}"',
            f"interference = {interference:.4f}",
        ]
        made.append(_Target(name, bandwidth, text))
    return made


def _applications(seed: int, targets: list[_Target]) -> list[_Application]:
    draw = _Stream(seed, "applications")
    count = round(draw.log_uniform(APPLICATIONS))
    shares = draw.shares(count, draw.one_of((0.5, 2, 20)))
    load = draw.uniform(LOAD)
    base_s = draw.log_uniform(PERIOD_S)
    spread = draw.one_of((0.02, 0.3, 1.2))  # of the logarithms of the periods: alike, similar, unlike
    periods = draw.log_uniform(PERIODS)
    together = draw.happens(0.5)  # starts within a period, not over the whole run
    malleable = draw.one_of((0, 0.3, 0.8))
    made = []
    for number in range(count):
        own = _Stream(seed, f"application {number}")
        period_s = min(max(base_s * math.exp(own.uniform((-spread, spread))), PERIOD_S[0] / 2), 2 * PERIOD_S[1])
        length_s = periods * base_s
        made.append(
            _Application(
                name=f"a{number + 1}",
                target=own.one_of(targets),
                other=own.one_of(targets),
                io_ratio=min(MOST_IO_RATIO, load * len(targets) * shares[number]),
                period_s=period_s,
                periods=min(MOST_PERIODS, max(4, round(length_s / period_s))),
                processes=round(own.log_uniform(PROCESSES)),
                start_s=own.uniform((0, base_s if together else 0.5 * length_s)),
                malleable=own.happens(malleable),
            )
        )
    return made


def _phases(draw: _Stream, one: _Application, rate: float) -> tuple[list[dict], float]:
    """Return the cycle of a period, and the seconds of gaps in it."""
    count = draw.one_of((1, 2, 3), (4, 3, 3))
    parts = draw.shares(count, 1.0)
    bytes_ = max(1e3, one.io_ratio * one.period_s * rate)
    places = sorted([*(round(draw.uniform((0.1, 1)), 2) for _ in range(count - 1)), 1.0])
    phases, gaps_s = [], 0.0
    for part, place in zip(parts, places, strict=True):
        phase = {"after": place, "io_bytes": max(1.0, float(f"{part * bytes_:.6g}"))}
        if draw.happens(0.7):
            phase["operations"] = round(draw.log_uniform(OPERATIONS))
        if draw.happens(0.5):
            most_s = 0.1 * one.period_s / phase.get("operations", 1)
            phase["operation_gap_s"] = round(min(draw.log_uniform(OPERATION_GAP_S), most_s), 6)
            gaps_s += phase["operation_gap_s"] * (phase.get("operations", 1) - 1)
        if draw.happens(0.3):
            phase["kind"] = "read"
        if one.other is not one.target and draw.happens(0.3):
            phase["target"] = one.other.name
        phases.append(phase)
        if draw.happens(0.25):
            back = {"gap_s": round(draw.log_uniform((1e-3, 0.5)), 6), "io_bytes": phase["io_bytes"], "kind": "read"}
            phases.append(back | {"after": place, "cached": True})
            gaps_s += back["gap_s"]
    return phases, gaps_s


def _application(seed: int, one: _Application) -> list[str]:
    """Return the lines of one application."""
    draw = _Stream(seed, f"{one.name} I/O")
    queued = any("queued" in line for line in (*one.target.text, *one.other.text))
    limited = not queued and draw.happens(0.5)
    rate = one.target.bandwidth * (draw.log_uniform((0.05, 1)) if limited else 1)
    phases, gaps_s = _phases(draw, one, rate)
    iterations = draw.one_of(ITERATIONS)
    computing_s = max(0.2 * one.period_s, one.period_s * (1 - one.io_ratio) - gaps_s)
    grain = draw.one_of(("operation", "file", "round"), (5, 1, 3))
    lines = [
        "[[applications]]",
        f'name = "{one.name}"',
        f"processes = {one.processes}",
        f"start_s = {one.start_s:.4f}",
        f'target = "{one.target.name}"',
        f"iterations = {iterations * one.periods}",
        f"iterations_per_phase = {iterations}",
        f"iteration_s = {computing_s / iterations:.6f}",
        f"parallel_fraction = {draw.uniform((0.2, 1)):.3f}",
        f"flop_per_iteration = {computing_s / iterations * one.processes * 1e9:.6e}",
        f"malleable = {json.dumps(one.malleable)}",
        f"data_bytes = {draw.log_uniform((MOST_DATA / 10, MOST_DATA)):.6e}",
        f'grain = "{grain}"',
        f'announces = "{draw.one_of(("exact", "nothing", "wrong"))}"',
        f"phase_gap_s = {draw.one_of((0.1, 0.1, 0.0))}",
        f"cache_bytes_per_s = {draw.log_uniform((2e9, 2e10)):.6e}",
        f'profile = "{draw.one_of(("exact", "none", "wrong"))}"',
        f"jitter = {draw.uniform(JITTER) if draw.happens(0.8) else 0.0:.4f}",
        f"io_jitter = {draw.uniform(JITTER) if draw.happens(0.5) else 0.0:.4f}",
        f"gap_jitter = {draw.uniform((0, 1)) if draw.happens(0.5) else 0.0:.4f}",
        f"phases = [{', '.join(_inline(phase) for phase in phases)}]",
    ]
    if limited:
        lines.append(f"io_bandwidth_bytes_per_s = {rate:.6e}")
    if grain == "round" and draw.happens(0.7):
        lines.append(f"round_bytes = {draw.log_uniform((1e6, 1e9)):.6e}")
    if grain == "file":
        lines.append(f"files = {round(draw.log_uniform((2, 20)))}")
    if draw.happens(0.3):
        lines.append(f"writers = {max(1, round(one.processes * draw.log_uniform((0.05, 1))))}")
    return lines + _troubles(_Stream(seed, f"{one.name} troubles"))


def _troubles(draw: _Stream) -> list[str]:
    """Return the chances of failures, of a phase, a period, or a resize."""
    return [
        f"{key} = {draw.log_uniform((LEAST_CHANCE, most)):.4f}"
        for key, often, most in (
            ("phase_skip", 0.4, 0.3),
            ("period_change", 0.15, 0.1),
            ("death", 0.03, 0.04),
            ("resize_refusal", 0.4, 0.8),
            ("resize_failure", 0.2, 0.4),
        )
        if draw.happens(often)
    ]


def _inline(table: dict) -> str:
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items()) + " }"


def scenario(seed: int) -> str:
    """Return the TOML text of a workload."""
    targets = _targets(seed)
    applications = _applications(seed, targets)
    draw = _Stream(seed, "machine")
    processes = sum(one.processes for one in applications)
    resize_s = draw.log_uniform(RESIZE_S)
    fixed, started, moved = draw.shares(3, 1.0)
    cores = max(max(one.processes for one in applications), math.ceil(processes * draw.uniform((1, 2))))
    lines = [
        f'name = "workload {seed}"',
        f"seed = {seed}",
        "[platform]",
        "nodes = 1",
        f"cores_per_node = {cores}",
        "[reconfiguration]",
        f"fixed_s = {resize_s * fixed:.4f}",
        f"per_process_s = {resize_s * started / PROCESSES[1]:.6f}",
        f"bytes_per_s = {MOST_DATA / (resize_s * moved):.6e}",
    ]
    for target in targets:
        lines += target.text
    for one in applications:
        lines += _application(seed, one)
    return "\n".join(lines) + "\n"
