"""Curves of applications from Darshan logs and measured patterns (GekkoFWD, section 3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hocket.curves.curve import DARSHAN, Curve
from hocket.curves.darshan_log import Log
from hocket.curves.match import LEAST_CONFIDENCE, Access, Match, MeasuredPattern, match
from hocket.errors import HocketError


@dataclass(frozen=True)
class Observed:
    """An application, as its logs show it: those of its last size."""

    name: str
    nodes: int
    processes: int
    logs: int
    other_logs: int  # of other sizes, left out
    seconds: float  # of all logs together, as what follows
    io_s: float
    accesses: Sequence[Access]

    @property
    def bytes(self) -> float:
        return sum(one.bytes for one in self.accesses)


def name_of(path: Path, log: Log, name: str | None) -> str:
    """Return the name of the log's application: `name`, if given. Raises HocketError if there is none."""
    called = name or log.program
    if not called or not called.isprintable():
        raise HocketError(f"{path} does not say which program it is of; give --name NAME")
    return called


def observed(name: str, logs: Sequence[tuple[Path, Log]], processes_per_node: int | None) -> Observed:
    """Return the application that these logs are of. Raises HocketError if nobody says how many nodes there were."""
    path, last = max(logs, key=lambda one: one[1].began_s)
    same = [log for _, log in logs if log.processes == last.processes]
    if processes_per_node is not None:
        nodes = -(-last.processes // processes_per_node)
    elif last.nodes is not None:
        nodes = last.nodes
    elif last.processes == 1:
        nodes = 1
    else:
        raise HocketError(f"{path} does not say how many nodes there were; give --processes-per-node N")
    return Observed(
        name=name,
        nodes=nodes,
        processes=last.processes,
        logs=len(same),
        other_logs=len(logs) - len(same),
        seconds=sum(log.seconds for log in same),
        io_s=sum(min(log.io_s, log.seconds) for log in same),
        accesses=_joined(access for log in same for access in log.accesses),
    )


def _joined(accesses: Iterable[Access]) -> list[Access]:
    found: dict[tuple, float] = {}
    for one in accesses:
        key = (one.shared, one.spatiality, one.operation, one.request_bytes)
        found[key] = found.get(key, 0.0) + one.bytes
    return [Access(*key, moved) for key, moved in found.items()]


def matched(application: Observed, patterns: Sequence[MeasuredPattern]) -> Match | None:
    """Return what the application is like; None if it moved no data."""
    return match(application.accesses, application.nodes, application.processes, patterns)


def is_near(found: Match | None) -> bool:
    return found is not None and found.confidence >= LEAST_CONFIDENCE and len(found.rates) > 0


def curve_of(application: Observed, found: Match, known: Curve | None) -> Curve:
    """Return the application's curve: of the patterns, and of what earlier runs have measured.

    Raises HocketError if these were of another size.
    """
    now = datetime.now(UTC)
    if known is not None and known.measured:
        if not known.is_of_size(application.processes):
            raise HocketError(
                f"{application.name}: the store has measurements of {known.processes} processes, and the logs are of "
                f"{application.processes}; give another --name, or remove the curve with 'hocket curves remove'"
            )
        return known.reshaped(DARSHAN, found.rates, found.names, found.confidence)
    return Curve(
        name=application.name,
        nodes=application.nodes,
        processes=application.processes,
        found=(DARSHAN,),
        when=now,
        runs=application.logs,
        shape=found.rates,
        other_s_per_byte=max(application.seconds - application.io_s, 0) / application.bytes,
        pattern=found.names,
        confidence=found.confidence,
    )
