"""Reads from a trace of hocketd what each application had: the numbers of its I/O servers, and of its processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hocket.reconfigurations import Reconfiguration
from hocket.trace import Trace, read_trace
from hocket.workload.results import Resize


@dataclass
class CoreHistory:
    """How long an application waited for cores before it started, its later sizes, and its resizes. In seconds."""

    waited_s: float = 0.0
    given_s: float = 0.0  # when it had its cores; 0: not known
    sizes: list[tuple[float, int]] = field(default_factory=list)
    resizes: list[Resize] = field(default_factory=list)


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


def histories_of(path: Path, zero_ns: int | None = None) -> Mapping[str, CoreHistory]:
    """Return the history of each application. Seconds count as in servers_of."""
    trace = read_trace(path)
    zero_ns = trace.start_ns if zero_ns is None else zero_ns
    found: dict[str, CoreHistory] = {}
    for name, (waited_ns, at_ns) in _waits(trace).items():
        found[name] = CoreHistory(waited_ns / 1e9, (at_ns - zero_ns) / 1e9)
    for event in trace.events:
        if event.type != "RECONFIGURATION" or not event.application:
            continue
        one = Reconfiguration.of(event, event.application)
        history = found.setdefault(one.application, CoreHistory())
        begin_s, end_s = (one.begin_ns - zero_ns) / 1e9, (one.end_ns - zero_ns) / 1e9
        if one.done or one.stopped_ns > 0:  # else it was refused at once
            history.resizes.append(Resize(begin_s, end_s - begin_s, one.stopped_ns / 1e9))
        if one.done:
            history.sizes.append((end_s, one.targets))
    return found


def _waits(trace: Trace) -> dict[str, tuple[int, int]]:
    """Return for how long each application waited for cores that others returned, and when it got them. In ns."""
    names = {str(one["job"]): str(one["application_asked"]) for one in trace.events if one.type == "ASK_CORES"}
    answers = [one for one in trace.events if one.type == "CORES_FOR" and not one.get("wait", False)]
    return {names[str(one["job"])]: (int(one["waited_ns"]), one.time_ns) for one in answers if str(one["job"]) in names}
