"""The progress line: rewritten in place on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence

PLAIN_EVERY_S = 3.0


class Progress:
    def __init__(self, start: float):
        self._start = start  # of the whole demo, time.monotonic()
        self._terminal = sys.stdout.isatty()
        self._label, self._begun, self._shown = "", start, start

    def say(self, text: str) -> None:
        """One line of its own."""
        print(f"[{self._elapsed():3.0f} s] {text}", flush=True)

    def begin(self, label: str) -> None:
        """A run begins."""
        self._label, self._begun, self._shown = label, time.monotonic(), time.monotonic()

    def show(self, parts: Sequence[str]) -> None:
        """How far the run is, as often as the reader can take it."""
        if self._terminal:
            line = self._line(parts)[: shutil.get_terminal_size().columns - 1]
            print(f"\r\033[K{line}", end="", flush=True)
        elif time.monotonic() - self._shown >= PLAIN_EVERY_S:
            self._shown = time.monotonic()
            print(self._line(parts), flush=True)

    def end(self, parts: Sequence[str]) -> None:
        """The run's last line, which stays."""
        print(("\r\033[K" if self._terminal else "") + self._line(parts), flush=True)

    def _line(self, parts: Sequence[str]) -> str:
        return f"[{self._elapsed():3.0f} s] {self._label} {time.monotonic() - self._begun:.1f} s | {' | '.join(parts)}"

    def _elapsed(self) -> float:
        return time.monotonic() - self._start
