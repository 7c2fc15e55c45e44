"""Makes a scenario for hocket-sim from the jobs of a log. Pure.

The log holds starts, run times, and processes. The I/O, which it lacks, is drawn with a seed from the distributions
that `about` states.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from hocket.sim.swf import Job

PERIOD_SIGMA = 0.5  # standard deviation of the logarithm
LEAST_PERIOD_S = 10.0
MOST_IO_RATIO = 0.9
ITERATIONS_PER_PHASE = 10
SATURATION = 0.25  # share of the cores that uses the whole bandwidth
MOST_NODES = 40  # the log holds cores, not nodes; a machine with more cores has larger nodes
LEAST_NODE = 32  # in cores
JITTER = 0.02
SERIAL = (0.05, 0.4)  # range of the share of an iteration at its own size that does not scale
GIGA_FLOP_PER_CORE = 2.0  # per second


@dataclass(frozen=True)
class Draw:
    """The parameters of the distributions from which the I/O is drawn."""

    cores: int
    seed: int
    io_ratio: float  # E(µ): mean share of an application's time that is I/O
    period_s: float  # median of the I/O periods
    bandwidth: float  # bandwidth of the target, bytes per second
    malleable: float  # share of the applications that can be resized

    def about(self) -> list[str]:
        """Return the distributions, a line each."""
        beta = (1 - self.io_ratio) / self.io_ratio
        lines = [
            f"I/O ratio of each application: Beta(1, {beta:.4g}), mean {self.io_ratio:g}, at most {MOST_IO_RATIO:g}",
            f"I/O period: log-normal, median {self.period_s:g} s, sigma {PERIOD_SIGMA:g}, at least "
            f"{LEAST_PERIOD_S:g} s, at most half the run time",
            f"rate of I/O alone: in proportion to the processes; {SATURATION:.0%} of the {self.cores} cores, and more, "
            f"use all {self.bandwidth:.4g} bytes/s",
            f"computing time of a period: relative standard deviation {JITTER:g}",
        ]
        if self.malleable > 0:
            lines.append(
                f"malleable: each with probability {self.malleable:g}; more processes shorten an iteration but for a "
                f"share of {SERIAL[0]:g} to {SERIAL[1]:g}, drawn evenly; curve at 1/4 to 4 times the processes"
            )
        return lines


def scenario_of(jobs: Sequence[Job], draw: Draw, name: str, source: str) -> str:
    """Return the scenario as TOML."""
    rng = random.Random(draw.seed)
    nodes = min(MOST_NODES, max(1, draw.cores // LEAST_NODE))
    head = [
        f"# Made by 'hocket sim import-swf' of {source}: {len(jobs)} jobs, seed {draw.seed}.",
        "# Starts (submit time + wait), run times and processes are the log's. The I/O is drawn:",
        *(f"#   {line}" for line in draw.about()),
        "",
        f"name = {_text(name)}",
        f"seed = {draw.seed}",
        "",
        "[platform]",
        f"nodes = {nodes}",
        f"cores_per_node = {math.ceil(draw.cores / nodes)}",
        "",
        "[[targets]]",
        'name = "storage"',
        f"bandwidth_bytes_per_s = {_number(draw.bandwidth)}",
        "",
        "[coordinator]",
        'policy = "fcfs"',
    ]
    return "\n".join([*head, *(line for job in jobs for line in _application(job, draw, rng))]) + "\n"


def _application(job: Job, draw: Draw, rng: random.Random) -> list[str]:
    """Return the lines of one job.

    Every job draws the same number of values, so that a change of one job does not change the others.
    """
    io_ratio = min(rng.betavariate(1, (1 - draw.io_ratio) / draw.io_ratio), MOST_IO_RATIO)
    wished_s = max(draw.period_s * math.exp(rng.gauss(0, PERIOD_SIGMA)), LEAST_PERIOD_S)
    malleable = rng.random() < draw.malleable
    serial = rng.uniform(*SERIAL)
    phases = max(1, round(job.run_s / min(wished_s, job.run_s / 2)))
    period_s = job.run_s / phases
    iteration_s = period_s * (1 - io_ratio) / ITERATIONS_PER_PHASE
    io_s = period_s * io_ratio
    rate = draw.bandwidth * min(1.0, job.processes / (SATURATION * draw.cores))
    sizes = [job.processes]
    if malleable:
        sizes = sorted(
            {max(1, job.processes // 4), max(1, job.processes // 2), job.processes}
            | {min(job.processes * factor, draw.cores) for factor in (2, 4)}
        )
    curve = [[size, _rounded(iteration_s * _amdahl(serial, job.processes, size))] for size in sizes]
    return [
        "",
        "[[applications]]",
        f'name = "J{job.number}"',
        f'program = "job{job.number}"',
        f"processes = {job.processes}",
        f"malleable = {str(malleable).lower()}",
        f"start_s = {_number(job.start_s)}",
        f"iterations = {phases * ITERATIONS_PER_PHASE}",
        f"iterations_per_phase = {ITERATIONS_PER_PHASE}",
        f"curve = {json.dumps(curve)}",
        f"io_bytes = {_number(io_s * rate)}",
        f"io_curve = [[{job.processes}, {_number(max(io_s, 1e-6))}]]",
        f"jitter = {JITTER}",
        f"flop_per_iteration = {_number(iteration_s * job.processes * GIGA_FLOP_PER_CORE * 1e9)}",
        'target = "storage"',
    ]


def _amdahl(serial: float, measured: int, processes: int) -> float:
    """Return the time of an iteration relative to that at `measured` processes. The share `serial` does not scale."""
    return serial + (1 - serial) * measured / processes


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _number(value: float) -> str:
    """Return a TOML float, which has a point or an exponent."""
    text = f"{value:.6g}"
    return text if any(letter in text for letter in ".e") else f"{text}.0"
