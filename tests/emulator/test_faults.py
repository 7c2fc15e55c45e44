"""Faults of an emulated run: one line says what is wrong, and the record of what ran before is usable."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit
from emulator_kit import LIMIT_S, ended, missing, waits_at_most
from malleable_kit import nothing_left, runs, started
from mpi_launch import Mpi
from processes import descendants
from story import Story

pytestmark = pytest.mark.timeout(120)
ENDED_EARLY = "the application ended before its work was done (exit code {}): the record has {} of its iterations\n"
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


LONG = """
name = "long"
oversubscribe = true
[[group]]
processes = 2
iterations = 300
[[phase]]
[[phase.stage]]
kind = "sleep"
time_s = 0.2
{stage}
"""
APPENDING = """
[[phase.stage]]
kind = "write"
file = "out"
access = "{access}"
bytes = 4096
append = true
"""


def await_iterations(process: subprocess.Popen, record: Path, blocks: int = 1) -> int:
    """Wait until the record has so many blocks of iterations, and return how many it has."""

    def written() -> int:
        return record.read_text().count('"iterations":{') if record.exists() else 0

    ended_early = f"the run ended before its record {record} had {blocks} blocks of iterations"
    runtime_kit.wait_until(lambda: process.poll() is not None or written() >= blocks, LIMIT_S / 2, ended_early)
    assert process.poll() is None, f"{ended_early}: {process.communicate()}"
    return written()


def fill(disk: Path) -> None:
    """Write to the disk until it is full."""
    with (disk / "ballast").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
@pytest.mark.parametrize("access", ["collective", "posix", "file-per-process"])
def test_a_disk_that_fills_during_the_run(
    emulate: Callable[..., subprocess.Popen], small_disk: Path, tmp_path: Path, mpi: str, access: str
):
    """At the start, the disk has room for all that the run appends."""
    text = LONG.format(stage=APPENDING.format(access=access))
    process = emulate(mpi, text, "--no-daemon", "--dir", str(small_disk))
    await_iterations(process, tmp_path / "record")
    fill(small_disk)
    code, figures, err = ended(process)
    assert code != 0 and not figures["complete"], err
    assert figures["iterations"] > 0 and figures["groups"][0]["stages"]["write"]["sum_s"] > 0
    told = [line for line in err.splitlines() if line.startswith("emulator: ")]
    # Both launchers may lose what a rank says just before it aborts, so the command says it, too.
    assert len(told) <= 2, f"a rank says more than one line: {err}"
    assert all(line.startswith(f"emulator: cannot write {small_disk}/out") for line in told), err
    # Open MPI names the reason in a line of its own if the access is collective.
    assert "No space left on device" in err or not told
    assert "hocket: " + ENDED_EARLY.format(code, figures["iterations"]) in err


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_is_killed_leaves_a_record(
    emulate: Callable[..., subprocess.Popen], tmp_path: Path, prefix: Path, mpi: str, rank: int
):
    """The record has what all ranks had done when rank 0 wrote it last."""
    program = Mpi(mpi).app("emulator", prefix)
    process = emulate(mpi, LONG.format(stage=""), "--no-daemon")
    blocks = await_iterations(process, tmp_path / "record", 2)
    ranks = sorted((pid for pid in descendants(process.pid) if runs(pid, program)), key=started)
    assert len(ranks) == 2, f"ranks {ranks}"
    os.kill(ranks[rank], signal.SIGKILL)
    code, figures, err = ended(process)
    assert code != 0 and not figures["complete"], err
    (group,) = figures["groups"]
    assert (group["processes"], group["iterations"]) == (2, figures["iterations"]) and blocks >= 2
    assert blocks <= figures["iterations"] < 300
    assert group["stages"]["sleep"]["median_s"] >= 0.19
    assert (code < 0 or ENDED_EARLY.format(code, figures["iterations"]) in err) and "ended before its work" in err
    nothing_left(program)
