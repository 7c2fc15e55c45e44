"""Programs that close descriptors of libhocket, and use the numbers themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from stand_in_hocketd import StandIn

pytestmark = pytest.mark.timeout(120)

BLOCK = 2 << 20


def run(mpi: kit.Mpi, program: Path, controller: StandIn, path: Path, how: str, limit: int = 4096) -> kit.Run:
    limited = ["prlimit", f"--nofile={limit}", program, path, how]
    done = mpi.run(limited, kit.settings(controller.socket, phase_gap_s=0.1), ranks=1)
    assert done.code == 0, done.err
    assert path.stat().st_size == 3 * BLOCK
    return done


def test_a_loop_over_descriptors_does_not_reach_those_of_libhocket(
    mpi: kit.Mpi, built: Callable[..., Path], controller: StandIn, tmp_path: Path
) -> None:
    done = run(mpi, built("closes_all.c"), controller, tmp_path / "f", "loop")
    assert done.err == ""
    assert len(controller.events("HELLO")) == 1
    assert controller.bye()["bytes_written"] == 3 * BLOCK


@pytest.mark.parametrize(("how", "limit"), [("all", 4096), ("instead", 4096), ("loop", 512)])
def test_a_program_that_takes_the_connection_away_continues_uncoordinated(
    mpi: kit.Mpi, built: Callable[..., Path], controller: StandIn, tmp_path: Path, how: str, limit: int
) -> None:
    done = run(mpi, built("closes_all.c"), controller, tmp_path / "f", how, limit)
    assert len(done.warnings) == 1 and "closed descriptors of hocket" in done.warnings[0], done.err
    assert len(controller.events("HELLO")) == 2, "it rejoins at its next I/O phase"
    assert [bye["bytes_written"] for bye in controller.events("BYE")] == [3 * BLOCK]
