"""The lines that benchmarks print (bench/README.md): one JSON object each."""

from __future__ import annotations

import json


def line(
    bench: str, case: str, value: float, unit: str, reference: float | None, bound: float | None, ok: bool, **more
) -> dict:
    """One figure beside what it is held against, if there is something; `more`: what only this benchmark tells."""
    ratio = value / reference if reference else None
    result = {"bench": bench, "case": case, "value": value, "unit": unit, "reference": reference, "ratio": ratio}
    return result | {"bound": bound, "ok": bool(ok)} | more


def report(*figure, **more) -> bool:
    """Prints `line` of the same arguments; whether it is within its bound."""
    told = line(*figure, **more)
    print(json.dumps(told), flush=True)
    return told["ok"]
