"""A lane: the activity of one application, as intervals without gaps or overlaps. Pure; times are nanoseconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

COMPUTING, WAITING, IO = "computing", "waiting", "io"
ALIKE_SHARE = 0.1  # shares that differ by less look alike
SOLID_SHARE = 0.9


@dataclass(frozen=True)
class Interval:
    """An application did one thing from `start_ns` to `end_ns`.

    IO takes precedence over WAITING, and WAITING over COMPUTING. `share` is the part of the time that is of this kind.
    It is less than 1 only if `coalesce` merged short intervals of several kinds.
    """

    kind: str
    start_ns: int
    end_ns: int
    share: float = 1.0

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9


def overlay(busy: Iterable[Interval], start_ns: int, end_ns: int) -> Iterator[Interval]:
    """Yield [start, end] as one lane: IO if any interval is IO, else WAITING, else COMPUTING."""
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
    """Merge what a picture cannot show apart.

    Short intervals are merged, and intervals of one kind are joined across short computing.
    """
    joined: list[Interval] = []
    for part in _gathered(intervals, shorter_than_ns):
        if len(joined) >= 2 and joined[-1].kind == COMPUTING and _alike(joined[-2], part):
            gap = joined[-1].end_ns - joined[-1].start_ns
            if gap < shorter_than_ns:
                joined[-2:] = [_merged([*joined[-2:], part])]
                continue
        if joined and _alike(joined[-1], part):
            joined[-1] = _merged([joined[-1], part])
        else:
            joined.append(part)
    return joined


def _gathered(intervals: Iterable[Interval], shorter_than_ns: int) -> Iterator[Interval]:
    """Yield the intervals. Adjacent ones that are shorter than this are merged until they are as long."""
    few: list[Interval] = []
    for part in intervals:
        short = part.end_ns - part.start_ns < shorter_than_ns
        if few and not short:
            yield _merged(few)
            few = []
        if not short:
            yield part
            continue
        few.append(part)
        if part.end_ns - few[0].start_ns >= shorter_than_ns:
            yield _merged(few)
            few = []
    if few:
        yield _merged(few)


def _alike(one: Interval, other: Interval) -> bool:
    return one.kind == other.kind and abs(one.share - other.share) < ALIKE_SHARE


def _merged(parts: list[Interval]) -> Interval:
    """Return one interval over all parts.

    Its kind is IO or WAITING, whichever fills more time, or COMPUTING if neither occurs.
    """
    times: Counter[str] = Counter()
    for part in parts:
        times[part.kind] += part.share * (part.end_ns - part.start_ns)
    kind = max((kind for kind in times if kind != COMPUTING), key=lambda kind: times[kind], default=COMPUTING)
    length = parts[-1].end_ns - parts[0].start_ns
    share = times[kind] / length
    return Interval(kind, parts[0].start_ns, parts[-1].end_ns, share if share < SOLID_SHARE else 1.0)


def overlaps(lanes: Iterable[Iterable[Interval]]) -> list[Interval]:
    """Return the intervals in which two or more lanes are IO."""
    changes: list[tuple[int, int]] = []
    for part in (part for lane in lanes for part in lane if part.kind == IO):
        changes += [(part.start_ns, 1), (part.end_ns, -1)]
    found, depth, since = [], 0, 0
    for time_ns, by in sorted(changes, key=lambda change: (change[0], -change[1])):  # touching intervals count as one
        if depth < 2 <= depth + by:
            since = time_ns
        elif depth >= 2 > depth + by and time_ns > since:
            found.append(Interval(IO, since, time_ns))
        depth += by
    return found


def seconds(lane: Iterable[Interval], kind: str) -> float:
    """Return the seconds that a lane is of this kind."""
    return sum(part.seconds for part in lane if part.kind == kind)
