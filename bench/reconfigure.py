"""`./dev bench reconfigure`: the time of growing and shrinking, beside the same MPI calls made bare, in one run.

hocket's side is the malleable program resize_probe.c, whose own clock measures hocket_malleable_next. The
RECONFIGURATION record stands beside it (`record`). The bare side is bare_spawn.c. It makes a world for each new
process, as hocket does (`reference`), and one MPI_Comm_spawn of all (`all_at_once`). The programs alternate in random
order; the first growth and the first shrinking of each run do not count. Figures are medians.

With `join`, `value` is the total time for which the application was stopped. It sums the control points that took
longer than a millisecond, from the one that requested the resize to the one that ended it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import median, quantiles

from hocket.process_group import run_limited
from hocket.reconfigure.runs import Runner, environment, last_line, launcher

REPO = Path(__file__).resolve().parent.parent
BUILD = REPO / "build" / "release" / "bench"

GROWTHS = ((1, 2), (2, 4), (1, 4), (4, 8))
ROUNDS, CYCLES = 4, 4  # of a program and growth; the first cycle of each does not count
JOIN_ROUNDS = 9
JOINS = ((1, 2, 0.0), (2, 4, 0.0), (1, 2, 2.0))  # from, to, additional start time of the new processes in seconds
ELEMENTS = 1_000_000  # of the probe's array, 8 bytes each
ITERATION_MS, APART = 5, 4  # iterations between two resizes
GROWTH_BOUND = 1.1  # most time relative to the same bare calls
STAND_STILL_BOUND_S = 0.1
FLEXMPI_S, FLEXMPI_DATA_S = 0.11, 0.0045  # growing 1 → 2, and its data, with MPICH 5
LIMIT_S = 120
SEED = 3


class Samples:
    """Seconds by case and by method, and the runs that failed."""

    def __init__(self) -> None:
        self.of: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.failed: dict[str, list[str]] = defaultdict(list)

    def fail(self, case: str, who: str, why: str) -> None:
        self.failed[case].append(f"{who}: {why}")
        print(f"bench: reconfigure, {case}, {who}: {why}", file=sys.stderr, flush=True)


def bare(build: Path, how: str, sources: int, targets: int, samples: Samples) -> None:
    """Run bare_spawn once, with "one" or "all"."""
    command = [*launcher(1), str(build / "bare_spawn-mpich"), how, str(sources), str(targets), str(CYCLES)]
    code, out, err = run_limited(command, environment(), LIMIT_S)
    wanted = {"grow": (sources, targets), "shrink": (targets, sources)}
    if code != 0:
        samples.fail(f"grow {sources} to {targets}", f"bare, {how}", f"exit code {code}: {last_line(err)}")
        return
    for kind, (first, last) in wanted.items():
        lines = [line.split() for line in out.splitlines()]
        found = [float(line[3]) for line in lines if line[:3] == [kind, str(first), str(last)]]
        samples.of[f"{kind} {first} to {last}", f"bare {how}"] += found[1:]


def points(out: str) -> list[tuple[bool, int, float]]:
    """Return each reported control point: whether it resized, the processes afterwards, and its seconds."""
    lines = [line.split() for line in out.splitlines() if line.startswith("point ")]
    return [(line[2] == "resized", int(line[3]), float(line[4])) for line in lines]


def probe(
    build: Path,
    runner: Runner,
    case: str,
    resizes: Sequence[tuple[int, int]],
    iterations: int,
    samples: Samples,
    **others,
) -> tuple[str, dict[str, str]] | None:
    """Run resize_probe once with these (iteration, processes). Return its output and settings, or None if it failed."""
    command = [*launcher(1), str(build / "resize_probe-mpich"), str(iterations), str(ITERATION_MS), str(ELEMENTS)]
    told = {"HOCKET_RESIZE": ",".join(f"{at}:{processes}" for at, processes in resizes)}
    settings = runner.settings() | told | {key: str(value) for key, value in others.items()}
    code, out, err = run_limited(command, environment() | settings, LIMIT_S)
    if code != 0:
        samples.fail(case, "hocket", f"exit code {code}: {last_line(err)}")
    elif last_line(out) != "end 0":
        samples.fail(case, "hocket", f"the array did not arrive: '{last_line(out)}'")
    elif sum(resized for resized, _, _ in points(out)) != len(resizes):
        samples.fail(case, "hocket", f"not {len(resizes)} resizes: {last_line(err)}")
    else:
        return out, settings
    return None


def cycles(build: Path, runner: Runner, sources: int, targets: int, samples: Samples) -> None:
    """Run the probe once; it grows and shrinks with hocket's default methods."""
    sizes = [targets, sources] * CYCLES
    resizes = [((number + 1) * APART, size) for number, size in enumerate(sizes)]
    case = f"grow {sources} to {targets}"
    iterations = (len(sizes) + 2) * APART
    told = probe(build, runner, case, resizes, iterations, samples, HOCKET_PROCESSES=sources)
    if told is None:
        return
    out, settings = told
    resized = [(size, seconds) for is_resized, size, seconds in points(out) if is_resized]
    wanted = ((sources, targets), (targets, sources))
    of_run = (one for one in runner.records(settings["HOCKET_NAME"]) if (one.sources, one.targets) in wanted)
    records = list(islice(of_run, len(sizes)))
    for kind, first, last in (("grow", *wanted[0]), ("shrink", *wanted[1])):
        key = f"{kind} {first} to {last}"
        samples.of[key, "hocket"] += [seconds for size, seconds in resized if size == last][1:]
        mine = [one for one in records if one.targets == last][1:]
        samples.of[key, "record"] += [one.stopped_ns / 1e9 for one in mine]
        samples.of[key, "record spawning"] += [one.spawning_ns / 1e9 for one in mine]
        samples.of[key, "data"] += [(one.constant_ns + one.variable_ns) / 1e9 for one in mine]


def join_case(sources: int, targets: int, start_s: float) -> str:
    return f"join {sources} to {targets}" + (f", start {start_s:g} s longer" if start_s else "")


def stand_still(
    build: Path, runner: Runner, sources: int, targets: int, start_s: float, strategy: str, samples: Samples
) -> None:
    """Grow the probe once, with new processes that start slowly, and record how long it was stopped."""
    case = join_case(sources, targets, start_s)
    iterations = int((start_s + 2) / (ITERATION_MS / 1e3)) if strategy == "join" else 5 * APART
    settings = {"HOCKET_PROCESSES": sources, "HOCKET_SPAWN_STRATEGY": strategy}
    if start_s:
        settings["PROBE_START_S"] = start_s
    told = probe(build, runner, case, [(APART, targets)], iterations, samples, **settings)
    if told is None:
        return
    out, used = told
    found = points(out)
    last = next(at for at, (is_resized, _, _) in enumerate(found) if is_resized)
    samples.of[case, strategy] += [sum(seconds for _, _, seconds in found[: last + 1])]
    for one in runner.records(used["HOCKET_NAME"]):
        if (one.sources, one.targets) == (sources, targets):
            samples.of[case, f"record {strategy}"] += [one.stopped_ns / 1e9]
            break


def measure(build: Path, only: str, samples: Samples) -> None:
    rng = random.Random(SEED)
    with (
        tempfile.TemporaryDirectory(prefix="hocket-bench-") as directory,
        Runner(Path(directory) / "trace.jsonl") as runner,
    ):
        for _ in range(ROUNDS if only != "join" else 0):
            turns = [(who, *pair) for pair in GROWTHS for who in ("hocket", "one", "all")]
            rng.shuffle(turns)
            for who, sources, targets in turns:
                if who == "hocket":
                    cycles(build, runner, sources, targets, samples)
                else:
                    bare(build, who, sources, targets, samples)
        for _ in range(JOIN_ROUNDS if only != "grow" else 0):
            joins = [(*join, strategy) for join in JOINS for strategy in ("join", "plain")]
            rng.shuffle(joins)
            for sources, targets, start_s, strategy in joins:
                stand_still(build, runner, sources, targets, start_s, strategy, samples)


def spread(values: Sequence[float]) -> list[float] | None:
    """Return the quartiles around the median."""
    if len(values) < 2:
        return None
    low, _, high = quantiles(values, n=4, method="inclusive")
    return [round(low, 5), round(high, 5)]


def line(case: str, values: Sequence[float], reference: float | None, bound: float | None, ok: bool, **others) -> dict:
    value = median(values) if values else None
    told = {
        "bench": "reconfigure",
        "case": case,
        "value": None if value is None else round(value, 5),
        "unit": "s",
        "reference": None if reference is None else round(reference, 5),
        "ratio": round(value / reference, 3) if value is not None and reference else None,
        "bound": bound,
        "ok": ok,
        "samples": len(values),
        "quartiles": spread(values),
    }
    return told | {key: round(other, 5) if isinstance(other, float) else other for key, other in others.items()}


def middle(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def lines(samples: Samples, only: str) -> list[dict]:
    found = []
    for sources, targets in GROWTHS if only != "join" else ():
        for kind, first, last in (("grow", sources, targets), ("shrink", targets, sources)):
            key = f"{kind} {first} to {last}"
            values, one = samples.of[key, "hocket"], samples.of[key, "bare one"]
            whole = bool(values and one) and not samples.failed[key]
            bound = GROWTH_BOUND if kind == "grow" else None
            ok = whole and (bound is None or median(values) <= bound * median(one))
            more = {"bare_quartiles": spread(one), "failed": len(samples.failed[key])}
            more |= {"all_at_once": middle(samples.of[key, "bare all"]), "record": middle(samples.of[key, "record"])}
            more |= {"record_spawning": middle(samples.of[key, "record spawning"])} if kind == "grow" else {}
            found.append(line(key, values, middle(one), bound, ok, **more))
        if (sources, targets) == (1, 2):
            found += flexmpi(samples)
    for sources, targets, start_s in JOINS if only != "grow" else ():
        key = join_case(sources, targets, start_s)
        values, plain = samples.of[key, "join"], samples.of[key, "plain"]
        ok = bool(values) and not samples.failed[key] and max(values) <= STAND_STILL_BOUND_S
        more = {"most": max(values, default=None), "record": middle(samples.of[key, "record join"])}
        found.append(line(key, values, middle(plain), STAND_STILL_BOUND_S, ok, failed=len(samples.failed[key]), **more))
    return found


def flexmpi(samples: Samples) -> list[dict]:
    """Compare with the nearest peer, whose figures were measured elsewhere and earlier."""
    growth, data = samples.of["grow 1 to 2", "hocket"], samples.of["grow 1 to 2", "data"]
    return [
        line("grow 1 to 2, FlexMPI", growth, FLEXMPI_S, 1.0, bool(growth) and median(growth) < FLEXMPI_S),
        line("data of 1 to 2, FlexMPI", data, FLEXMPI_DATA_S, 1.0, bool(data) and median(data) < FLEXMPI_DATA_S)
        | {"bytes": 8 * ELEMENTS},
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--build", type=Path, default=BUILD, help="where bare_spawn-mpich and resize_probe-mpich are")
    parser.add_argument("--only", choices=("grow", "join"), default="", help="one half of it")
    arguments = parser.parse_args()
    os.environ.setdefault("HOCKET_PREFIX", sys.prefix)
    samples = Samples()
    measure(arguments.build.resolve(), arguments.only, samples)
    found = lines(samples, arguments.only)
    for one in found:
        print(json.dumps(one, allow_nan=False), flush=True)
    return 0 if all(one["ok"] for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
