"""`./dev bench elastic`: elastic collective I/O (CLARISSE, section V-B): hocketd takes out a server that becomes slow.

Four ranks make collective writes, one after the other, through four I/O servers. From some operation on, one server
takes 512 µs longer for each request. Figures are medians over the runs of the medians over a run's operations. The
benchmark reports operations after the removal of the slow server beside those before it became slow (bound 1.1), and
those in between. It also reports hocketd's computing time beside the time of an operation (bound 0.3 %).
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median, quantiles

import figures

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "demo"))

from mpi_launch import Mpi  # noqa: E402 (needs the path)

RUNS = 9
report = partial(figures.report, "elastic")
RANKS = 4
SERVERS = 4
MIB = 16  # of a rank in an operation
OPERATIONS = 60
BEFORE = 15  # operations before the server becomes slow
LIMIT_S = 120
PREFIX = Path(os.environ.get("HOCKET_PREFIX", sys.prefix))
PROBE = REPO / "build" / "release" / "bench" / "elastic_probe-mpich"


@dataclass
class Run:
    before: list[float]  # seconds of each operation
    slow: list[float]
    after: list[float]
    computed_s: float  # by hocketd, for one operation


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


def events(runtime: Path, kind: str) -> list[dict]:
    found = []
    for trace in (runtime / "traces").glob("*.jsonl"):
        for line in trace.read_text().splitlines():
            with contextlib.suppress(ValueError):  # a line that is being written
                event = json.loads(line)
                if kind in (event.get("in"), event.get("out")):
                    found.append(event)
    return found


def await_servers(runtime: Path) -> None:
    end = time.monotonic() + LIMIT_S
    while len(events(runtime, "SERVER")) < SERVERS:
        if time.monotonic() > end:
            raise SystemExit("bench: elastic: the servers did not reach hocketd")
        time.sleep(0.05)


def one_run() -> Run | None:
    """Return the times of one run, or None if another server or no server was taken out."""
    mpi = Mpi("mpich")
    with contextlib.ExitStack() as stack:
        runtime = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hocket-elastic-", dir="/tmp")))
        served = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hocket-elastic-", dir=REPO / "build")))
        daemon = stack.enter_context(started(PREFIX / "bin" / "hocketd", "--dir", runtime))
        environment = os.environ | {"HOCKET_DIR": str(runtime)}
        for number in range(1, SERVERS + 1):
            slow = ["--inject", f"delay=512us after={BEFORE + 1}"] if number == SERVERS else []
            server = [PREFIX / "bin" / "hocket-server", "--dir", served, "--name", f"s{number}", *slow]
            stack.enter_context(started(*server, env=environment))
        await_servers(runtime)
        computed = computing_s(daemon.pid)
        told = {
            "HOCKET_IO": "hocket",
            "HOCKET_SOCKET": str(runtime / "hocketd.sock"),
            "HOCKET_JOB": "elastic",
            "LD_PRELOAD": str(PREFIX / "lib" / "hocket" / "libhocket-mpich.so"),
        }
        command = mpi.command(RANKS, PROBE, served / "file", OPERATIONS, MIB)
        command[1:1] = [word for pair in told.items() for word in ("-genv", *pair)]
        out = subprocess.run(
            command, env=mpi.environment(), capture_output=True, text=True, timeout=LIMIT_S, check=True
        )
        computed = (computing_s(daemon.pid) - computed) / OPERATIONS
        taken_out = [event["server"] for event in events(runtime, "SLOW_IO_SERVER")]
        adopted = [event["time_ns"] * 1e-9 for event in events(runtime, "MAP_ADOPTED") if event["epoch"] > SERVERS]
    operations = [tuple(map(float, line.split())) for line in out.stdout.splitlines()]
    if taken_out[:1] != [f"s{SERVERS}"] or not adopted or len(operations) != OPERATIONS:
        return None
    # An operation in which a map is adopted begins before the adoption and ends after it.
    seconds = [duration for _, duration in operations]
    first_after = next((i for i, (start, _) in enumerate(operations) if start > adopted[0]), OPERATIONS)
    if first_after <= BEFORE or first_after >= OPERATIONS - 5:
        return None
    return Run(seconds[2:BEFORE], seconds[BEFORE:first_after], seconds[first_after:], computed)


def main() -> int:
    runs, failed = [], 0
    while len(runs) < RUNS and failed < RUNS:
        run = one_run()
        if run:
            runs.append(run)
        else:
            failed += 1
    if len(runs) < RUNS:
        raise SystemExit(f"bench: elastic: in {failed} runs the slow server was not the first one taken out")
    before = median(median(run.before) for run in runs)
    slow = median(median(run.slow) for run in runs)
    after = median(median(run.after) for run in runs)
    ratios = [median(run.after) / median(run.before) for run in runs]
    more = {"runs": len(runs), "runs_left_out": failed, "quartiles": quantiles(ratios, n=4)[::2]}
    most = 1.1
    case = "operation after the removal beside before"
    good = report(case, after, "s", before, most, after <= most * before, **more)
    until = median(len(run.slow) for run in runs)
    case = "operation with the slow server beside before"
    report(case, slow, "s", before, None, True, operations_until_removal=until)
    computed, most = median(run.computed_s for run in runs), 0.003
    case = "hocketd's computing for an operation"
    good &= report(case, computed, "s", before, most, computed <= most * before)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
