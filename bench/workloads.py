"""The random workloads of `./dev bench framework`: 500 of them (workload.py), each under every policy, simulated.

Every comparison is within a workload. An application run is one application in one workload. Its total time under a
policy is compared with that uncoordinated (policies for access), or with that under fcfs (policies that resize). The
metric of a workload is its process seconds in I/O, waits included (cpu-time), over its whole length. It is compared
with that under fcfs, and for `dynamic` with the best of the fixed policies.

For a quick look, run it alone: `bench/workloads.py --draws 50 --policies dynamic interrupt`; `--print SEED` prints a
scenario.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median

import figures
import workload
from hocket.errors import HocketError
from hocket.sim import runs
from strategies import METRICS

report = partial(figures.report, "framework")
DRAWS = 500
METRIC = "cpu-time"
UNCOORDINATED, BLOCKING = "interfere", "fcfs"
FIXED = (UNCOORDINATED, BLOCKING, "interrupt")
ACCESS = ("fcfs", "interrupt", "dynamic", "cost")
RESIZING = ("phase-shift", "period-coupling", "fair", "speedup", "io-aware", "predictive")
MOST_SLOWDOWN = 0.05
FEW = 0.99  # of the application runs that must be within it
DEFAULT = "cost"
SLOWEST = 1.15  # application run of the default policy
NEVER_WORSE = 1.05
MOST_DRAWS = 0.95  # of the workloads in which dynamic is within that of the best fixed policy
SHOWN = 5  # worst ones that a line names


@dataclass(frozen=True)
class Run:
    """The kept values of a run: the seconds of each application, and the metric."""

    total_s: tuple[float, ...]
    metric: float


def kept(result: runs.Result) -> Run:
    return Run(tuple(one["total_s"] for one in result["applications"]), METRICS[METRIC](result))


Made = dict[str, dict[int, Run]]  # by policy and seed


def simulate(policies: Sequence[str], seeds: Sequence[int]) -> Made:
    """Make every run, twenty workloads at a time, so that not all results are in memory."""
    made: Made = {policy: {} for policy in policies}
    with tempfile.TemporaryDirectory() as directory:
        for first in range(0, len(seeds), 20):
            paths = {seed: Path(directory) / f"{seed}.toml" for seed in seeds[first : first + 20]}
            for seed, path in paths.items():
                path.write_text(workload.scenario(seed))
            wanted = [(policy, seed) for seed in paths for policy in policies]
            results = runs.simulate([runs.Wanted(paths[seed], policy) for policy, seed in wanted])
            for (policy, seed), result in zip(wanted, results, strict=True):
                made[policy][seed] = kept(result)
    return made


def slowdowns(runs_: dict[int, Run], references: dict[int, Run]) -> dict[tuple[int, int], float]:
    """Return the time of each application run over the reference's, by seed and number of the application from 1."""
    return {
        (seed, number): ours / theirs
        for seed, run in runs_.items()
        for number, (ours, theirs) in enumerate(zip(run.total_s, references[seed].total_s, strict=True), start=1)
        if theirs > 0
    }


def metrics(runs_: dict[int, Run], *references: dict[int, Run]) -> dict[int, float]:
    """Return, by seed, the metric over the least of the references'."""
    least = {seed: min(one[seed].metric for one in references) for seed in runs_}
    return {seed: run.metric / least[seed] for seed, run in runs_.items() if least[seed] > 0}


def worst(values: dict) -> dict[str, float]:
    """Return the greatest values, for inspection."""
    return {str(key): round(values[key], 3) for key in sorted(values, key=values.__getitem__, reverse=True)[:SHOWN]}


def judge_slowdowns(case: str, values: dict[tuple[int, int], float], share: float | None, most: float | None) -> bool:
    """Report two lines: the share of application runs within the bound, and the slowest run."""
    within = fmean(value <= 1 + MOST_SLOWDOWN for value in values.values())
    slowest = max(values.values())
    good = report(
        f"{case}: application runs within {1 + MOST_SLOWDOWN}",
        within,
        "",
        1,
        share,
        share is None or within >= share,
        runs=len(values),
        median=median(values.values()),
    )
    is_held = most is None or slowest <= most
    return good & report(f"{case}: the slowest application run", slowest, "", 1, most, is_held, worst=worst(values))


def judge_metric(case: str, values: dict[int, float], most: float | None, share: float | None = None) -> bool:
    """Report the worst workload, or, with `share`, the fraction of workloads within NEVER_WORSE."""
    within = fmean(value <= NEVER_WORSE for value in values.values())
    more = {"median": median(values.values()), "mean": fmean(values.values()), "worst": worst(values)}
    if share is not None:
        return report(f"{case}: workloads within {NEVER_WORSE}", within, "", 1, share, within >= share, **more)
    value = max(values.values())
    held = most is None or value <= most
    return report(f"{case}: the worst workload", value, "", 1, most, held, within=within, **more)


def judge(made: Made, policies: Sequence[str]) -> bool:
    """Report the lines of every policy."""
    alone, blocking = made[UNCOORDINATED], made[BLOCKING]
    good = True
    for policy in policies:
        name = f"{len(blocking)} random workloads, {policy}"
        resizes = policy in RESIZING
        default = policy == DEFAULT
        reference, beside = (blocking, "fcfs") if resizes else (alone, "uncoordinated")
        bounds = (FEW if resizes or default else None, SLOWEST if default else None)
        good &= judge_slowdowns(f"{name} beside {beside}", slowdowns(made[policy], reference), *bounds)
        if policy == "dynamic":
            fixed = [made[one] for one in FIXED]
            case = f"{name}, {METRIC} beside the best fixed policy"
            good &= judge_metric(case, metrics(made[policy], *fixed), None, MOST_DRAWS)
        if policy != BLOCKING:
            case = f"{name}, {METRIC} beside fcfs"
            good &= judge_metric(case, metrics(made[policy], blocking), NEVER_WORSE if default else None)
    return good


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/workloads.py", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--draws", type=int, default=DRAWS, help="the seeds 1 to N")
    parser.add_argument("--seeds", type=int, nargs="+", help="these instead")
    parser.add_argument("--policies", nargs="+", default=[*ACCESS, *RESIZING])
    parser.add_argument("--print", type=int, metavar="SEED", help="only print the scenario")
    options = parser.parse_args(arguments)
    if options.print is not None:
        print(workload.scenario(options.print), end="")
        return 0
    references = [UNCOORDINATED, BLOCKING, *(FIXED if "dynamic" in options.policies else ())]
    seeds = options.seeds or range(1, options.draws + 1)
    try:
        made = simulate(list(dict.fromkeys([*references, *options.policies])), seeds)
    except HocketError as error:
        raise SystemExit(f"bench: workloads: {error}") from None
    return 0 if judge(made, options.policies) else 1


if __name__ == "__main__":
    sys.exit(main())
