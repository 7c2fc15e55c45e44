"""A trace as Chrome trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing show.

Each application is a process of the view with two tracks: what it did, as slices, and what was decided for it, as
instants. Times are microseconds since the trace's start.
"""

from __future__ import annotations

from typing import Any

from hocket.analysis import Analysis, Application, analyse
from hocket.lanes import IO
from hocket.trace import Trace

STATES, DECISIONS = 1, 2  # the tracks


def chrome_trace(trace: Trace) -> dict[str, Any]:
    """The JSON object format of the trace-event specification."""
    analysis = analyse(trace)
    events: list[dict[str, Any]] = []
    for pid, application in enumerate(analysis.applications, start=1):
        events += _names(pid, application) + _slices(pid, application, analysis, trace.start_ns)
    pids = {application.name: pid for pid, application in enumerate(analysis.applications, start=1)}
    events += [_instant(pids[d.application], d, trace.start_ns) for d in analysis.decisions if d.application in pids]
    other = {"node": trace.node, "hocket": trace.version, "policy": analysis.policy}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": other}


def _names(pid: int, application: Application) -> list[dict[str, Any]]:
    def name(kind: str, tid: int, text: str) -> dict[str, Any]:
        return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {"name": text}}

    tracks = [name("thread_name", STATES, "state"), name("thread_name", DECISIONS, "decisions")]
    return [name("process_name", STATES, application.name), *tracks]


def _slices(pid: int, application: Application, analysis: Analysis, start_ns: int) -> list[dict[str, Any]]:
    return [
        {
            "name": "I/O" if part.kind == IO else part.kind,
            "cat": "state",
            "ph": "X",
            "pid": pid,
            "tid": STATES,
            "ts": (part.start_ns - start_ns) / 1e3,
            "dur": (part.end_ns - part.start_ns) / 1e3,
        }
        for part in application.intervals(analysis.now_ns)
    ]


def _instant(pid: int, decision: Any, start_ns: int) -> dict[str, Any]:
    told = {"target": decision.target, "behind": decision.behind, "waited_ms": decision.waited_ns / 1e6}
    return {
        "name": decision.text(),
        "cat": "decision",
        "ph": "i",
        "s": "t",
        "pid": pid,
        "tid": DECISIONS,
        "ts": (decision.time_ns - start_ns) / 1e3,
        "args": {key: value for key, value in told.items() if value},
    }
