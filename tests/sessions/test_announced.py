"""What hocketd makes of an application's announcements, right or wrong (hocket/io.h), on each MPI."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from stand_in_hocketd import StandIn
from story import Story

pytestmark = pytest.mark.timeout(120)
PAUSE = "pause=0.2"  # longer than the default HOCKET_PHASE_GAP_S


def explained(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))
    command = [sys.executable, "-m", "hocket.cli", "explain"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=40).stdout


def judged(story: Story) -> list[tuple[str, dict]]:
    """Return what hocketd has found wrong with an announcement."""
    kinds = ("announced", "information_ignored")
    return [(e["action"], e["reason"]) for e in story.all("DECISION") if e["reason"].get("kind") in kinds]


@pytest.mark.parametrize("place", ["informed", "granted", "opened", "written", "closed", "released"])
def test_the_loop_over_files_is_right_wherever_it_pauses(
    mpi: kit.Mpi, coordinate: Path, daemon: Daemon, tmp_path: Path, place: str
) -> None:
    """CALCioM's loop (Fig. 10) at the default settings, three times; each moves what it has announced."""
    story = Story(daemon)
    actions: list[str] = []
    for phase in range(3):
        actions += ["prepare=bytes=80000,files=4"]
        for file in range(4):
            step = {"informed": "inform", "granted": "wait", "opened": f"open={tmp_path / f'{phase}-{file}'}",
                    "written": "write=10000", "closed": "close", "released": "release"}  # fmt: skip
            for name, action in step.items():
                actions += [action, PAUSE] if name == place else [action]
        actions += ["complete"]
    run = mpi.run([coordinate, *actions], kit.settings(daemon.socket), ranks=2)
    assert (run.code, run.err, run.out) == (0, "", "")
    story.awaits("BYE", application="a")
    assert judged(story) == [], "it was right each time"
    steps = story.all("START_IO", operation="hocket_io_inform")
    assert [(e["files"], e["phase_bytes"]) for e in steps] == [(4 - n, 80_000 - 20_000 * n) for n in range(4)] * 3


def test_equal_phases_that_were_prepared_once_are_right(
    mpi: kit.Mpi, coordinate: Path, daemon: Daemon, tmp_path: Path
) -> None:
    story = Story(daemon)
    step = ["inform", "wait", PAUSE, f"open={tmp_path / 'f'}", "write=10000", "close", "release"]
    run = mpi.run([coordinate, "prepare=bytes=20000", *step * 4, "complete"], kit.settings(daemon.socket), ranks=2)
    assert (run.code, run.err, run.out) == (0, "", "")
    story.awaits("BYE", application="a")
    assert judged(story) == []


def test_fewer_bytes_than_announced_are_noticed_in_steps_that_pause(
    mpi: kit.Mpi, coordinate: Path, daemon: Daemon, tmp_path: Path
) -> None:
    story = Story(daemon)
    step = ["inform", "wait", PAUSE, f"open={tmp_path / 'f'}", "write=10000", "close", "release"]
    run = mpi.run([coordinate, "prepare=bytes=80000", *step * 2, "complete"], kit.settings(daemon.socket), ranks=2)
    assert (run.code, run.err, run.out) == (0, "", "")
    story.awaits("BYE", application="a")
    assert judged(story) == [("doubt", {"kind": "announced", "announced": 80_000, "accessed": 40_000, "phases": 1})]


def test_the_files_of_a_library_are_a_part_of_the_applications(
    mpi: kit.Mpi, coordinate: Path, controller: StandIn, tmp_path: Path
) -> None:
    library = ["prepare=files=1", "inform", "wait", f"open={tmp_path / 'f'}", "write=10000", "close", "release",
               "complete"]  # fmt: skip
    run = mpi.run(
        [coordinate, "prepare=files=4,rounds=10,bytes_per_round=2000", "inform", "wait", *library * 4, "release",
         "complete"],
        kit.settings(controller.socket),
        ranks=2,
    )  # fmt: skip
    assert (run.code, run.err, run.out) == (0, "", "")
    told = [(e["files"], e["phase_bytes"]) for e in controller.events("INFORM_IO") if not e["phase_over"]]
    assert told == [(4 - done, 80_000 - 20_000 * done) for done in range(4)]


def test_a_library_may_prepare_and_complete_within_a_step(
    mpi: kit.Mpi, coordinate: Path, controller: StandIn, tmp_path: Path
) -> None:
    library = ["prepare=bytes=20000", "inform", f"open={tmp_path / 'f'}", "write=10000", "close", "release"]
    run = mpi.run(
        [coordinate, "inform", "wait", *library, "complete", *library, "release", "inform", "release", "complete"],
        kit.settings(controller.socket, phase_gap_s=60),
        ranks=2,
    )
    assert (run.code, run.err, run.out) == (0, "", ""), "it is nested as it should be"
    steps = [e["request"] for e in controller.events("START_IO") if e["operation"] == "hocket_io_inform"]
    ends = [e["phase_over"] for e in controller.events("FINISH_IO") if e["request"] in steps]
    assert ends == [False, False], "the library had prepared more when the first step ended"
    assert controller.only("IO_PHASE")["operations"] == 2
    over = [e for e in controller.events("INFORM_IO") if e["phase_over"]]
    assert len(over) == 1, "at the last complete"


def test_what_was_ignored_is_explained(
    mpi: kit.Mpi, coordinate: Path, daemon: Daemon, prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = [f"open={tmp_path / 'f'}", "write=10", "close"]
    run = mpi.run(
        [coordinate, "complete", "release", "prepare=bytes=many,files=1", "inform", "wait", *write * 3, "complete",
         "release", "release", "complete"],
        kit.settings(daemon.socket),
    )  # fmt: skip
    assert run.code == 0
    told = [
        "hocket_io_complete was called more often than hocket_io_prepare; the call has no effect",
        "hocket_io_release was called without hocket_io_inform before it, or after as many hocket_io_release; the call "
        "has no effect",
        "hocket_io_prepare: bytes='many' is not a number of at least 0: ignored",
        "hocket_io_prepare: files=1 were announced, and more are accessed before hocket_io_complete: nothing is known "
        "of these; announce all",
        "hocket_io_complete was called in a step that began after its hocket_io_prepare: call hocket_io_release "
        "before, as often as hocket_io_inform",
    ]
    assert run.warnings == [f"hocket: {line}" for line in told], "one line each"
    Story(daemon).awaits("BYE", application="a")
    shown = explained(prefix, monkeypatch)
    for line in told:
        assert f"'a' gave wrong information: {line}" in shown
    assert shown.count("gave wrong information: ") == len(told)


UNLIKE = {
    "one more level": ["inform", "wait", "0:inform", "0:release", "release"],
    "one level less": ["inform", "wait", "0:inform", "2:inform", "0:release", "2:release", "release"],
    "a wait less": ["inform", "0:wait", "2:wait", "release"],
}


@pytest.mark.parametrize("actions", UNLIKE.values(), ids=UNLIKE.keys())
def test_processes_at_different_levels_do_not_wait_for_each_other_for_ever(
    mpi: kit.Mpi, coordinate: Path, daemon: Daemon, prefix: Path, actions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    again = ["inform", "wait", "release"] * 2
    run = mpi.run([coordinate, *actions, *again], kit.settings(daemon.socket), ranks=3, limit_s=30)
    assert run.code == 0, run.err
    line = "; the processes do not wait for each other in steps any more: call inform, wait and release alike in all"
    assert [line in warning for warning in run.warnings].count(True) == 1, run.err
    Story(daemon).awaits("BYE", application="a")
    assert line in explained(prefix, monkeypatch)


@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("call", ["wait", "release"])
def test_a_process_that_does_not_come_is_waited_for_within_bounds(
    mpi: kit.Mpi, coordinate: Path, daemon: Daemon, call: str, missing: int
) -> None:
    others = [f"{rank}:{call}" for rank in range(3) if rank != missing]
    step = ["inform", *(["wait"] if call == "release" else []), *others]
    run = mpi.run([coordinate, *step], kit.settings(daemon.socket, max_wait_s=0.5, answer_s=0.5), ranks=3, limit_s=40)
    assert run.code == 0, run.err
    assert f"hocket_io_{call} was not called by all processes of its communicator within 3 s" in run.err
