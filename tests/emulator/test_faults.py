"""Faults of an emulated run: one line says what is wrong, and the record of what ran before is usable."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from emulator_kit import ended, missing, waits_at_most
from malleable_kit import nothing_left
from mpi_launch import Mpi
from story import Story

pytestmark = pytest.mark.timeout(120)
JOINING = 'spawn_strategy = "join"'


def test_a_join_without_hocketd_ends_the_wait(emulate: Callable[..., subprocess.Popen]):
    """The failure ends the wait, not its limit of an hour. The next resize, which needs no hocketd, takes place."""
    code, figures, err = ended(emulate("mpich", waits_at_most(3600, JOINING), "--no-daemon"))
    assert (code, figures["complete"], figures["iterations"]) == (1, True, 10), err
    assert missing(figures) == [(1, 3, 7)] and [one["to"] for one in figures["resizes"]] == [2]
    assert "hocket: not resized from 1 to 3 processes: there is no hocketd to start processes for 'join'" in err
    assert "emulator: no resize from 1 to 3 processes: iteration 7 continues without it" in err


def test_processes_that_never_are_ready_end_the_wait_at_its_limit(
    emulate: Callable[..., subprocess.Popen],
    cores: Callable[[int], Story],
    never_ready: Path,
    monkeypatch: pytest.MonkeyPatch,
    prefix: Path,
):
    """hocketd starts them, and ends them when the application ends without them."""
    story = cores(8)
    monkeypatch.setenv("LD_PRELOAD", str(never_ready))
    code, figures, err = ended(emulate("mpich", waits_at_most(1.5, JOINING)))
    assert (code, figures["complete"], figures["iterations"], figures["resizes"]) == (1, True, 10, []), err
    assert story.awaits("START_PROCESSES")
    assert missing(figures) == [(1, 3, 7), (1, 2, 8)], "the second one has to wait for the first"
    assert 3.0 <= figures["control_points_s"] < 50, "two waits of 1.5 s"
    assert "hocket: the processes of the resize to 3 are not ready in time: the program continues without them" in err
    assert "emulator: no resize from 1 to 3 processes: iteration 7 continues without it" in err
    nothing_left(Mpi("mpich").app("emulator", prefix))
