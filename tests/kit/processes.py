"""Processes that a test started, directly or not: find them, and end them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import runtime_kit


def descendants(root: int) -> set[int]:
    """Return every process below `root`, by the parents in /proc."""
    children: dict[int, list[int]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        if fields := runtime_kit.stat_fields(process):
            children.setdefault(int(fields[1]), []).append(int(process.name))
    found: set[int] = set()
    open_ends = [root]
    while open_ends:
        for child in children.get(open_ends.pop(), []):
            found.add(child)
            open_ends.append(child)
    return found


def reap(pids: set[int], limit_s: float) -> set[int]:
    """Kill the processes and reap them. Return those that still exist after the time limit."""
    deadline = time.monotonic() + limit_s
    while pids and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        pids &= descendants(os.getpid())
        if pids:
            time.sleep(0.01)  # the end of another parent's child is not reported to this process
    return pids
