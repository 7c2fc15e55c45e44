"""hocket run: starts an MPI application so that it takes turns."""

from __future__ import annotations

import argparse
import atexit
import os
import re
import signal
import time
from pathlib import Path

from hocket import daemon, mpi, paths
from hocket.errors import HocketError, UsageError
from hocket.verbs import help_text, tell

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, as in daemon.py
if TYPE_CHECKING:
    from hocket.slurm_keeper import Keeper

EXAMPLES = """
examples:
  hocket run -- mpiexec -n 4 ./solver input.txt
  hocket run --name jacobi-a --policy fcfs -- mpiexec -n 4 ./jacobi
  hocket run --policy interfere -- mpirun -n 8 ./app   # only watch it: no application waits
  hocket run --malleable -n 4 -- mpiexec ./jacobi      # starts with 1 process, grows to 4; see 'hocket resize'

The ranks get libhocket, whichever MPI the launcher belongs to (MPICH, Intel MPI, Open MPI); a daemon is started
if none runs. Output and exit code are the program's own; messages of hocket go to stderr.
"""
ANSWER_S = 5.0  # time limit of an answer of hocketd
CORES_WAIT_S = 60.0  # time limit of the wait for cores that others return
LONGEST_WAIT_S = 3600.0
IDLE_S = 30  # idle time in seconds after which a daemon that was started for an application ends


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("start an MPI application so that it takes turns", EXAMPLES)
    parser = parsers.add_parser("run", usage="hocket run [options] -- mpiexec -n 4 ./app [arguments]", **words)
    parser.add_argument("--name", help="the application's name in listings (default: its program's name)")
    parser.add_argument("--policy", help="the daemon's policies, e.g. fcfs+io-aware; 'hocket policy ls' lists them")
    parser.add_argument("--metric", help="what the daemon's policy minimises; see 'hocket policy --help'")
    parser.add_argument(
        "--coordinate",
        action=argparse.BooleanOptionalAction,
        help="request a grant before each access (the default), or be watched only: request nothing, never wait",
    )
    parser.add_argument(
        "--io",
        choices=("mpi", "hocket"),
        help="what performs blocking collective file accesses: the MPI library (the default), or hocket, where it can",
    )
    parser.add_argument(
        "--malleable", action="store_true", help="start a malleable program with one process, let it grow to -n N"
    )
    parser.add_argument(
        "-n", type=int, dest="processes", metavar="N", help="with --malleable: number of computing processes"
    )
    parser.add_argument(
        "--slurm-nodes",
        metavar="MIN[:MAX]",
        help="with --malleable, in a Slurm job: give nodes that the application has left back to Slurm, but keep MIN; "
        "for resizes beyond the job's nodes ask for more, up to MAX",
    )
    parser.add_argument(
        "--wait-for-cores",
        type=float,
        metavar="S",
        help="longest wait in seconds for cores that expanded applications return before this one starts; 0: none "
        f"(default: {CORES_WAIT_S:g})",
    )
    parser.add_argument("--trace", metavar="FILE", help="file for the daemon's trace, if this run starts the daemon")
    parser.add_argument("--mpi", choices=(mpi.MPICH, mpi.OPENMPI), help="the MPI, if the launcher does not show it")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="command", help="the launcher and its arguments")
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    """Replace this process by the launcher, whose output, signals, and exit code the caller then sees.

    If the launcher's exit code says nothing of the application, this process stays (supervise.py).
    """
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        raise UsageError("no command given; write 'hocket run -- mpiexec -n 4 ./app'")
    if arguments.name and not arguments.name.isprintable():
        raise UsageError(f"--name {arguments.name!r}: a name has no line breaks and no control characters")
    if not 0 <= _cores_wait_s(arguments) <= LONGEST_WAIT_S:
        raise UsageError(f"--wait-for-cores {arguments.wait_for_cores:g}: give 0 to {LONGEST_WAIT_S:g} seconds")
    job = mpi.examine(command, arguments.mpi)
    environment = dict(os.environ)
    if arguments.malleable:
        job, settings = mpi.start_small(job, _processes(arguments), environment)
        environment |= settings
        command = job.command
    elif arguments.processes is not None:
        raise UsageError("-n belongs to --malleable; without it, give -n to the launcher: hocket run -- mpiexec -n 4 …")
    elif arguments.slurm_nodes is not None:
        raise UsageError("--slurm-nodes belongs to --malleable: other programs do not change their nodes")
    for warning in job.warnings:
        tell(warning)
    keeper = _keeper(arguments, job, environment) if arguments.malleable else None
    try:
        how = mpi.preload(job, environment)
        if job.launcher:
            from hocket import every_node  # late, as in _have_daemon

            every_node.check(job, environment)
        others_may_run = not _have_daemon(arguments)
        command = how.command
        environment |= how.environment | _job_environment(arguments, job)
        command = mpi.with_exports(command, environment)
        if others_may_run:
            _await_cores(arguments, job, environment)
        if keeper is not None:
            environment |= keeper.environment()
            keeper.start(environment["HOCKET_JOB"])
    except UsageError:
        raise
    except HocketError as error:
        tell(f"{error}; the application runs uncoordinated")
    try:
        hides_failures = job.launcher and job.mpi == mpi.MPICH and environment.get("HOCKET_SPAWN") == "baseline"
        if hides_failures or keeper is not None:
            from hocket.supervise import supervise

            at_end = keeper.close if keeper is not None else None
            return supervise(str(job.program), command, environment, at_end, hides_failures=bool(hides_failures))
        _become(str(job.program), command, environment)
    except OSError as error:
        raise mpi.ProgramNotFoundError(f"{job.program}: cannot be started: {error.strerror}") from error
    return 0  # never reached


def _keeper(arguments: argparse.Namespace, job: mpi.Job, environment: dict[str, str]) -> Keeper | None:
    """Return the keeper of the Slurm job around this process; None if there is none, or Slurm does not describe it."""
    limits = _node_limits(arguments.slurm_nodes) if arguments.slurm_nodes is not None else (0, 0)
    number = paths.slurm_job()
    if not number:
        if any(limits):
            tell("--slurm-nodes has no effect outside of a Slurm job")
        return None
    from hocket import slurm, slurm_keeper  # late, as in _have_daemon

    if job.mpi == mpi.MPICH:
        environment.setdefault("SLURM_OVERLAP", "1")  # else a node's first step keeps all of its cores
    if any(limits) and (reason := slurm.why_fixed(job, environment)):
        tell(f"--slurm-nodes: job {number} keeps all its nodes: {reason}")
        limits = (0, 0)
    try:
        keeper = slurm_keeper.Keeper(number, job, limits, tell)
        atexit.register(keeper.close)  # also where the launcher cannot be started
        return keeper
    except (HocketError, OSError) as error:
        if any(limits):
            tell(f"--slurm-nodes: job {number} keeps all its nodes: {error}")
        return None


def _node_limits(text: str) -> tuple[int, int]:
    """Return the fewest and most nodes of MIN or MIN:MAX; 0: it gets no more. Raises UsageError."""
    match = re.fullmatch(r"([1-9][0-9]{0,5})(?::([1-9][0-9]{0,5}))?", text)
    if match is None or (match[2] and int(match[2]) < int(match[1])):
        raise UsageError(f"--slurm-nodes '{text}': give the fewest nodes, at least 1, and the most: MIN or MIN:MAX")
    return int(match[1]), int(match[2] or 0)


def _processes(arguments: argparse.Namespace) -> int:
    if arguments.processes is None or arguments.processes < 1:
        given = "is missing" if arguments.processes is None else f"{arguments.processes}"
        raise UsageError(f"--malleable: -n {given}; give the number of computing processes: -n N, at least 1")
    return arguments.processes


def _job_environment(arguments: argparse.Namespace, job: mpi.Job) -> dict[str, str]:
    unique = f"{os.uname().nodename}-{os.getpid()}-{time.time_ns()}"
    name = arguments.name or re.sub(r"[^\w.+-]", "_", job.name)
    told = {"HOCKET_JOB": unique, "HOCKET_NAME": name, "HOCKET_SOCKET": str(paths.socket_path())}
    told |= paths.target_names()
    if arguments.coordinate is not None:
        told["HOCKET_COORDINATE"] = "1" if arguments.coordinate else "0"
    if arguments.io is not None:
        told["HOCKET_IO"] = arguments.io
    return told


def _have_daemon(arguments: argparse.Namespace) -> bool:
    """Ensure that a daemon runs with the policy, metric, and trace of the arguments.

    A daemon that already runs keeps its trace. Return True if this call has started the daemon.
    """
    options = ["--exit-when-idle", str(IDLE_S)]
    if arguments.trace:
        options += ["--trace", str(Path(arguments.trace).absolute())]
    started = daemon.start_if_none(options)
    if started and paths.is_of_slurm_job():
        tell(
            f"job {paths.slurm_job()} has a hocketd of its own, which ends with the job: its programs take turns with "
            "each other, not with those of other jobs"
        )
    for_policy = arguments.policy is not None or arguments.metric is not None
    if not for_policy and (started or not arguments.trace):
        return started
    # Imported here: these imports take longer than the rest of this command
    from hocket.bus import Bus
    from hocket.verbs.policy import change_policy

    with Bus.connect() as bus:
        if arguments.trace and not started:
            tell(f"a daemon runs already, its trace is {bus.list().daemon['trace']}; --trace has no effect")
        if for_policy:
            try:
                change_policy(bus, arguments.policy or "", arguments.metric or "")
            except UsageError as error:
                if "is for operators" not in str(error):
                    raise
                tell(f"{error}; the program runs under the policy of this daemon")
    return started


def _cores_wait_s(arguments: argparse.Namespace) -> float:
    return CORES_WAIT_S if arguments.wait_for_cores is None else arguments.wait_for_cores


def _await_cores(arguments: argparse.Namespace, job: mpi.Job, environment: dict[str, str]) -> None:
    """Ask hocketd for cores, and wait while expanded applications return theirs.

    hocketd answers at once if no core is missing or none comes back. Ctrl-C ends the wait, and nothing is started.
    """
    processes = arguments.processes or mpi.processes_of(job.command)
    limit_s = _cores_wait_s(arguments)
    if processes is None or limit_s == 0:
        return
    from hocket.bus import Bus, BusError  # late, as in _have_daemon

    request = {"job": environment["HOCKET_JOB"], "application_asked": environment["HOCKET_NAME"]}
    try:
        with Bus.connect() as bus:
            bus.send("ASK_CORES", **request, processes=processes, longest_ns=int(limit_s * 1e9))
            answer = bus.answer(ANSWER_S)
            if answer is not None and answer.get("wait", False):
                tell(f"waiting for {answer['missing']} cores that others return, at most {limit_s:g} s")
                answer = bus.answer(limit_s + ANSWER_S)
                if answer is not None:
                    left = f"; {answer['missing']} are still missing" if answer["missing"] else ""
                    tell(f"waited {answer['waited_ns'] / 1e9:.2f} s for cores{left}")
            if answer is None:
                tell("hocketd did not say whether cores are free; starting without an answer")
    except BusError as error:
        # libhocket says the same when it needs hocketd, so only those are told here who have asked for the wait.
        if arguments.wait_for_cores is not None:
            tell(f"{error}; starting without asking for cores")


def _become(program: str, command: list[str], environment: dict[str, str]) -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores SIGPIPE, and the launcher would inherit that
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.execve(program, command, environment)
