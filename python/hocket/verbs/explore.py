"""hocket explore: measures access patterns, or a program, through different numbers of I/O servers."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from hocket.errors import HocketError, UsageError
from hocket.exploration.measure import Program, measure
from hocket.exploration.patterns import Pattern, read_patterns
from hocket.exploration.results import Measured, Planned, Results, curve, jobs_text, plan
from hocket.mpi import ProgramNotFoundError
from hocket.private_servers import private_servers
from hocket.run_file import digest
from hocket.tables import columns
from hocket.toml_checks import read_toml
from hocket.verbs import help_text, tell
from hocket.workload.jobs import read_workload

EXAMPLES = """
examples:
  hocket explore patterns.toml --dir /scratch/x
  hocket explore patterns.toml --dir /scratch/x --output run1     # resumes run1, if it was interrupted
  hocket explore workload.toml --dir /scratch/x                   # the jobs of a file for 'hocket workload'
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
  active_processes = 4             # the others only take part in the rounds; default: all
  rounds = 1                       # one round behind the other; all processes begin a round together
  new_file = false                 # true: each round writes a new file
  pause_s = 0                      # all processes compute (here: sleep) before each round,
  request_pause_s = 0              # and each of them before each of its requests
scenarios/patterns/forge-189.toml has the paper's 189 patterns; --shrink 48 makes them small enough for one machine.

Each run's bandwidth is its bytes over the time from the common start of all processes to the end of the last. That of a
program is the bytes that go through servers over its run time. Runs are in random order. The output directory has
runs.jsonl, a line each, and curves.toml: the median bandwidth of each pattern, for 'hocket arbitrate'.
"""
MOST_SERVERS = 64
REPETITIONS = 5
JOB_SERVERS = (0, 1, 2, 4, 8)  # as in the paper (section 5.1)


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
    if len(arguments.words) != 1 or not arguments.words[0].endswith(".toml"):
        return _program(arguments, servers)
    is_workload = "job" in read_toml(Path(arguments.words[0]), "explore")
    return _jobs(arguments, servers) if is_workload else _patterns(arguments, servers)


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
    planned = plan(list(by_name), servers or asked.servers, arguments.repeat or asked.repetitions, arguments.seed)
    _measure(results, planned, arguments, by_name)
    sizes = {name: (one.nodes, one.processes) for name, one in by_name.items()}
    return _tell(results, sizes, arguments.output)


def _jobs(arguments: argparse.Namespace, servers: list[int] | None) -> int:
    """Measure the jobs of a workload, each alone."""
    asked = read_workload(Path(arguments.words[0]))
    if arguments.shrink != 1:
        raise UsageError(f"--shrink {arguments.shrink}: jobs of a workload are measured as they are")
    limit = arguments.limit or (str(asked.limit) if asked.limit else None)
    arguments = argparse.Namespace(**(vars(arguments) | {"limit": limit}))
    results = _open(arguments.output, {"jobs": asked.about()["jobs"], "limit": limit})
    by_name = {one.name: one.subject for one in asked.jobs}
    numbers = servers or [one for one in JOB_SERVERS if one <= asked.servers and (one > 0 or asked.direct)]
    planned = plan(list(by_name), numbers, arguments.repeat or REPETITIONS, arguments.seed)
    _measure(results, planned, arguments, by_name)
    _count_direct(results, list(by_name))
    return _tell(results, {one.name: (one.job.nodes, one.job.processes) for one in asked.jobs}, arguments.output)


def _count_direct(results: Results, names: Sequence[str]) -> None:
    """Give direct runs of programs their bytes: as many as through servers; nobody counts them there."""
    most = {name: max((one.bytes for one in results.runs if one.run.name == name), default=0) for name in names}
    none = next((name for name, moved in most.items() if moved == 0), None)
    if none is not None:
        raise HocketError(f"{none} moved no data of files in the directory through servers")
    results.runs = [Measured(one.run, one.bytes or most[one.run.name], one.seconds) for one in results.runs]


def _program(arguments: argparse.Namespace, servers: list[int] | None) -> int:
    command = arguments.words
    if shutil.which(command[0]) is None:
        raise ProgramNotFoundError(f"{command[0]}: there is no such program; is it in PATH?")
    numbers = servers or [0, 1, 2, 4]
    if max(numbers) == 0:
        raise UsageError("--servers 0: give another number too, because the bytes are counted when they are forwarded")
    results = _open(arguments.output, {"command": command, "group": arguments.group, "limit": arguments.limit})
    name = Path(command[0]).name
    program = Program(name, 1, arguments.group, tuple(command))
    planned = plan([name], numbers, arguments.repeat or REPETITIONS, arguments.seed)
    _measure(results, planned, arguments, {name: program})
    _count_direct(results, [name])
    return _tell(results, {name: (1, 1)}, arguments.output)


def _open(output: Path, about: dict) -> Results:
    return Results(output / "runs.jsonl", digest(about))


def _measure(
    results: Results,
    planned: Sequence[Planned],
    arguments: argparse.Namespace,
    subjects: Mapping[str, Pattern | Program],
) -> None:
    """Make the runs that are missing, with a progress bar. Each is in the file before the next one begins."""
    from rich.console import Console
    from rich.progress import track

    missing = results.missing(planned)
    if not missing:
        return
    options = ["--forward-limit", arguments.limit] if arguments.limit else []
    directory = arguments.dir.resolve()
    with private_servers(max(one.servers for one in missing), directory, options) as environment:
        for run in track(missing, "measuring", console=Console(stderr=True)):
            moved, seconds = measure(subjects[run.name], run.servers, directory, environment)
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
