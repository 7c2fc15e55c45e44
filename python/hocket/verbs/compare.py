"""hocket compare: runs an application and its emulation, and compares their times."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from hocket.errors import UsageError
from hocket.verbs import help_text, print_json

EXAMPLES = """
examples:
  hocket compare cg.toml -- mpiexec -n 4 ./cg --stencil 50
  hocket compare --repeat 9 --json cg.toml -- mpiexec -n 4 ./cg --stencil 50

Both are watched in the same way, by turns. A ratio is the median of the emulation over that of the application; "of
pairs" is the standard deviation of the quotients of runs that followed each other. p is that of Kruskal and Wallis:
below 0.05 the medians differ. "normal" is "no" if Shapiro and Wilk's test refuses it for either.
"""


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("compare an MPI application with its emulation", EXAMPLES)
    usage = "hocket compare [options] APP.toml -- mpiexec -n 4 ./app [arguments]"
    parser = parsers.add_parser("compare", usage=usage, **words)
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="runs of each (default: %(default)d)")
    parser.add_argument("--json", action="store_true", help="print all figures, with the times of each run")
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="APP.toml -- command",
        help="the description, e.g. of hocket capture; the launcher and its arguments",
    )
    parser.set_defaults(verb=compare)


def compare(arguments: argparse.Namespace) -> int:
    from hocket.capture import beside
    from hocket.capture.course import whole_run
    from hocket.capture.watch import by_turns
    from hocket.emulator.description import read_description

    if len(arguments.words) > 1 and arguments.words[1] != "--":
        raise UsageError(f"'{arguments.words[1]}' follows the description; write options before it, and '--' behind it")
    command = arguments.words[2:]
    if not command:
        raise UsageError("no command given; write 'hocket compare APP.toml -- mpiexec -n 4 ./app'")
    description = Path(arguments.words[0])
    if not 1 <= arguments.repeat <= 1000:
        raise UsageError(f"--repeat {arguments.repeat}: give 1 to 1000 runs")
    read_description(description)  # its mistakes are told before the application runs
    real, emulated = ([whole_run(one) for one in logs] for logs in by_turns(command, description, arguments.repeat))
    measures = beside.compare(real, emulated)
    if arguments.json:
        print_json({"processes": real[0].processes, "measures": [asdict(one) for one in measures]})
    else:
        print(beside.table(measures))
    return 0
