"""hocket workload: runs a queue of jobs that share cores, or I/O servers, under several policies."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from hocket.arbitration.allocate import Rules
from hocket.errors import UsageError
from hocket.verbs import help_text, print_json, tell
from hocket.workload import core_text, text
from hocket.workload.core_figures import Case, CoreQueue
from hocket.workload.core_runs import MALLEABLE, MODES, POLICY, RIGID, run_on_cores
from hocket.workload.generate import drawn
from hocket.workload.jobs import MOST_JOBS, MOST_SERVERS, Workload, read_workload, text_of, with_curves
from hocket.workload.prediction import UnpredictableError, giving_out, predict
from hocket.workload.results import JobRun, PlannedRun, QueueRun, QueueRuns, forwarding_settings, plan
from hocket.workload.server_runs import run_queue

# `oracle` gives out more servers than there are: it is a bound, and no policy of hocketd.
POLICIES = ("mckp", "static", "size", "process", "one", "zero")
Progress = Callable[[int, int], None]  # numbers of running and ended jobs
RunOnce = Callable[[PlannedRun, Progress, Path], list[JobRun]]  # with the file for the daemon's trace
EXAMPLES = """
examples:
  hocket workload jobs.toml --both --dir /scratch/x --repeat 5 --plot jobs.png    # jobs share cores: rigid, malleable
  hocket workload jobs.toml --both --policy fair,speedup --simulate
  hocket workload queue.toml --curves curves/curves.toml --fifo --arbitrate mckp,static --dir /scratch/x \\
      --repeat 5 --output runs                                       # I/O servers; resumes runs, if interrupted
  hocket workload queue.toml --curves curves/curves.toml --fifo --arbitrate mckp,static --predict
  hocket workload queue.toml --curves curves/curves.toml --generate 20 --seed 3 > random.toml

The file:
  queue = ["cg", "app", "cg"]      # names of jobs; default: each job of the file in order, `repeat` times
  time_limit_s = 600               # of a job
  [system]
  cores = 4                        # jobs start in order, each when enough of them are free
  [coordinator]                    # settings of hocketd
  policy = "fair"
  [[job]]
  name = "cg"
  emulate = "cg.toml"              # a description ('hocket emulate'), beside this file
  processes = 2                    # of a rigid run
  malleable = true
  processes_min = 1                # at the start of a malleable run; default: processes
  processes_max = 4                # default: all cores
  arrival_s = 10                   # when it joins the queue (without 'queue')
  repeat = 2                       # this many of them
  [[job]]
  name = "app"
  processes = 4
  command = ["mpiexec", "-n", "{processes}", "./app", "{dir}"]  # {dir}: a directory of its own; {apps}: of
                                   # hocket's MPI programs; {mpiexec}: MPICH's launcher

For --arbitrate it is one of 'hocket arbitrate' with more keys:
  servers = 12                     # I/O servers that are started
  limit = "60m"                    # bytes/s of each server; default: as fast as they can
  direct = false                   # true: a job may have no server; default: not with --fifo
  [system]
  nodes = 96                       # jobs start when enough of them are free
  servers = 12                     # for 'static'
  [[job]]
  name = "HACC"
  nodes = 8
  processes = 64                   # the processes of a node use the same server
  bandwidth_mb_s = { 1 = 60, 8 = 470 }       # or from --curves
  pattern = { layout = "own", request = "1m", total = "64m" }   # the keys of 'hocket explore', or a list: phases
                                   # or command or emulate, as above
  bytes = "1g"                     # of a command: what it reads and writes; default: what was forwarded

docs/workload.md says what is measured.
"""


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("run a queue of jobs that share cores, or I/O servers, under several policies", EXAMPLES)
    usage = (
        "hocket workload JOBS.toml [--rigid | --malleable | --both] (--dir DIR | --simulate) [options]\n"
        "       hocket workload JOBS.toml [--fifo] --arbitrate P,P,… (--dir DIR | --simulate | --predict) [options]"
    )
    parser = parsers.add_parser("workload", usage=usage, **words)
    parser.add_argument("jobs", type=Path, metavar="JOBS.toml", help="the jobs and their queue")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--rigid", dest="modes", action="store_const", const=(RIGID,), help="no job is resized")
    malleable_help = "malleable jobs grow and shrink (default, where the file has 'cores')"
    modes.add_argument("--malleable", dest="modes", action="store_const", const=(MALLEABLE,), help=malleable_help)
    modes.add_argument("--both", dest="modes", action="store_const", const=MODES, help="both, in random order")
    parser.add_argument("--policy", metavar="P,P,…", help=f"of hocketd; default: that of the file, else {POLICY}")
    parser.add_argument(
        "--arbitrate", metavar="P,P,…", help=f"share I/O servers by these: {', '.join(POLICIES)} (default: mckp)"
    )
    parser.add_argument("--fifo", action="store_true", help="with --arbitrate: start in order, as nodes are free")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="run the queue; the jobs' files are below DIR")
    parser.add_argument("--predict", action="store_true", help="run nothing, and show what the curves predict")
    parser.add_argument("--simulate", action="store_true", help="run the queue in the simulator")
    parser.add_argument("--curves", type=Path, metavar="FILE", help="bandwidths of the jobs, from 'hocket explore'")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="runs of each kind (default: 1)")
    parser.add_argument("--servers", type=int, metavar="N", help="instead of those of the file")
    parser.add_argument("--divide-evenly", action="store_true", help="servers of a job divide its nodes")
    loss_help = "under mckp, no job is given less than the rest of its bandwidth under static"
    parser.add_argument("--most-loss", type=float, metavar="PART", help=loss_help)
    parser.add_argument("--shared-server", action="store_true", help="mckp may let jobs share one server")
    parser.add_argument("--generate", type=int, metavar="N", help="print the file with a random queue of N of its jobs")
    parser.add_argument("--seed", type=int, default=1, help="of the random queue and of the order of runs (default: 1)")
    parser.add_argument("--output", type=Path, default=Path("workload"), metavar="DIR", help="default: workload")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="file for the picture")
    parser.set_defaults(verb=_workload)


def _workload(arguments: argparse.Namespace) -> int:
    """Return 0; 1 if a job failed."""
    workload = read_workload(arguments.jobs)
    if arguments.curves is not None:
        workload = with_curves(workload, arguments.curves)
    if arguments.servers is not None:
        _check("--servers", arguments.servers, MOST_SERVERS)
        content = workload.content | {"servers": arguments.servers}
        workload = replace(workload, servers=arguments.servers, content=content)
    if arguments.generate is not None:
        _check("--generate", arguments.generate, MOST_JOBS)
        print(text_of(drawn(workload, arguments.generate, arguments.seed)), end="")
        return 0
    _check("--repeat", arguments.repeat, 10_000)
    if _shares_cores(arguments, workload):
        return _on_cores(arguments, workload)
    policies = _policies(arguments.arbitrate if arguments.arbitrate is not None else "mckp")
    if not workload.servers:
        raise UsageError(f"{workload.path}: servers is missing; give the number of I/O servers, for --arbitrate")
    if arguments.predict + arguments.simulate + (arguments.dir is not None) != 1:
        raise UsageError("give one of --dir DIR, to run the queue, --simulate, and --predict")
    rules = _rules(arguments, workload)
    if arguments.predict or arguments.simulate:
        outcomes = _outcomes(arguments, workload, rules, policies, None)
        if arguments.simulate:
            outcomes = _simulated(arguments, workload, rules, outcomes)
        return _report(arguments, workload, outcomes)
    directory = _directory(arguments)
    runs = QueueRuns(arguments.output, workload, forwarding_settings(workload, arguments.fifo, rules))
    nodes = workload.system_nodes if arguments.fifo else None

    def once(run: PlannedRun, show: Progress, trace: Path) -> list[JobRun]:
        return run_queue(workload, nodes, directory, run.policy, rules, show, trace)

    _run(arguments, workload, runs, plan(policies, arguments.repeat, arguments.seed), once)
    return _report(arguments, workload, _outcomes(arguments, workload, rules, policies, runs))


def _shares_cores(arguments: argparse.Namespace, workload: Workload) -> bool:
    """Return whether jobs share cores, not I/O servers. Raises UsageError for options that mean nothing together."""
    shares = bool(arguments.modes) or (workload.cores is not None and arguments.arbitrate is None)
    if shares:
        told = "belongs to a queue that shares I/O servers; here jobs share cores"
        given = {"--arbitrate": arguments.arbitrate, "--fifo": arguments.fifo, "--predict": arguments.predict}
    else:
        told = "belongs to a queue that shares cores; --arbitrate has the policies for I/O servers"
        given = {"--policy": arguments.policy}
    meaningless = next((option for option, value in given.items() if value), None)
    if meaningless:
        raise UsageError(f"{meaningless} {told}")
    if shares and workload.cores is None:
        raise UsageError(f"{workload.path}: [system]: cores is missing; give the number of cores that jobs share")
    return shares


def _directory(arguments: argparse.Namespace) -> Path:
    if not arguments.dir.is_dir():
        raise UsageError(f"--dir {arguments.dir}: there is no such directory")
    return arguments.dir.resolve()


def _on_cores(arguments: argparse.Namespace, workload: Workload) -> int:
    """Run or simulate the queue on the cores of the file. Return 0; 1 if a job failed."""
    assert workload.cores is not None
    if arguments.simulate + (arguments.dir is not None) != 1:
        raise UsageError("give one of --dir DIR, to run the queue, and --simulate")
    modes = arguments.modes or ((MALLEABLE,) if any(one.limits for one in workload.jobs) else (RIGID,))
    words = arguments.policy or str(workload.coordinator.get("policy", POLICY))
    policies = _names(words, "--policy", "those that 'hocket policy ls' lists")
    planned = plan(policies, arguments.repeat, arguments.seed, modes)
    done: Sequence[QueueRun]
    if arguments.simulate:
        from hocket.workload.simulated_cores import simulate_on_cores

        done = simulate_on_cores(workload, planned)
    else:
        directory = _directory(arguments)
        runs = QueueRuns(arguments.output, workload, {"cores": workload.cores})

        def once(run: PlannedRun, show: Progress, trace: Path) -> list[JobRun]:
            return run_on_cores(workload, directory, run, show, trace)

        _run(arguments, workload, runs, planned, once)
        done = runs.runs

    def case(mode: str, policy: str) -> Case:
        runs = [one for one in done if (one.run.mode, one.run.policy) == (mode, policy)]
        return Case(mode, policy, runs, arguments.simulate)

    cases = [case(mode, policy) for policy in policies for mode in modes]
    return _report_cores(arguments, CoreQueue(workload.queue, workload.cores), cases)


def _report_cores(arguments: argparse.Namespace, queue: CoreQueue, cases: Sequence[Case]) -> int:
    if arguments.json:
        print_json(core_text.json_of(queue, cases))
    else:
        print(core_text.table_of(queue, cases))
    if arguments.plot:
        from hocket.workload.core_plot import write_plot  # imported here, as in _report

        write_plot(queue, cases, arguments.plot)
    return _ended(arguments, cases)


def _check(option: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise UsageError(f"{option} {value}: give 1 to {most}")


def _names(words: str, option: str, known: str) -> list[str]:
    names = list(dict.fromkeys(word for word in words.split(",") if word))
    if not names:
        raise UsageError(f"{option}: give at least one of {known}")
    return names


def _policies(words: str) -> list[str]:
    policies = _names(words, "--arbitrate", ", ".join(POLICIES))
    for one in policies:
        if one not in POLICIES:
            raise UsageError(f"--arbitrate: '{one}' is unknown; use {', '.join(POLICIES)}")
    return policies


def _rules(arguments: argparse.Namespace, workload: Workload) -> Rules:
    if arguments.most_loss is not None and not 0 <= arguments.most_loss <= 1:
        raise UsageError(f"--most-loss {arguments.most_loss} must be from 0 to 1; 0.2 means 20 %")
    direct = workload.direct if workload.direct is not None else not arguments.fifo
    return Rules(direct, arguments.divide_evenly, arguments.most_loss, arguments.shared_server)


def _run(
    arguments: argparse.Namespace, workload: Workload, runs: QueueRuns, planned: Sequence[PlannedRun], once: RunOnce
) -> None:
    """Make the runs that are missing, with a progress bar. Each is in the file before the next one begins."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    missing = runs.missing(planned)
    if not missing:
        return
    with Bar(console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=len(missing) * len(workload.queue))
        for at, run in enumerate(missing):
            kind = " ".join(filter(None, (run.mode, run.policy)))

            def show(running: int, ended: int, at: int = at, run: PlannedRun = run, kind: str = kind) -> None:
                told = f"{kind}, run {run.repetition + 1} of {arguments.repeat}: {running} jobs run"
                bar.update(task, description=told, completed=at * len(workload.queue) + ended)

            name = "-".join(filter(None, (run.mode, run.policy, str(run.repetition + 1))))
            runs.add(QueueRun(run, tuple(once(run, show, runs.path.parent / f"{name}.trace.jsonl"))))
            bar.update(task, completed=(at + 1) * len(workload.queue))


def _outcomes(
    arguments: argparse.Namespace, workload: Workload, rules: Rules, policies: Sequence[str], runs: QueueRuns | None
) -> list[text.Outcome]:
    bytes_of = runs.bytes_of(workload) if runs else _bytes_of(workload)
    nodes = workload.system_nodes if arguments.fifo else None
    found = []
    for policy in policies:
        prediction, why = None, ""
        try:
            prediction = predict(workload.queue, nodes, giving_out(workload, policy, rules), bytes_of)
        except UnpredictableError as error:
            why = str(error)
        found.append(text.Outcome(policy, runs.of(policy) if runs else [], prediction, why))
    return found


def _bytes_of(workload: Workload) -> dict[str, int]:
    return {one.name: one.bytes for one in workload.jobs if one.bytes}


def _simulated(
    arguments: argparse.Namespace, workload: Workload, rules: Rules, outcomes: Sequence[text.Outcome]
) -> list[text.Outcome]:
    from hocket.workload.simulated import simulate_queue

    policies = [one.policy for one in outcomes]
    runs = simulate_queue(workload, arguments.fifo, rules, policies, _bytes_of(workload))
    return [replace(one, runs=[runs[one.policy]], simulated=True) for one in outcomes]


def _report(arguments: argparse.Namespace, workload: Workload, outcomes: Sequence[text.Outcome]) -> int:
    if arguments.json:
        print_json(text.json_of(workload.queue, outcomes))
    else:
        print(text.table_of(workload.queue, outcomes))
    if arguments.plot:
        from hocket.workload.plot import write_plot  # imported here: matplotlib takes a second to load

        write_plot(workload.queue, outcomes, arguments.plot)
    return _ended(arguments, outcomes)


def _ended(arguments: argparse.Namespace, cases: Sequence[text.HasRuns]) -> int:
    if arguments.dir is not None:
        tell(f"runs and the daemon's traces are in {arguments.output}")
    return 1 if any(run.failed for one in cases for run in one.runs) else 0
