"""The twin of a set in the simulator: the gain of the best schedule with perfect knowledge.

The simulator's applications have the sizes, periods, and bandwidths that the programs had alone in the same round. The
simulator determines their interference, uncoordinated and in the best schedule alike. A program that appends to a log
all the time is described as one with few phases.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from hocket import paths
from hocket.errors import HocketError
from hocket.reconfigure.runs import last_line
from regret_bounds import Set
from regret_results import ALONE, Round

SIM_LIMIT_S = 300


def twin(one: Round) -> str:
    """Return the scenario as TOML, without uncoordinated loads and programs of which no I/O was seen."""
    target_bytes_per_s = one.bytes_per_s
    lines = [f"name = {json.dumps(str(one.case))}", "", "[platform]", "nodes = 1", "cores_per_node = 64", ""]
    lines += ["[[targets]]", 'name = "target"', f"bandwidth_bytes_per_s = {target_bytes_per_s!r}", 'sharing = "fair"']
    for drawn in one.drawn:
        alone = one.arms[ALONE].get(drawn["name"])
        if alone and alone["io_s"] > 0:
            lines += ["", "[[applications]]", *_application(drawn, alone, target_bytes_per_s)]
    return "\n".join(lines) + "\n"


def _application(drawn: dict, alone: dict, target_bytes_per_s: float) -> list[str]:
    phases, ranks = drawn["phases"], drawn["ranks"]
    io_s = alone["io_s"]
    # Reads come from the page cache: they do not load the target, but count as I/O time.
    bandwidth = min(alone["bytes_written"] / io_s, target_bytes_per_s)
    computing_s = max(alone["total_s"] - io_s, 0.0)
    return [
        f'name = "{drawn["name"]}"',
        f"processes = {ranks}",
        f"iterations = {phases}",
        "iterations_per_phase = 1",
        f"curve = [[{ranks}, {computing_s / phases!r}]]",
        f"start_s = {drawn['start_s']!r}",
        f"io_bytes = {alone['bytes_written'] / phases!r}",
        f"io_bandwidth_bytes_per_s = {bandwidth!r}",
    ]


def best_ratio(one: Set) -> float | None:
    """Return the I/O time with waits of the best schedule beside uncoordinated, summed over the programs.

    It is the geometric mean over the rounds' twins, or None if the simulator knows no best schedule.
    """
    ratios = []
    for round_ in one.rounds:
        free, best = _io_sum(twin(round_), ["--policy", "interfere"]), _io_sum(twin(round_), ["--best"])
        if free is None or best is None:
            return None
        ratios.append(best / free)
    return geometric_mean(ratios)


def _io_sum(scenario: str, options: Sequence[str]) -> float | None:
    """Return the sum of I/O time with waits, or None if hocket-sim does not know the options."""
    with tempfile.TemporaryDirectory(prefix="hocket-regret-") as directory:
        path = Path(directory, "twin.toml")
        path.write_text(scenario, encoding="utf-8")
        command = [str(paths.simulator()), *options, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SIM_LIMIT_S)
    if done.returncode != 0 and "not expected" in done.stderr + done.stdout:
        return None
    if done.returncode != 0:
        raise HocketError(f"'{' '.join(command)}' failed: {last_line(done.stderr)}")
    told: dict[str, Any] = json.loads(done.stdout)
    return sum(one["io_s"] + one["wait_s"] for one in told["applications"])
