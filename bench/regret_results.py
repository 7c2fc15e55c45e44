"""The results of `./dev bench regret`: a file of one JSON object a line, each a whole round of a set.

The file has no interrupted round: runs made after a resumption would not lie beside the earlier ones in time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hocket.errors import HocketError
from hocket.paths import hocketd, libhocket

UNCOORDINATED, AGAIN, FCFS, INTERRUPT, DEFAULT = "uncoordinated", "again", "fcfs", "interrupt", "default"
ARMS = (UNCOORDINATED, AGAIN, FCFS, INTERRUPT, DEFAULT)
ALONE = "alone"


@dataclass(frozen=True)
class Case:
    """A set of programs on a storage, with or without busy loops beside it."""

    set: str
    where: str  # "limited" or "real"
    busy: bool

    def __str__(self) -> str:
        return f"{self.set}, {self.where} storage" + (", busy loops" if self.busy else "")


@dataclass(frozen=True)
class Round:
    """One round of a case.

    `arms` has, by arm (and ALONE), the measurements of each program as in regret_runs.Told. `drawn` has the programs as
    they ran. `build` and `policy` identify hocket and its default.
    """

    case: Case
    number: int
    build: str
    policy: str
    bytes_per_s: float
    drawn: Sequence[dict]
    arms: dict[str, dict[str, dict]]

    def figure(self, arm: str, program: str, key: str) -> float:
        """Return a figure of a program; `key` is a field of Told, or "io_with_waits_s"."""
        told = self.arms[arm][program]
        return told["io_s"] + told["wait_s"] if key == "io_with_waits_s" else told[key]

    def io_sum(self, arm: str) -> float:
        """Return I/O time with waits of all programs."""
        return sum(self.figure(arm, program, "io_with_waits_s") for program in self.programs)

    @property
    def programs(self) -> list[str]:
        return list(self.arms[UNCOORDINATED])


def build_id() -> str:
    """Return a hash of the installed hocketd and libhocket: each build is measured anew. Raises HocketError."""
    known = hashlib.sha256()
    for path in (hocketd(), libhocket("mpich")):
        try:
            known.update(path.read_bytes())
        except OSError as error:
            raise HocketError(f"cannot read {path}: {error.strerror}; run ./dev build first") from error
    return known.hexdigest()[:12]


class Results:
    """The file of rounds; it need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rounds: list[Round] = _read(path) if path.exists() else []

    def begin_anew(self) -> None:
        """Remove the earlier measurements."""
        self.path.unlink(missing_ok=True)
        self.rounds = []

    def add(self, one: Round) -> None:
        """Append the round at once, in one write."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
        self.rounds.append(one)

    def of(self, build: str, policy: str) -> list[Round]:
        """Return the comparable rounds: of one build with one default. The later of two equal rounds counts."""
        found = {(one.case, one.number): one for one in self.rounds if (one.build, one.policy) == (build, policy)}
        return sorted(found.values(), key=lambda one: one.number)

    def latest(self) -> list[Round]:
        """Return the rounds of the last measured build and default, or [] if there are none."""
        return self.of(self.rounds[-1].build, self.rounds[-1].policy) if self.rounds else []


def _read(path: Path) -> list[Round]:
    rounds = []
    text = path.read_bytes()
    if not text.endswith(b"\n"):  # the benchmark ended while it wrote the last line
        text = text[: text.rfind(b"\n") + 1]
        path.write_bytes(text)
    for number, line in enumerate(text.splitlines(), 1):
        try:
            told = json.loads(line)
            rounds.append(replace(Round(**told), case=Case(**told["case"])))
        except (ValueError, TypeError, KeyError) as error:
            raise HocketError(
                f"{path}, line {number}: not a round of this bench ({error}); move the file away"
            ) from error
    return rounds
