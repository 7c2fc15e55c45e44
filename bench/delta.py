"""`./dev bench delta`: interference, exclusion, interruption, and the dynamic choice, live (CALCioM, section IV).

Two `s_ior` share a storage target of 40 MB/s (apps/limited_target) under hocketd; `hocket delta` runs them. Policies
and dts come in random order within each repetition; figures are medians.

different  320 MiB beside 16 MiB: the times of the small one, which comes second, and of the large one, by policy
equal      twice 80 MiB: dynamic beside the best of the three others, by the metric (cpu-time), at each dt
saw        80 MiB in four accesses beside 20 MiB under interrupt: interruption only between accesses (HOCKET_IO=mpi; an
           access here stands for a file of Fig. 10), and between rounds of an access (HOCKET_IO=hocket)

The results go to bench/delta/: results.json (all runs), and a picture of each part.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import correlation, median

import figures
from hocket.delta.graph import Graph, Point
from hocket.delta.live import Live, Plan, Storage, measure, program_of
from hocket.delta.plot import write_plot
from hocket.errors import HocketError
from hocket.paths import prefix

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "demo"))

from mpi_launch import Mpi  # noqa: E402 (needs the path)

report = partial(figures.report, "delta")

BYTES_PER_S = 40e6
MIB = 1 << 20
RANKS, DIFFERENT_RANKS = (2, 2), (2, 1)  # the number of processes tells hocketd a program's time alone
TIMEOUT_S = 120.0
POLICIES = ("interfere", "fcfs", "interrupt", "dynamic")
LARGE_MIB, SMALL_MIB, EQUAL_MIB = 320, 16, 80
FILES, FILE_MIB = 4, 20
MOST_FACTOR, MOST_LOSS, MOST_BESIDE_BEST, LEAST_CORRELATION = 1.3, 0.1, 1.05, 0.9


class Bench:
    def __init__(self, target: Path, traces: Path | None, repetitions: int) -> None:
        self.mpi = Mpi("mpich")
        os.environ.update(self.mpi.environment())
        self.target, self.traces, self.repetitions = target, traces, repetitions

    def graph(
        self, case: str, sizes_mib: Sequence[int], calls: int, dts_s: Sequence[float], ranks=RANKS, **plan
    ) -> Graph:
        """Measure a graph in which A writes in `calls` collective calls, B in one."""
        programs = [
            program_of(name, self._command(name, *what))
            for name, *what in zip("AB", ranks, sizes_mib, (calls, 1), strict=True)
        ]
        storage = Storage(BYTES_PER_S, self.target)
        settings = {"policies": POLICIES, "repetitions": self.repetitions, "grain": "round", "sharing": "fair"} | plan
        if self.traces:
            settings["traces"] = self.traces / case
            settings["traces"].mkdir(parents=True, exist_ok=True)
        wanted = Plan(dts_s=dts_s, metric="", timeout_s=TIMEOUT_S, storage=storage, **settings)
        start = time.monotonic()
        with Live(wanted, programs, say) as live:
            found = measure(live, say, lambda what: say(f"{case}: {time.monotonic() - start:.0f} s: {what}"))
        if found.about["interrupted"]:
            raise KeyboardInterrupt
        return found

    def _command(self, name: str, ranks: int, mib: int, calls: int) -> str:
        each = mib // ranks
        options = ["-o", self.target / name, "-b", f"{each}m", "-t", f"{each // calls}m", "-w", "-p", 1]
        return " ".join(self.mpi.command(ranks, self.mpi.app("s_ior", prefix()), *options))


def say(text: str) -> None:
    print(f"bench: delta: {text}", file=sys.stderr, flush=True)


def of(graph: Graph, policy: str, figure: Callable[[Point], float]) -> list[float]:
    """Return the figure of each dt."""
    return [figure(point) for point in graph.of(policy)]


def different(graph: Graph) -> bool:
    """Report the case of different sizes; its bounds hold for the worst dt."""
    good = True
    small = {policy: of(graph, policy, lambda point: point.b.factor) for policy in graph.policies}
    for policy in POLICIES:
        bound = MOST_FACTOR if policy in ("interrupt", "dynamic") else None
        worst = max(small[policy])
        more = {"dts": of(graph, policy, lambda point: point.dt_s), "factors": small[policy]}
        case = f"different sizes, {policy}: the small one's I/O time beside alone"
        times = of(graph, policy, lambda point: point.b.io_s)
        good &= report(case, max(times), "s", graph.alone[1].io_s, bound, bound is None or worst <= bound, **more)
    for policy in POLICIES:
        loss = of(graph, policy, lambda point: point.a.factor - 1)
        bound = 1 + MOST_LOSS if policy in ("interrupt", "dynamic") else None
        case = f"different sizes, {policy}: the large one's I/O time beside alone"
        times = of(graph, policy, lambda point: point.a.io_s)
        ok = bound is None or max(loss) <= MOST_LOSS
        more = {"losses": loss, "interruptions": of(graph, policy, lambda point: point.a.interruptions)}
        good &= report(case, max(times), "s", graph.alone[0].io_s, bound, ok, **more)
    return good


def equal(graph: Graph) -> bool:
    """Report the metric of dynamic beside the best other policy, at each wanted dt.

    No two runs begin exactly as far apart. The costs of the other policies are therefore moved to the dt of dynamic, by
    the difference of the expected costs.
    """
    good = True
    for point in graph.of("dynamic"):
        others = {
            other.policy: other.cost
            + graph.cost(graph.expected(other.policy, point.dt_s), point.dt_s)
            - other.expected_cost
            for other in graph.points
            if other.policy != "dynamic" and other.wanted_dt_s == point.wanted_dt_s
        }
        best = min(others, key=lambda policy: others[policy])
        case = f"equal sizes, dt {point.dt_s:+.2f} s, dynamic beside {best}"
        ok = point.cost <= MOST_BESIDE_BEST * others[best]
        good &= report(case, point.cost, "process s", others[best], MOST_BESIDE_BEST, ok, others=others)
    return good


def saw(by_grain: dict[str, Graph]) -> bool:
    """Report B's times: they follow the expected saw if accesses are the grain, and no saw if rounds are."""
    good = True
    for grain, graph in by_grain.items():
        times = of(graph, "interrupt", lambda point: point.b.io_s)
        expected = of(graph, "interrupt", lambda point: point.b.expected_s or 0.0)
        dts = of(graph, "interrupt", lambda point: point.dt_s)
        more = {"dts": dts, "times": times, "expected": expected, "least_s": min(times), "most_s": max(times)}
        case = f"saw, interrupted between {'accesses' if grain == 'file' else 'rounds'}: B's I/O time beside alone"
        reference = graph.alone[1].io_s
        if grain == "file":
            more["correlation"] = correlation(times, expected)
            ok = more["correlation"] >= LEAST_CORRELATION
            good &= report(case, median(times), "s", reference, None, ok, **more)
        else:
            ok = median(times) <= MOST_FACTOR * reference
            good &= report(case, median(times), "s", reference, MOST_FACTOR, ok, **more)
    return good


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", choices=("different", "equal", "saw"), help="one part (default: all)")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--out", type=Path, default=REPO / "bench" / "delta", help="where results and pictures go")
    parser.add_argument("--traces", type=Path, help="keep the trace of each run there")
    arguments = parser.parse_args(words)
    arguments.out.mkdir(parents=True, exist_ok=True)
    made: dict[str, Graph] = {}
    good = True
    with tempfile.TemporaryDirectory(prefix="hocket-delta-") as target:
        bench = Bench(Path(target), arguments.traces, arguments.repetitions)
        large_s, equal_s, files_s = (mib * MIB / BYTES_PER_S for mib in (LARGE_MIB, EQUAL_MIB, FILES * FILE_MIB))
        try:
            if arguments.case in (None, "different"):
                dts = [round(large_s * share, 2) for share in (0.1, 0.4, 0.7)]
                made["different"] = bench.graph(
                    "different", (LARGE_MIB, SMALL_MIB), 1, dts, DIFFERENT_RANKS, sharing="proportional"
                )
                good &= different(made["different"])
            if arguments.case in (None, "equal"):
                dts = [round(equal_s * share, 2) for share in (-0.75, -0.4, 0.0, 0.4, 0.75)]
                made["equal"] = bench.graph("equal", (EQUAL_MIB, EQUAL_MIB), 1, dts)
                good &= equal(made["equal"])
            if arguments.case in (None, "saw"):
                dts = [round(files_s * (at + 0.5) / 16, 2) for at in range(12)]
                for grain in ("file", "round"):
                    sizes, plan = (FILES * FILE_MIB, FILE_MIB), {"policies": ("interrupt",), "grain": grain}
                    made[f"saw-{grain}"] = bench.graph(f"saw-{grain}", sizes, FILES, dts, **plan)
                good &= saw({grain: made[f"saw-{grain}"] for grain in ("file", "round")})
        except HocketError as error:
            raise SystemExit(f"bench: delta: {error}") from error
    results = arguments.out / "results.json"
    before = json.loads(results.read_text()) if results.exists() else {}
    told = before | {case: graph.as_json() for case, graph in made.items()}
    text = json.dumps(told, indent=1, ensure_ascii=False)
    for path in (target, str(bench.mpi.bin), str(prefix() / "lib" / "hocket" / "apps")):  # of this machine
        text = text.replace(path, "…")
    results.write_text(text + "\n", encoding="utf-8")
    for case, graph in made.items():
        write_plot(graph, arguments.out / f"{case}.png")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
