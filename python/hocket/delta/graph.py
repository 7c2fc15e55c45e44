"""A Δ-graph: the I/O times of two applications, alone and together, beside the expected ones.

Pure; times are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from hocket.analysis import Application
from hocket.delta.metric import UnknownFormulaError
from hocket.delta.model import Expected, Model
from hocket.tables import columns

VERSION = 1
NAMES = ("A", "B")
PHASE_GAP_S = 0.1  # HOCKET_PHASE_GAP_S: operations that are closer together belong to one phase


@dataclass(frozen=True)
class Phase:
    """The first I/O phase of an application, as the trace shows it. `start_ns`: by the node's clock."""

    start_ns: int
    io_s: float  # from the first START_IO to the last FINISH_IO, waits included
    wait_s: float = 0.0
    interruptions: int = 0
    accesses: int = 0
    bytes: int = 0
    target: str = ""


@dataclass(frozen=True)
class Alone:
    """One of the two applications by itself."""

    name: str
    told: str  # its command, or its simulated specification
    processes: int
    runs: tuple[Phase, ...]

    @property
    def io_s(self) -> float:
        return median(one.io_s for one in self.runs)

    @property
    def accesses(self) -> int:
        return round(median(one.accesses for one in self.runs))


@dataclass(frozen=True)
class Together:
    """One run of both applications."""

    policy: str
    wanted_dt_s: float
    a: Phase
    b: Phase

    @property
    def dt_s(self) -> float:
        return (self.b.start_ns - self.a.start_ns) / 1e9


@dataclass(frozen=True)
class Side:
    """One application at one point of the graph: medians of the runs."""

    io_s: float
    least_s: float
    most_s: float
    wait_s: float
    interruptions: float
    factor: float  # the interference factor: io_s / time alone
    expected_s: float | None
    expected_factor: float | None


@dataclass(frozen=True)
class Point:
    policy: str
    wanted_dt_s: float
    dt_s: float
    runs: int
    a: Side
    b: Side
    cost: float | None  # by the metric; None: not known
    expected_cost: float | None


def first_phase(application: Application, gap_s: float = PHASE_GAP_S) -> Phase | None:
    """Return the first I/O phase, or None if the application did no I/O.

    An application without START_IO is known by IO_PHASE alone.
    """
    operations = sorted(application.operations, key=lambda one: one.asked_ns)
    if not operations:
        phases = sorted(application.phases, key=lambda one: one.start_ns)
        if not phases:
            return None
        first = phases[0]
        wait_s, moved = first.wait_ns / 1e9, first.bytes_read + first.bytes_written
        io_s = (first.end_ns - first.start_ns) / 1e9
        return Phase(first.start_ns, io_s, wait_s, 0, first.operations, moved, first.target)
    within, end_ns = [], operations[0].asked_ns
    for one in operations:
        if one.finished_ns is None or one.asked_ns - end_ns > gap_s * 1e9:
            break
        within.append(one)
        end_ns = max(end_ns, one.finished_ns)
    start_ns = operations[0].asked_ns
    lane = [part for part in application.intervals(end_ns, start_ns) if part.end_ns <= end_ns]
    return Phase(
        start_ns,
        (end_ns - start_ns) / 1e9,
        sum(part.seconds for part in lane if part.kind == "waiting"),
        sum(len(one.pauses) for one in within),
        len(within),
        sum(one.bytes for one in within),
        operations[0].target,
    )


class Graph:
    """All points of a Δ-graph. `about`: further facts of how it was made, for as_json()."""

    def __init__(self, alone: Sequence[Alone], model: Model, runs: Iterable[Together], about: dict[str, Any]) -> None:
        self.alone, self.model, self.about = tuple(alone), model, about
        self.runs = list(runs)
        grouped: dict[tuple[str, float], list[Together]] = {}
        for run in self.runs:
            grouped.setdefault((run.policy, run.wanted_dt_s), []).append(run)
        self.points = [self._point(policy, wanted_s, found) for (policy, wanted_s), found in grouped.items()]

    @property
    def policies(self) -> list[str]:
        return list(dict.fromkeys(point.policy for point in self.points))

    def of(self, policy: str) -> list[Point]:
        """Return the points of a policy, by the dt that was measured."""
        return sorted((point for point in self.points if point.policy == policy), key=lambda point: point.dt_s)

    def expected(self, policy: str, dt_s: float) -> Expected | None:
        """Return the expected I/O times, or None if the model does not know the policy or the metric."""
        try:
            return self.model.expected(policy, dt_s)
        except UnknownFormulaError:
            return None

    def cost(self, expected: Expected | None, dt_s: float) -> float | None:
        try:
            return self.model.cost(expected, dt_s) if expected else None
        except UnknownFormulaError:
            return None

    def _point(self, policy: str, wanted_s: float, runs: Sequence[Together]) -> Point:
        dt_s = median(run.dt_s for run in runs)
        expected = self.expected(policy, dt_s)
        a = _side([run.a for run in runs], self.alone[0].io_s, expected.a_s if expected else None)
        b = _side([run.b for run in runs], self.alone[1].io_s, expected.b_s if expected else None)
        cost, expected_cost = self.cost(Expected(a.io_s, b.io_s), dt_s), self.cost(expected, dt_s)
        return Point(policy, wanted_s, dt_s, len(runs), a, b, cost, expected_cost)

    def as_json(self) -> dict[str, Any]:
        """Return all figures as a dictionary. docs/command.md documents the schema."""
        applications = [
            {
                "name": one.name,
                "command": one.told,
                "processes": one.processes,
                "alone_s": one.io_s,
                "alone_runs_s": [run.io_s for run in one.runs],
                "accesses": one.accesses,
                "bytes": one.runs[0].bytes,
                "target": one.runs[0].target,
            }
            for one in self.alone
        ]
        points = [_named(asdict(point)) for point in self.points]
        runs = [
            {
                "policy": run.policy,
                "wanted_dt_s": run.wanted_dt_s,
                "dt_s": run.dt_s,
                **{name: _run(phase) for name, phase in zip(NAMES, (run.a, run.b), strict=True)},
            }
            for run in self.runs
        ]
        head = {"hocket_delta": VERSION, **self.about, "metric": self.model.metric}
        return head | {"applications": applications, "points": points, "runs": runs}


def _side(phases: Sequence[Phase], alone_s: float, expected_s: float | None) -> Side:
    times = [one.io_s for one in phases]
    io_s = median(times)
    return Side(
        io_s,
        min(times),
        max(times),
        median(one.wait_s for one in phases),
        median(one.interruptions for one in phases),
        io_s / alone_s,
        expected_s,
        expected_s / alone_s if expected_s is not None else None,
    )


def _run(phase: Phase) -> dict[str, float]:
    return {"io_s": phase.io_s, "wait_s": phase.wait_s, "interruptions": phase.interruptions}


def _named(point: dict[str, Any]) -> dict[str, Any]:
    return {NAMES[0] if key == "a" else NAMES[1] if key == "b" else key: value for key, value in point.items()}


HEADINGS = ("policy", "dt s", "A s", "expected", "factor", "B s", "expected", "factor", "preempted")


def text_of(graph: Graph) -> str:
    """Return the times alone, and a line for each policy and dt.

    The name of a policy stands only in its first line.
    """
    lines = []
    for one in graph.alone:
        times = [run.io_s for run in one.runs]
        spread = f" ({min(times):.3f} to {max(times):.3f} in {len(times)} runs)" if len(times) > 1 else ""
        processes = f"{one.processes} process{'' if one.processes == 1 else 'es'}"
        lines.append(f"{one.name} alone: {one.io_s:.3f} s{spread}, {processes}: {one.told}")
    rows = []
    for policy in graph.policies:
        for number, point in enumerate(graph.of(policy)):
            stops = [f"{name} {side.interruptions:g}" for name, side in _sides(point) if side.interruptions]
            figures = [cell for _, side in _sides(point) for cell in _cells(side)]
            rows.append(("" if number else policy, f"{point.dt_s:.2f}", *figures, ", ".join(stops)))
    return "\n".join([*lines, "", columns(HEADINGS, rows, right=range(1, len(HEADINGS) - 1))])


def _sides(point: Point) -> tuple[tuple[str, Side], ...]:
    return tuple(zip(NAMES, (point.a, point.b), strict=True))


def _cells(side: Side) -> tuple[str, str, str]:
    expected = f"{side.expected_s:.3f}" if side.expected_s is not None else ""
    return f"{side.io_s:.3f}", expected, f"{side.factor:.2f}"
