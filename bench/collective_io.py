"""`./dev bench collective-io`: collective accesses by hocket beside those of the MPI libraries (bench/README.md).

It runs patterns of the programs in apps/ with hocket (on MPICH), with ROMIO's defaults, with ROMIO's best hints, and
with OMPIO (Open MPI). Beside them, one process writes or reads as many bytes in plain calls of 16 MiB. A round runs
each method once in its own random order. Values are MB/s (10^6 bytes) by the time of the slowest rank, as medians over
the rounds. Every run writes a new file and reads it back from the page cache; `overwrite` writes into an existing file.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import mmap
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median, quantiles

REPO = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPO / "demo"), str(REPO / "bench")]

import figures  # noqa: E402 (needs the path)
from mpi_launch import Mpi  # noqa: E402 (needs the path)

line = partial(figures.line, "collective-io")

ROUNDS = 9
SEARCH_RUNS = 2
RUN_LIMIT_S = 300
TOTAL_MIB = 256  # of a run, about
PLAIN_BYTES = 16 << 20
WINDOW_MIB = 1.0  # hocket_buffer_size
# An aggregator holds three collective buffers, and chunks of four more in flight on each of its two sides.
BUFFERS_MIB = (3 + 4 + 4) * WINDOW_MIB
MEMORY_ABOVE_MIB = 16
WAYS = ("write", "read")
NAMES = {
    "hocket": "hocket",
    "romio": "ROMIO's defaults",
    "best": "ROMIO's best hints",
    "ompio": "OMPIO",
    "plain": "one process, plain",
}
METHODS = list(NAMES)

# The search tries these hints for ROMIO: with and without exchange and data sieving, numbers of aggregators, buffers.
SIEVING = [
    {"romio_cb_write": "disable", "romio_cb_read": "disable", "romio_ds_write": ds, "romio_ds_read": ds}
    for ds in ("enable", "disable", "automatic")
]


def exchanges(ranks: int) -> list[dict[str, str]]:
    return [
        {"romio_cb_write": "enable", "romio_cb_read": "enable", "cb_nodes": str(nodes), "cb_buffer_size": str(size)}
        for nodes in sorted({1, 2, ranks})
        for size in (1 << 20, 4 << 20, 16 << 20)
    ]


@dataclass(frozen=True)
class Bounds:
    """Least ratios of hocket's write to each reference; None is no bound. Reads are bounded beside ROMIO's defaults
    only.
    """

    romio: float | None = None
    best: float | None = None
    plain: float | None = None
    read: float | None = None


@dataclass(frozen=True)
class Case:
    name: str
    program: str
    ranks: int
    arguments: tuple[str, ...]
    bounds: Bounds
    in_mean: bool = False  # of the geometric mean

    @property
    def label(self) -> str:
        return f"{self.name}, {self.ranks} ranks"


APPLICATION = Bounds(romio=0.95, read=0.95)
LEAST_MEAN = 1.5


def cases(ranks: int, mib: int) -> list[Case]:
    """Return the patterns, with about `mib` MiB in all."""
    each = mib // ranks  # MiB of a rank
    square = math.isqrt(ranks - 1) + 1  # BT-IO runs on the next square number of ranks
    grid = 128 if mib >= TOTAL_MIB else 80
    steps = str(max(1, round((mib << 20) / (grid**3 * 40))))
    return [
        Case(
            "contiguous 1 MiB",
            "s_ior",
            ranks,
            ("-b", "1m", "-t", "1m", "-s", str(each), "-p", "1"),
            Bounds(romio=1.0, plain=0.8, read=1.0),
        ),
        Case(
            "strided 4 KiB",
            "s_ior",
            ranks,
            ("-b", "4k", "-t", "1m", "-s", str(each * 256), "-p", "1"),
            Bounds(romio=4.0, best=1.2, plain=0.5, read=0.95),
        ),
        Case("3-D blocks", "bt_io", ranks, ("-g", str(grid), "-D", "blocks", "-p", steps), APPLICATION, True),
        Case("BT-IO", "bt_io", square**2, ("-g", str(grid), "-p", steps), APPLICATION, True),
        Case("VPIC", "vpic_io", ranks, ("-n", "262144", "-p", str(max(1, each // 8))), APPLICATION, True),
        Case("VORPAL", "vorpal_io", ranks, ("-b", "64,64,64", "-p", str(max(1, each // 6))), APPLICATION, True),
    ]


# Both patterns have fragments of 100 bytes: one follows a formula, the other has random places.
def fragments(ranks: int, quick: bool) -> list[tuple[str, tuple[str, ...]]]:
    segments = ("-s", "40000" if quick else "320000")
    arguments = ("-b", "100", "-t", "1000000", *segments, "-p", "1")
    return [
        (f"100-byte fragments, {ranks} ranks", arguments),
        (f"100-byte fragments at random, {ranks} ranks", (*arguments, "-R", "1")),
    ]


# ---- runs ------------------------------------------------------------------------------------------------------------


@dataclass
class Runner:
    prefix: Path
    directory: Path
    mpich: Mpi = field(default_factory=lambda: Mpi("mpich"))
    openmpi: Mpi = field(default_factory=lambda: Mpi("openmpi"))

    def run(self, case: Case, method: str, hints: dict[str, str] | None = None, *more: str) -> dict:
        """Run a program and return the summary that it printed. `hints` are for ROMIO."""
        mpi = self.openmpi if method == "ompio" else self.mpich
        program = mpi.app(case.program, self.prefix)
        if not program.exists():
            raise SystemExit(f"bench: no {program}: ./dev build installs it")
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("HOCKET_", "ROMIO_"))}
        environment = mpi.environment(environment)
        options: list[str] = []
        if method == "hocket":
            preload = self.prefix / "lib" / "hocket" / "libhocket-mpich.so"
            options = ["-genv", "LD_PRELOAD", str(preload), "-genv", "HOCKET_IO", "hocket"]
        if hints:
            path = self.directory / "romio-hints"
            path.write_text("".join(f"{key} {value}\n" for key, value in hints.items()))
            options = ["-genv", "ROMIO_HINTS", str(path)]
        command = [str(mpi.bin / "mpiexec"), *options, "-n", str(case.ranks), str(program)]
        command += ["-o", str(self.directory / "file"), *case.arguments, *more]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=RUN_LIMIT_S)
        if done.returncode != 0:
            raise SystemExit(f"bench: '{' '.join(command)}' ended with exit code {done.returncode}: {done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])

    def speeds(self, case: Case, method: str, hints: dict[str, str] | None = None) -> dict[str, float]:
        """Return the MB/s of writing a new file and of reading the same file."""
        told = self.run(case, method, hints)
        return {way: told["phases"] * told["phase_bytes"] / sum(told[f"{way}_s"]) / 1e6 for way in WAYS}

    def plain(self, bytes_: int) -> dict[str, float]:
        """Return the same figures for one process without MPI, in calls of 16 MiB."""
        path = self.directory / "file"
        path.unlink(missing_ok=True)
        with mmap.mmap(-1, PLAIN_BYTES) as memory:
            memory[:] = os.urandom(1 << 20) * (PLAIN_BYTES >> 20)
            calls = max(1, bytes_ // PLAIN_BYTES)
            fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
            speeds = {}
            for way, call in (("write", os.pwritev), ("read", os.preadv)):
                started = time.perf_counter()
                for i in range(calls):
                    if call(fd, [memory], i * PLAIN_BYTES) != PLAIN_BYTES:
                        raise SystemExit(f"bench: a plain {way} of {path} was short: is the file system full?")
                speeds[way] = calls * PLAIN_BYTES / (time.perf_counter() - started) / 1e6
            os.close(fd)
        path.unlink()
        return speeds

    def overwrite(self, case: Case, method: str) -> float:
        self.run(case, method, None, "-w", "-k")
        told = self.run(case, method, None, "-w")
        return told["phases"] * told["phase_bytes"] / sum(told["write_s"]) / 1e6


def best_hints(runner: Runner, case: Case) -> dict[str, dict[str, str]]:
    """Search, for each of write and read, the hints with the highest median. {} stands for the defaults."""
    found: dict[str, tuple[float, dict[str, str]]] = {}
    for hints in [{}, *SIEVING, *exchanges(case.ranks)]:
        runs = [runner.speeds(case, "romio", hints) for _ in range(SEARCH_RUNS)]
        for way in WAYS:
            speed = median(run[way] for run in runs)
            if way not in found or speed > found[way][0]:
                found[way] = (speed, hints)
    return {way: hints for way, (_, hints) in found.items()}


# ---- results ---------------------------------------------------------------------------------------------------------


def spread(values: Sequence[float]) -> list[float]:
    """Return the quartiles."""
    found = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return [round(value, 1) for value in found]


def measure(runner: Runner, case: Case, mib: int, rounds: int, rng: random.Random) -> dict:
    """Return all samples of a case of about `mib` MiB: method → way → MB/s of each round."""
    searched = Case(case.name, case.program, case.ranks, quarter(case.arguments), case.bounds)
    best = best_hints(runner, searched)
    samples: dict[str, dict[str, list[float]]] = {m: {way: [] for way in WAYS} for m in METHODS}
    for _ in range(rounds):
        for method in rng.sample(METHODS, len(METHODS)):
            if method == "plain":
                speeds = runner.plain(mib << 20)
            elif method == "best" and best["write"] == best["read"]:
                speeds = runner.speeds(case, "romio", best["write"])
            elif method == "best":
                speeds = {way: runner.speeds(case, "romio", best[way])[way] for way in WAYS}
            else:
                speeds = runner.speeds(case, method)
            for way in WAYS:
                samples[method][way].append(speeds[way])
    return {"case": case.name, "ranks": case.ranks, "best_hints": best, "samples": samples}


def quarter(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments of the same pattern with a quarter of the data, for the search."""
    fewer = list(arguments)
    key = "-s" if "-s" in fewer else "-p"
    at = fewer.index(key) + 1
    fewer[at] = str(max(1, int(fewer[at]) // 4))
    return tuple(fewer)


def judge(case: Case, measured: dict) -> Iterator[dict]:
    samples = measured["samples"]
    for way in WAYS:
        own = samples["hocket"][way]
        for method in METHODS[1:]:
            others = samples[method][way]
            bound = getattr(case.bounds, method, None) if way == "write" else None
            if way == "read" and method == "romio":
                bound = case.bounds.read
            ratio = median(own) / median(others)
            more = {"quartiles": spread(own), "reference_quartiles": spread(others), "rounds": len(own)}
            if method == "best":
                more["hints"] = measured["best_hints"][way]
            name = f"{case.label}, {way} beside {NAMES[method]}"
            yield line(name, median(own), "MB/s", median(others), bound, bound is None or ratio >= bound, **more)


def geometric_mean(ranks: int, measured: list[tuple[Case, dict]]) -> dict:
    ratios = [
        median(m["samples"]["hocket"]["write"]) / median(m["samples"]["romio"]["write"])
        for case, m in measured
        if case.in_mean
    ]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    name = f"applications, {ranks} ranks, write beside ROMIO's defaults, geometric mean"
    return line(name, mean, "times", 1.0, LEAST_MEAN, mean >= LEAST_MEAN)


def memory(runner: Runner, name: str, ranks: int, arguments: tuple[str, ...], rounds: int) -> dict:
    """Compare the largest growth of an aggregator's memory, by its peak in /proc, with its bound and with ROMIO's
    growth.
    """
    case = Case(name, "s_ior", ranks, arguments, Bounds())
    told = {method: [runner.run(case, method) for _ in range(rounds)] for method in ("hocket", "romio")}
    grown = {method: max(run["memory_kib"] for run in runs) / 1024 for method, runs in told.items()}
    bound = BUFFERS_MIB + MEMORY_ABOVE_MIB
    speeds = {
        f"{method}_MB_s": [
            round(median(run["phase_bytes"] / run[f"{way}_s"][0] / 1e6 for run in runs), 1) for way in WAYS
        ]
        for method, runs in told.items()
    }
    return line(f"{name}, memory", grown["hocket"], "MiB", grown["romio"], bound, grown["hocket"] <= bound, **speeds)


def overwriting(runner: Runner, case: Case, rounds: int) -> dict:
    samples: dict[str, list[float]] = {"hocket": [], "romio": []}
    for _ in range(rounds):
        for method, values in samples.items():
            values.append(runner.overwrite(case, method))
    value, reference = median(samples["hocket"]), median(samples["romio"])
    more = {"quartiles": spread(samples["hocket"]), "reference_quartiles": spread(samples["romio"])}
    return line(f"{case.label}, overwrite beside ROMIO's defaults", value, "MB/s", reference, None, True, **more)


# ---- all of it -------------------------------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="3 rounds of 64 MiB, to check that it works")
    parser.add_argument("--rounds", type=int, help=f"({ROUNDS})")
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--cases", help="only cases whose name contains this text, e.g. strided")
    parser.add_argument("--directory", type=Path, default=REPO / "build", help="where the files go (build)")
    parser.add_argument("--out", type=Path, help="directory for results.json and the plot (bench/collective-io)")
    return parser.parse_args()


def run(runner: Runner, arguments: argparse.Namespace, tell: list[dict]) -> list[dict]:
    """Print and collect the lines; return the samples of all cases."""
    rounds = arguments.rounds or (3 if arguments.quick else ROUNDS)
    mib = 64 if arguments.quick else TOTAL_MIB
    rng = random.Random(2026)
    wanted = arguments.cases or ""

    def say(result: dict) -> None:
        tell.append(result)
        print(json.dumps(result), flush=True)

    kept = []
    for ranks in arguments.ranks:
        measured = []
        for case in cases(ranks, mib):
            if wanted not in case.name:
                continue
            measured.append((case, measure(runner, case, mib, rounds, rng)))
            for result in judge(*measured[-1]):
                say(result)
            if case.program == "s_ior":
                say(overwriting(runner, case, rounds))
        kept += [m for _, m in measured]
        if any(case.in_mean for case, _ in measured):
            say(geometric_mean(ranks, measured))
        for name, pattern in fragments(ranks, arguments.quick):
            if wanted in name:
                say(memory(runner, name, ranks, pattern, min(rounds, 3)))
    return kept


def main() -> int:
    arguments = parse()
    prefix = Path(os.environ.get("HOCKET_PREFIX", sys.prefix))
    results: list[dict] = []
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="collective-io-", dir=arguments.directory))
        kept = run(Runner(prefix, Path(directory)), arguments, results)
    out = arguments.out or (None if arguments.quick or arguments.cases else REPO / "bench" / "collective-io")
    if out and kept:
        from collective_io_plot import write_plot

        out.mkdir(parents=True, exist_ok=True)
        (out / "results.json").write_text(json.dumps({"lines": results, "cases": kept}, indent=1) + "\n")
        write_plot(kept, NAMES, out / "collective-io.png")
    return 0 if all(result["ok"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
