"""The record of bench/emulator.py, a line a run, so that it can be interrupted; the times that logs of calls give."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from emulator_cases import CAPTURE, Job
from hocket.capture.log import COMMUNICATION, COMPLETION, CaptureError, RankLog
from hocket.capture.stages import Phase, Run, Stage
from hocket.errors import UsageError
from hocket.run_file import RunFile, whole_lines

TOTAL, COMPUTING, COMMUNICATING, RESIZING = "total", "computing", "communication", "resize"
CPU = "CPU of computing"  # a core that others use as well does not change it much
GATHER = b"MPI_Allgatherv"
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Ran:
    """A run that was made."""

    job: Job
    wall_s: float  # with its start, for plans
    load: float  # mean number of processes that wanted a core in the minute before, other programs' too
    failed: str = ""
    times: dict[str, float] = field(default_factory=dict)  # seconds by measure
    captured: Run | None = None
    own_share: float | None = None  # of an emulation's time, outside of stages and control points; None: not known


class Record(RunFile[Ran]):
    def __init__(self, path: Path, about: str) -> None:
        super().__init__(path, "emulator", about, _ran_of, asdict)

    @property
    def done(self) -> set[Job]:
        return {one.job for one in self.runs}

    @property
    def walls(self) -> dict[Job, float]:
        return {one.job: one.wall_s for one in self.runs}

    def captured(self, case: str, number: int) -> Run | None:
        """Return what was captured in this round; None if nothing was."""
        return next((one.captured for one in self.runs if one.job == Job(case, CAPTURE, number)), None)


def _ran_of(line: dict) -> Ran:
    run = line["captured"]
    return Ran(**{**line, "job": Job(**line["job"]), "captured": _run_of(run) if run else None})


def _run_of(line: dict) -> Run:
    phases = [Phase(one["iterations"], tuple(map(_stage_of, one["stages"]))) for one in line["phases"]]
    return Run(**{**line, "phases": tuple(phases)})


def _stage_of(line: dict) -> Stage:
    return Stage(**{key: tuple(value) if isinstance(value, list) else value for key, value in line.items()})


def read(path: Path) -> list[Ran]:
    """Return the runs of a record, without a last line that is cut off; none if there is no record."""
    try:
        return [_ran_of(json.loads(line)) for line in whole_lines(path)[1:]]
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: this is no record of bench/emulator.py: {error!r}; remove it") from error


# ---- times -----------------------------------------------------------------------------------------------------------


def times_of(logs: Sequence[RankLog], iterations: int, before: int) -> dict[str, float]:
    """Return the times of a solver each of whose iterations gathers once, and which is resized after `before` of them.

    They are those from the first gather to the last. Computing and communication are means of the ranks before the
    resize, plus those of the ranks after it, without the iteration around it. The total is that of processes that stay.
    Raises CaptureError if none stays.
    """
    first: list[tuple[float, float, float]] = []
    second: list[tuple[float, float, float]] = []
    totals = []
    for log in logs:
        calls = log.of_kinds(COMMUNICATION, COMPLETION)
        gathers = np.flatnonzero(calls["routine"] == GATHER)
        if log.spawned:
            second.append(_between(calls, gathers[: iterations - before]))
            continue
        first.append(_between(calls, gathers[:before]))
        if len(gathers) >= iterations:
            totals.append(float(calls["end_ns"][gathers[iterations - 1]] - calls["end_ns"][gathers[0]]) / 1e9)
            if before < iterations:
                second.append(_between(calls, gathers[before:iterations]))
    if not totals:
        raise CaptureError(f"no process made {iterations} gathers, {before} of them before a resize")
    computing, communicating, cpu = map(float, sum(np.mean(part, axis=0) for part in (first, second) if part))
    total = float(np.mean(totals))
    times = {TOTAL: total, COMPUTING: computing, COMMUNICATING: communicating, CPU: cpu}
    return times | ({RESIZING: total - computing - communicating} if second else {})


def gathered_s(logs: Sequence[RankLog], count: int) -> float:
    """Return the seconds of rank 0's last `count` gathers."""
    calls = logs[0].of_kinds(COMMUNICATION)
    gathers = calls[calls["routine"] == GATHER][-count:]
    return float((gathers["end_ns"] - gathers["start_ns"]).sum()) / 1e9


def _between(calls: Array, gathers: Array) -> tuple[float, float, float]:
    """Return the seconds outside of calls, in them, and of CPU time outside of them.

    They are those from the end of the first gather to that of the last.
    """
    if len(gathers) < 2:
        raise CaptureError("a process ended after fewer than two gathers")
    inside = calls[gathers[0] + 1 : gathers[-1] + 1]
    whole = float(calls["end_ns"][gathers[-1]] - calls["end_ns"][gathers[0]]) / 1e9
    in_calls = float((inside["end_ns"] - inside["start_ns"]).sum()) / 1e9
    cpu = float(calls["cpu_end_ns"][gathers[-1]] - calls["cpu_end_ns"][gathers[0]]) / 1e9
    return whole - in_calls, in_calls, cpu - _cpu_s(inside)


def _cpu_s(calls: Array) -> float:
    return float((calls["cpu_end_ns"] - calls["cpu_ns"]).sum()) / 1e9
