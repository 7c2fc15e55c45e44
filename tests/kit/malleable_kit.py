"""Shared by the tests of malleability: the probe, built against libhocket and run with a schedule of resizes."""

from __future__ import annotations

import os
import random
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import runtime_kit
from hocket.process_group import signal_group
from processes import descendants

# Open MPI 5 needs these to spawn more ranks than cores, and for collective calls after that (docs/malleable.md).
OPENMPI = {
    "OMPI_MCA_coll": "^han",
    "OMPI_MCA_osc": "^ucx",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
LENGTH = 997  # length of the probe's arrays; no number of processes divides it
FIRST = 2  # iteration of the first resize
APART = 2  # iterations between two resizes
AMPLE_S = 60  # HOCKET_RESIZE_MAX_S that does not end a resize on a busy machine
LARGE = 1 << 21  # number of elements whose redistribution takes some tenths of a second
NEW_MIB = 15  # resident memory of a new process before data arrive in it
ARRIVED_MIB = 15  # growth of resident memory that shows that data are arriving


def link_flags(prefix: Path, mpi: str) -> list[str]:
    """Return the flags that pkg-config gives for libhocket.

    The prefix of MPICH may hold the headers of another hocket, which its compiler would find first.
    """
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    command = ["pkg-config", "--cflags", "--libs", f"hocket-{mpi}"]
    flags = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
    has_mpi = (prefix / "include" / "mpi.h").exists()
    return flags if has_mpi else ["-I" if flag == "-isystem" else flag for flag in flags]


def schedule(sizes: list[int], apart: int = APART) -> str:
    """Return the HOCKET_RESIZE that makes these resizes one after the other."""
    return ",".join(f"{FIRST + apart * i}:{size}" for i, size in enumerate(sizes))


def every_pair(processes: int, first: int, seed: int) -> list[int]:
    """Return sizes after `first` in which each other size follows each size exactly once (Hierholzer's circuit)."""
    chance = random.Random(seed)
    ahead = {a: [b for b in range(1, processes + 1) if b != a] for a in range(1, processes + 1)}
    for sizes in ahead.values():
        chance.shuffle(sizes)
    path, circuit = [first], []
    while path:
        if ahead[path[-1]]:
            path.append(ahead[path[-1]].pop())
        else:
            circuit.append(path.pop())
    return circuit[::-1][1:]


class Hold:
    """Holds processes of a probe started with `setting`, at the places named by the files of its PROBE_HOLD."""

    def __init__(self, directory: Path):
        self._directory = directory / "hold"
        self._directory.mkdir()
        self.setting = {"PROBE_HOLD": str(self._directory)}

    def at(self, *wheres: object) -> None:
        """From now on, hold each process that arrives at one of these places."""
        for where in wheres:
            (self._directory / str(where)).touch()

    def release(self, where: object) -> None:
        (self._directory / str(where)).unlink(missing_ok=True)


@dataclass
class Probe:
    """The program tests/programs/malleable_probe.c, built for one MPI."""

    mpi: runtime_kit.Mpi
    program: Path

    def start(self, ranks: int, iterations: int, length: int = LENGTH, ms: int = 0, **settings: str) -> Running:
        settings |= OPENMPI if self.mpi.name == "openmpi" else {}
        command = [self.program, iterations, length, ms]
        return Running(self.mpi.start(command, settings, ranks=ranks, preload=""), self.program)

    def run(self, ranks: int, iterations: int, limit_s: float = 60, **how) -> runtime_kit.Run:
        return self.start(ranks, iterations, **how).ends(limit_s)

    def resized(self, ranks: int, sizes: list[int], *, limit_s: float = 60, **settings: str) -> runtime_kit.Run:
        """Check a run that completes each resize at the iteration its schedule names."""
        iterations = FIRST + APART * len(sizes)
        done = self.run(ranks, iterations, limit_s, HOCKET_RESIZE=schedule(sizes), **settings)
        steps = [(FIRST + APART * i, size) for i, size in enumerate(sizes)]
        check(done, [(0, ranks), *steps], iterations)
        return done

    def resized_in_background(self, ranks: int, sizes: list[int], *, limit_s: float = 60, **settings: str) -> None:
        """Check a run that starts its resizes by its schedule and completes each at some later control point."""
        settings |= {"HOCKET_RESIZE": schedule(sizes), "PROBE_RESIZES": str(len(sizes))}
        done = self.run(ranks, 10**6, limit_s, ms=1, **settings)
        steps = told(done)
        assert [size for _, size in steps] == [ranks, *sizes], f"{done.out}{done.err}"
        check(done, steps, steps[-1][0] + 2)


def told(done: runtime_kit.Run) -> list[tuple[int, int]]:
    """Return iteration and number of processes at the start and after each resize.

    They are sorted, because the lines of two successive first ranks may be swapped.
    """
    return sorted(
        (int(i), int(n)) for i, n in re.findall(r"^(?:begin|iteration) (\d+) processes (\d+)", done.out, re.M)
    )


def ended_at(done: runtime_kit.Run) -> int:
    """Return the iteration at which the probe reports that it ended."""
    found = re.search(r"^ok (\d+) ", done.out, re.M)
    assert found, f"exit code {done.code}\n{done.out}{done.err}"
    return int(found[1])


def check(done: runtime_kit.Run, steps: list[tuple[int, int]], iterations: int, length: int = LENGTH) -> None:
    """Check that the probe ended without error after exactly these steps and with the right sum."""
    said = f"exit code {done.code}\n{done.out}{done.err}"
    assert done.code == 0, said
    assert told(done) == steps, said
    total = length * (length - 1) // 2 + length * iterations
    assert f"ok {iterations} processes {steps[-1][1]} sum {total}" in done.out.splitlines(), said
    assert done.err == "", said


class Running:
    """A job whose output the test reads while the job runs."""

    def __init__(self, process: subprocess.Popen, program: Path):
        self.process = process
        self.program = program
        self._out = ""

    def reads(self, pattern: str, limit_s: float = 30) -> re.Match:
        """Wait until stdout has a match of `pattern`, and return the first; the output is kept for `ends`."""
        deadline = time.monotonic() + limit_s
        while not (found := re.search(pattern, self._out, re.M)):
            if not self._takes_in(max(0.0, deadline - time.monotonic())):
                self.kill()
                _, err = self.process.communicate(timeout=10)
                raise AssertionError(f"the job did not say {pattern!r} within {limit_s} s:\n{self._out}{err}")
        return found

    def has_said(self, pattern: str) -> bool:
        """Return True if stdout so far has a match of `pattern`."""
        while self._takes_in(0):
            pass
        return re.search(pattern, self._out, re.M) is not None

    def _takes_in(self, limit_s: float) -> bool:
        """Read and keep more of stdout. Return False if nothing arrived within the limit, or if stdout has ended."""
        out = self.process.stdout.fileno()
        readable = select.select([out], [], [], limit_s)[0]
        chunk = os.read(out, 65536).decode() if readable else ""
        self._out += chunk
        return bool(chunk)

    def ends(self, limit_s: float = 60) -> runtime_kit.Run:
        done = runtime_kit.finish(self.process, limit_s)
        done.out = self._out + done.out
        return done

    def kill(self) -> None:
        signal_group(self.process, signal.SIGKILL)

    def abandon(self) -> None:
        self.kill()
        self.ends()
        nothing_left(self.program)

    def pids(self) -> list[int]:
        """Return the program's processes below the launcher, oldest first."""
        return sorted((pid for pid in descendants(self.process.pid) if runs(pid, self.program)), key=started)

    def await_pids(self, condition: Callable[[list[int]], bool], what: str, limit_s: float = 30) -> list[int]:
        found: list[int] = []

        def look() -> bool:
            found[:] = self.pids()
            return condition(found)

        runtime_kit.wait_until(look, limit_s, f"{what}; processes {found}")
        return found


class OverError(Exception):
    """A resize ended, or exceeded its time limit, before the test could observe it on a busy machine."""


def amid_redistribution(probe: Probe, sizes: tuple[int, int], **settings: str) -> tuple[Running, list[int]]:
    """Return a job and its processes, oldest first, at the time when data arrive in a destination rank.

    The job starts with two original ranks.
    """
    before, after = sizes
    settings |= {"HOCKET_RESIZE": f"3:{after}"} | ({"HOCKET_PROCESSES": str(before)} if before != 2 else {})
    job = probe.start(2, 10**6, length=LARGE, ms=1, **settings)
    job.reads(f"^begin 0 processes {before}")
    usual_mib = resident_mib(job.pids()[0]) if after < before else NEW_MIB

    def under_way(condition: bool) -> bool:
        if not condition and (job.has_said("^iteration") or job.process.poll() is not None):
            job.abandon()
            raise OverError
        return condition

    pids = job.await_pids(lambda found: under_way(len(found) == max(sizes)), f"{max(sizes)} processes")
    target = pids[0] if after < before else pids[before]
    full_mib = usual_mib + ARRIVED_MIB
    runtime_kit.wait_until(lambda: under_way(resident_mib(target) > full_mib), 2 * AMPLE_S, f"data arrive in {target}")
    return job, pids


def runs(pid: int, program: Path) -> bool:
    """Return True if the process runs this program and is no zombie."""
    try:
        executable = str(Path(f"/proc/{pid}/exe").readlink())  # raises OSError for a zombie, which has no executable
    except OSError:
        return False
    return executable.removesuffix(" (deleted)") == str(program)


def started(pid: int) -> tuple[int, int]:
    """Return the key that sorts processes by start time: process ids wrap around to low numbers."""
    fields = runtime_kit.stat_fields(Path(f"/proc/{pid}"))
    return (int(fields[19]) if fields else 0, pid)


def cpu_s(pid: int) -> float:
    """Return the CPU time that the process has used, in seconds."""
    fields = runtime_kit.stat_fields(Path(f"/proc/{pid}"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """Return the resident memory of the process in MiB, or 0 if the process is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / (1 << 20)
    except OSError:
        return 0.0


VICTIMS = {"first source": 0, "second source": 1, "last process": -1}


def dies_while_data_move(probe: Probe, sizes: tuple[int, int], victim: str, method: str, strategy: str) -> None:
    """Check that the job aborts when `victim` dies during the redistribution."""
    how = {"HOCKET_REDISTRIBUTION": method, "HOCKET_REDISTRIBUTION_STRATEGY": strategy}

    def attempt(max_s: int) -> Running:
        job, pids = amid_redistribution(probe, sizes, HOCKET_RESIZE_MAX_S=str(max_s), **how)
        kill(job, pids[VICTIMS[victim]])
        return job

    breaks_off(attempt, [AMPLE_S] * 6)


def kill(job: Running, pid: int) -> None:
    """Kill a process during a resize."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # the process left: the resize has ended
        job.abandon()
        raise OverError from None


def breaks_off(attempt: Callable[[int], Running], limits_s: list[int]) -> None:
    """Check that the job aborts after `attempt` has killed one of its processes during a resize.

    `attempt` gets the time limit of the resize in seconds. On a busy machine the resize may end before the kill; then
    the check repeats with the next limit.
    """
    said = ""
    for max_s in limits_s:
        try:
            done = broken(attempt(max_s))
        except OverError:
            continue
        if not re.search("^iteration", said := done.out, re.M):
            return
    raise AssertionError(f"each time the resize was over before the process was killed:\n{said}")


def broken(job: Running, limit_s: float = 90) -> runtime_kit.Run:
    """Check that the job ends with a reported error, without wrong numbers, and leaves no process behind."""
    done = job.ends(limit_s)
    said = f"exit code {done.code}\n{done.out}{done.err}"
    assert done.code != 0, said
    assert not re.search("^ok ", done.out, re.M), said
    # MPICH's launcher reports on stdout the death of a process that it started. If the MPI of a process ended it, only
    # that MPI reports it.
    by_mpi = r"BAD TERMINATION|^Abort\(\d+\) on node|MPI_ERRORS_ARE_FATAL|^prterun (noticed|has exited|detected)"
    told_of = f"^hocket: |{by_mpi}"
    assert re.search(told_of, done.err + done.out, re.M), f"nothing was said: {said}"
    assert "should be" not in done.err, f"wrong numbers: {done.err}"
    nothing_left(job.program)
    return done


def nothing_left(program: Path, limit_s: float = 10) -> None:
    """Wait until no process of the program runs below this process, which adopts orphans."""

    def left() -> list[int]:
        return [pid for pid in descendants(os.getpid()) if runs(pid, program)]

    runtime_kit.wait_until(lambda: not left(), limit_s, f"the end of all processes of {program.name}: {left()}")
