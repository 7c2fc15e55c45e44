"""Two Jacobi solvers write checkpoints to the same storage: each alone, together, and together taking turns.

    .venv/bin/python demo/demo.py [--quick] [--mpi openmpi] [--storage real] [--io hocket]

demo/README.md says what it shows. Exit code 0 only if every checkpoint was right, every solver came to the same result
in every run, and every trace replays.
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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import solvers
import storage
from checks import Checker
from errors import DemoError
from hocket.errors import HocketError
from hocket.paths import prefix
from hocket.report import Run, compare, text_table, write_report
from mpi_launch import MPIS, REPO, Mpi
from plan import Plan, plans
from progress import Progress
from solvers import RunningSolver, Solver

CORES = 16
RUN_LIMIT_S = 120
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
        self.progress.say("measuring whether two writers disturb each other on the storage")
        library = prefix() / "lib" / "hocket" / "liblimited_target.so"
        self.storage = storage.choose(self.target, arguments.storage, library, 3 if arguments.quick else 5)
        self.progress.say(self.storage.statement)
        self.solvers = solvers.two_solvers(self.storage.bytes_per_s, arguments.quick)

    def _check_installed(self) -> None:
        for file in (prefix() / "bin" / "hocketd", self.program, self.hocket, self.mpi.bin / "mpiexec"):
            if not file.exists():
                raise DemoError(f"no {file}: run ./dev build first")

    def _make_directories(self, target: Path | None) -> None:
        """demo-run/: systems, traces and what the applications had to say; the checkpoints go to the target."""
        self.target = (target or self.run_dir / "storage").resolve()
        try:
            shutil.rmtree(self.run_dir, ignore_errors=True)
            for directory in (self.run_dir / "traces", self.run_dir / "systems", self.target):
                directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DemoError(f"cannot make {error.filename}: {error.strerror}") from error

    def generate(self) -> None:
        for solver in self.solvers:
            self.progress.say(f"generating the system of {solver}")
            solvers.generate(solver, self.mpi, self.program, self._system(solver))

    def _system(self, solver: Solver) -> Path:
        return self.run_dir / "systems" / f"{solver.name}.jacobi"

    def trace(self, plan: Plan) -> Path:
        return self.run_dir / "traces" / f"{plan.name}.jsonl"

    def run(self, plan: Plan) -> list[RunningSolver]:
        """The plan's solvers under a daemon of their own, to their end; its trace is kept. Raises DemoError."""
        with ExitStack() as stack:
            runtime = tempfile.mkdtemp(prefix="hocket-demo-", dir="/tmp")  # short: it holds a socket
            stack.callback(shutil.rmtree, runtime, ignore_errors=True)
            environment = {**self.mpi.environment(), "HOCKET_DIR": runtime}
            environment.pop("HOCKET_SOCKET", None)
            # More than the machine may have: the solvers may be resized while they run, they sleep most of the time.
            Path(runtime, "hocket.toml").write_text(f"[coordinator]\ncores = {CORES}\n")
            self.progress.say(
                f"{plan.label}: look on, or resize: HOCKET_DIR={runtime} {self.hocket} top | resize jacobi-a +1"
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
        """Start the plan's solvers at once, wait for them, and check what they came to."""
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


def report(demo: Demo, made: Iterable[Plan], out_dir: Path) -> None:
    """The table, and the page with the timelines."""
    traces = {plan.name: demo.trace(plan) for plan in made}
    runs = [
        Run("alone", [traces["alone-a"], traces["alone-b"]], role="alone"),
        Run("together, uncoordinated", [traces["uncoordinated"]], role="uncoordinated"),
        Run("together, fcfs", [traces["fcfs"]], role="scheduled"),
    ]
    print(f"\n{TITLE}\n{demo.storage.statement}\n\n{text_table(compare(runs))}\n")
    print("I = I/O time together / alone; C = (I/O time + time waited) taking turns / I/O time alone\n")
    written = write_report(runs, out_dir, TITLE, demo.notes())
    print(f"report: {written.html} and {written.pngs[0]}")


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--mpi", choices=MPIS, default="mpich")
    parser.add_argument(
        "--storage",
        choices=("auto", "real", "limited"),
        default="auto",
        help="auto measures, and limits the bandwidth where two writers do not disturb each other for long enough",
    )
    parser.add_argument("--io", choices=("mpi", "hocket"), default="mpi", help="who does the collective accesses")
    parser.add_argument("--directory", type=Path, help="where the checkpoints go (default: demo-run/storage)")
    parser.add_argument("--quick", action="store_true", help="the same, with smaller systems and fewer checkpoints")
    parser.add_argument("--run-dir", type=Path, default=REPO / "demo-run", help="traces and systems; emptied first")
    parser.add_argument("--out", type=Path, default=REPO / "demo-report", help="where the report goes")
    return parser.parse_args(words)


def end_in_order(signum: int, _: object) -> None:
    """What was started is ended on the way out."""
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
        made = plans(*demo.solvers)
        for plan in made:
            checker.run(plan, demo.run(plan), demo.trace(plan))
        report(demo, made, arguments.out)
        print(checker.statement())
        demo.progress.say("done")
    except (DemoError, HocketError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
