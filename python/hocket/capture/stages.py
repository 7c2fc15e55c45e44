"""Finds the stages of one run of an application in the logs of its processes. Pure.

The iterations are the longest repetition of calls in rank 0. Between two collective calls that all ranks make, each
rank has its own calls and computing times. What precedes the iterations, and what follows them, are phases of one
iteration.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from hocket.capture import calls as meaning
from hocket.capture.cycle import find_cycle
from hocket.capture.extents import placement_of
from hocket.capture.log import COMMUNICATION, COMPLETION, CONTROL_POINT, READ, WRITE, RankLog

LEAST_PART = 0.002  # of an iteration: shorter computing is added to a later stage
LEAST_PHASE = 0.005  # of the run: a shorter beginning or end without I/O is left out
ASLEEP = 0.1  # the largest CPU time of an elapsed second in which a rank sleeps, if it has given its core up itself
LEAST_SLEEPS = 0.9  # times in an iteration; on a busy machine a lock may make a rank wait now and then
USUAL_REQUEST = 0.95  # the part of the calls that are not larger than the requests of an access
LONGEST_PAUSE_S = 0.5  # of the machine: what is longer belongs to the program
LEAST_ITERATIONS = 20  # that tell how a rank's times vary, and which of them is none of its own
UNEQUAL = 1.01  # from here on the largest share over the mean counts as imbalance

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Stage:
    """A stage as it was seen. Tuples have a value for each rank: means of the iterations in which it took place."""

    kind: str
    cpu_s: tuple[float, ...] = ()
    elapsed_s: tuple[float, ...] = ()
    jitter: float = 0.0  # relative deviation of a rank's CPU time, by which others wait for it
    bytes: tuple[float, ...] = ()  # that the rank contributes
    routine: str = ""
    every: int = 1
    repeat: int = 1
    happens: int = 0  # iterations in which an access was seen, of those that messages end on both sides
    dimensions: int = 1
    access: str = ""
    request_bytes: int = 0
    strided: bool = False
    append: bool = False
    sync: bool = False


@dataclass(frozen=True)
class Phase:
    iterations: int
    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class Run:
    """One run. The times are means of the ranks."""

    processes: int
    elapsed_s: float
    cpu_s: float
    communication_s: float
    io_s: float
    dropped: int  # calls for which the logs had no room
    phases: tuple[Phase, ...]
    control_s: float = 0.0  # in control points of a malleable program
    control_points: float = 0.0  # of an iteration

    @property
    def computing_s(self) -> float:
        return self.elapsed_s - self.communication_s - self.io_s - self.control_s

    @property
    def before(self) -> tuple[Phase, ...]:
        return self.phases[: self._longest]

    @property
    def repeated(self) -> Phase:
        """The phase of the iterations."""
        return self.phases[self._longest]

    @property
    def after(self) -> tuple[Phase, ...]:
        return self.phases[self._longest + 1 :]

    @property
    def _longest(self) -> int:
        return max(range(len(self.phases)), key=lambda at: self.phases[at].iterations)


@dataclass
class _Slot:
    """One call of an iteration, or several between two collective calls, with the computing before. By rank."""

    routines: list[str]
    cpu_s: Array
    elapsed_s: Array
    usual_s: Array  # median of elapsed_s: a rank that loses its core now and then changes the mean alone
    sleeps: Array  # how often the rank gave its core up in that time, a part of once at least
    call_s: Array
    bytes: Array  # mean of a message that is sent, or of the call
    sends: Array  # messages that are sent
    peers: list[set[int]] = field(default_factory=list)
    each_s: Array | None = None  # CPU time of each rank in each iteration; None: calls of several are one slot

    @property
    def collective(self) -> str | None:
        return meaning.collective_of(self.routines[0]) if len(self.routines) == 1 else None


def run_of(logs: Sequence[RankLog]) -> Run:
    """Return the run of all ranks."""
    messages = [log.of_kinds(COMMUNICATION, COMPLETION) for log in logs]
    bounds = _iterations(messages, logs[0].processes)
    return Run(
        logs[0].processes,
        _mean([log.elapsed_ns / 1e9 for log in logs]),
        _mean([log.cpu_ns / 1e9 for log in logs]),
        _mean([log.seconds_in(COMMUNICATION, COMPLETION) for log in logs]),
        _mean([log.seconds_in(READ, WRITE) for log in logs]),
        sum(log.dropped for log in logs),
        tuple(_phases(logs, messages, bounds)),
        _mean([log.seconds_in(CONTROL_POINT) for log in logs]),
        _control_points(logs[0], messages[0], bounds[0]) if bounds else 0.0,
    )


def _control_points(log: RankLog, messages: Array, bounds: Array) -> float:
    """Return how many control points an iteration has."""
    first, last = messages["end_ns"][bounds[0]], messages["end_ns"][bounds[-1]]
    starts = log.of_kinds(CONTROL_POINT)["start_ns"]
    return float(np.count_nonzero((starts >= first) & (starts < last))) / (len(bounds) - 1)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


# ---- iterations ----------------------------------------------------------------------------------------------------


def _tokens(messages: Array, *, with_bytes: bool) -> Array:
    keys = [messages["routine"], messages["processes"].astype("S12")]
    if with_bytes:
        keys.append(messages["bytes"].astype("S21"))
    joined = keys[0]
    for key in keys[1:]:
        joined = np.char.add(np.char.add(joined, b"|"), key)
    return np.unique(joined, return_inverse=True)[1].astype(np.int64)


def _iterations(messages: Sequence[Array], processes: int) -> list[Array] | None:
    """Return for each rank the indexes of the calls that end an iteration; the first one ends what was before.

    None if nothing repeats.
    """
    cycle = find_cycle(_tokens(messages[0], with_bytes=True)) if len(messages[0]) else None
    if cycle is None or cycle.end - cycle.start < len(messages[0]) / 2:
        looser = find_cycle(_tokens(messages[0], with_bytes=False)) if len(messages[0]) else None
        if looser and (cycle is None or looser.end - looser.start > 2 * (cycle.end - cycle.start)):
            cycle = looser
    if cycle is None:
        return None
    all_together = [_all_together(one, processes) for one in messages]
    body = np.flatnonzero(all_together[0][cycle.start : cycle.start + cycle.period])
    if len(body) == 0:
        return _own_iterations(messages)
    first = int(np.count_nonzero(all_together[0][: cycle.start])) + len(body) - 1
    ordinals = first + len(body) * np.arange(cycle.repeats)
    ends = [np.flatnonzero(one) for one in all_together]
    ordinals = ordinals[ordinals < min(len(one) for one in ends)]
    return [one[ordinals] for one in ends] if len(ordinals) > 1 else None


def _all_together(messages: Array, processes: int) -> Array:
    names, inverse = np.unique(messages["routine"], return_inverse=True)
    known = np.array([meaning.collective_of(name.decode()) is not None for name in names], dtype=bool)
    return known[inverse] & (messages["processes"] == processes)


def _own_iterations(messages: Sequence[Array]) -> list[Array] | None:
    """Return what _iterations returns, where the ranks make no collective calls: each has its own repetition."""
    cycles = [find_cycle(_tokens(one, with_bytes=True)) for one in messages]
    if any(cycle is None for cycle in cycles):
        return None
    repeats = min(cycle.repeats for cycle in cycles if cycle)
    return [cycle.start + cycle.period * (1 + np.arange(repeats)) - 1 for cycle in cycles if cycle]


# ---- phases --------------------------------------------------------------------------------------------------------


def _phases(logs: Sequence[RankLog], messages: Sequence[Array], bounds: list[Array] | None) -> list[Phase]:
    """Return the phases before, in, and after the iterations."""
    if bounds is None:
        return [Phase(1, _once(logs, [0] * len(logs), [log.elapsed_ns for log in logs]))]
    firsts = [int(one["end_ns"][ends[0]]) for one, ends in zip(messages, bounds, strict=True)]
    lasts = [int(one["end_ns"][ends[-1]]) for one, ends in zip(messages, bounds, strict=True)]
    count = len(bounds[0]) - 1
    # The first iteration ends where the measured ones begin, so it is not part of what precedes them. It may have been
    # shorter than the others, but what is before the last call of that part is not in it.
    befores = [_end_of_beginning(one, ends, logs[0].processes) for one, ends in zip(messages, bounds, strict=True)]
    begins = [
        max(before, first - (last - first) // count) for before, first, last in zip(befores, firsts, lasts, strict=True)
    ]
    repeated = Phase(count + 1, tuple(_repeated(logs, messages, bounds)))
    tail = _once(logs, lasts, [log.elapsed_ns for log in logs])
    found = [
        Phase(1, _once(logs, [0] * len(logs), begins)),
        repeated,
        Phase(1, tuple(one for one in tail if not _belongs_to(one, repeated))),
    ]
    return [phase for phase in found if phase.stages]


def _end_of_beginning(messages: Array, ends: Array, processes: int) -> int:
    """Return when the last call ended that precedes the first iteration, in ns; 0: there is none."""
    calls = np.flatnonzero(_all_together(messages, processes))
    if ends[0] not in calls:
        calls = np.arange(len(messages))
    first, second = np.searchsorted(calls, ends[:2])
    before = 2 * first - second
    return int(messages["end_ns"][calls[before]]) if before >= 0 else 0


def _belongs_to(stage: Stage, phase: Phase) -> bool:
    """Return True if accesses after the last message are those of the last iteration, which the phase makes."""
    alike = [one for one in phase.stages if (one.kind, one.access) == (stage.kind, stage.access)]
    return bool(stage.access) and any(phase.iterations // one.every > one.happens for one in alike)


def _once(logs: Sequence[RankLog], since: Sequence[int], until: Sequence[int]) -> tuple[Stage, ...]:
    """Return the stages of what happens once: computing, then I/O."""
    cpu, elapsed, sleeps = [], [], []
    for log, start, end in zip(logs, since, until, strict=True):
        within = (log.calls["start_ns"] >= start) & (log.calls["end_ns"] <= end)
        called = log.calls[within]
        # Outside of calls, CPU time is taken as the part of elapsed time that the thread has had all along.
        outside = max(0, end - start - int((called["end_ns"] - called["start_ns"]).sum()))
        elapsed.append(outside / 1e9)
        sleeps.append(_sleeps_outside(called))
        cpu.append(_cpu_outside(log, called, start, end))
    accesses = [_accesses(log, start, end) for log, start, end in zip(logs, since, until, strict=True)]
    stages = _io_stages(accesses, None)
    total = max(log.elapsed_ns for log in logs) / 1e9
    if max(elapsed) >= LEAST_PHASE * total:
        stages.insert(0, _computing(np.array(cpu), np.array(elapsed), np.array(sleeps)))
    return tuple(stages)


def _cpu_outside(log: RankLog, called: Array, start: int, end: int) -> float:
    """Return the CPU seconds between the calls from `start` to `end`, which are times of this rank."""

    def cpu_at(time: int) -> int:
        if time <= 0:
            return 0
        before = int(np.searchsorted(log.calls["end_ns"], time, side="right"))
        at = log.calls[before - 1] if before else None
        known, since = (int(at["cpu_end_ns"]), int(at["end_ns"])) if at is not None else (0, 0)
        follows = int(log.calls[before]["cpu_ns"]) if before < len(log.calls) else log.cpu_ns
        return min(follows, known + max(0, time - since))

    inside = int((called["cpu_end_ns"] - called["cpu_ns"]).sum())
    return max(0, cpu_at(end) - cpu_at(start) - inside) / 1e9


def _sleeps_outside(called: Array) -> float:
    """Return how often the rank gave its core up between these calls."""
    if len(called) < 2:
        return 0.0
    between = (called["sleeps"][1:] - called["sleeps_end"][:-1]).astype(np.int32)
    return float(np.maximum(between, 0).sum())


def _computing(cpu: Array, elapsed: Array, sleeps: Array, each: Array | None = None) -> Stage:
    """Return a stage of computing. A rank that only waits for a core does not sleep: others have taken its core.

    `each`: CPU time of each rank in each iteration.
    """
    asleep = cpu.mean() < ASLEEP * elapsed.mean() and sleeps.mean() >= LEAST_SLEEPS
    times = tuple(map(float, cpu)), tuple(map(float, elapsed))
    return Stage("sleep", *times) if asleep else Stage("compute", *times, jitter=_jitter(each))


def _jitter(each: Array | None) -> float:
    """Return the deviation of normal times, drawn for each rank and iteration, that makes ranks wait as long as here.

    Of n such times the longest exceeds their mean by a known number of deviations. Differences of ranks that last are
    left out: they are shares.
    """
    if each is None or each.shape[0] < 2 or each.shape[1] < LEAST_ITERATIONS:
        return 0.0
    means = each.mean(axis=1, keepdims=True)
    if not (means > 0).all():
        return 0.0
    relative = each / means
    excess = float((relative.max(axis=0) - relative.mean(axis=0)).mean())
    return excess / _longest_of(each.shape[0])


@functools.cache
def _longest_of(count: int) -> float:
    """Return the mean of the largest of so many numbers with standard normal distribution."""
    normal, step = NormalDist(), 0.01
    places = [step * at for at in range(-800, 801)]
    return step * sum(z * count * normal.pdf(z) * normal.cdf(z) ** (count - 1) for z in places)


def _repeated(logs: Sequence[RankLog], messages: Sequence[Array], bounds: Sequence[Array]) -> list[Stage]:
    """Return the stages of an iteration."""
    slots = _slots(logs, messages, bounds)
    iteration_s = sum(float((slot.elapsed_s + slot.call_s).mean()) for slot in slots)
    stages: list[Stage] = []
    cpu, elapsed, sleeps, usual = np.zeros((4, len(logs)))
    each: list[Array | None] = []
    group: list[_Slot] = []

    def end_group() -> None:
        if group:
            stages.extend(_messages(group))
            group.clear()

    for slot in slots:
        cpu, elapsed, sleeps = cpu + slot.cpu_s, elapsed + slot.elapsed_s, sleeps + slot.sleeps
        usual += slot.usual_s
        each.append(slot.each_s)
        if usual.mean() >= LEAST_PART * iteration_s:
            # Computing between two starts of one exchange precedes the exchange, which is one stage.
            if not (_starts(group) and _starts([slot])):
                end_group()
            parts = _in_common(each)
            stages.append(_computing(cpu, elapsed, sleeps, np.sum(parts, axis=0) if parts else None))
            cpu, elapsed, sleeps, usual = np.zeros((4, len(logs)))
            each = []
        if slot.collective:
            end_group()
            stages.append(_collective(slot))
        else:
            group.append(slot)
    end_group()
    ends = [one["end_ns"][bound] for one, bound in zip(messages, bounds, strict=True)]
    accesses = [_accesses(log, int(end[0]), int(end[-1])) for log, end in zip(logs, ends, strict=True)]
    return _paired(stages) + _io_stages(accesses, ends)


def _starts(slots: Sequence[_Slot]) -> bool:
    """Return True if all calls begin a message that a later call completes."""
    return all(meaning.is_start(routine) for slot in slots for routine in slot.routines)


def _paired(stages: Sequence[Stage]) -> list[Stage]:
    """Return the stages with a wait for each non-blocking one. One that the next messages complete as well blocks."""
    found: list[Stage] = []
    begun = -1  # place of the non-blocking stage that nothing has completed; -1: none
    for stage in stages:
        if stage.kind == "wait" and begun < 0:
            continue  # for messages that the iteration before has begun
        if begun >= 0 and stage.kind in ("isend-irecv", "sendrecv", "halo"):
            found[begun] = replace(found[begun], kind="sendrecv")
        if stage.kind in ("isend-irecv", "sendrecv", "halo", "wait"):
            begun = len(found) if stage.kind == "isend-irecv" else -1
        found.append(stage)
    if begun >= 0:
        found[begun] = replace(found[begun], kind="sendrecv")
    return found


def _slots(logs: Sequence[RankLog], messages: Sequence[Array], bounds: Sequence[Array]) -> list[_Slot]:
    """Return the calls of an iteration, with means over the iterations."""
    own = [_by_position(log, one, ends) for log, one, ends in zip(logs, messages, bounds, strict=True)]
    shortest = min(len(one) for one in own)
    if all(len(one) == shortest for one in own) and all(
        len({one[at].routines[0] for one in own}) == 1 for at in range(shortest)
    ):
        return [_together([one[at] for one in own]) for at in range(shortest)]
    # Ranks differ in their messages: those between two collective calls are one slot.
    merged = [_by_segment(one) for one in own]
    return [_together(parts) for parts in zip(*merged, strict=False)]


def _by_position(log: RankLog, messages: Array, ends: Array) -> list[_Slot]:
    """Return the slots of one rank. If its iterations differ in the number of calls, there is one for all of them."""
    periods = np.diff(ends)
    period = int(periods[0])
    calls = messages[ends[0] + 1 : ends[-1] + 1]
    previous = messages[ends[0] : ends[-1]]
    cpu = (calls["cpu_ns"] - previous["cpu_end_ns"]).astype(float)
    elapsed = (calls["start_ns"] - previous["end_ns"]).astype(float)
    sleeps = (calls["sleeps"] - previous["sleeps_end"]).astype(np.int32).astype(float)
    io = log.of_kinds(READ, WRITE, CONTROL_POINT)
    at = np.searchsorted(calls["start_ns"], io["end_ns"], side="left")
    inside = (io["start_ns"] >= previous["end_ns"][0]) & (at < len(calls))
    # The emulation has control points, too, and counts their CPU time as this does: stage_run.hpp, `ended_cpu_s`.
    used = inside & (io["kind"] != CONTROL_POINT)
    np.subtract.at(cpu, at[used], (io["cpu_end_ns"] - io["cpu_ns"])[used])
    np.subtract.at(elapsed, at[inside], (io["end_ns"] - io["start_ns"])[inside])
    np.subtract.at(sleeps, at[inside], (io["sleeps_end"] - io["sleeps"]).astype(np.int32)[inside])
    cpu, elapsed, sleeps = np.maximum(cpu, 0) / 1e9, np.maximum(elapsed, 0) / 1e9, np.maximum(sleeps, 0)
    took = (calls["end_ns"] - calls["start_ns"]) / 1e9
    if (periods == period).all():
        count, width = len(periods), period
    else:
        count, width = 1, len(calls)
    slots = []
    for position in range(width):
        every = slice(position, None, width)
        of_cpu, of_elapsed = _without_pause(cpu[every]), _without_pause(elapsed[every])
        sends = meaning.is_send(calls["routine"][position].decode())
        peers = {int(peer) - log.rank for peer in np.unique(calls["peer"][every]) if sends and peer >= 0}
        slots.append(
            _Slot(
                [calls["routine"][position].decode()],
                np.array([of_cpu.mean()]),
                np.array([of_elapsed.mean()]),
                np.array([float(np.median(elapsed[every]))]),
                np.array([sleeps[every].mean()]),
                np.array([took[every].mean()]),
                np.array([float(np.maximum(calls["bytes"][every], 0).mean())]),
                np.array([1.0 if sends and peers else 0.0]),
                [peers],
                of_cpu[np.newaxis, :],
            )
        )
    return slots if count > 1 or len(periods) == 1 else [_merged(slots, len(periods))]


def _without_pause(times: Array) -> Array:
    """Return the times of all iterations in seconds, without the excess of the longest over the second.

    A virtual machine may stand still for a tenth of a second, which its kernel counts as CPU time of whoever computed.
    One such pause in a hundred iterations would double what a rank seems to compute.
    """
    if len(times) < LEAST_ITERATIONS:
        return times
    second, longest = np.partition(times, -2)[-2:]
    return np.minimum(times, second) if longest - second <= LONGEST_PAUSE_S else times


def _merged(slots: Sequence[_Slot], iterations: int = 1) -> _Slot:
    """Return several slots of one rank as one. Its computing precedes all of its calls."""
    sent = sum(float(slot.sends[0]) for slot in slots)
    bytes_ = sum(float(slot.sends[0] * slot.bytes[0]) for slot in slots)
    return _Slot(
        [slot.routines[0] for slot in slots],
        sum((slot.cpu_s for slot in slots), np.zeros(1)) / iterations,
        sum((slot.elapsed_s for slot in slots), np.zeros(1)) / iterations,
        sum((slot.usual_s for slot in slots), np.zeros(1)) / iterations,
        sum((slot.sleeps for slot in slots), np.zeros(1)) / iterations,
        sum((slot.call_s for slot in slots), np.zeros(1)) / iterations,
        np.array([bytes_ / sent if sent else float(slots[0].bytes[0]) if slots else 0.0]),
        np.array([sent / iterations]),
        [set().union(*(slot.peers[0] for slot in slots))],
    )


def _by_segment(slots: Sequence[_Slot]) -> list[_Slot]:
    """Return the slots of one rank, with all messages before a collective call as one, which may be empty."""
    found: list[_Slot] = []
    waiting: list[_Slot] = []
    for slot in slots:
        if slot.collective:
            found += [_merged(waiting), slot]
            waiting = []
        else:
            waiting.append(slot)
    return [*found, _merged(waiting)]


def _together(parts: Sequence[_Slot]) -> _Slot:
    """Return one slot for all ranks of what each rank does at this place."""
    names = max((part.routines for part in parts), key=len)
    each = _in_common([part.each_s for part in parts])
    return _Slot(
        names,
        np.concatenate([part.cpu_s for part in parts]),
        np.concatenate([part.elapsed_s for part in parts]),
        np.concatenate([part.usual_s for part in parts]),
        np.concatenate([part.sleeps for part in parts]),
        np.concatenate([part.call_s for part in parts]),
        np.concatenate([part.bytes for part in parts]),
        np.concatenate([part.sends for part in parts]),
        [part.peers[0] if part.peers else set() for part in parts],
        np.concatenate(each) if each else None,
    )


def _in_common(parts: Sequence[Array | None]) -> list[Array] | None:
    """Return times by iteration, cut to the iterations that all parts have. None if they are not known of one."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    shortest = min(part.shape[1] for part in known)
    return [part[:, :shortest] for part in known]


# ---- stages of messages --------------------------------------------------------------------------------------------


def _collective(slot: _Slot) -> Stage:
    base = slot.collective or ""
    kind = meaning.COLLECTIVES.get(base) or meaning.STAND_INS[base]
    return Stage(kind, elapsed_s=tuple(slot.call_s), bytes=tuple(map(float, slot.bytes)), routine=slot.routines[0])


def _messages(group: Sequence[_Slot]) -> list[Stage]:
    """Return the stages of messages between two ranks that follow each other closely."""
    routines = [routine for slot in group for routine in slot.routines]
    if not routines:
        return []
    elapsed = tuple(sum(slot.call_s for slot in group))
    sends = sum(slot.sends for slot in group)
    if not sends.any():
        waits = any(routine.startswith("MPI_Wait") for routine in routines)
        return [Stage("wait", elapsed_s=elapsed, routine=routines[-1])] if waits else []
    bytes_ = sum(slot.sends * slot.bytes for slot in group) / np.maximum(sends, 1)
    peers = [set().union(*ranks) for ranks in zip(*(slot.peers for slot in group), strict=True)]
    first = next(routine for routine in routines if meaning.is_send(routine))
    bytes_ = tuple(map(float, bytes_))
    if _starts(group):
        return [Stage("isend-irecv", elapsed_s=elapsed, bytes=bytes_, routine=first)]
    most = max(len(one) for one in peers)
    if most <= 1:
        return [Stage("sendrecv", elapsed_s=elapsed, bytes=bytes_, routine=first)]
    return [Stage("halo", elapsed_s=elapsed, bytes=bytes_, routine=first, dimensions=min(3, (most + 1) // 2))]


# ---- stages of I/O -------------------------------------------------------------------------------------------------


def _accesses(log: RankLog, since: int, until: int) -> Array:
    """Return the accesses of one rank in a stretch of time."""
    calls = log.of_kinds(READ, WRITE)
    return calls[(calls["start_ns"] >= since) & (calls["start_ns"] < until)]


def _io_stages(accesses: Sequence[Array], ends: Sequence[Array] | None) -> list[Stage]:
    """Return a stage for each kind of access. `ends`: times of each rank's iterations; None: they happen once."""
    keys: dict[tuple[int, str], None] = {}
    for one in accesses:
        for call in one:
            routine = call["routine"].decode()
            if routine not in meaning.SYNCS:
                keys.setdefault((int(call["kind"]), meaning.access_of(routine)))
    return [_io_stage(accesses, ends, kind, access) for kind, access in keys]


def _usual_request(sizes: Array) -> int:
    """Return the bytes of a request. Rare larger calls are not one, nor are smaller ones, e.g. of a header."""
    moving = sizes[sizes > 0]
    return int(np.quantile(moving, USUAL_REQUEST, method="higher")) if len(moving) else 0


def _io_stage(accesses: Sequence[Array], ends: Sequence[Array] | None, kind: int, access: str) -> Stage:
    chosen, syncs = [], False
    for one in accesses:
        names = [name.decode() for name in one["routine"]]
        of_kind = [
            code == kind and meaning.access_of(name) == access and name not in meaning.SYNCS
            for code, name in zip(one["kind"], names, strict=True)
        ]
        syncs |= any(name in meaning.SYNCS for name in names)
        chosen.append(one[np.array(of_kind, dtype=bool)])
    at = [np.zeros(len(calls), int) for calls in chosen]
    if ends is None:
        happens, every = 1, 1
    else:
        at = [np.searchsorted(end, calls["start_ns"], side="right") for end, calls in zip(ends, chosen, strict=True)]
        iterations = np.unique(np.concatenate(at))
        happens = len(iterations)
        every = round(float(np.median(np.diff(iterations)))) if happens > 1 else len(ends[0])
    counts = np.array([len(calls) for calls in chosen]) / happens
    bytes_ = np.array([float(calls["bytes"].sum()) for calls in chosen]) / happens
    took = tuple(float((calls["end_ns"] - calls["start_ns"]).sum()) / 1e9 / happens for calls in chosen)
    repeat, request = 1, 0
    placed = placement_of(chosen, at)
    if access == "collective" and not placed.advances:
        repeat = max(1, round(float(counts.max())))
    else:
        request = _usual_request(np.concatenate([calls["bytes"] for calls in chosen]))
    if access == "posix":
        files = [set(calls["file"].tolist()) for calls in chosen if len(calls)]
        if len(files) > 1 and not set.intersection(*files):
            access = "file-per-process"
    routine = next(calls["routine"][0].decode() for calls in chosen if len(calls))
    return Stage(
        "read" if kind == READ else "write",
        elapsed_s=took,
        bytes=tuple(map(float, bytes_ / repeat)),
        routine=routine,
        every=max(1, every),
        repeat=repeat,
        happens=happens,
        access=access,
        request_bytes=request,
        strided=placed.strided and access != "file-per-process",
        append=placed.appends and kind == WRITE,
        sync=syncs and kind == WRITE,
    )
