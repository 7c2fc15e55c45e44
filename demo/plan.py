"""The runs of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solvers import Solver


@dataclass(frozen=True)
class Plan:
    """One run of one or both solvers under one policy; its trace has its name. The table has the runs with `shown`."""

    name: str
    label: str
    policy: str
    applications: Sequence[Solver]
    shown: bool = True


def plans(a: Solver, b: Solver, policy: str, told: str) -> list[Plan]:
    """Return the runs in the table. `policy` is the default or its replacement, `told` its name for users."""
    return [
        Plan("alone-a", f"{a.name} alone", "interfere", [a]),
        Plan("alone-b", f"{b.name} alone", "interfere", [b]),
        Plan("uncoordinated", "together, uncoordinated", "interfere", [a, b]),
        Plan("fcfs", "together, fcfs", "fcfs", [a, b]),
        Plan("default", f"together, {told}", policy, [a, b]),
    ]


def pairs(a: Solver, b: Solver, policy: str, told: str, count: int) -> list[tuple[Plan, Plan]]:
    """Return pairs (uncoordinated, default)."""
    return [
        (
            Plan(f"pair-{n}-uncoordinated", f"pair {n}, uncoordinated", "interfere", [a, b], shown=False),
            Plan(f"pair-{n}-default", f"pair {n}, {told}", policy, [a, b], shown=False),
        )
        for n in range(1, count + 1)
    ]
