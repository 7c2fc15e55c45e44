"""Applications keep to the granted share of a target's bandwidth while others use the target, too.

Each application reports its own wait (BYE). A stand-in for hocketd that blocks for a moment does not reduce it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from stand_in_hocketd import StandIn

pytestmark = pytest.mark.timeout(180)

ALONE, SHARED = 4, 8
SHARE = 0.1  # so small that the waits for grants, which count too, are far below the waits for the share
STORAGE_S = 0.03  # time of an access, alone
BLOCK = 1 << 20  # one round


@pytest.fixture
def waited(mpi: kit.Mpi, hocket_dir: Path, tmp_path: Path, timed_storage: Path) -> Callable[..., tuple[float, int]]:
    """Return a function that runs a program and returns its wait in seconds and its accesses under the share `share`.

    The storage takes STORAGE_S for each pwrite. The share holds for all but the first ALONE requests.
    """

    def run(program: list, share: float, ranks: int = 1, **settings) -> tuple[float, int]:
        controller = StandIn(hocket_dir / "s", share=(ALONE, share))
        environment = kit.settings(controller.socket, **settings)
        environment |= {"STORAGE_MS": str(1e3 * STORAGE_S), "STORAGE_LOG": str(tmp_path / "log")}
        done = mpi.run(program, environment, ranks=ranks, preload=f"{mpi.libhocket}:{timed_storage}")
        finished = controller.events("FINISH_IO")
        bye = controller.events("BYE")[-1]
        controller.kill()
        assert (done.code, done.err) == (0, "")
        moved = {one["request"]: ranks * one["bytes"] for one in finished}  # of rank 0; all ranks have as many
        assert sum(moved.values()) == (ALONE + SHARED) * BLOCK
        return bye["wait_ns"] / 1e9, sum(count for request, count in moved.items() if request > ALONE) // BLOCK

    return run


def waits_less(waited: Callable[..., tuple[float, int]], bound_s: float, program: list, **how) -> bool:
    """Return True if a run with the whole target waits less than the bound. A busy machine makes any one wait."""
    return any(waited(program, 1, **how)[0] < bound_s for _ in range(3))


@pytest.mark.parametrize("io", ["mpi", "hocket"])
def test_collective_accesses_keep_to_their_share(waited, built, memory: Path, io: str) -> None:
    writes = [f"write={BLOCK}"] * (ALONE + SHARED)
    program = [built("script.c"), f"open={memory / 'timed'}", *writes, "close"]
    expected_s = (SHARED - 1) * STORAGE_S * (1 / SHARE - 1)  # nothing waits after the last one
    waited_s, shared = waited(program, SHARE, io=io)
    assert shared == SHARED
    assert waited_s > 0.8 * expected_s
    assert waits_less(waited, 0.5 * expected_s, program, io=io)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_long_access_by_hocket_keeps_to_its_share(waited, built, memory: Path, ranks: int) -> None:
    """The access stops between its rounds. Each process reports its wait."""
    writes = [f"write={BLOCK // ranks}"] * ALONE
    program = [built("script.c"), f"open={memory / 'timed'}", *writes, f"write={SHARED * BLOCK // ranks}", "close"]
    expected_s = ranks * (SHARED // ranks - 1) * STORAGE_S * (1 / SHARE - 1)
    waited_s, shared = waited(program, SHARE, ranks=ranks, io="hocket")
    assert shared == SHARED
    # One of two processes may have begun its last rounds before the request to stop.
    assert waited_s > (0.8 if ranks == 1 else 0.3) * expected_s
    assert waits_less(waited, 0.5 * expected_s, program, ranks=ranks, io="hocket")


def test_bursts_keep_to_their_share(waited, built, memory: Path) -> None:
    """The gap is short, so each write is a burst, unless the process was blocked when the gap had passed. Computing
    time counts as waiting time.
    """
    pause_s = 0.03
    writes = [f"pwrite={BLOCK}", f"pause={pause_s}"] * (ALONE + SHARED)
    program = [built("posix_io.c"), memory / "timed", *writes]
    waited_s, shared = waited(program, SHARE, phase_gap_s=0.01)
    assert 0 < shared <= SHARED
    expected_s = (shared - 1) * (STORAGE_S * (1 / SHARE - 1) - pause_s)
    assert waited_s > 0.75 * expected_s
    assert waits_less(waited, 0.5 * expected_s, program, phase_gap_s=0.01)
