"""Measure if two writers disturb each other on this storage.

    probe.py DIRECTORY

It writes with fsync, alone and two at once, in interleaved pairs, and prints the result as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

MIB = 1 << 20
PAIRS = 5
WRITE_S = 0.25  # approximate time of a write alone …
MIN_MIB, MAX_MIB = 16, 256  # … within these bounds
CLEAR_RATIO = 1.5
CLEAR_SPREAD = 0.5  # of the median ratio
WRITER_LIMIT_S = 120


class ProbeError(Exception):
    """A failed measurement of the storage; the text says why."""


@dataclass(frozen=True)
class Probe:
    """Seconds of one writer alone, and of the slower of two at once, pair by pair. Each writes `mib` MiB and fsyncs."""

    mib: int
    alone_s: tuple[float, ...]
    together_s: tuple[float, ...]

    @property
    def bytes_per_s(self) -> float:
        """Return the median bandwidth of a writer alone."""
        return self.mib * MIB / median(self.alone_s)

    @property
    def ratios(self) -> list[float]:
        return [together / alone for alone, together in zip(self.alone_s, self.together_s, strict=True)]

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def spread(self) -> float:
        """Return the largest minus the smallest ratio."""
        return max(self.ratios) - min(self.ratios)

    @property
    def interferes_clearly(self) -> bool:
        return self.ratio >= CLEAR_RATIO and self.spread <= CLEAR_SPREAD * self.ratio

    def __str__(self) -> str:
        return (
            f"{self.bytes_per_s / 1e6:.0f} MB/s alone, two writers take {self.ratio:.2f} times as long, "
            f"in pairs {min(self.ratios):.2f} to {max(self.ratios):.2f}"
        )


def measure(directory: Path, pairs: int = PAIRS) -> Probe:
    """Measure the storage and remove the files. Raises ProbeError."""
    first_s = max(_run(directory, MIN_MIB, 1))
    mib = round(min(max(MIN_MIB * WRITE_S / first_s, MIN_MIB), MAX_MIB))
    alone, together = [], []
    for _ in range(pairs):
        alone += _run(directory, mib, 1)
        together.append(max(_run(directory, mib, 2)))
    return Probe(mib, tuple(alone), tuple(together))


def _run(directory: Path, mib: int, count: int) -> list[float]:
    """Return the seconds of each of `count` writers that started together."""
    files = [directory / f".probe-{os.getpid()}-{index}" for index in range(count)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([sys.executable, __file__, "--write", file, str(mib)], **pipes) for file in files]
    try:
        for writer in writers:
            writer.stdout.readline()  # it is ready
        for writer in writers:
            writer.stdin.write("go\n")
            writer.stdin.flush()
        return [float(writer.communicate(timeout=WRITER_LIMIT_S)[0]) for writer in writers]
    except (ValueError, OSError, subprocess.TimeoutExpired) as error:
        for writer in writers:
            writer.kill()
        said = [line for writer in writers for line in writer.communicate()[1].splitlines()]
        raise ProbeError(f"cannot measure the storage in {directory}: {said[-1] if said else error}") from error
    finally:
        for file in files:
            file.unlink(missing_ok=True)


def _write(path: str, mib: int) -> None:
    """Write as one writer: print "ready", wait for a line, and print the seconds of write and fsync."""
    block = os.urandom(MIB)
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.monotonic()
    for _ in range(mib):
        os.write(fd, block)
    os.fsync(fd)
    print(time.monotonic() - start)


def main() -> int:
    if len(sys.argv) == 4 and sys.argv[1] == "--write":
        _write(sys.argv[2], int(sys.argv[3]))
        return 0
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        print("usage: probe.py DIRECTORY", file=sys.stderr)
        return 2
    try:
        probe = measure(Path(sys.argv[1]))
    except ProbeError as error:
        print(f"probe: {error}", file=sys.stderr)
        return 1
    print(json.dumps(asdict(probe) | {"ratio": probe.ratio, "interferes_clearly": probe.interferes_clearly}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
