"""Runs a queue that shares cores in the simulator, where hocketd's own policies resize the emulated applications.

An iteration takes the sum of its timed stages at each size. Messages that a description gives by their bytes alone take
no time, because the simulator knows no network. Accesses of files share the target's bandwidth.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hocket.arbitration.jobs import MB
from hocket.emulator.description import Description, Stage, read_description
from hocket.emulator.keys import COMPUTING, INPUT_OUTPUT
from hocket.errors import UsageError
from hocket.sim.runs import Wanted, simulate
from hocket.workload.core_runs import MALLEABLE, daemon_settings, processes_at_start, with_history
from hocket.workload.jobs import QueuedJob, Workload
from hocket.workload.maps import CoreHistory, histories_of
from hocket.workload.results import JobRun, PlannedRun, QueueRun
from hocket.workload.subjects import Emulated

LONGEST_WAIT_S = 3600.0  # for cores that others return; the simulator's bound
LEAST_ITERATION_S = 1e-9
MOST_PHASES = 64  # I/O phases in a period
REPORT_S = 1.0  # between two reports of iterations of a program without accesses, as libhocket makes them
IDLE_BYTES_PER_S = 1e9  # of a target that no job uses


def simulate_on_cores(workload: Workload, planned: Sequence[PlannedRun]) -> list[QueueRun]:
    """Return the planned runs. Each repetition has a seed. Raises UsageError for jobs that cannot be simulated."""
    with tempfile.TemporaryDirectory(prefix="hocket-workload-") as directory:
        wanted = []
        for at, run in enumerate(planned):
            scenario = Path(directory) / f"{at}.toml"
            scenario.write_text(scenario_of(workload, run), encoding="utf-8")
            wanted.append(Wanted(scenario, seed=run.repetition + 1, trace=scenario.with_suffix(".jsonl")))
        results = simulate(wanted)
        return [
            QueueRun(run, _jobs(workload, run, result["applications"], one.trace))
            for run, one, result in zip(planned, wanted, results, strict=True)
        ]


def scenario_of(workload: Workload, run: PlannedRun) -> str:
    """Return the queue as a scenario of 'hocket sim'. A node of one core stands for each core."""
    described = {one.name: _description(one, run.mode, workload.path) for one in workload.queue}
    lines = [
        f"name = {json.dumps(workload.path.name)}",
        "fifo = true",
        "[platform]",
        f"nodes = {workload.cores}",
        "cores_per_node = 1",
        "[[targets]]",
        'name = "storage"',
        f"bandwidth_bytes_per_s = {_bandwidth(workload, described):e}",
    ]
    for table, values in (
        ("reconfiguration", workload.content.get("reconfiguration", {})),
        ("coordinator", daemon_settings(workload, run)),
    ):
        lines += [f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    for one in workload.queue:
        lines += _application(one, described[one.name], run.mode)
    return "\n".join(lines) + "\n"


def _description(one: QueuedJob, mode: str, path: Path) -> Description:
    subject = one.kind.subject
    if not isinstance(subject, Emulated):
        told = "the simulator knows described applications only; give 'emulate', or run it with --dir"
        raise UsageError(f"{path}: job '{one.kind.name}': {told}")
    description = read_description(subject.description, processes_at_start(one, mode))
    for kind, count in (("phase", len(description.phases)), ("group", len(description.groups))):
        if count > 1:
            told = f"it has {count} [[{kind}]]; the simulator knows programs of one, which the policy resizes"
            raise UsageError(f"{subject.description}: {told}; run it with --dir")
    timed = next((one for one in description.stages if one.is_timed_access), None)
    if timed is not None:
        told = f"stage '{timed.name}' ends by time; the simulator needs the bytes of each access; run it with --dir"
        raise UsageError(f"{subject.description}: {told}")
    return description


def _bandwidth(workload: Workload, described: dict[str, Description]) -> float:
    mb_s = workload.content["system"].get("bandwidth_mb_s", 0)
    name = next((name for name, one in described.items() if _accesses(one)), None)
    if name is not None and not mb_s:
        told = "[system]: bandwidth_mb_s is missing; the simulator needs that of the storage, for job"
        raise UsageError(f"{workload.path}: {told} '{name}'")
    return mb_s * MB or IDLE_BYTES_PER_S


def _accesses(description: Description) -> list[Stage]:
    return [one for one in description.stages if one.kind in INPUT_OUTPUT]


def _application(one: QueuedJob, description: Description, mode: str) -> list[str]:
    size = processes_at_start(one, mode)
    limits = one.kind.limits if mode == MALLEABLE else None
    sizes = range(size, (limits.most if limits else size) + 1)
    iterations = description.iterations
    period = _period(description, size)
    phases = ", ".join(_phases(description, period))
    return [
        "[[applications]]",
        f"name = {json.dumps(one.name)}",
        f"program = {json.dumps(one.kind.name)}",
        f"nodes = {size}",
        f"processes = {size}",
        f"malleable = {json.dumps(limits is not None)}",
        f"start_s = {float(one.arrival_s)}",
        f"wait_for_cores_s = {LONGEST_WAIT_S}",
        f"iterations = {iterations}",
        f"iterations_per_phase = {period}",
        f"curve = {json.dumps(curve_of(description, sizes))}",
        f"jitter = {_jitter(description, size) / math.sqrt(period):.9g}",
        f"data_bytes = {description.data.bytes}",
        f"phases = [{phases}]",
    ]


def _period(description: Description, size: int) -> int:
    """Return the iterations after which the accesses repeat; without accesses, those between two reports."""
    accesses = _accesses(description)
    if accesses:
        return min(math.lcm(*(one.every for one in accesses)), description.iterations)
    return max(1, min(round(REPORT_S / curve_of(description, [size])[0][1]), description.iterations))


def _phases(description: Description, period: int) -> list[str]:
    if not _accesses(description):
        return ["{ io_bytes = 1 }"]  # the simulator's applications report their iterations with their accesses
    at = [(iteration, one) for one in _accesses(description) for iteration in range(one.every, period + 1, one.every)]
    if len(at) > MOST_PHASES:
        told = f"its accesses make {len(at)} I/O phases before they repeat; the simulator knows {MOST_PHASES}"
        raise UsageError(f"{description.path}: {told}; run it with --dir")
    return [
        f'{{ after = {iteration / period:.9g}, io_bytes = {one.bytes * one.repeat}, kind = "{one.kind}", '
        f"operations = {one.repeat} }}"
        for iteration, one in sorted(at, key=lambda pair: pair[0])
    ]


def curve_of(description: Description, sizes: Sequence[int]) -> list[list[float]]:
    """Return [processes, seconds of an iteration] for each size. More processes never take longer."""
    curve: list[list[float]] = []
    for size in sizes:
        seconds = max(math.fsum(_seconds(one, description, size) for one in description.stages), LEAST_ITERATION_S)
        curve.append([size, min(seconds, curve[-1][1]) if curve else seconds])
    return curve


def _seconds(stage: Stage, description: Description, size: int) -> float:
    """Return the mean time of a stage in an iteration: that of the rank which has most to do."""
    if stage.time_s is None:
        return 0.0
    shares = stage.shares.get(size)
    imbalance = max(shares) * size if shares else stage.imbalance if size > 1 else 1.0
    return stage.time_s * factor_of(stage, description, size) * imbalance * stage.repeat / stage.every


def factor_of(stage: Stage, description: Description, size: int) -> float:
    """Return the part of a stage's time that is left with `size` processes, as in src/tools/emulator/shares.cpp."""
    factors = stage.factors
    if factors is None:
        computes = stage.kind in COMPUTING
        factors = {one.processes: one.factor for one in description.groups} if computes else {1: 1.0}
    below = max((one for one in factors if one <= size), default=None)
    above = min((one for one in factors if one >= size), default=None)
    if above is None or above == below:
        return factors[max(one for one in factors if one <= size)]
    if below is None:
        return factors[above] * above / size
    part = math.log(size / below) / math.log(above / below)
    return factors[below] * (factors[above] / factors[below]) ** part


def _jitter(description: Description, size: int) -> float:
    """Return the relative standard deviation of an iteration's time."""
    times = [(_seconds(one, description, size), one.jitter) for one in description.stages]
    whole = math.fsum(seconds for seconds, _ in times)
    return math.hypot(*(seconds * jitter for seconds, jitter in times)) / whole if whole > 0 else 0.0


def _jobs(workload: Workload, run: PlannedRun, applications: Sequence[dict], trace: Path | None) -> tuple[JobRun, ...]:
    assert trace is not None
    histories = histories_of(trace)
    kinds = {one.name: one for one in workload.queue}
    jobs = []
    for one in applications:
        name, start_s, end_s = one["application"], one["start_s"], one["end_s"]
        described = kinds[name].kind.subject
        steps = ((start_s, processes_at_start(kinds[name], run.mode)),)
        bytes_ = one["bytes_written"] + one["bytes_read"]
        # One without accesses has a byte about every second there, which is not I/O of the application.
        accesses = _accesses(read_description(described.description)) if isinstance(described, Emulated) else []
        access_s = one["io_s"] + one["wait_s"] if accesses else 0.0
        job = JobRun(name, start_s, end_s, bytes_, one["total_s"], "", (), steps, access_s=access_s)
        # Its start is after all its waits.
        jobs.append(with_history(job, replace(histories.get(name, CoreHistory()), waited_s=0.0, given_s=0.0)))
    return tuple(sorted(jobs, key=lambda one: one.ended_s))
