"""The operator's policy of a target holds for applications, too, that were told not to coordinate, or that name the
target otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from hocket.bus import Bus
from hocket.mounts import target_of
from stand_in_hocketd import Event, StandIn
from story import Story

pytestmark = pytest.mark.timeout(120)
MIB = 1 << 20


def uncoordinated(socket: Path, **settings: float) -> dict[str, str]:
    return {**kit.settings(socket, **settings), "HOCKET_COORDINATE": "0"}


@pytest.fixture
def script(mpi: kit.Mpi, built: Callable[..., Path]) -> Path:
    return built("script.c")


@pytest.fixture
def posix_io(mpi: kit.Mpi, built: Callable[..., Path]) -> Path:
    return built("posix_io.c")


def asked(controller: StandIn) -> list[Event]:
    return controller.events("START_IO")


@pytest.mark.parametrize("access", ["write", "alone", "split", "start"])
@pytest.mark.parametrize("held", [True, False], ids=["held", "another is held"])
def test_an_application_that_does_not_coordinate_asks_where_the_operator_says_so(
    mpi: kit.Mpi, script: Path, controller: StandIn, tmp_path: Path, access: str, held: bool
) -> None:
    controller.held_targets = f"other\n{target_of(tmp_path)}" if held else "other"
    actions = [f"open={tmp_path / 'f'}", f"{access}={2 * MIB}", "close"]
    run = mpi.run([script, *actions], uncoordinated(controller.socket))
    assert (run.code, run.err) == (0, "")
    assert {one["target"] for one in asked(controller)} == ({target_of(tmp_path)} if held else set())
    assert len({one["member"] for one in asked(controller)}) == held * (2 if access == "alone" else 1)
    assert len(controller.events("FINISH_IO")) == len(asked(controller))


@pytest.mark.parametrize("held", [True, False], ids=["held", "another is held"])
def test_posix_io_of_every_rank_asks_too(
    mpi: kit.Mpi, posix_io: Path, controller: StandIn, tmp_path: Path, held: bool
) -> None:
    controller.held_targets = target_of(tmp_path) if held else "other"
    run = mpi.run([posix_io, tmp_path / "f", f"write={2 * MIB}"], uncoordinated(controller.socket))
    assert (run.code, run.err) == (0, "")
    assert len({one["member"] for one in asked(controller)}) == (2 if held else 0)


def test_what_the_operator_sets_later_holds_from_then_on(
    mpi: kit.Mpi, script: Path, posix_io: Path, controller: StandIn, tmp_path: Path
) -> None:
    """POSIX I/O, and files that are opened afterwards."""
    go, up = tmp_path / "go", tmp_path / "up"
    actions = [f"open={tmp_path / 'f'}", f"write={MIB}", "close", f"mark={up}", f"await={go}", "pause=1.2"]
    run = mpi.start([script, *actions, *actions[:3]], uncoordinated(controller.socket))
    kit.wait_until(up.exists, 40, "the first write")
    assert asked(controller) == []
    controller.tell(controller.first(), {"type": "HELD_TARGETS", "held_targets": target_of(tmp_path)})
    go.touch()
    done = kit.finish(run)
    assert (done.code, done.err) == (0, "")
    assert [one["target"] for one in asked(controller)] == [target_of(tmp_path)]


@pytest.mark.parametrize("coordinates", [True, False], ids=["coordinates", "does not"])
@pytest.mark.parametrize("access", ["write", "alone"])
def test_a_hint_does_not_hide_the_file_system(
    mpi: kit.Mpi, script: Path, controller: StandIn, tmp_path: Path, access: str, coordinates: bool
) -> None:
    """hocketd overrules the name (mixing_test.cpp)."""
    controller.held_targets = target_of(tmp_path)
    settings = (kit.settings if coordinates else uncoordinated)(controller.socket)
    run = mpi.run([script, "target=mine", f"open={tmp_path / 'f'}", f"{access}={2 * MIB}", "close"], settings)
    assert (run.code, run.err) == (0, "")
    assert {(one["target"], one["file_system"]) for one in asked(controller)} == {("mine", target_of(tmp_path))}


def test_a_hint_may_name_a_device(mpi: kit.Mpi, script: Path, controller: StandIn, tmp_path: Path) -> None:
    """The number of a mounted device means its file system, as in earlier versions; any other is a name."""
    number = tmp_path.stat().st_dev
    for hint, target in (
        (f"dev:{os.major(number)}:{os.minor(number)}", target_of(tmp_path)),
        ("dev:4095:1", "dev:4095:1"),
    ):
        run = mpi.run(
            [script, f"target={hint}", f"open={tmp_path / 'f'}", "write=10", "close"], kit.settings(controller.socket)
        )
        assert (run.code, run.err) == (0, "")
        assert asked(controller)[-1]["target"] == target


def test_a_hocketd_that_is_silent_or_gone_holds_nobody_up(
    mpi: kit.Mpi, script: Path, posix_io: Path, controller: StandIn, tmp_path: Path
) -> None:
    controller.freeze()
    settings = uncoordinated(controller.socket, answer_s=0.5)
    for program in (
        [script, f"open={tmp_path / 'f'}", "write=1000", "close"],
        [posix_io, tmp_path / "f", f"write={MIB}"],
    ):
        run = mpi.run(program, settings, limit_s=30)
        assert run.code == 0, run.err
        assert "has not answered for 0.5" in run.err
    controller.kill()
    controller.socket.unlink()
    run = mpi.run([posix_io, tmp_path / "f", f"write={2 * MIB}"], settings, limit_s=30)
    assert run.code == 0
    assert "no hocketd answers" in run.err


@pytest.mark.parametrize("how", ["--no-coordinate", "hint"])
def test_it_waits_for_its_turn(
    daemon: Daemon, story: Story, mpi: kit.Mpi, script: Path, tmp_path: Path, how: str
) -> None:
    """With the real hocketd: another application holds the target."""
    target = target_of(tmp_path)
    with Bus.connect() as other:
        other.send("SET_POLICY", policy="fcfs", target=target)
        other.send("HELLO", job="other", program="/x", mpi="mpich", version="t", pid=os.getpid(), processes=1)
        assert other.answer(20)["held_targets"] == target
        other.send("START_IO", request=1, target=target, operation="write", bytes=MIB)
        kit.wait_until(lambda: other.answer(1).type == "GRANT_IO", 20, "the grant")
        hint = ["target=mine"] if how == "hint" else []
        settings = (kit.settings if hint else uncoordinated)(daemon.socket)
        job = mpi.start([script, *hint, f"open={tmp_path / 'f'}", "write=1000", "close"], settings)
        story.awaits("QUEUED_IO", behind="x")
        assert (tmp_path / "f").stat().st_size == 0
        other.send("FINISH_IO", request=1, phase_over=True)
        done = kit.finish(job)
    assert (done.code, done.err) == (0, "")
    if hint:
        assert story.awaits("DECISION", action="held")["reason"]["named"] == "mine"
