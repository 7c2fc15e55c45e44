"""Runs of one application that writes through I/O servers, one of which may be loaded (CLARISSE, section V-B).

A run has a hocketd, its servers, and one MPI program. Two ranks write in small requests, so that a server handles
many of them in an operation and a delay of each counts as it does in the paper.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "demo"))

from mpi_launch import Mpi  # noqa: E402 (needs the path)

RANKS = 2
SERVERS = 3  # the fewest of which one can be seen to be slower than the others
DELAY_US = 512  # the paper's largest
BUFFER_KIB = 16  # of the file for all ranks: requests of 8 KiB
KIB = 2048  # of a rank in an operation
STRIPE_KIB = 1024  # of a file at one server, in rounds
LIMIT_S = 120
PREFIX = Path(os.environ.get("HOCKET_PREFIX", sys.prefix))
PROBE = REPO / "build" / "release" / "bench" / "elastic_probe-mpich"


@dataclass(frozen=True)
class Setup:
    """One kind of run. The load is on the last server, from operation `before` + 1 on; 0 µs: there is none."""

    delay_us: int = DELAY_US
    servers: int = SERVERS
    removal: bool = True  # hocketd may take the loaded server out
    operations: int = 40
    before: int = 10
    kib: int = KIB  # of a rank in an operation of the probe
    kernel: str = ""  # "vpic_io" or "vorpal_io" instead of the probe
    accesses: int = 1  # collective accesses of an operation in which a server has a part
    arguments: Sequence[str] = field(default_factory=tuple)  # of a kernel

    def requests(self) -> int:
        """Return the requests of an operation of the probe at the last server, which has the fewest."""
        stripes = RANKS * self.kib // STRIPE_KIB // self.servers
        return stripes * STRIPE_KIB * RANKS // BUFFER_KIB

    def command(self, mpi: Mpi, directory: Path) -> list[str]:
        if not self.kernel:
            return mpi.command(RANKS, PROBE, directory / "file", self.operations, self.kib, BUFFER_KIB)
        hint = f"hocket_buffer_size={BUFFER_KIB << 10}"
        words = ["--file", directory / "file", "--phases", self.operations, "--write", "--hint", hint, *self.arguments]
        return mpi.command(RANKS, mpi.app(self.kernel, PREFIX), *words)


@dataclass
class Run:
    """Seconds of each operation, and what hocketd saw."""

    before: list[float]
    slow: list[float]  # with the loaded server
    after: list[float]  # without it
    control_s: float  # at control points, for one operation: of the process with the longest time
    computed_s: float  # by hocketd, for one operation
    taken_out: list[str]  # servers, in this order
    whole_s: float  # of all operations


def computing_s(pid: int) -> float:
    """Return the processor time of a process so far."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) * 1e-9


@contextlib.contextmanager
def started(*command: object, **how) -> Iterator[subprocess.Popen]:
    """Start a daemon and yield it once it has reported its address."""
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True, **how) as process:
        try:
            if "listens on" not in (process.stdout.readline() if process.stdout else ""):
                raise SystemExit(f"bench: elastic: {command[0]} did not start")
            yield process
        finally:
            process.terminate()


def events(runtime: Path) -> list[dict]:
    """Return what hocketd's trace has so far; a line that is being written is left out."""
    found = []
    for trace in (runtime / "traces").glob("*.jsonl"):
        for line in trace.read_text().splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
    return found


def of_kind(told: list[dict], kind: str) -> list[dict]:
    return [event for event in told if kind in (event.get("in"), event.get("out"))]


def await_events(runtime: Path, kind: str, count: int) -> list[dict]:
    """Return the trace once it has so many events of a kind. hocketd writes it a little later than it receives them."""
    end = time.monotonic() + LIMIT_S
    while len(of_kind(seen := events(runtime), kind)) < count:
        if time.monotonic() > end:
            raise SystemExit(f"bench: elastic: hocketd has no {count} {kind} in its trace")
        time.sleep(0.05)
    return seen


@contextlib.contextmanager
def system(setup: Setup) -> Iterator[tuple[Path, Path, int]]:
    """Yield the runtime directory, the servers' directory, and hocketd's pid."""
    with contextlib.ExitStack() as stack:
        runtime = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hocket-elastic-", dir="/tmp")))
        served = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hocket-elastic-", dir=REPO / "build")))
        config = runtime / "hocket.toml"
        config.write_text("" if setup.removal else "[coordinator]\nslow_server = 0\n")
        daemon = stack.enter_context(started(PREFIX / "bin" / "hocketd", "--dir", runtime, "--config", config))
        environment = os.environ | {"HOCKET_DIR": str(runtime)}
        for number in range(1, setup.servers + 1):
            loaded = number == setup.servers and setup.delay_us > 0
            load = f"delay={setup.delay_us}us after={setup.before * setup.accesses + 1}"
            server = [PREFIX / "bin" / "hocket-server", "--dir", served, "--name", f"s{number}", "--threads", "1"]
            stack.enter_context(started(*server, *(["--inject", load] if loaded else []), env=environment))
        await_events(runtime, "SERVER", setup.servers)
        yield runtime, served, daemon.pid


def one_run(setup: Setup) -> Run:
    """Return the times of one run."""
    mpi = Mpi("mpich")
    with system(setup) as (runtime, served, pid):
        computed = computing_s(pid)
        told = {
            "HOCKET_IO": "hocket",
            "HOCKET_SOCKET": str(runtime / "hocketd.sock"),
            "HOCKET_JOB": "elastic",
            "LD_PRELOAD": str(PREFIX / "lib" / "hocket" / "libhocket-mpich.so"),
        }
        command = setup.command(mpi, served)
        command[1:1] = [word for pair in told.items() for word in ("-genv", *pair)]
        out = subprocess.run(
            command, env=mpi.environment(), capture_output=True, text=True, timeout=LIMIT_S, check=True
        ).stdout
        computed = (computing_s(pid) - computed) / setup.operations
        seen = await_events(runtime, "BYE", 1)  # of rank 0, which asks for all
    control_s, taken_out = longest_control_s(seen), [event["server"] for event in of_kind(seen, "SLOW_IO_SERVER")]
    if setup.kernel:
        seconds = json.loads(out.splitlines()[-1])["write_s"]
        # Half of the operations after the load begins are more than the removal takes.
        middle = setup.before + (len(seconds) - setup.before) // 2
        after = middle if taken_out else len(seconds)
        parts = (seconds[1 : setup.before], seconds[setup.before : after], seconds[after:])
    else:
        operations = [tuple(map(float, line.split())) for line in out.splitlines()]
        seconds = [duration for _, duration in operations]
        parts = split(operations, seen, setup)
    if len(seconds) != setup.operations:
        raise SystemExit(f"bench: elastic: {len(seconds)} of {setup.operations} operations were reported")
    return Run(*parts, control_s, computed, taken_out, sum(seconds))


def split(operations: list[tuple[float, float]], seen: list[dict], setup: Setup) -> tuple[list[float], ...]:
    """Return the seconds before the load, with the loaded server, and after the removal.

    An operation in which a map is adopted begins before the adoption and ends after it.
    """
    adopted = [event["time_ns"] * 1e-9 for event in of_kind(seen, "MAP_ADOPTED") if event["epoch"] > setup.servers]
    seconds = [duration for _, duration in operations]
    first = len(seconds)
    if adopted:
        first = next((i for i, (start, _) in enumerate(operations) if start > adopted[0]), first)
    first = max(first, setup.before)
    return seconds[2 : setup.before], seconds[setup.before : first], seconds[first:]


def longest_control_s(seen: list[dict]) -> float:
    """Return what an operation costs at its control point: the wait for the grant, which includes the answer.

    The paper takes the longest time of a process. The ranks that do not ask wait for the one that does. A new map comes
    with the numbers that ranks exchange before each operation anyway.
    """
    members: dict[int, tuple[float, int]] = {}
    for phase in of_kind(seen, "IO_PHASE"):
        wait_s, operations = members.get(phase["member"], (0.0, 0))
        members[phase["member"]] = (wait_s + phase["wait_ns"] * 1e-9, operations + phase["operations"])
    return max((wait_s / operations for wait_s, operations in members.values() if operations), default=0.0)
