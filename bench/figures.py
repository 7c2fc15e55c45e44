"""The lines that benchmarks print (bench/README.md): one JSON object each."""

from __future__ import annotations

import json

Bound = float | tuple[float, float] | None  # a value, or the least and the most


def line(
    bench: str, case: str, value: float, unit: str, reference: float | None, bound: Bound, ok: bool, **more
) -> dict:
    """Return one figure beside its reference, if it has one. `more` has the keys that only this benchmark reports."""
    ratio = value / reference if reference else None
    result = {"bench": bench, "case": case, "value": value, "unit": unit, "reference": reference, "ratio": ratio}
    return result | {"bound": bound, "ok": bool(ok)} | more


def report(*figure, **more) -> bool:
    """Print `line` of the same arguments. Return True if the figure is within its bound."""
    told = line(*figure, **more)
    print(json.dumps(told), flush=True)
    return told["ok"]
