"""Predicts the I/O times of two applications, as piecewise linear functions of dt. Pure; times are seconds.

A starts its I/O phase at 0, B at dt. Alone they take T_A and T_B. The table holds for 0 <= dt < T_A, while A still does
I/O. dt < 0 is the mirror image; otherwise the phases do not meet.

    interfere   Both continue, each at a fraction of its own speed. The one that is left alone continues at full speed.
    fcfs        A takes T_A, B takes T_A - dt + T_B.
    interrupt   A takes T_A + T_B, B takes T_B (CALCioM, section IV-D). If A stops only at the end of one of `pieces`
                equal pieces (files), B waits for that end. A is not preempted in its last piece: the saw of Fig. 10.
    dynamic     The one of these with the least value of the metric.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from hocket.delta.metric import Figures, value_of

FAIR, PROPORTIONAL, QUEUED = "fair", "proportional", "queued"
SHARINGS = (FAIR, PROPORTIONAL, QUEUED)
ROUNDING_S = 1e-9


@dataclass(frozen=True)
class Side:
    """One of the two applications."""

    alone_s: float
    processes: int = 1
    pieces: int = 0  # number of pieces, if it can be preempted only between them; 0: at any time
    rate: float = 0.5  # fraction of its own speed while both do I/O


@dataclass(frozen=True)
class Expected:
    """The I/O times, waits included."""

    a_s: float
    b_s: float


@dataclass(frozen=True)
class Model:
    a: Side
    b: Side
    metric: str = "cpu-time"
    together: bool = False  # transfers that overlap end together ("queued")

    def expected(self, policy: str, dt_s: float) -> Expected | None:
        """Return the expected times, or None if this model does not know the policy.

        Raises UnknownFormulaError for an unknown metric.
        """
        known = EXPECTED.get(policy)
        if known is None:
            return None
        if dt_s < 0:
            mirrored = replace(self, a=self.b, b=self.a).expected(policy, -dt_s)
            return Expected(mirrored.b_s, mirrored.a_s) if mirrored else None
        if dt_s >= self.a.alone_s:
            return Expected(self.a.alone_s, self.b.alone_s)
        return known(self, dt_s)

    def cost(self, expected: Expected, dt_s: float) -> float:
        """Return the value of the metric. Ends are counted from the start of the first of the two."""
        first_s = min(0.0, dt_s)
        a = Figures(self.a.processes, expected.a_s, self.a.alone_s, expected.a_s - first_s)
        b = Figures(self.b.processes, expected.b_s, self.b.alone_s, dt_s + expected.b_s - first_s)
        return value_of(self.metric, [a, b])


def rates(sharing: str, a: tuple[float, int], b: tuple[float, int], bandwidth: float) -> tuple[float, float]:
    """Return the fractions of their own speeds that both get at once.

    `a` and `b`: most bandwidth of its own, number of processes.
    """
    weights = (a[1], b[1]) if sharing == PROPORTIONAL else (1, 1)
    levels = [bandwidth * weight / sum(weights) for weight in weights]
    got_a = min(a[0], max(levels[0], bandwidth - min(b[0], levels[1])))
    got_b = min(b[0], max(levels[1], bandwidth - min(a[0], levels[0])))
    return got_a / a[0], got_b / b[0]


def _interfere(model: Model, dt_s: float) -> Expected:
    left_s = model.a.alone_s - dt_s
    if model.together:
        return Expected(model.a.alone_s + model.b.alone_s, left_s + model.b.alone_s)
    both_s = min(left_s / model.a.rate, model.b.alone_s / model.b.rate)
    a_s = dt_s + both_s + left_s - both_s * model.a.rate
    b_s = both_s + model.b.alone_s - both_s * model.b.rate
    return Expected(a_s, b_s)


def _fcfs(model: Model, dt_s: float) -> Expected:
    return Expected(model.a.alone_s, model.a.alone_s - dt_s + model.b.alone_s)


def _interrupt(model: Model, dt_s: float) -> Expected:
    stop_s = dt_s
    if model.a.pieces:
        piece_s = model.a.alone_s / model.a.pieces
        stop_s = math.ceil((dt_s - ROUNDING_S) / piece_s) * piece_s
        if dt_s <= 0:
            stop_s = piece_s  # the first piece has begun
    if stop_s >= model.a.alone_s - ROUNDING_S:
        return _fcfs(model, dt_s)
    return Expected(model.a.alone_s + model.b.alone_s, stop_s - dt_s + model.b.alone_s)


def _dynamic(model: Model, dt_s: float) -> Expected:
    found = [one(model, dt_s) for one in (_fcfs, _interrupt, _interfere)]
    return min(found, key=lambda one: model.cost(one, dt_s))


EXPECTED: dict[str, Callable[[Model, float], Expected]] = {
    "interfere": _interfere,
    "none": _interfere,
    "fcfs": _fcfs,
    "interrupt": _interrupt,
    "dynamic": _dynamic,
}
