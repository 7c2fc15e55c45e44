"""Reads the numbers of I/O servers of each application from a trace of hocketd."""

from __future__ import annotations

from pathlib import Path

from hocket.trace import read_trace


def servers_of(path: Path, zero_ns: int | None = None) -> dict[str, list[tuple[float, int]]]:
    """Return (second, number) of each change, by application.

    Seconds count from `zero_ns`, by default from the start of the trace. Of changes at one time the last counts.
    """
    trace = read_trace(path)
    zero_ns = trace.start_ns if zero_ns is None else zero_ns
    found: dict[str, list[tuple[float, int]]] = {}
    for event in trace.events:
        if event.type != "SERVER_MAP" or not event.application:
            continue
        used = [line for line in str(event["text"]).splitlines() if not line.endswith(" slow:")]
        count, at_s = 0 if event.get("direct") else len(used), (event.time_ns - zero_ns) / 1e9
        changes = found.setdefault(event.application, [])
        if changes and changes[-1][0] == at_s:
            changes.pop()
        if not changes or changes[-1][1] != count:
            changes.append((at_s, count))
    return found
