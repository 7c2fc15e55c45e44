"""A figure of a paper: what it needs, how it is made again, and what is said of the result.

`make` runs simulations or programs and returns results that JSON can hold. `judge` and `draw` need nothing but these
results, so a page can be made again from a cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Results = dict[str, Any]
Number = float | str | None

SIMULATOR, FORMULA, LIVE = "simulator", "formula", "live"  # how a figure is made
RECORD = "record"  # from the record of a benchmark, which takes hours and is run before
DRAWING = "drawing"  # the paper's figure shows a design or parameters, nothing that can be measured
MISSING = "missing"  # something that hocket lacks

AGREES, PARTLY, DIFFERS = "agrees", "agrees in part", "differs"
UNMEASURED = "not measured"  # of a record that lacks what the figure needs


@dataclass(frozen=True)
class Options:
    """The choices of the user that change results."""

    swf: Path | None = None  # a log of jobs, for CALCioM's Fig. 1

    def as_json(self) -> dict[str, str]:
        return {"swf": str(self.swf.resolve())} if self.swf else {}


@dataclass(frozen=True)
class Value:
    """A number of a figure. `paper` is None where the text of the paper has no number for it."""

    what: str
    unit: str
    paper: Number
    ours: Number
    calibrated: bool = False  # a parameter was chosen so that ours comes near the paper's


@dataclass(frozen=True)
class Finding:
    """What a reader learns: the values, if they agree, and which assumption decides where they differ."""

    values: tuple[Value, ...]
    agreement: str  # AGREES, PARTLY, DIFFERS or UNMEASURED
    verdict: str


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper. `identity` is what the user types, as in "calciom-9"."""

    identity: str
    title: str
    how: str  # SIMULATOR, FORMULA, LIVE, RECORD, DRAWING or MISSING
    needs: str  # what it needs here; for a drawing: where hocket shows the same
    make: Callable[[Options], Results] | None = None
    judge: Callable[[Results], Finding] | None = None
    draw: Callable[[Results, Path], None] | None = None

    @property
    def paper(self) -> str:
        return self.identity.partition("-")[0]

    @property
    def can_be_made(self) -> bool:
        return self.make is not None


def drawing(identity: str, title: str, shown_by: str) -> Figure:
    return Figure(identity, title, DRAWING, shown_by)


def missing(identity: str, title: str, needs: str) -> Figure:
    return Figure(identity, title, MISSING, needs)


NEAR = 0.1  # relative difference up to which a value agrees


def near(ours: float, paper: float, within: float = NEAR) -> bool:
    return abs(ours - paper) <= within * abs(paper)


def agreement(checks: list[bool]) -> str:
    return AGREES if all(checks) else PARTLY if any(checks) else DIFFERS
