"""hocket run: starts an MPI application so that it takes turns."""

from __future__ import annotations

import argparse
import os
import re
import signal
import time
from pathlib import Path

from hocket import daemon, mpi, paths
from hocket.errors import HocketError, UsageError
from hocket.verbs import help_text, tell

EXAMPLES = """
examples:
  hocket run -- mpiexec -n 4 ./solver input.txt
  hocket run --name jacobi-a --policy fcfs -- mpiexec -n 4 ./jacobi
  hocket run --policy interfere -- mpirun -n 8 ./app   # watch it, let nobody wait
  hocket run --malleable -n 4 -- mpiexec ./jacobi      # starts with 1 process, grows to 4; see 'hocket resize'

The ranks get libhocket, whichever MPI the launcher belongs to (MPICH, Intel MPI, Open MPI); a daemon is started
if none runs. Output and exit code are the program's own; what hocket has to say goes to stderr.
"""
IDLE_S = 30  # idle time in seconds after which a daemon that was started for an application ends


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("start an MPI application so that it takes turns", EXAMPLES)
    parser = parsers.add_parser("run", usage="hocket run [options] -- mpiexec -n 4 ./app [arguments]", **words)
    parser.add_argument("--name", help="how the application is called in listings (default: its program's name)")
    parser.add_argument("--policy", help="the daemon's policies, e.g. fcfs+io-aware; 'hocket policy ls' lists them")
    parser.add_argument("--metric", help="what the daemon's policy minimises; see 'hocket policy --help'")
    parser.add_argument(
        "--coordinate",
        action=argparse.BooleanOptionalAction,
        help="ask before each collective access (the default), or be watched only: ask nobody, never wait",
    )
    parser.add_argument(
        "--io",
        choices=("mpi", "hocket"),
        help="who does blocking collective file accesses: the MPI library (the default), or hocket, where it can",
    )
    parser.add_argument("--malleable", action="store_true", help="start a malleable program small, let it grow to -n N")
    parser.add_argument(
        "-n", type=int, dest="processes", metavar="N", help="with --malleable: processes to compute with"
    )
    parser.add_argument("--trace", metavar="FILE", help="where the daemon, if it is started now, writes its trace")
    parser.add_argument("--mpi", choices=(mpi.MPICH, mpi.OPENMPI), help="the MPI, where the launcher does not tell")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="command", help="the launcher and its arguments")
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    """Replace this process by the launcher, whose output, signals, and exit code the caller then sees."""
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        raise UsageError("no command given; write 'hocket run -- mpiexec -n 4 ./app'")
    if arguments.name and not arguments.name.isprintable():
        raise UsageError(f"--name {arguments.name!r}: a name has no line breaks and no control characters")
    job = mpi.examine(command, arguments.mpi)
    environment = dict(os.environ)
    if arguments.malleable:
        job, settings = mpi.start_small(job, _processes(arguments), environment)
        environment |= settings
        command = job.command
    elif arguments.processes is not None:
        raise UsageError(
            "-n belongs to --malleable; else say behind the launcher how many: hocket run -- mpiexec -n 4 …"
        )
    for warning in job.warnings:
        tell(warning)
    try:
        _have_daemon(arguments)
        how = mpi.preload(job, environment)
        command = how.command
        environment |= how.environment | _job_environment(arguments, job)
    except UsageError:
        raise
    except HocketError as error:
        tell(f"{error}; the application runs uncoordinated")
    _become(str(job.program), command, environment)
    return 0  # never reached


def _processes(arguments: argparse.Namespace) -> int:
    if arguments.processes is None or arguments.processes < 1:
        given = "is missing" if arguments.processes is None else f"{arguments.processes}"
        raise UsageError(f"--malleable: -n {given}; say how many processes are to compute: -n N, at least 1")
    return arguments.processes


def _job_environment(arguments: argparse.Namespace, job: mpi.Job) -> dict[str, str]:
    unique = f"{os.uname().nodename}-{os.getpid()}-{time.time_ns()}"
    name = arguments.name or re.sub(r"[^\w.+-]", "_", job.name)
    told = {"HOCKET_JOB": unique, "HOCKET_NAME": name, "HOCKET_SOCKET": str(paths.socket_path())}
    if arguments.coordinate is not None:
        told["HOCKET_COORDINATE"] = "1" if arguments.coordinate else "0"
    if arguments.io is not None:
        told["HOCKET_IO"] = arguments.io
    return told


def _have_daemon(arguments: argparse.Namespace) -> None:
    """Ensure that a daemon runs with the policy, metric, and trace of the arguments.

    A daemon that already runs keeps its trace.
    """
    options = ["--exit-when-idle", str(IDLE_S)]
    if arguments.trace:
        options += ["--trace", str(Path(arguments.trace).absolute())]
    started = daemon.start_if_none(options)
    for_policy = arguments.policy is not None or arguments.metric is not None
    if not for_policy and (started or not arguments.trace):
        return
    # Imported here: these imports take longer than the rest of this command
    from hocket.bus import Bus
    from hocket.verbs.policy import change_policy

    with Bus.connect() as bus:
        if arguments.trace and not started:
            tell(f"a daemon runs already, its trace is {bus.list().daemon['trace']}; --trace has no effect")
        if for_policy:
            change_policy(bus, arguments.policy or "", arguments.metric or "")


def _become(program: str, command: list[str], environment: dict[str, str]) -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores SIGPIPE, and the launcher would inherit that
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execve(program, command, environment)
    except OSError as error:
        raise mpi.ProgramNotFoundError(f"{program}: cannot be started: {error.strerror}") from error
