"""A file of runs that grows: a first line that says which runs, then a line of JSON for each run.

A long measurement that was interrupted is resumed from such a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from hocket.errors import UsageError

Run = TypeVar("Run")


def digest(about: Any) -> str:
    """Return a short text that identifies patterns, jobs, or settings."""
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


def whole_lines(path: Path) -> list[str]:
    """Return the lines of a file, without a last one that is cut off; none if there is no file."""
    return path.read_bytes().rpartition(b"\n")[0].decode().splitlines() if path.exists() else []


class RunFile(Generic[Run]):
    """The runs in a file. A last line that is cut off, because its run was interrupted, is left out."""

    def __init__(
        self, path: Path, kind: str, about: str, read: Callable[[dict], Run], write: Callable[[Run], dict]
    ) -> None:
        """Open the file, or make it and its directory.

        `kind` and `about` are in the first line. `read` makes a run of a line's fields, and raises KeyError, TypeError
        or ValueError if they are none. Raises UsageError if the file is of other runs, or cannot be made.
        """
        self.path = path
        self.runs: list[Run] = []
        self._write = write
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            if not lines:
                path.write_text(json.dumps({kind: about}) + "\n", encoding="utf-8")
                return
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot keep runs in {path}: {error}; give another --output") from error
        if _parsed(lines[0]) != {kind: about}:
            raise UsageError(f"{path}: these are runs of other {kind}s or settings; give another --output")
        for number, line in enumerate(lines[1:], 2):
            try:
                self.runs.append(read(json.loads(line)))
            except (KeyError, TypeError, ValueError) as error:
                if number < len(lines):
                    told = f"{path}, line {number}: this is no run; remove the line, or give another --output"
                    raise UsageError(told) from error
                path.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")

    def add(self, run: Run) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(self._write(run)) + "\n")
        self.runs.append(run)


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None
