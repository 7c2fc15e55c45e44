"""`./dev bench framework`: what the policies for cores and access are worth, against the paper's figures.

In the simulator: CLARISSE+FlexMPI's use cases A, C and D and its Table 2, what wrong predictions cost (scenarios
stress*.toml), the machine of 500 applications, then 500 random workloads (workloads.py). Every
figure is of several seeds; `value` and `reference` are medians over them of runs with the same seed, `interval` is a
95 % interval of the mean of what the line compares (Student's t). What the scenarios are calibrated on stands in them.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from statistics import fmean, median

import figures
import framework_live
import workloads
from hocket.errors import HocketError
from hocket.sim import runs
from hocket.sim.figures import Series, delay, flops
from scipy import stats

REPO = Path(__file__).resolve().parent.parent
report = partial(figures.report, "framework")
SCENARIOS = REPO / "scenarios"
PAPER_SEEDS = range(1, 21)
MACHINE_SEEDS = range(1, 31)
SIZES = (36, 82, 135, 210)  # cores of Table 2's expansion
SHARING = ("fair", "speedup", "io-aware", "predictive")
STRESSED = ("phase-shift", "period-coupling", "phase-shift+predictive")
UNCOORDINATED, BLOCKING = "none", "fcfs"


def simulate(scenario: str, policies: Iterable[str], seeds: Iterable[int]) -> dict[str, Series]:
    """By policy its runs, in the order of the seeds."""
    seeds = list(seeds)
    path = SCENARIOS / f"{scenario}.toml"
    return {
        policy: Series(policy, runs.simulate([runs.Wanted(path, policy, seed) for seed in seeds]))
        for policy in policies
    }


def interval(values: list[float]) -> list[float]:
    """95 % interval of the mean."""
    spread = stats.sem(values)
    if not spread > 0:
        return [fmean(values), fmean(values)]
    low, high = stats.t.interval(0.95, len(values) - 1, loc=fmean(values), scale=spread)
    return [float(low), float(high)]


def at_most(case: str, unit: str, values: list[float], references: list[float], bound: float, **more) -> bool:
    """The median of the runs' ratios is at most the bound."""
    ratios = [v / r if r > 0 else 0.0 for v, r in zip(values, references, strict=True)]
    extra = {"median_ratio": median(ratios), "interval": interval(ratios), "seeds": len(ratios)} | more
    return report(case, median(values), unit, median(references), bound, median(ratios) <= bound, **extra)


def io_with_delay(result: runs.Result, application: int) -> float:
    """Seconds of one application."""
    one = result["applications"][application]
    return one["io_s"] + one["wait_s"]


def use_case_c() -> bool:
    """I/O time and delay of two like applications (section 5.1; Fig. 14)."""
    made = simulate("use-case-c", (UNCOORDINATED, BLOCKING, "phase-shift"), PAPER_SEEDS)
    good = True
    for application, (reduced, blocking) in enumerate(((0.48, 0.39), (0.41, 0.25))):
        name = f"use case C, A{application + 1}, I/O time incl. delay"
        before, with_blocking, after = (
            made[p].of(lambda run, a=application: io_with_delay(run, a))
            for p in (UNCOORDINATED, BLOCKING, "phase-shift")
        )
        good &= at_most(f"{name}, phase-shift beside uncoordinated", "s", after, before, 1 - reduced)
        at_most(f"{name}, fcfs beside uncoordinated (paper: {1 - blocking:.2f})", "s", with_blocking, before, 1e9)
    delays = [made[p].of(delay) for p in ("phase-shift", BLOCKING)]
    return good & at_most("use case C, delay, phase-shift beside fcfs", "s", *delays, 18 / 64.7)


def use_case_d() -> bool:
    """Delays of two applications with different periods (section 5.1; Fig. 15)."""
    made = simulate("use-case-d", (BLOCKING, "phase-shift", "period-coupling"), PAPER_SEEDS)
    blocking = made[BLOCKING].of(delay)
    good = True
    for policy, paper in (("phase-shift", 11.0), ("period-coupling", 0.7)):
        case = f"use case D, delay, {policy} beside fcfs"
        good &= at_most(case, "s", made[policy].of(delay), blocking, paper / 25.1)
    return good


def conflict_errors(trace: Path) -> list[float]:
    """Of each conflict that was predicted: how far its start was off, in parts of the I/O period.

    A conflict begins when the later of the two I/O phases does, which asks for its grant then.
    """
    starts: dict[str, list[int]] = {}
    predictions: list[tuple[int, int, str, str]] = []
    for line in trace.read_text().splitlines()[1:]:
        event = json.loads(line)
        if event.get("out") == "DECISION" and event["conflict_ns"] > 0:
            predictions.append((event["time_ns"], event["conflict_ns"], event["decided_for"], event["because_of"]))
        if event.get("in") == "IO_PHASE":
            starts.setdefault(event["application"], []).append(event["start_ns"])
    errors = []
    for told_at, predicted, *applications in predictions:
        following = [next((t for t in starts[name] if t > told_at), None) for name in applications]
        before = [t for t in starts[applications[0]] if t <= told_at]
        if None in following or not before:
            continue  # one of them ended before
        errors.append(abs(max(following) - predicted) / (following[0] - before[-1]))
    return errors


def use_case_a() -> bool:
    """Predicted starts of conflicting I/O phases, with no core free to avoid them (section 5.1)."""
    errors = []
    for seed in PAPER_SEEDS:
        with tempfile.TemporaryDirectory() as directory:
            trace = Path(directory) / "a.jsonl"
            runs.simulate([runs.Wanted(SCENARIOS / "use-case-a.toml", "phase-shift", seed, trace=trace)])
            errors += conflict_errors(trace)
    if not errors:
        return report("use case A, predicted start of the next conflict, error", 1, "periods", None, 0.01, False)
    value = median(errors)
    more = {"most": max(errors), "conflicts": len(errors), "interval": interval(errors)}
    return report(
        "use case A, predicted start of the next conflict, error", value, "periods", None, 0.01, value <= 0.01, **more
    )


def allocation(series: Series) -> list[float]:
    """Median processes of each application at the end."""
    return [median(series.of(lambda run, i=i: run["applications"][i]["processes_last"])) for i in range(4)]


def table_2() -> bool:
    """Aggregate FLOPS of four applications that share out more and more cores (Table 2; Figs. 17 to 19)."""
    good, gains = True, []
    for cores in SIZES:
        made = simulate(f"table2-{cores}", [f"{BLOCKING}+{policy}" for policy in SHARING], PAPER_SEEDS)
        rates = {policy: made[f"{BLOCKING}+{policy}"].of(flops) for policy in SHARING}
        best = max(median(rates[policy]) for policy in SHARING if policy != "predictive")
        for policy in SHARING:
            ratios = [a / b for a, b in zip(rates[policy], rates["fair"], strict=True)]
            bound = best * 0.99 if policy == "predictive" else None
            good &= report(
                f"Table 2, {cores} cores, {policy} beside fair",
                median(rates[policy]) / 1e9,
                "GFLOP/s",
                median(rates["fair"]) / 1e9,
                bound / 1e9 if bound else None,
                bound is None or median(rates[policy]) >= bound,
                mean_ratio=fmean(ratios),
                interval=interval(ratios),
                processes=allocation(made[f"{BLOCKING}+{policy}"]),
                delay_s=median(made[f"{BLOCKING}+{policy}"].of(delay)),
            )
        gains.append(median(rates["predictive"]) / median(rates["fair"]))
    mean = fmean(gains)
    return good & report("Table 2, predictive beside fair, mean of four sizes", mean, "", 1, 1.05, mean >= 1.05)


def progress(application: dict) -> float:
    """Iterations a second."""
    return application["iterations"] / application["total_s"]


def lengthened(with_: runs.Result, without: runs.Result) -> list[float]:
    """Of each application: its seconds an iteration over those in the other run; it may be cut off in both, or die."""
    return [
        progress(before) / progress(after)
        for after, before in zip(with_["applications"], without["applications"], strict=True)
    ]


def in_all(result: runs.Result) -> float:
    """Seconds of all applications together."""
    return sum(one["total_s"] for one in result["applications"])


def stress() -> bool:
    """Wrong predictions: no application of any run, and no run as a whole, is slower than with blocking by over 5 %."""
    good = True
    for scenario in ("stress", "stress-pairs"):
        made = simulate(scenario, (BLOCKING, *STRESSED), PAPER_SEEDS)
        for policy in STRESSED:
            paired = list(zip(made[policy].runs, made[BLOCKING].runs, strict=True))
            each = [lengthened(*pair) for pair in paired]
            whole = [in_all(after) / in_all(before) for after, before in paired]
            slowest = max(max(one) for one in each)
            good &= report(
                f"{scenario}, {policy} beside fcfs, the slowest application of {len(each)} runs",
                slowest,
                "",
                1,
                1.05,
                max(slowest, *whole) <= 1.05,
                slowest_at_median=max(median(one) for one in zip(*each, strict=True)),
                whole_run=median(whole),
                slowest_whole_run=max(whole),
            )
    return good


def machine() -> bool:
    """500 applications on 100,000 cores: the combination beside first-come-first-served; none is much the worse."""
    combination = "phase-shift+predictive"
    made = simulate("machine-500", (UNCOORDINATED, BLOCKING, combination), MACHINE_SEEDS)
    rates = {policy: series.of(flops) for policy, series in made.items()}
    gains = [a / b for a, b in zip(rates[combination], rates[BLOCKING], strict=True)]
    low, high = interval(gains)
    good = report(
        f"500 applications, {combination} beside fcfs",
        median(rates[combination]) / 1e12,
        "TFLOP/s",
        median(rates[BLOCKING]) / 1e12,
        1.0,
        low > 1,
        mean_ratio=fmean(gains),
        interval=[low, high],
        seeds=len(gains),
    )
    slower = [
        max(lengthened(with_, without))
        for with_, without in zip(made[combination].runs, made[UNCOORDINATED].runs, strict=True)
    ]
    bound = 1 + made[combination].runs[0]["most_slowdown"]
    return good & report(
        "500 applications, the slowest one beside uncoordinated", max(slower), "", 1, bound, max(slower) <= bound
    )


def main() -> int:
    """Every part; those that are left are run although one before missed a bound."""
    try:
        good = [use_case_a(), use_case_c(), use_case_d(), table_2(), stress(), machine()]
    except HocketError as error:
        raise SystemExit(f"bench: framework: {error}") from None
    return 0 if all([*good, workloads.main([]) == 0, framework_live.main([]) == 0]) else 1


if __name__ == "__main__":
    sys.exit(main())
