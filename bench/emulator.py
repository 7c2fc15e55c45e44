"""Applications beside their emulations, by turns (Proteo, section 5.3). It takes over an hour, and can be interrupted.

    bench/emulator.py --plan                              # the cases, what is left of each, and how long it takes
    bench/emulator.py --cases 'cg/stencil-60/*,allgatherv/100KB/*'
    ./dev bench emulator                                  # all cases; goes on from where it was

The parallel CG of apps/cg is captured with each number of ranks and each matrix, and compared with its emulation:
computing, communication, and total time, without and with a resize after half of the iterations. Each round captures
anew, and emulates what it has captured. Then MPI_Allgatherv alone, for several sizes, and the calibration of
operations. build/matrices may have real matrices (*.graph of METIS, *.mtx). The output directory has record.jsonl, a
line for each run; no run is made twice. The exit code is 1 if a bound is missed or a run failed.

Ratios are medians of the emulation over medians of the application. `stdq` is the standard deviation of the quotients
of pairs, as in the paper's Table 2. Without a resize, `of_captured` is the median quotient of an emulation and the run
that it was captured from, and `itself` that of medians of the application's captured and other runs: 1 on a machine
whose speed does not change. `own work` is the part of an emulation's time outside of its stages and control points.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from captured import Moved, Part, iterating, resizable
from emulator_cases import (
    CAPTURE,
    EMULATED,
    ITERATIONS,
    REAL,
    REPEAT,
    Calibrate,
    Case,
    Gather,
    Job,
    Solve,
    all_cases,
    by_turns,
    jobs_of,
    seconds_of,
    select,
)
from emulator_figures import AGAIN, FIRST, imbalance_of, lines_of
from emulator_matrices import Matrix, matrices
from emulator_record import TOTAL, Ran, Record, gathered_s, times_of
from hocket import mpi, paths
from hocket.capture.describe import describe
from hocket.capture.log import RankLog
from hocket.capture.stages import Run, run_of
from hocket.capture.watch import cores, watch, watch_emulation
from hocket.emulator.calibration import calibrated
from hocket.emulator.description import GRANULARITY
from hocket.emulator.record import read_record
from hocket.emulator.run import CROWDED
from hocket.errors import HocketError
from reconfigure_cg_plan import Problem, duration

REPO = Path(__file__).resolve().parent.parent
PROBE = REPO / "build" / "release" / "bench" / "allgatherv_probe-mpich"
OUTPUT, MATRICES = REPO / "build" / "emulator", REPO / "build" / "matrices"
HALF = ITERATIONS // 2


@dataclass(frozen=True)
class Bench:
    """How runs are made."""

    record: Record
    matrices: Mapping[str, Matrix]
    descriptions: Path
    probe: Path

    def run(self, case: Case, job: Job) -> Ran:
        """Make a run. One that fails is told in the record."""
        ran = Ran(job, 0.0, os.getloadavg()[0])
        began = time.monotonic()
        try:
            if job.kind == CAPTURE:
                logs = watch(self._command(_solve_of(job.case)), quietly=True)
                ran = replace(ran, captured=run_of(logs), times=times_of(logs, ITERATIONS, ITERATIONS))
            elif isinstance(case, Calibrate):
                ran = replace(ran, times=calibration_times())
            elif isinstance(case, Gather):
                ran = replace(ran, times={TOTAL: gathered_s(self._gather(case, job), case.count)})
            elif case.targets:
                ran = replace(ran, times=times_of(self._resize(case, job), ITERATIONS, HALF))
            else:
                ran = replace(ran, times=times_of(self._solve(case, job), ITERATIONS, ITERATIONS))
            if job.kind == EMULATED and not isinstance(case, Calibrate):
                ran = replace(ran, own_share=read_record(self._emulated).own_share())
        except HocketError as error:
            ran = replace(ran, failed=str(error))
        return replace(ran, wall_s=time.monotonic() - began)

    def _command(self, case: Solve) -> list[str]:
        program = str(paths.apps() / "cg-mpich")
        words = [program, *self.matrices[case.matrix].words, "--sums", "plain", "--tolerance", "0"]
        counts = ["--iterations", str(ITERATIONS), "--print-every", str(ITERATIONS)]
        return ["mpiexec", "-n", str(case.ranks), *words, *counts]

    def _solve(self, case: Solve, job: Job) -> list[RankLog]:
        if job.kind == REAL:
            return watch(self._command(case), quietly=True)
        text, _ = describe(case.matrix, self._captured(case, job), cores=cores())
        return watch_emulation(self._described(case, text), case.ranks, record=self._emulated)

    def _resize(self, case: Solve, job: Job) -> list[RankLog]:
        if job.kind == REAL:
            wanted = {"HOCKET_RESIZE": f"{HALF}:{case.targets}", **mpi.MALLEABLE_SETTINGS[mpi.MPICH]}
            with environment(wanted):
                return watch(self._command(case), quietly=True)
        runs = self._captured(case, job)
        matrix = self.matrices[case.matrix]
        problem = Problem(matrix.rows, matrix.nonzeros)
        parts = [Part(case.ranks, HALF), Part(case.targets, ITERATIONS - HALF)]
        text = resizable(case.matrix, runs, parts, Moved(problem.bytes, problem.constant_share))
        return watch_emulation(self._described(case, text), case.ranks, resizes=True, record=self._emulated)

    def _captured(self, case: Solve, job: Job) -> dict[int, Run]:
        """Return the iterations that were captured in the round of a job, by number of processes."""
        runs = {one.ranks: self.record.captured(one.name, job.repeat) for one in case.captured}
        return {ranks: iterating(run, ITERATIONS) for ranks, run in runs.items() if run}

    def _gather(self, case: Gather, job: Job) -> list[RankLog]:
        if job.kind == REAL:
            command = ["mpiexec", "-n", str(case.ranks), str(self.probe), str(case.bytes), str(case.count)]
            return watch(command, quietly=True)
        # One iteration: the program has no control points between its gathers.
        group = f"[[group]]\nprocesses = {case.ranks}\niterations = 1\n"
        stage = f'[[phase]]\n[[phase.stage]]\nkind = "allgatherv"\nbytes = {case.bytes}\nrepeat = {case.count}\n'
        path = self._described(case, f'name = "allgatherv"\n{group}{stage}')
        return watch_emulation(path, case.ranks, record=self._emulated)

    @property
    def _emulated(self) -> Path:
        """The emulator's record of the run that was made last."""
        return self.descriptions / "emulated.jsonl"

    def _described(self, case: Case, text: str) -> Path:
        path = self.descriptions / f"{case.name.replace('/', '-').replace(':', '-to-')}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


def calibration_times() -> dict[str, float]:
    """Calibrate every kind of operation where nothing is stored yet, then again, and return the seconds of both."""
    program = paths.apps() / "emulator-mpich"
    times = {}
    with tempfile.TemporaryDirectory(prefix="hocket-bench-") as state, environment({"XDG_STATE_HOME": state}):
        for name in (FIRST, AGAIN):
            began = time.monotonic()
            calibrated(sorted(GRANULARITY.items()), program)
            times[name] = time.monotonic() - began
    return times


def _solve_of(name: str) -> Solve:
    _, matrix, ranks = name.split("/")
    return Solve(matrix, int(ranks))


@contextlib.contextmanager
def environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Add variables for the programs that are started meanwhile."""
    kept = dict(os.environ)
    os.environ.update(settings)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def left_of(case: Case, record: Record, repeat: int) -> list[Job]:
    done = record.done
    return [job for number in range(1, repeat + 1) for job in jobs_of(case, number) if job not in done]


def measure(cases: Sequence[Case], repeat: int, record: Record, run: Callable[[Case, Job], Ran]) -> None:
    """Make the runs that are left. The emulation of what could not be captured is left out."""
    for case, jobs in by_turns(cases, repeat):
        for job in [one for one in jobs if one not in record.done]:
            if job.kind == EMULATED and not _is_captured(case, job.repeat, record):
                say(f"{case.name}, round {job.repeat}: nothing was captured, so there is no emulation")
                continue
            record.add(run(case, job))
            ran = record.runs[-1]
            why = f", failed: {ran.failed}" if ran.failed else ""
            say(f"{job.case}, {job.kind} {job.repeat}: {ran.wall_s:.1f} s{why}")


def _is_captured(case: Case, number: int, record: Record) -> bool:
    return not isinstance(case, Solve) or all(record.captured(one.name, number) for one in case.captured)


def tell_plan(cases: Sequence[Case], repeat: int, record: Record, known: Mapping[str, Matrix]) -> None:
    seen: set[Job] = set()
    whole = 0.0
    for case in cases:
        left = [job for job in left_of(case, record, repeat) if job not in seen]
        seen.update(left)
        seconds = seconds_of(case, left, record.walls, known)
        whole += seconds
        imbalance = f"imbalance {imbalance_of(case, known):.2f}, " if isinstance(case, Solve) else ""
        say(f"{case.name}: {imbalance}{len(left)} runs left, {duration(seconds)}")
    say(f"{len(record.done)} runs done; what is left takes about {duration(whole)}")


def tell_figures(cases: Sequence[Case], record: Record, known: Mapping[str, Matrix]) -> bool:
    """Print the lines of all cases that have some. Return True if all bounds are held and no run has failed."""
    fine = True
    for case in cases:
        for told in lines_of(case, record.runs, imbalance_of(case, known), cores()):
            print(json.dumps(told), flush=True)
            fine &= told["ok"]
    return fine and not any(one.failed for one in record.runs)


def say(text: str) -> None:
    print(f"bench: emulator: {text}", file=sys.stderr, flush=True)


def build_id(probe: Path) -> str:
    parts = [paths.apps() / "cg-mpich", paths.apps() / "emulator-mpich", paths.libhocket("mpich"), probe]
    if missing := [part for part in parts if not part.exists()]:
        raise HocketError(f"no {missing[0]}: is hocket built and installed? (HOCKET_PREFIX says where)")
    return sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()[:12]


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/emulator.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", default="*", help="NAME,… with * for any; --plan lists them (default: all)")
    parser.add_argument("--repeat", type=int, default=REPEAT, help="runs of each (default: %(default)d)")
    parser.add_argument("--most-bytes", type=float, default=1e9, help="of MPI_Allgatherv: less for a small memory")
    parser.add_argument("--plan", action="store_true", help="run nothing; say what is left, and how long it takes")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="directory of the record (default: build/emulator)")
    parser.add_argument("--probe", type=Path, default=PROBE, help="the program allgatherv_probe-mpich")
    return parser.parse_args(words)


def bench(arguments: argparse.Namespace) -> bool:
    """Plan or make the runs, and print the figures. Return True if all bounds are held and no run has failed."""
    output = arguments.output.absolute()
    known = {one.name: one for one in matrices(MATRICES, output / "matrices")}
    cases = select(all_cases(known, int(arguments.most_bytes)), arguments.cases.split(","))
    record = Record(output / "record.jsonl", f"{ITERATIONS} iterations, build {build_id(arguments.probe)}")
    if arguments.plan:
        tell_plan(cases, arguments.repeat, record, known)
        return True
    with tempfile.TemporaryDirectory(prefix="hocket-bench-") as directory:
        os.environ["HOCKET_DIR"] = directory
        # Operations are measured anew: the machine may have been busy when they were measured for others.
        os.environ["XDG_STATE_HOME"] = str(output / "state")
        os.environ["PATH"] = f"{Path(mpi.mpich_launcher()).parent}:{os.environ['PATH']}"
        os.environ.update(CROWDED[mpi.MPICH])
        run = Bench(record, known, output / "descriptions", arguments.probe).run
        try:
            measure(cases, arguments.repeat, record, run)
        except KeyboardInterrupt:
            say(f"interrupted; {record.path} has every run that was whole")
    return tell_figures(cases, record, known) and not any(left_of(case, record, arguments.repeat) for case in cases)


def main(words: Sequence[str] | None = None) -> int:
    arguments = parse(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return 0 if bench(arguments) else 1
    except HocketError as error:
        say(str(error))
        return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        sys.exit(1)
