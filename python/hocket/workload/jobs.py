"""Reads a file of jobs and the queue in which they are to run. It is a file of 'hocket arbitrate' with more keys."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hocket.arbitration.allocate import Rules
from hocket.arbitration.jobs import (
    FILE_KEYS,
    MB,
    WORKLOAD_FILE_KEYS,
    Job,
    job_of,
    jobs_of,
    read_jobs,
)
from hocket.errors import UsageError
from hocket.exploration.measure import Program
from hocket.exploration.patterns import (
    DAY_S,
    MOST_PHASES,
    MOST_PROCESSES,
    MOST_TOTAL,
    PHASE_KEYS,
    Pattern,
    Phase,
    phase_of,
)
from hocket.private_daemon import Setting
from hocket.toml_checks import Table, number, only, read_toml, size, tables, truth, whole

MOST_SERVERS = 64
MOST_JOBS = 10_000
MOST_LIMIT = 1 << 40  # bytes/s of a server
TIME_LIMIT_S = 600.0
# A job moves a known number of bytes, so its phases have no time limit.
JOB_PHASE_KEYS = tuple(key for key in PHASE_KEYS if key != "seconds")


@dataclass(frozen=True)
class WorkloadJob:
    """A job of the file. `bytes` is what it reads and writes; None: not known before it has run."""

    job: Job
    subject: Pattern | Program
    bytes: int | None
    arrival_s: float
    repeat: int
    time_limit_s: float
    table: Table = field(compare=False)  # as it was read

    @property
    def name(self) -> str:
        return self.job.name


@dataclass(frozen=True, eq=False)
class QueuedJob:
    """One appearance of a job in the queue. `name` is different for each."""

    number: int
    name: str
    kind: WorkloadJob
    arrival_s: float

    @property
    def job(self) -> Job:
        return replace(self.kind.job, name=self.name)

    @property
    def nodes(self) -> int:
        return self.kind.job.nodes


@dataclass(frozen=True)
class Workload:
    """The jobs of a file, their queue, and the machine."""

    path: Path
    jobs: list[WorkloadJob]
    queue: list[QueuedJob]
    servers: int
    system_nodes: int
    system_servers: int
    limit: int | None  # bytes/s of each server
    direct: bool | None  # jobs may have no server; None: the file does not say
    content: Table = field(compare=False)  # as it was read

    def about(self) -> dict[str, Any]:
        """Return what identifies the queue, without what has been measured of it."""
        keys = ("servers", "system", "limit", "direct")
        jobs = [{key: value for key, value in one.table.items() if key != "bandwidth_mb_s"} for one in self.jobs]
        return {key: self.content.get(key) for key in keys} | {"jobs": jobs, "queue": [one.name for one in self.queue]}


def read_workload(path: Path) -> Workload:
    """Read the file. Raises UsageError with file, job, key and value."""
    content = read_toml(path, "workload")
    only(content, (*FILE_KEYS, *WORKLOAD_FILE_KEYS), str(path))
    known = jobs_of(content, path)
    limit_s = number(content, "time_limit_s", str(path), most=DAY_S, default=TIME_LIMIT_S)
    jobs = [_job(one, f"{path}: job {at}", limit_s) for at, one in enumerate(tables(content, "job", path), 1)]
    queue = _queue(content, jobs, path)
    servers = whole(content, "servers", str(path), most=MOST_SERVERS)
    nodes = known.system_nodes or sum(one.nodes for one in queue)
    for at, one in enumerate(jobs, 1):
        if one.job.nodes > nodes:
            told = (
                f"{path}: job {at} '{one.name}': nodes = {one.job.nodes} must be at most {nodes}, the nodes of [system]"
            )
            raise UsageError(told)
    return Workload(
        path,
        jobs,
        queue,
        servers,
        nodes,
        known.system_servers or servers,
        size(content, "limit", str(path), most=MOST_LIMIT, default="1") if "limit" in content else None,
        truth(content, "direct", str(path), default=False) if "direct" in content else None,
        content,
    )


def _job(table: Table, where: str, limit_s: float) -> WorkloadJob:
    job = job_of(table, where)
    where = f"{where} '{job.name}'"
    if ("command" in table) == ("pattern" in table):
        raise UsageError(
            f"{where}: it has {'both command and' if 'command' in table else 'neither command nor'} pattern; give one"
        )
    subject: Pattern | Program
    if "command" in table:
        subject = Program(job.name, job.nodes, job.processes, _command(table["command"], where))
        bytes_ = size(table, "bytes", where, most=MOST_TOTAL, default="1") if "bytes" in table else None
    else:
        if "bytes" in table:
            raise UsageError(f"{where}: bytes = {table['bytes']!r} is for jobs with a command; a pattern has its total")
        subject = _pattern(table["pattern"], job, where)
        bytes_ = bytes_of(subject)
    return WorkloadJob(
        job,
        subject,
        bytes_,
        number(table, "arrival_s", where, most=DAY_S, default=0),
        whole(table, "repeat", where, most=MOST_JOBS, default=1),
        number(table, "time_limit_s", where, most=DAY_S, default=limit_s),
        table,
    )


def _command(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) and "\0" not in one for one in value):
        raise UsageError(f'{where}: command = {value!r} must be a list of texts, e.g. ["mpiexec", "-n", "4", "./app"]')
    return tuple(value)


def _pattern(value: Any, job: Job, where: str) -> Pattern:
    phases = value if isinstance(value, list) else [value]
    if not phases or len(phases) > MOST_PHASES or not all(isinstance(one, dict) for one in phases):
        told = f"{where}: pattern = {value!r} must be a table, or a list of 1 to {MOST_PHASES}: [[job.pattern]]"
        raise UsageError(told)
    if job.processes > MOST_PROCESSES:
        raise UsageError(f"{where}: processes = {job.processes} must be at most {MOST_PROCESSES}, to replay a pattern")
    read = []
    for at, one in enumerate(phases, 1):
        place = f"{where}: pattern" if len(phases) == 1 else f"{where}: pattern {at}"
        only(one, JOB_PHASE_KEYS, place)
        read.append(phase_of(one, place, job.processes))
    return Pattern(job.name, job.nodes, job.processes, tuple(read))


def bytes_of(pattern: Pattern) -> int:
    """Return the bytes that a pattern moves: each process makes whole requests."""

    def of(phase: Phase) -> int:
        each = phase.request_bytes * (phase.active_processes or pattern.processes)
        return math.ceil(phase.total_bytes / each) * each * phase.rounds

    return sum(of(phase) for phase in pattern.phases)


def _queue(content: Table, jobs: Sequence[WorkloadJob], path: Path) -> list[QueuedJob]:
    if "queue" not in content:
        order = [(one, one.arrival_s) for one in jobs for _ in range(one.repeat)]
        return queue_of(order, path)
    by_name = {one.name: one for one in jobs}
    for at, one in enumerate(jobs, 1):
        for key in ("repeat", "arrival_s"):
            if key in one.table:
                told = f"{path}: job {at} '{one.name}': {key} = {one.table[key]!r} means nothing beside 'queue'"
                raise UsageError(f"{told}; give one of them")
    names = content["queue"]
    if not isinstance(names, list) or not names:
        raise UsageError(f"{path}: queue = {names!r} must be a list of names of jobs")
    for name in names:
        if not isinstance(name, str) or name not in by_name:
            raise UsageError(f"{path}: queue: no [[job]] has the name {name!r}; use {', '.join(by_name)}")
    return queue_of([(by_name[name], 0.0) for name in names], path)


def queue_of(order: Sequence[tuple[WorkloadJob, float]], path: Path) -> list[QueuedJob]:
    """Return the queue. A job that appears again is called "NAME.2"."""
    if len(order) > MOST_JOBS:
        raise UsageError(f"{path}: the queue has {len(order)} jobs; at most {MOST_JOBS} are possible")
    counts: dict[str, int] = {}
    queue = []
    for at, (one, arrival_s) in enumerate(order):
        counts[one.name] = counts.get(one.name, 0) + 1
        name = one.name if counts[one.name] == 1 else f"{one.name}.{counts[one.name]}"
        queue.append(QueuedJob(at, name, one, arrival_s))
    names = [one.name for one in queue]
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise UsageError(f"{path}: two jobs of the queue are called '{twice}'; rename the [[job]] of that name")
    return queue


def arbitration_settings(workload: Workload, rules: Rules) -> dict[str, Setting]:
    """Return the table [arbitration] of hocketd and the simulator, for the policies that give out servers."""
    settings: dict[str, Setting] = {
        "direct": rules.direct,
        "divides_evenly": rules.divides_evenly,
        "shared_server": rules.shared_server,
        "system_nodes": workload.system_nodes,
        "system_servers": workload.system_servers,
    }
    return settings if rules.most_loss is None else settings | {"most_loss": rules.most_loss}


def with_curves(workload: Workload, path: Path) -> Workload:
    """Return the workload with the bandwidths that a file of 'hocket explore' has of its jobs."""
    measured = {one.name: one for one in read_jobs(path).jobs}
    for one in workload.jobs:
        found = measured.get(one.name)
        if found is not None and found.nodes != one.job.nodes:
            told = (
                f"{path}: '{one.name}' was measured with {found.nodes} nodes; it has {one.job.nodes} in {workload.path}"
            )
            raise UsageError(f"{told}: measure it again")
    if not any(one.name in measured for one in workload.jobs):
        raise UsageError(f"{path}: it has no job of {workload.path}; measure that with 'hocket explore'")
    jobs = [_with_curve(one, measured[one.name]) if one.name in measured else one for one in workload.jobs]
    by_name = {one.name: one for one in jobs}
    queue = [replace(one, kind=by_name[one.kind.name]) for one in workload.queue]
    return replace(workload, jobs=jobs, queue=queue)


def _with_curve(one: WorkloadJob, measured: Job) -> WorkloadJob:
    bandwidth = {str(servers): rate / MB for servers, rate in measured.bandwidth.items()}
    job = replace(one.job, bandwidth=measured.bandwidth)
    return replace(one, job=job, table=one.table | {"bandwidth_mb_s": bandwidth})


def text_of(workload: Workload) -> str:
    """Return the workload as a file: with its curves, and with its queue if that is a list of names."""
    queue = [one.kind.name for one in workload.queue]
    top = {key: value for key, value in workload.content.items() if key not in ("job", "system", "queue")}
    if "queue" in workload.content or not any(
        "arrival_s" in one.table or "repeat" in one.table for one in workload.jobs
    ):
        top["queue"] = queue
    lines = [f"{key} = {_value(value)}" for key, value in top.items()]
    if "system" in workload.content:
        lines += ["", "[system]", *(f"{key} = {_value(value)}" for key, value in workload.content["system"].items())]
    for one in workload.jobs:
        lines += ["", "[[job]]", *(_line(key, value) for key, value in one.table.items())]
    return "\n".join(lines) + "\n"


def _line(key: str, value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"{key} = [\n" + "".join(f"  {_value(one)},\n" for one in value) + "]"
    return f"{key} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
