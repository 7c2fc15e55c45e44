"""The sources from which the FLOP per iteration of an application are known, as text."""

from __future__ import annotations

from collections.abc import Mapping

COUNTERS, DECLARED, PROFILE, UNKNOWN = "counters", "declared", "profile", ""
WORDS = {  # the best source first
    COUNTERS: "hardware counters",
    DECLARED: "declared",
    PROFILE: "profile of an earlier run",
    UNKNOWN: "not known (iterations)",
}
NAMED = 4  # number of applications that are named for each source


def sources_text(sources: Mapping[str, str]) -> str:
    """Return e.g. "FLOP: hardware counters (a, b), declared (c)" for applications and their sources; "" for none."""
    told = []
    for source, words in WORDS.items():
        names = [name for name, of in sources.items() if of == source]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        if names:
            told.append(f"{words} ({', '.join(names[:NAMED])}{more})")
    return f"FLOP: {', '.join(told)}" if told else ""
