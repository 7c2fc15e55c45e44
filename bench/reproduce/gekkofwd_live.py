"""GekkoFWD's Fig. 1, live and small: the eight access patterns of Table 2 through I/O servers of this machine.

The runs are those of `hocket explore`. If it was interrupted, it goes on with the runs that are missing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from hocket.arbitration.jobs import MB
from hocket.errors import HocketError

from reproduce import plots
from reproduce.cache import state_of
from reproduce.figure import AGREES, PARTLY, Finding, Options, Results, Value

REPO = Path(__file__).resolve().parents[2]
PATTERNS = REPO / "scenarios" / "patterns" / "gekkofwd-table2.toml"
SHRINK = 48  # one process in place of a node's

Curve = Mapping[str, Sequence[float]]  # the MB/s of each run, by number of servers


def kept_in(name: str) -> Path:
    """Return where runs are kept, beside the results of this state of the sources."""
    return REPO / "build" / "reproduce" / state_of(REPO) / name


def explored(name: str, words: Sequence[object], where: Path | None = None) -> dict[str, Curve]:
    """Explore with files below a directory, and return the curve of each pattern. Raises HocketError if that fails."""
    kept = kept_in(f"explored-{name}")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hocket-reproduce-", dir=where or kept.parent) as files:
        command = [sys.executable, "-m", "hocket.cli", "explore", *words, "--dir", files, "--output", kept]
        done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise HocketError(f"hocket explore ended with {done.returncode}; its message is above")
    lines = map(json.loads, (kept / "runs.jsonl").read_text(encoding="utf-8").splitlines())
    found: dict[str, dict[int, list[float]]] = {}
    for run in (line for line in lines if "servers" in line):
        rates = found.setdefault(run["name"], {}).setdefault(run["servers"], [])
        rates.append(run["bytes"] / run["seconds"] / MB)
    return {name: {str(k): rates for k, rates in sorted(curve.items())} for name, curve in sorted(found.items())}


# Fig. 1


def make_patterns(_: Options) -> Results:
    return explored("table2", [PATTERNS, "--shrink", SHRINK])


def best(curve: Curve) -> str:
    return max(curve, key=lambda servers: median(curve[servers]))


def as_good(curve: Curve) -> list[str]:
    """Return the numbers whose runs overlap those of the best."""
    least = min(curve[best(curve)])
    return [servers for servers, rates in curve.items() if max(rates) >= least]


def judge_patterns(results: Results) -> Finding:
    values, clear = [], 0
    for name, curve in results.items():
        alike = as_good(curve)
        clear += len(alike) == 1
        values.append(Value(f"{name}: best number of servers", "", None, best(curve)))
        values.append(Value(f"{name}: … and those whose runs overlap", "", None, ", ".join(alike)))
    verdict = (
        f"{clear} of {len(results)} patterns have a clearly best number, because runs of one number differ more than "
        "numbers do. In the paper no number is best for all patterns. There an I/O node reorders what reaches a "
        "shared file system of 7 data servers, over a network. Here all servers share two cores and one disk with the "
        "program, so a server can only add copies."
    )
    return Finding(tuple(values), PARTLY if clear < len(results) else AGREES, verdict)


def draw_patterns(results: Results, path: Path) -> None:
    with plots.picture(path, 4, 2, 2.6) as axes:
        for axis, (name, curve) in zip(axes, results.items(), strict=True):
            draw_curve(axis, curve)
            plots.finish(axis, name, "I/O servers", "MB/s" if name in "AE" else "", key=False)


def draw_curve(axis: plots.Axes, curve: Curve) -> None:
    """Draw the runs, and a line through their medians; the numbers of servers are at even distances."""
    for at, rates in enumerate(curve.values()):
        axis.plot([at] * len(rates), rates, ".", color=plots.PAPER, markersize=4, alpha=0.5)
    axis.plot(range(len(curve)), [median(rates) for rates in curve.values()], color=plots.SERIES[0], linewidth=1.3)
    axis.set_xticks(range(len(curve)), list(curve))
    axis.set_ylim(bottom=0)
