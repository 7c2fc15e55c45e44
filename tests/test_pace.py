"""Applications keep to the share of a target's bandwidth that they are granted, while others have the target too.

What they have waited is their own figure (BYE): a stand-in for hocketd that stands still for a moment makes it no less.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit

pytestmark = pytest.mark.timeout(180)

ALONE, SHARED = 4, 10
SHARE = 0.2
STORAGE_S = 0.03  # of an access, alone
BLOCK = 1 << 20  # one round


@pytest.fixture
def waited_s(mpi: kit.Mpi, hocket_dir: Path, tmp_path: Path, timed_storage: Path) -> Callable[..., float]:
    """What a program waits on storage that takes STORAGE_S for each pwrite; `share` of all but the first accesses."""

    def run(program: list, share: float, **settings) -> float:
        controller = kit.Controller(hocket_dir, f"--share={ALONE}:{share}")
        environment = kit.settings(controller.socket, **settings)
        environment |= {"STORAGE_MS": str(1e3 * STORAGE_S), "STORAGE_LOG": str(tmp_path / "log")}
        done = mpi.run(program, environment, ranks=1, preload=f"{mpi.libhocket}:{timed_storage}")
        finished = len(controller.events("FINISH_IO"))
        bye = controller.events("BYE")[-1]
        controller.kill()
        controller.log.unlink()
        assert (done.code, done.err, finished) == (0, "", ALONE + SHARED)
        return bye["wait_ns"] / 1e9

    return run


@pytest.mark.parametrize("io", ["mpi", "hocket"])
def test_collective_accesses_keep_to_their_share(waited_s, built, memory: Path, io: str) -> None:
    writes = [f"write={BLOCK}"] * (ALONE + SHARED)
    program = [built("script.c"), f"open={memory / 'timed'}", *writes, "close"]
    expected_s = SHARED * STORAGE_S * (1 / SHARE - 1)
    assert waited_s(program, SHARE, io=io) > 0.9 * expected_s
    assert waited_s(program, 1, io=io) < 0.5 * expected_s


def test_bursts_keep_to_their_share(waited_s, built, memory: Path) -> None:
    """Each write is a burst of its own, as the gap is short; computing is as good as waiting."""
    pause_s = 0.03
    writes = [f"pwrite={BLOCK}", f"pause={pause_s}"] * (ALONE + SHARED)
    program = [built("posix_io.c"), memory / "timed", *writes]
    expected_s = SHARED * (STORAGE_S * (1 / SHARE - 1) - pause_s)
    assert waited_s(program, SHARE, phase_gap_s=0.01) > 0.8 * expected_s
    assert waited_s(program, 1, phase_gap_s=0.01) < 0.5 * expected_s
