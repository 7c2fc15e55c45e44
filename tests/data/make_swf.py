"""Makes small.swf: a log of jobs in Standard Workload Format with the shape of a large machine's, made up with a seed.

Sizes are powers of two, half of them at most 2,048 of the 163,840 cores; run times are log-normal; jobs come at random
moments so that some 20 run at once. Nothing of it is a real machine's log.

    python tests/data/make_swf.py
"""

from __future__ import annotations

import random
from pathlib import Path

SEED = 20
JOBS, NEVER_RAN = 240, 12
CORES = 163_840
SIZES = [256, 512, 1024, 2048, 4096, 8192, 16384]
WEIGHTS = [4, 22, 16, 14, 18, 16, 10]
RUN_MEDIAN, RUN_SIGMA = 3600, 0.8  # seconds; of the logarithm
BETWEEN = 180  # mean seconds between two jobs


def main() -> None:
    rng = random.Random(SEED)
    lines = [
        f"; Made up by tests/data/make_swf.py with seed {SEED}; no real machine's log",
        "; Version: 2.2",
        f"; MaxProcs: {CORES}",
        f"; MaxJobs: {JOBS}",
    ]
    submit, never_ran = 0.0, set(rng.sample(range(1, JOBS + 1), NEVER_RAN))
    for number in range(1, JOBS + 1):
        submit += rng.expovariate(1 / BETWEEN)
        wait = int(rng.expovariate(1 / 300))
        size = rng.choices(SIZES, WEIGHTS)[0]
        run = -1 if number in never_ran else max(120, int(rng.lognormvariate(0, RUN_SIGMA) * RUN_MEDIAN))
        status = 5 if number in never_ran else 1
        fields = [number, int(submit), wait, run, size, -1, -1, size, max(run, 600), -1, status]
        fields += [rng.randint(1, 20), 1, -1, 1, -1, -1, -1]
        lines.append(" ".join(map(str, fields)))
    Path(__file__).with_name("small.swf").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
