"""The conditions that must hold before the demo trusts its figures."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Sequence
from pathlib import Path

from errors import DemoError
from hocket.analysis import Analysis, Operation, analyse
from hocket.paths import hocketd
from hocket.trace import read_trace
from plan import Plan
from solvers import RunningSolver, Solver

REPLAY_LIMIT_S = 60


class Checker:
    """Checks each run after its end, and raises DemoError at the first fault."""

    def __init__(self) -> None:
        self._residuals: dict[Solver, float] = {}  # of its first run
        self._verified = self._bytes = self._runs = 0

    def run(self, plan: Plan, ended: Sequence[RunningSolver], trace: Path) -> None:
        self._runs += 1
        for solver in ended:
            self._result(plan.label, solver)
        self._trace(plan, trace)
        replay(trace)

    def _result(self, label: str, ended: RunningSolver) -> None:
        """Check that the residual fell and is bit for bit that of every other run."""
        name, residual = ended.solver.name, ended.summary["residual"]
        first = self._residuals.setdefault(ended.solver, residual)
        if residual != first:
            raise DemoError(f"{name} came to residual {residual:.17g} in run '{label}', but to {first:.17g} before")
        if not residual < ended.summary["b_norm"]:
            raise DemoError(
                f"{name} did not converge: residual {residual:.3g}, norm of b {ended.summary['b_norm']:.3g}"
            )
        self._verified += ended.summary["verified"]
        self._bytes += ended.summary["checkpoint_bytes"]

    def _trace(self, plan: Plan, path: Path) -> None:
        """Check that the daemon saw the solvers and their I/O phases."""
        if not path.exists():
            raise DemoError(f"hocketd wrote no trace {path} of run '{plan.label}'")
        analysis = analyse(read_trace(path))
        for solver in plan.applications:
            seen = [application for application in analysis.applications if application.name == solver.name]
            phases = sum(len(application.phases) for application in seen)
            if len(seen) != 1 or phases < solver.checkpoints:
                raise DemoError(
                    f"{path}: {len(seen)} applications called {solver.name}, {phases} I/O phases; it wrote "
                    f"{solver.checkpoints} checkpoints"
                )
        if plan.policy == "fcfs" and (both := overlapping(analysis)):
            raise DemoError(f"{path}: under fcfs two applications did I/O at once: {both[0]} and {both[1]}")

    def statement(self) -> str:
        return (
            f"{self._verified} checkpoints ({self._bytes / 1e9:.1f} GB) are byte for byte what the solvers held; both "
            f"solvers came to the same residuals in every run; all {self._runs} traces replay with the same commands"
        )


def overlapping(analysis: Analysis) -> tuple[Operation, Operation] | None:
    """Return two granted operations of different applications that overlap in time, or None."""
    granted = sorted(
        (operation.granted_ns, operation.finished_ns, application.name, operation)
        for application in analysis.applications
        for operation in application.operations
        if operation.granted_ns is not None and operation.finished_ns is not None
    )
    for (_, end, name, operation), (start, _, other_name, other) in itertools.combinations(granted, 2):
        if name != other_name and start < end:
            return operation, other
    return None


def replay(trace: Path) -> None:
    """Check that hocketd replays the trace with the same commands. Raises DemoError."""
    done = subprocess.run([hocketd(), "--replay", trace], capture_output=True, text=True, timeout=REPLAY_LIMIT_S)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise DemoError(f"the trace {trace} does not replay: {said[-1] if said else f'code {done.returncode}'}")
