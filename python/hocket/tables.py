"""Formats text for people: columns on a terminal, durations, quantities."""

from __future__ import annotations

from collections.abc import Sequence


def columns(heading: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return aligned columns. Columns whose numbers are in `right` are right-aligned."""
    lines = [heading, *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def printable(text: str) -> str:
    """Return the text without control characters: names come from programs and could move the cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def duration(ns: int | float) -> str:
    """Return a duration with the digits that matter: 83 ms, 2.41 s, 4 min 10 s, 3 h 20 min."""
    seconds = ns / 1e9
    if seconds < 0.0995:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 99.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def quantity(number: float) -> str:
    """Return a number of bytes as text, in decimal units, as storage is sold."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def with_spread(ns: int, spread_ns: int) -> str:
    """Return a mean and its spread in seconds; "" if nothing is known yet."""
    return f"{ns / 1e9:.2f} ± {spread_ns / 1e9:.2f} s" if ns else ""


def times(count: int) -> str:
    """Return "once", "twice", "3 times"."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
