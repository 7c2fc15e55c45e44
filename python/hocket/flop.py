"""How the floating-point operations of an application's iterations are known, in words."""

from __future__ import annotations

from collections.abc import Mapping

COUNTERS, DECLARED, PROFILE, UNKNOWN = "counters", "declared", "profile", ""
WORDS = {  # the best first
    COUNTERS: "hardware counters",
    DECLARED: "declared",
    PROFILE: "profile of an earlier run",
    UNKNOWN: "not known (iterations)",
}
NAMED = 4  # applications of each source


def sources_text(sources: Mapping[str, str]) -> str:
    """Such as "FLOP: hardware counters (a, b), declared (c)", of applications and their sources; "" of none."""
    told = []
    for source, words in WORDS.items():
        names = [name for name, of in sources.items() if of == source]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        if names:
            told.append(f"{words} ({', '.join(names[:NAMED])}{more})")
    return f"FLOP: {', '.join(told)}" if told else ""
