"""Reads a file of jobs: their size, and their bandwidth by number of I/O servers."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hocket.errors import UsageError

MB = 1_000_000
MOST = 1_000_000  # jobs, nodes, servers
MOST_MB_S = 1e9


@dataclass(frozen=True)
class Job:
    """A job. `bandwidth` maps numbers of servers to bytes/s; it is empty for a job that nobody has measured."""

    name: str
    nodes: int
    processes: int
    bandwidth: dict[int, int]


@dataclass(frozen=True)
class Jobs:
    """The jobs of a file, and the pool and the machine as far as the file names them."""

    jobs: list[Job]
    servers: int | None
    system_nodes: int | None
    system_servers: int | None


def read_jobs(path: Path) -> Jobs:
    """Read the file. Raises UsageError with file, job, key and value."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}; see 'hocket arbitrate --help' for the format") from error
    _only(content, ("servers", "system", "job"), str(path))
    system = content.get("system", {})
    if not isinstance(system, dict):
        raise UsageError(f"{path}: 'system' is no table; write [system] with nodes and servers")
    _only(system, ("nodes", "servers"), f"{path}: [system]")
    listed = content.get("job", [])
    if not isinstance(listed, list) or not listed:
        raise UsageError(f"{path}: there is no [[job]]; describe at least one")
    jobs = [_job(one, f"{path}: job {number}") for number, one in enumerate(listed, 1)]
    names = [job.name for job in jobs]
    for number, name in enumerate(names, 1):
        if name in names[: number - 1]:
            raise UsageError(f"{path}: job {number}: name = '{name}' is that of an earlier job; give another")
    return Jobs(
        jobs,
        _number(content, "servers", str(path), least=0, missing=None),
        _number(system, "nodes", f"{path}: [system]", missing=None),
        _number(system, "servers", f"{path}: [system]", missing=None),
    )


def _job(table: Any, where: str) -> Job:
    if not isinstance(table, dict):
        raise UsageError(f"{where}: it is no table; write [[job]]")
    _only(table, ("name", "nodes", "processes", "bandwidth_mb_s"), where)
    name = table.get("name")
    if not isinstance(name, str) or not name or not name.isprintable():
        raise UsageError(f"{where}: name = {name!r} must be a text of printable letters")
    where = f"{where} '{name}'"
    nodes = _number(table, "nodes", where)
    bandwidth = table.get("bandwidth_mb_s", {})
    if not isinstance(bandwidth, dict):
        raise UsageError(f"{where}: bandwidth_mb_s = {bandwidth!r} must be a table: {{ 0 = 195.7, 1 = 77.6 }}")
    choices = {
        _servers(key, where): _bytes(value, f"{where}: bandwidth_mb_s.{key}") for key, value in bandwidth.items()
    }
    return Job(name, nodes, _number(table, "processes", where, missing=nodes), dict(sorted(choices.items())))


def _only(table: dict[str, Any], keys: Sequence[str], where: str) -> None:
    for key in table:
        if key not in keys:
            raise UsageError(f"{where}: key '{key}' is unknown; use {', '.join(keys)}")


def _number(table: dict[str, Any], key: str, where: str, *, least: int = 1, missing: int | None = 0) -> Any:
    """Return the value of a key, or `missing`; 0 there means that the key must be given."""
    if key not in table and missing != 0:
        return missing
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        raise UsageError(f"{where}: {key} = {value!r} must be a whole number from {least} to {MOST}")
    return value


def _servers(key: str, where: str) -> int:
    if not key.isascii() or not key.isdigit() or int(key) > MOST:
        raise UsageError(f"{where}: bandwidth_mb_s has the key '{key}'; it must be a number of servers, 0 or more")
    return int(key)


def _bytes(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_MB_S:
        raise UsageError(f"{where} = {value!r} must be a bandwidth in MB/s, from 0 to {MOST_MB_S:.0e}")
    return round(value * MB)
