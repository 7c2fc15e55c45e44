"""Reads traces: the versioned event log that hocketd and the simulator write (docs/design/traces.md)."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hocket.bus import Event, make_event
from hocket.errors import HocketError

VERSION = 1


class TraceError(HocketError):
    """The file is no trace, or has another version. The text names file and line."""


@dataclass(frozen=True)
class Trace:
    """The events of one daemon, in their order.

    It holds the events that came in and the commands that went out. The `application` and `member` of a command are its
    addressee.
    """

    path: Path
    node: str
    version: str  # version of hocket
    start_ns: int
    start_unix_ns: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    cut_short: bool = False  # True if the last line is incomplete: the writer was killed, or the disk was full

    @property
    def end_ns(self) -> int:
        return self.events[-1].time_ns if self.events else self.start_ns


def read_trace(path: Path | str) -> Trace:
    """Return the whole trace. Raises TraceError.

    An incomplete last line is left out, and sets `cut_short`.
    """
    path = Path(path)
    with collector_at_rest():
        return _read(path)


def _read(path: Path) -> Trace:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise TraceError(f"cannot read the trace {path}: {error.strerror}") from error
    header = _header(path, lines[0])
    whole = lines[1:-1]
    events, cut_short = list(_events(path, whole)), False
    if lines[1:] and lines[-1].strip():
        try:
            events.append(event_of(json.loads(lines[-1])))
        except (ValueError, KeyError, TypeError):
            cut_short = True
    return Trace(
        path,
        node=header.get("node", ""),
        version=header.get("version", ""),
        start_ns=header.get("start_ns", events[0].time_ns if events else 0),
        start_unix_ns=header.get("start_unix_ns", 0),
        settings=header.get("settings", {}),
        events=events,
        cut_short=cut_short,
    )


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Disable the garbage collector, and exempt what was created here from later collections.

    The events stay, so it need not examine them again and again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()


def _header(path: Path, line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
        version = header["hocket_trace"]
    except (ValueError, KeyError, TypeError) as error:
        raise TraceError(f'{path}, line 1: no trace of hocket (its first line must say "hocket_trace")') from error
    if version != VERSION:
        raise TraceError(f"{path}, line 1: a trace of version {version}; this hocket reads version {VERSION}")
    return header


def _events(path: Path, lines: list[bytes]) -> Iterator[Event]:
    for number, line in enumerate(lines, start=2):
        try:
            yield event_of(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            shown = line[:60].decode(errors="replace")
            raise TraceError(f"{path}, line {number}: no event ({error!r}): '{shown}'") from error


def last_events(path: Path | str, most_bytes: int = 1 << 20) -> Iterator[Event]:
    """Yield the events in the last part of a trace, which may still be written.

    Yields nothing if the file cannot be read.
    """
    try:
        with Path(path).open("rb") as trace:
            size = trace.seek(0, 2)
            trace.seek(max(0, size - most_bytes))
            lines = trace.read().split(b"\n")[1:]  # drops the header, or an incomplete line
    except OSError:
        return
    yield from events_of(b"\n".join(lines))


def events_of(part: bytes) -> Iterator[Event]:
    """Yield the events of the whole lines of a trace. Unreadable lines are left out."""
    for line in part.split(b"\n"):
        try:
            yield event_of(json.loads(line))
        except (ValueError, KeyError, TypeError):
            continue


def event_of(keys: dict[str, Any]) -> Event:
    """Return the event of a line. Raises KeyError, TypeError, or ValueError if it is none."""
    type_name = keys.pop("in") if "in" in keys else keys.pop("out")
    keys["time_ns"] = int(keys["time_ns"])
    return make_event(type_name, keys)
