"""Gives runs with different numbers of processes the same stages. Pure.

Computing that is too short to be a stage is part of a later one (stages.py). What is short depends on the number of
processes: where they share cores, iterations are longer, and each has less to compute.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hocket.capture.stages import Phase, Run, Stage

COMPUTE = "compute"


def align(runs: Mapping[int, Run]) -> dict[int, Run]:
    """Return the runs. Computing that some of them lack is part of the next computing that all of them have.

    Runs that differ in anything else are returned as they are.
    """
    phases = {size: list(run.phases) for size, run in runs.items()}
    if len({len(one) for one in phases.values()}) != 1:
        return dict(runs)
    for at in range(len(next(iter(phases.values())))):
        for one, phase in zip(phases.values(), aligned([one[at] for one in phases.values()]), strict=True):
            one[at] = phase
    return {size: replace(run, phases=tuple(phases[size])) for size, run in runs.items()}


def aligned(phases: Sequence[Phase]) -> list[Phase]:
    """Return what different numbers of processes did in the same phase, as `align` does."""
    others = [[stage for stage in phase.stages if stage.kind != COMPUTE] for phase in phases]
    shapes = {tuple((stage.kind, stage.every, stage.access) for stage in one) for one in others}
    computing = [_computing(phase) for phase in phases]
    places = [set(one) for one in computing]
    common = set.intersection(*places)
    if len(shapes) != 1 or not common or all(one == common for one in places):
        return list(phases)
    found = []
    for phase, stages, by_place in zip(phases, others, computing, strict=True):
        kept = _gathered(by_place, sorted(common))
        merged: list[Stage] = []
        for place, stage in enumerate([*stages, None]):
            merged += [one for one in (kept.get(place), stage) if one is not None]
        found.append(replace(phase, stages=tuple(merged)))
    return found


def _computing(phase: Phase) -> dict[int, Stage]:
    """Return the computing by its place: how many other stages precede it."""
    found: dict[int, Stage] = {}
    place = 0
    for stage in phase.stages:
        if stage.kind == COMPUTE:
            found[place] = _sum(found[place], stage) if place in found else stage
        else:
            place += 1
    return found


def _gathered(by_place: Mapping[int, Stage], common: Sequence[int]) -> dict[int, Stage]:
    """Return the computing of the common places, with that of the others, the last ones' at the last place."""
    found: dict[int, Stage] = {}
    for place, stage in by_place.items():
        at = next((one for one in common if one >= place), common[-1])
        found[at] = _sum(found[at], stage) if at in found else stage
    return found


def _sum(one: Stage, other: Stage) -> Stage:
    cpu_s = tuple(a + b for a, b in zip(one.cpu_s, other.cpu_s, strict=True))
    elapsed_s = tuple(a + b for a, b in zip(one.elapsed_s, other.elapsed_s, strict=True))
    whole = sum(cpu_s)
    deviation = math.hypot(one.jitter * sum(one.cpu_s), other.jitter * sum(other.cpu_s))  # they vary independently
    return replace(one, cpu_s=cpu_s, elapsed_s=elapsed_s, jitter=deviation / whole if whole > 0 else 0.0)
