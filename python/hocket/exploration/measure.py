"""Measures patterns and programs through I/O servers."""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from hocket import paths
from hocket.errors import HocketError
from hocket.exploration.patterns import Pattern, Phase
from hocket.mpi import mpich_launcher
from hocket.process_group import run_limited

# The keys of hocket-replay in the order of the fields of Phase.
REPLAY_KEYS = (
    "layout", "request", "operation", "direct", "total", "seconds", "active", "rounds", "pause", "request_pause",
    "new_file"
)  # fmt: skip
assert len(REPLAY_KEYS) == len(fields(Phase))


@dataclass(frozen=True)
class Program:
    """A command that is measured. `group` processes stand for a node.

    In its words {dir} stands for the directory of its files, {nodes} and {processes} for its size. {apps} stands for
    the directory of hocket's MPI programs, and {mpiexec} for MPICH's launcher, which starts those called NAME-mpich.
    """

    name: str
    nodes: int
    processes: int
    command: tuple[str, ...]

    @property
    def group(self) -> int:
        return math.ceil(self.processes / self.nodes)

    def words(self, directory: Path, kept: Path) -> list[str]:
        """Return the command. The files that it accesses are in `directory`, others that it needs in `kept`."""
        return [_filled(word, self, directory) for word in self.command]


def command_of(subject: Pattern | Program, directory: Path, kept: Path | None = None) -> list[str]:
    """Return the command of a program, or that which makes the accesses of a pattern, with files in a directory.

    `kept` is for files that the command needs besides, by default the same directory. Raises HocketError if
    hocket-replay is not installed.
    """
    if isinstance(subject, Program):
        return subject.words(directory, kept or directory)
    program = paths.prefix() / "libexec" / "hocket" / "hocket-replay"
    if not program.exists():
        raise HocketError(f"no hocket-replay at {program}; is hocket built and installed? (HOCKET_PREFIX says where)")
    return [str(program), str(subject.processes), str(directory), *map(_phase_word, subject.phases)]


def _filled(word: str, program: Program, directory: Path) -> str:
    places = {"{dir}": directory, "{nodes}": program.nodes, "{processes}": program.processes, "{apps}": paths.apps()}
    for place, value in places.items():
        word = word.replace(place, str(value))
    # The launcher is looked for only if it is needed: not every machine has one.
    return word.replace("{mpiexec}", mpich_launcher()) if "{mpiexec}" in word else word


def _phase_word(phase: Phase) -> str:
    values = zip(REPLAY_KEYS, astuple(phase), strict=True)
    return ",".join(f"{key}={int(value) if isinstance(value, bool) else value}" for key, value in values if value)


def replayed(out: str, name: str) -> tuple[int, float]:
    """Return the bytes and seconds that hocket-replay printed. Raises HocketError."""
    try:
        told = json.loads(out)
        return int(told["bytes"]), float(told["seconds"])
    except (ValueError, KeyError, TypeError) as error:
        raise HocketError(f"hocket-replay printed {out[:80]!r} for the pattern '{name}'") from error


@dataclass(frozen=True)
class Ran:
    """What a run moved, and its makespan. Of a program the bytes are those that went through servers."""

    bytes: int
    seconds: float
    processes: int  # that moved them; 0: not known


def measure(subject: Pattern | Program, servers: int, directory: Path, environment: Mapping[str, str]) -> Ran:
    """Run it through servers. The makespan of a program is its run time. Raises HocketError if the run fails."""
    with (
        tempfile.TemporaryDirectory(prefix="hocket-explore-", dir=directory) as files,
        tempfile.TemporaryDirectory(prefix="hocket-") as kept,
    ):
        command = command_of(subject, Path(files), Path(kept))
        out, ran = _run(subject, command, servers, directory, environment)
    return ran if isinstance(subject, Program) else Ran(*replayed(out, subject.name), subject.processes)


def _run(
    subject: Pattern | Program, command: Sequence[str], servers: int, directory: Path, environment: Mapping[str, str]
) -> tuple[str, Ran]:
    """Run the command, and return what it printed, and what was forwarded. Without servers nobody counts that."""
    with tempfile.TemporaryDirectory(prefix="hocket-") as name:
        counts = Path(name) / "counts.json"
        words = list(command)
        if servers > 0:
            how = ["--mount", str(directory), "--servers", str(servers), "--counts", str(counts)]
            how += ["--group", str(subject.group)]
            how += ["--curves", str(Path(name) / "curves.toml")]  # what is measured here is stored by the caller
            words = [sys.executable, "-m", "hocket.cli", "forward", *how, "--", *words]
        began_s = time.monotonic()
        code, out, err = run_limited(words, environment, None)
        seconds = time.monotonic() - began_s
        if code != 0:
            said = err.strip().splitlines()[-1:]
            raise HocketError(f"{subject.name} failed with exit code {code}: {' '.join(said)}")
        if servers == 0:
            return out, Ran(0, seconds, 0)
        told = json.loads(counts.read_text(encoding="utf-8"))
    if not told:
        raise HocketError(f"{subject.name} ran directly: {err.strip()}")
    # The time of the program alone: `hocket forward` itself takes some.
    return out, Ran(told["bytes"], told["seconds"], told["processes"])
