"""A point of a profile, the checks of its values, and the points from the events of a run. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

from hocket.analysis import Application, Phase
from hocket.busy import times_of
from hocket.errors import HocketError

MOST_PROCESSES = 1 << 32
MOST_SECONDS = 1e7  # for an iteration or an I/O phase: four months
MOST_FLOP = 1e24
MOST_SAMPLES = 1 << 40
MOST_POINTS = 256  # most points of a program that the controller keeps
RISE = 1.1  # growth of a time with more processes, beyond its spread, that is reported


class PointError(HocketError):
    """An invalid value; the text names it. A reader of a file adds the name of the file."""


@dataclass(frozen=True)
class Point:
    """The times of a program at one number of processes. Keys and units are those of the event PROFILE."""

    processes: int
    iteration_s: float  # T_cpu + T_comm of one iteration, mean
    iteration_spread_s: float = 0.0  # standard deviation
    io_s: float = 0.0  # T_io of one I/O phase, undisturbed, mean
    io_spread_s: float = 0.0
    samples: int = 1  # number of measured phases
    flop_per_iteration: float = 0.0  # count of all processes; 0: not known
    measured_unix_s: float = 0.0
    comm_s: float = -1.0  # the part of iteration_s that is T_comm, mean; -1: not known

    @property
    def cpu_s(self) -> float | None:
        """Return the part of iteration_s that is T_cpu; None: not known."""
        return self.iteration_s - self.comm_s if self.comm_s >= 0 else None


KEYS = tuple(field.name for field in fields(Point))
NEEDED = ("processes", "iteration_s")
_WHOLE = ("processes", "samples")
_RANGES = {
    "processes": (1, MOST_PROCESSES),
    "samples": (1, MOST_SAMPLES),
    "flop_per_iteration": (0, MOST_FLOP),
    "measured_unix_s": (0, 1e11),
    "comm_s": (-1, MOST_SECONDS),
}


def point_of(values: dict[str, Any]) -> Point:
    """Return the point. Raises PointError with key and value if one is missing, unknown, or invalid."""
    for key in NEEDED:
        if key not in values:
            raise PointError(f"{key} is missing")
    for key, value in values.items():
        if key not in KEYS:
            raise PointError(f"{key}: unknown; there are: {', '.join(KEYS)}")
        least, most = _RANGES.get(key, (0, MOST_SECONDS))
        kinds = (int,) if key in _WHOLE else (int, float)
        if not isinstance(value, kinds) or isinstance(value, bool) or not math.isfinite(value):
            raise PointError(f"{key} = {value!r}: give a {'whole ' if key in _WHOLE else ''}number")
        if not least <= value <= most:
            raise PointError(f"{key} = {value:g}: give a value from {least:g} to {most:g}")
    point = Point(**values)
    if point.iteration_s <= 0:
        raise PointError(f"iteration_s = {point.iteration_s:g}: an iteration takes more than 0 seconds")
    if point.comm_s > point.iteration_s or -1 < point.comm_s < 0:
        raise PointError(f"comm_s = {point.comm_s:g}: give a part of iteration_s, or -1 if it is not known")
    return point


def check_order(points: Sequence[Point]) -> None:
    """Raise PointError if sizes do not rise, or are too many."""
    if len(points) > MOST_POINTS:
        raise PointError(f"points: {len(points)} are too many; give at most {MOST_POINTS}")
    for before, after in pairwise(points):
        if after.processes <= before.processes:
            raise PointError(f"processes = {after.processes} after {before.processes}: sizes must rise")


def rises(points: Sequence[Point]) -> Iterator[str]:
    """Yield a note for each size at which more processes take clearly longer. It may be true, but deserves a look."""
    for before, after in pairwise(points):
        noise_s = 2 * (before.iteration_spread_s + after.iteration_spread_s)
        if after.iteration_s > RISE * before.iteration_s + noise_s:
            yield (
                f"iteration_s = {after.iteration_s:.4g} of {after.processes} processes is above the "
                f"{before.iteration_s:.4g} of {before.processes}"
            )


def points_from(applications: Iterable[Application], measured_unix_s: float = 0.0, least: int = 2) -> list[Point]:
    """Return a point for each number of processes with at least `least` whole I/O periods in the runs.

    A period counts if the size is the same at its start and its end, and no reconfiguration lies between. The first
    period of each size does not count: caches are cold, and processes have just started. Without control points, a
    period counts as one iteration. At sizes with too few periods, reports of iterations count instead: the program does
    little I/O or none.
    """
    samples: dict[int, list[_Period]] = {}
    told = list(applications)
    for application in told:
        for processes, periods in _of_most_telling(application).items():
            samples.setdefault(processes, []).extend(periods)
    for application in told:
        for processes, reports in _reports(application).items():
            if len(samples.get(processes, ())) < least <= len(reports):
                samples[processes] = reports
    return [
        Point(
            processes,
            *_mean_and_spread([period.compute_s for period in found]),
            *_mean_and_spread([period.io_s for period in found]),
            len(found),
            found[-1].flop,
            measured_unix_s,
            fmean(period.comm_s for period in found),
        )
        for processes, found in sorted(samples.items())
        if len(found) >= least
    ]


@dataclass(frozen=True)
class _Period:
    compute_s: float  # per iteration
    comm_s: float  # the part of it that is communication
    io_s: float  # I/O time of the phase
    flop: float  # per iteration


def _reports(application: Application) -> dict[int, list[_Period]]:
    """Return the times of iterations by size, a mean for each report. The first report of each size does not count."""
    found: dict[int, list[_Period]] = {}
    before = 0
    for report in application.iterations:
        if report.processes == before and report.count > 0 and report.computed_ns > 0:
            computed_s, comm_s = (ns / 1e9 / report.count for ns in (report.computed_ns, report.comm_ns))
            found.setdefault(report.processes, []).append(
                _Period(computed_s, comm_s, 0.0, application.flop_per_iteration)
            )
        before = report.processes
    return found


def _of_most_telling(application: Application) -> dict[int, list[_Period]]:
    """Return the periods by size. Each size's come from the member that reported most: several may report the same."""
    counting = [phase for phase in application.io_phases if phase.iteration >= 0] or application.io_phases
    found: dict[int, list[_Period]] = {}
    for member in dict.fromkeys(phase.member for phase in counting):
        of_member: dict[int, list[_Period]] = {}
        for processes, period in _periods(application, [phase for phase in counting if phase.member == member]):
            of_member.setdefault(processes, []).append(period)
        for processes, periods in of_member.items():
            if len(periods) > len(found.get(processes, ())):
                found[processes] = periods
    return found


def _periods(application: Application, phases: Sequence[Phase]) -> Iterator[tuple[int, _Period]]:
    """Yield each period that counts, with its number of processes."""
    phases = _without_repeats(application, phases)
    settled = False  # True after one whole period of this size
    for before, after in pairwise(phases):
        processes = after.processes or application.size_at(after.start_ns)
        same = processes == (before.processes or application.size_at(before.end_ns))
        if same and not any(before.end_ns <= one.time_ns <= after.start_ns for one in application.reconfigurations):
            if settled:
                counted = before.iteration >= 0 and after.iteration > before.iteration
                iterations = after.iteration - before.iteration if counted else 1
                cpu_s, comm_s = (ns / 1e9 / iterations for ns in _cpu_and_comm_ns(before, after, processes))
                flop = after.flop / iterations or application.flop_per_iteration
                io_s = times_of(after.parts()).io_ns / 1e9
                yield processes, _Period(cpu_s + comm_s, comm_s, io_s, flop)
            settled = True
        else:
            settled = False


def _cpu_and_comm_ns(before: Phase, after: Phase, processes: int) -> tuple[float, float]:
    """Return CPU and communication time between the phases.

    It is the mean over the processes if all have reported, else that of the reporting process.
    """
    if not before.told_processes == after.told_processes == processes:
        return after.cpu_ns, after.comm_ns
    sums = (after.all_cpu_ns - before.all_cpu_ns, after.all_comm_ns - before.all_comm_ns)
    return sums[0] / processes, sums[1] / processes


def _without_repeats(application: Application, phases: Sequence[Phase]) -> list[Phase]:
    """Return the phases, and join those with no iteration between them.

    A program that writes and reads back does so in one period.
    """
    joined: list[Phase] = []
    for phase in phases:
        before = joined[-1] if joined else None
        if before is None or phase.iteration < 0 or phase.iteration != before.iteration:
            joined.append(phase)
        elif not any(before.end_ns <= one.time_ns <= phase.start_ns for one in application.reconfigurations):
            sums = {key: getattr(before, key) + getattr(phase, key) for key in ("io_ns", "cpu_ns", "comm_ns", "flop")}
            last = phase if phase.told_processes else before
            told = {key: getattr(last, key) for key in ("told_processes", "all_cpu_ns", "all_comm_ns")}
            joined[-1] = replace(before, end_ns=phase.end_ns, **sums, **told)
        else:
            joined.append(phase)
    return joined


def _mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    return fmean(values), stdev(values) if len(values) > 1 else 0.0
