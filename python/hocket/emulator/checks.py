"""Finds keys of a stage that are right alone and contradict each other. Raises UsageError with file, line, and key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hocket.emulator.keys import COMPUTING, CPU_TIME, INPUT_OUTPUT, MESSAGES, MOST_MESSAGE, NON_BLOCKING
from hocket.errors import UsageError
from hocket.toml_checks import Place, Table, needed

if TYPE_CHECKING:
    from hocket.emulator.description import Stage

Read = dict[str, Any]  # the values of a stage by key, None: not given


def usual_end(read: Read) -> str:
    if read["kind"] in COMPUTING:
        return "operations"
    return "operations" if read["time_s"] is None else "time"


def ends(read: Read, place: Place) -> None:
    """Check time_s, ends_by, and factors of a stage that may end by time."""
    kind, time_s, ends_by = read["kind"], read["time_s"], read["ends_by"]
    if ends_by == CPU_TIME and kind not in COMPUTING:
        told = f"ends_by = '{CPU_TIME}' means nothing in a stage of kind '{kind}', which does not compute"
        raise UsageError(f"{place.of('ends_by')}: {told}; write 'time'")
    may_be_counted = kind in (*MESSAGES, *INPUT_OUTPUT)
    if not may_be_counted:
        needed({key: value for key, value in read.items() if value is not None}, "time_s", place, "time_s = 0.012")
    if kind == "sleep" and ends_by == "operations":
        raise UsageError(f"{place.of('ends_by')}: ends_by = 'operations': a stage that sleeps has none; remove it")
    if not may_be_counted:
        return
    if ends_by == "time" and time_s is None:
        raise UsageError(f"{place.of('ends_by')}: ends_by = 'time' needs time_s; give it")
    if ends_by == "operations" and time_s is not None:
        told = f"time_s = {time_s:g} contradicts ends_by = 'operations': the stage has its bytes, or lasts this time"
        raise UsageError(f"{place.of('time_s')}: {told}; remove one")
    if read["factors"] is not None and time_s is None:
        raise UsageError(f"{place.of('factors')}: factors scale time_s, which is missing; give it, or remove factors")


def data_given(table: Table, read: Read, place: Place) -> None:
    """Check that [data] has bytes, and no key that says something about bytes that it has not."""
    if not read["bytes"] and not read["replicated_bytes"]:
        raise UsageError(f"{place}: neither bytes nor replicated_bytes is given; write e.g. bytes = 3_947_000_000")
    about = {"bytes": ("constant_percent", "shares", "imbalance", "distribution")}
    about["replicated_bytes"] = ("replicated_constant_percent",)
    for counted, keys in about.items():
        for key in keys:
            if key in table and not read[counted]:
                raise UsageError(
                    f"{place.of(key)}: {key} means nothing without {counted}; remove it, or give {counted}"
                )


def bytes_given(read: Read, place: Place) -> None:
    """Check the bytes of messages and accesses."""
    kind = read["kind"]
    if kind in MESSAGES and read["bytes"] is None and read["time_s"] is None:
        raise UsageError(f"{place}: neither bytes nor time_s is given; write e.g. bytes = 8_000_000")
    if kind in (NON_BLOCKING, *INPUT_OUTPUT) and read["bytes"] is None:
        needed({}, "bytes", place, "bytes = 8_000_000")
    if kind in (*MESSAGES, NON_BLOCKING) and (read["bytes"] or 0) * _most_load(read) > MOST_MESSAGE:
        told = f"bytes = {read['bytes']} must be at most {MOST_MESSAGE} in one message of a rank"
        raise UsageError(f"{place.of('bytes')}: {told}")
    if kind in INPUT_OUTPUT and read["pattern"] == "strided" and read["access"] == "file-per-process":
        told = "pattern = 'strided' contradicts access = 'file-per-process', where each rank has a file of its own"
        raise UsageError(f"{place.of('pattern')}: {told}")


def _most_load(read: Read) -> float:
    """Return the largest share of a rank over the mean."""
    given = read.get("shares") or {}
    return max([read.get("imbalance") or 1.0, *(max(one) * size for size, one in given.items())])


def shares(read: Read, place: Place) -> None:
    """Check the distribution over ranks."""
    given = read.get("imbalance")
    if read.get("distribution") is not None and given is None:
        told = f"distribution = '{read['distribution']}' means nothing without imbalance"
        raise UsageError(f"{place.of('distribution')}: {told}; give it, e.g. imbalance = 1.5")
    if given is None:
        return
    if read["shares"] is not None:
        raise UsageError(f"{place.of('imbalance')}: imbalance = {given:g} contradicts shares; give one of them")
    if (read["distribution"] or "linear") == "linear" and given > 2:
        told = f"imbalance = {given:g} must be at most 2 if shares fall evenly from rank 0 to the last"
        raise UsageError(f"{place.of('imbalance')}: {told}; use distribution = 'one' or 'random'")


def waited_for(name: str | None, before: Sequence[Stage], place: Place) -> int:
    """Return the position of the stage that a wait completes."""
    waited = {one.waits_for for one in before}
    pending = [at for at, one in enumerate(before) if one.kind == NON_BLOCKING and at not in waited]
    if name is not None:
        pending = [at for at in pending if before[at].name == name]
    if pending:
        return pending[-1]
    if name is None:
        raise UsageError(f"{place}: no stage of kind '{NON_BLOCKING}' before it in the phase is left to wait for")
    told = f"waits_for = '{name}' is no stage of kind '{NON_BLOCKING}' before it in the phase that is left to wait for"
    raise UsageError(f"{place.of('waits_for')}: {told}")


def all_waited_for(stages: Sequence[Stage]) -> None:
    """Check that each non-blocking stage of a phase has its wait."""
    waited = {one.waits_for for one in stages}
    for at, one in enumerate(stages):
        if one.kind == NON_BLOCKING and at not in waited:
            raise UsageError(f"{one.place}: no stage of kind 'wait' in the phase completes '{one.name}'; add one")


def take_place(stages: Sequence[Stage], iterations: int) -> None:
    """Check that the phase has an iteration in which each stage takes place."""
    for one in stages:
        if one.every > iterations and isinstance(one.place, Place):
            told = f"every = {one.every} exceeds the {iterations} iterations of the phase: the stage never takes place"
            raise UsageError(f"{one.place.of('every')}: {told}")
