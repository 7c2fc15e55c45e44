"""The programs of `./dev bench regret`: which kinds there are, which run together, and what is drawn for each round.

Only its kind and its approximate share of I/O are fixed for a program. Each round draws the length of the run, the
number of phases (thereby the period), and the size of a phase. It also draws the ranks, the start, and whether the
program syncs. All policies within the round get the same values. So there is no fixed scenario to which a policy could
be tuned.
"""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

REPO = Path(__file__).resolve().parent.parent

# These are ranges of the share of I/O in a program's time alone.
SHARES = {"light": (0.06, 0.16), "medium": (0.22, 0.4), "heavy": (0.42, 0.62)}
LENGTH_S, PHASES, RANKS, START_S = (6.5, 9.0), (4, 9), (1, 3), (0.0, 1.5)
ITERATION_S = (0.03, 0.08)  # of jacobi
MOST_PHASE_BYTES = 150e6  # on fast storage
LINE_BYTES, LINE_EVERY_S = (256, 4096), (0.004, 0.02)
FIO = "fio"  # a load that is not coordinated
LOG = "log"  # appends few bytes all the time
MIB = 1 << 20


@dataclass(frozen=True)
class Drawn:
    """One program as it runs in one round."""

    name: str
    kind: str
    ranks: int
    phases: int
    compute_s: float  # before each phase
    phase_bytes: int  # of all ranks
    start_s: float
    sync: bool
    seed: int

    @property
    def coordinated(self) -> bool:
        return self.kind != FIO


@dataclass(frozen=True)
class Wanted:
    """A set of programs as pairs (kind, share)."""

    programs: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        return "+".join(kind for kind, _ in self.programs)

    @property
    def bounded(self) -> bool:
        """True if bounds hold for the set: none of its programs is an uncoordinated load."""
        return all(kind != FIO for kind, _ in self.programs)


def _set(*programs: str) -> Wanted:
    return Wanted(tuple((kind, share) for kind, share in (one.split(":") for one in programs)))


SETS = [
    _set("jacobi-verify:heavy", "s_ior:medium"),
    _set("jacobi:heavy", "s_ior-posix:light"),
    _set("jacobi-verify:medium", "jacobi:light"),
    _set("s_ior:heavy", "s_ior-posix:medium"),
    _set("vpic_io:heavy", "vorpal_io:heavy"),
    _set("vpic_io:heavy", "numpy:light"),
    _set("bt_io:medium", "jacobi-verify:heavy"),
    _set("bt_io:light", "vorpal_io:medium"),
    _set("numpy:medium", "s_ior-posix:heavy"),
    _set("log:light", "s_ior:heavy"),
    _set("log:light", "jacobi-verify:medium"),
    _set("vorpal_io:light", "jacobi:heavy"),
    _set("numpy:heavy", "bt_io:heavy"),
    _set("jacobi-verify:medium", "s_ior:heavy", "vpic_io:light"),
    _set("bt_io:medium", "numpy:medium", "log:light"),
    _set("s_ior-posix:heavy", "vorpal_io:light", "jacobi:medium"),
    _set("vpic_io:medium", "bt_io:light", "jacobi-verify:medium"),
    _set("jacobi-verify:medium", "s_ior:light", "fio:medium"),
    _set("vpic_io:medium", "numpy:light", "fio:light"),
]
# These sets also run on the real file system, and beside busy loops.
ELSEWHERE = [SETS[0], SETS[5], SETS[10], SETS[13]]


def draw(wanted: Wanted, round_: int, bytes_per_s: float, always_sync: bool = False) -> list[Drawn]:
    """Return the set's programs in this round, for storage of this bandwidth."""
    return [
        _draw(Random(f"{wanted.name}/{round_}/{at}"), at, kind, share, bytes_per_s, always_sync)
        for at, (kind, share) in enumerate(wanted.programs)
    ]


def _draw(rng: Random, at: int, kind: str, share: str, bytes_per_s: float, always_sync: bool) -> Drawn:
    length_s, phases, ranks = rng.uniform(*LENGTH_S), rng.randint(*PHASES), rng.randint(*RANKS)
    io_s = rng.uniform(*SHARES[share]) * length_s / phases
    return Drawn(
        name=f"{kind}-{at + 1}",
        kind=kind,
        ranks=ranks,
        phases=phases,
        compute_s=length_s / phases - io_s,
        phase_bytes=int(min(io_s * bytes_per_s, MOST_PHASE_BYTES)),
        start_s=rng.uniform(*START_S),
        sync=rng.random() < 0.5 or always_sync,
        seed=rng.randrange(1, 1 << 30),
    )


# ---- commands --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Places:
    """`app` returns the path of a program of apps/; the run writes to `target`; jacobi reads from `systems`."""

    app: Callable[[str], Path]
    target: Path
    systems: Path


def program(one: Drawn, places: Places) -> list[object]:
    """Return the command of the program, without the launcher."""
    return _PROGRAMS[one.kind](one, places)


def system_of(one: Drawn, places: Places) -> Path:
    return places.systems / f"{unknowns(one)}.jacobi"


def unknowns(one: Drawn) -> int:
    return max(100, int(math.sqrt(one.phase_bytes / 8)))


def _jacobi(one: Drawn, places: Places) -> list[object]:
    iteration_s = Random(one.seed).uniform(*ITERATION_S)
    every = max(1, round(one.compute_s / iteration_s))
    return [
        *(places.app("jacobi"), "--system", system_of(one, places), "--iterations", every * one.phases),
        *("--tolerance", 0, "--checkpoint-every", every, "--checkpoint-dir", places.target),
        *("--iteration-time", one.compute_s / every, "--print-every", 100000),
    ]


def _phases(one: Drawn, places: Places) -> list[object]:
    common = ["-o", places.target / one.name, "-p", one.phases, "-d", f"{one.compute_s:.6f}", "-w"]
    return [*common, "-y"] if one.sync else common


def _s_ior(one: Drawn, places: Places) -> list[object]:
    calls = Random(one.seed).randint(1, 6)
    transfer = max(1, one.phase_bytes // one.ranks // calls // 4) * 4
    return [places.app("s_ior"), *_phases(one, places), "-b", transfer * calls, "-t", transfer]


def _vpic(one: Drawn, places: Places) -> list[object]:
    return [places.app("vpic_io"), *_phases(one, places), "-n", max(1, one.phase_bytes // one.ranks // 32)]


def _vorpal(one: Drawn, places: Places) -> list[object]:
    side = max(1, round((one.phase_bytes / one.ranks / 24) ** (1 / 3)))
    return [places.app("vorpal_io"), *_phases(one, places), "-b", f"{side},{side},{side}"]


def _bt(one: Drawn, places: Places) -> list[object]:
    grid = max(one.ranks, round((one.phase_bytes / 40) ** (1 / 3)))
    return [places.app("bt_io"), *_phases(one, places), "-D", "blocks", "-g", grid]


def _numpy(one: Drawn, places: Places) -> list[object]:
    words = [places.target, one.phases, f"{one.compute_s:.6f}", one.phase_bytes, *(["--sync"] if one.sync else [])]
    return [sys.executable, REPO / "bench" / "numpy_probe.py", *words]


def _log(one: Drawn, places: Places) -> list[object]:
    rng = Random(one.seed)
    length_s = one.phases * one.compute_s
    probe = REPO / "build" / "release" / "bench" / "log_probe-mpich"
    return [probe, places.target / "log", f"{length_s:.3f}", f"{rng.uniform(*LINE_EVERY_S):.6f}", _line(rng)]


def _line(rng: Random) -> int:
    return rng.randint(*LINE_BYTES)


def _fio(one: Drawn, places: Places) -> list[object]:
    """Return the command of fio, which writes until its starter ends it."""
    think_us = int(one.compute_s * 1e6)
    blocks = max(1, one.phase_bytes // MIB)
    return [
        *(shutil.which(FIO) or FIO, "--name=load", f"--directory={places.target}", "--rw=write", "--bs=1m"),
        *("--ioengine=psync", f"--size={max(64, 2 * blocks)}m", "--time_based", "--runtime=600", "--output=/dev/null"),
        *(f"--thinktime={think_us}", f"--thinktime_blocks={blocks}"),
    ]


_PROGRAMS: dict[str, Callable[[Drawn, Places], list[object]]] = {
    "jacobi": _jacobi,
    "jacobi-verify": lambda one, places: [*_jacobi(one, places), "--verify"],
    "s_ior": _s_ior,
    "s_ior-posix": lambda one, places: [*_s_ior(one, places), "--file-per-process"],
    "vpic_io": _vpic,
    "vorpal_io": _vorpal,
    "bt_io": _bt,
    "numpy": _numpy,
    "log": _log,
    FIO: _fio,
}


def kinds(sets: Sequence[Wanted]) -> set[str]:
    return {kind for one in sets for kind, _ in one.programs}
