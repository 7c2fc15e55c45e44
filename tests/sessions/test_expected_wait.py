"""Programs that ask how long they would wait before they do I/O (hocket_io_expected_wait), on each MPI."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from hocket.bus import Bus
from hocket.mounts import target_of
from stand_in_hocketd import StandIn
from story import Story

pytestmark = pytest.mark.timeout(120)
TOLD = re.compile(
    r"wrote 4 blocks in [\d.]+ s, waited ([\d.]+) s for grants, computed 20 iterations, "
    r"(\d+) of them instead of waiting\n"
)


@pytest.fixture
def ask_first(mpi: kit.Mpi, prefix: Path, tmp_path: Path) -> Path:
    """The example, which computes on while it would have to wait."""
    program = tmp_path / "ask_first"
    source = kit.REPO / "examples" / "coordinate" / "ask_first.c"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-isystem", prefix / "include"]
    library = [f"-L{mpi.library}", f"-Wl,-rpath,{mpi.library}", f"-lhocket-{mpi.name}", "-lm"]
    subprocess.run([*mpi.compilers[".c"], *flags, source, "-o", program, *library], check=True, timeout=60)
    return program


@pytest.fixture
def fcfs(start_daemon: Callable[..., Daemon], tmp_path: Path) -> Daemon:
    """A daemon whose leases outlast a test, because a stand-in for an application renews none."""
    (tmp_path / "hocket.toml").write_text('[coordinator]\npolicy = "fcfs"\nlease_s = 120\nturn_s = 120\n')
    return start_daemon("--config", tmp_path / "hocket.toml")


def holder(target: str) -> Bus:
    """Return a stand-in for an application that holds the target."""
    bus = Bus.connect()
    bus.send("HELLO", job="h", application_asked="h", program="/x", mpi="mpich", version="t", pid=1, processes=4)
    bus.send("START_IO", request=1, target=target, file="/f", operation="MPI_File_write_all", bytes=0)
    kit.wait_until(lambda: bus.answer(1).type == "GRANT_IO", 10, "a grant")
    return bus


def figures(run: kit.Run) -> tuple[float, int]:
    assert run.code == 0, run.err
    found = TOLD.fullmatch(run.out)
    assert found, run.out
    return float(found[1]), int(found[2])


def test_without_hocketd_nothing_is_put_off(mpi: kit.Mpi, ask_first: Path, tmp_path: Path) -> None:
    for preload in ("", None):
        run = mpi.run([ask_first, tmp_path / "out"], preload=preload)
        assert (figures(run), run.err) == ((pytest.approx(0, abs=0.5), 0), "")


def test_a_silent_hocketd_holds_nobody_up(mpi: kit.Mpi, ask_first: Path, controller: StandIn, tmp_path: Path) -> None:
    """The stand-in does not answer the question: the program continues after HOCKET_ANSWER_S, each time."""
    begin = time.monotonic()
    run = mpi.run([ask_first, tmp_path / "out"], kit.settings(controller.socket, answer_s=0.3), preload="")
    assert figures(run)[1] == 0
    assert len(controller.events("ASK_WAIT")) == 3, "nothing is left to compute before the last block"
    assert time.monotonic() - begin < 30


def test_the_example_computes_on_while_another_has_the_storage(
    mpi: kit.Mpi, ask_first: Path, fcfs: Daemon, tmp_path: Path
) -> None:
    story = Story(fcfs)
    other = holder(target_of(tmp_path))
    process = mpi.start([ask_first, tmp_path / "out"], kit.settings(fcfs.socket), preload="")
    story.awaits("ASK_WAIT", target=target_of(tmp_path))
    story.awaits("EXPECTED_WAIT", ahead=1, uncertainty_ns=-1)
    story.awaits("ASK_WAIT", count=3)
    assert not story.all("START_IO", operation="hocket_io_inform"), "it has not asked for a grant"
    other.send("FINISH_IO", request=1, phase_over=True)
    waited_s, late = figures(kit.finish(process))
    assert late >= 2
    assert waited_s < 5


@pytest.mark.parametrize(
    ("wait_s", "meanwhile", "steps"),
    [(60, 15, 1), (0.25, 15, 1), (0.15, 0, 4), (0, 0, 4)],
    ids=["never free", "just longer", "just shorter", "free"],
)
def test_the_example_decides_by_the_answer(
    mpi: kit.Mpi, ask_first: Path, controller: StandIn, tmp_path: Path, wait_s: float, meanwhile: int, steps: int
) -> None:
    """It computes no iteration that it would not compute anyway (`figures`), however long the storage is busy."""
    controller.wait_s = wait_s
    run = mpi.run([ask_first, tmp_path / "out"], kit.settings(controller.socket), preload="")
    assert figures(run)[1] == meanwhile
    assert len(controller.events("ASK_WAIT")) == (15 if meanwhile else 3)
    asked = [one for one in controller.events("START_IO") if one["operation"] == "hocket_io_inform"]
    assert len(asked) == steps, "one step writes all blocks that are due"
    assert (tmp_path / "out").stat().st_size == 4 * 2 * (4 << 20)


def test_the_example_can_do_without_asking(mpi: kit.Mpi, ask_first: Path, controller: StandIn, tmp_path: Path) -> None:
    controller.wait_s = 60
    run = mpi.run([ask_first, tmp_path / "out", "never"], kit.settings(controller.socket), preload="")
    assert (figures(run)[1], controller.events("ASK_WAIT")) == (0, [])


def test_tools_learn_the_same(fcfs: Daemon, prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))
    target = target_of(tmp_path)
    with Bus.connect() as tool:
        free = tool.expected_wait(target)
        assert (free["wait_ns"], free["uncertainty_ns"], free["ahead"]) == (0, 0, 0)
        with holder(target):
            busy = tool.expected_wait(target)
            assert busy["wait_ns"] > 0 and busy["ahead"] == 1
            assert tool.list().applications, "the connection still serves other questions"
            listed = subprocess.run(
                [sys.executable, "-m", "hocket.cli", "ls"], capture_output=True, text=True, timeout=40
            )
    assert re.search(r"another application would wait \d+\.\d\d or more: .*, behind 1\n", listed.stdout), listed
