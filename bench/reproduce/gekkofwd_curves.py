"""Made-up bandwidth curves of GekkoFWD's 189 access patterns, by number of I/O servers, for Figs. 2 and 3.

The paper's curves are not in its text. These have its patterns, its distribution of best numbers (section 2), and the
steepness of the one curve that Table 4 has both ends of. Three parameters are aimed at a value each. Their forms were
chosen by hand, with everything else in view that the text says of Figs. 2 and 3. So none of that is an independent test
(gekkofwd_sets.py).

    PYTHONPATH=bench .venv/bin/python -m reproduce.gekkofwd_curves --seed 1 > curves.toml
    hocket arbitrate curves.toml --servers 24
"""

from __future__ import annotations

import argparse
import sys
from math import exp, log
from pathlib import Path
from random import Random
from statistics import NormalDist

from hocket.arbitration.jobs import MB, Job
from hocket.exploration.patterns import read_patterns
from hocket.exploration.results import jobs_text

PATTERNS = Path(__file__).resolve().parents[2] / "scenarios" / "patterns" / "forge-189.toml"
BEST = {0: 62, 1: 12, 2: 83, 4: 15, 8: 17}  # how many patterns have each number as their best
FORWARDED = (1, 2, 4, 8)

# Below its best number a curve rises as k ** RISE. In Table 4, 8 servers give IOR-MPI 18.96 times as much as one.
RISE = log(5089.9 / 268.4) / log(8)
# Above it, a curve falls as k ** -FALL: twice as many servers cost 29 %. The text has no number; little depends on it.
FALL = 0.5
# A pattern's best bandwidth through servers is in proportion to its best number, times a lognormal factor. Where direct
# access is best, 8 servers come nearest to it.
PER_SERVER = 100 * MB  # bytes/s; a choice, as no ratio depends on it
# Standard deviation of the factor's logarithm; aimed at the largest gain at 24 servers, 15.06 (17.6 comes out).
SPREAD = 1.2
# The best number beside direct access, and direct access beside 8 servers: 1 + an exponential variable of this mean.
GAIN = 1.5  # aimed at ORACLE beside ZERO, 1.256 (1.27 comes out)
DIRECT_GAIN = 0.05  # aimed at the median gain of MCKP over STATIC at 24 servers, 5.11 (5.02 comes out)


def curves(seed: int) -> list[Job]:
    """Return the patterns with their curves.

    Which pattern has which best number is random, and so independent of nodes, processes and layout. Of all patterns
    with the same best number, the random factors are evenly spaced quantiles in random order: seeds differ less so.
    """
    generator = Random(seed)
    patterns = read_patterns(PATTERNS).patterns
    generator.shuffle(patterns)
    found = []
    for best, count in BEST.items():
        sizes = _shuffled(generator, [exp(SPREAD * NormalDist().inv_cdf(one)) for one in _quantiles(count)])
        gains = _shuffled(generator, [-log(1 - one) for one in _quantiles(count)])
        for size, gain in zip(sizes, gains, strict=True):
            one = patterns.pop()
            found.append(Job(one.name, one.nodes, one.processes, _curve(best, size, gain)))
    return found


def _curve(best: int, size: float, gain: float) -> dict[int, int]:
    most = best or max(FORWARDED)
    peak = PER_SERVER * most * size
    direct = peak / (1 + GAIN * gain) if best else peak * (1 + DIRECT_GAIN * gain)
    through = {k: peak * ((k / most) ** RISE if k <= most else (most / k) ** FALL) for k in FORWARDED}
    return {k: round(rate) for k, rate in {0: direct, **through}.items()}


def _quantiles(count: int) -> list[float]:
    return [(number + 0.5) / count for number in range(count)]


def _shuffled(generator: Random, values: list[float]) -> list[float]:
    generator.shuffle(values)
    return values


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="reproduce.gekkofwd_curves", description="Writes 189 made-up curves for 'hocket arbitrate'."
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random factors (default: 1)")
    seed = parser.parse_args().seed
    print(f"# Made up by bench/reproduce/gekkofwd_curves.py, seed {seed}. Nobody has measured these.\n")
    print(
        jobs_text(
            (one.name, one.nodes, one.processes, {k: rate / MB for k, rate in one.bandwidth.items()})
            for one in curves(seed)
        ),
        end="",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
