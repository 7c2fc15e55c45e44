"""Applications keep to the share of a target's bandwidth that they are granted, while others have the target too."""

from __future__ import annotations

import itertools
from pathlib import Path
from statistics import median

import pytest
import runtime_kit as kit

pytestmark = pytest.mark.timeout(180)

ALONE, SHARED = 4, 6
SHARE = 0.2
STORAGE_S = 0.03  # of an access, alone
BLOCK = 1 << 20  # one round


@pytest.fixture
def start(mpi: kit.Mpi, hocket_dir: Path, tmp_path: Path, timed_storage: Path):
    """Programs on storage that takes STORAGE_S for each pwrite, with what is asked for and how it was answered."""
    controllers = []

    def run(program: list, **settings) -> list[float]:
        controllers.append(kit.Controller(hocket_dir, f"--share={ALONE}:{SHARE}"))
        environment = kit.settings(controllers[0].socket, **settings)
        environment |= {"STORAGE_MS": str(1e3 * STORAGE_S), "STORAGE_LOG": str(tmp_path / "log")}
        done = mpi.run(program, environment, ranks=1, preload=f"{mpi.libhocket}:{timed_storage}")
        assert (done.code, done.err) == (0, "")
        ends = [e["at_ns"] / 1e9 for e in controllers[0].events("FINISH_IO")]
        return [after - before for before, after in itertools.pairwise(ends)]

    yield run
    for controller in controllers:
        controller.kill()


@pytest.mark.parametrize("io", ["mpi", "hocket"])
def test_collective_accesses_keep_to_their_share(start, built, tmp_path: Path, io: str) -> None:
    writes = [f"write={BLOCK}"] * (ALONE + SHARED)
    apart = start([built("script.c"), f"open={tmp_path / 'timed'}", *writes, "close"], io=io)
    assert median(apart[: ALONE - 1]) < 2 * STORAGE_S
    # The first one that is granted less follows one that had all.
    for took in apart[ALONE:]:
        assert took > 0.8 * STORAGE_S / SHARE, apart


def test_bursts_keep_to_their_share(start, built, tmp_path: Path) -> None:
    """Each write is a burst of its own: the gap is short."""
    writes = [f"pwrite={BLOCK}", "pause=0.05"] * (ALONE + SHARED)
    apart = start([built("posix_io.c"), tmp_path / "timed", *writes], phase_gap_s=0.01)
    assert median(apart[: ALONE - 1]) < 0.05 + 2 * STORAGE_S
    for took in apart[ALONE:]:
        assert took > 0.8 * STORAGE_S / SHARE, apart
