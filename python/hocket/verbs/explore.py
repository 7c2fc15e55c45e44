"""hocket explore: measures access patterns, or a program, through different numbers of I/O servers."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from hocket.curves import store
from hocket.curves.curve import EXPLORED, Curve
from hocket.curves.curve import Measured as Measurement
from hocket.curves.patterns import DESCRIBED, keep, text_of
from hocket.errors import HocketError, UsageError
from hocket.exploration.measure import Program, measure
from hocket.exploration.patterns import Pattern, read_patterns
from hocket.exploration.results import Measured, Planned, Results, curve, jobs_text, plan
from hocket.mpi import ProgramNotFoundError, name_of, processes_of
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
    parser.add_argument("--name", help="the program's name, for its curve (default: that of its file)")
    where = "the store of curves (default: that of 'hocket curves', but none with --limit)"
    parser.add_argument("--curves", type=Path, metavar="FILE", help=where)
    parser.set_defaults(verb=_explore)


def _explore(arguments: argparse.Namespace) -> int:
    if not arguments.dir.is_dir():
        raise UsageError(f"--dir {arguments.dir}: there is no such directory")
    for option, value in (("--shrink", arguments.shrink), ("--group", arguments.group), ("--repeat", arguments.repeat)):
        if value is not None and not 1 <= value <= 100_000:
            raise UsageError(f"{option} {value}: give 1 to 100000")
    if arguments.name is not None and not (arguments.name and arguments.name.isprintable()):
        raise UsageError(f"--name {arguments.name!r}: give a text of printable letters")
    if _is_kept(arguments):
        store.check(_store_of(arguments))  # before hours of measuring
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
    _tell(results, sizes, arguments.output)
    described = text_of(one for one in asked.patterns if results.rates(one.name))
    (arguments.output / DESCRIBED).write_text(described, encoding="utf-8")
    if _is_kept(arguments):
        directory = store.patterns_dir(_store_of(arguments))
        keep(arguments.output, directory)
        tell(f"they are kept in {directory}, for 'hocket curves'")
    return 0


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
    sizes = {one.name: (one.job.nodes, one.job.processes) for one in asked.jobs}
    _tell(results, sizes, arguments.output)
    _keep_curves(results, sizes, arguments)
    return 0


def _count_direct(results: Results, names: Sequence[str]) -> None:
    """Give direct runs of programs their bytes: as many as through servers; nobody counts them there."""
    most = {name: max((one.bytes for one in results.runs if one.run.name == name), default=0) for name in names}
    none = next((name for name, moved in most.items() if moved == 0), None)
    if none is not None:
        raise HocketError(f"{none} moved no data of files in the directory through servers")
    results.runs = [replace(one, bytes=one.bytes or most[one.run.name]) for one in results.runs]


def _program(arguments: argparse.Namespace, servers: list[int] | None) -> int:
    command = arguments.words
    if shutil.which(command[0]) is None:
        raise ProgramNotFoundError(f"{command[0]}: there is no such program; is it in PATH?")
    numbers = servers or list(JOB_SERVERS)
    if max(numbers) == 0:
        raise UsageError("--servers 0: give another number too, because the bytes are counted when they are forwarded")
    results = _open(arguments.output, {"command": command, "group": arguments.group, "limit": arguments.limit})
    name = arguments.name or name_of(command)
    program = Program(name, 1, arguments.group, tuple(command))
    planned = plan([name], numbers, arguments.repeat or REPETITIONS, arguments.seed)
    _measure(results, planned, arguments, {name: program})
    _count_direct(results, [name])
    processes = processes_of(command) or max(1, *(one.processes for one in results.runs))
    sizes = {name: (-(-processes // arguments.group), processes)}
    _tell(results, sizes, arguments.output)
    _keep_curves(results, sizes, arguments)
    return 0


def _is_kept(arguments: argparse.Namespace) -> bool:
    """Return True if what was measured counts for later runs. Those have servers without a limit."""
    return arguments.limit is None or arguments.curves is not None


def _store_of(arguments: argparse.Namespace) -> Path:
    return arguments.curves or store.default_path()


def _keep_curves(results: Results, sizes: Mapping[str, tuple[int, int]], arguments: argparse.Namespace) -> None:
    """Store the curves of applications, of which these are the nodes and processes."""
    if not _is_kept(arguments):
        return
    path = _store_of(arguments)
    curves = {name: _curve(results.rates(name), name, *size) for name, size in sizes.items()}
    store.change(path, lambda known: known | curves)
    names = ", ".join(f"'{name}'" for name in curves)
    tell(f"the curve of {names} is kept in {path}")


def _curve(rates: dict[int, list[float]], name: str, nodes: int, processes: int) -> Curve:
    """Return the curve of a program that was measured so often by number of servers."""
    measured = {number: Measurement(median(values), len(values)) for number, values in rates.items()}
    runs = sum(len(values) for values in rates.values())
    return Curve(name, nodes, processes, (EXPLORED,), datetime.now(UTC), runs, measured)


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
            ran = measure(subjects[run.name], run.servers, directory, environment)
            results.add(Measured(run, ran.bytes, ran.seconds, ran.processes))


def _tell(results: Results, sizes: Mapping[str, tuple[int, int]], output: Path) -> None:
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
