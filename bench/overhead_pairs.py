"""The time that hocket adds to programs and calls, beside the same without hocket: alternating runs, paired by round.

overhead.py compares calls within one process. The runs here also show what the library does to a process outside its
wrappers.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

from both_mpis import environment, mpiexec
from hocket import paths
from hocket.private_daemon import private_daemon

ROUNDS = 20
WATCHED_US, BURST_US = 0.3, 0.7
ALONE_RATIO, ALONE_S = 1.01, 0.05
LIMIT_S = 120
HOCKET = (f"{sys.prefix}/bin/hocket",)
STEPS = {"short": 6, "long": 80}  # of overhead_alone: about 0.2 and 2 s


def interval(values: list[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the median."""
    ordered = sorted(values)
    half = 0.98 * len(ordered) ** 0.5
    return ordered[max(0, int(len(ordered) / 2 - half))], ordered[min(len(ordered) - 1, int(len(ordered) / 2 + half))]


def in_turn(kinds: dict[str, Callable[[], dict[str, float]]], rounds: int = ROUNDS) -> dict[str, dict[str, list]]:
    """Return kind of run → figure → its values by round. A round runs each kind once, in its own random order."""
    order = random.Random(1)
    found: dict[str, dict[str, list]] = {kind: {} for kind in kinds}
    for _ in range(rounds):
        for kind in order.sample(list(kinds), len(kinds)):
            for name, value in kinds[kind]().items():
                found[kind].setdefault(name, []).append(value)
    return found


def line(case: str, unit: str, value: list[float], reference: list[float], bound: float) -> dict:
    """Return one line of the benchmark. `bound` is for the median of the paired differences."""
    paired = [a - b for a, b in zip(value, reference, strict=True)]
    low, high = interval(paired)
    return {
        "bench": "overhead",
        "case": case,
        "value": round(median(value), 4),
        "unit": unit,
        "reference": round(median(reference), 4),
        "ratio": round(median(value) / median(reference), 4),
        f"difference_{unit}": round(median(paired), 4),
        f"interval_{unit}": [round(low, 4), round(high, 4)],
        "spread": [round(min(paired), 4), round(max(paired), 4)],
        "pairs": len(paired),
        "bound": round(bound, 4),
        "ok": low <= bound,  # missed where the interval lies beyond it
    }


def run(words: list[str], settings: dict[str, str]) -> str:
    done = subprocess.run(words, env=environment(**settings), capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        raise SystemExit(f"bench: '{' '.join(words)}' ended with exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def calls(mpi: str, build: Path, rounds: int = ROUNDS) -> Iterator[dict]:
    """Yield lines for calls that are only watched, and for calls within a granted burst; on tmpfs."""
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as storage,
        tempfile.TemporaryDirectory() as directory,
        private_daemon(Path(directory), {}),
    ):
        program = [mpiexec(mpi), "-n", "2", "env"]
        library = f"LD_PRELOAD={paths.libhocket(mpi)}"
        told = {"HOCKET_SOCKET": f"{directory}/hocketd.sock"}

        def figures(preload: list[str], settings: dict[str, str]) -> dict[str, float]:
            settings = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "0"} | settings  # two ranks have a core each
            said = run([*program, *preload, str(build / f"overhead_calls-{mpi}"), storage], settings)
            return {name: float(ns) / 1000 for name, ns in (line.split() for line in said.splitlines())}

        found = in_turn(
            {
                "without": lambda: figures([], {}),
                "watched": lambda: figures([library], told | {"HOCKET_COORDINATE": "0"}),
                "burst": lambda: figures([library], told),
            },
            rounds,
        )
    for kind, bound in (("watched", WATCHED_US), ("burst", BURST_US)):
        for name, reference in found["without"].items():
            if kind == "burst" and name.startswith("allreduce"):
                continue  # makes no request
            yield line(f"call {kind} {name} {mpi}", "us", found[kind][name], reference, bound)


def alone(mpi: str, build: Path, rounds: int = ROUNDS) -> Iterator[dict]:
    """Yield lines for a whole program under `hocket run`, with a running daemon, and ("first") one that it starts."""
    for name, steps in STEPS.items():
        with tempfile.TemporaryDirectory(dir="/dev/shm") as storage, tempfile.TemporaryDirectory() as directory:
            program = [mpiexec(mpi), "-n", "2", str(build / f"overhead_alone-{mpi}"), f"{storage}/f", str(steps)]
            with private_daemon(Path(directory), {}):
                found = in_turn(
                    {
                        "without": partial(seconds, program, {}),
                        "alone": partial(seconds, [*HOCKET, "run", "--", *program], {"HOCKET_DIR": directory}),
                        "first": partial(seconds_and_daemon, program),
                    },
                    rounds,
                )
        reference = found["without"]["s"]
        bound = max((ALONE_RATIO - 1) * median(reference), ALONE_S)
        for kind in ("alone", "first"):
            yield line(f"{kind} {name} {mpi}", "s", found[kind]["s"], reference, bound)


def seconds(words: list[str], settings: dict[str, str]) -> dict[str, float]:
    start = time.monotonic()
    run(words, settings)
    return {"s": time.monotonic() - start}


def seconds_and_daemon(program: list[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        took = seconds([*HOCKET, "run", "--", *program], {"HOCKET_DIR": directory})
        run([*HOCKET, "daemon", "stop"], {"HOCKET_DIR": directory})
    return took
