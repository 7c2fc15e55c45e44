"""All methods of resizing on CG with a gigabyte of data, beside bare MPI calls. It takes hours, and can be interrupted.

    bench/reconfigure_cg.py --plan              # what is left, and how long it takes
    bench/reconfigure_cg.py                     # goes on from where it was
    bench/reconfigure_cg.py --bytes 64e6 --cells 1:2,2:1 --first-only --repetitions 2 --output build/small

CG iterates without sleeping, with plain sums, and is resized after half of its iterations. The first part runs all
methods on four cells. The second runs the best six of them and both Baselines on all cells. With --emulated, the
emulation of CG, which is captured first, makes the same runs. The output directory has record.jsonl (one line a run; no
run is made twice), results.json, results.md and winners.png, and the same of the emulation. The exit code is 1 if a run
failed, or if some are left.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from hocket import paths
from hocket.errors import HocketError
from hocket.process_group import run_limited
from hocket.reconfigure.methods import choose
from hocket.reconfigure.results import Planned, Results
from hocket.reconfigure.runs import (
    Outcome,
    Program,
    Runner,
    environment,
    installed,
    last_line,
    launcher,
    summary_of,
)
from hocket.reconfigure.statistics import Pair
from reconfigure_cg_emulation import Emulation, forget, prepare
from reconfigure_cg_plan import (
    BASELINES,
    BEST,
    CELLS,
    CONSTANT_SHARE,
    METHODS,
    REACH,
    REFERENCES,
    SIZES,
    Job,
    Problem,
    best_methods,
    duration,
    jobs_of,
    points_of,
    seconds_left,
)
from reconfigure_cg_record import Record, Run
from reconfigure_cg_report import write_report

REPO = Path(__file__).resolve().parent.parent
BARE = REPO / "build" / "release" / "bench" / "bare_resize-mpich"
BYTES, ITERATIONS, REPETITIONS = 1e9, 60, 9
RUN_LIMIT_S, RESIZE_LIMIT_S = 600, 200
# MPICH's usual algorithm for MPI_Alltoallv over an intercommunicator ends most runs of 4 → 2: "Message truncated".
BARE_SETTINGS = {"MPIR_CVAR_ALLTOALLV_INTER_ALGORITHM": "nb"}
SAME = 1e-6  # relative difference of two right residuals: plain sums depend on the processes


@dataclass(frozen=True)
class Wanted:
    """The campaign as it was asked for."""

    cells: list[Pair]
    sizes: list[int]  # of the second part; [] for none
    methods: list[str]
    repetitions: int
    emulated: bool = False  # with the emulation beside CG


@dataclass(frozen=True)
class Machine:
    """How runs are made: by the programs that are installed, or by stand-ins of a test."""

    runner: Runner
    program: Program
    problem: Problem
    bare: Path
    resize_at: int
    emulation: Emulation | None = None

    def run(self, job: Job) -> Run:
        began = time.monotonic()
        if job.method in REFERENCES:
            outcome, spawn_s, data_s = self._reference(job)
            return Run(job, time.monotonic() - began, outcome, spawn_s, data_s)
        (method,) = choose([job.method])
        program = self.emulation.fresh() if job.emulated and self.emulation else self.program
        outcome = self.runner.run(program, job.sources, job.targets, method, self.resize_at)
        return Run(job, time.monotonic() - began, outcome)

    def _reference(self, job: Job) -> tuple[Outcome, float, float]:
        words = [job.method.split("/")[1], job.sources, job.targets, self.problem.bytes]
        command = [*launcher(job.sources), str(self.bare), *map(str, words)]
        code, out, err = run_limited(command, environment() | BARE_SETTINGS, RUN_LIMIT_S)
        if code != 0:
            return Outcome(f"exit code {code}: {last_line(err)}"), 0.0, 0.0
        spawn_s, data_s = map(float, last_line(out).split())
        return Outcome(""), spawn_s, data_s


def planned(wanted: Wanted, runs: Sequence[Run], results_of) -> tuple[list[Job], list[Job]]:
    """Return the jobs of the first part, and of the second if CG has made its runs of the first, else none."""
    first = jobs_of(wanted.cells, wanted.methods, wanted.repetitions, wanted.emulated)
    of_cg = {job for job in first if not job.emulated}
    if not wanted.sizes or not {run.job for run in runs}.issuperset(of_cg):
        return first, []
    others = [(a, b) for a in wanted.sizes for b in wanted.sizes if a != b and (a, b) not in wanted.cells]
    of_first = [run for run in runs if run.job in of_cg]
    methods = [*best_methods(results_of(of_first), wanted.cells), *BASELINES]
    return first, jobs_of(others, methods, wanted.repetitions, wanted.emulated)


def results_of(runs: Sequence[Run], about: dict[str, object], emulated: bool = False) -> Results:
    """Return the statistics of the runs that are not references: of CG, or of its emulation."""
    done = [
        (Planned(*run.job.pair, choose([run.job.method])[0], run.job.repeat), run.outcome)
        for run in runs
        if run.job.method not in REFERENCES and run.job.emulated == emulated
    ]
    sizes = sorted({size for run, _ in done for size in run.pair})
    names = {run.method.name for run, _ in done}
    methods = [method for method in choose([*METHODS, *sorted(names - {*METHODS})]) if method.name in names]
    return Results(sizes, methods, done, about, SAME)


def measure(wanted: Wanted, record: Record, run, results, limit: int | None) -> bool:
    """Make the runs that are left, at most `limit`. Return True if none is left."""
    made = 0
    while left := [job for part in planned(wanted, record.runs, results) for job in part if job not in record.done]:
        for at, job in enumerate(left, 1):
            if limit is not None and made >= limit:
                return False
            record.add(run(job))
            made += 1
            tell_progress(record.runs, left[at:])
    return True


def tell_progress(runs: Sequence[Run], left: Sequence[Job]) -> None:
    job, reason = runs[-1].job, runs[-1].outcome.reason
    left_s = seconds_left(left, {one.job: one.wall_s for one in runs})
    who = "emulated, " if job.emulated else ""
    what = f"{who}{job.sources} to {job.targets}, {job.method}, {runs[-1].wall_s:.1f} s"
    say(f"{len(left)} left, about {duration(left_s)}: {what}{', failed: ' + reason if reason else ''}")


def tell_plan(wanted: Wanted, record: Record, results) -> None:
    walls = {run.job: run.wall_s for run in record.runs}
    first, second = planned(wanted, record.runs, results)
    left = [job for job in (*first, *second) if job not in record.done]
    both = " of CG and of its emulation" if wanted.emulated else ""
    say(f"first part: {len(first)} runs{both} of {len(wanted.methods)} methods and {len(REFERENCES)} references")
    if wanted.sizes and not second:
        cells = len(wanted.sizes) * (len(wanted.sizes) - 1) - len(wanted.cells)
        methods = min(len(set(wanted.methods) - set(BASELINES)), BEST) + len(BASELINES)
        several = methods * (1 + wanted.emulated) + len(REFERENCES)
        say(f"second part: {cells * several * wanted.repetitions} runs, when the first is complete")
        left += [first[0]] * (cells * several * wanted.repetitions) if walls else []
    elif second:
        say(f"second part: {len(second)} runs")
    say(f"{len(record.done)} done; what is left takes about {duration(seconds_left(left, walls))}")


def say(text: str) -> None:
    print(f"bench: reconfigure-cg: {text}", file=sys.stderr, flush=True)


def build_id(bare: Path) -> str:
    parts = [installed("cg"), paths.hocketd(), paths.libhocket("mpich"), bare]
    if missing := [part for part in parts if not part.exists()]:
        raise HocketError(f"no {missing[0]}: is hocket built and installed? (HOCKET_PREFIX says where)")
    return sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()[:12]


def machine_id() -> str:
    return f"{len(os.sched_getaffinity(0))} cores, {platform.platform()}"


def problem_of(program: Program) -> Problem:
    """Let CG make the system, and return its size."""
    command = [*launcher(1), *program.command, "--iterations", "0"]
    code, out, err = run_limited(command, environment(), RUN_LIMIT_S)
    summary = summary_of(out) if code == 0 else None
    if summary is None:
        raise HocketError(f"{' '.join(program.command)} failed: {last_line(err)}")
    return Problem(summary["n"], summary["nonzeros"])


def program_of(arguments: argparse.Namespace) -> Program:
    if arguments.matrix:
        system = ["--matrix", str(arguments.matrix.absolute()), *(["--dominant"] if arguments.dominant else [])]
    else:
        system = ["--stencil", str(points_of(arguments.bytes)), "--reach", str(REACH)]
    count = str(arguments.iterations)
    steps = ["--sums", "plain", "--iterations", count, "--tolerance", "0", "--print-every", count]
    return Program("cg", [str(installed("cg")), *system, *steps])


def pairs_from(text: str) -> list[Pair]:
    pairs = [tuple(map(int, word.split(":"))) for word in text.split(",")]
    if any(len(pair) != 2 or min(pair) < 1 or pair[0] == pair[1] for pair in pairs):
        raise ValueError(text)
    return pairs


def numbers_from(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/reconfigure_cg.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cells", type=pairs_from, default=list(CELLS), help="FROM:TO,… of the first part")
    parser.add_argument("--sizes", type=numbers_from, default=list(SIZES), help="N,N,…: cells of the second part")
    parser.add_argument("--first-only", action="store_true", help="no second part")
    parser.add_argument("--methods", help="METHOD,… with * for any, as in 'hocket bench reconfigure --help'")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--bytes", type=float, default=BYTES, help="least bytes of the system that is generated")
    parser.add_argument("--matrix", type=Path, help="a file in Matrix Market format instead of the generated system")
    parser.add_argument("--dominant", action="store_true", help="make the matrix of the file positive definite")
    parser.add_argument("--iterations", type=int, default=ITERATIONS, help="resized after half of them")
    parser.add_argument("--emulated", action="store_true", help="run the emulation of CG as well")
    parser.add_argument("--limit", type=int, help="make at most so many runs")
    parser.add_argument("--new-part", action="store_true", help="go on with a record of another build or machine")
    parser.add_argument("--plan", action="store_true", help="run nothing; say what is left, and how long it takes")
    parser.add_argument("--output", type=Path, default=REPO / "build" / "reconfigure-cg")
    parser.add_argument("--bare", type=Path, default=BARE, help="the program bare_resize-mpich")
    return parser.parse_args(words)


def plan_of_emulation(wanted: Wanted, program: Program, problem: Problem, arguments: argparse.Namespace) -> Path | None:
    """Return the plan of CG's emulation, or None if it is not wanted."""
    if not wanted.emulated:
        return None
    sizes = {*wanted.sizes, *(size for cell in wanted.cells for size in cell)}
    return prepare(program, problem, sizes, arguments.iterations, arguments.output, say)


def campaign(arguments: argparse.Namespace) -> bool:
    """Plan or run the campaign. Return True if it is complete and no run failed."""
    methods = [one.name for one in choose(arguments.methods.split(","))] if arguments.methods else list(METHODS)
    sizes = [] if arguments.first_only else arguments.sizes
    wanted = Wanted(arguments.cells, sizes, methods, arguments.repetitions, arguments.emulated)
    program = program_of(arguments)
    problem = problem_of(program)
    command = " ".join([Path(program.command[0]).name, *program.command[1:]])
    about = {"app": "cg", "command": command, "resized after iteration": arguments.iterations // 2}
    about |= {"bytes": problem.bytes, "constant": round(problem.constant_share, 4)}
    build, host = build_id(arguments.bare), machine_id()
    record = Record(arguments.output / "record.jsonl", about, build, host, begin_part=arguments.new_part)
    if record.is_new_part:
        forget(arguments.output)
    if problem.constant_share < CONSTANT_SHARE:
        say(f"only {problem.constant_share:.1%} of the data are constant")

    def results(runs: Sequence[Run], emulated: bool = False) -> Results:
        app = "cg, emulated" if emulated else "cg"
        told = {**about, "app": app, "repeat": arguments.repetitions, "made": record.origin()}
        return results_of(runs, told, emulated)

    if arguments.plan:
        tell_plan(wanted, record, results)
        return True
    complete = False
    try:
        with (
            tempfile.TemporaryDirectory(prefix="hocket-bench-") as directory,
            Runner(Path(directory) / "trace.jsonl", RESIZE_LIMIT_S, RUN_LIMIT_S) as runner,
        ):
            plan = plan_of_emulation(wanted, program, problem, arguments)
            emulation = Emulation(plan, Path(directory) / "emulated.jsonl") if plan else None
            machine = Machine(runner, program, problem, arguments.bare, arguments.iterations // 2, emulation)
            complete = measure(wanted, record, machine.run, results, arguments.limit)
    except KeyboardInterrupt:
        say(f"interrupted; {record.path} has every run that was whole")
    write_report(results(record.runs), record.runs, arguments.output)
    if any(run.job.emulated for run in record.runs):
        write_report(results(record.runs, True), [], arguments.output / "emulated")
    failed = [run for run in record.runs if run.outcome.reason]
    say(f"{len(record.runs)} runs, {len(failed)} failed{'' if complete else '; some are left'}")
    return complete and not failed


def main(words: Sequence[str] | None = None) -> int:
    arguments = parse(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return 0 if campaign(arguments) else 1
    except HocketError as error:
        say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
