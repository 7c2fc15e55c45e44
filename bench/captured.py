"""Descriptions of what was captured, with a resize: for bench/emulator.py and bench/reconfigure_cg.py. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hocket.capture.describe import describe
from hocket.capture.stages import Run

CAPTURES = 3  # runs of each size; the one in the middle is described


@dataclass(frozen=True)
class Part:
    """The processes between two resizes, and their iterations."""

    processes: int
    iterations: int


@dataclass(frozen=True)
class Moved:
    """The data that a resize moves."""

    bytes: int
    constant_share: float


def middle(runs: Sequence[Run]) -> Run:
    """Return the run with the median CPU time of computing: other work on the machine may disturb one of them."""
    return sorted(runs, key=_computing_s)[len(runs) // 2]


def _computing_s(run: Run) -> float:
    """Return the CPU time of all ranks without communication, which polls, and so uses CPU time as it waits."""
    stages = [(phase.iterations, stage) for phase in run.phases for stage in phase.stages if stage.kind == "compute"]
    return sum(iterations * sum(stage.cpu_s) for iterations, stage in stages)


def iterating(run: Run, iterations: int) -> Run:
    """Return the run without what precedes and follows its iterations."""
    phase = max(run.phases, key=lambda one: one.iterations)
    return replace(run, phases=(replace(phase, iterations=iterations),))


def resizable(name: str, runs: Mapping[int, Run], parts: Sequence[Part], moved: Moved) -> str:
    """Return the description of an application whose processes change from part to part. It may oversubscribe cores.

    The runs are those of `iterating`, by number of processes.
    """
    text, _ = describe(name, runs)
    head, _, rest = text.partition("[[group]]")
    head = head.rstrip("\n") + "\noversubscribe = true\n\n"
    stages = rest[rest.index("[[phase]]") :]
    data = f"[data]\nbytes = {moved.bytes}\nconstant_percent = {100 * moved.constant_share:.4f}\n"
    groups = [f"[[group]]\nprocesses = {part.processes}\niterations = {part.iterations}\n" for part in parts]
    return head + "\n".join([data, *groups, stages])
