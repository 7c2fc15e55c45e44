"""The progress display: lines rewritten in place on a terminal, one plain line every few seconds elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence

PLAIN_EVERY_S = 3.0
UP_AND_CLEAR = "\033[F\033[K"


class Progress:
    def __init__(self, start: float):
        self._start = start  # of the whole demo, time.monotonic()
        self._terminal = sys.stdout.isatty()
        self._label, self._begun, self._shown = "", start, start
        self._lines = 0  # on the terminal, to be rewritten

    def say(self, text: str) -> None:
        """Print a separate line."""
        print(f"[{self._elapsed():3.0f} s] {text}", flush=True)

    def begin(self, label: str) -> None:
        """Begin a run."""
        self._label, self._begun, self._shown, self._lines = label, time.monotonic(), time.monotonic(), 0

    def show(self, parts: Sequence[str]) -> None:
        """Show the progress of each application, as often as a reader can follow."""
        if self._terminal:
            self._rewrite(parts)
        elif time.monotonic() - self._shown >= PLAIN_EVERY_S:
            self._shown = time.monotonic()
            self.end(parts)

    def end(self, parts: Sequence[str]) -> None:
        """Show the final progress of the run, which remains."""
        if self._terminal:
            self._rewrite(parts)
        else:
            print(f"{self._head()} | {' | '.join(parts)}", flush=True)

    def _rewrite(self, parts: Sequence[str]) -> None:
        width = shutil.get_terminal_size().columns - 1
        lines = [line[:width] for line in (self._head(), *(f"        {part}" for part in parts))]
        print(UP_AND_CLEAR * self._lines + "\n".join(lines), flush=True)
        self._lines = len(lines)

    def _head(self) -> str:
        return f"[{self._elapsed():3.0f} s] {self._label} {time.monotonic() - self._begun:.1f} s"

    def _elapsed(self) -> float:
        return time.monotonic() - self._start
