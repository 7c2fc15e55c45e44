"""CALCioM's Fig. 1: sizes of jobs and how many run at once, from a log, and the probability that another does I/O."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from hocket.sim.swf import Job, probability_of_io, read_log, running

from reproduce import plots
from reproduce.figure import AGREES, DIFFERS, PARTLY, Finding, Options, Results, Value

MADE_UP = Path(__file__).resolve().parents[2] / "tests" / "data" / "small.swf"
IO_RATIO = 0.05  # E(µ)
PAPER_P, SMALL_CORES = 0.64, 2048


def make(options: Options) -> Results:
    log = read_log(options.swf or MADE_UP)
    at_once = running(log.jobs)
    return {
        "log": log.path.name,
        "made_up": options.swf is None,
        "jobs": len(log.jobs),
        "sizes": sizes(log.jobs),
        "running": sorted(at_once.items()),
        "small_by_count": share_up_to(log.jobs, SMALL_CORES, by_time=False),
        "small_by_time": share_up_to(log.jobs, SMALL_CORES, by_time=True),
        "probability": probability_of_io(at_once, IO_RATIO),
    }


def sizes(jobs: Sequence[Job]) -> list[tuple[int, float, float]]:
    """Return, for each power of two that bounds sizes, the share of the jobs and of their run time."""
    whole_s = math.fsum(job.run_s for job in jobs)
    found: dict[int, list[float]] = {}
    for job in jobs:
        shares = found.setdefault(1 << (job.processes - 1).bit_length(), [0.0, 0.0])
        shares[0] += 1 / len(jobs)
        shares[1] += job.run_s / whole_s
    return [(size, *found[size]) for size in sorted(found)]


def share_up_to(jobs: Sequence[Job], cores: int, by_time: bool) -> float:
    weights = [(job.run_s if by_time else 1.0, job.processes <= cores) for job in jobs]
    return math.fsum(weight for weight, small in weights if small) / math.fsum(weight for weight, _ in weights)


def jobs_needed(probability: float, io_ratio: float) -> float:
    """Return how many jobs must run, always the same number, for this probability."""
    return math.log(1 - probability) / math.log(1 - io_ratio)


def judge(results: Results) -> Finding:
    mean = math.fsum(number * share for number, share in results["running"])
    ours, needed = results["probability"], jobs_needed(PAPER_P, IO_RATIO)
    values = (
        Value("P(another is doing I/O), E(µ) = 5 %", "", PAPER_P, ours),
        Value(f"jobs of at most {SMALL_CORES:,} cores", "", 0.5, results["small_by_count"]),
        Value("the same, weighted by run time", "", 0.5, results["small_by_time"]),
        Value("jobs at once, mean (paper: always so many give 64 %)", "", needed, mean),
    )
    near = abs(ours - PAPER_P) <= 0.02
    halves = all(abs(results[key] - 0.5) <= 0.1 for key in ("small_by_count", "small_by_time"))
    source = (
        f"The log is made up ({results['log']}: {results['jobs']} jobs, Poisson arrivals, half of the jobs at most "
        "2,048 cores); give the real one with --swf."
        if results["made_up"]
        else f"The log is {results['log']}, {results['jobs']} jobs."
    )
    verdict = (
        f"{source} The formula is the paper's. Only the number of jobs at once decides the result: {mean:.1f} on "
        f"average here, while 64 % needs about {needed:.0f}."
    )
    agreement = AGREES if near and halves else PARTLY if near or halves else DIFFERS
    return Finding(values, agreement, verdict)


def draw(results: Results, path: Path) -> None:
    with plots.picture(path, 3) as (left, middle, right):
        names = [f"{size // 1024}k" if size >= 1024 else str(size) for size, _, _ in results["sizes"]]
        jobs, time = ([row[at] for row in results["sizes"]] for at in (1, 2))
        plots.bars(left, names, {"of the jobs": jobs, "of their run time": time}, numbers=False)
        plots.finish(left, "(a) job sizes", "cores, at most", "share")
        left.set_ylim(top=1.3 * max(*jobs, *time))
        middle.bar(*zip(*results["running"], strict=True), color=plots.SERIES[0], width=0.8)
        plots.finish(middle, "(b) concurrent jobs", "number of concurrent jobs", "share of the time")
        counts = range(0, 61)
        for ratio in (0.02, IO_RATIO, 0.1):
            right.plot(counts, [1 - (1 - ratio) ** n for n in counts], label=f"E(µ) = {ratio:.0%}", linewidth=1.2)
        right.axhline(PAPER_P, color=plots.PAPER, linewidth=1, linestyle="dotted", label="paper: 64 %")
        right.axhline(results["probability"], color=plots.SERIES[3], linewidth=1, label="this log")
        plots.finish(right, "P(another is doing I/O)", "jobs, always as many", "probability")
