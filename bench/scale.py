"""Simulates large machines, and shows what one leader, or one for each file system, has to do there.

Each machine has applications of 1 to 4 nodes that fill it, and file systems that each of them uses one of. hocket-sim
runs the coordinator of hocketd over two hours. The figures are the time and memory of the simulator, the events that
a leader handles in a second of simulated time, and how many waits differ if each file system has a leader of its own
(docs/design/scale.md).

    python bench/scale.py                      # machines of 1,000, 3,000 and 10,000 nodes
    python bench/scale.py --nodes 10000 --keep DIR      # keeps the scenarios, for `hocket sim`
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from figures import report
from hocket import paths

MOST_CPU_S = 60.0  # of one simulation
MOST_GROWTH = 4.0  # of the cost of an event from the smallest to the largest machine: ten would be quadratic
SAME_S = 1e-6
FILE_SYSTEMS = 4
POLICIES = ("fcfs", "cost")  # the plainest one, and the default

CORES_PER_NODE = 64
DURATION_S = 7200.0
BUSY = 0.6  # of its bandwidth, the part that the applications of a file system use
SIZES = (1, 1, 1, 1, 1, 1, 1, 1, 2, 4)  # nodes of an application, drawn with equal chance


@dataclass(frozen=True)
class Job:
    """An application: where it writes, on how many nodes, how often, and how much."""

    name: str
    file_system: int
    nodes: int
    period_s: float
    io_bytes: float
    start_s: float


@dataclass(frozen=True)
class Figures:
    """What one run of the simulator has taken, and what its coordinator has done."""

    wall_s: float
    cpu_s: float
    memory_mib: float
    events: int
    waited_s: dict[str, float]  # by application

    @property
    def event_us(self) -> float:
        return self.cpu_s * 1e6 / self.events


def jobs_of(nodes: int, file_systems: int, seed: int = 1) -> list[Job]:
    """Return jobs that fill a machine of so many nodes, each with a file system, in turn."""
    draw = random.Random(seed)
    jobs: list[Job] = []
    left = nodes
    while left > 0:
        size = min(left, draw.choice(SIZES))
        left -= size
        period_s = draw.uniform(120, 900)
        number = len(jobs)
        jobs.append(
            Job(
                name=f"job{number}",
                file_system=number % file_systems,
                nodes=size,
                period_s=period_s,
                io_bytes=size * period_s * 1e6,
                start_s=draw.uniform(0, period_s),
            )
        )
    return jobs


def scenario_of(jobs: list[Job], nodes: int, file_systems: list[int], policy: str) -> str:
    """Return the text of the scenario with those file systems, and the jobs that use them.

    A file system has so much bandwidth that its jobs use `BUSY` of it.
    """
    lines = [
        f'name = "{nodes} nodes"',
        f"until_s = {DURATION_S}",
        "[platform]",
        f"nodes = {nodes}",
        f"cores_per_node = {CORES_PER_NODE}",
    ]
    for number in file_systems:
        rate = sum(job.io_bytes / job.period_s for job in jobs if job.file_system == number) / BUSY
        lines += ["[[targets]]", f'name = "fs{number}"', f"bandwidth_bytes_per_s = {rate:.6g}"]
    for job in jobs:
        if job.file_system not in file_systems:
            continue
        iteration_s = job.period_s / 100
        lines += [
            "[[applications]]",
            f'name = "{job.name}"',
            f'target = "fs{job.file_system}"',
            f"processes = {job.nodes * CORES_PER_NODE}",
            f"start_s = {job.start_s:.3f}",
            f"iterations = {100 * max(1, int(DURATION_S / job.period_s))}",
            "iterations_per_phase = 100",
            f"iteration_s = {iteration_s:.6f}",
            "jitter = 0.05",
            f"io_bytes = {job.io_bytes:.6g}",
        ]
    lines += ["[coordinator]", f'policy = "{policy}"']
    return "\n".join(lines) + "\n"


def simulate(scenario: Path) -> Figures:
    """Run hocket-sim on the scenario. Ends the program with its message if it fails."""
    program = os.environ.get("HOCKET_SIM") or str(paths.simulator())
    words = [program, str(scenario)]
    with tempfile.TemporaryFile("w+") as out:
        begin = time.monotonic()
        child = os.posix_spawn(program, words, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)])
        _, status, used = os.wait4(child, 0)
        wall_s = time.monotonic() - begin
        out.seek(0)
        text = out.read()
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"hocket-sim failed: {text}")
    report = json.loads(text)
    waited = {one["application"]: one["wait_s"] for one in report["applications"]}
    return Figures(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, report["events"], waited)


def measure(nodes: int, policy: str, directory: Path, smallest: Figures | None) -> tuple[Figures, bool]:
    """Simulate a machine with one leader, and with one for each file system, and report both. Return the figures of the
    first. `smallest`: those of the smallest machine."""
    jobs = jobs_of(nodes, FILE_SYSTEMS)

    def run(name: str, file_systems: list[int]) -> Figures:
        scenario = directory / f"{nodes}-{policy}-{name}.toml"
        scenario.write_text(scenario_of(jobs, nodes, file_systems, policy))
        return simulate(scenario)

    one = run("all", list(range(FILE_SYSTEMS)))
    each = [run(f"fs{number}", [number]) for number in range(FILE_SYSTEMS)]
    apart = {name: waited for figures in each for name, waited in figures.waited_s.items()}
    differ = sum(abs(apart[name] - waited) > SAME_S for name, waited in one.waited_s.items())
    machine = f"{nodes} nodes, {len(jobs)} applications, {policy}"
    more = {
        "wall_s": one.wall_s,
        "memory_mib": one.memory_mib,
        "events": one.events,
        "events_per_s": one.events / DURATION_S,
        "events_per_s_each": [figures.events / DURATION_S for figures in each],
        "waited_s": sum(one.waited_s.values()),
    }
    ok = report(
        "scale", f"{machine}: two hours simulated", one.cpu_s, "s", None, MOST_CPU_S, one.cpu_s <= MOST_CPU_S, **more
    )
    before_us = None if smallest is None else smallest.event_us
    bound_us = None if before_us is None else MOST_GROWTH * before_us
    is_linear = bound_us is None or one.event_us <= bound_us
    ok &= report("scale", f"{machine}: CPU of an event", one.event_us, "us", before_us, bound_us, is_linear)
    ok &= report("scale", f"{machine}: waits that differ with a leader for each", differ, "", None, 0, differ == 0)
    return one, ok


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 3000, 10000], metavar="N")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the scenarios there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = arguments.keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        smallest: dict[str, Figures] = {}
        all_ok = True
        for nodes in sorted(arguments.nodes):
            for policy in POLICIES:
                figures, ok = measure(nodes, policy, directory, smallest.get(policy))
                smallest.setdefault(policy, figures)
                all_ok &= ok
    return 0 if all_ok else 1


if __name__ == "__main__":
    sys.exit(main())
