"""`./dev bench [NAME] [--table]`: runs the benchmarks and compares them with their bounds.

Each benchmark is a program that prints one JSON object a line: {"bench", "case", "value", "unit", "reference", "ratio",
"bound", "ok"}; further keys may follow. `value` was measured, `reference` beside it in the same run. The exit code is 1
if any bound is missed or a benchmark fails.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
BUILD = REPO / "build" / "release" / "bench"
KEYS = ("bench", "case", "value", "unit", "reference", "ratio", "bound", "ok")

# Each name has a command. Some programs are built; the others are Python files beside this one.
BENCHMARKS: dict[str, list[str]] = {
    "grant": [str(BUILD / "bench_grant")],
    "cluster": [str(BUILD / "bench_cluster")],
    "overhead": [sys.executable, str(REPO / "bench" / "overhead.py")],
    "coordinator": [str(BUILD / "bench_coordinator")],
    "simulator": [str(BUILD / "bench_simulator")],
    "scale": [sys.executable, str(REPO / "bench" / "scale.py")],
    "reconfigure": [sys.executable, str(REPO / "bench" / "reconfigure.py")],
    "redistribute": [sys.executable, str(REPO / "bench" / "redistribute.py")],
    "collective-io": [sys.executable, str(REPO / "bench" / "collective_io.py")],
    "elastic": [sys.executable, str(REPO / "bench" / "elastic.py")],
    "server": [str(BUILD / "bench_server")],
    "delta": [sys.executable, str(REPO / "bench" / "delta.py")],
    "strategies": [sys.executable, str(REPO / "bench" / "strategies.py")],
    "regret": [sys.executable, str(REPO / "bench" / "regret.py")],
    "campaign": [sys.executable, str(REPO / "bench" / "campaign.py")],
    "workload": [sys.executable, str(REPO / "bench" / "live_queue.py")],
    "arbitrate": [sys.executable, str(REPO / "bench" / "arbitrate.py")],
    "forward": [sys.executable, str(REPO / "bench" / "forward.py")],
    "forward-sharing": [sys.executable, str(REPO / "bench" / "forward_sharing.py")],
    "request-schedulers": [str(BUILD / "bench_request_schedulers")],
    "emulator": [sys.executable, str(REPO / "bench" / "emulator.py")],
    "emulator-io": [sys.executable, str(REPO / "bench" / "emulator_io.py")],
    "table2": [sys.executable, str(REPO / "bench" / "table2.py")],
    "framework": [sys.executable, str(REPO / "bench" / "framework.py")],
}


def run(name: str, echo: bool) -> tuple[list[dict], bool]:
    """Return the lines of one benchmark and True if it succeeded. With `echo`, print the lines as they come."""
    environment = os.environ | {
        "HOCKET_PREFIX": sys.prefix,
        "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}",
        "MPIR_CVAR_DEVICE_COLLECTIVES": "none",
        "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
    }
    results = []
    with subprocess.Popen(BENCHMARKS[name], stdout=subprocess.PIPE, text=True, env=environment) as process:
        for line in process.stdout or ():
            result = json.loads(line)
            missing = [key for key in KEYS if key not in result]
            if missing:
                raise SystemExit(f"bench: {name} printed a line without {', '.join(missing)}: {line.strip()}")
            results.append(result)
            if echo:
                print(line, end="", flush=True)
    return results, process.returncode == 0 and bool(results)


def _number(value: float | list[float] | None) -> str:
    """Return a number, or the ends of a range."""
    if isinstance(value, list):
        return " to ".join(map(_number, value))
    return "" if value is None else f"{value:,.4g}"


def table(results: list[dict]) -> None:
    """Print the results as a table for users."""
    from rich.console import Console
    from rich.table import Table

    shown = Table("bench", "case", "value", "reference", "ratio", "bound", "")
    for r in results:
        numbers = [_number(r[key]) for key in ("value", "reference", "ratio", "bound")]
        shown.add_row(
            r["bench"], r["case"], f"{numbers[0]} {r['unit']}", *numbers[1:], "ok" if r["ok"] else "[red]missed[/red]"
        )
    Console(width=120 if not sys.stdout.isatty() else None).print(shown)


def main() -> int:
    """Run the requested benchmarks."""
    parser = argparse.ArgumentParser(prog="./dev bench", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("name", nargs="?", choices=sorted(BENCHMARKS), help="one benchmark; all of them without")
    parser.add_argument("--table", action="store_true", help="a table for people instead of JSON lines")
    arguments = parser.parse_args()
    everything, ended_well = [], True
    for name in [arguments.name] if arguments.name else sorted(BENCHMARKS):
        results, ended = run(name, echo=not arguments.table)
        everything += results
        ended_well &= ended
        if not ended:
            print(f"bench: {name} missed a bound or failed", file=sys.stderr)
    if arguments.table:
        table(everything)
    return 0 if ended_well and all(r["ok"] for r in everything) else 1


if __name__ == "__main__":
    sys.exit(main())
