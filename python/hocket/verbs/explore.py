"""hocket explore: measures access patterns, or a program, through different numbers of I/O servers."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from hocket.errors import HocketError, UsageError
from hocket.exploration.measure import measure_pattern, measure_program, own_servers
from hocket.exploration.patterns import read_patterns
from hocket.exploration.results import Measured, Planned, Results, curve, jobs_text, plan
from hocket.mpi import ProgramNotFoundError
from hocket.tables import columns
from hocket.verbs import help_text, tell

EXAMPLES = """
examples:
  hocket explore patterns.toml --dir /scratch/x
  hocket explore patterns.toml --dir /scratch/x --output run1     # resumes run1, if it was interrupted
  hocket explore --dir /scratch/x --servers 0,1,2,4 -- mpiexec -n 4 ./app
  hocket arbitrate explored/curves.toml --servers 12

The file describes access patterns (GekkoFWD, section 2). A key with a list stands for a pattern with each value:
  servers = [0, 1, 2, 4, 8]        # 0: directly
  repetitions = 5
  [[pattern]]
  name = "fpp"
  nodes = [8, 16, 32]              # the processes of a node use the same server
  processes_per_node = [12, 24, 48]
  layout = "own"                   # a file for each process; or "contiguous", "strided": one file
  request = ["32k", "1m"]
  operation = "write"              # or "read"
  direct = false                   # true: O_DIRECT
  total = "64m"                    # of all processes
  seconds = 0                      # stop after that time; 0: not
scenarios/patterns/forge-189.toml has the paper's 189 patterns; --shrink 48 makes them small enough for one machine.

Each run's bandwidth is its bytes over the time from the common start of all processes to the end of the last. That of a
program is the bytes that go through servers over its run time. Runs are in random order. The output directory has
runs.jsonl, a line each, and curves.toml: the median bandwidth of each pattern, for 'hocket arbitrate'.
"""
MOST_SERVERS = 64
PROGRAM_REPETITIONS = 5


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("measure access patterns, or a program, by number of I/O servers", EXAMPLES)
    usage = "hocket explore (PATTERNS.toml | [options] -- PROGRAM …) --dir DIR [options]"
    parser = parsers.add_parser("explore", usage=usage, **words)
    parser.add_argument(
        "words", nargs="*", metavar="PATTERNS.toml", help="the patterns; or '--', a program and its words"
    )
    parser.add_argument("--dir", required=True, type=Path, metavar="DIR", help="files are made below it")
    parser.add_argument("--servers", metavar="N,N,…", help="numbers of servers, instead of those of the file")
    parser.add_argument("--repeat", type=int, metavar="N", help="how often, instead of what the file says")
    parser.add_argument("--shrink", type=int, default=1, metavar="N", help="divide processes per node and totals by N")
    parser.add_argument(
        "--group", type=int, default=1, metavar="N", help="processes of a program that stand for a node"
    )
    parser.add_argument("--limit", metavar="BYTES", help="bytes/s of each server, e.g. 60m, where all share one disk")
    parser.add_argument("--seed", type=int, default=1, help="of the random order (default: 1)")
    parser.add_argument("--output", type=Path, default=Path("explored"), metavar="DIR", help="default: explored")
    parser.set_defaults(verb=_explore)


def _explore(arguments: argparse.Namespace) -> int:
    if not arguments.dir.is_dir():
        raise UsageError(f"--dir {arguments.dir}: there is no such directory")
    for option, value in (("--shrink", arguments.shrink), ("--group", arguments.group), ("--repeat", arguments.repeat)):
        if value is not None and not 1 <= value <= 100_000:
            raise UsageError(f"{option} {value}: give 1 to 100000")
    servers = _numbers(arguments.servers) if arguments.servers is not None else None
    if not arguments.words:
        raise UsageError("give either a file of patterns, PATTERNS.toml, or '-- PROGRAM …'")
    is_file = len(arguments.words) == 1 and arguments.words[0].endswith(".toml")
    return _patterns(arguments, servers) if is_file else _program(arguments, servers)


def _numbers(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isascii() and word.isdigit() and int(word) <= MOST_SERVERS for word in words):
        raise UsageError(f"--servers {text}: give numbers from 0 to {MOST_SERVERS}, separated by commas")
    return sorted({int(word) for word in words})


def _patterns(arguments: argparse.Namespace, servers: list[int] | None) -> int:
    asked = read_patterns(Path(arguments.words[0]), arguments.shrink)
    by_name = {one.name: one for one in asked.patterns}
    about = {"patterns": [asdict(one) for one in asked.patterns], "limit": arguments.limit}
    results = _open(arguments.output, about)
    directory = arguments.dir.resolve()

    def measure(run: Planned, environment) -> tuple[int, float]:
        return measure_pattern(by_name[run.name], run.servers, directory, environment)

    planned = plan(list(by_name), servers or asked.servers, arguments.repeat or asked.repetitions, arguments.seed)
    _measure(results, planned, arguments, measure)
    sizes = {name: (one.nodes, one.processes) for name, one in by_name.items()}
    return _tell(results, sizes, arguments.output)


def _program(arguments: argparse.Namespace, servers: list[int] | None) -> int:
    command = arguments.words
    if shutil.which(command[0]) is None:
        raise ProgramNotFoundError(f"{command[0]}: there is no such program; is it in PATH?")
    numbers = servers or [0, 1, 2, 4]
    if max(numbers) == 0:
        raise UsageError("--servers 0: give another number too, because the bytes are counted when they are forwarded")
    results = _open(arguments.output, {"command": command, "group": arguments.group, "limit": arguments.limit})
    directory = arguments.dir.resolve()

    def measure(run: Planned, environment) -> tuple[int, float]:
        return measure_program(command, run.servers, arguments.group, directory, environment)

    name = Path(command[0]).name
    planned = plan([name], numbers, arguments.repeat or PROGRAM_REPETITIONS, arguments.seed)
    _measure(results, planned, arguments, measure)
    # A direct run moves as many bytes; nobody counts them there.
    most = max(one.bytes for one in results.runs)
    if most == 0:
        raise HocketError(f"{name} moved no data of files below {directory} through servers")
    results.runs = [Measured(one.run, one.bytes or most, one.seconds) for one in results.runs]
    return _tell(results, {name: (1, 1)}, arguments.output)


def _open(output: Path, about: dict) -> Results:
    output.mkdir(parents=True, exist_ok=True)
    return Results(output / "runs.jsonl", hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16])


def _measure(results: Results, planned: Sequence[Planned], arguments: argparse.Namespace, measure: Callable) -> None:
    """Make the runs that are missing, with a progress bar. Each is in the file before the next one begins."""
    from rich.console import Console
    from rich.progress import track

    missing = results.missing(planned)
    if not missing:
        return
    options = ["--forward-limit", arguments.limit] if arguments.limit else []
    with own_servers(max(one.servers for one in missing), arguments.dir.resolve(), options) as environment:
        for run in track(missing, "measuring", console=Console(stderr=True)):
            moved, seconds = measure(run, environment)
            results.add(Measured(run, moved, seconds))


def _tell(results: Results, sizes: dict[str, tuple[int, int]], output: Path) -> int:
    curves = {name: curve(results.rates(name)) for name in sizes}
    numbers = sorted({count for one in curves.values() for count in one})
    rows = [
        (name, *(f"{one[count]:.1f}" if count in one else "" for count in numbers), str(max(one, key=one.__getitem__)))
        for name, one in curves.items()
        if one
    ]
    print(columns(("MB/s THROUGH", *map(str, numbers), "BEST"), rows, right=range(1, len(numbers) + 2)))
    path = output / "curves.toml"
    path.write_text(jobs_text((name, *sizes[name], one) for name, one in curves.items()), encoding="utf-8")
    tell(f"{len(results.runs)} runs in {results.path}; the medians are in {path}, for 'hocket arbitrate'")
    return 0
