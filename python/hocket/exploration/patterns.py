"""Reads a file of access patterns. A key with a list of values stands for a pattern with each of them."""

from __future__ import annotations

import itertools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hocket.errors import UsageError

LAYOUTS = ("own", "contiguous", "strided")
OPERATIONS = ("write", "read")
MOST_PROCESSES = 4096
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
MOST_REQUEST = 64 << 20  # bytes; larger calls are not forwarded
KEYS = ("name", "nodes", "processes_per_node", "layout", "request", "operation", "direct", "total", "seconds")
MOST_PATTERNS = 10_000


@dataclass(frozen=True)
class Pattern:
    """One access pattern. `total_bytes` is of all processes; `seconds` limits the time, 0: not."""

    name: str
    nodes: int
    processes_per_node: int
    layout: str
    request_bytes: int
    operation: str
    direct: bool
    total_bytes: int
    seconds: float

    @property
    def processes(self) -> int:
        return self.nodes * self.processes_per_node


@dataclass(frozen=True)
class Exploration:
    """The patterns of a file, the numbers of servers, and how often each is measured."""

    patterns: list[Pattern]
    servers: list[int]
    repetitions: int


def read_patterns(path: Path, shrink: int = 1) -> Exploration:
    """Read the file. `shrink` divides processes per node and totals. Raises UsageError with file, key and value."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}; see 'hocket explore --help' for the format") from error
    _only(content, ("servers", "repetitions", "pattern"), str(path))
    servers = content.get("servers", [0, 1, 2, 4, 8])
    if not isinstance(servers, list) or not servers or not all(_is_number(one, 0, 64) for one in servers):
        raise UsageError(f"{path}: servers = {servers!r} must be a list of numbers from 0 to 64")
    repetitions = content.get("repetitions", 5)
    if not _is_number(repetitions, 1, 1000):
        raise UsageError(f"{path}: repetitions = {repetitions!r} must be from 1 to 1000")
    tables = content.get("pattern", [])
    if not isinstance(tables, list) or not tables:
        raise UsageError(f"{path}: there is no [[pattern]]; describe at least one")
    patterns = [
        one for number, table in enumerate(tables, 1) for one in _all(table, f"{path}: pattern {number}", shrink)
    ]
    names = [one.name for one in patterns]
    twice = next((name for name in names if names.count(name) > 1), None) if len(names) <= MOST_PATTERNS else "too many"
    if twice is not None:
        raise UsageError(f"{path}: two patterns are called '{twice}'; give a name to each [[pattern]]")
    return Exploration(patterns, sorted(set(servers)), repetitions)


def _all(table: Any, where: str, shrink: int) -> list[Pattern]:
    """Return a pattern for each combination of the listed values."""
    if not isinstance(table, dict):
        raise UsageError(f"{where}: it is no table; write [[pattern]]")
    _only(table, KEYS, where)
    lists = {key: value if isinstance(value, list) else [value] for key, value in table.items()}
    empty = next((key for key, values in lists.items() if not values), None)
    if empty is not None:
        raise UsageError(f"{where}: {empty} = [] must have a value")
    varied = [key for key, values in lists.items() if len(values) > 1]
    found = []
    for values in itertools.product(*lists.values()):
        one = dict(zip(lists, values, strict=True))
        suffix = "".join(f"-{one[key]}" for key in varied)
        found.append(_pattern(one, f"{one.get('name', 'pattern')}{suffix}", where, shrink))
    return found


def _pattern(one: dict[str, Any], name: str, where: str, shrink: int) -> Pattern:
    def number(key: str, missing: int, most: int) -> int:
        value = one.get(key, missing)
        if not _is_number(value, 1, most):
            raise UsageError(f"{where}: {key} = {value!r} must be a whole number from 1 to {most}")
        return value

    def word(key: str, words: tuple[str, ...]) -> str:
        value = one.get(key, words[0])
        if value not in words:
            raise UsageError(f"{where}: {key} = {value!r} is unknown; use {', '.join(words)}")
        return value

    if not name.isprintable() or not name:
        raise UsageError(f"{where}: name = {name!r} must be a text of printable letters")
    seconds = one.get("seconds", 0)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= 86400:
        raise UsageError(f"{where}: seconds = {seconds!r} must be from 0 to 86400")
    direct = one.get("direct", False)
    if not isinstance(direct, bool):
        raise UsageError(f"{where}: direct = {direct!r} must be true or false")
    request = _bytes(one.get("request", "1m"), f"{where}: request", MOST_REQUEST)
    total = _bytes(one.get("total", "64m"), f"{where}: total", 1 << 44)
    if direct and request % 4096 != 0:
        raise UsageError(f"{where}: request = {one.get('request')!r} must be a multiple of 4k, because direct = true")
    nodes = number("nodes", 1, MOST_PROCESSES)
    per_node = max(1, number("processes_per_node", 1, MOST_PROCESSES) // shrink)
    if nodes * per_node > MOST_PROCESSES:
        raise UsageError(f"{where}: {nodes} nodes of {per_node} processes are more than {MOST_PROCESSES}; use --shrink")
    layout, operation = word("layout", LAYOUTS), word("operation", OPERATIONS)
    return Pattern(name, nodes, per_node, layout, request, operation, direct, max(1, total // shrink), float(seconds))


def _only(table: dict[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in keys:
            raise UsageError(f"{where}: key '{key}' is unknown; use {', '.join(keys)}")


def _is_number(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _bytes(value: Any, where: str, most: int) -> int:
    found = re.fullmatch(r"(\d{1,15})([kmg]?)", value, re.ASCII) if isinstance(value, str) else None
    bytes_ = int(found[1]) * UNITS[found[2]] if found else value
    if not _is_number(bytes_, 1, most):
        raise UsageError(f'{where} = {value!r} must be bytes, e.g. "128k", from 1 to {most}')
    return bytes_
