"""The reconfigurations of a malleable application, from its RECONFIGURATION events (Proteo, section 4.2).

Each record holds the sizes before and after, the method, and the times of the parts. Times are nanoseconds of the
node's clock; figures for people are seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hocket.bus import Event
from hocket.tables import columns, printable, quantity

SPAWNING, CONSTANT, VARIABLE, RESUMING = "spawning", "constant", "variable", "resuming"
PARTS = (SPAWNING, CONSTANT, VARIABLE, RESUMING)  # in the order in which they happen


@dataclass(frozen=True)
class Part:
    """One part of a reconfiguration. The application computed except for `stopped_ns`."""

    kind: str
    start_ns: int
    end_ns: int
    stopped_ns: int

    @property
    def overlapped_ns(self) -> int:
        return self.end_ns - self.start_ns - self.stopped_ns


@dataclass(frozen=True)
class Reconfiguration:
    """The fields of the event. A field that an older trace lacks is 0 or ""."""

    application: str
    time_ns: int  # time of the report
    request: int = 0  # 0: requested by the application itself
    done: bool = False
    reason: str = ""
    sources: int = 0
    targets: int = 0
    iteration: int = 0
    spawn: str = ""
    spawn_strategy: str = ""
    redistribution: str = ""
    redistribution_strategy: str = ""
    start_ns: int = 0
    wait_ns: int = 0
    spawning_ns: int = 0
    spawning_stopped_ns: int = 0
    constant_ns: int = 0
    constant_stopped_ns: int = 0
    variable_ns: int = 0
    resuming_ns: int = 0
    stopped_ns: int = 0
    started: int = 0
    woken: int = 0
    ended: int = 0
    put_to_sleep: int = 0
    bytes_moved: int = 0
    bytes_kept: int = 0
    nodes: str = ""  # on which it runs afterwards, "NODE=PROCESSES …"
    left: str = ""  # places that processes have left, "NODE[:CORE] …"

    @classmethod
    def of(cls, event: Event, application: str) -> Reconfiguration:
        known = {key: value for key, value in event.fields.items() if key in cls.__dataclass_fields__}
        return cls(**{**known, "application": application, "time_ns": event.time_ns})

    @property
    def method(self) -> str:
        """Return the method as text, e.g. "merge single, collective blocking"."""
        spawn = f"{self.spawn} {self.spawn_strategy}".strip()
        data = f"{self.redistribution} {self.redistribution_strategy}".strip()
        return ", ".join(words for words in (spawn, data) if words)

    @property
    def sizes(self) -> str:
        """Return the processes before and after it, or that only the shares of the processes changed."""
        if self.done and self.sources == self.targets and self.spawn == "merge":
            return f"{self.sources} balanced"
        return f"{self.sources} → {self.targets}"

    @property
    def parts(self) -> list[Part]:
        """Return the parts that took time, in their order.

        The event reports their lengths and the start of the first. If the application computed in between, the last two
        parts are placed at the end: it stood still for them.
        """
        lengths = {kind: int(getattr(self, f"{kind}_ns")) for kind in PARTS}
        stopped = {kind: int(getattr(self, f"{kind}_stopped_ns", lengths[kind])) for kind in PARTS}
        begin = self.start_ns or self.time_ns - sum(lengths.values())
        computed = any(stopped[kind] < lengths[kind] for kind in PARTS)
        gap = max(0, self.time_ns - begin - sum(lengths.values())) if computed else 0
        found = []
        for kind in PARTS:
            begin += gap if kind == VARIABLE else 0
            if lengths[kind] > 0:
                found.append(Part(kind, begin, begin + lengths[kind], min(stopped[kind], lengths[kind])))
            begin += lengths[kind]
        return found

    @property
    def begin_ns(self) -> int:
        """Return the time of the control point at which it began."""
        parts = self.parts
        return self.start_ns or (parts[0].start_ns if parts else self.time_ns)

    @property
    def end_ns(self) -> int:
        """Return the end of its last part, or the time of the report if no part took time."""
        parts = self.parts
        return parts[-1].end_ns if parts else max(self.begin_ns, self.time_ns)

    def as_json(self, zero_ns: int) -> dict[str, object]:
        """Return a dictionary for other tools: times in seconds, `at_s` counted from `zero_ns`."""
        told: dict[str, object] = {"application": self.application, "at_s": (self.begin_ns - zero_ns) / 1e9}
        for key in type(self).__dataclass_fields__:
            if key in ("application", "time_ns", "start_ns"):
                continue
            value = getattr(self, key)
            told[key.removesuffix("_ns") + "_s" if key.endswith("_ns") else key] = (
                value / 1e9 if key.endswith("_ns") else value
            )
        return told


OVERLAP_NS = 500_000  # shorter overlaps cannot be seen in milliseconds
HEADINGS = ("application", "at s", "processes", "method", "waited", *PARTS, "stopped", "moved", "kept")


def seconds_of(length_ns: int, stopped_ns: int) -> str:
    """Return the length of a part, and in brackets how long of it the application computed."""
    length = f"{length_ns / 1e9:.3f}"
    overlapped_ns = length_ns - stopped_ns
    return f"{length} ({overlapped_ns / 1e9:.3f})" if overlapped_ns >= OVERLAP_NS else length


def cells(one: Reconfiguration) -> list[str]:
    """Return the figures under the last headings, in seconds: waited, the parts, stopped."""
    return [
        f"{one.wait_ns / 1e9:.3f}",
        seconds_of(one.spawning_ns, one.spawning_stopped_ns),
        seconds_of(one.constant_ns, one.constant_stopped_ns),
        f"{one.variable_ns / 1e9:.3f}",
        f"{one.resuming_ns / 1e9:.3f}",
        f"{one.stopped_ns / 1e9:.3f}",
    ]


def text_table(found: Sequence[Reconfiguration], zero_ns: int) -> str:
    """Return the table for a terminal in seconds, and below it the reasons of failures. "" if `found` is empty."""
    if not found:
        return ""
    rows = []
    for one in found:
        method = one.method if one.done else f"{one.method or '-'}  GIVEN UP"
        moved = [quantity(one.bytes_moved), quantity(one.bytes_kept)]
        at = f"{(one.begin_ns - zero_ns) / 1e9:.2f}"
        rows.append([one.application, at, one.sizes, method, *cells(one), *moved])
    lines = [columns(HEADINGS, rows, range(4, len(HEADINGS))), *_failures(found, zero_ns)]
    if any(part.overlapped_ns >= OVERLAP_NS for one in found for part in one.parts):
        lines.append("in brackets: how long of it the application computed")
    return "\n".join(lines)


def _failures(found: Sequence[Reconfiguration], zero_ns: int) -> Iterator[str]:
    for one in found:
        if not one.done:
            at = f"{(one.begin_ns - zero_ns) / 1e9:.2f} s"
            reason = printable(one.reason) or "no reason was given"
            yield f"given up at {at}, {one.application} {one.sources} → {one.targets}: {reason}"
