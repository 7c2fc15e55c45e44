"""Two Jacobi solvers write checkpoints to the same storage: each alone, together, and together taking turns.

    .venv/bin/python demo/demo.py [--quick] [--mpi openmpi] [--storage real] [--io hocket]

demo/README.md describes what it shows. The exit code is 0 only if all of this holds: every checkpoint was right, and
every solver came to the same result in every run. Every trace replays, and the default policy made neither solver
slower than uncoordinated.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import solvers
import storage
from checks import Checker
from errors import DemoError
from hocket.analysis import analyse
from hocket.daemon import default_policy
from hocket.errors import HocketError
from hocket.paths import prefix
from hocket.report import Run, compare, text_table, write_report
from hocket.trace import read_trace
from mpi_launch import MPIS, REPO, Mpi
from outcome import Outcome, Pair
from plan import Plan, pairs, plans
from progress import Progress
from solvers import RunningSolver, Solver

CORES = 16
RUN_LIMIT_S = 120
# Three minutes suffice for five runs of solvers of the full size and six of small ones.
CHECKPOINTS, CHECKPOINTS_QUICK, CHECKPOINTS_OF_PAIRS = 4, 3, 5
PAIRS = 3
TITLE = "Two Jacobi solvers write checkpoints to the same storage"


class Demo:
    def __init__(self, arguments: argparse.Namespace):
        self.mpi = Mpi(arguments.mpi)
        self.io: str = arguments.io
        self.run_dir: Path = arguments.run_dir.resolve()
        self.program = self.mpi.app("jacobi", prefix())
        self.hocket = Path(sys.executable).parent / "hocket"
        self.progress = Progress(time.monotonic())
        self._check_installed()
        self._make_directories(arguments.directory)
        self.progress.say("measuring how much two writers slow each other down on the storage")
        library = prefix() / "lib" / "hocket" / "liblimited_target.so"
        self.storage = storage.choose(self.target, arguments.storage, library, 3 if arguments.quick else 5)
        self.progress.say(self.storage.statement)
        quick = arguments.quick
        checkpoints = CHECKPOINTS_QUICK if quick else CHECKPOINTS
        self.solvers = solvers.two_solvers(self.storage.bytes_per_s, quick, checkpoints)
        checkpoints = CHECKPOINTS_QUICK if quick else CHECKPOINTS_OF_PAIRS
        self.small_solvers = solvers.two_solvers(self.storage.bytes_per_s, True, checkpoints)
        self.policy = arguments.policy or default_policy()
        self.policy_told = self.policy if arguments.policy else f"default ({self.policy})"

    def _check_installed(self) -> None:
        for file in (prefix() / "bin" / "hocketd", self.program, self.hocket, self.mpi.bin / "mpiexec"):
            if not file.exists():
                raise DemoError(f"no {file}: run ./dev build first")

    def _make_directories(self, target: Path | None) -> None:
        """Make demo-run/ for systems, traces, and stderr of the applications, and the target for the checkpoints."""
        self.target = (target or self.run_dir / "storage").resolve()
        try:
            shutil.rmtree(self.run_dir, ignore_errors=True)
            for directory in (self.run_dir / "traces", self.run_dir / "systems", self.target):
                directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DemoError(f"cannot make {error.filename}: {error.strerror}") from error

    def generate(self) -> None:
        for solver in dict.fromkeys([*self.solvers, *self.small_solvers]):
            self.progress.say(f"generating the system of {solver}")
            solvers.generate(solver, self.mpi, self.program, self._system(solver))

    def _system(self, solver: Solver) -> Path:
        return self.run_dir / "systems" / f"{solver.name}-{solver.n}.jacobi"

    def trace(self, plan: Plan) -> Path:
        return self.run_dir / "traces" / f"{plan.name}.jsonl"

    def run(self, plan: Plan) -> list[RunningSolver]:
        """Run the plan's solvers to their end under their own daemon, and keep its trace. Raises DemoError."""
        with ExitStack() as stack:
            runtime = tempfile.mkdtemp(prefix="hocket-demo-", dir="/tmp")  # short: it holds a socket
            stack.callback(shutil.rmtree, runtime, ignore_errors=True)
            environment = {**self.mpi.environment(), "HOCKET_DIR": runtime}
            environment.pop("HOCKET_SOCKET", None)
            # The machine may have fewer cores. The solvers sleep most of the time, and users may resize them while they
            # run.
            Path(runtime, "hocket.toml").write_text(f"[coordinator]\ncores = {CORES}\n")
            if plan.shown:
                self.progress.say(
                    f"{plan.label}: to watch or resize it: HOCKET_DIR={runtime} {self.hocket} top | resize jacobi-a +1"
                )
            with self._daemon(plan, environment):
                ended = self._solve(plan, environment)
            traces = list(Path(runtime, "traces").glob("*.jsonl"))
            if len(traces) != 1:
                raise DemoError(f"hocketd wrote {len(traces)} traces in run '{plan.label}', not one")
            shutil.copy(traces[0], self.trace(plan))
            return ended

    @contextmanager
    def _daemon(self, plan: Plan, environment: dict[str, str]) -> Iterator[None]:
        self._hocket(
            environment,
            "daemon",
            "start",
            "--config",
            environment["HOCKET_DIR"] + "/hocket.toml",
            "--policy",
            plan.policy,
        )
        try:
            yield
        finally:
            self._hocket(environment, "daemon", "stop")

    def _solve(self, plan: Plan, environment: dict[str, str]) -> list[RunningSolver]:
        """Start the plan's solvers at once, wait for them, and check their results."""
        with ExitStack() as stack:
            checkpoints = Path(tempfile.mkdtemp(prefix=f"{plan.name}-", dir=self.target))
            stack.callback(shutil.rmtree, checkpoints, ignore_errors=True)
            started = [stack.enter_context(self._start(plan, s, checkpoints, environment)) for s in plan.applications]
            self._wait(plan, started)
            for solver in started:
                solver.check()
            return started

    def _hocket(self, environment: dict[str, str], *arguments: object) -> None:
        done = subprocess.run(
            [self.hocket, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=RUN_LIMIT_S
        )
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise DemoError(f"'hocket {' '.join(map(str, arguments))}' failed: {said[-1] if said else done.returncode}")

    def _start(self, plan: Plan, solver: Solver, checkpoints: Path, environment: dict[str, str]) -> RunningSolver:
        directory = checkpoints / solver.name
        directory.mkdir()
        application = self.mpi.command(
            solvers.RANKS,
            self.program,
            *("--system", self._system(solver), "--iterations", solver.iterations, "--tolerance", 0),
            *("--checkpoint-every", solver.checkpoint_every, "--checkpoint-dir", directory, "--verify"),
            *("--iteration-time", solver.iteration_time_s, "--print-every", 1),
        )
        return RunningSolver(
            solver,
            [str(self.hocket), "run", "--name", solver.name, "--io", self.io, "--", *application],
            {**environment, **self.storage.environment},
            self.run_dir / f"{plan.name}-{solver.name}.stderr",
        )

    def _wait(self, plan: Plan, started: Sequence[RunningSolver]) -> None:
        deadline = time.monotonic() + RUN_LIMIT_S
        self.progress.begin(plan.label)
        while any(solver.running() for solver in started):
            if time.monotonic() > deadline:
                raise DemoError(f"run '{plan.label}' did not end within {RUN_LIMIT_S} s; see {self.run_dir}")
            self.progress.show([solver.progress() for solver in started])
            time.sleep(0.1)
        self.progress.end([solver.progress() for solver in started])

    def notes(self) -> list[str]:
        return [
            self.storage.statement,
            *map(str, self.solvers),
            f"MPI: {self.mpi.name}; collective accesses by {'hocket' if self.io == 'hocket' else 'the MPI library'}",
            f"in every run, alone too, each application's ranks share one core of "
            f"{len(os.sched_getaffinity(0))}; iterations are padded to the stated time by sleeping",
        ]

    def total_s(self, plan: Plan) -> dict[str, float]:
        """Return the total time of each solver, as in the table."""
        analysis = analyse(read_trace(self.trace(plan)))
        return {one.name: one.total_s(analysis.now_ns) for one in analysis.applications}


def compare_pairs(demo: Demo, checker: Checker, count: int) -> Outcome:
    """Run uncoordinated and the default policy in turn; the first one alternates from pair to pair."""
    made = []
    for n, pair in enumerate(pairs(*demo.small_solvers, demo.policy, demo.policy_told, count)):
        for plan in pair if n % 2 == 0 else reversed(pair):
            checker.run(plan, demo.run(plan), demo.trace(plan))
        made.append(Pair(*map(demo.total_s, pair)))
    return Outcome(demo.policy_told, made)


def report(demo: Demo, made: Sequence[Plan], outcome: Outcome, out_dir: Path) -> None:
    """Print the table and write the page with the timelines."""
    traces = {plan.name: demo.trace(plan) for plan in made}
    alone, together = made[:2], made[2:]
    runs = [Run("alone", [traces[plan.name] for plan in alone], role="alone")]
    for plan in together:
        role = "uncoordinated" if plan.name == "uncoordinated" else "scheduled"
        runs.append(Run(plan.label, [traces[plan.name]], role=role))
    print(f"\n{TITLE}\n{demo.storage.statement}\n\n{text_table(compare(runs))}\n")
    print("I = I/O time together / alone; C = (I/O time + time waited) taking turns / I/O time alone\n")
    said = [outcome.sentence()] if outcome.pairs else []
    written = write_report(runs, out_dir, TITLE, [*demo.notes(), *said])
    print(f"report: {written.html} and {written.pngs[0]}")


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--mpi", choices=MPIS, default="mpich")
    parser.add_argument(
        "--storage",
        choices=("auto", "real", "limited"),
        default="auto",
        help="auto measures, and limits the bandwidth if two writers do not slow each other down for long enough",
    )
    parser.add_argument("--io", choices=("mpi", "hocket"), default="mpi", help="what performs collective accesses")
    parser.add_argument("--policy", help="policy instead of the default")
    parser.add_argument(
        "--pairs", type=int, default=PAIRS, help="pairs of runs that judge the default; 0: only the table"
    )
    parser.add_argument("--directory", type=Path, help="directory of the checkpoints (default: demo-run/storage)")
    parser.add_argument("--quick", action="store_true", help="smaller systems and fewer checkpoints")
    parser.add_argument("--run-dir", type=Path, default=REPO / "demo-run", help="traces and systems; emptied first")
    parser.add_argument("--out", type=Path, default=REPO / "demo-report", help="directory of the report")
    return parser.parse_args(words)


def end_in_order(signum: int, _: object) -> None:
    """End what was started on the way out."""
    signal.signal(signum, signal.SIG_IGN)
    raise DemoError(f"ended by {signal.Signals(signum).name}")


def main(words: Sequence[str] | None = None) -> int:
    arguments = parse(words)
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, end_in_order)
    try:
        demo = Demo(arguments)
        demo.generate()
        checker = Checker()
        made = plans(*demo.solvers, demo.policy, demo.policy_told)
        for plan in made:
            checker.run(plan, demo.run(plan), demo.trace(plan))
        outcome = compare_pairs(demo, checker, arguments.pairs)
        report(demo, made, outcome, arguments.out)
        print(checker.statement())
        demo.progress.say("done")
        if outcome.pairs:
            print(outcome.sentence())
            if complaint := outcome.complaint():
                raise DemoError(complaint)
    except (DemoError, HocketError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
