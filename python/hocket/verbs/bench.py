"""hocket bench: measures on this machine what hocket's methods cost."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from pathlib import Path

from hocket import __version__
from hocket.errors import HocketError, UsageError
from hocket.reconfigure.methods import QUICK, USUAL, choose
from hocket.reconfigure.results import Planned, Results, plan
from hocket.reconfigure.runs import APPS, Outcome, Program, Runner, prepare
from hocket.verbs import help_text, tell

EXAMPLES = """
examples:
  hocket bench reconfigure --app cg --quick                      # a look, some minutes
  hocket bench reconfigure --app cg --output cg-table            # the full table: about an hour
  hocket bench reconfigure --app jacobi --sizes 1,2,4 --repeat 5 \\
      --methods 'merge/*/collective/blocking,baseline/plain/*/blocking'

A method is SPAWN/STRATEGY/REDISTRIBUTION/STRATEGY, e.g. merge/plain/collective/blocking; * stands for any of them.
With /node at its end, the new processes of a node share an MPI world, which makes fewer spawns.
Each run starts with NS processes, under a daemon that the benchmark starts for itself, and is resized once, to NT.
Runs of all methods alternate in random order; the first of each cell does not count.

Writes to the output directory: results.json (all runs and figures), results.md (tables), winners.png (the best method
of each pair of old and new sizes, as in Proteo, Fig. 14), trace.jsonl (what the daemon saw, for 'hocket trace').
The exit code is 1 if a run failed; failed runs are listed, and the others are summarised.
"""
SIZES, QUICK_SIZES = "1,2,4,8", "1,2,4"
REPEAT, QUICK_REPEAT = 9, 3
LARGEST = 64
SEED = 14
PROGRESS_S = 10  # interval of progress lines if stderr is no terminal
# Number of iterations, the iteration after which the resize is requested, and the least length of one in seconds.
ITERATIONS, RESIZE_AT, ITERATION_S = 80, 10, 0.01
PROBLEM = {"cg": 40, "jacobi": 1200}  # points along an edge, 22 MB; unknowns, 12 MB
QUICK_PROBLEM = {"cg": 24, "jacobi": 600}


def add(parsers: argparse._SubParsersAction) -> None:
    parser = parsers.add_parser("bench", **help_text("measure what a choice of methods costs on this machine", ""))
    actions = parser.add_subparsers(title="benchmarks", metavar="BENCHMARK", required=True)
    words = help_text("compare every method of resizing on a real program, with statistics", EXAMPLES)
    action = actions.add_parser("reconfigure", **words)
    action.add_argument("--app", choices=APPS, default="cg", help="the program that is resized (default: cg)")
    action.add_argument(
        "--sizes", metavar="N,N,…", help=f"numbers of processes (default: {SIZES}; quick: {QUICK_SIZES})"
    )
    action.add_argument("--methods", metavar="METHOD,…", help="default: the 12 of Proteo and 4 more; quick: 4")
    action.add_argument(
        "--repeat", type=int, metavar="N", help=f"runs that count (default: {REPEAT}; quick: {QUICK_REPEAT})"
    )
    action.add_argument("--output", metavar="DIR", default="bench-reconfigure", help="default: bench-reconfigure")
    action.add_argument("--quick", action="store_true", help="fewer sizes, methods and runs, and a smaller problem")
    action.set_defaults(verb=reconfigure)


def reconfigure(arguments: argparse.Namespace) -> int:
    sizes = _sizes(arguments.sizes or (QUICK_SIZES if arguments.quick else SIZES))
    given = arguments.methods.split(",") if arguments.methods else QUICK if arguments.quick else USUAL
    methods = choose([pattern.strip() for pattern in given])
    repeat = arguments.repeat if arguments.repeat is not None else QUICK_REPEAT if arguments.quick else REPEAT
    if repeat < 1:
        raise UsageError(f"--repeat {repeat}: give 1 or more")
    out = Path(arguments.output).absolute()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HocketError(f"cannot make {out}: {error.strerror}; choose another with --output") from error
    problem = (QUICK_PROBLEM if arguments.quick else PROBLEM)[arguments.app]
    with tempfile.TemporaryDirectory(prefix="hocket-bench-") as directory:
        program = prepare(arguments.app, problem, ITERATIONS, ITERATION_S, Path(directory))
        planned = plan(sizes, methods, repeat, SEED)
        done = _measure(program, planned, out / "trace.jsonl")
    results = Results(sizes, methods, done, _about(arguments.app, program, repeat, len(planned)))
    _write(results, out)
    return 1 if results.failed or len(done) < len(planned) else 0


def _sizes(text: str) -> list[int]:
    try:
        sizes = sorted({int(word) for word in text.split(",")})
    except ValueError:
        raise UsageError(f"--sizes '{text}': give numbers of processes, e.g. {SIZES}") from None
    if len(sizes) < 2 or sizes[0] < 1 or sizes[-1] > LARGEST:
        raise UsageError(f"--sizes '{text}': give two or more different numbers from 1 to {LARGEST}")
    return sizes


def _measure(program: Program, planned: list[Planned], trace: Path) -> list[tuple[Planned, Outcome]]:
    """Do all runs. Ctrl-C ends them; the runs that were done are summed up."""
    done: list[tuple[Planned, Outcome]] = []
    progress = Progress(len(planned))
    trace.unlink(missing_ok=True)
    with Runner(trace) as runner:
        try:
            for run in planned:
                outcome = runner.run(program, run.sources, run.targets, run.method, RESIZE_AT)
                done.append((run, outcome))
                progress.show(run, outcome)
        except KeyboardInterrupt:
            tell(f"interrupted after {len(done)} of {len(planned)} runs, which are summarised")
    progress.end()
    return done


class Progress:
    """A progress line on stderr that is overwritten; without a terminal, a line at intervals. Failures stay."""

    def __init__(self, runs: int) -> None:
        self._runs, self._done, self._failed = runs, 0, 0
        self._start = self._shown = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def show(self, run: Planned, outcome: Outcome) -> None:
        self._done += 1
        what = f"{run.sources} → {run.targets} {run.method.name}"
        if outcome.reason:
            self._failed += 1
            self.end()
            tell(f"failed: {what}: {outcome.reason}")
        now = time.monotonic()
        if not self._terminal and now - self._shown < PROGRESS_S and self._done < self._runs:
            return
        self._shown = now
        left_s = (now - self._start) / self._done * (self._runs - self._done)
        failed = f", {self._failed} failed" if self._failed else ""
        line = f"{self._done}/{self._runs} runs{failed}, {left_s / 60:.0f} min left: {what}"
        print(f"\r\x1b[K{line}" if self._terminal else f"hocket: {line}", end="", file=sys.stderr, flush=True)
        if not self._terminal:
            print(file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _about(app: str, program: Program, repeat: int, planned: int) -> dict[str, object]:
    command = " ".join([Path(program.command[0]).name, *program.command[1:]])
    return {
        "app": app,
        "command": command,
        "resized after iteration": RESIZE_AT,
        "repeat": repeat,
        "planned": planned,
        "seed": SEED,
        "hocket": __version__,
        "machine": platform.platform(),
    }


def _write(results: Results, out: Path) -> None:
    from hocket.reconfigure.heatmap import write_heatmap  # imported here: matplotlib takes a second to load

    try:
        text = json.dumps(results.as_json(), indent=1, allow_nan=False)
        (out / "results.json").write_text(text + "\n", encoding="utf-8")
        (out / "results.md").write_text(results.markdown(), encoding="utf-8")
        write_heatmap(results, out / "winners.png")
    except OSError as error:
        raise HocketError(f"cannot write to {out}: {error.strerror}; choose another with --output") from error
    for name in ("results.md", "results.json", "winners.png"):
        print(out / name)
