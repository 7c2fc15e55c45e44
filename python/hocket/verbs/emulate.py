"""hocket emulate: runs an application from a description."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from hocket import mpi
from hocket.emulator import proteo, proteo_description
from hocket.emulator.description import Description, read_description
from hocket.emulator.machine import check
from hocket.errors import UsageError
from hocket.verbs import help_text, print_json, tell

EXAMPLES = """
examples:
  hocket emulate cg.toml                       # run it; the summary has the time of each stage
  hocket emulate cg.toml -n 4 --mpi openmpi    # begin with 4 processes, under Open MPI
  hocket emulate cg.toml --record cg.jsonl     # keep the times of each iteration
  hocket emulate cg.toml --check               # names mistakes by file, line, key, and value
  hocket emulate --print-schema > emulate.schema.json
  hocket emulate test.ini --import > test.toml # one of Proteo's configuration files, .ini or .json
  hocket emulate test.ini --version products   # where its keys fit several versions

docs/emulate.md has the format, with examples; docs/proteo-files.md, the versions of Proteo's files. The exit code is 1
if the application failed, or if a reconfiguration of the file did not take place.
"""


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("run an application from a description: a stand-in for the real one", EXAMPLES)
    parser = parsers.add_parser("emulate", usage="hocket emulate APP.toml [-n N] [options]", **words)
    parser.add_argument("description", type=Path, nargs="?", metavar="APP.toml", help="the application")
    parser.add_argument("-n", type=int, dest="processes", metavar="N", help="processes at the start, not the file's")
    parser.add_argument("--mpi", choices=(mpi.MPICH, mpi.OPENMPI), help="the MPI (default: that of mpiexec in PATH)")
    parser.add_argument("--dir", type=Path, default=Path(), metavar="DIR", help="of its files (default: here)")
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the record, lines of JSON")
    parser.add_argument("--no-daemon", action="store_true", help="start the application without hocketd")
    parser.add_argument("--check", action="store_true", help="check the file and this machine, and run nothing")
    parser.add_argument("--print-schema", action="store_true", help="print the JSON schema of the file")
    parser.add_argument("--import", action="store_true", dest="print_toml", help="print a file of Proteo as TOML")
    parser.add_argument("--version", metavar="V", help="version of a file of Proteo, if its keys fit several")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.set_defaults(verb=emulate)


def emulate(arguments: argparse.Namespace) -> int:
    if arguments.print_schema:
        from hocket.emulator.schema import schema

        print_json(schema())
        return 0
    if arguments.description is None:
        raise UsageError("no description given; write 'hocket emulate APP.toml'")
    if arguments.processes is not None and arguments.processes < 1:
        raise UsageError(f"-n {arguments.processes}: give the number of processes, at least 1")
    if arguments.print_toml:
        print(proteo_description.text_of(_imported(arguments)), end="")
        return 0
    description = _described(arguments)
    directory = arguments.dir.absolute()
    check(description, directory)
    if arguments.check:
        return 0
    # Imported here: a check needs no launcher
    from hocket.emulator.record import read_record, summary, text
    from hocket.emulator.run import find_launcher, run
    from hocket.supervise import end_like

    launcher = find_launcher(arguments.mpi)
    with tempfile.TemporaryDirectory(prefix="hocket-emulate-") as kept:
        record = (arguments.record or Path(kept) / "record.jsonl").absolute()
        code = run(description, launcher, directory, record, not arguments.no_daemon)
        read = read_record(record)
    figures = summary(read)
    if arguments.json:
        print_json(figures)
    elif read.blocks:
        print(text(figures))
    if not read.is_whole:  # a launcher may have lost what a rank said before it ended the job
        ended = f"exit code {code}" if code > 0 else f"signal {-code}" if code else "although its launcher returned 0"
        done = f"the record has {read.iterations} of its iterations"
        tell(f"the application ended before its work was done ({ended}): {done}")
    end_like(code)
    return code or int(not read.is_whole or bool(read.missing))


def _described(arguments: argparse.Namespace) -> Description:
    path = arguments.description
    if path.suffix in proteo.SUFFIXES:
        return proteo_description.described(_imported(arguments), arguments.processes)
    if arguments.version is not None:
        raise UsageError(f"--version {arguments.version}: {path} is no file of Proteo (.ini or .json)")
    return read_description(path, arguments.processes)


def _imported(arguments: argparse.Namespace) -> proteo.Imported:
    """Return what a file of Proteo says. The user is told the version, and what means nothing here."""
    path = arguments.description
    if path.suffix not in proteo.SUFFIXES:
        raise UsageError(f"--import {path}: give a file of Proteo (.ini or .json)")
    imported = proteo.import_file(path, arguments.version)
    for note in imported.notes:
        tell(note)
    return imported
