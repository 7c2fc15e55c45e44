"""`./dev bench overhead`: the time that libhocket adds to an uncoordinated call at 2 ranks, and to a small granted
pwrite. Then overhead_pairs.py compares whole programs and single calls with the same without hocket.

The program overhead.c makes each call with and without libhocket in turn, in one run. This file computes medians, the
median of the paired differences, and its 95 % confidence interval. The interval is of order statistics and assumes no
distribution.

The time of a write of 1 MiB varies by far more than the bound. Its `difference_us` is therefore the time of the wrapper
itself, measured around the same writes. `paired_us` is the plain paired difference, with its wide interval.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import chain
from pathlib import Path
from statistics import median

from both_mpis import environment, mpiexec
from hocket.private_daemon import private_daemon
from overhead_pairs import alone, calls, interval

REPO = Path(__file__).resolve().parent.parent
BOUND_US = 0.3
LIMIT_S = 300


def command(
    mpi: str, build: Path, prefix: Path, arguments: list[str], socket: Path | None = None
) -> tuple[list[str], dict[str, str]]:
    """Return the command that starts two ranks of the program with libhocket before the probe, and its environment."""
    told = {"HOCKET_SOCKET": str(socket)} if socket else {}
    # Two ranks have a core each: MPICH need not yield to others between two looks at its queues.
    told["MPIR_CVAR_ENABLE_HEAVY_YIELD"] = "0"
    preload = f"LD_PRELOAD={prefix}/lib/hocket/libhocket-{mpi}.so:{build}/liboverhead_probe-{mpi}.so"
    return [mpiexec(mpi), "-n", "2", "env", preload, str(build / f"overhead-{mpi}"), *arguments], environment(**told)


def measure(mpi: str, build: Path, prefix: Path, *arguments: str, socket: Path | None = None) -> list[list[float]]:
    """Return the columns that the program prints, in µs."""
    words, settings = command(mpi, build, prefix, list(arguments), socket)
    run = subprocess.run(words, env=settings, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S)
    if run.returncode != 0:
        raise SystemExit(f"bench: overhead of {mpi}: '{' '.join(words)}' ended with exit code {run.returncode}")
    rows = [[float(word) / 1000 for word in line.split()] for line in run.stdout.splitlines()]
    return [list(column) for column in zip(*rows, strict=True)]


def result(case: str, value: list[float], reference: list[float], difference: list[float], **others: object) -> dict:
    """Return one line of the benchmark. `difference` has a value for each pair."""
    low, high = interval(difference)
    return {
        "bench": "overhead",
        "case": case,
        "value": round(median(value), 4),
        "unit": "us",
        "reference": round(median(reference), 4),
        "ratio": round(median(value) / median(reference), 4),
        "difference_us": round(median(difference), 4),
        "interval_us": [round(low, 4), round(high, 4)],
        "pairs": len(difference),
        "bound": BOUND_US,
        "ok": median(difference) <= BOUND_US,
    } | others


def measure_pwrite(mpi: str, build: Path, prefix: Path) -> list[dict]:
    """Measure a process unknown to hocketd, and one with a grant for what it writes; there is no bound."""
    results = []
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as storage,
        tempfile.TemporaryDirectory() as directory,
        private_daemon(Path(directory), {}),
    ):
        for case, socket in (("unwatched", None), ("granted", Path(directory) / "hocketd.sock")):
            with_, without = measure(mpi, build, prefix, "pwrite", f"{storage}/file", socket=socket)
            none = {"bound": None, "ok": True}
            results.append(result(f"pwrite-4KiB {case} {mpi}", with_, without, differences(with_, without), **none))
    return results


def differences(one: list[float], other: list[float]) -> list[float]:
    return [a - b for a, b in zip(one, other, strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--build", type=Path, default=REPO / "build" / "release" / "bench", help="where overhead-* are")
    arguments = parser.parse_args()
    prefix = Path(os.environ.get("HOCKET_PREFIX", sys.prefix))
    results = []
    for mpi in ("mpich", "openmpi"):
        build = arguments.build.resolve()
        with_, without = measure(mpi, build, prefix, "allreduce")
        results.append(result(f"allreduce-8B {mpi}", with_, without, differences(with_, without)))
        print(json.dumps(results[-1]), flush=True)
        with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
            probe = str(build / f"liboverhead_probe-{mpi}.so")
            with_, without, added, base = measure(mpi, build, prefix, "write", f"{directory}/file", probe)
        paired = differences(with_, without)
        plain = {"paired_us": round(median(paired), 2), "paired_interval_us": [round(x, 2) for x in interval(paired)]}
        results.append(result(f"write-at-all-1MiB {mpi}", with_, without, differences(added, base), **plain))
        print(json.dumps(results[-1]), flush=True)
        for found in chain(measure_pwrite(mpi, build, prefix), calls(mpi, build), alone(mpi, build)):
            results.append(found)
            print(json.dumps(found), flush=True)
    return 0 if all(r["ok"] for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
