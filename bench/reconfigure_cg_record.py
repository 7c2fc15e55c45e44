"""The record of bench/reconfigure_cg.py: one JSON line a run, so that an interrupted campaign goes on.

The first line says what is measured. A line for each part says by what build, on what machine, the runs after it were
made. A run is never made twice, whether it succeeded or not.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from hocket.errors import HocketError
from hocket.reconfigurations import Reconfiguration
from hocket.reconfigure.runs import Outcome
from hocket.run_file import whole_lines
from reconfigure_cg_plan import Job


@dataclass(frozen=True)
class Run:
    """A run that was made. Of a reference, `spawn_s` and `data_s` are its parts, and `outcome` has only a reason."""

    job: Job
    wall_s: float  # from its start to its end, for plans
    outcome: Outcome
    spawn_s: float = 0.0
    data_s: float = 0.0

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def of(cls, line: dict) -> Run:
        record = line["outcome"]["record"]
        outcome = Outcome(**{**line["outcome"], "record": Reconfiguration(**record) if record else None})
        return cls(Job(**line["job"]), line["wall_s"], outcome, line["spawn_s"], line["data_s"])


@dataclass(frozen=True)
class Part:
    """Runs of one build on one machine. `first`: the number of runs before them."""

    build: str
    machine: str
    first: int


class Record:
    """The runs of a campaign in the order in which they were made, and their file."""

    def __init__(
        self, path: Path, setup: dict[str, object], build: str, machine: str, *, begin_part: bool = False
    ) -> None:
        """Read the file, or begin it. `is_new_part`: no run of this build and machine was made last.

        Raises HocketError if it is of another setup, is broken before its end, or was made by another build or machine
        and `begin_part` is false.
        """
        self.path, self.setup = path, setup
        path.parent.mkdir(parents=True, exist_ok=True)
        head, self.parts, self.runs = read_parts(path, mend=True)
        if head is None:
            self._append({"setup": setup})
        elif head != setup:
            told = _differences(head, setup)
            raise HocketError(f"{path} is of another campaign: {told}; choose another directory with --output")
        last = {"build": self.parts[-1].build, "machine": self.parts[-1].machine} if self.parts else {}
        own = {"build": build, "machine": machine}
        self.is_new_part = last != own
        if last and self.is_new_part and not begin_part:
            told = _differences(last, own)
            raise HocketError(f"{path} was made elsewhere: {told}; --new-part goes on with it, and the results say so")
        if self.is_new_part:
            self._append({"part": own})
            self.parts.append(Part(build, machine, len(self.runs)))

    @property
    def done(self) -> set[Job]:
        return {run.job for run in self.runs}

    def origin(self) -> str:
        """Return by what builds, and on what machines, how many runs were made."""
        ends = [*(part.first for part in self.parts[1:]), len(self.runs)]
        told = [
            f"{end - part.first} runs by build {part.build} on {part.machine}"
            for part, end in zip(self.parts, ends, strict=True)
            if end > part.first or len(self.parts) == 1
        ]
        return "; ".join(told)

    def add(self, run: Run) -> None:
        self._append(run.as_json())
        self.runs.append(run)

    def _append(self, line: dict[str, object]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())


def read(path: Path) -> tuple[dict[str, object] | None, list[Run]]:
    """Return the setup and the runs, without a last line that was not written whole."""
    setup, _, runs = read_parts(path)
    return setup, runs


def read_parts(path: Path, *, mend: bool = False) -> tuple[dict[str, object] | None, list[Part], list[Run]]:
    """Return the setup, the parts, and the runs, without a last line that was not written whole.

    `mend`: that line is cut off the file, as its run will be made again.
    """
    lines = whole_lines(path)
    if mend and path.exists():
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
    parts: list[Part] = []
    runs: list[Run] = []
    try:
        found = [json.loads(line) for line in lines]
        for line in found[1:]:
            if "part" in line:
                parts.append(Part(**line["part"], first=len(runs)))
            else:
                runs.append(Run.of(line))
        return (found[0]["setup"] if found else None), parts, runs
    except (ValueError, KeyError, TypeError) as error:
        raise HocketError(f"{path} is no record of a campaign: {error!r}; choose another with --output") from error


def _differences(one: dict[str, object], other: dict[str, object]) -> str:
    differ = [key for key in sorted({*one, *other}) if one.get(key) != other.get(key)]
    return ", ".join(f"{key} {one.get(key)} and not {other.get(key)}" for key in differ)
