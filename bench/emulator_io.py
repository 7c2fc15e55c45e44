"""`./dev bench emulator-io`: the I/O of applications beside that of their emulations, by turns in one run.

`apps/jacobi` writes checkpoints, `apps/s_ior` writes as IOR does, both to a limited target (apps/limited_target). Each
is captured once, then it and its emulation run in turn, each under a hocketd of its own. hocketd's trace has the I/O
phases: a period lasts from start to start, a duration from start to end. What hocketd predicts is the period that it
lists shortly before the application ends.

Figures are medians over the runs. The first phases of a run, before the iterations, do not count.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median, stdev

import figures
from hocket import paths
from hocket.bus import Bus
from hocket.capture.course import course_of
from hocket.capture.describe import describe
from hocket.capture.watch import HOCKET, watch
from hocket.delta.live import Storage
from hocket.errors import HocketError
from hocket.private_daemon import end_group, private_daemon
from hocket.trace import read_trace

REPEAT = 5
RANKS = 2
BYTES_PER_S = 60e6
WITHIN, PREDICTED_WITHIN = 0.05, 0.02
LOOK_EVERY_S = 0.1
RUN_LIMIT_S = 180
MEMORY = Path("/dev/shm")  # the limit alone shall decide how long a write lasts
SIZE, ITERATIONS, EVERY = 1500, 1000, 100  # of the system that jacobi solves: 18 MB a checkpoint
PHASES, BLOCK, SLEEP_S = 16, "4m", 0.5  # of s_ior
report = partial(figures.report, "emulator-io")


@dataclass(frozen=True)
class Program:
    """An application. `command` gets the directory of its files."""

    name: str
    command: Callable[[Path], list[str]]
    phases: int  # that count: the last ones


@dataclass(frozen=True)
class Seen:
    """The I/O of a run, in seconds."""

    period_s: float
    duration_s: float
    predicted_s: float  # period that hocketd listed last


def jacobi(directory: Path) -> list[str]:
    words = ["--system", str(directory / "system"), "--generate", str(SIZE), "--iterations", str(ITERATIONS)]
    words += ["--tolerance", "0", "--print-every", str(ITERATIONS)]
    return [*_launched("jacobi"), *words, "--checkpoint-every", str(EVERY), "--checkpoint-dir", str(directory)]


def s_ior(directory: Path) -> list[str]:
    words = ["-o", str(directory / "ior"), "-b", BLOCK, "-t", "1m", "-p", str(PHASES), "-d", str(SLEEP_S), "-w"]
    return [*_launched("s_ior"), *words]


def _launched(name: str) -> list[str]:
    return ["mpiexec", "-n", str(RANKS), str(paths.apps() / f"{name}-mpich")]


PROGRAMS = (Program("jacobi", jacobi, ITERATIONS // EVERY), Program("s_ior", s_ior, PHASES))


def emptied(directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    return directory


def observe(command: Sequence[str], name: str, phases: int, environment: dict[str, str]) -> Seen:
    """Run a command under a hocketd of its own. Raises HocketError if it fails, or does less I/O."""
    predicted_ns = 0
    with tempfile.TemporaryDirectory(prefix="hocket-bench-", dir="/tmp") as kept:
        with private_daemon(Path(kept), {}) as trace, Bus.connect(Path(kept) / "hocketd.sock") as bus:
            messages = Path(kept) / "messages"
            where = environment | {"HOCKET_DIR": kept}
            with messages.open("w") as file:
                process = subprocess.Popen(command, env=where, stdout=file, stderr=file, start_new_session=True)
            end_s = time.monotonic() + RUN_LIMIT_S
            try:
                while process.poll() is None and time.monotonic() < end_s:
                    for one in bus.list().applications:
                        predicted_ns = int(one["period_ns"]) if one["application"] == name else predicted_ns
                    time.sleep(LOOK_EVERY_S)
            finally:
                end_group(process)
            if process.returncode != 0:
                said = " ".join(messages.read_text().strip().splitlines()[-1:])
                raise HocketError(f"{' '.join(command)} ended with {process.returncode}: {said}")
        events = read_trace(trace).events
    seen = [event for event in events if event.type == "IO_PHASE" and event.application == name]
    bounds = [(int(one["start_ns"]), int(one["end_ns"])) for one in seen if not one.get("of_one_process")][-phases:]
    if len(bounds) < phases or predicted_ns == 0:
        raise HocketError(f"{name}: {len(bounds)} of {phases} I/O phases, predicted period {predicted_ns} ns")
    periods = [after[0] - before[0] for before, after in pairwise(bounds)]
    durations = [end - start for start, end in bounds]
    return Seen(median(periods) / 1e9, median(durations) / 1e9, predicted_ns / 1e9)


def compare(program: Program, repeat: int, directory: Path, kept: Path) -> bool:
    """Capture a program, run it and its emulation in turn, and report their I/O."""
    description = kept / f"{program.name}.toml"
    course = course_of(watch(program.command(emptied(directory)), quietly=True))
    runs = {group.run.processes: group.run for group in course}
    description.write_text(describe(f"{program.name}-emulated", runs, course)[0], encoding="utf-8")
    emulation = [*HOCKET, "emulate", str(description), "--dir", str(directory)]
    real: list[Seen] = []
    emulated: list[Seen] = []
    for number in range(repeat):
        for is_real in (True, False) if number % 2 == 0 else (False, True):
            run = [*HOCKET, "run", "--name", program.name, "--", *program.command(emptied(directory))]
            name = program.name if is_real else f"{program.name}-emulated"
            seen = observe(run if is_real else emulation, name, program.phases, dict(os.environ))
            (real if is_real else emulated).append(seen)
    figures_of = [("I/O period", "period_s", WITHIN), ("I/O duration", "duration_s", WITHIN)]
    figures_of += [("predicted I/O period", "predicted_s", PREDICTED_WITHIN)]
    good = [_tell(f"{program.name}, {name}", key, within, real, emulated) for name, key, within in figures_of]
    return all(good)


def _tell(case: str, key: str, within: float, real: Sequence[Seen], emulated: Sequence[Seen]) -> bool:
    values, references = ([getattr(one, key) for one in seen] for seen in (emulated, real))
    ratio = median(values) / median(references)
    more = {"least": 1 - within, "spread": [stdev(values), stdev(references)] if len(values) > 1 else [0.0, 0.0]}
    good = abs(ratio - 1) <= within
    return report(case, median(values), "s", median(references), 1 + within, good, runs=len(values), **more)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=REPEAT, help="runs of each (default: %(default)d)")
    parser.add_argument("--only", choices=[one.name for one in PROGRAMS], help="one application")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends started processes on the way out
    where = MEMORY if MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="hocket-bench-", dir="/tmp") as kept,
        tempfile.TemporaryDirectory(prefix="hocket-bench-", dir=where) as limited,
    ):
        # The clock of the device stays in `limited` when the files of a run are removed.
        os.environ |= Storage(BYTES_PER_S, Path(limited)).environment() | {"HOCKET_DIR": kept}
        chosen = [one for one in PROGRAMS if arguments.only in (None, one.name)]
        good = [compare(one, arguments.repeat, Path(limited) / "files", Path(kept)) for one in chosen]
    return 0 if all(good) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except HocketError as error:
        sys.exit(f"bench: emulator-io: {error}")
    except KeyboardInterrupt:
        sys.exit("bench: emulator-io: interrupted")
