"""Shared by the tests of `hocket emulate`: a description that grows and shrinks, and the end of a run."""

from __future__ import annotations

import json
import subprocess

LIMIT_S = 90
GROWING = """
name = "growing"
oversubscribe = true
[data]
bytes = 1_000_003
constant_percent = 75
[[group]]
processes = 1
iterations = 3
[[group]]
processes = 3
iterations = 4
{methods}
[[group]]
processes = 2
iterations = 3
[[phase]]
[[phase.stage]]
kind = "sleep"
time_s = 0.005
[[phase.stage]]
kind = "allreduce"
bytes = 8
"""


def ended(process: subprocess.Popen) -> tuple[int, dict, str]:
    """Return the exit code, the summary, and what went to stderr."""
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    assert out, err
    return process.returncode, json.loads(out), err


def waits_at_most(limit_s: float, methods: str = "") -> str:
    """Return the description with this limit of a wait. `methods`: of the first resize."""
    return f"resize_limit_s = {limit_s}\n" + GROWING.format(methods=methods)


def missing(figures: dict) -> list[tuple[int, int, int]]:
    return [(one["from"], one["to"], one["iteration"]) for one in figures["missing_resizes"]]
