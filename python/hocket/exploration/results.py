"""The runs of an exploration: a file of lines of JSON, which grows by one with each run, and what follows from them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from hocket.run_file import RunFile

MB = 1e6


@dataclass(frozen=True)
class Planned:
    """One run: what (the name of a pattern), through how many servers, and for which time."""

    name: str
    servers: int
    repetition: int


@dataclass(frozen=True)
class Measured:
    """What a run moved, and its makespan at the client."""

    run: Planned
    bytes: int
    seconds: float
    processes: int = 0  # of a program, which moved that; 0: not known

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / self.seconds


def plan(names: Sequence[str], servers: Sequence[int], repetitions: int, seed: int) -> list[Planned]:
    """Return all runs: each repetition has every pattern and number of servers once, in random order."""
    generator = random.Random(seed)
    runs = []
    for repetition in range(repetitions):
        round_ = [Planned(name, count, repetition) for name in names for count in servers]
        generator.shuffle(round_)
        runs += round_
    return runs


class Results(RunFile[Measured]):
    """The runs of an exploration, in a file."""

    def __init__(self, path: Path, about: str) -> None:
        super().__init__(path, "pattern", about, _run_of, _fields_of)

    def missing(self, planned: Iterable[Planned]) -> list[Planned]:
        done = {one.run for one in self.runs}
        return [one for one in planned if one not in done]

    def rates(self, name: str) -> dict[int, list[float]]:
        """Return the bandwidths of a pattern, in bytes/s, by number of servers."""
        found: dict[int, list[float]] = {}
        for one in self.runs:
            if one.run.name == name:
                found.setdefault(one.run.servers, []).append(one.bytes_per_s)
        return dict(sorted(found.items()))


def curve(rates: dict[int, list[float]]) -> dict[int, float]:
    """Return the median bandwidth by number of servers, in MB/s."""
    return {servers: median(values) / MB for servers, values in rates.items()}


def jobs_text(jobs: Iterable[tuple[str, int, int, dict[int, float]]]) -> str:
    """Return a file for 'hocket arbitrate' with these names, nodes, processes, and curves."""
    text = ""
    for name, nodes, processes, bandwidth in jobs:
        listed = ", ".join(f"{servers} = {value:.9g}" for servers, value in bandwidth.items())
        text += f"[[job]]\nname = {json.dumps(name)}\nnodes = {nodes}\nprocesses = {processes}\n"
        text += f"bandwidth_mb_s = {{ {listed} }}\n\n"
    return text


def _run_of(fields: dict) -> Measured:
    run = Planned(fields["name"], fields["servers"], fields["repetition"])
    return Measured(run, int(fields["bytes"]), float(fields["seconds"]), int(fields.get("processes", 0)))


def _fields_of(one: Measured) -> dict:
    return {**asdict(one.run), "bytes": one.bytes, "seconds": one.seconds, "processes": one.processes}
