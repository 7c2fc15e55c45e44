"""The plan of bench/reconfigure_cg.py: methods, cells, jobs, and the time that they take. Pure.

The first part runs all methods on a few cells. The second runs the best of them, and both Baselines, on all cells. Two
programs of nothing but MPI calls (bare_resize.c) run in both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import geometric_mean, median

from hocket.reconfigure.methods import USUAL, choose
from hocket.reconfigure.results import MEASURES, Results, rounds
from hocket.reconfigure.statistics import Pair

SEED = 26
SIZES = (1, 2, 4, 8)
# Growing within the cores of a small machine and beyond them, and shrinking to as many processes as cores.
CELLS = ((1, 2), (2, 4), (4, 2), (8, 2))
BEST = 6  # methods of the second part, beside the Baselines
BASELINES = ("baseline/plain/collective/blocking", "baseline/plain/p2p/blocking")
DEFAULT = "merge/parallel/p2p/blocking"
REFERENCES = ("bare/merge", "bare/baseline")
PATTERNS = (
    *USUAL,
    DEFAULT,
    *(f"merge/{strategy}/p2p/*" for strategy in ("single", "async", "single-async", "join")),
    *(f"{spawn}/plain/{data}/wait-targets" for spawn in ("merge", "baseline") for data in ("collective", "p2p")),
    "merge/plain/collective/blocking/node",
    "merge/plain/p2p/blocking/node",
    "merge/plain/p2p/wait-sources/node",
    "merge/async/p2p/wait-sources/node",
    "baseline/plain/p2p/blocking/node",
)
METHODS = tuple(method.name for method in choose(PATTERNS))

REACH = 2  # of the stencil: 125 nonzeros a row
NONZERO_BYTES = 4 + 8
CONSTANT_ROW_BYTES = 8 + 8  # the start of the row, and b
VARIABLE_ROW_BYTES = 3 * 8  # x, r and p
CONSTANT_SHARE = 0.95  # the least that a campaign should have


@dataclass(frozen=True, order=True)
class Job:
    """One run: a method, or a reference, on a cell. `repeat` counts from 1."""

    sources: int
    targets: int
    method: str
    repeat: int
    emulated: bool = False  # the emulation of CG in place of CG

    @property
    def pair(self) -> Pair:
        return self.sources, self.targets


@dataclass(frozen=True)
class Problem:
    """The size of the system that CG solves."""

    rows: int
    nonzeros: int

    @property
    def constant_bytes(self) -> int:
        return NONZERO_BYTES * self.nonzeros + CONSTANT_ROW_BYTES * self.rows

    @property
    def bytes(self) -> int:
        return self.constant_bytes + VARIABLE_ROW_BYTES * self.rows

    @property
    def constant_share(self) -> float:
        return self.constant_bytes / self.bytes


def stencil(points: int) -> Problem:
    """Return the size of the wide stencil; the rows at the border of the grid have fewer nonzeros."""
    along_an_edge = points * (2 * REACH + 1) - REACH * (REACH + 1)
    return Problem(points**3, along_an_edge**3)


def points_of(least_bytes: float) -> int:
    """Return the points along an edge of the smallest wide stencil with so many bytes."""
    points = 2 * REACH + 1
    while stencil(points).bytes < least_bytes:
        points += 1
    return points


def jobs_of(cells: Sequence[Pair], methods: Sequence[str], repetitions: int, emulated: bool = False) -> list[Job]:
    """Return the jobs of a part in random rounds, so that changes on the machine affect all methods alike.

    `emulated`: each method with the emulation, too.
    """
    what = [(cell, method, False) for cell in cells for method in (*methods, *REFERENCES)]
    if emulated:
        what += [(cell, method, True) for cell in cells for method in methods]
    numbers = range(1, repetitions + 1)
    return [Job(*cell, method, number, stands_in) for number, (cell, method, stands_in) in rounds(what, numbers, SEED)]


def best_methods(results: Results, cells: Sequence[Pair]) -> list[str]:
    """Return the best methods of the first part, without the Baselines.

    A method is as good as the geometric mean, over cells and measures, of its median beside the least of the cell. One
    that lacks a sample is not compared.
    """
    quotients: dict[str, list[float]] = defaultdict(list)
    for measure in MEASURES:
        for cell in cells:
            medians = {name: median(v) for name in results.names if (v := results.samples(measure, cell, name))}
            least = min(medians.values(), default=0.0)
            for name, value in medians.items():
                quotients[name].append(value / least if least > 0 else 1.0)
    whole = [name for name in quotients if len(quotients[name]) == len(MEASURES) * len(cells)]
    order = sorted(whole, key=lambda name: geometric_mean(quotients[name]))
    return [name for name in order if name not in BASELINES][:BEST]


def seconds_left(left: Sequence[Job], walls: Mapping[Job, float]) -> float | None:
    """Return how long these jobs take, if each takes as long as the median of those of its cell and kind.

    None: nothing was measured, so nothing is known.
    """
    if not walls:
        return None
    groups: dict[tuple, list[float]] = defaultdict(list)
    for job, wall_s in walls.items():
        for key in ((job.pair, job.method in REFERENCES), (job.method in REFERENCES,), ()):
            groups[key].append(wall_s)

    def expected(job: Job) -> float:
        reference = job.method in REFERENCES
        return median(next(groups[key] for key in ((job.pair, reference), (reference,), ()) if key in groups))

    return sum(map(expected, left))


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "an unknown time: run some with --limit first"
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{ceil(seconds / 60)} min"
