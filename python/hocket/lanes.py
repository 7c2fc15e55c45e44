"""A lane: what one application did, as intervals without gaps or overlaps. Pure; times are nanoseconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

COMPUTING, WAITING, IO = "computing", "waiting", "io"


@dataclass(frozen=True)
class Interval:
    """An application did one thing from `start_ns` to `end_ns`. IO outranks WAITING, that outranks COMPUTING."""

    kind: str
    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9


def overlay(busy: Iterable[Interval], start_ns: int, end_ns: int) -> Iterator[Interval]:
    """[start, end] as one lane: IO where any interval is IO, else WAITING, else COMPUTING."""
    changes: list[tuple[int, str, int]] = []
    for part in busy:
        begin, end = max(part.start_ns, start_ns), min(part.end_ns, end_ns)
        if begin < end:
            changes += [(begin, part.kind, 1), (end, part.kind, -1)]
    depth: Counter[str] = Counter()
    since, kind = start_ns, COMPUTING
    for time_ns, changed, by in sorted(changes):
        depth[changed] += by
        now = IO if depth[IO] else WAITING if depth[WAITING] else COMPUTING
        if now != kind:
            if time_ns > since:
                yield Interval(kind, since, time_ns)
                since = time_ns
            kind = now
    if end_ns > since:
        yield Interval(kind, since, end_ns)


def coalesce(intervals: Iterable[Interval], shorter_than_ns: int) -> list[Interval]:
    """Joins intervals of one kind across computing shorter than this: what a picture cannot show apart."""
    joined: list[Interval] = []
    for part in intervals:
        if len(joined) >= 2 and joined[-1].kind == COMPUTING and joined[-2].kind == part.kind:
            gap = joined[-1].end_ns - joined[-1].start_ns
            if gap < shorter_than_ns:
                before = joined[-2].start_ns
                joined[-2:] = [Interval(part.kind, before, part.end_ns)]
                continue
        if joined and joined[-1].kind == part.kind:
            joined[-1] = Interval(part.kind, joined[-1].start_ns, part.end_ns)
        else:
            joined.append(part)
    return joined


def overlaps(lanes: Iterable[Iterable[Interval]]) -> list[Interval]:
    """Where two or more lanes are IO at once."""
    changes: list[tuple[int, int]] = []
    for part in (part for lane in lanes for part in lane if part.kind == IO):
        changes += [(part.start_ns, 1), (part.end_ns, -1)]
    found, depth, since = [], 0, 0
    for time_ns, by in sorted(changes, key=lambda change: (change[0], -change[1])):  # touching ones are one
        if depth < 2 <= depth + by:
            since = time_ns
        elif depth >= 2 > depth + by and time_ns > since:
            found.append(Interval(IO, since, time_ns))
        depth += by
    return found


def seconds(lane: Iterable[Interval], kind: str) -> float:
    """How long a lane was of this kind."""
    return sum(part.seconds for part in lane if part.kind == kind)
