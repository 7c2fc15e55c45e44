"""The runs of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solvers import Solver


@dataclass(frozen=True)
class Plan:
    """One run of one or both solvers under one policy; its trace is named after it."""

    name: str
    label: str
    policy: str
    applications: Sequence[Solver]


def plans(a: Solver, b: Solver) -> list[Plan]:
    return [
        Plan("alone-a", f"{a.name} alone", "interfere", [a]),
        Plan("alone-b", f"{b.name} alone", "interfere", [b]),
        Plan("uncoordinated", "together, uncoordinated", "interfere", [a, b]),
        Plan("fcfs", "together, fcfs", "fcfs", [a, b]),
    ]
