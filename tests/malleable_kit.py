"""What the tests of malleability share: the probe, built against libhocket, run with a schedule of resizes."""

from __future__ import annotations

import contextlib
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
from conftest import descendants

# What Open MPI 5 needs to spawn with more ranks than cores, and for collective calls after it (docs/malleable.md).
OPENMPI = {
    "OMPI_MCA_coll": "^han",
    "OMPI_MCA_osc": "^ucx",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
LENGTH = 997  # of the probe's arrays: divided by no number of processes
FIRST = 2  # iteration of the first resize
APART = 2  # iterations from one to the next
AMPLE_S = 60  # HOCKET_RESIZE_MAX_S that does not end a resize on a busy machine
LARGE = 1 << 21  # elements, with which a redistribution takes some tenths of a second
NEW_MIB = 15  # of a process before data arrive in it
ARRIVED_MIB = 15  # more than that: data are on their way


def link_flags(prefix: Path, mpi: str) -> list[str]:
    """What pkg-config says about libhocket."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    command = ["pkg-config", "--cflags", "--libs", f"hocket-{mpi}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()


def schedule(sizes: list[int], apart: int = APART) -> str:
    """HOCKET_RESIZE for these sizes, one after the other."""
    return ",".join(f"{FIRST + apart * i}:{size}" for i, size in enumerate(sizes))


def every_pair(processes: int, first: int, seed: int) -> list[int]:
    """Sizes after `first` such that each size is followed by each other one exactly once (Hierholzer's circuit)."""
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
    """Where processes of a probe that has `setting` wait: the files of its PROBE_HOLD."""

    def __init__(self, directory: Path):
        self._directory = directory / "hold"
        self._directory.mkdir()
        self.setting = {"PROBE_HOLD": str(self._directory)}

    def at(self, *wheres: object) -> None:
        """From now on, who comes there waits."""
        for where in wheres:
            (self._directory / str(where)).touch()

    def release(self, where: object) -> None:
        (self._directory / str(where)).unlink(missing_ok=True)


@dataclass
class Probe:
    """tests/programs/malleable_probe.c for one MPI."""

    mpi: runtime_kit.Mpi
    program: Path

    def start(self, ranks: int, iterations: int, length: int = LENGTH, ms: int = 0, **settings: str) -> Running:
        settings |= OPENMPI if self.mpi.name == "openmpi" else {}
        command = [self.program, iterations, length, ms]
        return Running(self.mpi.start(command, settings, ranks=ranks, preload=""), self.program)

    def run(self, ranks: int, iterations: int, limit_s: float = 60, **how) -> runtime_kit.Run:
        return self.start(ranks, iterations, **how).ends(limit_s)

    def resized(self, ranks: int, sizes: list[int], *, limit_s: float = 60, **settings: str) -> runtime_kit.Run:
        """Checks a run whose resizes are done at the iterations of its schedule."""
        iterations = FIRST + APART * len(sizes)
        done = self.run(ranks, iterations, limit_s, HOCKET_RESIZE=schedule(sizes), **settings)
        steps = [(FIRST + APART * i, size) for i, size in enumerate(sizes)]
        check(done, [(0, ranks), *steps], iterations)
        return done

    def resized_in_background(self, ranks: int, sizes: list[int], *, limit_s: float = 60, **settings: str) -> None:
        """Checks a run whose resizes are begun by its schedule and done at some later control point."""
        settings |= {"HOCKET_RESIZE": schedule(sizes), "PROBE_RESIZES": str(len(sizes))}
        done = self.run(ranks, 10**6, limit_s, ms=1, **settings)
        steps = told(done)
        assert [size for _, size in steps] == [ranks, *sizes], f"{done.out}{done.err}"
        check(done, steps, steps[-1][0] + 2)


def told(done: runtime_kit.Run) -> list[tuple[int, int]]:
    """Iteration and number of processes at the start and after each resize; lines of two first ranks may be swapped."""
    return sorted(
        (int(i), int(n)) for i, n in re.findall(r"^(?:begin|iteration) (\d+) processes (\d+)", done.out, re.M)
    )


def ended_at(done: runtime_kit.Run) -> int:
    """The iteration after which it was told to end."""
    found = re.search(r"^ok (\d+) ", done.out, re.M)
    assert found, f"exit code {done.code}\n{done.out}{done.err}"
    return int(found[1])


def check(done: runtime_kit.Run, steps: list[tuple[int, int]], iterations: int, length: int = LENGTH) -> None:
    """The probe ended well after exactly these steps, and with the right sum."""
    said = f"exit code {done.code}\n{done.out}{done.err}"
    assert done.code == 0, said
    assert told(done) == steps, said
    total = length * (length - 1) // 2 + length * iterations
    assert f"ok {iterations} processes {steps[-1][1]} sum {total}" in done.out.splitlines(), said
    assert done.err == "", said


class Running:
    """A job whose lines are read while it runs."""

    def __init__(self, process: subprocess.Popen, program: Path):
        self.process = process
        self.program = program
        self._out = ""

    def reads(self, pattern: str, limit_s: float = 30) -> re.Match:
        """The first line of stdout with `pattern`, from here on kept for `ends`."""
        deadline = time.monotonic() + limit_s
        while not (found := re.search(pattern, self._out, re.M)):
            if not self._takes_in(max(0.0, deadline - time.monotonic())):
                self.kill()
                _, err = self.process.communicate(timeout=10)
                raise AssertionError(f"the job did not say {pattern!r} within {limit_s} s:\n{self._out}{err}")
        return found

    def has_said(self, pattern: str) -> bool:
        """Whether a line of stdout so far has `pattern`."""
        while self._takes_in(0):
            pass
        return re.search(pattern, self._out, re.M) is not None

    def _takes_in(self, limit_s: float) -> bool:
        """More of stdout, which is kept; False: nothing came, or it has ended."""
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
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def abandon(self) -> None:
        self.kill()
        self.ends()
        nothing_left(self.program)

    def pids(self) -> list[int]:
        """The program's processes below the launcher, oldest first."""
        return sorted((pid for pid in descendants(self.process.pid) if runs(pid, self.program)), key=started)

    def await_pids(self, condition: Callable[[list[int]], bool], what: str, limit_s: float = 30) -> list[int]:
        found: list[int] = []

        def look() -> bool:
            found[:] = self.pids()
            return condition(found)

        runtime_kit.wait_until(look, limit_s, f"{what}; processes {found}")
        return found


class OverError(Exception):
    """A resize was over, or out of time, before it was seen, on a busy machine."""


def amid_redistribution(probe: Probe, sizes: tuple[int, int], **settings: str) -> tuple[Running, list[int]]:
    """A job and its processes, oldest first, when data arrive in a target. At first it has two original ranks."""
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
    """Whether it is a process of this program, and no zombie."""
    try:
        executable = str(Path(f"/proc/{pid}/exe").readlink())  # a zombie has none: an error
    except OSError:
        return False
    return executable.removesuffix(" (deleted)") == str(program)


def started(pid: int) -> tuple[int, int]:
    """By which processes are put in the order of their starts: the kernel begins again at low numbers at times."""
    fields = runtime_kit.stat_fields(Path(f"/proc/{pid}"))
    return (int(fields[19]) if fields else 0, pid)


def cpu_s(pid: int) -> float:
    """Seconds of CPU that the process has used."""
    fields = runtime_kit.stat_fields(Path(f"/proc/{pid}"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """0 where the process is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / (1 << 20)
    except OSError:
        return 0.0


VICTIMS = {"first source": 0, "second source": 1, "last process": -1}


def dies_while_data_move(probe: Probe, sizes: tuple[int, int], victim: str, method: str, strategy: str) -> None:
    """The job breaks off."""
    how = {"HOCKET_REDISTRIBUTION": method, "HOCKET_REDISTRIBUTION_STRATEGY": strategy}

    def attempt(max_s: int) -> Running:
        job, pids = amid_redistribution(probe, sizes, HOCKET_RESIZE_MAX_S=str(max_s), **how)
        kill(job, pids[VICTIMS[victim]])
        return job

    breaks_off(attempt, [AMPLE_S] * 6)


def kill(job: Running, pid: int) -> None:
    """Kills a process amid a resize."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # it left: the resize was over
        job.abandon()
        raise OverError from None


def breaks_off(attempt: Callable[[int], Running], limits_s: list[int]) -> None:
    """A job breaks off, of which `attempt` kills a process amid a resize that has so many seconds. Again with the next
    limit, where a busy machine let the resize be over before."""
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
    """A job that ends with an error that is told, without wrong numbers, and leaves nobody behind."""
    done = job.ends(limit_s)
    said = f"exit code {done.code}\n{done.out}{done.err}"
    assert done.code != 0, said
    assert not re.search("^ok ", done.out, re.M), said
    # MPICH's launcher tells on stdout of a process that it started; of one that its MPI ended, that MPI alone.
    by_mpi = r"BAD TERMINATION|^Abort\(\d+\) on node|MPI_ERRORS_ARE_FATAL|^prterun (noticed|has exited|detected)"
    told_of = f"^hocket: |{by_mpi}"
    assert re.search(told_of, done.err + done.out, re.M), f"nothing was said: {said}"
    assert "should be" not in done.err, f"wrong numbers: {done.err}"
    nothing_left(job.program)
    return done


def nothing_left(program: Path, limit_s: float = 10) -> None:
    """No process of the program runs below this one, which adopts orphans."""

    def left() -> list[int]:
        return [pid for pid in descendants(os.getpid()) if runs(pid, program)]

    runtime_kit.wait_until(lambda: not left(), limit_s, f"the end of all processes of {program.name}: {left()}")
