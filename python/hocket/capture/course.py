"""Cuts the run of a malleable program where its number of processes changed. Pure.

libhocket logs each control point, with the number of resizes so far, and what the registered arrays hold after each
(src/libhocket/malleable/job_log.hpp). What lies between two resizes is analysed like a run of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hocket.capture.log import CONTROL_POINT, DATA, METHOD, CaptureError, RankLog
from hocket.capture.stages import Run, run_of

LEAVES = -1  # rank of a process that leaves


@dataclass(frozen=True)
class Held:
    """The bytes of registered arrays in one process, or in several."""

    constant: int = 0
    variable: int = 0
    replicated_constant: int = 0  # in each process
    replicated_variable: int = 0


@dataclass(frozen=True)
class Group:
    """What was seen between two resizes."""

    run: Run
    iterations: int
    methods: tuple[str, ...] = ()  # of the resize that led to it
    held: tuple[Held, ...] = ()  # by rank; () for a program that is not malleable

    @property
    def data(self) -> Held:
        """What all processes hold together, but for replicated arrays, of which each has all."""
        first = self.held[0] if self.held else Held()
        return Held(
            sum(one.constant for one in self.held),
            sum(one.variable for one in self.held),
            first.replicated_constant,
            first.replicated_variable,
        )


@dataclass(frozen=True)
class _Part:
    """One process between two resizes."""

    log: RankLog  # of this time alone
    iterations: int
    methods: tuple[str, ...]
    held: Held


def course_of(logs: Sequence[RankLog]) -> list[Group]:
    """Return what each number of processes did, one after the other; one group if there was no resize.

    Raises CaptureError if the logs lack a process.
    """
    groups: dict[int, dict[int, _Part]] = {}  # by number of resizes, and rank
    for log in logs:
        for resizes, part in _parts(log):
            groups.setdefault(resizes, {})[part.log.rank] = part
    if not groups:
        run = run_of(logs)
        return [Group(run, sum(phase.iterations for phase in run.phases))]
    return [_group([parts[rank] for rank in _ranks(parts)]) for _, parts in sorted(groups.items())]


def whole_run(logs: Sequence[RankLog]) -> Run:
    """Return the times of the whole run. If there were resizes, they are part of the control points."""
    groups = course_of(logs)
    if len(groups) == 1:
        return groups[0].run
    elapsed_s = (max(log.started_ns + log.elapsed_ns for log in logs) - min(log.started_ns for log in logs)) / 1e9
    runs = [group.run for group in groups]
    communication_s, io_s = sum(run.communication_s for run in runs), sum(run.io_s for run in runs)
    return Run(
        runs[0].processes,
        elapsed_s,
        sum(run.cpu_s for run in runs),
        communication_s,
        io_s,
        sum(run.dropped for run in runs),
        (),
        elapsed_s - communication_s - io_s - sum(run.computing_s for run in runs),
    )


def _ranks(parts: dict[int, _Part]) -> range:
    processes = next(iter(parts.values())).log.processes
    missing = sorted(set(range(processes)) - set(parts))
    if missing:
        raise CaptureError(
            f"the logs of ranks {missing} of {processes} are missing: they ended before MPI_Finalize; run the "
            "application to its end"
        )
    return range(processes)


def _group(parts: Sequence[_Part]) -> Group:
    run = run_of([part.log for part in parts])
    # An iteration of the description is what repeats, which may have several control points, or none at times.
    iterations = round(parts[0].iterations / run.control_points) if run.control_points else parts[0].iterations
    return Group(run, max(1, iterations), parts[0].methods, tuple(part.held for part in parts))


def _parts(log: RankLog) -> Iterator[tuple[int, _Part]]:
    """Return what the process did between two resizes in which it computed, by the number of resizes before."""
    places = np.flatnonzero(log.calls["kind"] == CONTROL_POINT).tolist()
    if not places:
        return
    changes = [
        at
        for before, at in zip([None, *places[:-1]], places, strict=True)
        if before is None
        or log.calls[at]["bytes"] != log.calls[before]["bytes"]
        or log.calls[at]["peer"] != log.calls[before]["peer"]
    ]
    for at, until in zip(changes, [*changes[1:], None], strict=True):
        if log.calls[at]["peer"] == LEAVES:
            continue
        last = until if until is not None else places[-1]
        about = log.calls[at + 1 : until]
        yield (
            int(log.calls[at]["bytes"]),
            _Part(
                _cut(log, at, until, is_first=at == changes[0] and not log.spawned),
                int(log.calls[last]["offset"] - log.calls[at]["offset"]),
                tuple(name.decode() for name in about["routine"][about["kind"] == METHOD]),
                _held(about[about["kind"] == DATA]),
            ),
        )


def _held(data: np.ndarray[Any, np.dtype[Any]]) -> Held:
    distributed, constant = data["processes"] > 0, data["peer"] == 0
    kinds = (distributed & constant, distributed & ~constant, ~distributed & constant, ~distributed & ~constant)
    return Held(*(int(data["bytes"][kind].sum()) for kind in kinds))


def _cut(log: RankLog, at: int, until: int | None, *, is_first: bool) -> RankLog:
    """Return the log from the control point `at` on, or from the start, to the control point `until`, or to the end."""
    point = log.calls[at]
    since_ns, since_cpu_ns = (0, 0) if is_first else (int(point["end_ns"]), int(point["cpu_end_ns"]))
    end_ns, end_cpu_ns = log.elapsed_ns, log.cpu_ns
    if until is not None:
        end_ns, end_cpu_ns = int(log.calls[until]["start_ns"]), int(log.calls[until]["cpu_ns"])
    calls = log.calls[(log.calls["start_ns"] >= since_ns) & (log.calls["end_ns"] <= end_ns)].copy()
    for name in ("start_ns", "end_ns"):
        calls[name] -= since_ns
    for name in ("cpu_ns", "cpu_end_ns"):
        calls[name] -= since_cpu_ns
    return RankLog(
        int(point["peer"]),
        int(point["processes"]),
        False,
        log.started_ns + since_ns,
        end_ns - since_ns,
        end_cpu_ns - since_cpu_ns,
        log.dropped if until is None else 0,
        calls,
    )
