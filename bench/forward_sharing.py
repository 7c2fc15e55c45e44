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
from pathlib import Path
from statistics import median

from figures import report
from hocket.bus import Bus

PROBE = Path(__file__).resolve().parent.parent / "build" / "release" / "bench" / "forward_probe"
HOCKET = (sys.executable, "-m", "hocket.cli")
ROUNDS = 5
SMALL, LARGE = 8, 64  # clients
BLOCK = 128 << 10
LIMIT = 64 << 20  # bytes/s of the server
SECONDS = 4.0  # that are counted
START_S = 5.0  # until all clients write
LEAST_SHARE = 0.9  # of the fair share
# The fair share of the small job, as a part of the server.
FAIR_PARTS = {"job-fair": 1 / 2, "wfq": 1 / 2, "size-fair": SMALL / (SMALL + LARGE)}
STRIDED, STRIDED_BLOCK, STRIDED_BLOCKS = 16, 4096, 200  # clients, bytes, blocks of each


def hocket(*words: str) -> None:
    subprocess.run([*HOCKET, *words], check=True, capture_output=True, text=True, timeout=120)


def forward(directory: Path, name: str, *words: str) -> subprocess.Popen[str]:
    command = [*HOCKET, "forward", "--name", name, "--mount", str(directory), "--", str(PROBE), *words, str(directory)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def written(directory: Path, jobs: Mapping[str, int]) -> dict[str, float]:
    """Run jobs of so many clients at the same time. Return the bytes/s of each."""
    begin_s = time.clock_gettime(time.CLOCK_MONOTONIC) + START_S
    when = (f"{begin_s:.3f}", f"{begin_s + SECONDS:.3f}")
    running = {
        name: forward(directory, name, "share", str(clients), str(BLOCK), *when) for name, clients in jobs.items()
    }
    rates = {}
    for name, job in running.items():
        out, _ = job.communicate(timeout=120)
        if job.returncode != 0:
            raise SystemExit(f"the job '{name}' failed")
        rates[name] = int(out) / SECONDS
    return rates


def shares(directory: Path) -> list[bool]:
    """Report what the small job keeps of its fair share under each scheduler, beside first in first out."""
    kept: dict[str, list[float]] = {name: [] for name in ("fifo", *FAIR_PARTS)}
    alone: dict[str, list[float]] = {name: [] for name in ("fifo", "job-fair")}
    totals = []
    for _ in range(ROUNDS):
        for name, values in kept.items():
            hocket("servers", "scheduler", name)
            rates = written(directory, {"small": SMALL, "large": LARGE})
            total = sum(rates.values())
            totals.append(total)
            values.append(rates["small"] / total)
        for name, values in alone.items():
            hocket("servers", "scheduler", name)
            values.append(written(directory, {"small": SMALL})["small"])
    ok = []
    for name, part in FAIR_PARTS.items():
        ratios = sorted(one / part for one in kept[name])
        spread = {"low": ratios[0], "high": ratios[-1], "total_bytes_per_s": median(totals)}
        value, by_fifo = median(ratios), median(kept["fifo"]) / part
        case = f"{name}, {SMALL} clients beside {LARGE}"
        ok.append(
            report(
                "forward-sharing", case, value, "of fair share", by_fifo, LEAST_SHARE, value >= LEAST_SHARE, **spread
            )
        )
    full, by_fifo = median(alone["job-fair"]), median(alone["fifo"])
    ok.append(
        report("forward-sharing", "job-fair, alone", full / 1e6, "MB/s", by_fifo / 1e6, 0.95, full >= 0.95 * by_fifo)
    )
    return ok


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
