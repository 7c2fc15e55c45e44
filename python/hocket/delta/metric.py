"""Evaluates the metrics that `dynamic` minimises: formulas over applications (src/core/policy/metric.hpp).

Pure. The names `processes`, `io_time` (waits included), `alone`, and `end` belong to each application; times are
seconds. A Δ-graph knows neither FLOP/s nor run times, so formulas with `flops` or `run_time` are not evaluated. The
aggregates sum, mean, max, and min go over all applications. A formula without an aggregate is summed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

FORMULAS = {
    "cpu-time": "sum(processes*io_time)",
    "io-time": "sum(io_time)",
    "interference": "sum(io_time/alone)",
    "makespan": "max(end)",
}
NAMES = ("processes", "io_time", "alone", "end")
AGGREGATES: dict[str, Callable[[list[float]], float]] = {"sum": sum, "mean": fmean, "max": max, "min": min}
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


@dataclass(frozen=True)
class Figures:
    """The figures of one application; times are seconds."""

    processes: float
    io_time: float
    alone: float
    end: float


class UnknownFormulaError(ValueError):
    """This module cannot evaluate the formula. Only hocketd knows if it is valid."""


def value_of(metric: str, applications: Sequence[Figures]) -> float:
    """Return the value of a metric, given by name or as a formula. Raises UnknownFormulaError."""
    text = FORMULAS.get(metric, metric)
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise UnknownFormulaError(text) from error
    if not any(isinstance(node, ast.Call) for node in ast.walk(tree)):
        return sum(_value(tree, [one]) for one in applications)
    return _value(tree, applications)


def _value(node: ast.expr, of: Sequence[Figures]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name) if name in NAMES and len(of) == 1:
            return float(getattr(of[0], name))
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, of)
        case ast.BinOp() if type(node.op) in _OPERATORS:
            left, right = _value(node.left, of), _value(node.right, of)
            try:
                return float(_OPERATORS[type(node.op)](left, right))  # not a float: a root of a negative number
            except (ArithmeticError, TypeError) as error:
                raise UnknownFormulaError(str(error)) from error
        case ast.Call(func=ast.Name(id=str(name)), args=[inner]) if name in AGGREGATES:
            return float(AGGREGATES[name]([_value(inner, [one]) for one in of]))
    raise UnknownFormulaError(ast.unparse(node))
