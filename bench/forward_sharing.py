"""`./dev bench forward-sharing`: what a small job keeps of a server beside a large one, and what merging saves.

Both jobs run under `hocket forward`, through one real server that is limited to a rate, so that it is saturated. The
schedulers take turns by `hocket servers scheduler`, in the same server and run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from figures import report
from hocket.bus import Bus

PROBE = Path(__file__).resolve().parent.parent / "build" / "release" / "bench" / "forward_probe"
HOCKET = (sys.executable, "-m", "hocket.cli")
ROUNDS = 5
LIMIT = 64 << 20  # bytes/s of the server
SECONDS = 4.0  # that are counted
START_S = 5.0  # until all clients write
LEAST_SHARE = 0.9  # of the fair share
LEAST_TOTAL = 0.9  # of what both jobs wrote under first in first out
STRIDED, STRIDED_BLOCK, STRIDED_BLOCKS = 16, 4096, 200  # clients, bytes, blocks of each


@dataclass(frozen=True)
class Job:
    clients: int
    block: int  # bytes of a write

    def __str__(self) -> str:
        return f"{self.clients} clients of {self.block >> 10} KiB"


@dataclass(frozen=True)
class Pair:
    """Two jobs that write at the same time, and the schedulers by which each should get half of the server."""

    small: Job
    large: Job
    schedulers: tuple[str, ...]


FAIR_PART = 1 / 2
# First in first out divides the server by the bytes that wait, so in both pairs the small job gets a ninth.
PAIRS = (
    Pair(Job(8, 128 << 10), Job(64, 128 << 10), ("job-fair", "wfq")),
    Pair(Job(16, 128 << 10), Job(16, 1 << 20), ("size-fair",)),
)


def hocket(*words: str) -> None:
    subprocess.run([*HOCKET, *words], check=True, capture_output=True, text=True, timeout=120)


def forward(directory: Path, name: str, *words: str) -> subprocess.Popen[str]:
    command = [*HOCKET, "forward", "--name", name, "--mount", str(directory), "--", str(PROBE), *words, str(directory)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def written(directory: Path, jobs: Mapping[str, Job]) -> dict[str, float]:
    """Run the jobs at the same time. Return the bytes/s of each."""
    begin_s = time.clock_gettime(time.CLOCK_MONOTONIC) + START_S
    when = (f"{begin_s:.3f}", f"{begin_s + SECONDS:.3f}")
    running = {
        name: forward(directory, name, "share", str(job.clients), str(job.block), *when) for name, job in jobs.items()
    }
    rates = {}
    for name, job in running.items():
        out, _ = job.communicate(timeout=120)
        if job.returncode != 0:
            raise SystemExit(f"the job '{name}' failed")
        rates[name] = int(out) / SECONDS
    return rates


def by_scheduler(
    directory: Path, jobs: Mapping[str, Job], schedulers: Sequence[str], first: int
) -> dict[str, dict[str, float]]:
    """Run the jobs under each scheduler in turn. Return the bytes/s of each job.

    `first`: which scheduler begins, another one in each round, because the machine may not be alike all the time.
    """
    found = {}
    begin = first % len(schedulers)
    for name in (*schedulers[begin:], *schedulers[:begin]):
        hocket("servers", "scheduler", name)
        found[name] = written(directory, jobs)
    return found


def shares(directory: Path) -> list[bool]:
    """Report what a small job keeps of its fair share under each scheduler, beside first in first out."""
    beside: list[list[dict[str, dict[str, float]]]] = [[] for _ in PAIRS]
    alone = []
    for number in range(ROUNDS):
        for pair, rounds in zip(PAIRS, beside, strict=True):
            jobs = {"small": pair.small, "large": pair.large}
            rounds.append(by_scheduler(directory, jobs, ("fifo", *pair.schedulers), number))
        alone.append(by_scheduler(directory, {"small": PAIRS[0].small}, ("fifo", "job-fair"), number))
    ok = [
        told
        for pair, rounds in zip(PAIRS, beside, strict=True)
        for scheduler in pair.schedulers
        for told in (share_of(scheduler, pair, rounds), total_of(scheduler, pair, rounds))
    ]
    full, by_fifo = (median(one[name]["small"] for one in alone) for name in ("job-fair", "fifo"))
    ok.append(
        report("forward-sharing", "job-fair, alone", full / 1e6, "MB/s", by_fifo / 1e6, 0.95, full >= 0.95 * by_fifo)
    )
    return ok


def share_of(scheduler: str, pair: Pair, rounds: Sequence[Mapping[str, Mapping[str, float]]]) -> bool:
    """Report the small job's part of what both wrote, beside its fair part."""
    ratios, by_fifo = (
        sorted(one[name]["small"] / sum(one[name].values()) / FAIR_PART for one in rounds)
        for name in (scheduler, "fifo")
    )
    value, case = median(ratios), f"{scheduler}, {pair.small} beside {pair.large}"
    spread = {"low": ratios[0], "high": ratios[-1]}
    return report(
        "forward-sharing", case, value, "of fair share", median(by_fifo), LEAST_SHARE, value >= LEAST_SHARE, **spread
    )


def total_of(scheduler: str, pair: Pair, rounds: Sequence[Mapping[str, Mapping[str, float]]]) -> bool:
    """Report what both jobs wrote together. A scheduler that leaves the server idle would be fair, too."""
    totals, by_fifo = ([sum(one[name].values()) for one in rounds] for name in (scheduler, "fifo"))
    ratios = sorted(one / other for one, other in zip(totals, by_fifo, strict=True))
    more = {"of_fifo": median(ratios), "low": ratios[0], "high": ratios[-1]}
    case = f"{scheduler}, both jobs, {pair.small} beside {pair.large}"
    value, reference = median(totals) / 1e6, median(by_fifo) / 1e6
    within = median(ratios) >= LEAST_TOTAL
    return report("forward-sharing", case, value, "MB/s", reference, LEAST_TOTAL, within, **more)


def system_calls() -> tuple[int, int]:
    """Return how many calls the server has carried out, and by how many system calls."""
    with Bus.connect() as bus:
        server = next(one for one in bus.list().servers if one["state"] == "up")
    return int(server["forwarded"]), int(server["system_calls"])


def strided(directory: Path, scheduler: str, words: Sequence[str]) -> tuple[float, float]:
    """Return the seconds of the strided writes of all clients, and the system calls of one of their calls."""
    hocket("servers", "scheduler", scheduler)
    before = system_calls()
    job = forward(directory, "strided", "strided", str(STRIDED), str(STRIDED_BLOCK), str(STRIDED_BLOCKS), *words)
    out, _ = job.communicate(timeout=300)
    time.sleep(1.5)  # until the server has reported
    after = system_calls()
    return float(out), (after[1] - before[1]) / (after[0] - before[0])


def merging(case: str, directory: Path, words: Sequence[str]) -> bool:
    """Report the rate of many clients that write one file in small pieces, merged and not."""
    merged, plain = [], []
    for _ in range(ROUNDS + 1):
        plain.append(strided(directory, "fifo", words))
        merged.append(strided(directory, "to-agg", words))
    moved = STRIDED * STRIDED_BLOCK * STRIDED_BLOCKS
    value = moved / median(one for one, _ in merged[1:]) / 1e6
    reference = moved / median(one for one, _ in plain[1:]) / 1e6
    ratios = sorted(other[0] / one[0] for one, other in zip(merged[1:], plain[1:], strict=True))
    calls = {"system_calls_each": median(each for _, each in merged[1:]), "low": ratios[0], "high": ratios[-1]}
    return report("forward-sharing", case, value, "MB/s", reference, None, True, **calls)


def with_server(directory: Path, *options: str) -> None:
    hocket("server", "start", "--dir", str(directory), *options)


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="hocket-bench-", dir="/dev/shm") as memory,
        tempfile.TemporaryDirectory(prefix="hocket-bench-", dir="/var/tmp") as disk,
        tempfile.TemporaryDirectory(prefix="hocket-bench-", dir="/tmp") as runtime,
    ):
        os.environ["HOCKET_DIR"] = runtime
        try:
            with_server(Path(memory), "--forward-limit", str(LIMIT), "--forward-threads", "1")
            ok = shares(Path(memory))
            hocket("server", "stop")
            with_server(Path(disk), "--forward-threads", "1")
            ok.append(merging("4 KiB strided, 16 clients, O_DIRECT, to-agg", Path(disk), ["1", "0"]))
            ok.append(merging("4 KiB strided, 16 clients, O_DSYNC, to-agg", Path(disk), ["0", "1"]))
            ok.append(merging("4 KiB strided, 16 clients, page cache, to-agg", Path(disk), ["0", "0"]))
            return 0 if all(ok) else 1
        finally:
            subprocess.run([*HOCKET, "server", "stop", "--now"], capture_output=True, check=False)
            subprocess.run([*HOCKET, "daemon", "stop"], capture_output=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
