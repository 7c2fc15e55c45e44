"""Reports the applications whose I/O phases fit no period."""

from __future__ import annotations

from collections.abc import Iterable

IRREGULAR = "irregular"  # the value in the events APPLICATION and MODEL
NAMED = 4


def irregular_text(names: Iterable[str]) -> str:
    """Return e.g. "no period fits the I/O phases of a, b: …", or "" for no application."""
    given = list(names)
    if not given:
        return ""
    more = f" and {len(given) - NAMED} more" if len(given) > NAMED else ""
    return (
        f"no period fits the I/O phases of {', '.join(given[:NAMED])}{more}: "
        "they cannot be predicted, and policies against interference leave them alone"
    )
