"""`./dev bench strategies`: six random applications share a target, under each policy, simulated.

Each draw runs under the fixed policies (interfere, fcfs, interrupt), under `dynamic` with each metric, and under
`set-10`. A run's metric covers its whole length: waits and pauses count as I/O time. Each metric has two figures. One
is the worst ratio of `dynamic` to the best fixed policy of the same draw. The other is its mean ratio to fcfs, with a
95 % interval (paired bootstrap over the draws). bench/strategies/ has the picture and every value.

The same draws run again with a limit on the bandwidth of a process. Small applications then leave a part of the target
to others. There, `dynamic` beside the best fixed policy has no bound, because only observed phases show the cost of
exclusive access.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import figures
import numpy
from hocket.errors import HocketError
from hocket.sim import runs
from scipy import stats

REPO = Path(__file__).resolve().parent.parent
RESULTS = REPO / "bench" / "strategies"
report = partial(figures.report, "strategies")

SEEDS = range(1, 51)
APPLICATIONS = 6
PROCESSES = (24, 2048)
BYTES_PER_PROCESS = (8e6, 128e6)
PERIOD_S = (60, 600)  # of computing
LENGTH_S = 3600  # approximate computing time of each
BANDWIDTH = 2e9  # of the target, which they share in proportion to their processes
JITTER = 0.05  # of the computing time of a period
MOST_OF_A_PROCESS = 5e6  # bytes per second, where processes are limited

FIXED = ("interfere", "fcfs", "interrupt")
DYNAMIC, SET_10 = "dynamic", "set-10"
NEVER_WORSE = 1.05

Result = runs.Result


def io_s(application: dict) -> float:
    """Return the I/O time of an application, waits included."""
    return application["io_s"] + application["wait_s"]


# These are the metrics of src/core/policy/metric.hpp for a whole run.
METRICS: dict[str, Callable[[Result], float]] = {
    "cpu-time": lambda run: sum(one["processes_first"] * io_s(one) for one in run["applications"]),
    "io-time": lambda run: sum(io_s(one) for one in run["applications"]),
    "interference": lambda run: sum(io_s(one) / one["io_alone_s"] for one in run["applications"]),
    "makespan": lambda run: max(one["end_s"] for one in run["applications"]),
}


@dataclass(frozen=True)
class Drawn:
    """One application."""

    processes: int
    bytes_per_process: int
    computing_s: float  # of a period
    start_s: float
    phases: int


def draw(seed: int) -> list[Drawn]:
    """Draw six applications; sizes, bytes, and periods are log-uniform."""
    rng = random.Random(seed)

    def log_uniform(limits: tuple[float, float]) -> float:
        low, high = map(math.log, limits)
        return math.exp(rng.uniform(low, high))

    applications = []
    for _ in range(APPLICATIONS):
        period_s = log_uniform(PERIOD_S)
        applications.append(
            Drawn(
                processes=round(log_uniform(PROCESSES)),
                bytes_per_process=round(log_uniform(BYTES_PER_PROCESS)),
                computing_s=round(period_s, 3),
                start_s=round(rng.uniform(0, period_s), 3),
                phases=max(1, round(LENGTH_S / period_s)),
            )
        )
    return applications


def load(applications: list[Drawn]) -> float:
    """Return the fraction of time in which the target is in use if nobody waits."""
    io = [one.processes * one.bytes_per_process / BANDWIDTH for one in applications]
    return sum(t / (t + one.computing_s) for t, one in zip(io, applications, strict=True))


def scenario(seed: int, metric: str, limited: bool) -> str:
    """Return the TOML text of a draw."""
    applications = draw(seed)
    lines = [
        f'name = "six applications, draw {seed}"',
        f"seed = {seed}",
        "[platform]",
        "nodes = 1",
        f"cores_per_node = {sum(one.processes for one in applications)}",
        "[[targets]]",
        'name = "disk"',
        f"bandwidth_bytes_per_s = {BANDWIDTH}",
        'sharing = "proportional"',
    ]
    for number, one in enumerate(applications, 1):
        lines += [
            "[[applications]]",
            f'name = "a{number}"',
            f"processes = {one.processes}",
            f"start_s = {one.start_s}",
            f"iterations = {one.phases}",
            "iterations_per_phase = 1",
            f"iteration_s = {one.computing_s}",
            f"io_bytes = {one.processes * one.bytes_per_process}",
            f"jitter = {JITTER}",
        ]
        if limited:
            lines.append(f"io_bandwidth_bytes_per_s = {min(BANDWIDTH, one.processes * MOST_OF_A_PROCESS)}")
    lines += ["[coordinator]", f'metric = "{metric}"']
    return "\n".join(lines) + "\n"


Values = dict[str, dict[str, list[float]]]  # by metric, by policy: one for each seed


def simulate(seeds: list[int], limited: bool = False) -> Values:
    """Simulate every run and return the values."""
    with tempfile.TemporaryDirectory() as directory:
        wanted = {}
        for seed in seeds:
            for metric in METRICS:
                path = Path(directory) / f"{seed}-{metric}.toml"
                path.write_text(scenario(seed, metric, limited))
                wanted[DYNAMIC, metric, seed] = runs.Wanted(path, DYNAMIC)
            wanted |= {(policy, seed): runs.Wanted(path, policy) for policy in (*FIXED, SET_10)}
        made = dict(zip(wanted, runs.simulate(list(wanted.values())), strict=True))
    values: Values = {}
    for metric, value in METRICS.items():
        values[metric] = {policy: [value(made[policy, seed]) for seed in seeds] for policy in (*FIXED, SET_10)}
        values[metric][DYNAMIC] = [value(made[DYNAMIC, metric, seed]) for seed in seeds]
    return values


def beside_best(values: dict[str, list[float]], policy: str) -> list[float]:
    """Return, for each draw, the ratio to the best fixed policy."""
    best = [min(each) for each in zip(*(values[fixed] for fixed in FIXED), strict=True)]
    return [value / least for value, least in zip(values[policy], best, strict=True)]


def interval(values: list[float]) -> list[float]:
    """Return the 95 % interval of the mean, by bootstrap over the draws."""
    if max(values) == min(values):
        return [values[0], values[0]]
    found = stats.bootstrap((values,), numpy.mean, n_resamples=10_000, random_state=1).confidence_interval
    return [float(found.low), float(found.high)]


def judge(metric: str, values: dict[str, list[float]], seeds: list[int], limited: bool = False) -> bool:
    """Report the lines of one metric."""
    name = f"six {'limited ' if limited else ''}applications, {metric}"
    never_worse = None if limited else NEVER_WORSE
    ratios = beside_best(values, DYNAMIC)
    worst = max(ratios)
    worse = {seed: round(ratio, 3) for seed, ratio in zip(seeds, ratios, strict=True) if ratio > NEVER_WORSE}
    case = f"{name}: dynamic beside the best fixed policy, worst of {len(seeds)} draws"
    ok = never_worse is None or worst <= never_worse
    good = report(case, worst, "", 1, never_worse, ok, mean=fmean(ratios), worse=worse)
    for policy, bound in ((DYNAMIC, 1.0), ("interrupt", None), ("interfere", None), (SET_10, None)):
        beside = [value / other for value, other in zip(values[policy], values["fcfs"], strict=True)]
        low, high = interval(beside)
        good &= report(
            f"{name}: {policy} beside fcfs, mean",
            fmean(beside),
            "",
            1,
            bound,
            bound is None or high <= bound,
            interval=[low, high],
        )
    return good


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench strategies")
    parser.add_argument("--seeds", type=int, nargs="*", default=list(SEEDS), help="instead of 1 to 50")
    parser.add_argument("--out", type=Path, default=RESULTS, help="directory of results.json and strategies.png")
    arguments = parser.parse_args()
    try:
        values = simulate(arguments.seeds)
        limited = simulate(arguments.seeds, limited=True)
    except HocketError as error:
        raise SystemExit(f"bench: strategies: {error}") from None
    good = [judge(metric, of_metric, arguments.seeds) for metric, of_metric in values.items()]
    for metric, of_metric in limited.items():
        judge(metric, of_metric, arguments.seeds, limited=True)

    from strategies_plot import write_plot

    arguments.out.mkdir(parents=True, exist_ok=True)
    draws = [
        {"seed": seed, "load": round(load(draw(seed)), 3), "applications": [asdict(one) for one in draw(seed)]}
        for seed in arguments.seeds
    ]
    told = {"draws": draws, "values": values, "values_limited": limited}
    (arguments.out / "results.json").write_text(json.dumps(told, indent=1) + "\n")
    ratios = {
        metric: {policy: beside_best(of_metric, policy) for policy in (*FIXED, SET_10, DYNAMIC)}
        for metric, of_metric in values.items()
    }
    write_plot(ratios, NEVER_WORSE, arguments.out / "strategies.png")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
