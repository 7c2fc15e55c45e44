"""Reads a file of jobs and the queue in which they are to run. It is a file of 'hocket arbitrate' with more keys."""

from __future__ import annotations

import json
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
    nodes_by_default,
    read_jobs,
)
from hocket.emulator.description import read_description
from hocket.errors import UsageError
from hocket.exploration.patterns import DAY_S, MOST_TOTAL, Pattern
from hocket.private_daemon import Setting
from hocket.toml_checks import MUST, Table, number, only, read_toml, size, subtable, tables, truth, whole
from hocket.workload.subjects import PROCESSES, Emulated, Subject, bytes_of, subject_of

MOST_SERVERS = 64
MOST_JOBS = 10_000
MOST_LIMIT = 1 << 40  # bytes/s of a server
TIME_LIMIT_S = 600.0
MOST_MB_S = 1e9
LOAD_KEYS = ("delay_s", "after")
OPTIONAL_TABLES = ("coordinator", "reconfiguration", "load")


@dataclass(frozen=True)
class SizeLimits:
    """The numbers of processes between which a malleable job may be."""

    least: int
    most: int


@dataclass(frozen=True)
class Load:
    """A delay of each request to one of the I/O servers, after so many operations."""

    delay_s: float
    after: int


@dataclass(frozen=True)
class WorkloadJob:
    """A job of the file. `bytes` is what it reads and writes; None: not known before it has run."""

    job: Job
    subject: Subject
    bytes: int | None
    arrival_s: float
    repeat: int
    time_limit_s: float
    table: Table = field(compare=False)  # as it was read
    limits: SizeLimits | None = None  # None: it is not malleable

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
    """The jobs of a file, their queue, and the machine.

    Without `cores` the file says nothing of cores, and without `servers` (0) nothing of I/O servers.
    """

    path: Path
    jobs: list[WorkloadJob]
    queue: list[QueuedJob]
    servers: int
    cores: int | None
    system_nodes: int
    system_servers: int
    limit: int | None  # bytes/s of each server
    direct: bool | None  # jobs may have no server; None: the file does not say
    content: Table = field(compare=False)  # as it was read
    loads: tuple[Load, ...] = ()

    def about(self) -> dict[str, Any]:
        """Return what identifies the queue, without what has been measured of it."""
        keys = ("servers", "system", "limit", "direct")
        about = {key: self.content.get(key) for key in keys}
        about |= {key: self.content[key] for key in OPTIONAL_TABLES if key in self.content}
        return about | {"jobs": [_about(one) for one in self.jobs], "queue": [one.name for one in self.queue]}

    @property
    def coordinator(self) -> dict[str, Setting]:
        """The keys of [coordinator] of hocketd that the file sets."""
        return self.content.get("coordinator", {})


def _about(one: WorkloadJob) -> Table:
    about = {key: value for key, value in one.table.items() if key != "bandwidth_mb_s"}
    if isinstance(one.subject, Emulated):
        about["description"] = one.subject.description.read_text(encoding="utf-8")
    return about


def read_workload(path: Path) -> Workload:
    """Read the file. Raises UsageError with file, job, key and value."""
    content = read_toml(path, "workload")
    only(content, (*FILE_KEYS, *WORKLOAD_FILE_KEYS), str(path))
    system = subtable(content, "system", str(path), "[system] with cores, or with nodes and servers")
    cores = whole(system, "cores", f"{path}: [system]", default=None)
    known = jobs_of(content, path)
    limit_s = number(content, "time_limit_s", str(path), most=DAY_S, default=TIME_LIMIT_S)
    jobs = [_job(one, at, path, limit_s, system) for at, one in enumerate(tables(content, "job", path), 1)]
    queue = _queue(content, jobs, path)
    servers = whole(content, "servers", str(path), most=MOST_SERVERS, default=MUST if cores is None else 0)
    nodes = known.system_nodes or sum(one.nodes for one in queue)
    for at, one in enumerate(jobs, 1):
        _fits(one, f"{path}: job {at} '{one.name}'", nodes, cores)
    number(system, "bandwidth_mb_s", f"{path}: [system]", most=MOST_MB_S, default=0)
    for key in ("coordinator", "reconfiguration"):
        subtable(content, key, str(path), f"[{key}]")
    return Workload(
        path,
        jobs,
        queue,
        servers,
        cores,
        nodes,
        known.system_servers or servers,
        size(content, "limit", str(path), most=MOST_LIMIT, default="1") if "limit" in content else None,
        truth(content, "direct", str(path), default=False) if "direct" in content else None,
        content,
        _loads(content, servers, path),
    )


def _fits(one: WorkloadJob, where: str, nodes: int, cores: int | None) -> None:
    """Check that the machine has room for the job."""
    if one.job.nodes > nodes:
        raise UsageError(f"{where}: nodes = {one.job.nodes} must be at most {nodes}, the nodes of [system]")
    if cores is not None and one.job.processes > cores:
        raise UsageError(f"{where}: processes = {one.job.processes} must be at most {cores}, the cores of [system]")


def _loads(content: Table, servers: int, path: Path) -> tuple[Load, ...]:
    if "load" not in content:
        return ()
    loads = []
    for at, table in enumerate(tables(content, "load", path), 1):
        where = f"{path}: load {at}"
        only(table, LOAD_KEYS, where)
        if "delay_s" not in table:
            raise UsageError(f"{where}: delay_s is missing; give the seconds by which each request takes longer")
        delay_s = number(table, "delay_s", where, most=DAY_S, default=0)
        loads.append(Load(delay_s, whole(table, "after", where, least=0, default=0)))
    if len(loads) > servers:
        raise UsageError(f"{path}: {len(loads)} [[load]] are more than servers = {servers}; each is of one server")
    return tuple(loads)


def _job(table: Table, at: int, path: Path, limit_s: float, system: Table) -> WorkloadJob:
    job = job_of(table, f"{path}: job {at}", nodes_by_default(system))
    where = f"{path}: job {at} '{job.name}'"
    subject = subject_of(table, job, path.parent, where)
    return WorkloadJob(
        job,
        subject,
        _bytes(table, job, subject, where),
        number(table, "arrival_s", where, most=DAY_S, default=0),
        whole(table, "repeat", where, most=MOST_JOBS, default=1),
        number(table, "time_limit_s", where, most=DAY_S, default=limit_s),
        table,
        _limits(table, job, subject, system.get("cores"), where),
    )


def _bytes(table: Table, job: Job, subject: Subject, where: str) -> int | None:
    """Return what a job reads and writes; None if only a run says it."""
    known, told = None, ""
    if isinstance(subject, Pattern):
        known, told = bytes_of(subject), "a pattern has its total"
    elif isinstance(subject, Emulated):
        known = read_description(subject.description, job.processes).accessed_bytes
        told = "a description says what it accesses"
    if "bytes" not in table:
        return known or None
    if known is not None:
        raise UsageError(f"{where}: bytes = {table['bytes']!r} is for jobs with a command; {told}")
    return size(table, "bytes", where, most=MOST_TOTAL, default="1")


def _limits(table: Table, job: Job, subject: Subject, cores: int | None, where: str) -> SizeLimits | None:
    """Return the sizes that a malleable job may have; None: it is not malleable."""
    if cores is not None and len(job.name.split()) != 1:
        raise UsageError(f"{where}: name = '{job.name}' has a space; hocketd's limits of cores need a name without one")
    if not truth(table, "malleable", where, default=False):
        for key in ("processes_min", "processes_max"):
            if key in table:
                raise UsageError(f"{where}: {key} = {table[key]!r} means nothing without malleable = true")
        return None
    if cores is None:
        raise UsageError(f"{where}: malleable = True needs the number of cores to share: [system] cores = N")
    if isinstance(subject, Pattern) or PROCESSES not in subject.command:
        told = 'command has no -n {processes}; write ["mpiexec", "-n", "{processes}", "./app"]'
        raise UsageError(f"{where}: malleable = True: {'a pattern is not' if isinstance(subject, Pattern) else told}")
    least = whole(table, "processes_min", where, most=job.processes, default=job.processes)
    if isinstance(subject, Emulated):
        read_description(subject.description, least)
    return SizeLimits(least, whole(table, "processes_max", where, least=job.processes, most=cores, default=cores))


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
