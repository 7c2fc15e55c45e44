"""Exports a trace as Chrome trace events, for Perfetto (ui.perfetto.dev) and chrome://tracing.

Each application is a process of the view with two tracks. The first shows its activity as slices. The second shows
decisions about it as instants: grants, and policy decisions with their outcomes.

What I/O servers stored for the application, and when they waited for its turn, is a track of its own.
A malleable application has two more: its reconfigurations, with their parts as slices within them, and a counter of its
processes. If a policy let it grow, a further track shows these expansions. Times are microseconds since the trace's
start.
"""

from __future__ import annotations

from typing import Any

from hocket.analysis import Analysis, Application, analyse
from hocket.decisions import Outcome, PolicyDecision, subject_of, tell
from hocket.lanes import IO, Interval
from hocket.reconfigurations import Reconfiguration
from hocket.trace import Trace

STATES, DECISIONS, RESIZES, EXPANSIONS, WRITE_BACKS = 1, 2, 3, 4, 5  # the tracks


def chrome_trace(trace: Trace) -> dict[str, Any]:
    """Return the trace in the JSON object format of the trace-event specification."""
    analysis = analyse(trace)
    events: list[dict[str, Any]] = []
    for pid, application in enumerate(analysis.applications, start=1):
        expanded = any(one.expands(application.name) for one in analysis.about_cores.all)
        events += _names(pid, application, expanded) + _slices(pid, application, analysis, trace.start_ns)
        events += _sizes(pid, application, trace.start_ns)
        for one in application.reconfigurations:
            events += _resize(pid, one, trace.start_ns)
    pids = {application.name: pid for pid, application in enumerate(analysis.applications, start=1)}
    events += [_instant(pids[d.application], d, trace.start_ns) for d in analysis.decisions if d.application in pids]
    shown = [one for one in analysis.about_cores.all if one.decided_for in pids and not one.is_plain_wait]
    tell(shown, trace.start_ns)
    for one in shown:
        events += _about_cores(pids[one.decided_for], one, trace.start_ns, analysis)
    other = {"node": trace.node, "hocket": trace.version, "policy": analysis.policy}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": other}


def _names(pid: int, application: Application, expanded: bool) -> list[dict[str, Any]]:
    def name(kind: str, tid: int, text: str) -> dict[str, Any]:
        return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {"name": text}}

    tracks = [name("thread_name", STATES, "state"), name("thread_name", DECISIONS, "decisions")]
    if application.reconfigurations:
        tracks.append(name("thread_name", RESIZES, "reconfigurations"))
    if application.write_backs:
        tracks.append(name("thread_name", WRITE_BACKS, "write-back by I/O servers"))
    if expanded:
        tracks.append(name("thread_name", EXPANSIONS, "expansions"))
    return [name("process_name", STATES, application.name), *tracks]


def _slices(pid: int, application: Application, analysis: Analysis, start_ns: int) -> list[dict[str, Any]]:
    def piece(name: str, tid: int, part: Interval) -> dict[str, Any]:
        times = {"ts": (part.start_ns - start_ns) / 1e3, "dur": (part.end_ns - part.start_ns) / 1e3}
        return {"name": name, "cat": "state", "ph": "X", "pid": pid, "tid": tid, **times}

    now_ns = analysis.now_ns
    states = [piece("I/O" if p.kind == IO else p.kind, STATES, p) for p in application.intervals(now_ns)]
    stores = [piece("stores" if p.kind == IO else p.kind, WRITE_BACKS, p) for p in application.stores(now_ns)]
    return states + stores


def _sizes(pid: int, application: Application, start_ns: int) -> list[dict[str, Any]]:
    """Return the counter of processes. It drops to 0 where the application ended."""
    end = [(application.end_ns, 0)] if application.sizes and application.end_ns is not None else []
    return [
        {"name": "processes", "ph": "C", "pid": pid, "tid": RESIZES, "ts": (since_ns - start_ns) / 1e3}
        | {"args": {"processes": count}}
        for since_ns, count in [*application.sizes, *end]
    ]


def _resize(pid: int, one: Reconfiguration, start_ns: int) -> list[dict[str, Any]]:
    """Return one slice for the whole reconfiguration, and one within it for each of its parts."""

    def piece(name: str, from_ns: int, to_ns: int, told: dict[str, Any]) -> dict[str, Any]:
        place = {"cat": "reconfiguration", "ph": "X", "pid": pid, "tid": RESIZES}
        return {"name": name, **place, "ts": (from_ns - start_ns) / 1e3, "dur": (to_ns - from_ns) / 1e3, "args": told}

    name = one.sizes + ("" if one.done else " given up")
    told: dict[str, Any] = {"method": one.method, "iteration": one.iteration, "stopped_ms": one.stopped_ns / 1e6}
    told |= {"waited_ms": one.wait_ns / 1e6, "bytes_moved": one.bytes_moved, "bytes_kept": one.bytes_kept}
    told |= {"reason": one.reason} if one.reason else {}
    parts = [piece(part.kind, part.start_ns, part.end_ns, {"stopped_ms": part.stopped_ns / 1e6}) for part in one.parts]
    return [piece(name, one.begin_ns, one.end_ns, told), *parts]


def _about_cores(pid: int, one: PolicyDecision, start_ns: int, analysis: Analysis) -> list[dict[str, Any]]:
    """Return the decision and its outcomes as instants, and a slice for the time in which an expansion was in force."""
    place = {"cat": "decision", "ph": "i", "s": "t", "pid": pid, "tid": DECISIONS}
    told: dict[str, Any] = dict(one.sentences(start_ns)) | {"decision": one.number, "policy": one.policy}
    events = [{"name": one.heading(), **place, "ts": (one.time_ns - start_ns) / 1e3, "args": told}]
    for outcome in one.outcomes:
        held = "as predicted" if outcome.met else "not as predicted"
        name = f"{subject_of(outcome.quantity)}: {held if outcome.is_prediction else outcome.brief()}"
        events.append({"name": name, **place, "ts": (outcome.time_ns - start_ns) / 1e3, "args": _held(outcome)})
    if one.expands(one.decided_for):
        end_ns = one.until_ns or analysis.named(one.decided_for).end_ns or analysis.now_ns
        slot = {"cat": "expansion", "ph": "X", "pid": pid, "tid": EXPANSIONS, "args": told}
        name = f"{one.sources} → {one.targets} by {one.policy}"
        times = {"ts": (one.time_ns - start_ns) / 1e3, "dur": max(end_ns - one.time_ns, 0) / 1e3}
        events.append({"name": name, **slot, **times})
    return events


def _held(outcome: Outcome) -> dict[str, Any]:
    keys = ("decision", "predicted_s", "actual_s", "met")
    return {key: getattr(outcome, key) for key in keys} | {"told": outcome.sentence()}


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
