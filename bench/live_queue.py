"""`./dev bench workload`: GekkoFWD's queue of jobs, live (section 5.3), beside what its curves predict.

The jobs of scenarios/workloads/gekkofwd-queue.toml are explored, each alone, and then run as a queue under four
policies, in interleaved order. An interrupted benchmark resumes where it was. It takes about an hour; most of that
is sleep, because each I/O server is limited to 20 MiB/s.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from figures import report

REPO = Path(__file__).resolve().parent.parent
QUEUE = REPO / "scenarios" / "workloads" / "gekkofwd-queue.toml"
OUTPUT = REPO / "build" / "bench-workload"
PICTURE = REPO / "build" / "bench-workload.png"
POLICIES = ("mckp", "static", "size", "one")
MEMORY = Path("/dev/shm")  # files are in memory, so that no disk limits the servers
EXPLORATIONS, RUNS = 5, 5
WITHIN = 0.10  # of the predicted aggregate bandwidth
LEAST_GAIN = 1.3  # of mckp over static, as predicted
PAPER_GAIN = 1.9


def hocket(*words: object) -> str:
    command = [sys.executable, "-m", "hocket.cli", *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"live_queue: 'hocket {words[0]}' ended with exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def measured(queue: Path, output: Path, repeat: int) -> list[dict]:
    """Return what `hocket workload` says of each policy."""
    with tempfile.TemporaryDirectory(prefix="hocket-bench-", dir=MEMORY) as directory:
        hocket("explore", queue, "--dir", directory, "--output", output / "curves", "--repeat", EXPLORATIONS)
        how = ["--curves", output / "curves" / "curves.toml", "--fifo", "--arbitrate", ",".join(POLICIES)]
        how += ["--dir", directory, "--repeat", repeat, "--output", output / "runs", "--plot", PICTURE, "--json"]
        return json.loads(hocket("workload", queue, *how))["policies"]


def main() -> int:
    """Measure, and return 1 if a bound is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--repeat", type=int, default=RUNS, help=f"runs under each policy (default: {RUNS})")
    arguments = parser.parse_args()
    told = {one["policy"]: one for one in measured(QUEUE, OUTPUT, arguments.repeat)}
    ok = True
    for policy, one in told.items():
        rate, foreseen = one["bytes_per_s"]["mean"] / 1e6, one["predicted"]["bytes_per_s"] / 1e6
        half = one["bytes_per_s"]["half_interval"]
        more = {
            "half_interval": None if half is None else half / 1e6,
            "makespan_s": one["makespan_s"]["mean"],
            "predicted_makespan_s": one["predicted"]["makespan_s"],
        }
        close = abs(rate / foreseen - 1) <= WITHIN
        ok &= report("workload", f"{policy}, beside predicted", rate, "MB/s", foreseen, WITHIN, close, **more)
    rates = {policy: one["bytes_per_s"]["mean"] for policy, one in told.items()}
    foreseen = {policy: one["predicted"]["bytes_per_s"] for policy, one in told.items()}
    gain = foreseen["mckp"] / foreseen["static"]
    ok &= report("workload", "mckp over static, predicted", gain, "x", PAPER_GAIN, LEAST_GAIN, gain >= LEAST_GAIN)
    report("workload", "mckp over static, live", rates["mckp"] / rates["static"], "x", gain, None, True)
    shutil.rmtree(OUTPUT)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
