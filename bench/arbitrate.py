"""`./dev bench arbitrate`: how long does `mckp` of `hocket arbitrate` take, beside HiGHS for the same optimum?

The size is GekkoFWD's largest (section 5.3): 512 jobs, 256 servers, here with 9 choices a job (0 to 8 servers). The
paper states 2.7 s. Cases are usual curves by seed, each rule that `mckp` may have, and instances that are hard for a
solver or for arithmetic. Times are CPU times of one core, medians of 101; HiGHS solves the instance as a mixed-integer
program, through scipy, and applies the rules itself. Where bandwidths have few different values, so that many
allocations are as good as the best, it also finds the fewest servers.

The last two lines are about what `mckp` gives: in no pool and set of GekkoFWD's Fig. 3 (10,000 sets of 16 patterns) in
which `static` shares no server may it have less bandwidth than `static`. Where `static` shares servers, they are
counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from math import ceil
from pathlib import Path
from typing import Any

import numpy
from figures import report
from reproduce import gekkofwd_sets
from reproduce.gekkofwd_curves import curves
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix

PROGRAM = Path(__file__).resolve().parent.parent / "build" / "release" / "bench" / "bench_arbitrate"
BOUND_S = 0.005
PAPER_S = 2.7
FEW_VALUES = 10
CASES = [("usual", seed) for seed in range(1, 6)] + [
    (name, 1)
    for name in (
        "divides-evenly",
        "least-of-static",
        "shared-server",
        "all-rules",
        "alike",
        "linear",
        "tied",
        "huge",
        "no-servers",
        "as-many-as-useful",
    )
]
WITHOUT_BOUND = "as-many-as-useful"  # 4,096 servers


def allowed(job: dict[str, Any], told: dict[str, Any]) -> list[tuple[int, int]]:
    """Return the choices that the rules allow: servers, bandwidth."""
    return [
        (servers, rate)
        for servers, rate in enumerate(job["choices"])
        if (told["direct"] if servers == 0 else not told["divides_evenly"] or job["nodes"] % servers == 0)
    ]


def least_of(told: dict[str, Any]) -> list[float]:
    """Return the least bandwidth of each job: a part of what static gives, whose servers may be shared."""
    fixed = []
    for job in told["jobs"]:
        wanted = ceil(job["nodes"] * told["system_servers"] / told["system_nodes"])
        choices = allowed(job, told)
        fixed.append(max((one for one in choices if one[0] <= wanted), default=choices[0]))
    divided = min(1.0, told["servers"] / max(1, sum(servers for servers, _ in fixed)))
    return [told["least_of_static"] * int(rate * divided if servers else rate) for servers, rate in fixed]


def items_of(told: dict[str, Any]) -> list[tuple[int, int, bool, int]]:
    """Return what may be chosen: job, servers, whether it is the shared one, bandwidth."""
    found = []
    for number, (job, least) in enumerate(zip(told["jobs"], least_of(told), strict=True)):
        choices = [(servers, False, rate) for servers, rate in allowed(job, told)]
        if told["shared_server"]:
            choices += [(0, True, rate // len(told["jobs"])) for servers, _, rate in choices if servers == 1]
        found += [(number, *one) for one in choices if one[2] >= least]
    return found


def solved(told: dict[str, Any]) -> tuple[int, int | None, float]:
    """Return the best bandwidth by HiGHS, the fewest servers for it or None, and its time in seconds."""
    items = items_of(told)
    jobs, shared = len(told["jobs"]), len(items)  # the last variable: the shared server is set aside
    rows = lil_matrix((jobs + 1 + jobs, len(items) + 1))
    unit = numpy.gcd.reduce([rate for *_, rate in items])
    ties = max(rate for *_, rate in items) // unit <= FEW_VALUES
    gain = numpy.zeros(len(items) + 1)
    for at, (number, servers, at_shared, rate) in enumerate(items):
        rows[number, at] = 1
        rows[jobs, at] = servers
        gain[at] = rate // unit * (told["servers"] + 1) - servers if ties else rate // unit
        if at_shared:
            rows[jobs + 1 + number, at] = 1
            rows[jobs + 1 + number, shared] = -1
    rows[jobs, shared] = 1
    gain[shared] = -1 if ties else 0
    low = [1.0] * jobs + [0.0] + [-1.0] * jobs
    high = [1.0] * jobs + [float(told["servers"])] + [0.0] * jobs
    began = time.process_time()
    found = milp(
        -gain,
        integrality=numpy.ones(gain.size),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(rows.tocsr(), low, high),
        options={"mip_rel_gap": 0},
    )
    took_s = time.process_time() - began
    picked = numpy.round(found.x).astype(bool)
    taken = [one for one, is_picked in zip(items, picked[:-1], strict=True) if is_picked]
    servers = sum(one[1] for one in taken) + int(any(one[2] for one in taken))
    return sum(one[3] for one in taken), servers if ties else None, took_s


def beside_static() -> bool:
    """Report in how many pools and sets `mckp` has less bandwidth than `static`. Return False if a bound is missed."""
    jobs, pools = curves(gekkofwd_sets.SEED), gekkofwd_sets.POOLS
    sets = gekkofwd_sets.drawn(len(jobs), gekkofwd_sets.SETS, gekkofwd_sets.SEED)
    counts = gekkofwd_sets.beside_static(gekkofwd_sets.allocated(jobs, pools, sets), pools)
    ok = True
    for where, how, bound in (("alone", "shares no server", 0), ("shared", "shares servers", None)):
        case = f"mckp below static where static {how}, {len(pools)} pools of {len(sets)} sets"
        less, more = counts[f"{where}_less"], counts[f"{where}_more"]
        within = bound is None or (less <= bound and counts[where] > 0)
        ok = report("arbitrate", case, less, "sets", counts[where], bound, within, above_static=more) and ok
    return ok


def main() -> int:
    """Measure each instance; the exit code is 1 if a bound is missed, or if the optima differ."""
    ok = True
    for name, seed in CASES:
        words = [PROGRAM, name, str(seed)]
        told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        best, servers, highs_s = solved(told)
        same = best == told["value"] and servers in (None, told["given_out"])
        bound_s = None if name == WITHOUT_BOUND else BOUND_S
        case = f"512 jobs, {told['servers']} servers, 9 choices, {name}, seed {seed}"
        more = {"worst_s": told["worst_s"], "same_optimum": same, "paper_s": PAPER_S}
        within = same and (bound_s is None or told["median_s"] <= bound_s)
        ok = report("arbitrate", case, told["median_s"], "s", highs_s, bound_s, within, **more) and ok
    return 0 if beside_static() and ok else 1


if __name__ == "__main__":
    sys.exit(main())
