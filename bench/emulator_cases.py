"""The cases of bench/emulator.py, and the runs of each. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from statistics import median

from emulator_matrices import Matrix
from hocket.emulator.calibration import LIMIT_S
from hocket.errors import UsageError

CAPTURE, REAL, EMULATED = "capture", "real", "emulated"
REPEAT = 5
ITERATIONS = 1000
RANKS = (1, 2, 4)
RESIZES = ((1, 2), (2, 1), (2, 4), (4, 2))
GATHERED = ((100_000, 1000), (10_000_000, 1000), (1_000_000_000, 20))  # bytes, and times: Proteo, Tables 1 and 2
GATHERERS = 2  # ranks

# Rough times of an idle machine, for a plan before the first run.
START_S, NONZERO_S, GATHERED_BYTE_S = 1.5, 1.5e-9, 7e-10


@dataclass(frozen=True)
class Solve:
    """The solver with a matrix and so many ranks. `targets`: those after half of the run; 0: no resize."""

    matrix: str
    ranks: int
    targets: int = 0

    @property
    def name(self) -> str:
        return f"cg/{self.matrix}/{self.ranks}" + (f":{self.targets}" if self.targets else "")

    @property
    def captured(self) -> list[Solve]:
        """Return the cases whose captured runs describe this one."""
        return [Solve(self.matrix, size) for size in (self.ranks, self.targets) if size]


@dataclass(frozen=True)
class Gather:
    """MPI_Allgatherv alone: this many bytes in all, so many times."""

    bytes: int
    count: int
    ranks: int = GATHERERS

    @property
    def name(self) -> str:
        return f"allgatherv/{size_name(self.bytes)}/{self.ranks}"


@dataclass(frozen=True)
class Calibrate:
    """The first measurement of what operations take on this machine, and a second use, which reads what is stored."""

    name: str = "calibration"


Case = Solve | Gather | Calibrate


@dataclass(frozen=True, order=True)
class Job:
    """A run of a case: captured, real or emulated. `repeat` counts from 1."""

    case: str
    kind: str
    repeat: int


def size_name(size: int) -> str:
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size}B"


def all_cases(names: Iterable[str], most_bytes: int) -> list[Case]:
    """Return the cases of these matrices, those of MPI_Allgatherv with at most so many bytes, and the calibration."""
    found: list[Case] = []
    for name in names:
        found += [Solve(name, ranks) for ranks in RANKS]
        found += [Solve(name, sources, targets) for sources, targets in RESIZES]
    sizes = {min(size, most_bytes): count for size, count in reversed(GATHERED)}
    return [*found, *(Gather(size, count) for size, count in sorted(sizes.items())), Calibrate()]


def select(cases: Sequence[Case], patterns: Sequence[str]) -> list[Case]:
    """Return the cases whose name matches a pattern. Raises UsageError for a pattern that matches none."""
    for pattern in patterns:
        if not any(fnmatchcase(case.name, pattern) for case in cases):
            raise UsageError(f"--cases: '{pattern}' matches none; there are {', '.join(one.name for one in cases)}")
    return [case for case in cases if any(fnmatchcase(case.name, pattern) for pattern in patterns)]


def jobs_of(case: Case, number: int) -> list[Job]:
    """Return the runs of a case in a round: captures that describe it, then a pair, of which the first alternates."""
    if isinstance(case, Calibrate):
        return [Job(case.name, EMULATED, number)]
    captured = case.captured if isinstance(case, Solve) else []
    pair = [Job(case.name, REAL, number), Job(case.name, EMULATED, number)]
    return [Job(one.name, CAPTURE, number) for one in captured] + (pair if number % 2 else pair[::-1])


def by_turns(cases: Iterable[Case], repeat: int) -> Iterator[tuple[Case, list[Job]]]:
    """Return the cases in the order in which they run, with the runs of each: rounds over all cases of a matrix.

    So a capture and the runs that are compared by it are minutes apart, and what the machine does in an hour concerns
    all of them alike.
    """
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.matrix if isinstance(case, Solve) else case.name, []).append(case)
    for group in groups.values():
        for number in range(1, repeat + 1):
            for case in group:
                yield case, jobs_of(case, number)


def seconds_of(case: Case, jobs: Sequence[Job], walls: Mapping[Job, float], matrices: Mapping[str, Matrix]) -> float:
    """Return how long these jobs take: as long as those of the same case, else a rough guess."""
    known: dict[str, list[float]] = {}
    for job, wall_s in walls.items():
        known.setdefault(job.case, []).append(wall_s)
    usual = _usual_s(case, matrices)
    return sum(median(known[job.case]) if job.case in known else usual for job in jobs)


def _usual_s(case: Case, matrices: Mapping[str, Matrix]) -> float:
    if isinstance(case, Calibrate):
        return LIMIT_S
    if isinstance(case, Gather):
        return START_S + case.bytes * case.count * GATHERED_BYTE_S
    cores = min(2, max(1, min(case.ranks, case.targets or case.ranks)))
    return START_S + matrices[case.matrix].nonzeros * ITERATIONS * NONZERO_S / cores
