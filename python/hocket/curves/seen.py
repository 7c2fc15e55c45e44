"""Refines the curve of an application by what a run under `hocket forward` showed (GekkoFWD, section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hocket.curves import patterns, store
from hocket.curves.curve import SEEN, Curve, Run, run_of
from hocket.curves.match import LEAST_CONFIDENCE, Access, match
from hocket.errors import UsageError
from hocket.forward_page import Seen

LEAST_BYTES = 1 << 20  # with less, start-up and caches decide what is seen


@dataclass(frozen=True)
class Application:
    """Whose run it was."""

    name: str
    nodes: int
    processes: int


def refine(path: Path, application: Application, seen: Mapping[int, Seen], seconds: float) -> str:
    """Add a run to the application's curve in the store. Returns why that was not possible, else "".

    A run that moved hardly any data changes nothing, and neither does one into a file that hocket did not write.
    Raises HocketError if the store cannot be read or written.
    """
    moved = {number: one.bytes for number, one in seen.items() if one.bytes > 0}
    run = run_of(moved, {number: one.busy_s for number, one in seen.items()}, seconds, LEAST_BYTES)
    if run is None or not application.name.isprintable() or not store.is_writable_by_hocket(path):
        return ""
    why = ""

    def refined(curves: dict[str, Curve]) -> dict[str, Curve]:
        nonlocal why
        known = curves.get(application.name)
        if known is not None and not known.is_of_size(application.processes):
            if known.found != (SEEN,):
                why = _other_size(known, application)
                return curves
            known = None
        return curves | {application.name: _refined(known, application, run, list(seen.values()), path)}

    store.change(path, refined)
    return why


def _other_size(known: Curve, application: Application) -> str:
    return (
        f"the curve of '{known.name}' is of {known.processes} processes, so this run of {application.processes} "
        "does not refine it; give runs of another size another --name"
    )


def _refined(known: Curve | None, application: Application, run: Run, seen: Sequence[Seen], path: Path) -> Curve:
    now = datetime.now(UTC)
    curve = known or Curve(application.name, application.nodes, application.processes, (SEEN,), now)
    if curve.found == (SEEN,):
        curve = _shaped(curve, seen, path)
    return curve.refined(run, now)


def _shaped(curve: Curve, seen: Sequence[Seen], path: Path) -> Curve:
    """Give the curve of an application that only runs have shown the shape of the nearest pattern, if one is near."""
    try:
        measured = patterns.read(store.patterns_dir(path))
    except (UsageError, OSError):
        return curve  # nobody has measured patterns
    found = match(_accesses(seen), curve.nodes, curve.processes, measured)
    if found is None or found.confidence < LEAST_CONFIDENCE:
        return curve
    return curve.reshaped(SEEN, found.rates, found.names, found.confidence)


def _accesses(seen: Sequence[Seen]) -> list[Access]:
    """Return what is known of the accesses: nobody has looked at their layout."""
    calls = sum(one.calls for one in seen)
    kinds = {"read": sum(one.read_bytes for one in seen), "write": sum(one.written_bytes for one in seen)}
    request = max(sum(kinds.values()) / max(calls, 1), 1.0)
    return [Access(None, None, operation, request, moved) for operation, moved in kinds.items() if moved > 0]
