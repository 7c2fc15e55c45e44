"""Samples of the memory, descriptors, and threads of a process that works for long, and a judgement of their growth."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

WARM_UP = 0.2  # part of the run in which caches, pools, and the allocator may still grow
READINGS = 5


@dataclass
class Sample:
    """What a process has at one moment."""

    memory_kib: float
    descriptors: float
    threads: float


# The largest growth that a whole run may show. An allocator returns memory late, hence the memory's bound. A bound
# below 1 means that not a single descriptor or thread may remain.
BOUNDS = Sample(memory_kib=2048, descriptors=0.5, threads=0.5)


def sample(pid: int) -> Sample:
    """Return what the process has when it is idle.

    A server notices later than its client that a connection has ended. So this takes the least of several readings.
    """
    readings = []
    for _ in range(READINGS):
        readings.append(astuple(read_sample(pid)))
        time.sleep(0.002)
    return Sample(*map(min, zip(*readings, strict=True)))


def read_sample(pid: int) -> Sample:
    process = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    descriptors = sum(1 for _ in (process / "fd").iterdir())
    return Sample(int(status["VmRSS"].split()[0]), descriptors, int(status["Threads"]))


def growth(values: Sequence[float]) -> float:
    """Return by how much a whole run grows, at the rate of what follows the warm-up.

    The rate is the slope of the line of least squares. The values are equally spaced over the run.
    """
    rest = values[round(len(values) * WARM_UP) :]
    middle, mean = (len(rest) - 1) / 2, sum(rest) / len(rest)
    squares = sum((i - middle) ** 2 for i in range(len(rest)))
    slope = sum((i - middle) * (value - mean) for i, value in enumerate(rest)) / squares
    return slope * (len(values) - 1)


def growths(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the growth of each quantity over a whole run."""
    return {one.name: growth([getattr(taken, one.name) for taken in samples]) for one in fields(Sample)}


def leaks(samples: Sequence[Sample]) -> list[str]:
    """Return a line for each quantity that grows beyond its bound."""
    return [
        f"{name} grow by {grown:.1f} over the run, from {getattr(samples[0], name)} to {getattr(samples[-1], name)}; "
        f"at most {getattr(BOUNDS, name)}"
        for name, grown in growths(samples).items()
        if grown > getattr(BOUNDS, name)
    ]


class Watch:
    """The samples of some processes over one run."""

    def __init__(self, pids: dict[str, int], total: int, samples: int = 50):
        self.pids = pids
        self.total = total
        self.every = max(1, total // samples)
        self.taken: dict[str, list[Sample]] = {name: [] for name in pids}

    def after(self, done: int) -> None:
        """Take a sample if one is due after `done` of the total."""
        if done // self.every >= len(next(iter(self.taken.values()))):
            for name, pid in self.pids.items():
                self.taken[name].append(sample(pid))

    def judge(self) -> None:
        """Print a line for each process. Fail if one of them leaks."""
        found = []
        for name, samples in self.taken.items():
            first, last = samples[round(len(samples) * WARM_UP)], samples[-1]
            grown = ", ".join(f"{key} {value:+.1f}" for key, value in growths(samples).items())
            print(f"soak: {name}: {self.total} done, {len(samples)} samples; growth: {grown}; {first} to {last}")
            found += [f"{name}: {leak}" for leak in leaks(samples)]
        assert not found, "\n".join(found)
