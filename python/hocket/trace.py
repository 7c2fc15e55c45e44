"""Reads traces: the versioned event log that hocketd and the simulator write (docs/design/traces.md)."""

from __future__ import annotations

import gc
import gzip
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hocket.bus import Event, make_event
from hocket.errors import HocketError
from hocket.fields import check, object_of
from hocket.tables import printable

VERSIONS = range(1, 3)  # versions that are read (src/control/trace/writer.hpp)
COMPRESSED = ".gz"  # end of the name of a part that hocketd has compressed
GZIP = b"\x1f\x8b"


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
    def missing(self) -> int:
        """The number of records that hocketd left out, because its disk was slower than they came."""
        return sum(int(event.get("events", 0)) for event in self.events if event.type == "EVENTS_LOST")

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


@dataclass(frozen=True)
class TracePart:
    """One file of a trace: a daemon that writes much continues it in another."""

    path: Path
    header: dict[str, Any]
    events: list[Event]
    cut_short: bool
    next: str  # name of the next part; "": this is the last

    def beside(self, name: str, seen: set[Path]) -> TracePart:
        """Return the part that this one names. `seen` detects a cycle."""
        path = present(self.path.parent / name)
        if path in seen or not path.exists():
            known = "keep the parts of a trace together"
            raise TraceError(
                f"{self.path}: the trace continues in or from {printable(str(path))}, which is missing: {known}"
            )
        seen.add(path)
        return _part(path)


def _read(path: Path) -> Trace:
    path = present(path)
    seen = {path}
    parts = [_part(path)]
    # A trace that `hocket delta` keeps continues that of the run before, too: a replay needs it. That one does not name
    # it, so it is a trace of its own.
    while name := parts[0].header.get("continues"):
        before = parts[0].beside(str(name), seen)
        if before.next != parts[0].path.name.removesuffix(COMPRESSED):
            break
        parts.insert(0, before)
    while name := parts[-1].next:
        parts.append(parts[-1].beside(name, seen))
    header, events = parts[0].header, [event for part in parts for event in part.events]
    return Trace(
        path,
        node=header.get("node", ""),
        version=header.get("version", ""),
        start_ns=header.get("start_ns", events[0].time_ns if events else 0),
        start_unix_ns=header.get("start_unix_ns", 0),
        settings=header.get("settings", {}),
        events=events,
        cut_short=parts[-1].cut_short,
    )


def present(path: Path) -> Path:
    """Return the path under which the file is there: this one, or the compressed one."""
    compressed = path.with_name(path.name + COMPRESSED)
    return compressed if not path.exists() and compressed.exists() else path


def _part(path: Path) -> TracePart:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TraceError(f"cannot read the trace {path}: {error.strerror}") from error
    if content.startswith(GZIP):
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise TraceError(f"{path}: the file is damaged ({printable(str(error))})") from error
    lines = content.split(b"\n")
    header = _header(path, lines[0])
    whole = lines[1:-1]
    following = ""
    if whole and whole[-1].startswith(b'{"continued_by"'):
        following = _name(path, whole.pop())
    events, cut_short = list(_events(path, whole)), False
    if lines[1:] and lines[-1].strip():
        try:
            events.append(event_of(lines[-1]))
        except ValueError:
            cut_short = True
    return TracePart(path, header, events, cut_short, following)


def _name(path: Path, line: bytes) -> str:
    try:
        name = object_of(line)["continued_by"]
    except (ValueError, KeyError):
        name = None
    if not isinstance(name, str) or not name:
        raise TraceError(f"{path}, the last line: 'continued_by' names no file")
    return name


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
        header = object_of(line)
        version = header["hocket_trace"]
    except (ValueError, KeyError) as error:
        raise TraceError(f'{path}, line 1: not a trace of hocket (its first line must say "hocket_trace")') from error
    if version not in VERSIONS:
        known = f"versions {VERSIONS[0]} to {VERSIONS[-1]}"
        raise TraceError(
            f"{path}, line 1: a trace of version {printable(str(version)[:60])}; this hocket reads {known}"
        )
    try:
        check(header, "")
    except ValueError as error:
        raise TraceError(f"{path}, line 1: {error}") from error
    settings = header.get("settings", {})
    header["settings"] = settings if isinstance(settings, dict) else {}
    return header


def _events(path: Path, lines: list[bytes]) -> Iterator[Event]:
    for number, line in enumerate(lines, start=2):
        try:
            yield event_of(line)
        except ValueError as error:
            shown = printable(line[:60].decode(errors="replace"))
            raise TraceError(f"{path}, line {number}: no event ({printable(str(error))}): '{shown}'") from error


@contextmanager
def consistent(trace: Trace) -> Iterator[None]:
    """Report records that are well formed but contradict each other as one line: no tool repairs such a trace."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = printable(f"{type(error).__name__}: {error}")[:200]
        raise TraceError(f"{trace.path}: its records contradict each other ({why}); is the file damaged?") from error


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
            yield event_of(line)
        except ValueError:
            continue


def event_of(line: bytes) -> Event:
    """Return the event of a line. Raises ValueError if it is none."""
    keys = object_of(line)
    type_name = keys.pop("in", None) or keys.pop("out", None)
    if not isinstance(type_name, str):
        raise ValueError("it has neither 'in' nor 'out'")
    if "time_ns" not in keys:
        raise ValueError("it has no 'time_ns'")
    check(keys, type_name)
    return make_event(type_name, keys)
