"""Reads a file of jobs: their size, and their bandwidth by number of I/O servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hocket.errors import UsageError
from hocket.toml_checks import MOST, MUST, Table, distinct, only, read_toml, subtable, tables, text, whole

MB = 1_000_000
MOST_MB_S = 1e9
FILE_KEYS = ("servers", "system", "job")
JOB_KEYS = ("name", "nodes", "processes", "bandwidth_mb_s")
# A file may have these besides, for 'hocket workload'; they are read in hocket/workload/jobs.py.
WORKLOAD_FILE_KEYS = ("limit", "direct", "time_limit_s", "queue", "coordinator", "reconfiguration", "load")
WORKLOAD_SYSTEM_KEYS = ("cores", "bandwidth_mb_s")
WORKLOAD_JOB_KEYS = (
    "command", "pattern", "emulate", "bytes", "arrival_s", "repeat", "time_limit_s", "malleable", "processes_min",
    "processes_max"
)  # fmt: skip


# The store of curves has these of a job besides (curves/store.py).
STORE_KEYS = (
    "found", "runs", "when", "like", "confidence", "shape_mb_s", "other_s_per_mb", "measured_mb_s", "measured_weight"
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """A job. `bandwidth` maps numbers of servers to bytes/s; it is empty for a job that nobody has measured.

    `stored` has the values of STORE_KEYS, unchecked.
    """

    name: str
    nodes: int
    processes: int
    bandwidth: Mapping[int, int]
    stored: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Jobs:
    """The jobs of a file, and the pool and the machine as far as the file names them."""

    jobs: list[Job]
    servers: int | None
    system_nodes: int | None
    system_servers: int | None


def read_jobs(path: Path) -> Jobs:
    """Read the file. Raises UsageError with file, job, key and value."""
    content = read_toml(path, "arbitrate")
    only(content, (*FILE_KEYS, *WORKLOAD_FILE_KEYS), str(path))
    return jobs_of(content, path)


def nodes_by_default(system: Table) -> Any:
    """Return the nodes of a job that names none. It has to, unless jobs share the cores of one machine."""
    return 1 if "cores" in system else MUST


def jobs_of(content: Table, path: Path) -> Jobs:
    """Return the jobs of a file whose keys have been checked."""
    system = subtable(content, "system", str(path), "[system] with nodes and servers")
    only(system, ("nodes", "servers", *WORKLOAD_SYSTEM_KEYS), f"{path}: [system]")
    nodes = nodes_by_default(system)
    jobs = [job_of(one, f"{path}: job {at}", nodes) for at, one in enumerate(tables(content, "job", path), 1)]
    distinct((job.name for job in jobs), "job", path)
    return Jobs(
        jobs,
        whole(content, "servers", str(path), least=0, default=None),
        whole(system, "nodes", f"{path}: [system]", default=None),
        whole(system, "servers", f"{path}: [system]", default=None),
    )


def job_of(table: Table, where: str, nodes: Any = MUST) -> Job:
    """Return the job of a table."""
    only(table, (*JOB_KEYS, *WORKLOAD_JOB_KEYS, *STORE_KEYS), where)
    name = text(table, "name", where)
    where = f"{where} '{name}'"
    nodes = whole(table, "nodes", where, default=nodes)
    stored = {key: value for key, value in table.items() if key in STORE_KEYS}
    processes = whole(table, "processes", where, default=nodes)
    return Job(name, nodes, processes, bandwidth_of(table, "bandwidth_mb_s", where), stored)


def bandwidth_of(table: Mapping[str, Any], key: str, where: str) -> dict[int, int]:
    """Return bytes/s by number of servers, of a table in MB/s; {} if there is none. Raises UsageError."""
    bandwidth = table.get(key, {})
    if not isinstance(bandwidth, dict):
        raise UsageError(f"{where}: {key} = {bandwidth!r} must be a table: {{ 0 = 195.7, 1 = 77.6 }}")
    choices = {_servers(one, key, where): _bytes(value, f"{where}: {key}.{one}") for one, value in bandwidth.items()}
    return dict(sorted(choices.items()))


def _servers(number: str, key: str, where: str) -> int:
    if not number.isascii() or not number.isdigit() or len(number) > 7 or int(number) > MOST:
        raise UsageError(f"{where}: {key} has the key '{number}'; it must be a number of servers, 0 or more")
    return int(number)


def _bytes(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_MB_S:
        raise UsageError(f"{where} = {value!r} must be a bandwidth in MB/s, from 0 to {MOST_MB_S:.0e}")
    return round(value * MB)
