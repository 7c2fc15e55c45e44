"""hocket forward: sends the data of a program's files through I/O servers."""

from __future__ import annotations

import argparse
import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hocket import forwarding
from hocket.arbitration.jobs import MOST, Job, read_jobs
from hocket.errors import UsageError
from hocket.forward_page import MOST_SERVERS
from hocket.mpi import ProgramNotFoundError
from hocket.supervise import end_like
from hocket.verbs import help_text, tell

MOST_NUMBERS = 256  # most_choices of src/core/allocation/choices.hpp
EXAMPLES = """
examples:
  hocket forward --mount /scratch/x -- ./program input       # through one server, which is started and ended
  hocket forward --servers 4 --mount /scratch/x -- mpiexec -n 8 ./app
  hocket forward --mount /scratch/x --consistency close-to-open -- ./logs-a-lot    # small writes are collected
  hocket forward --mount /scratch/x -- busybox tar cf /scratch/x/a.tar dir    # a static program, by a mount of its own
  hocket forward --mount /scratch/x --check -- tar cf /scratch/x/a.tar dir    # says at the end what went directly
  hocket forward --mount /scratch/x --curves jobs.toml --name IOR-MPI -- mpiexec -n 8 ./ior   # for 'mckp' and others

What the program and its children read from and write to regular files below the directory goes through the servers;
the files are ordinary files, and everything else is as without hocket. The program need not be an MPI program, and
nothing in it changes. Each process uses one of the servers. 'hocket servers assign NAME 4' changes how many an
application uses, while it runs, 0 included. Under a policy that gives out servers ('hocket policy set mckp') hocketd
decides how many, each time that an application starts or ends. It knows the bandwidth of an application by number of
servers from --curves, a file as 'hocket arbitrate' takes it: the [[job]] of the application's name counts. An
application without one gets the number of the policy 'static', by its --nodes.

A server that ends or hangs is left out: its calls are made again, directly or through another server. Where nobody can
know whether it had made a call, the call fails with EIO. docs/forward.md says what is forwarded, and what is not.
"""


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("send the data of a program's files through I/O servers", EXAMPLES)
    parser = parsers.add_parser(
        "forward", usage="hocket forward --mount DIR [options] -- ./program [arguments]", **words
    )
    parser.add_argument("--mount", required=True, metavar="DIR", help="files below this directory are forwarded")
    parser.add_argument(
        "--servers",
        type=int,
        metavar="N",
        help="through how many servers; those that are missing are started and ended (default: all that run, or 1)",
    )
    parser.add_argument(
        "--group",
        type=int,
        default=1,
        metavar="N",
        help="that many processes stand for a node: they use the same server (default: 1)",
    )
    parser.add_argument("--curves", type=Path, metavar="FILE", help="jobs with their bandwidth by number of servers")
    parser.add_argument("--nodes", type=int, metavar="N", help="nodes that it runs on (default: of the job, or 1)")
    parser.add_argument("--processes", type=int, metavar="P", help="its processes (default: of the job, or its nodes)")
    parser.add_argument(
        "--by",
        choices=("preload", "fuse"),
        help="by a preloaded library, or by a mount that the program and its children alone see (default: by the mount "
        "if the program is statically linked, else by the library)",
    )
    parser.add_argument("--name", help="the application's name in listings (default: its program's name)")
    parser.add_argument(
        "--without-servers",
        choices=("direct", "fail"),
        default="direct",
        help="what becomes of calls while no server runs: they are made directly (the default), or fail with EIO",
    )
    parser.add_argument(
        "--consistency",
        choices=("synchronous", "close-to-open"),
        default="synchronous",
        help="synchronous: a write returns when the file system has it (the default); close-to-open: small writes are "
        "collected, and other processes see them when the file is closed",
    )
    parser.add_argument("--check", action="store_true", help="say at the end what was forwarded, and what was not")
    parser.add_argument("--counts", type=Path, metavar="FILE", help="write what --check counts as JSON")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="command", help="the program and its arguments")
    parser.set_defaults(verb=_forward)


def _forward(arguments: argparse.Namespace) -> int:
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        raise UsageError("no command given; write 'hocket forward --mount DIR -- ./program'")
    mount = Path(os.path.realpath(arguments.mount))
    if not mount.is_dir() or arguments.mount == "":
        raise UsageError(f"--mount {arguments.mount}: there is no such directory")
    for option, value in (("--servers", arguments.servers), ("--group", arguments.group)):
        if value is not None and not 1 <= value <= (MOST_SERVERS if option == "--servers" else 1 << 20):
            raise UsageError(f"{option} {value}: give 1 to {MOST_SERVERS if option == '--servers' else 1 << 20}")
    if arguments.name and not arguments.name.isprintable():
        raise UsageError(f"--name {arguments.name!r}: a name has no line breaks and no control characters")
    if arguments.counts is not None:
        _write(arguments.counts, "")  # so that a mistake is told before the program runs
    program = shutil.which(command[0])
    if program is None:
        raise ProgramNotFoundError(f"{command[0]}: there is no such program; is it in PATH?")
    name = arguments.name or Path(program).name
    job = _job(arguments, name)
    how = forwarding.How(
        mount=mount,
        servers=arguments.servers,
        group=arguments.group,
        name=name,
        fails=arguments.without_servers == "fail",
        nodes=job.nodes,
        processes=job.processes,
        bandwidth=job.bandwidth,
        collects=arguments.consistency == "close-to-open",
        by=arguments.by,
    )
    outcome = forwarding.run(program, command, how)
    if arguments.counts is not None:
        _write(arguments.counts, json.dumps(_counts(outcome)) + "\n")
    if arguments.check:
        for line in forwarding.sentences(outcome.counts):
            tell(line)
    end_like(outcome.code)
    return outcome.code


def _job(arguments: argparse.Namespace, name: str) -> Job:
    """Return what --curves says of the application, and --nodes and --processes, which count before it."""
    for option, value in (("--nodes", arguments.nodes), ("--processes", arguments.processes)):
        if value is not None and not 1 <= value <= MOST:
            raise UsageError(f"{option} {value}: give 1 to {MOST}")
    known = read_jobs(arguments.curves).jobs if arguments.curves is not None else []
    found = next((job for job in known if job.name == name), None)
    if arguments.curves is not None and found is None:
        tell(f"{arguments.curves} has no job '{name}': it gets the default number of servers")
    if found is not None and len(found.bandwidth) > MOST_NUMBERS:
        raise UsageError(f"{arguments.curves}: job '{name}' has more than {MOST_NUMBERS} numbers of servers")
    nodes = arguments.nodes or (found.nodes if found else 1)
    processes = arguments.processes or (found.processes if found else nodes)
    return Job(name, nodes, processes, found.bandwidth if found else {})


def _write(path: Path, text: str) -> None:
    """Write the file of --counts. Raises UsageError if that fails."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--counts {path}: {error.strerror}; give a file that can be written") from error


def _counts(outcome: forwarding.Outcome) -> dict[str, Any]:
    """Return what --counts writes; {} if the program ran directly."""
    if not outcome.counts:
        return {}
    seen = {str(number): asdict(one) for number, one in outcome.seen.items()}
    return {**outcome.counts, "seconds": outcome.seconds, "by_servers": seen}
