"""Reads logs of jobs in the Standard Workload Format, and computes how often jobs do I/O.

The format is that of the Parallel Workloads Archive. A line is a job: 18 numbers (1 job, 2 submit time, 3 wait, 4 run
time, 5 processors allocated, 8 processors requested, …; seconds; -1: not known). Lines that begin with ';' are the
header, which holds e.g. "; MaxProcs: 163840". Pure, except for `read_log`.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hocket.errors import HocketError

FIELDS = 18
NAMES = {1: "job number", 2: "submit time", 3: "wait time", 4: "run time", 5: "processors", 8: "requested processors"}
LEAST = {1: 0, 2: 0, 3: -1, 4: -1, 5: -1, 8: -1}
MOST = 1e12


class LogError(HocketError):
    """The log cannot be read. The text begins with file and line."""


@dataclass(frozen=True)
class Job:
    number: int
    start_s: float
    run_s: float
    processes: int

    @property
    def end_s(self) -> float:
        return self.start_s + self.run_s


@dataclass(frozen=True)
class Log:
    """The jobs of a log by their start. Jobs that never ran (cancelled, no processors) are only counted."""

    path: Path
    jobs: list[Job]
    never_ran: int
    processors: int  # processors of the machine, from the header; 0: not reported


def read_log(path: Path) -> Log:
    """Return the log. Raises LogError for the first line that is no job."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode(errors="replace")
    except (OSError, EOFError, zlib.error) as error:
        raise LogError(f"cannot read the log {path}: {getattr(error, 'strerror', None) or error}") from error
    jobs, never_ran, header = [], 0, {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith(";"):
            if told := re.match(r"\s*;\s*(\w+):\s*(\d+)\s*$", line):
                header[told[1]] = int(told[2])
        elif line.strip():
            job = _job(f"{path}:{number}", line.split())
            if job:
                jobs.append(job)
            else:
                never_ran += 1
    if not jobs:
        raise LogError(f"{path}: no job in it that ran; is it a log in Standard Workload Format?")
    jobs.sort(key=lambda job: (job.start_s, job.number))
    return Log(path, jobs, never_ran, header.get("MaxProcs", header.get("MaxNodes", 0)))


def _job(where: str, words: Sequence[str]) -> Job | None:
    if len(words) != FIELDS:
        raise LogError(f"{where}: {len(words)} fields; a job has {FIELDS}")
    values = {}
    for at, name in NAMES.items():
        try:
            values[at] = float(words[at - 1])
        except ValueError:
            raise LogError(f"{where}: {name} (field {at}) = '{words[at - 1]}': give a number") from None
        if not LEAST[at] <= values[at] <= MOST:
            raise LogError(f"{where}: {name} (field {at}) = {words[at - 1]}: give {LEAST[at]} or more")
    processes = values[5] if values[5] > 0 else values[8]
    if values[4] <= 0 or processes <= 0:
        return None
    return Job(int(values[1]), values[2] + max(values[3], 0), values[4], int(processes))


def chosen(log: Log, count: int, cores: int) -> list[Job]:
    """Return the first `count` jobs (0: all) that fit on `cores`. The first one starts at time 0."""
    fitting = [job for job in log.jobs if job.processes <= cores]
    taken = fitting[:count] if count else fitting
    zero_s = taken[0].start_s if taken else 0.0
    return [Job(job.number, job.start_s - zero_s, job.run_s, job.processes) for job in taken]


def most_cores(jobs: Iterable[Job]) -> int:
    """Return the largest number of processors in use at once."""
    changes = sorted((time_s, by) for job in jobs for time_s, by in _ends(job, job.processes))
    used = most = 0
    for _, by in changes:
        used += by
        most = max(most, used)
    return most


def _ends(job: Job, by: int) -> tuple[tuple[float, int], tuple[float, int]]:
    return (job.start_s, by), (job.end_s, -by)


def running(jobs: Iterable[Job]) -> dict[int, float]:
    """Return P(X = n): the share of the time, from the first start to the last end, in which n jobs run."""
    changes = sorted((time_s, by) for job in jobs for time_s, by in _ends(job, 1))
    times: dict[int, float] = {}
    count, since_s = 0, changes[0][0] if changes else 0.0
    for time_s, by in changes:
        times[count] = times.get(count, 0.0) + time_s - since_s
        count, since_s = count + by, time_s
    whole = math.fsum(times.values())
    return {number: time_s / whole for number, time_s in sorted(times.items()) if time_s > 0}


def probability_of_io(of_running: Mapping[int, float], io_ratio: float) -> float:
    """Return P(another is doing I/O) = 1 - Σ P(X = n) (1 - E(µ))ⁿ (CALCioM, section II-B)."""
    return 1.0 - math.fsum(share * (1.0 - io_ratio) ** number for number, share in of_running.items())
