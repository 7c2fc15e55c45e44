"""Runs Table 2's applications live: emulated malleable programs under a hocketd of their own.

Computing is timed: ranks sleep, so that two cores carry a hundred of them. Everything else is real: MPI, control
points, collective writes and their grants, the policy's decisions, and the processes that a resize starts. The storage
has a stated bandwidth for all writers together, and another one for each process (apps/limited_target).

hocketd knows the profile of a program by its name, so each application has a copy of the emulator with its own name.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import table2_scaled
from hocket import mpi, paths
from hocket.emulator.description import read_description
from hocket.emulator.record import read_record
from hocket.emulator.run import Launcher, find_launcher, prepare, settings_of
from hocket.errors import HocketError
from hocket.private_daemon import private_daemon
from hocket.process_group import end_group
from hocket.profile.store import Profile, Store, fingerprint_of
from hocket.reconfigure.runs import last_line
from hocket.toml_checks import Table
from hocket.trace import read_trace
from hocket.workload.runner import HOCKET
from table2_figures import Figures, figures_of

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "demo"))

import storage  # noqa: E402 (needs the path)
from errors import DemoError  # noqa: E402 (needs the path)

ACCESS = "fcfs"
MEMORY = Path("/dev/shm")
LOOK_S = 0.5  # between two looks at the programs
# The policy is put in force when each application has shown so many I/O phases. As in the paper, they begin with the
# sizes of Table 2 and are then expanded. A policy that is in force from the start would decide after a few iterations,
# when hocketd has seen no I/O of them.
KNOWN_PHASES, KNOWN_LIMIT_S = 2, 300
KNOWN_S = 35.0  # that this takes, about
# A resize starts all processes anew, in one world. With merge, MPICH sends messages between the worlds of old and new
# ranks through sockets, and only while both are in MPI: in half of the accesses a rank began its write when another one
# had ended its own, because a rank in a write moves no messages.
METHODS = {"HOCKET_SPAWN": "baseline", "HOCKET_SPAWN_STRATEGY": "plain", "HOCKET_WORLDS": "node"}


@dataclass(frozen=True)
class Window:
    """The times after the policy is put in force: first resizes, then what counts."""

    settle_s: float
    measured_s: float

    @property
    def length_s(self) -> float:
        return KNOWN_S + self.settle_s + self.measured_s


@dataclass(frozen=True)
class LiveRun:
    figures: Figures
    cpu_cores: float  # CPU time of all ranks over the time of their iterations


@dataclass(frozen=True)
class _Started:
    name: str
    process: subprocess.Popen
    record: Path
    messages: Path


def run(scenario: Table, policy: str, window: Window, kept: Path) -> LiveRun:
    """Run a scenario of table2_scaled under a policy, and keep the trace as the file `kept`.

    Raises HocketError if a program ends before the run does.
    """
    launcher = find_launcher(mpi.MPICH)
    with (
        tempfile.TemporaryDirectory(prefix="hocket-table2-", dir="/tmp") as runtime,  # sockets need short paths
        tempfile.TemporaryDirectory(prefix="hocket-table2-", dir=MEMORY) as files,
    ):
        programs = {one["name"]: _program(one["name"], launcher, Path(runtime)) for one in scenario["applications"]}
        store = _profiles(scenario, programs, Path(runtime))
        cores = table2_scaled.cores_of(scenario)
        settings = scenario["coordinator"] | {"policy": ACCESS, "cores": cores, "profiles": str(store)}
        with private_daemon(Path(runtime), settings) as trace, ExitStack() as stack:
            started = _start_all(scenario, programs, Path(runtime), Path(files), stack)
            _await_phases(started, trace)
            _put_in_force(f"{ACCESS}+{policy}", Path(runtime))
            _watch(started, window.settle_s + window.measured_s)
            until_ns = time.monotonic_ns()
        shutil.copyfile(trace, kept)
        since_ns = until_ns - round(window.measured_s * 1e9)
        records = [read_record(one.record) for one in started]
        iterating_s = max(sum(sum(each["mean_ns"]["iteration"]) for each in one.blocks) / 1e9 for one in records)
        cpu_s = sum(one.sum_s("cpu_ns") for one in records)
        return LiveRun(figures_of(read_trace(kept), scenario, since_ns, until_ns), cpu_s / iterating_s)


def _start_all(
    scenario: Table, programs: dict[str, Launcher], runtime: Path, files: Path, stack: ExitStack
) -> list[_Started]:
    """Start the programs, which end with the stack. MPICH leaves the shared memory of ranks that a signal has ended."""
    segments: set[Path] = set()
    stack.callback(lambda: [one.unlink(missing_ok=True) for one in segments])
    started = []
    for one in scenario["applications"]:
        began = _start(one, scenario, programs[one["name"]], runtime, files)
        stack.callback(end_group, began.process)
        started.append(began)
    stack.callback(lambda: segments.update(_segments_of(runtime)))
    return started


def _segments_of(runtime: Path) -> Iterator[Path]:
    """Yield the shared memory of the ranks that use this runtime directory."""
    mark = f"HOCKET_DIR={runtime}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0"):
                mapped = (process / "maps").read_text(errors="replace").split()
                yield from (Path(word) for word in mapped if word.startswith(f"{MEMORY}/mpich_shm_"))


def _await_phases(started: Sequence[_Started], trace: Path) -> None:
    """Wait until hocketd has seen the I/O phases of each application that its model needs."""
    deadline_s = time.monotonic() + KNOWN_LIMIT_S
    while time.monotonic() < deadline_s:
        seen = Counter(one.application for one in read_trace(trace).events if one.type == "IO_PHASE")
        if all(seen[one.name] >= KNOWN_PHASES for one in started):
            return
        _watch(started, LOOK_S)
    raise HocketError(f"an application has shown fewer than {KNOWN_PHASES} I/O phases in {KNOWN_LIMIT_S} s: {seen}")


def _put_in_force(policy: str, runtime: Path) -> None:
    command = [*HOCKET, "policy", "set", policy]
    done = subprocess.run(command, env=os.environ | {"HOCKET_DIR": str(runtime)}, capture_output=True, text=True)
    if done.returncode != 0:
        raise HocketError(last_line(done.stderr))


def _program(name: str, launcher: Launcher, directory: Path) -> Launcher:
    """Copy the emulator, with the libraries where it looks for them: in the directory above its own."""
    home = directory / "programs"
    (home / "apps").mkdir(parents=True, exist_ok=True)
    for library in launcher.program.parent.parent.glob("*.so*"):
        if not (home / library.name).exists():
            (home / library.name).symlink_to(library)
    copy = home / "apps" / name
    shutil.copy2(launcher.program, copy)
    return replace(launcher, program=copy)


def _profiles(scenario: Table, programs: dict[str, Launcher], directory: Path) -> Path:
    path = directory / "profiles.db"
    store, bandwidth = Store(path, write=True), table2_scaled.bandwidth_of(scenario)
    for one in scenario["applications"]:
        program = programs[one["name"]].program
        points = tuple(replace(point, measured_unix_s=time.time()) for point in table2_scaled.profile(one, bandwidth))
        store.put(Profile(program.name, fingerprint_of(program), mpi.MPICH, "as the scenario says", points))
    return path


def _start(application: Table, scenario: Table, launcher: Launcher, runtime: Path, files: Path) -> _Started:
    name = application["name"]
    kept = files / name
    kept.mkdir()
    path, record, messages = kept / "description.toml", kept / "record.jsonl", kept / "messages"
    path.write_text(table2_scaled.description(application), encoding="utf-8")
    described = read_description(path)
    target = files / "target"
    target.mkdir(exist_ok=True)
    environment = os.environ | mpi.MALLEABLE_SETTINGS[mpi.MPICH] | METHODS | _limits(scenario, application, target)
    environment |= settings_of(described, launcher, table2_scaled.cores_of(scenario)) | {"HOCKET_DIR": str(runtime)}
    environment.pop("HOCKET_SOCKET", None)
    words = [*HOCKET, "run", "--name", name, "--mpi", mpi.MPICH, "--"]
    words += prepare(described, launcher, target, record, kept)
    with messages.open("w") as said:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=environment,
            start_new_session=True,
        )
    return _Started(name, process, record, messages)


def _limits(scenario: Table, application: Table, target: Path) -> dict[str, str]:
    """Return the variables that give the storage its bandwidth, and each process of the application its own."""
    library = paths.prefix() / "lib" / "hocket" / "liblimited_target.so"
    try:
        limited = storage.limited(target, round(table2_scaled.bandwidth_of(scenario)), library, "")
    except DemoError as error:
        raise HocketError(str(error)) from error
    rate = round(table2_scaled.process_bytes_per_s(application))
    return limited.environment | {"HOCKET_LIMIT_PROCESS_BYTES_PER_S": str(rate)}


def _watch(started: Sequence[_Started], length_s: float) -> None:
    deadline_s = time.monotonic() + length_s
    while (left_s := deadline_s - time.monotonic()) > 0:
        for one in started:
            if one.process.poll() is not None:
                said = last_line(one.messages.read_text(errors="replace"))
                told = f"{one.name} ended with exit code {one.process.returncode}"
                raise HocketError(f"{told} before the run was over{': ' if said else ''}{said}")
        time.sleep(min(left_s, LOOK_S))
