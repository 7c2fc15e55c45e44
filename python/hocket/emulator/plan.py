"""The completed description as the emulator program reads it (src/tools/emulator/plan.hpp)."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from hocket.emulator.description import Data, Description, Group, Stage
from hocket.emulator.keys import COMPUTING

Operations = dict[tuple[str, int], float]  # CPU seconds of an operation by kind and granularity


def granularities(description: Description) -> list[tuple[str, int]]:
    """Return the kinds of operations that must be calibrated, each with its granularity."""
    counted = [one for one in description.stages if one.kind in COMPUTING and one.ends_by == "operations"]
    return sorted({(one.kind, one.granularity or 0) for one in counted})


def plan_of(description: Description, operations: Operations) -> dict[str, Any]:
    return {
        "name": description.name,
        "seed": description.seed,
        "resize_limit_s": description.resize_limit_s,
        "data": asdict(description.data) | {"shares": _shares(description.data)},
        "groups": [_group(one) for one in description.groups],
        "phases": [
            {"iterations": one.iterations, "stages": [_stage(stage, operations) for stage in one.stages]}
            for one in description.phases
        ],
    }


def _group(group: Group) -> dict[str, Any]:
    told = {"processes": group.processes, "iterations": group.iterations, "factor": group.factor}
    return told | {"methods": group.methods, "in_background": group.in_background}


def _stage(stage: Stage, operations: Operations) -> dict[str, Any]:
    told = {
        one.name: getattr(stage, one.name) for one in fields(stage) if one.name not in ("place", "factors", "shares")
    }
    told["operation_s"] = operations.get((stage.kind, stage.granularity or 0), 0.0)
    told["factors"] = [[size, factor] for size, factor in (_factors(stage) or {}).items()]
    told["shares"] = _shares(stage)
    return {key: value for key, value in told.items() if value is not None}


def _shares(of: Data | Stage) -> list[list[float]]:
    return [list(one) for one in of.shares.values()]


def _factors(stage: Stage) -> dict[int, float] | None:
    """Return the stage's own factors; {} for a stage that scales as the groups do."""
    if stage.factors is None and stage.kind not in COMPUTING:
        return {1: 1.0}
    return stage.factors


def stage_names(plan: dict[str, Any], phase: int) -> list[str]:
    """Return the names of the stages of a phase of a plan."""
    return [stage["name"] for stage in plan["phases"][phase]["stages"]]
