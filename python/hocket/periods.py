"""Whether the I/O phases of applications have periods, in words."""

from __future__ import annotations

from collections.abc import Iterable

IRREGULAR = "irregular"  # as the events APPLICATION and MODEL have it
NAMED = 4


def irregular_text(names: Iterable[str]) -> str:
    """Such as "no period fits the I/O phases of a, b: …"; "" of none."""
    given = list(names)
    if not given:
        return ""
    more = f" and {len(given) - NAMED} more" if len(given) > NAMED else ""
    return (
        f"no period fits the I/O phases of {', '.join(given[:NAMED])}{more}: "
        "they cannot be predicted, and policies against interference leave them alone"
    )
