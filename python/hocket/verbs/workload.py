"""hocket workload: runs a queue of jobs that share I/O servers, under several policies."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hocket.arbitration.allocate import Rules
from hocket.errors import UsageError
from hocket.verbs import help_text, print_json, tell
from hocket.workload import text
from hocket.workload.generate import drawn
from hocket.workload.jobs import MOST_JOBS, MOST_SERVERS, Workload, read_workload, text_of, with_curves
from hocket.workload.prediction import UnpredictableError, giving_out, predict
from hocket.workload.results import PlannedRun, QueueRun, QueueRuns, plan
from hocket.workload.runner import run_queue

# `oracle` gives out more servers than there are: it is a bound, and no policy of hocketd.
POLICIES = ("mckp", "static", "size", "process", "one", "zero")
EXAMPLES = """
examples:
  hocket explore jobs.toml --dir /scratch/x --output curves          # the bandwidth of each job, alone
  hocket workload jobs.toml --curves curves/curves.toml --fifo --arbitrate mckp,static --predict
  hocket workload jobs.toml --curves curves/curves.toml --fifo --arbitrate mckp,static --dir /scratch/x \\
      --repeat 5 --output runs --plot queue.png                      # resumes runs, if they were interrupted
  hocket workload jobs.toml --curves curves/curves.toml --fifo --arbitrate mckp,static --simulate
  hocket workload jobs.toml --curves curves/curves.toml --generate 20 --seed 3 > random.toml

The file is one of 'hocket arbitrate' with more keys:
  servers = 12                     # I/O servers that are started
  limit = "60m"                    # bytes/s of each server; default: as fast as they can
  direct = false                   # true: a job may have no server; default: not with --fifo
  queue = ["HACC", "IOR", "HACC"]  # names of jobs; default: each job of the file in order, `repeat` times
  time_limit_s = 600               # of a job
  [system]
  nodes = 96                       # jobs start when enough of them are free
  servers = 12                     # for 'static'
  [[job]]
  name = "HACC"
  nodes = 8
  processes = 64                   # the processes of a node use the same server
  bandwidth_mb_s = { 1 = 60, 8 = 470 }       # or from --curves
  pattern = { layout = "own", request = "1m", total = "64m" }   # the keys of 'hocket explore', or a list: phases
  [[job]]
  name = "app"
  nodes = 16
  command = ["mpiexec", "-n", "{processes}", "./app", "{dir}"]  # {dir}: a directory of its own
  bytes = "1g"                     # what it reads and writes; default: what was forwarded
  arrival_s = 10                   # when it joins the queue (without 'queue')
  repeat = 2                       # this many of them

With --fifo jobs start in the order of the queue, and none overtakes the first; else each starts when it arrives.
Whenever a job starts or ends, hocketd gives out the servers anew by the policy. The bandwidth of a job is its bytes
over its run time; the aggregate bandwidth is the sum of those of all jobs (GekkoFWD, Equation 2). Predicted is what
follows from the curves and what 'hocket arbitrate' gives out.
"""


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("run a queue of jobs that share I/O servers, under several policies", EXAMPLES)
    usage = "hocket workload JOBS.toml [--fifo] [--arbitrate P,P,…] (--dir DIR | --simulate | --predict) [options]"
    parser = parsers.add_parser("workload", usage=usage, **words)
    parser.add_argument("jobs", type=Path, metavar="JOBS.toml", help="the jobs and their queue")
    parser.add_argument("--fifo", action="store_true", help="jobs start in the order of the queue, as nodes are free")
    parser.add_argument(
        "--arbitrate", default="mckp", metavar="P,P,…", help=f"of {', '.join(POLICIES)} (default: mckp)"
    )
    parser.add_argument("--dir", type=Path, metavar="DIR", help="run the queue; the jobs' files are below DIR")
    parser.add_argument("--predict", action="store_true", help="run nothing, and show what the curves predict")
    parser.add_argument("--simulate", action="store_true", help="run the queue in the simulator")
    parser.add_argument("--curves", type=Path, metavar="FILE", help="bandwidths of the jobs, from 'hocket explore'")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="runs under each policy (default: 1)")
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
    policies = _policies(arguments.arbitrate)
    _check("--repeat", arguments.repeat, 10_000)
    if arguments.predict + arguments.simulate + (arguments.dir is not None) != 1:
        raise UsageError("give one of --dir DIR, to run the queue, --simulate, and --predict")
    rules = _rules(arguments, workload)
    if arguments.predict or arguments.simulate:
        outcomes = _outcomes(arguments, workload, rules, policies, None)
        if arguments.simulate:
            outcomes = _simulated(arguments, workload, rules, outcomes)
        return _report(arguments, workload, outcomes)
    if not arguments.dir.is_dir():
        raise UsageError(f"--dir {arguments.dir}: there is no such directory")
    runs = QueueRuns(arguments.output, workload, arguments.fifo, rules)
    _run(arguments, workload, rules, runs, plan(policies, arguments.repeat, arguments.seed))
    return _report(arguments, workload, _outcomes(arguments, workload, rules, policies, runs))


def _check(option: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise UsageError(f"{option} {value}: give 1 to {most}")


def _policies(words: str) -> list[str]:
    policies = list(dict.fromkeys(word for word in words.split(",") if word))
    for one in policies:
        if one not in POLICIES:
            raise UsageError(f"--arbitrate: '{one}' is unknown; use {', '.join(POLICIES)}")
    if not policies:
        raise UsageError(f"--arbitrate: give at least one of {', '.join(POLICIES)}")
    return policies


def _rules(arguments: argparse.Namespace, workload: Workload) -> Rules:
    if arguments.most_loss is not None and not 0 <= arguments.most_loss <= 1:
        raise UsageError(f"--most-loss {arguments.most_loss} must be from 0 to 1; 0.2 means 20 %")
    direct = workload.direct if workload.direct is not None else not arguments.fifo
    return Rules(direct, arguments.divide_evenly, arguments.most_loss, arguments.shared_server)


def _run(
    arguments: argparse.Namespace, workload: Workload, rules: Rules, runs: QueueRuns, planned: Sequence[PlannedRun]
) -> None:
    """Make the runs that are missing, with a progress bar. Each is in the file before the next one begins."""
    from rich.console import Console
    from rich.progress import Progress

    missing = runs.missing(planned)
    if not missing:
        return
    directory = arguments.dir.resolve()
    nodes = workload.system_nodes if arguments.fifo else None
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=len(missing) * len(workload.queue))
        for at, run in enumerate(missing):

            def show(running: int, ended: int, at: int = at, run: PlannedRun = run) -> None:
                told = f"{run.policy}, run {run.repetition + 1} of {arguments.repeat}: {running} jobs run"
                progress.update(task, description=told, completed=at * len(workload.queue) + ended)

            trace = runs.path.parent / f"{run.policy}-{run.repetition + 1}.trace.jsonl"
            jobs = run_queue(workload, nodes, directory, run.policy, rules, show, trace)
            runs.add(QueueRun(run, tuple(jobs)))
            progress.update(task, completed=(at + 1) * len(workload.queue))


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
    if arguments.dir is not None:
        tell(f"runs and the daemon's traces are in {arguments.output}")
    return 1 if any(run.failed for one in outcomes for run in one.runs) else 0
