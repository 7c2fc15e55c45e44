"""`./dev bench table2`: CLARISSE+FlexMPI's Table 2 live, with timed ranks, beside the simulator (section 5.2).

Four emulated applications share 36 and 82 cores under each sharing policy (table2_live.py). The simulator runs the same
scenario on the same scale (table2_scaled.py). FLOP rates and delays come from the trace of each by one function
(table2_figures.py), over the last part of the run, when cores have been shared out. Delays are in seconds of the
scenario: those measured, times the factor.

    bench/table2.py --plan                       # what is left, and how long it takes
    bench/table2.py --cores 36 --runs 3          # an interrupted call is resumed; no run is made twice
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import table2_live
import table2_scaled
from figures import report
from hocket.errors import HocketError
from hocket.private_servers import ended_by_signals
from hocket.run_file import RunFile, digest
from hocket.sim.runs import Wanted, simulate
from hocket.tables import columns, duration
from hocket.toml_checks import Table
from hocket.toml_text import tables_text
from hocket.trace import read_trace
from reproduce.gekkofwd_live import kept_in
from table2_figures import Figures, Rates, figures_of, medians, total

SIZES = (36, 82)
POLICIES = ("fair", "speedup", "io-aware", "predictive")
FASTER = 5.0
WINDOW = table2_live.Window(settle_s=25.0, measured_s=80.0)
SEEDS = range(1, 6)
AROUND_S = 10.0  # that a run takes before and after

Results = dict[str, Any]


@dataclass(frozen=True)
class Job:
    cores: int
    policy: str  # for sharing cores
    repetition: int


@dataclass(frozen=True)
class Run:
    job: Job
    figures: Figures
    cpu_cores: float
    load: float  # of the machine before the run, which tells a busy one

    def as_json(self) -> Results:
        return asdict(self)

    @classmethod
    def of(cls, line: Results) -> Run:
        told = line["figures"]
        rates = {name: Rates(**one) for name, one in told["applications"].items()}
        return cls(Job(**line["job"]), Figures(rates, told["resizes"]), line["cpu_cores"], line["load"])


@dataclass(frozen=True)
class Campaign:
    """The runs as they were asked for."""

    sizes: Sequence[int] = SIZES
    policies: Sequence[str] = POLICIES
    repetitions: int = 1
    faster: float = FASTER
    window: table2_live.Window = WINDOW

    def jobs(self) -> list[Job]:
        return [
            Job(cores, policy, repetition)
            for repetition in range(self.repetitions)
            for cores in self.sizes
            for policy in self.policies
        ]

    def scenario(self, cores: int) -> Table:
        return table2_scaled.scaled(table2_scaled.read(cores), self.faster, self.window.length_s)

    def runs_in(self, output: Path) -> RunFile[Run]:
        """Open the runs that were made. Raises UsageError if they are on another scale, or of other scenarios."""
        about = {"window": asdict(self.window), "scenarios": [self.scenario(cores) for cores in SIZES]}
        return RunFile(output / "runs.jsonl", "table2 run", digest(about), Run.of, Run.as_json)

    def left(self, runs: RunFile[Run]) -> list[Job]:
        made = {one.job for one in runs.runs}
        return [one for one in self.jobs() if one not in made]


def measure(campaign: Campaign, output: Path) -> Results:
    """Make the runs that are missing, simulate, and return the figures of all. Raises HocketError."""
    runs = campaign.runs_in(output)
    with ended_by_signals():
        while left := campaign.left(runs):
            _say(_plan_text(campaign, left))
            job, load = left[0], os.getloadavg()[0]
            scenario, kept = campaign.scenario(job.cores), output / f"{job.cores}-{job.policy}-{job.repetition}.jsonl"
            made = table2_live.run(scenario, job.policy, campaign.window, kept)
            runs.add(Run(job, made.figures, made.cpu_cores, load))
    return results_of(campaign, runs.runs)


def results_of(campaign: Campaign, runs: Sequence[Run]) -> Results:
    sizes: Results = {}
    for cores in campaign.sizes:
        simulated = _simulated(campaign, cores)
        sizes[str(cores)] = {}
        for policy in campaign.policies:
            of_policy = [one for one in runs if (one.job.cores, one.job.policy) == (cores, policy)]
            sizes[str(cores)][policy] = {
                "live": medians([one.figures for one in of_policy], campaign.faster),
                "simulated": medians(simulated[policy], campaign.faster),
                "simulated_spread": _spread(simulated[policy], campaign.faster),
                "runs": len(of_policy),
                "late_resizes": [one.figures.resizes for one in of_policy],
                "cpu_cores": [one.cpu_cores for one in of_policy],
                "load": [one.load for one in of_policy],
            }
    return {"faster": campaign.faster, "sizes": sizes}


def _simulated(campaign: Campaign, cores: int) -> dict[str, list[Figures]]:
    """Return the figures of each seed, by policy, over the same window of the run."""
    scenario, window = campaign.scenario(cores), campaign.window
    with tempfile.TemporaryDirectory(prefix="hocket-table2-") as name:
        path = Path(name) / "table2.toml"
        path.write_text(tables_text(scenario), encoding="utf-8")
        wanted = {
            policy: [
                Wanted(path, f"{table2_live.ACCESS}+{policy}", seed, trace=Path(name) / f"{policy}-{seed}")
                for seed in SEEDS
            ]
            for policy in campaign.policies
        }
        simulate([one for of_policy in wanted.values() for one in of_policy])
        found: dict[str, list[Figures]] = {}
        for policy, of_policy in wanted.items():
            for one in of_policy:
                assert one.trace is not None
                trace = read_trace(one.trace)
                until_ns = trace.start_ns + round(window.length_s * 1e9)
                since_ns = until_ns - round(window.measured_s * 1e9)
                found.setdefault(policy, []).append(figures_of(trace, scenario, since_ns, until_ns))
        return found


def _spread(simulated: Sequence[Figures], faster: float) -> Results:
    """Return the least and the most over the seeds, of all applications together."""
    flops, delays_s = [one.flops for one in simulated], [one.delay_s * faster for one in simulated]
    return {"flops": [min(flops), max(flops)], "delay_s": [min(delays_s), max(delays_s)]}


def tell(results: Results) -> None:
    """Print a line for each figure, of all applications together and of each. No figure has a bound."""
    for cores, policies in results["sizes"].items():
        for policy, one in policies.items():
            case = f"{cores} cores, {policy}"
            more = {key: one[key] for key in ("runs", "late_resizes", "cpu_cores", "load")}
            more["processes"] = [each["processes"] for each in one["live"].values()]
            more["simulated_processes"] = [each["processes"] for each in one["simulated"].values()]
            for key, what, unit, scale in (("flops", "FLOP rate", "GFLOP/s", 1e9), ("delay_s", "delay", "s", 1.0)):
                live, simulated = (total(one[place], key) / scale for place in ("live", "simulated"))
                spread = [each / scale for each in one["simulated_spread"][key]]
                report("table2", f"{case}, {what}", live, unit, simulated, None, True, spread=spread, **more)
                for name in one["live"]:
                    live, simulated = (one[place][name][key] / scale for place in ("live", "simulated"))
                    report("table2", f"{case}, {name}, {what}", live, unit, simulated, None, True)


def table(results: Results) -> str:
    """Return what each application had, live and simulated, for people."""
    heading = ("cores", "policy", "", "processes", "simulated", "GFLOP/s", "simulated", "delay s", "simulated")
    rows = []
    for cores, policies in results["sizes"].items():
        for policy, one in policies.items():
            live, simulated = one["live"], one["simulated"]
            for name in live:
                cells = [f"{place[name]['processes']:g}" for place in (live, simulated)]
                cells += [f"{place[name]['flops'] / 1e9:.3g}" for place in (live, simulated)]
                cells += [f"{place[name]['delay_s']:.2f}" for place in (live, simulated)]
                rows.append([cores, policy, name, *cells])
            cells = [f"{total(place, 'processes'):g}" for place in (live, simulated)]
            cells += [f"{total(place, 'flops') / 1e9:.4g}" for place in (live, simulated)]
            cells += [f"{total(place, 'delay_s'):.2f}" for place in (live, simulated)]
            rows.append([cores, policy, "all", *cells])
    return columns(heading, rows, right=range(3, len(heading)))


def _plan_text(campaign: Campaign, left: Sequence[Job]) -> str:
    left_s = len(left) * (campaign.window.length_s + AROUND_S)
    following = f": next {left[0].cores} cores, {left[0].policy}" if left else ""
    return f"{len(left)} of {len(campaign.jobs())} runs left, about {duration(left_s * 1e9)}{following}"


def _say(text: str) -> None:
    print(f"bench: table2: {text}", file=sys.stderr, flush=True)


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/table2.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cores", type=lambda text: [int(one) for one in text.split(",")], default=SIZES)
    parser.add_argument("--policies", type=lambda text: text.split(","), default=POLICIES)
    parser.add_argument("--runs", type=int, default=1, help="live runs of each (default: %(default)s)")
    parser.add_argument("--faster", type=float, default=FASTER, help="divides all times (default: %(default)g)")
    parser.add_argument(
        "--settle",
        type=float,
        default=WINDOW.settle_s,
        help="seconds after the policy is put in force that do not count (%(default)g)",
    )
    parser.add_argument("--measure", type=float, default=WINDOW.measured_s, help="seconds of the figures (%(default)g)")
    parser.add_argument("--output", type=Path, help="directory of the runs (default: one for each commit)")
    parser.add_argument("--plot", type=Path, help="write the picture")
    parser.add_argument("--plan", action="store_true", help="run nothing; say what is left, and how long it takes")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    arguments = parse(words)
    window = table2_live.Window(arguments.settle, arguments.measure)
    campaign = Campaign(arguments.cores, arguments.policies, arguments.runs, arguments.faster, window)
    output = arguments.output or kept_in("table2")
    try:
        if arguments.plan:
            print(_plan_text(campaign, campaign.left(campaign.runs_in(output))))
            return 0
        results = measure(campaign, output)
    except HocketError as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        _say(f"interrupted; the runs that were whole are in {output}, and the same call resumes")
        return 1
    tell(results)
    print(table(results), file=sys.stderr)
    if arguments.plot:
        from reproduce.flexmpi_live import draw

        draw(results, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
