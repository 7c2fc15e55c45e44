"""Reads a file of access patterns. A key with a list of values stands for a pattern with each of them."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from pathlib import Path

from hocket.errors import UsageError
from hocket.toml_checks import Table, is_whole, number, only, read_toml, size, tables, truth, whole, word

LAYOUTS = ("own", "contiguous", "strided")
OPERATIONS = ("write", "read")
MOST_PROCESSES = 4096
MOST_REQUEST = 64 << 20  # bytes; larger calls are not forwarded
MOST_TOTAL = 1 << 44
MOST_PHASES = 64  # most_phases of hocket-replay
DAY_S = 86400
PHASE_KEYS = (
    "layout", "request", "operation", "direct", "total", "seconds", "active_processes", "rounds", "pause_s",
    "request_pause_s", "new_file"
)  # fmt: skip
KEYS = ("name", "nodes", "processes_per_node", *PHASE_KEYS)
MOST_PATTERNS = 10_000


@dataclass(frozen=True)
class Phase:
    """Accesses that processes make together (src/tools/replay/main.c).

    `total_bytes` is of all processes in one round; `seconds` limits the time of the phase, 0: not.
    """

    layout: str
    request_bytes: int
    operation: str
    direct: bool
    total_bytes: int
    seconds: float
    active_processes: int | None  # None: all
    rounds: int
    pause_s: float  # before each round
    request_pause_s: float  # before each request of a process
    new_file: bool  # each round writes a new file


@dataclass(frozen=True)
class Pattern:
    """What an application accesses, phase by phase."""

    name: str
    nodes: int
    processes: int
    phases: tuple[Phase, ...]

    @property
    def group(self) -> int:
        """The number of processes of a node."""
        return math.ceil(self.processes / self.nodes)


@dataclass(frozen=True)
class Exploration:
    """The patterns of a file, the numbers of servers, and how often each is measured."""

    patterns: list[Pattern]
    servers: list[int]
    repetitions: int


def read_patterns(path: Path, shrink: int = 1) -> Exploration:
    """Read the file. `shrink` divides processes per node and totals. Raises UsageError with file, key and value."""
    content = read_toml(path, "explore")
    only(content, ("servers", "repetitions", "pattern"), str(path))
    servers = content.get("servers", [0, 1, 2, 4, 8])
    if not isinstance(servers, list) or not servers or not all(is_whole(one, 0, 64) for one in servers):
        raise UsageError(f"{path}: servers = {servers!r} must be a list of numbers from 0 to 64")
    repetitions = whole(content, "repetitions", str(path), most=1000, default=5)
    patterns = [
        one
        for at, table in enumerate(tables(content, "pattern", path), 1)
        for one in _all(table, f"{path}: pattern {at}", shrink)
    ]
    names = [one.name for one in patterns]
    twice = next((name for name in names if names.count(name) > 1), None) if len(names) <= MOST_PATTERNS else "too many"
    if twice is not None:
        raise UsageError(f"{path}: two patterns are called '{twice}'; give a name to each [[pattern]]")
    return Exploration(patterns, sorted(set(servers)), repetitions)


def _all(table: Table, where: str, shrink: int) -> list[Pattern]:
    """Return a pattern for each combination of the listed values."""
    only(table, KEYS, where)
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


def _pattern(one: Table, name: str, where: str, shrink: int) -> Pattern:
    if not name.isprintable() or not name:
        raise UsageError(f"{where}: name = {name!r} must be a text of printable letters")
    nodes = whole(one, "nodes", where, most=MOST_PROCESSES, default=1)
    per_node = max(1, whole(one, "processes_per_node", where, most=MOST_PROCESSES, default=1) // shrink)
    if nodes * per_node > MOST_PROCESSES:
        raise UsageError(f"{where}: {nodes} nodes of {per_node} processes are more than {MOST_PROCESSES}; use --shrink")
    return Pattern(name, nodes, nodes * per_node, (phase_of(one, where, nodes * per_node, shrink),))


def phase_of(table: Table, where: str, processes: int, shrink: int = 1) -> Phase:
    """Return the phase of a table whose keys are known, for so many processes."""
    request = size(table, "request", where, most=MOST_REQUEST, default="1m")
    direct = truth(table, "direct", where, default=False)
    if direct and request % 4096 != 0:
        raise UsageError(f"{where}: request = {table.get('request')!r} must be a multiple of 4k, because direct = true")
    operation = word(table, "operation", where, OPERATIONS)
    new_file = truth(table, "new_file", where, default=False)
    if new_file and operation == "read":
        raise UsageError(f"{where}: new_file = True must be false, because operation = 'read'")
    return Phase(
        layout=word(table, "layout", where, LAYOUTS),
        request_bytes=request,
        operation=operation,
        direct=direct,
        total_bytes=max(1, size(table, "total", where, most=MOST_TOTAL, default="64m") // shrink),
        seconds=number(table, "seconds", where, most=DAY_S, default=0),
        active_processes=whole(table, "active_processes", where, most=processes, default=None),
        rounds=whole(table, "rounds", where, most=100_000, default=1),
        pause_s=number(table, "pause_s", where, most=DAY_S, default=0),
        request_pause_s=number(table, "request_pause_s", where, most=DAY_S, default=0),
        new_file=new_file,
    )
