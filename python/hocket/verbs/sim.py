"""hocket sim: simulates applications, compares policies, and makes scenarios from logs of jobs."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from hocket.comparison import Run, text_table
from hocket.errors import HocketError, UsageError
from hocket.sim import swf
from hocket.sim.figures import Series, forwarded_lines, rows, summary, summary_table
from hocket.sim.runs import Wanted, simulate
from hocket.sim.scenario import Draw, scenario_of
from hocket.verbs import help_text, print_json, tell

EXAMPLES = """
examples:
  hocket sim scenarios/use-case-c.toml                         # under the policy that the scenario names
  hocket sim scenarios/use-case-c.toml --compare --seeds 20    # none, fcfs and phase-shift side by side
  hocket sim machine.toml --policy fcfs --policy fcfs+predictive --report sim-report
  hocket sim machine.toml --policy-file mine.py                # a policy of your own (docs/write-a-policy.md)
  hocket sim import-swf ANL-Intrepid-2009-1.swf -o intrepid.toml --jobs 500

I = I/O time together, uncoordinated / alone; C = (I/O time + time waited) under a policy / alone. With several seeds
all figures are medians, in brackets a 95 % interval of the median (of fewer than 6 seeds: least and greatest). Changes
are against the first policy, seed by seed. worst slowdown: that of the application that lost most.
"""
COMPARED = ("none", "fcfs", "phase-shift")
MOST_SEEDS = 1000
SHOWN = 12  # number of applications in the table
IN_REPORT = 40  # number of applications whose lanes can be told apart
JOBS, IO_RATIO, PERIOD_S, BANDWIDTH = 200, 0.05, 600.0, 60e9


def add(parsers: argparse._SubParsersAction) -> None:
    usage = (
        "hocket sim SCENARIO.toml [--policy TEXT]… [--compare] [--seeds N] [--report DIR] [--json]\n"
        "       hocket sim import-swf LOG -o SCENARIO.toml [--jobs N] [--cores N] [--seed N] [--io-ratio X] …"
    )
    words = help_text("simulate applications under the policies; make a scenario from a log of jobs", EXAMPLES)
    parser = parsers.add_parser("sim", usage=usage, **words)
    parser.add_argument("scenario", metavar="SCENARIO.toml", help="or import-swf")
    parser.add_argument("log", nargs="?", metavar="LOG", help="with import-swf: a log in Standard Workload Format")
    parser.add_argument(
        "--policy", action="append", default=[], metavar="TEXT", help="names of 'hocket policy ls', joined by '+'"
    )
    parser.add_argument("--compare", action="store_true", help=f"compare {', '.join(COMPARED)}, and those of --policy")
    parser.add_argument("--policy-file", metavar="FILE.py", help="a policy of your own")
    parser.add_argument("--seeds", type=int, metavar="N", help="run with the seeds 1 to N (default: the scenario's)")
    parser.add_argument("--report", metavar="DIR", help="write the report of the (first seed's) runs")
    parser.add_argument("--json", action="store_true", help="as JSON: every figure of every run")
    making = parser.add_argument_group("import-swf")
    making.add_argument("-o", "--output", metavar="SCENARIO.toml", help="the scenario that is written")
    making.add_argument("--jobs", type=int, default=JOBS, metavar="N", help=f"the first N (default: {JOBS}; 0: all)")
    making.add_argument(
        "--cores", type=int, default=0, metavar="N", help="cores of the machine (default: the log's MaxProcs)"
    )
    making.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the drawn values (default: 1)")
    making.add_argument("--io-ratio", type=float, default=IO_RATIO, metavar="X", help=f"E(µ) (default: {IO_RATIO})")
    making.add_argument(
        "--period", type=float, default=PERIOD_S, metavar="S", help=f"median I/O period (default: {PERIOD_S:g})"
    )
    making.add_argument(
        "--bandwidth",
        type=float,
        default=BANDWIDTH,
        metavar="B",
        help=f"bandwidth of the target, bytes/s ({BANDWIDTH:g})",
    )
    making.add_argument(
        "--malleable", type=float, default=0.0, metavar="X", help="share of the jobs that can be resized (default: 0)"
    )
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.scenario == "import-swf":
        return _import(arguments)
    if arguments.log is not None:
        raise UsageError(f"'{arguments.log}': one scenario at a time; see 'hocket sim --help'")
    if arguments.output:
        raise UsageError("-o belongs to import-swf; a report goes to --report DIR")
    if not Path(arguments.scenario).is_file():
        raise HocketError(f"no scenario {arguments.scenario}")
    if arguments.seeds is not None and not 1 <= arguments.seeds <= MOST_SEEDS:
        raise UsageError(f"--seeds {arguments.seeds}: give 1 to {MOST_SEEDS}")
    keep = tempfile.TemporaryDirectory(prefix="hocket-sim-") if arguments.report else nullcontext("")
    with keep as traces:
        began = time.monotonic()
        series, wanted = _simulate(arguments, traces)
        took_s = time.monotonic() - began
        if arguments.json:
            print_json(as_json(series))
        else:
            print(text_of(series, took_s))
        if arguments.report:
            page = _report(series, wanted, arguments.report)
            tell(f"report: {page}")
    return 0


def _simulate(arguments: argparse.Namespace, traces: str) -> tuple[list[Series], list[list[Wanted]]]:
    policies = list(dict.fromkeys([*(COMPARED if arguments.compare else ()), *arguments.policy])) or [""]
    seeds: list[int | None] = list(range(1, arguments.seeds + 1)) if arguments.seeds else [None]
    file = Path(arguments.policy_file) if arguments.policy_file else None
    wanted = [
        [
            Wanted(
                Path(arguments.scenario),
                policy,
                seed,
                file,
                Path(traces) / f"{number}.jsonl" if traces and seed == seeds[0] else None,
            )
            for seed in seeds
        ]
        for number, policy in enumerate(policies)
    ]
    done = simulate([one for runs in wanted for one in runs])
    per = len(seeds)
    parts = [done[at : at + per] for at in range(0, len(done), per)]
    return [Series(str(part[0]["policy"]), part) for part in parts], wanted


def text_of(series: Sequence[Series], took_s: float) -> str:
    """Return the table of the applications, and that of the policies."""
    first = series[0].runs[0]
    applications, runs = len(first["applications"]), sum(len(one.runs) for one in series)
    events = sum(run["events"] for one in series for run in one.runs)
    seeds = f"{len(series[0].runs)} seeds" if len(series[0].runs) > 1 else f"seed {first['seed']}"
    lines = [
        f"{first['scenario']}: {applications} application{'' if applications == 1 else 's'}, {seeds}, {runs} "
        f"run{'' if runs == 1 else 's'}, {events} events, simulated in {took_s:.2f} s",
        "",
        text_table(rows(series, SHOWN)),
    ]
    if applications > SHOWN:
        lines.append(f"the {SHOWN} applications with most I/O; --json has all {applications}")
    return "\n".join([*lines, "", summary_table(series), *forwarded_lines(series)])


def as_json(series: Sequence[Series]) -> dict[str, Any]:
    return {
        "scenario": series[0].runs[0]["scenario"],
        "summary": summary(series),
        "runs": [run for one in series for run in one.runs],
    }


def _report(series: Sequence[Series], wanted: Sequence[Sequence[Wanted]], out: str) -> Path:
    from hocket.report import write_report

    first = series[0].runs[0]
    found = [Run(one.policy, [str(runs[0].trace)], one.role) for one, runs in zip(series, wanted, strict=True)]
    alone = {one["application"]: one["io_alone_s"] for one in first["applications"]}
    targets = ", ".join(target["target"] for target in first["targets"])
    notes = [f"simulated, seed {first['seed']}; target{'' if len(first['targets']) == 1 else 's'} {targets}"]
    return write_report(found, out, str(first["scenario"]), notes, alone, most_lanes=IN_REPORT).html


# ---- import-swf ---------------------------------------------------------------------------------------------------


def _import(arguments: argparse.Namespace) -> int:
    _check(arguments)
    log = swf.read_log(Path(arguments.log))
    cores = arguments.cores or log.processors or swf.most_cores(log.jobs)
    jobs = swf.chosen(log, arguments.jobs, cores)
    if not jobs:
        raise HocketError(f"{log.path}: no job needs {cores} cores or fewer; give more with --cores")
    draw = Draw(cores, arguments.seed, arguments.io_ratio, arguments.period, arguments.bandwidth, arguments.malleable)
    out = Path(arguments.output)
    try:
        out.write_text(scenario_of(jobs, draw, out.stem, log.path.name), encoding="utf-8")
    except OSError as error:
        raise HocketError(f"cannot write {out}: {error.strerror}; choose another with -o") from error
    of_running = swf.running(jobs)
    mean = sum(number * share for number, share in of_running.items())
    fitting = sum(job.processes <= cores for job in log.jobs)
    print(f"{out}: {len(jobs)} of {len(log.jobs)} jobs of {log.path.name}, {cores} cores, {mean:.1f} jobs run at once")
    if log.never_ran or fitting < len(log.jobs):
        print(f"left out: {log.never_ran} that never ran, {len(log.jobs) - fitting} that need more than {cores} cores")
    for line in draw.about():
        print(f"  {line}")
    print(_probabilities(swf.probability_of_io(of_running, draw.io_ratio), draw, out))
    return 0


def _probabilities(formula: float, draw: Draw, scenario: Path) -> str:
    """Return the probability by CALCioM's formula beside that of an uncoordinated simulation of the scenario."""
    lines = [
        f"P(another is doing I/O) = 1 - Σ P(X = n) (1 - E(µ))^n, E(µ) = {draw.io_ratio:g} (CALCioM, section II-B):"
    ]
    lines.append(f"  by the formula      {formula:6.1%}")
    try:
        (result,) = simulate([Wanted(scenario, "none")])
        busy_s = sum(target["busy_s"] for target in result["targets"])
        lines.append(f"  simulated           {busy_s / result['simulated_s']:6.1%}   (uncoordinated)")
    except HocketError as error:
        lines.append(f"  simulated           not known: {error}")
    lines.append("  the paper's figure    64 %   (ANL-Intrepid-2009-1, 8 months, E(µ) = 5 %)")
    return "\n".join(lines)


def _check(arguments: argparse.Namespace) -> None:
    if not arguments.log:
        raise UsageError("import-swf: no log given; write 'hocket sim import-swf LOG -o SCENARIO.toml'")
    if not arguments.output:
        raise UsageError("import-swf: give -o SCENARIO.toml, the file for the scenario")
    for name, value, least, most in (
        ("--jobs", arguments.jobs, 0, 10**6),
        ("--cores", arguments.cores, 0, 10**9),
        ("--io-ratio", arguments.io_ratio, 0.0001, 0.9),
        ("--period", arguments.period, 10, 1e7),
        ("--bandwidth", arguments.bandwidth, 1, 1e16),
        ("--malleable", arguments.malleable, 0, 1),
    ):
        if not least <= value <= most:
            raise UsageError(f"{name} {value:g}: give a value from {least:g} to {most:g}")
