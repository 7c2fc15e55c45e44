"""hocket forward: sends the data of a program's files through I/O servers."""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hocket import forwarding, relay
from hocket.arbitration.jobs import MOST, Job
from hocket.errors import HocketError, UsageError
from hocket.forward_page import MOST_SERVERS
from hocket.mpi import ProgramNotFoundError, name_of, processes_of
from hocket.supervise import end_like
from hocket.verbs import help_text, tell

if TYPE_CHECKING:
    from hocket.curves.curve import Curve

MOST_NUMBERS = 256  # most_choices of src/core/allocation/choices.hpp
EXAMPLES = """
examples:
  hocket forward --mount /scratch/x -- ./program input       # through one server, which is started and ended
  hocket forward --servers 4 --mount /scratch/x -- mpiexec -n 8 ./app
  hocket forward --on n1,n2 --mount /lustre/x -- ./app         # through servers on other nodes of your cluster
  hocket forward --mount /scratch/x --consistency close-to-open -- ./logs-a-lot    # small writes are collected
  hocket forward --mount /scratch/x -- busybox tar cf /scratch/x/a.tar dir    # a static program, by a mount of its own
  hocket forward --mount /scratch/x --check -- tar cf /scratch/x/a.tar dir    # says at the end what went directly
  hocket forward --mount /scratch/x --curves jobs.toml --name IOR-MPI -- mpiexec -n 8 ./ior   # for 'mckp' and others

What the program and its children read from and write to regular files below the directory goes through the servers;
the files are ordinary files, and everything else is as without hocket. The program need not be an MPI program, and
nothing in it changes. Each process uses one of the servers. 'hocket servers assign NAME 4' changes how many an
application uses, while it runs, 0 included. Under a policy that gives out servers ('hocket policy set mckp') hocketd
decides how many, each time that an application starts or ends. It knows the bandwidth of an application by number of
servers from its earlier runs, 'hocket explore', or Darshan logs ('hocket curves --help'), or from --curves, a file as
'hocket arbitrate' takes it. An application that nobody has measured gets the number of the policy 'static', by --nodes.

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
        "--on",
        metavar="NODES",
        help="through servers on these nodes of the cluster, joined by commas; one is started, and ended, on each that "
        "has none. Other nodes must see at once what one writes, as on Lustre and GPFS",
    )
    parser.add_argument(
        "--coherent", action="store_true", help="with --on: other file systems than Lustre and GPFS do so, too"
    )
    parser.add_argument(
        "--group",
        type=int,
        default=1,
        metavar="N",
        help="that many processes stand for a node: they use the same server (default: 1)",
    )
    where = "bandwidth by number of servers, which this run refines (default: the store of 'hocket curves')"
    parser.add_argument("--curves", type=Path, metavar="FILE", help=where)
    nodes = "nodes that it runs on (default: of its curve, or processes / --group)"
    parser.add_argument("--nodes", type=int, metavar="N", help=nodes)
    processes = "its processes (default: of mpiexec -n, of its curve, or its nodes)"
    parser.add_argument("--processes", type=int, metavar="P", help=processes)
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
    nodes = _nodes(arguments)
    if arguments.name and not arguments.name.isprintable():
        raise UsageError(f"--name {arguments.name!r}: a name has no line breaks and no control characters")
    if arguments.counts is not None:
        _write(arguments.counts, "")  # so that a mistake is told before the program runs
    program = shutil.which(command[0])
    if program is None:
        raise ProgramNotFoundError(f"{command[0]}: there is no such program; is it in PATH?")
    name = arguments.name or name_of(command)
    job = _job(arguments, name, command)
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
        on=nodes,
        coherent=arguments.coherent,
    )
    outcome = forwarding.run(program, command, how)
    if arguments.counts is not None:
        _write(arguments.counts, json.dumps(_counts(outcome)) + "\n")
    if forwarding.about_static(outcome):
        tell(forwarding.about_static(outcome))
    if arguments.check:
        for line in forwarding.sentences(outcome.counts):
            tell(line)
        if outcome.elsewhere is not None and outcome.counts:
            for line in relay.sentences(outcome.elsewhere):
                tell(line)
    if outcome.code == 0 and outcome.seen:
        _refine(arguments, how, command, outcome)
    end_like(outcome.code)
    return outcome.code


def _nodes(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the nodes of --on. Raises UsageError for what does not go with it."""
    if arguments.on is None:
        if arguments.coherent:
            raise UsageError("--coherent: it is for --on NODES")
        return ()
    nodes = tuple(dict.fromkeys(one for one in arguments.on.split(",") if one))
    if not nodes:
        raise UsageError(f"--on '{arguments.on}': name nodes, joined by commas")
    others = {"--servers": arguments.servers, "--by fuse": arguments.by == "fuse"}
    others["--consistency close-to-open"] = arguments.consistency == "close-to-open"
    for option, given in others.items():
        if given:
            raise UsageError(f"{option} does not go with --on: it is for servers of this node")
    return nodes


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
    return {**outcome.counts, **(outcome.elsewhere or {}), "seconds": outcome.seconds, "by_servers": seen}


def _refine(
    arguments: argparse.Namespace, how: forwarding.How, command: Sequence[str], outcome: forwarding.Outcome
) -> None:
    """Add what was seen to the store of curves. The program has ended well: nothing here changes its exit code."""
    from hocket.curves import seen, store  # imported here: the program starts sooner

    processes = _processes(arguments, command) or max(outcome.counts["processes"], 1)
    application = seen.Application(how.name, arguments.nodes or -(-processes // how.group), processes)
    try:
        path = arguments.curves or store.default_path()
        why = seen.refine(path, application, outcome.seen, outcome.seconds)
    except (HocketError, OSError) as error:
        why = f"what was seen of this run is not kept: {error}"
    if why:
        tell(why)


def _processes(arguments: argparse.Namespace, command: Sequence[str]) -> int | None:
    """Return the number of processes if somebody says it."""
    return arguments.processes or processes_of(command)


def _job(arguments: argparse.Namespace, name: str, command: Sequence[str]) -> Job:
    """Return what is known of the application. --nodes, --processes and the launcher count before its curve."""
    for option, value in (("--nodes", arguments.nodes), ("--processes", arguments.processes)):
        if value is not None and not 1 <= value <= MOST:
            raise UsageError(f"{option} {value}: give 1 to {MOST}")
    asked = _processes(arguments, command)
    known = _known(arguments.curves, name, asked)
    processes = asked or (known.processes if known else arguments.nodes or 1)
    nodes = arguments.nodes or (known.nodes if known else -(-processes // arguments.group))
    return Job(name, nodes, processes, known.rates if known else {})


def _known(curves: Path | None, name: str, processes: int | None) -> Curve | None:
    """Return the application's curve; None if nobody has measured it.

    Raises UsageError if the file that the user has named is wrong. The program does not fail for the user's store.
    """
    from hocket.curves import store

    try:
        found = store.find(curves or store.default_path(), name, processes)
    except HocketError as error:
        if curves is not None:
            raise
        tell(f"{error}; '{name}' gets the default number of servers")
        return None
    if curves is not None and found is None and not store.is_writable_by_hocket(curves):
        tell(f"{curves} has no job '{name}': it gets the default number of servers")
    if found is not None and len(found.rates) > MOST_NUMBERS:
        raise UsageError(f"the curve of '{name}' has more than {MOST_NUMBERS} numbers of servers")
    return found
