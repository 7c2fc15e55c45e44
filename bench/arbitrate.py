"""`./dev bench arbitrate`: how long does the knapsack of `hocket arbitrate` take, beside HiGHS for the same optimum?

The instance is GekkoFWD's largest (section 5.3): 512 jobs, 256 servers, here with 9 choices a job (0 to 8 servers). The
paper states 2.7 s. Times of the knapsack are CPU times of one core, medians of 101; HiGHS solves the instance as a
mixed-integer program, through scipy.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy
from figures import report
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix

PROGRAM = Path(__file__).resolve().parent.parent / "build" / "release" / "bench" / "bench_arbitrate"
BOUND_S = 0.005
PAPER_S = 2.7
SEEDS = range(1, 6)


def solved(classes: list[list[int]], capacity: int) -> tuple[int, float]:
    """Return the best value, by HiGHS, and its time in seconds."""
    values = numpy.array([value for items in classes for value in items], dtype=float)
    rows = lil_matrix((len(classes) + 1, values.size))
    at = 0
    for number, items in enumerate(classes):
        for servers in range(len(items)):
            rows[number, at] = 1
            rows[len(classes), at] = servers
            at += 1
    low = [1.0] * len(classes) + [0.0]
    high = [1.0] * len(classes) + [float(capacity)]
    began = time.process_time()
    found = milp(
        -values / 100_000,
        integrality=numpy.ones(values.size),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(rows.tocsr(), low, high),
        options={"mip_rel_gap": 0},
    )
    took_s = time.process_time() - began
    picked = numpy.round(found.x).astype(bool)
    return int(values[picked].sum()), took_s


def main() -> int:
    """Measure each instance; the exit code is 1 if the bound is missed, or if the optima differ."""
    ok = True
    for seed in SEEDS:
        told = json.loads(subprocess.run([PROGRAM, str(seed)], capture_output=True, text=True, check=True).stdout)
        best, highs_s = solved(told["classes"], told["capacity"])
        within = told["median_s"] <= BOUND_S and best == told["value"]
        case = f"512 jobs, 256 servers, 9 choices, seed {seed}"
        more = {"p90_s": told["p90_s"], "same_optimum": best == told["value"], "paper_s": PAPER_S}
        ok = report("arbitrate", case, told["median_s"], "s", highs_s, BOUND_S, within, **more) and ok
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
