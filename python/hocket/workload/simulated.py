"""Runs a queue in the simulator, where hocketd's own policies give out the servers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hocket.arbitration.allocate import Rules
from hocket.arbitration.jobs import MB
from hocket.errors import UsageError
from hocket.sim.runs import Wanted, simulate
from hocket.workload.jobs import QueuedJob, Workload, arbitration_settings
from hocket.workload.maps import servers_of
from hocket.workload.results import JobRun, PlannedRun, QueueRun

# No limit of its own: the curves have what the storage allows.
TARGET_BYTES_PER_S = 1e15
LEAST_COMPUTING_S = 1e-6  # the simulator's applications compute before their I/O


def simulate_queue(
    workload: Workload, fifo: bool, rules: Rules, policies: Sequence[str], bytes_of: Mapping[str, int]
) -> dict[str, QueueRun]:
    """Return a run under each policy.

    `bytes_of` has the bytes of each job of the file. Raises UsageError if those of one, or its bandwidths, are not
    known.
    """
    with tempfile.TemporaryDirectory(prefix="hocket-workload-") as directory:
        scenario = Path(directory) / "queue.toml"
        scenario.write_text(scenario_of(workload, fifo, rules, bytes_of), encoding="utf-8")
        traces = [Path(directory) / f"{policy}.jsonl" for policy in policies]
        results = simulate(
            [
                Wanted(scenario, f"interfere+{policy}", trace=trace)
                for policy, trace in zip(policies, traces, strict=True)
            ]
        )
        return {
            policy: QueueRun(PlannedRun(policy, 0), _jobs(result["applications"], trace))
            for policy, result, trace in zip(policies, results, traces, strict=True)
        }


def scenario_of(workload: Workload, fifo: bool, rules: Rules, bytes_of: Mapping[str, int]) -> str:
    """Return the queue as a scenario of 'hocket sim'."""
    nodes = workload.system_nodes if fifo else sum(one.nodes for one in workload.queue)
    lines = [
        f"name = {json.dumps(workload.path.name)}",
        f"fifo = {json.dumps(fifo)}",
        "[platform]",
        f"nodes = {nodes}",
        f"cores_per_node = {max(one.kind.subject.group for one in workload.queue)}",
        "[[targets]]",
        'name = "storage"',
        f"bandwidth_bytes_per_s = {TARGET_BYTES_PER_S:e}",
        "[[servers]]",
        'name = "s"',
        f"count = {workload.servers}",
        "[arbitration]",
        *(f"{key} = {json.dumps(value)}" for key, value in arbitration_settings(workload, rules).items()),
    ]
    for one in workload.queue:
        lines += _application(one, bytes_of.get(one.kind.name), workload.path)
    return "\n".join(lines) + "\n"


def _application(one: QueuedJob, bytes_: int | None, path: Path) -> list[str]:
    for known, key in ((bytes_, "bytes"), (one.job.bandwidth, "bandwidth_mb_s")):
        if not known:
            raise UsageError(f"{path}: job '{one.kind.name}': {key} is missing; the simulator needs it")
    curve = ", ".join(f"{servers} = {rate / MB:.9g}" for servers, rate in one.job.bandwidth.items())
    return [
        "[[applications]]",
        f"name = {json.dumps(one.name)}",
        f"nodes = {one.nodes}",
        f"processes = {one.job.processes}",
        f"start_s = {one.arrival_s:g}",
        "iterations = 1",
        "iterations_per_phase = 1",
        f"iteration_s = {LEAST_COMPUTING_S:g}",
        f"phases = [{{ io_bytes = {bytes_} }}]",
        f"bandwidth_mb_s = {{ {curve} }}",
    ]


def _jobs(applications: Sequence[dict], trace: Path) -> tuple[JobRun, ...]:
    maps = servers_of(trace)
    jobs = [
        JobRun(
            one["application"],
            one["start_s"],
            one["end_s"],
            one["bytes_written"] + one["bytes_read"],
            one["total_s"],
            "",
            tuple((at_s, number) for at_s, number in maps.get(one["application"], ()) if at_s < one["end_s"]),
        )
        for one in applications
    ]
    return tuple(sorted(jobs, key=lambda one: one.ended_s))
