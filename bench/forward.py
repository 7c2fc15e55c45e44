"""`./dev bench forward`: programs under `hocket forward`, beside the same programs without it, in turn.

The servers run on the same machine and file system as the clients, so a forwarded byte is copied twice.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from figures import report

PROBE = Path(__file__).resolve().parent.parent / "build" / "release" / "bench" / "forward_probe"
ROUNDS = 11
LEAST_IN_MEMORY, LEAST_ON_DISK = 0.45, 0.95  # of the direct rate
MOST_CALL_NS = 100.0  # more for a call that is not forwarded
CLIENTS, MIB = 4, 1 << 20


def measured(words: Sequence[str], directory: Path, servers: int, *options: str) -> float:
    """Run the probe, forwarded if `servers` is not 0, and return what it prints. The options are of hocket forward."""
    command = [str(PROBE), *words, str(directory)]
    if servers > 0:
        forward = ["forward", "--servers", str(servers), "--mount", str(directory), *options, "--"]
        command = [sys.executable, "-m", "hocket.cli", *forward, *command]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return float(done.stdout)


def pairs(words: Sequence[str], directory: Path, servers: int) -> tuple[list[float], list[float]]:
    """Return what the probe says without and with forwarding, in pairs. The first pair does not count."""
    both = [(measured(words, directory, 0), measured(words, directory, servers)) for _ in range(ROUNDS + 1)][1:]
    return [direct for direct, _ in both], [forwarded for _, forwarded in both]


def rate(case: str, words: Sequence[str], directory: Path, servers: int, bound: float | None, moved: int) -> bool:
    """Report the rate in MB/s beside the direct one. The bound is for the median of the pairs' ratios."""
    direct_s, forwarded_s = pairs(words, directory, servers)
    ratios = sorted(one / other for one, other in zip(direct_s, forwarded_s, strict=True))
    share = median(ratios)
    value, reference = moved / median(forwarded_s) / 1e6, moved / median(direct_s) / 1e6
    spread = {"share_of_direct": share, "share_low": ratios[1], "share_high": ratios[-2]}
    return report("forward", case, value, "MB/s", reference, bound, bound is None or share >= bound, **spread)


def collected(case: str, words: Sequence[str], directory: Path, moved: int) -> bool:
    """Report the rate in MB/s of writes that are collected, beside synchronous and direct ones, in turn."""
    asked = ("--consistency", "close-to-open")
    rounds = [
        (
            measured(words, directory, 0),
            measured(words, directory, 1),
            measured(words, directory, 1, *asked),
        )
        for _ in range(ROUNDS + 1)
    ][1:]
    ratios = sorted(synchronous / late for _, synchronous, late in rounds)
    direct_s, synchronous_s, late_s = (median(column) for column in zip(*rounds, strict=True))
    more = {
        "of_synchronous": median(ratios),
        "of_synchronous_low": ratios[1],
        "of_synchronous_high": ratios[-2],
        "share_of_direct": median(direct / late for direct, _, late in rounds),
        "synchronous_us": synchronous_s / (moved / 4096) * 1e6,
        "collected_us": late_s / (moved / 4096) * 1e6,
        "direct_us": direct_s / (moved / 4096) * 1e6,
    }
    return report("forward", case, moved / late_s / 1e6, "MB/s", moved / synchronous_s / 1e6, None, True, **more)


def difference(case: str, words: Sequence[str], directory: Path, bound: float | None) -> bool:
    """Report how many nanoseconds more a call takes that is not forwarded."""
    direct_ns, with_ns = pairs(words, directory, 1)
    more = median(one - other for one, other in zip(with_ns, direct_ns, strict=True))
    return report("forward", case, more, "ns", median(direct_ns), bound, bound is None or more <= bound)


def cases(memory: Path, disk: Path) -> list[bool]:
    large = ["write", str(CLIENTS), str(MIB), "64"]
    small = ["write", "1", "4096", "20000"]
    return [
        rate("1 MiB, 4 clients, memory", [*large, "0", "0"], memory, 2, LEAST_IN_MEMORY, CLIENTS * 64 * MIB),
        rate("1 MiB, 4 clients, disk, O_DIRECT", [*large, "1", "0"], disk, 2, LEAST_ON_DISK, CLIENTS * 64 * MIB),
        rate("1 MiB, 4 clients, disk, fsync", [*large, "0", "1"], disk, 2, LEAST_ON_DISK, CLIENTS * 64 * MIB),
        rate("4 KiB, 1 client, memory", [*small, "0", "0"], memory, 1, None, 20000 * 4096),
        collected("4 KiB, 1 client, memory, close-to-open", [*small, "0", "0"], memory, 20000 * 4096),
        collected("4 KiB, 1 client, disk, close-to-open", [*small, "0", "0"], disk, 20000 * 4096),
        difference("a write elsewhere, more by", ["null", "2000000"], memory, MOST_CALL_NS),
        difference("open and close, more by", ["open", "50000"], memory, None),
    ]


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="hocket-bench-", dir="/dev/shm") as memory,
        tempfile.TemporaryDirectory(prefix="hocket-bench-", dir="/var/tmp") as disk,
        tempfile.TemporaryDirectory(prefix="hocket-bench-", dir="/tmp") as runtime,
    ):
        os.environ |= {"HOCKET_DIR": runtime, "XDG_DATA_HOME": runtime}  # curves of benchmarks are of no use later
        try:
            return 0 if all(cases(Path(memory), Path(disk))) else 1
        finally:
            subprocess.run([sys.executable, "-m", "hocket.cli", "daemon", "stop"], capture_output=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
