"""Reads what a job runs: a pattern of accesses, a command, or the description of an application. Checks each value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hocket.arbitration.jobs import Job
from hocket.emulator.description import read_description
from hocket.emulator.record import Record, read_record
from hocket.emulator.run import find_launcher, prepare, settings_of
from hocket.errors import UsageError
from hocket.exploration.measure import Program
from hocket.exploration.patterns import MOST_PHASES, MOST_PROCESSES, PHASE_KEYS, Pattern, Phase, phase_of
from hocket.toml_checks import Table, only, text

KINDS = ("command", "pattern", "emulate")
# A job moves a known number of bytes, so its phases have no time limit.
JOB_PHASE_KEYS = tuple(key for key in PHASE_KEYS if key != "seconds")
PROCESSES = "{processes}"  # stands for the number in a command
RECORD = "record.jsonl"  # of an emulated job


@dataclass(frozen=True)
class Emulated(Program):
    """The description of an application, which `hocket emulate` runs."""

    description: Path

    def words(self, directory: Path, kept: Path) -> list[str]:
        settings, words = self.started_with(self.processes, self.processes, directory, kept)
        return ["env", *(f"{key}={value}" for key, value in settings.items()), *words]

    def started_with(self, size: int, most: int, directory: Path, kept: Path) -> tuple[dict[str, str], list[str]]:
        """Return the variables and the launcher's command that start it with `size` processes.

        It may grow to `most`. Its plan and record are in `kept`. Raises HocketError.
        """
        description, launcher = read_description(self.description, size), find_launcher(None)
        words = prepare(description, launcher, directory, kept / RECORD, kept)
        return settings_of(description, launcher, most), words

    @staticmethod
    def record(kept: Path) -> Record:
        """Return what the emulator has recorded of a run."""
        return read_record(kept / RECORD)


Subject = Pattern | Program


def subject_of(table: Table, job: Job, directory: Path, where: str) -> Subject:
    """Return what a job runs. Paths of descriptions are relative to `directory`. Raises UsageError."""
    given = [kind for kind in KINDS if kind in table]
    if len(given) != 1:
        has = f"both {' and '.join(given)}" if given else "neither command nor pattern nor emulate"
        raise UsageError(f"{where}: it has {has}; give one")
    if given == ["pattern"]:
        return _pattern(table["pattern"], job, where)
    if given == ["command"]:
        return Program(job.name, job.nodes, job.processes, _command(table["command"], where))
    path = directory / text(table, "emulate", where)
    if not path.is_file():
        raise UsageError(f"{where}: emulate = {table['emulate']!r}: there is no file {path}")
    read_description(path, job.processes)  # its mistakes are named before anything runs
    command = ("hocket", "emulate", str(path), "-n", PROCESSES)
    return Emulated(job.name, job.nodes, job.processes, command, path)


def _command(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) and "\0" not in one for one in value):
        raise UsageError(f'{where}: command = {value!r} must be a list of texts, e.g. ["mpiexec", "-n", "4", "./app"]')
    return tuple(value)


def _pattern(value: Any, job: Job, where: str) -> Pattern:
    phases = value if isinstance(value, list) else [value]
    if not phases or len(phases) > MOST_PHASES or not all(isinstance(one, dict) for one in phases):
        told = f"{where}: pattern = {value!r} must be a table, or a list of 1 to {MOST_PHASES}: [[job.pattern]]"
        raise UsageError(told)
    if job.processes > MOST_PROCESSES:
        raise UsageError(f"{where}: processes = {job.processes} must be at most {MOST_PROCESSES}, to replay a pattern")
    read = []
    for at, one in enumerate(phases, 1):
        place = f"{where}: pattern" if len(phases) == 1 else f"{where}: pattern {at}"
        only(one, JOB_PHASE_KEYS, place)
        read.append(phase_of(one, place, job.processes))
    return Pattern(job.name, job.nodes, job.processes, tuple(read))


def bytes_of(pattern: Pattern) -> int:
    """Return the bytes that a pattern moves: each process makes whole requests."""

    def of(phase: Phase) -> int:
        each = phase.request_bytes * (phase.active_processes or pattern.processes)
        return math.ceil(phase.total_bytes / each) * each * phase.rounds

    return sum(of(phase) for phase in pattern.phases)
