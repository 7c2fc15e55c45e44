"""Simulates a Δ-graph: hocket-sim runs a scenario for each dt under each policy."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hocket.analysis import analyse
from hocket.delta.graph import NAMES, Alone, Graph, Phase, Together, first_phase
from hocket.delta.model import QUEUED, Model, Side, rates
from hocket.errors import HocketError, UsageError
from hocket.sim.runs import Wanted, simulate
from hocket.trace import read_trace

COMPUTE_S = 1.0  # computing time before the I/O phase
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
KEYS = ("processes", "bytes", "files", "bandwidth")
ROUND, FILE, PHASE = "round", "file", "phase"
GRAINS = (ROUND, FILE, PHASE)


@dataclass(frozen=True)
class Spec:
    """A simulated application, which once writes `bytes` in `files` files of the same size.

    `bandwidth`: the most that it can use by itself, in bytes/s; 0: that of the target.
    """

    text: str
    processes: int
    bytes: float
    files: int
    bandwidth: float


@dataclass(frozen=True)
class Machine:
    bandwidth: float  # bytes/s
    sharing: str
    grain: str  # where an application can be preempted
    round_bytes: float  # for grain ROUND; 0: at any time


def parse_bytes(text: str) -> float:
    """Return the number of bytes. k, m, g, and t stand for KiB, MiB, GiB, and TiB. Raises ValueError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?(?:e\d+)?)([kmgt]?)", text.strip().lower())
    if not found:
        raise ValueError(text)
    return float(found[1]) * UNITS[found[2]]


def parse_spec(text: str) -> Spec:
    """Return the specification of one application. Raises UsageError."""
    told = f"--app '{text}'"
    found = {"processes": 1.0, "files": 1.0, "bandwidth": 0.0}
    for part in text.split(","):
        key, equals, value = (word.strip() for word in part.partition("="))
        if key not in KEYS or not equals:
            raise UsageError(f"{told}: '{part}': with --simulate give {'=…,'.join(KEYS)}=…, of which bytes is needed")
        try:
            found[key] = parse_bytes(value)
        except ValueError:
            raise UsageError(f"{told}: {key} = '{value}': give a number, with k, m, g or t for KiB to TiB") from None
    if "bytes" not in found:
        raise UsageError(f"{told}: bytes is missing: give the bytes that it writes in its I/O phase")
    for key, least, most in (("processes", 1, 1e9), ("bytes", 1, 1e18), ("files", 1, 1e6)):
        if not least <= found[key] <= most or (key != "bytes" and found[key] % 1):
            raise UsageError(f"{told}: {key} = {found[key]:g}: give a whole number from {least} to {most:g}")
    return Spec(text, int(found["processes"]), found["bytes"], int(found["files"]), found["bandwidth"])


def scenario_of(starts_s: Sequence[tuple[str, Spec, float]], machine: Machine, metric: str) -> str:
    """Return a scenario as TOML.

    `starts_s`: name, specification, and start of the I/O phase of each application.
    """
    cores = sum(spec.processes for _, spec, _ in starts_s)
    lines = ['name = "delta"', "", "[platform]", "nodes = 1", f"cores_per_node = {cores}", "", "[[targets]]"]
    lines += ['name = "target"', f"bandwidth_bytes_per_s = {machine.bandwidth!r}"]
    lines += [f'sharing = "{machine.sharing}"']
    for name, spec, start_s in starts_s:
        lines += ["", "[[applications]]", f'name = "{name}"', f"processes = {spec.processes}", "iterations = 1"]
        lines += ["iterations_per_phase = 1", f"curve = [[{spec.processes}, {COMPUTE_S!r}]]"]
        lines += [f"start_s = {start_s!r}", f"io_bytes = {spec.bytes!r}"]
        lines += [f"files = {spec.files}"] if spec.files > 1 else []
        lines += [f'grain = "{machine.grain}"'] if machine.grain != ROUND else []
        lines += [f"round_bytes = {machine.round_bytes!r}"] if machine.round_bytes and machine.grain == ROUND else []
        lines += [f"io_bandwidth_bytes_per_s = {spec.bandwidth!r}"] if spec.bandwidth else []
    if metric:
        lines += ["", "[coordinator]", f"metric = {json.dumps(metric)}"]
    return "\n".join(lines) + "\n"


def model_of(specs: Sequence[Spec], machine: Machine, alone_s: Sequence[float], metric: str) -> Model:
    own = [(min(spec.bandwidth or machine.bandwidth, machine.bandwidth), spec.processes) for spec in specs]
    speeds = rates(machine.sharing, own[0], own[1], machine.bandwidth)
    sides = [
        Side(alone, spec.processes, pieces_of(spec, machine), rate)
        for spec, alone, rate in zip(specs, alone_s, speeds, strict=True)
    ]
    return Model(sides[0], sides[1], metric, machine.sharing == QUEUED)


def pieces_of(spec: Spec, machine: Machine) -> int:
    """Return the number of pieces between which an application can be preempted; 0: at any time."""
    if machine.grain == FILE:
        return spec.files
    if machine.grain == PHASE:
        return 1
    if not machine.round_bytes:
        return 0
    # Number of rounds of each file. The last one may be shorter, but all are assumed to be equal.
    return spec.files * max(1, math.ceil(spec.bytes / spec.files / machine.round_bytes - 1e-9))


def measure(
    specs: Sequence[Spec],
    machine: Machine,
    policies: Sequence[str],
    dts_s: Sequence[float],
    metric: str,
    directory: Path,
) -> Graph:
    """Run all simulations and return the graph.

    `directory` holds scenarios and traces. Raises HocketError with the message of hocket-sim.
    """
    if machine.sharing == QUEUED and any(spec.bandwidth for spec in specs):
        raise UsageError("--sharing queued: applications have no bandwidth of their own there; leave bandwidth=… out")
    wanted: list[Wanted] = []

    def plan(name: str, starts_s: Sequence[tuple[str, Spec, float]], policy: str) -> None:
        scenario = directory / f"{name}.toml"
        if not scenario.exists():
            scenario.write_text(scenario_of(starts_s, machine, metric), encoding="utf-8")
        wanted.append(Wanted(scenario, policy, trace=directory / f"{name}-{len(wanted)}.jsonl"))

    for name, spec in zip(NAMES, specs, strict=True):
        plan(f"alone-{name}", [(name, spec, 0.0)], policies[0])
    runs = [(policy, dt_s) for policy in policies for dt_s in dts_s]
    for policy, dt_s in runs:
        starts = [(NAMES[0], specs[0], max(0.0, -dt_s)), (NAMES[1], specs[1], max(0.0, dt_s))]
        plan(f"dt-{dts_s.index(dt_s)}", starts, policy)
    simulate(wanted)
    phases = [_phases(one.trace) for one in wanted if one.trace]
    alone = [
        Alone(name, spec.text, spec.processes, (found[name],))
        for name, spec, found in zip(NAMES, specs, phases, strict=False)
    ]
    model = model_of(specs, machine, [one.io_s for one in alone], metric or "cpu-time")
    made = [
        Together(policy, dt_s, found["A"], found["B"]) for (policy, dt_s), found in zip(runs, phases[2:], strict=True)
    ]
    about = {"simulated": True, "grain": machine.grain, "sharing": machine.sharing, "repetitions": 1}
    return Graph(alone, model, made, about | {"bandwidth_bytes_per_s": machine.bandwidth})


def _phases(trace: Path) -> dict[str, Phase]:
    analysis = analyse(read_trace(trace))
    found = {one.name: first_phase(one) for one in analysis.applications}
    missing = [name for name, phase in found.items() if phase is None]
    if missing:
        raise HocketError(f"{trace}: {missing[0]} did no I/O in the simulation")
    return {name: phase for name, phase in found.items() if phase}
