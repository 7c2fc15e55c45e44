"""The live part of `./dev bench framework`: CLARISSE+FlexMPI's use cases B, C, and D (section 5.1), scaled down.

Real parts are two malleable Jacobi solvers under `hocket run`, hocketd, the collective MPI-IO, and the resizes. Two
parts are emulated. The computing time of an iteration depends on the number of processes (jacobi --emulate with random
jitter: the processes sleep, so that two cores carry them). The storage has a stated bandwidth that all writers share
(limited_target). A round runs the policies one after the other in random order, with the same jitter: one pair each.

C: two similar applications begin almost together (the second half a second later, and 3.5 % faster). Uncoordinated,
nearly all their I/O phases meet; with first come, first served the second waits again and again. For each round the
benchmark reports the I/O time of both with the delay for grants. B and D: the periods differ, by 8 % (as 85 s and 92 s)
and by 10 %; the benchmark reports the delay.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import figures
from hocket.analysis import analyse
from hocket.busy import times_of
from hocket.paths import prefix
from hocket.profile.points import Point
from hocket.profile.store import Profile, Store, fingerprint_of
from hocket.trace import read_trace

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "demo"))

import storage  # noqa: E402 (needs the path)
from mpi_launch import Mpi  # noqa: E402 (needs the path)

report = partial(figures.report, "framework")

RUN_LIMIT_S = 180
UNKNOWNS = 1100  # a checkpoint of 9.7 MB
BYTES_PER_S = 20_000_000  # 0.48 s for a checkpoint that is written alone
PROCESSES, CORES = 2, 16
ITERATIONS_A_PHASE, PHASES = 20, 12
ITERATION_S = 0.15  # with PROCESSES; half of that with twice as many, and so on
JITTER = 0.1  # of an iteration: 1.3 % of the computing time of a period, 8 % of its I/O time (standard deviations)
START_APART_S = 0.5
SIZES = (2, 3, 4, 6, 8)
# The paper's uncertainty is 2 s beside an I/O time of 4.7 s.
UNCERTAINTY_S, RECONFIGURATION_S = 0.2, 0.3


@dataclass(frozen=True)
class Application:
    name: str
    slower: float = 1.0  # than ITERATION_S

    def iteration_s(self, processes: int) -> float:
        return ITERATION_S * self.slower * PROCESSES / processes

    @property
    def curve(self) -> str:
        return ",".join(f"{size}:{self.iteration_s(size):.5f}" for size in SIZES)


@dataclass(frozen=True)
class Figures:
    """Seconds of one run, summed over both applications."""

    io_s: float
    delay_s: float
    resizes: int

    @property
    def io_with_delay_s(self) -> float:
        return self.io_s + self.delay_s


@dataclass(frozen=True)
class UseCase:
    name: str
    applications: tuple[Application, Application]
    policies: tuple[str, ...]


USE_CASES = {
    "B": UseCase("B", (Application("a1"), Application("a2", 0.924)), ("fcfs", "phase-shift")),
    "C": UseCase("C", (Application("a1"), Application("a2", 0.965)), ("none", "fcfs", "phase-shift")),
    "D": UseCase("D", (Application("a1"), Application("a2", 1.1)), ("fcfs", "phase-shift", "period-coupling")),
}


class Live:
    """Runs pairs of applications, each pair under its own hocketd."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.mpi = Mpi("mpich")
        self.program = self.mpi.app("jacobi", prefix())
        self.hocket = Path(sys.executable).parent / "hocket"
        library = prefix() / "lib" / "hocket" / "liblimited_target.so"
        self.target = directory / "target"
        self.target.mkdir()
        self.storage = storage.limited(self.target, BYTES_PER_S, library, "as scaled down")
        self.system = directory / "system.jacobi"
        made = ("--system", self.system, "--generate", UNKNOWNS, "--iterations", 0)
        self._call(self.mpi.command(PROCESSES, self.program, *made), self.mpi.environment())

    def run(self, use_case: UseCase, policy: str, seed: int) -> Figures:
        """Run one pair and return its figures. Raises SystemExit on any failure."""
        with tempfile.TemporaryDirectory(prefix="hocket-live-", dir="/tmp") as runtime, contextlib.ExitStack() as stack:
            environment = {**self.mpi.environment(), "HOCKET_DIR": runtime}
            environment.pop("HOCKET_SOCKET", None)
            trace = self._daemon(Path(runtime), policy, use_case, environment, stack)
            started = []
            for i, application in enumerate(use_case.applications):
                time.sleep(START_APART_S if started else 0)
                started.append(self._start(application, seed * 2 + i, stack, environment))
            self._wait(started)
            self._call([self.hocket, "daemon", "stop"], environment)
            shutil.copy(trace, self.directory / f"{use_case.name}-{policy}-{seed}.jsonl")
            return figures_of(trace)

    def _daemon(self, runtime: Path, policy: str, use_case: UseCase, environment: dict, stack) -> Path:
        store, trace = runtime / "profiles.db", runtime / "trace.jsonl"
        self._profiles(store, use_case)
        (runtime / "hocket.toml").write_text(
            f'[daemon]\ntrace = "{trace}"\n[coordinator]\npolicy = "{policy}"\ncores = {CORES}\nlinger_s = 0.01\n'
            f'profiles = "{store}"\nuncertainty_s = {UNCERTAINTY_S}\nreconfiguration_s = {RECONFIGURATION_S}\n'
        )
        self._call([self.hocket, "daemon", "start", "--config", runtime / "hocket.toml"], environment)
        stack.callback(subprocess.run, [self.hocket, "daemon", "stop"], env=environment, capture_output=True)
        return trace

    def _profiles(self, path: Path, use_case: UseCase) -> None:
        """Store what `hocket profile` would have measured. A program has one profile: here that of the mean
        application.
        """
        io_s = (64 + UNKNOWNS * (UNKNOWNS + 2) * 8) / BYTES_PER_S
        slower = sum(one.slower for one in use_case.applications) / 2
        points = tuple(
            Point(
                processes=size,
                iteration_s=ITERATION_S * slower * PROCESSES / size,
                iteration_spread_s=0.0,
                io_s=io_s,
                io_spread_s=0.0,
                samples=10,
                flop_per_iteration=2.0 * UNKNOWNS**2,
                measured_unix_s=time.time(),
            )
            for size in SIZES
        )
        Store(path, write=True).put(
            Profile(self.program.name, fingerprint_of(self.program), "mpich", "jacobi --emulate", points)
        )

    def _start(
        self, application: Application, seed: int, stack: contextlib.ExitStack, environment: dict
    ) -> subprocess.Popen:
        checkpoints = Path(tempfile.mkdtemp(prefix=f"{application.name}-", dir=self.target))
        stack.callback(shutil.rmtree, checkpoints, ignore_errors=True)
        command = self.mpi.command(
            PROCESSES,
            self.program,
            *("--system", self.system, "--iterations", ITERATIONS_A_PHASE * PHASES, "--tolerance", 0),
            *("--checkpoint-every", ITERATIONS_A_PHASE, "--checkpoint-dir", checkpoints),
            *("--emulate", application.curve, "--jitter", JITTER, "--jitter-seed", seed, "--print-every", 1000),
        )
        process = subprocess.Popen(
            list(map(str, [self.hocket, "run", "--name", application.name, "--", *command])),
            env={**environment, **self.storage.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        stack.callback(_end, process)
        return process

    def _wait(self, started: Sequence[subprocess.Popen]) -> None:
        deadline = time.monotonic() + RUN_LIMIT_S
        for process in started:
            try:
                _, said = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise SystemExit(f"bench: a solver did not end within {RUN_LIMIT_S} s: {process.args}") from None
            if process.returncode != 0 or "hocket:" in said:
                raise SystemExit(f"bench: a solver ended with code {process.returncode}: {said.strip()}")

    def _call(self, command: Sequence[object], environment: dict[str, str]) -> None:
        done = subprocess.run(
            list(map(str, command)), env=environment, capture_output=True, text=True, timeout=RUN_LIMIT_S
        )
        if done.returncode != 0:
            raise SystemExit(f"bench: {' '.join(map(str, command))} failed: {done.stderr.strip()}")


def _end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
            return
        process.kill()


def figures_of(trace: Path) -> Figures:
    """Return the sums of the applications' own reports, over the phases in which they wrote."""
    applications = analyse(read_trace(trace)).applications
    spent = [
        times_of(part for phase in one.phases if phase.bytes_written > 0 for part in phase.parts())
        for one in applications
    ]
    resizes = sum(record.done for one in applications for record in one.reconfigurations)
    return Figures(sum(one.io_ns for one in spent) / 1e9, sum(one.wait_ns for one in spent) / 1e9, resizes)


def rounds(live: Live, use_case: UseCase, count: int) -> Iterator[dict[str, Figures]]:
    """Yield the figures of each round, in which each policy runs once."""
    for seed in range(1, count + 1):
        order = list(use_case.policies)
        random.Random(seed).shuffle(order)
        made = {policy: live.run(use_case, policy, seed) for policy in order}
        for policy in use_case.policies:
            one = made[policy]
            said = f"I/O {one.io_s:.2f} s + delay {one.delay_s:.2f} s, {one.resizes} resizes"
            print(f"live {use_case.name}, round {seed}, {policy}: {said}", file=sys.stderr, flush=True)
        yield made


def ordering(made: list[dict[str, Figures]]) -> bool:
    """Check uncoordinated > fcfs > phase-shift in I/O time with delay, in at least 9 of 10 rounds."""
    times = {policy: [one[policy].io_with_delay_s for one in made] for policy in USE_CASES["C"].policies}
    held = sum(none > fcfs > shift for none, fcfs, shift in zip(*times.values(), strict=True))
    good = True
    for policy in ("fcfs", "phase-shift"):
        case = f"use case C, I/O time incl. delay, {policy} beside uncoordinated"
        resizes = [one[policy].resizes for one in made]
        spread = [min(times[policy]), max(times[policy])]
        enough = held >= 0.9 * len(made)
        more = {"rounds": len(made), "rounds_in_order": held, "spread": spread, "resizes": resizes}
        good &= report(f"live: {case}", median(times[policy]), "s", median(times["none"]), None, enough, **more)
    return good


def delays(use_case: UseCase, made: list[dict[str, Figures]]) -> bool:
    """Report delays beside first come, first served, without a bound: twelve periods are few."""
    blocking = [one["fcfs"].delay_s for one in made]
    for policy in use_case.policies:
        if policy == "fcfs":
            continue
        values = [one[policy].delay_s for one in made]
        resizes = [one[policy].resizes for one in made]
        more = {"rounds": len(made), "rounds_lower": sum(a < b for a, b in zip(values, blocking, strict=True))}
        case = f"use case {use_case.name}, delay, {policy} beside fcfs"
        report(f"live: {case}", median(values), "s", median(blocking), None, True, **more, resizes=resizes)
    return True


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", choices=sorted(USE_CASES), help="one use case (default: all)")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--policies", help="for trying out: others than the use case's, separated by commas")
    parser.add_argument("--keep", type=Path, help="a directory for the traces")
    arguments = parser.parse_args(words)
    good = True
    with tempfile.TemporaryDirectory(prefix="hocket-live-") as made_here:
        live = Live(Path(made_here))
        for name in [arguments.case] if arguments.case else sorted(USE_CASES):
            use_case = USE_CASES[name]
            if arguments.policies:
                use_case = UseCase(name, use_case.applications, tuple(arguments.policies.split(",")))
            made = list(rounds(live, use_case, arguments.rounds))
            if not arguments.policies:
                good &= ordering(made) if name == "C" else delays(use_case, made)
        if arguments.keep:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            for trace in Path(made_here).glob("*.jsonl"):
                shutil.copy(trace, arguments.keep)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
