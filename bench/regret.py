"""`./dev bench regret`: does coordination pay by default, and is no program worse off? Unlike programs, live.

Pairs and triples of unlike programs (regret_programs.py) run together under uncoordinated (`hocket run` with the policy
`interfere`), uncoordinated again, fcfs, interrupt, and the default policy. Each program also runs alone. Each round has
its own random order and draws what the programs do. All sets run on a storage target of limited bandwidth
(apps/limited_target). Some run on the real file system, and some beside a busy loop on each core, too.

The benchmark resumes where it stopped: a file (--results) keeps the rounds. It does not repeat rounds of this build of
hocket, except with --fresh. regret_bounds.py has the bounds; bench/regret/ has the pictures.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from hocket.daemon import default_policy
from hocket.errors import HocketError
from hocket.paths import prefix
from regret_bounds import besides_best, judge, sets_of, share_of_gain, sums, totals
from regret_plot import write_plot
from regret_programs import ELSEWHERE, SETS, Drawn, Wanted, draw
from regret_results import ALONE, ARMS, DEFAULT, FCFS, INTERRUPT, Case, Results, Round, build_id
from regret_runs import Runs, Told, busy_loops, cores
from regret_twin import best_ratio

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "demo"))

import probe  # noqa: E402 (needs the path)
import storage  # noqa: E402 (needs the path)

BYTES_PER_S = 80e6  # of the limited target
ROUNDS = 5
LIMITED, REAL = "limited", "real"

Run = Callable[[str, str, Sequence[Drawn]], list[Told]]


@dataclass(frozen=True)
class Campaign:
    """The wanted measurements: `cases` in their order, with `rounds` rounds each. No round begins after `stop_s`."""

    cases: Sequence[Case]
    rounds: int
    build: str
    policy: str
    stop_s: float

    def missing(self, results: Results) -> list[tuple[Case, int]]:
        """Return the missing rounds, in the order in which they are to run."""
        made = {(one.case, one.number) for one in results.of(self.build, self.policy)}
        return [(case, n) for case in self.cases for n in range(1, self.rounds + 1) if (case, n) not in made]


def say(text: str) -> None:
    print(f"bench: regret: {text}", file=sys.stderr, flush=True)


def wanted_of(case: Case) -> Wanted:
    return next(one for one in SETS if one.name == case.set)


def policy_of(arm: str, default: str) -> str:
    return {FCFS: "fcfs", INTERRUPT: "interrupt", DEFAULT: default}.get(arm, "interfere")


def measure_round(campaign: Campaign, case: Case, number: int, programs: Sequence[Drawn], run: Run) -> dict:
    """Return the results by arm. Alone runs and arms mix in random order: changes over time affect all alike."""
    coordinated = [one for one in programs if one.coordinated]
    parts = [(arm, policy_of(arm, campaign.policy), programs) for arm in ARMS]
    parts += [(ALONE, "interfere", [one]) for one in coordinated]
    Random(f"{case}/{number}").shuffle(parts)
    found: dict[str, dict[str, dict]] = {}
    for arm, policy, which in parts:
        label = f"{case.set}-{case.where}{'-busy' if case.busy else ''}-{number}-{arm}"
        label += f"-{which[0].name}" if arm == ALONE else ""
        told = run(label, policy, which)
        found.setdefault(arm, {}).update({one.name: one.as_json() for one in told})
        seconds = ", ".join(f"{one.name} {one.total_s:.2f} s (I/O {one.io_s:.2f} + {one.wait_s:.2f})" for one in told)
        say(f"{case}, round {number}, {arm}: {seconds}")
    return {arm: found[arm] for arm in (*ARMS, ALONE)}


def measure(campaign: Campaign, results: Results, place: Callable[[str], tuple[Runs, float]]) -> bool:
    """Measure the missing rounds while time remains. Return True if none is missing afterwards.

    `place` returns the runs on the limited or the real storage, and its bandwidth.
    """
    missing = campaign.missing(results)
    for at, (case, number) in enumerate(missing):
        if time.monotonic() > campaign.stop_s:
            left = {str(one): sum(other == one for other, _ in missing[at:]) for one, _ in missing[at:]}
            say("no time left; missing: " + "; ".join(f"{one}: {count} rounds" for one, count in left.items()))
            return False
        runs, bytes_per_s = place(case.where)
        programs = draw(wanted_of(case), number, bytes_per_s, always_sync=case.where == REAL)
        with runs.systems(programs), busy_loops(cores()) if case.busy else nullcontext():
            arms = measure_round(campaign, case, number, programs, runs.run)
        drawn = [asdict(one) for one in programs]
        results.add(Round(case, number, campaign.build, campaign.policy, bytes_per_s, drawn, arms))
    return True


class Storages:
    """Directories that are made at their first use and removed at the end."""

    def __init__(self, directory: Path | None, traces: Path | None) -> None:
        self._parent, self._traces = directory, traces
        self._known: dict[str, tuple[Runs, float]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Storages:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def place(self, where: str) -> tuple[Runs, float]:
        if where not in self._known:
            made = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="hocket-regret-", dir=self._parent))
            target = Path(made) / "target"
            target.mkdir()
            chosen = self._choose(where, target)
            say(chosen.statement)
            self._known[where] = Runs(Path(made), chosen, self._traces), chosen.bytes_per_s
        return self._known[where]

    def _choose(self, where: str, target: Path) -> storage.Storage:
        if where == LIMITED:
            library = prefix() / "lib" / "hocket" / "liblimited_target.so"
            return storage.limited(target, round(BYTES_PER_S), library, "the same for all sets")
        measured = probe.measure(target, 3)
        return storage.Storage(target, measured.bytes_per_s, f"real storage, measured before: {measured}", {})


def cases_of(arguments: argparse.Namespace) -> list[Case]:
    """Return the requested cases, or all of the benchmark if none is requested."""
    names = arguments.sets.split(",") if arguments.sets else None
    known = [one.name for one in SETS]
    if unknown := sorted(set(names or ()) - set(known)):
        raise SystemExit(f"bench: regret: --sets: there is no '{unknown[0]}'; there are {', '.join(known)}")
    if arguments.where or arguments.busy or names:
        where = arguments.where or LIMITED
        usual = SETS if where == LIMITED and not arguments.busy else ELSEWHERE
        return [Case(name, where, arguments.busy) for name in names or [one.name for one in usual]]
    elsewhere = [Case(one.name, where, busy) for where, busy in ((REAL, False), (LIMITED, True)) for one in ELSEWHERE]
    return [*(Case(one.name, LIMITED, False) for one in SETS), *elsewhere]


def report(rounds: Sequence[Round], picture: Path) -> bool:
    """Print and draw all figures. Return True if none misses its bound."""
    if not rounds:
        return True
    sets = sets_of(rounds)
    say(f"{len(rounds)} rounds of {len(sets)} sets; the default is '{rounds[0].policy}'")
    good = all([judge(totals(sets)), judge(sums(sets)), judge(besides_best(sets)), share_of_gain(sets, best_ratio)])
    write_plot(sets, picture)
    return good


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", help="only these, separated by commas (default: all)")
    parser.add_argument("--where", choices=(LIMITED, REAL), help="the storage (default: limited, then real for some)")
    parser.add_argument("--busy", action="store_true", help="beside a busy loop on each core")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--minutes", type=float, help="begin no round after this many minutes; list what is missing")
    parser.add_argument("--policy", help="policy instead of the default")
    parser.add_argument("--fresh", action="store_true", help="measure anew what this build has measured before")
    parser.add_argument("--report", action="store_true", help="measure nothing; report the last build in the file")
    parser.add_argument("--results", type=Path, default=REPO / "bench" / "regret" / "results.jsonl")
    parser.add_argument("--directory", type=Path, help="where programs write (default: the directory for such files)")
    parser.add_argument("--traces", type=Path, help="keep the trace of each run there")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    arguments = parse(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends started processes on the way out
    picture = arguments.results.with_suffix(".png")
    try:
        results = Results(arguments.results)
        if arguments.report:
            return 0 if report(results.latest(), picture) else 1
        if arguments.fresh:
            results.begin_anew()
        stop_s = time.monotonic() + arguments.minutes * 60 if arguments.minutes else float("inf")
        policy = arguments.policy or default_policy()
        campaign = Campaign(cases_of(arguments), arguments.rounds, build_id(), policy, stop_s)
        with Storages(arguments.directory, arguments.traces) as storages:
            complete = measure(campaign, results, storages.place)
        good = report(results.of(campaign.build, campaign.policy), picture)
    except HocketError as error:
        raise SystemExit(f"bench: regret: {error}") from error
    except KeyboardInterrupt:
        raise SystemExit(f"bench: regret: interrupted; {arguments.results} has every round that was whole") from None
    return 0 if good and complete else 1


if __name__ == "__main__":
    sys.exit(main())
