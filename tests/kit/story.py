"""Read the trace of a daemon under test while the daemon writes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import runtime_kit

if TYPE_CHECKING:
    from daemon_kit import Daemon

LIMIT_S = 40


class Story:
    """The trace of a daemon, while the daemon writes it."""

    def __init__(self, daemon: Daemon):
        self._file = daemon.trace.open()
        self._part = ""
        self.lines: list[dict[str, Any]] = []

    def read(self) -> list[dict[str, Any]]:
        *whole, self._part = (self._part + self._file.read()).split("\n")
        self.lines += map(json.loads, whole)
        return self.lines

    def all(self, kind: str, since: int = 0, **fields: Any) -> list[dict[str, Any]]:
        """Return the events and commands of this type with these values, from line `since` on."""
        fits = [line for line in self.read()[since:] if kind in (line.get("in"), line.get("out"))]
        return [line for line in fits if all(line.get(key) == value for key, value in fields.items())]

    def awaits(self, kind: str, since: int = 0, count: int = 1, **fields: Any) -> dict[str, Any]:
        """Wait for `count` such lines and return the first; its key `at` is its line number."""
        found: list[dict[str, Any]] = []

        def look() -> bool:
            found[:] = self.all(kind, since, **fields)
            return len(found) >= count

        self.until(look, f"{count} {kind} {fields}")
        return {**found[0], "at": self.lines.index(found[0])}

    def until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait like runtime_kit.wait_until; on failure, also report the main lines of the trace."""
        try:
            runtime_kit.wait_until(condition, LIMIT_S, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; there was\n{self}") from None

    def __str__(self) -> str:
        self.read()
        kinds = ("DECISION", "OUTCOME", "RECONFIGURE", "RECONFIGURATION", "REFUSED", "HELLO", "LOST", "BYE")
        shown = [line for line in self.lines if {line.get("in"), line.get("out")} & set(kinds)]
        return "\n".join(map(json.dumps, shown))
