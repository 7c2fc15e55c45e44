"""Prepares what the report's pictures show, whatever draws them: a panel for each run, a lane for each application.

Times are seconds since the first application of the run began. All panels share one axis, so that lengths compare.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from hocket.analysis import Analysis, Application, Operation
from hocket.comparison import ALONE, SCHEDULED, UNCOORDINATED, Run
from hocket.decisions import PolicyDecision, tell
from hocket.lanes import COMPUTING, IO, WAITING, Interval, coalesce
from hocket.reconfigurations import CONSTANT, RESUMING, SPAWNING, VARIABLE, Reconfiguration
from hocket.tables import quantity, times

PART_WORDS = {
    SPAWNING: "resize: processes start",
    CONSTANT: "constant data move",
    VARIABLE: "variable data move",
    RESUMING: "the destination ranks resume",
}
EXPANDS, SHRINKS, LEAVES, MET, OFF = "expands", "shrinks", "leaves", "met", "off"
MARK_WORDS = {
    EXPANDS: "decided: expand",
    SHRINKS: "decided: shrink, go back",
    LEAVES: "decided: leave alone",
    MET: "prediction held",
    OFF: "prediction was off",
}
_MARK_OF = {"expand": EXPANDS, "shrink": SHRINKS, "return": SHRINKS, "reclaim": SHRINKS}
MOST_MARKS = 400  # for a panel
PLOT_STEPS = 800  # parts of the axis shorter than one of so many steps cannot be seen


@dataclass(frozen=True)
class Bar:
    """A part of a lane; `text` is its tooltip."""

    kind: str
    start_s: float
    end_s: float
    text: str
    share: float = 1.0  # part of its time that is of this kind, if it stands for many short intervals


@dataclass(frozen=True)
class Step:
    """A time during which a malleable application had the same number of processes."""

    start_s: float
    end_s: float
    processes: int
    expanded: bool = False  # by a policy, compared with the size before


@dataclass(frozen=True)
class Mark:
    """A policy decision about an application, or an outcome, at its time.

    `kind` is a key of MARK_WORDS; `text` is its tooltip.
    """

    kind: str
    at_s: float
    text: str


@dataclass(frozen=True)
class Change:
    """A reconfiguration. `parts` are its bars.

    The `share` of a part is the part of its time during which the application stood still.
    """

    start_s: float
    end_s: float
    text: str
    done: bool
    parts: tuple[Bar, ...]


@dataclass(frozen=True)
class Lane:
    name: str
    about: str  # its number of processes
    bars: list[Bar]
    end_s: float
    notes: tuple[str, ...]  # figures, at the end of the lane
    lost: str = ""
    steps: tuple[Step, ...] = ()  # () unless it is malleable
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Panel:
    label: str
    caption: str
    lanes: list[Lane]
    both: list[tuple[float, float]]  # intervals in which two or more did I/O at once
    both_s: float | None  # None: each ran alone
    marks: tuple[Mark, ...] = ()  # decisions and outcomes, by time
    conflicts: tuple[Bar, ...] = ()  # predicted overlaps of I/O
    more_marks: int = 0  # number of marks that are not shown

    @property
    def most_processes(self) -> int:
        """Return the largest number of processes of its malleable applications; 0 without any."""
        return max((step.processes for lane in self.lanes for step in lane.steps), default=0)


def axis_length_s(runs: Iterable[Run]) -> float:
    """Return the length of the axis that all panels share."""
    lengths = [_end_ns(analysis) - analysis.start_ns for run in runs for analysis in run.analyses]
    return max(max(lengths, default=0) / 1e9, 1e-3)


def ticks(length_s: float) -> list[float]:
    """Return six to fifteen round times from 0 to `length_s`."""
    decade = 10.0 ** math.floor(math.log10(length_s))
    step = next(decade * part for part in (1, 0.5, 0.2, 0.1) if length_s / (decade * part) >= 6)
    return [round(number * step, 9) for number in range(int(length_s / step + 1e-9) + 1)]


def panels_of(runs: Sequence[Run], length_s: float, most_lanes: int = 0) -> list[Panel]:
    """Return a panel for each run. An application has its lane in the same place in all panels.

    `most_lanes`: only this many applications, those with most I/O (0: all).
    """
    io_s: dict[str, float] = {}
    for analysis in (analysis for run in runs for analysis in run.analyses):
        for one in analysis.applications:
            io_s[one.name] = io_s.get(one.name, 0.0) + one.io_s(analysis.now_ns)
    shown = set(sorted(io_s, key=lambda name: -io_s[name])[: most_lanes or len(io_s)])
    places = {name: place for place, name in enumerate(name for name in io_s if name in shown)}
    return [_panel(run, length_s, places) for run in runs]


def _panel(run: Run, length_s: float, places: dict[str, int]) -> Panel:
    shared = [analysis for analysis in run.analyses if len(analysis.applications) > 1]
    both = [span for analysis in shared for span in _joined(analysis, length_s)]
    both_s = sum(part.seconds for analysis in shared for part in analysis.overlaps()) if shared else None
    lanes = [
        _lane(a, analysis, length_s) for analysis in run.analyses for a in analysis.applications if a.name in places
    ]
    lanes.sort(key=lambda lane: places[lane.name])
    marks, conflicts = _decided(run.analyses, places)
    caption = _caption(run, both_s)
    if hidden := sum(a.name not in places for analysis in run.analyses for a in analysis.applications):
        caption += f" Shown: the {len(lanes)} with most I/O; {hidden} are not."
    shown = tuple(marks[:MOST_MARKS])
    return Panel(run.label, caption, lanes, both, both_s, shown, tuple(conflicts[:MOST_MARKS]), len(marks) - len(shown))


def _decided(analyses: Iterable[Analysis], places: Container[str]) -> tuple[list[Mark], list[Bar]]:
    """Return the decisions about the shown applications with their outcomes, and the predicted overlaps."""
    marks, conflicts = [], []
    for analysis in analyses:
        zero_ns = analysis.start_ns
        # The lanes show waits.
        found = [one for one in analysis.about_cores.all if one.decided_for in places and not one.is_about_access]
        tell(found, zero_ns)
        for one in found:
            marks.append(Mark(_MARK_OF.get(one.action, LEAVES), (one.time_ns - zero_ns) / 1e9, _told(one, zero_ns)))
            if one.conflict_ns and one.overlap_ns > 0:
                begin_s = (one.conflict_ns - zero_ns) / 1e9
                text = f"predicted in decision {one.number}: {one.decided_for} and {one.because_of} do I/O at once"
                conflicts.append(Bar("conflict", begin_s, begin_s + one.overlap_ns / 1e9, text))
            for outcome in (outcome for outcome in one.outcomes if outcome.is_prediction):
                text = f"decision {one.number}, {one.decided_for}: {outcome.sentence()}"
                marks.append(Mark(MET if outcome.met else OFF, (outcome.time_ns - zero_ns) / 1e9, text))
    return sorted(marks, key=lambda mark: mark.at_s), conflicts


def _told(one: PolicyDecision, zero_ns: int) -> str:
    sentences = [words for about, words in one.sentences(zero_ns) if about != "came of it"]
    return ". ".join([f"decision {one.number}, {one.policy}: {one.heading()}", *sentences])


def opacity(bar: Bar) -> float:
    """Return the opacity of a bar: the smaller its share, the paler it is."""
    return 1.0 if bar.share == 1 else 0.2 + 0.8 * bar.share


def doing(applications: Iterable[Application]) -> str:
    """Return the I/O of these applications as a verb: "writes", "reads", or "reads or writes"."""
    wrote, read = False, False
    for application in applications:
        wrote, read = wrote or application.bytes("written") > 0, read or application.bytes("read") > 0
    return "reads or writes" if read and wrote else "reads" if read else "writes"


def _end_ns(analysis: Analysis) -> int:
    ends = [a.end_ns if a.end_ns is not None else analysis.now_ns for a in analysis.applications]
    return max(ends, default=0)


def _joined(analysis: Analysis, length_s: float) -> list[tuple[float, float]]:
    """Return the times at which two or more did I/O. Intervals are joined if a picture cannot show them apart."""
    joined: list[tuple[float, float]] = []
    for part in analysis.overlaps():
        start_s, end_s = (part.start_ns - analysis.start_ns) / 1e9, (part.end_ns - analysis.start_ns) / 1e9
        if joined and start_s - joined[-1][1] < length_s / PLOT_STEPS:
            start_s = joined.pop()[0]
        joined.append((start_s, end_s))
    return joined


def _lane(application: Application, analysis: Analysis, length_s: float) -> Lane:
    zero, now = analysis.start_ns, analysis.now_ns
    intervals = application.intervals(now)
    shown = coalesce(intervals, shorter_than_ns=int(length_s * 1e9 / PLOT_STEPS))
    kinds = ("queued", "preempted")
    own = [d for d in analysis.decisions if d.application == application.name and not d.of_servers]
    queued = [d for d in own if d.kind in kinds]
    granted = [(o.granted_ns, o) for o in application.operations if o.granted_ns is not None]
    granted.sort(key=itemgetter(0))
    bars = []
    for part in shown:
        start_s, end_s = (part.start_ns - zero) / 1e9, (part.end_ns - zero) / 1e9
        behind = [d.behind for d in queued if part.start_ns <= d.time_ns < part.end_ns]
        what = _what(application, part, behind, granted)
        often = f", {part.share:.0%} of the time" if part.share < 1 else ""
        text = f"{application.name} {what}{often}: {part.seconds:.2f} s, from {start_s:.2f} to {end_s:.2f} s"
        bars.append(Bar(part.kind, start_s, end_s, text, part.share))
    spent = application.times(now)
    notes = [f"I/O {spent.io_ns / 1e9:.2f} s"]
    if (waited := spent.wait_ns / 1e9) >= 0.005:
        notes.append(f"waited {waited:.2f} s")
    if stored_ns := sum(part.end_ns - part.start_ns for part in application.stores(now) if part.kind == IO):
        notes.append(f"stored by its I/O servers {stored_ns / 1e9:.2f} s")
    if application.interruptions:
        notes.append(f"preempted {times(application.interruptions)}")
    if application.unstopped:
        notes.append(f"could not stop {times(len(application.unstopped))}")
    if (resized := sum(one.done for one in application.reconfigurations)) > 0:
        notes.append(f"{resized} resize{'' if resized == 1 else 's'}")
    end_s = bars[-1].end_s if bars else 0.0
    return Lane(
        application.name,
        _processes(application),
        bars,
        end_s,
        tuple(notes),
        application.lost,
        tuple(_steps(application, analysis, end_s)),
        tuple(_change(one, zero) for one in application.reconfigurations),
    )


def _processes(application: Application) -> str:
    counts = [count for _, count in application.sizes] or [application.processes]
    least, most = min(counts), max(counts)
    if not most:
        return ""
    return f"{least} to {most} processes" if least < most else f"{most} process{'' if most == 1 else 'es'}"


def _steps(application: Application, analysis: Analysis, end_s: float) -> Iterable[Step]:
    zero_ns = analysis.start_ns
    expansions = [one for one in analysis.about_cores.of(application.name) if one.expands(application.name)]
    changes = [(since_ns - zero_ns) / 1e9 for since_ns, _ in application.sizes[1:]]
    for (since_ns, count), until_s in zip(application.sizes, [*changes, end_s], strict=False):  # empty without sizes
        start_s = (since_ns - zero_ns) / 1e9
        if until_s > start_s:
            expanded = any(one.targets == count and one.holds_at(since_ns) for one in expansions)
            yield Step(max(start_s, 0.0), until_s, count, expanded)


def _change(one: Reconfiguration, zero_ns: int) -> Change:
    start_s, end_s = (one.begin_ns - zero_ns) / 1e9, (one.end_ns - zero_ns) / 1e9
    size = f"{one.application} {one.sizes} processes at {start_s:.2f} s"
    figures = ", ".join(f"{part.kind} {(part.end_ns - part.start_ns) / 1e9:.3f} s" for part in one.parts)
    text = f"{size}: {one.method}; {figures}; stopped for {one.stopped_ns / 1e9:.3f} s"
    if not one.done:
        text = f"{size}: given up, {one.reason}"
    parts = []
    for part in one.parts:
        length_ns = part.end_ns - part.start_ns
        overlapped = f", {part.overlapped_ns / 1e9:.3f} s of it overlapped" if part.overlapped_ns else ""
        told = f"{size}, {part.kind}: {length_ns / 1e9:.3f} s{overlapped}"
        begin_s, until_s = (part.start_ns - zero_ns) / 1e9, (part.end_ns - zero_ns) / 1e9
        parts.append(Bar(part.kind, begin_s, until_s, told, part.stopped_ns / length_ns))
    return Change(start_s, end_s, text, one.done, tuple(parts))


def _what(
    application: Application, part: Interval, behind: Sequence[str], granted: Sequence[tuple[int, Operation]]
) -> str:
    """Return what the application did in this part. `granted`: its operations with their starts, in rising order."""
    if part.kind == COMPUTING:
        return "computes"
    if part.kind == WAITING:
        return f"waits for {behind[0]}" if behind and behind[0] else "waits for a grant"
    first, last = (bisect_left(granted, time_ns, key=itemgetter(0)) for time_ns in (part.start_ns, part.end_ns))
    operations = [operation for _, operation in granted[first:last]]
    moved, by_asker = (sum(getattr(o, key) for o in operations) for key in ("bytes", "asker_bytes"))
    phase = next((p.index + 1 for p in application.io_phases if p.start_ns <= part.start_ns < p.end_ns), None)
    known = [f"phase {phase}"] if phase else []
    if moved or by_asker:
        known.append(quantity(moved) if moved else f"{quantity(by_asker)} by the requesting rank")
    return doing([application]) + (f" ({', '.join(known)})" if known else "")


def _caption(run: Run, both_s: float | None) -> str:
    lanes = [a.times(analysis.now_ns) for analysis in run.analyses for a in analysis.applications]
    waited = sum(lane.wait_ns for lane in lanes) / 1e9
    wrote = sum(lane.io_ns for lane in lanes) / 1e9
    if run.role == ALONE or both_s is None:
        many = len(lanes) > 1
        text = "Each application had the target to itself" if many else "The application had the target to itself"
        return f"{text}, in a run of its own." if many else f"{text}."
    at_once = f"two or more did I/O at once for {both_s:.2f} s" if both_s >= 0.005 else "no two did I/O at once"
    waits = f"they waited {waited:.2f} s in all for grants" if waited >= 0.005 else "no application waited"
    start = {
        UNCOORDINATED: "Together, uncoordinated",
        SCHEDULED: "Together, they took turns",
    }.get(run.role, f"Together, with {wrote:.2f} s of I/O in all")
    return f"{start}: {at_once}; {waits}."
