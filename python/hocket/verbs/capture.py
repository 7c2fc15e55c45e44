"""hocket capture: watches a real application, and describes it for hocket emulate."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hocket import mpi
from hocket.errors import UsageError
from hocket.verbs import help_text, tell

if TYPE_CHECKING:
    from hocket.capture.course import Group
    from hocket.capture.stages import Run

EXAMPLES = """
examples:
  hocket capture -o cg.toml -- mpiexec -n 4 ./cg --stencil 50
  hocket capture -o cg.toml --processes 1,2,4 -- mpiexec -n {processes} ./cg --stencil 50   # with its scaling
  HOCKET_RESIZE=100:4 hocket capture -o cg.toml -- mpiexec -n 2 ./cg --stencil 50           # with its resizes
  hocket emulate cg.toml

The application runs as it would without hocket; docs/capture.md says what is captured, and what is not.
"""


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("watch an MPI application and describe it for hocket emulate", EXAMPLES)
    parser = parsers.add_parser("capture", usage="hocket capture [options] -- mpiexec -n 4 ./app [arguments]", **words)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the description (default: NAME.toml)")
    parser.add_argument("--name", help="of the application (default: its program's name)")
    parser.add_argument(
        "--processes", metavar="N,N", help="run with each of these numbers, in place of {processes} in the command"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="command", help="the launcher and its arguments")
    parser.set_defaults(verb=capture)


def sizes_of(text: str | None) -> list[int | None]:
    """Return the numbers of --processes; [None] without the option."""
    if text is None:
        return [None]
    words = text.split(",")
    if not all(word.isdecimal() and word.isascii() and int(word) > 0 for word in words):
        raise UsageError(f"--processes {text}: give numbers of processes, for instance 1,2,4")
    return [int(word) for word in sorted(set(words), key=int)]


def capture(arguments: argparse.Namespace) -> int:
    from hocket.capture.course import course_of
    from hocket.capture.describe import describe
    from hocket.capture.watch import command_for, cores, watch

    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        raise UsageError("no command given; write 'hocket capture -- mpiexec -n 4 ./app'")
    runs = {}
    commands = [command_for(command, size) for size in sizes_of(arguments.processes)]
    name = arguments.name or mpi.examine(commands[0], None).name
    output = arguments.output or Path(f"{Path(name).name}.toml")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"--output {output}: there is no directory {output.absolute().parent}")
    if output.exists():
        raise UsageError(f"--output {output}: the file exists; remove it, or give another")
    course: list[Group] = []
    for words in commands:
        course = course_of(watch(words))
        runs |= _longest(course)
    text, notes = describe(name, runs, course, cores())
    for note in notes:
        tell(note)
    output.write_text(text, encoding="utf-8")
    count = len(course) - 1
    resizes = f", and {count} resize{'s' if count > 1 else ''}" if count > 0 else ""
    stages = text.count("[[phase.stage]]")
    tell(f"{output}: {stages} stages, from runs with {', '.join(map(str, sorted(runs)))} processes{resizes}")
    return 0


def _longest(course: Sequence[Group]) -> dict[int, Run]:
    """Return the run of each number of processes; if there are several of one, that with the most iterations."""
    return {group.run.processes: group.run for group in sorted(course, key=lambda group: group.iterations)}
