"""Applications that announce their own steps (hocket/io.h) and receive requests to pause, on each MPI."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import runtime_kit as kit
from hocket.mounts import target_of
from stand_in_hocketd import StandIn
from story import Story

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def queueing(hocket_dir: Path) -> Iterator[StandIn]:
    """A stand-in for hocketd that makes steps wait until the test grants them."""
    started = StandIn(hocket_dir / "s", queues_steps=True)
    yield started
    started.kill()


def said(run: kit.Run) -> list[str]:
    return run.out.splitlines()


def test_without_hocketd_all_calls_succeed_at_once(mpi: kit.Mpi, coordinate: Path) -> None:
    actions = ["prepare=bytes=10,note=x", "inform", "check", "wait", "check", "release", "complete"]
    for preload in ("", None):
        run = mpi.run([coordinate, *actions], ranks=3, preload=preload)
        assert (run.code, run.err, said(run)) == (0, "", ["check 1", "check 1"])


@pytest.mark.parametrize("mpi", kit.WITH_TWO_NODES, indirect=True)
def test_a_step_from_inform_to_release(mpi: kit.Mpi, coordinate: Path, queueing: StandIn, tmp_path: Path) -> None:
    process = mpi.start(
        [coordinate, f"prepare=files=4,file={tmp_path / 'x'},note=a b", "prepare=rounds=10,bytes_per_round=1000",
         "inform", "check", f"mark={tmp_path / 'informed'}", "wait", "check", "release", "complete", "complete",
         "inform", "release"],
        kit.settings(queueing.socket),
        ranks=3,
    )  # fmt: skip
    start = queueing.await_events("START_IO", 1)[0]
    kit.wait_until((tmp_path / "informed").exists, 20, "informed without a wait")
    assert (start["operation"], start["phase_bytes"]) == ("hocket_io_inform", 40_000)
    assert sorted(start["info"].splitlines()) == sorted(
        ["rounds=10", "bytes_per_round=1000", "files=4", f"file={tmp_path / 'x'}", "note=a b"]
    )
    assert start["target"] == target_of(tmp_path)
    queueing.grant(start)
    run = kit.finish(process)
    assert (run.code, run.err, said(run)) == (0, "", ["check 0", "check 1"])
    first, second = queueing.events("FINISH_IO")
    assert first["request"] == start["request"] and not first["phase_over"], "a step ends, not what was prepared"
    over = queueing.only("INFORM_IO")
    assert over["phase_over"] and first["at_ns"] < over["at_ns"] < second["at_ns"], "the outer level is complete"
    assert second["request"] == queueing.events("START_IO")[1]["request"], "never waited for: taken back"
    assert queueing.events("START_IO")[1]["phase_bytes"] == 0


@pytest.mark.parametrize("access", ["write", "alone"])
def test_what_is_left_is_right_at_each_file(
    mpi: kit.Mpi, coordinate: Path, controller: StandIn, tmp_path: Path, access: str
) -> None:
    ranks, size, files = 3, 1000, 4
    actions = [f"prepare=bytes={files * ranks * size},files={files}"]
    for file in range(files):
        actions += ["inform", "wait", f"open={tmp_path / str(file)}", f"{access}={size}", "close", "release"]
    run = mpi.run([coordinate, *actions, "complete"], kit.settings(controller.socket, phase_gap_s=60), ranks=ranks)
    assert (run.code, run.err, said(run)) == (0, "", [])
    steps = [e for e in controller.events("START_IO") if e["operation"] == "hocket_io_inform"]
    assert [(e["files"], e["phase_bytes"]) for e in steps] == [
        (files - done, (files - done) * ranks * size) for done in range(files)
    ]
    assert not any(e["phase_over"] for e in controller.events("FINISH_IO")), "the target may be kept for the next file"
    assert sum(e["bytes"] for e in controller.events("FINISH_IO")) == files * size, "each byte is reported once"
    assert controller.only("IO_PHASE")["operations"] == files, "one phase, though each file is closed"
    assert controller.only("INFORM_IO")["phase_over"]


def test_a_gap_ends_the_phase_and_keeps_what_is_left(
    mpi: kit.Mpi, coordinate: Path, controller: StandIn, tmp_path: Path
) -> None:
    step = ["inform", "wait", f"open={tmp_path / 'f'}", "write=100", "close", "release"]
    run = mpi.run(
        [
            coordinate,
            "prepare=bytes=600",
            *step,
            "pause=1.5",
            *step,
            "pause=1.5",
            *step,
            "pause=1.5",
            *step,
            "complete",
        ],
        kit.settings(controller.socket, phase_gap_s=0.5),
    )
    assert (run.code, run.err) == (0, "")
    steps = [e for e in controller.events("START_IO") if e["operation"] == "hocket_io_inform"]
    assert [e["phase_bytes"] for e in steps] == [600, 400, 200, 600], "all was done: it is about the fourth phase anew"
    assert [e["announced_left"] for e in controller.events("IO_PHASE")] == [400, 200, 0, 0]


def test_an_inner_release_is_a_place_to_stop(mpi: kit.Mpi, coordinate: Path, queueing: StandIn, tmp_path: Path) -> None:
    written, go, after = tmp_path / "written", tmp_path / "go", tmp_path / "after"
    process, start = begin(
        mpi, coordinate, queueing, tmp_path,
        ["inform", "wait", f"open={tmp_path / 'f'}", "write=10", f"mark={written}", f"await={go}", "release",
         f"mark={after}", "release", "close"],
    )  # fmt: skip
    kit.wait_until(written.exists, 20, "the inner step has written")
    queueing.pause(start)
    time.sleep(0.2)  # an absence cannot be awaited
    assert queueing.events("PAUSED_IO") == []
    go.touch()
    queueing.await_events("PAUSED_IO", 1)
    time.sleep(0.2)  # an absence cannot be awaited
    assert not after.exists() and not [e for e in queueing.events("FINISH_IO") if e["request"] == start["request"]]
    queueing.grant(start)
    run = kit.finish(process)
    assert (run.code, run.err, said(run)) == (0, "", [])
    assert [e["operation"] for e in queueing.events("START_IO")] == ["hocket_io_inform", "MPI_File_write_at_all"]
    assert len([e for e in queueing.events("FINISH_IO") if e["request"] == start["request"]]) == 1


def test_an_inner_step_of_some_processes_does_not_stop_the_others(
    mpi: kit.Mpi, coordinate: Path, queueing: StandIn, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    actions = [f"await={go}", "inform=self", "wait", "release", "check", "release"]
    process, start = begin(mpi, coordinate, queueing, tmp_path, ["until=0", "until=1", *actions])
    queueing.pause(start)
    queueing.await_events("PAUSED_IO", 1)
    queueing.grant(start)
    time.sleep(0.5)  # no event shows that it has taken the grant
    queueing.pause(start)
    go.touch()
    queueing.await_events("PAUSED_IO", 2)
    run = kit.finish(process)
    assert (run.code, run.err, said(run)) == (0, "", ["became 0", "became 1", "check 0"]), "it stops at check"


def test_an_inner_step_tells_what_its_level_knows(
    mpi: kit.Mpi, coordinate: Path, controller: StandIn, tmp_path: Path
) -> None:
    inner = ["prepare=rounds=3,bytes_per_round=5", "inform", "wait", "release", "complete"]
    run = mpi.run(
        [coordinate, "prepare=files=2", "inform", *inner, "inform", "release", "release", "complete"],
        kit.settings(controller.socket),
    )
    assert (run.code, run.err, said(run)) == (0, "", [])
    news = [(e["phase_bytes"], e["files"], e["rounds"], e["bytes_per_round"], e["phase_over"])
            for e in controller.events("INFORM_IO")]  # fmt: skip
    assert news == [(30, 2, 3, 5, False), (0, 2, 0, 0, False), (0, 0, 0, 0, True)]
    assert len(controller.events("START_IO")) == 1


def begin(mpi: kit.Mpi, coordinate: Path, queueing: StandIn, tmp_path: Path, actions: list[str], **settings):
    """Start a program, grant its step, and return the process and the step's START_IO."""
    up = tmp_path / "up"
    process = mpi.start(
        [coordinate, "inform", "wait", f"mark={up}", *actions], kit.settings(queueing.socket, **settings), ranks=3
    )
    start = queueing.await_events("START_IO", 1)[0]
    queueing.grant(start)
    kit.wait_until(up.exists, 20, "the step has its turn")
    return process, start


def test_check_says_when_to_stop_and_when_to_go_on(
    mpi: kit.Mpi, coordinate: Path, queueing: StandIn, tmp_path: Path
) -> None:
    going = [tmp_path / f"going-{n}" for n in range(3)]
    rounds = [action for mark in going for action in ("until=1", f"mark={mark}", "until=0")]
    process, start = begin(mpi, coordinate, queueing, tmp_path, [*rounds, "until=1", "release"])
    for n in range(3):
        kit.wait_until(going[n].exists, 20, "it goes on")
        queueing.pause(start)
        assert queueing.await_events("PAUSED_IO", n + 1)[n]["request"] == start["request"]
        queueing.grant(start)
    run = kit.finish(process)
    assert (run.code, run.err, said(run)) == (0, "", [*["became 1", "became 0"] * 3, "became 1"])
    assert len(queueing.events("PAUSED_IO")) == 3, "one answer each"
    assert queueing.only("FINISH_IO")["request"] == start["request"]


@pytest.mark.parametrize("mpi", kit.WITH_TWO_NODES, indirect=True)
def test_all_processes_stop_where_they_wait(mpi: kit.Mpi, coordinate: Path, queueing: StandIn, tmp_path: Path) -> None:
    written, enough = tmp_path / "f", tmp_path / "enough"
    actions = [f"open={written}", f"stopping={enough}", "release", "close"]
    process, start = begin(mpi, coordinate, queueing, tmp_path, actions)
    kit.wait_until(lambda: written.exists() and written.stat().st_size > 0, 20, "it writes")
    for n in range(2):
        queueing.pause(start)
        paused = queueing.await_events("PAUSED_IO", n + 1)[n]
        size = written.stat().st_size
        assert size % (3 * 65536) == 0, "no process was in the middle of an access"
        assert 0 < paused["bytes"] <= size
        time.sleep(0.2)  # an absence cannot be awaited
        assert written.stat().st_size == size
        queueing.grant(start)
        kit.wait_until(lambda size=size: written.stat().st_size > size, 20, "it goes on")
    enough.touch()
    run = kit.finish(process)
    assert (run.code, run.err, said(run)) == (0, "", [])
    operations = [e for e in queueing.events("START_IO") if e["operation"] == "MPI_File_write_at_all"]
    assert len(operations) == written.stat().st_size // (3 * 65536), "each access is asked for as ever"
    assert queueing.only("BYE")["wait_ns"] > 3 * 2 * 0.1e9


@pytest.mark.parametrize("place", ["check", "wait"])
def test_the_controller_dies_while_it_is_paused(
    mpi: kit.Mpi, coordinate: Path, queueing: StandIn, tmp_path: Path, place: str
) -> None:
    enough = tmp_path / "enough"
    actions = ["until=0", "until=1"] if place == "check" else [f"open={tmp_path / 'f'}", f"stopping={enough}", "close"]
    process, start = begin(mpi, coordinate, queueing, tmp_path, [*actions, "release"], answer_s=60)
    queueing.pause(start)
    queueing.await_events("PAUSED_IO", 1)
    enough.touch()
    queueing.kill()
    begun = time.monotonic()
    run = kit.finish(process)
    assert time.monotonic() - begun < 30, "at once, not when an answer is overdue"
    assert (run.code, len(run.warnings)) == (0, 1), run.err
    assert said(run) == (["became 0", "became 1"] if place == "check" else [])


@pytest.mark.parametrize("place", ["check", "wait"])
def test_the_controller_is_stopped_while_it_is_paused(
    mpi: kit.Mpi, coordinate: Path, queueing: StandIn, tmp_path: Path, place: str
) -> None:
    enough = tmp_path / "enough"
    actions = ["until=0", "until=1"] if place == "check" else [f"open={tmp_path / 'f'}", f"stopping={enough}", "close"]
    process, start = begin(mpi, coordinate, queueing, tmp_path, [*actions, "release"], answer_s=2)
    queueing.pause(start)
    queueing.await_events("PAUSED_IO", 1)
    enough.touch()
    queueing.freeze()
    begun = time.monotonic()
    run = kit.finish(process)
    took = time.monotonic() - begun
    queueing.thaw()
    assert 0.5 < took < 30
    assert (run.code, len(run.warnings)) == (0, 1), run.err
    assert "HOCKET_ANSWER_S" in run.warnings[0]
    assert said(run) == (["became 0", "became 1"] if place == "check" else [])


def test_a_turn_that_was_lost_before_it_was_heard_of_is_asked_for_again(
    mpi: kit.Mpi, coordinate: Path, queueing: StandIn
) -> None:
    process = mpi.start([coordinate, "inform", "wait", "check", "release"], kit.settings(queueing.socket))
    start = queueing.await_events("START_IO", 1)[0]
    time.sleep(0.5)  # no event shows that it waits
    waiting = next(e["pid"] for e in queueing.events("HELLO") if e["member"] == start["member"])
    kit.stop(waiting)
    queueing.grant(start)
    queueing.tell_of("LEASE_EXPIRED", start, application="a", target="t")
    os.kill(waiting, signal.SIGCONT)
    queueing.grant(queueing.await_events("START_IO", 2)[1])
    run = kit.finish(process)
    assert (run.code, run.err, said(run)) == (0, "", ["check 1"])


def test_killed_while_it_is_paused(mpi: kit.Mpi, coordinate: Path, queueing: StandIn, tmp_path: Path) -> None:
    process, start = begin(
        mpi, coordinate, queueing, tmp_path, [f"open={tmp_path / 'f'}", f"stopping={tmp_path / 'never'}"]
    )
    queueing.pause(start)
    queueing.await_events("PAUSED_IO", 1)
    os.kill(queueing.events("HELLO")[0]["pid"], signal.SIGKILL)
    assert kit.finish(process).code != 0
    queueing.await_events("LOST", 1)


def test_a_turn_that_nobody_comes_for_is_given_to_others(
    mpi: kit.Mpi, coordinate: Path, queueing: StandIn, tmp_path: Path
) -> None:
    come = tmp_path / "come"
    process = mpi.start(
        [coordinate, "inform", f"await={come}", "check", "wait", "check", "pause=3", "release"],
        kit.settings(queueing.socket),
    )
    start = queueing.await_events("START_IO", 1)[0]
    queueing.grant(start)
    time.sleep(0.4)  # longer than the lease
    assert queueing.events("RENEW_IO") == []
    queueing.tell_of("LEASE_EXPIRED", start, application="a", target="t")
    queueing.events()
    time.sleep(1.5)  # no event shows that the lease thread reads it
    come.touch()
    again = queueing.await_events("START_IO", 2)[1]
    queueing.grant(again)
    run = kit.finish(process)
    assert (run.code, run.err, said(run)) == (0, "", ["check 0", "check 1"])
    assert {e["request"] for e in queueing.events("RENEW_IO")} == {again["request"]}, "it is in use"


def test_calls_in_the_wrong_order_say_so_once_and_do_nothing(mpi: kit.Mpi, coordinate: Path, queueing: StandIn) -> None:
    wrong = ["release", "check", "wait", "complete", "release"]
    process = mpi.start(
        [coordinate, "early", *wrong, "prepare=bytes=many,files=-3", "inform", "inform", "wait", "release", "release",
         *wrong],
        kit.settings(queueing.socket),
        ranks=3,
    )  # fmt: skip
    queueing.grant(queueing.await_events("START_IO", 1)[0])
    run = kit.finish(process)
    assert run.code == 0
    order = "-14"
    codes = [line for line in said(run) if line != "check 1"]
    later = [name for name in wrong if name != "complete"]  # `complete` has something to complete then
    assert codes == [f"{name}: {order}" for name in ["early", *wrong, *later]]
    early = [line for line in run.warnings if "before MPI_Init" in line]
    assert len(early) == 3, "where no process knows its rank, each says so"
    warnings = [re.sub(" was called.*", "", line) for line in run.warnings if line not in early]
    assert len(queueing.events("START_IO")) == 1
    assert sorted(set(warnings)) == sorted(warnings), f"said twice: {warnings}"
    assert any("bytes='many' is not a number" in line for line in run.warnings)
    assert any("files='-3' is not a number" in line for line in run.warnings)
    assert "hocket: hocket_io_release" in warnings


def test_wrong_information_is_said_once(mpi: kit.Mpi, coordinate: Path, controller: StandIn, tmp_path: Path) -> None:
    write = [f"open={tmp_path / 'f'}", "write=10", "close"]
    run = mpi.run(
        [coordinate, "prepare=files=1,bytes=10", "inform", "wait", *write * 3, "complete", "release", "release",
         "complete"],
        kit.settings(controller.socket, phase_gap_s=60),
    )  # fmt: skip
    assert (run.code, said(run)) == (0, ["release: -14", "complete: -14"])
    assert [re.sub(r"^hocket: (\w+).*", r"\1", line) for line in run.warnings] == [
        "hocket_io_prepare", "hocket_io_complete", "hocket_io_release", "hocket_io_complete"
    ], run.err  # fmt: skip
    assert "files=1 were announced" in run.warnings[0] and "hocket_io_release before" in run.warnings[1]
    step = [e for e in controller.events("FINISH_IO") if e["request"] == controller.events("START_IO")[0]["request"]]
    assert [e["phase_over"] for e in step] == [True], "it was completed within the step"


def test_the_example_tells_how_much_is_to_come(mpi: kit.Mpi, prefix: Path, controller: StandIn, tmp_path: Path) -> None:
    program = tmp_path / "coordinate"
    source = kit.REPO / "examples" / "coordinate" / "coordinate.c"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-isystem", prefix / "include"]
    library = [f"-L{mpi.library}", f"-Wl,-rpath,{mpi.library}", f"-lhocket-{mpi.name}"]
    subprocess.run([*mpi.compilers[".c"], *flags, source, "-o", program, *library], check=True, timeout=60)
    run = mpi.run([program, tmp_path / "out"], kit.settings(controller.socket), preload="")
    assert (run.code, run.err, run.out) == (0, "", "wrote 4 files of 2097152 bytes\n")
    to_come = [(e["operation"], e["phase_bytes"] >> 20) for e in controller.events("START_IO")]
    calls = ("hocket_io_inform", "MPI_File_write_at_all")
    assert to_come == [(call, mebibytes) for mebibytes in (8, 6, 4, 2) for call in calls]
    assert [e["files"] for e in controller.events("START_IO")] == [4, 4, 3, 3, 2, 2, 1, 1]


# ---- independent accesses ------------------------------------------------------------------------------------------


def test_independent_accesses_ask_once_a_burst(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path) -> None:
    run = mpi.run(
        [built("script.c"), f"open={tmp_path / 'f'}", *["alone=10"] * 5, "pause=5", "alone=10", "write=10",
         "alone=10", "close"],
        kit.settings(controller.socket, phase_gap_s=2),
    )  # fmt: skip
    assert (run.code, run.err) == (0, "")
    assert (tmp_path / "f").read_bytes() == (b"A" * 10 + b"B" * 10) * 8
    for member in (1, 2):
        started = [e for e in controller.events("START_IO") if e["member"] == member]
        finished = [e for e in controller.events("FINISH_IO") if e["member"] == member]
        bursts = [e for e in started if e["operation"] == "MPI_File_write_at"]
        assert len(bursts) == 2, "what came after the collective access belongs to the second burst"
        ended = [next(e for e in finished if e["request"] == burst["request"]) for burst in bursts]
        assert [(e["bytes"], e["phase_over"]) for e in ended] == [(50, True), (20, True)]
        assert ended[0]["at_ns"] < bursts[1]["at_ns"] - 0.2e9, (
            "when nothing had come for the gap, not at the next access"
        )


def test_a_burst_pauses_between_two_accesses(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path) -> None:
    up, go = tmp_path / "up", tmp_path / "go"
    process = mpi.start(
        [built("script.c"), f"open={tmp_path / 'f'}", "alone=10", f"mark={up}", f"await={go}", "alone=10", "close"],
        kit.settings(controller.socket, phase_gap_s=30),
    )
    started = controller.await_events("START_IO", 2)
    kit.wait_until(up.exists, 20, "the first access has ended")
    for start in started:
        controller.pause(start)
    assert {e["member"] for e in controller.await_events("PAUSED_IO", 2)} == {e["member"] for e in started}
    go.touch()
    time.sleep(1)  # an absence cannot be awaited
    assert (tmp_path / "f").stat().st_size == 20
    for start in started:
        controller.grant(start)
    run = kit.finish(process)
    assert (run.code, run.err) == (0, "")
    assert (tmp_path / "f").stat().st_size == 40
    assert len(controller.events("START_IO")) == 2
    assert len(controller.events("FINISH_IO")) == 2
    assert controller.bye()["wait_ns"] > 2 * 0.1e9


def test_a_burst_goes_on_where_the_controller_dies(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path) -> None:
    up, go = tmp_path / "up", tmp_path / "go"
    process = mpi.start(
        [built("script.c"), f"open={tmp_path / 'f'}", "alone=10", f"mark={up}", f"await={go}", *["alone=10"] * 4,
         "close"],
        kit.settings(controller.socket, phase_gap_s=30, answer_s=60),
    )  # fmt: skip
    started = controller.await_events("START_IO", 2)
    kit.wait_until(up.exists, 20, "the first access has ended")
    for start in started:
        controller.pause(start)
    controller.await_events("PAUSED_IO", 2)
    controller.kill()
    go.touch()
    run = kit.finish(process, 30)
    assert (run.code, len(run.warnings)) == (0, 1), run.err
    assert (tmp_path / "f").stat().st_size == 100


def test_accesses_within_a_step_do_not_ask_as_a_burst(
    mpi: kit.Mpi, coordinate: Path, controller: StandIn, tmp_path: Path
) -> None:
    run = mpi.run(
        [coordinate, "prepare=bytes=100", f"open={tmp_path / 'f'}", "inform", "wait", "alone=10", "write=10",
         "alone=10", "release", "alone=10", "close"],
        kit.settings(controller.socket),
    )  # fmt: skip
    assert (run.code, run.err) == (0, "")
    started = controller.events("START_IO")
    assert [e["operation"] for e in started if e["member"] == 1] == [
        "hocket_io_inform",
        "MPI_File_write_at_all",
        "MPI_File_write_at",
    ]
    assert [e["operation"] for e in started if e["member"] == 2] == ["MPI_File_write_at"]
    assert [e["phase_bytes"] for e in started if e["member"] == 1] == [100, 100, 40], "less what has been moved"


# ---- with hocketd --------------------------------------------------------------------------------------------------


def trace(daemon: Any, *types: str) -> list[tuple[str, str]]:
    """Return (type, application) of the events and commands of these types, in order."""
    events = [json.loads(line) for line in daemon.trace.read_text().splitlines()[1:]]
    told = [(event.get("in") or event.get("out"), event.get("application")) for event in events]
    return [event for event in told if event[0] in types]


def test_wrong_sizes_are_ignored_and_explained(mpi: kit.Mpi, coordinate: Path, start_daemon, tmp_path: Path) -> None:
    daemon = start_daemon()
    step = ["inform", "wait", f"open={tmp_path / 'f'}", "write=100", "close", "release", "complete"]
    phases = [size for size in (1000, 1000, 1000, 200, 200) for size in [f"prepare=bytes={size}", *step]]
    run = mpi.run([coordinate, *phases], kit.settings(daemon.socket, name="a", job="a", phase_gap_s=60))
    assert (run.code, run.err) == (0, "")
    assert daemon.stop() == 0
    events = [json.loads(line) for line in daemon.trace.read_text().splitlines()[1:]]
    told = [(e["action"], e["reason"]) for e in events if e.get("out") == "DECISION" and e["action"] != "estimate"]
    assert [action for action, _ in told] == ["doubt", "ignore", "believe"]
    assert told[0][1] == {"kind": "announced", "announced": 1000, "accessed": 200, "phases": 1}


def test_a_step_is_interrupted_and_goes_on(mpi: kit.Mpi, coordinate: Path, built, start_daemon, tmp_path: Path) -> None:
    daemon = start_daemon("--policy", "interrupt")
    written, enough = tmp_path / "f", tmp_path / "enough"
    actions = ["prepare=bytes=1e12", "inform", f"open={written}", f"stopping={enough}", "release", "close"]
    large = mpi.start([coordinate, *actions], kit.settings(daemon.socket, name="large", job="large"), ranks=2)
    kit.wait_until(lambda: written.exists() and written.stat().st_size > 0, 20, "it writes")
    small = mpi.run(
        [built("script.c"), f"open={tmp_path / 'g'}", "write=10", "close"],
        kit.settings(daemon.socket, name="small", job="small"),
        limit_s=20,
    )
    assert (small.code, small.err) == (0, "")
    size = written.stat().st_size
    kit.wait_until(lambda: written.stat().st_size > size, 20, "it goes on")
    enough.touch()
    run = kit.finish(large)
    assert (run.code, run.err) == (0, "")
    assert daemon.stop() == 0
    order = trace(daemon, "PAUSE_IO", "PAUSED_IO")
    assert order[0] == ("PAUSE_IO", "large")
    assert ("PAUSED_IO", "large") in order, "the step; an access that was under way has ended instead"


def test_who_paused_for_one_that_dies_goes_on(
    mpi: kit.Mpi, coordinate: Path, built, start_daemon, tmp_path: Path, hocket_dir: Path
) -> None:
    config = hocket_dir / "hocket.toml"
    config.write_text("[coordinator]\nlease_s = 60\nturn_s = 120\n")
    daemon = start_daemon("--policy", "interrupt", "--config", config)
    written, enough = tmp_path / "f", tmp_path / "enough"
    actions = ["prepare=bytes=1e12", "inform", f"open={written}", f"stopping={enough}", "release", "close"]
    large = mpi.start([coordinate, *actions], kit.settings(daemon.socket, name="large", job="large"), ranks=2)
    kit.wait_until(lambda: written.exists() and written.stat().st_size > 0, 20, "it writes")
    small = mpi.start(
        [built("script.c"), f"open={tmp_path / 'g'}", "begin=10", f"mark={tmp_path / 'held'}", "pause=60"],
        kit.settings(daemon.socket, name="small", job="small"),
    )
    kit.wait_until((tmp_path / "held").exists, 20, "the small one has its turn")
    size = written.stat().st_size
    time.sleep(0.1)  # an absence cannot be awaited
    assert written.stat().st_size == size
    os.kill(Story(daemon).awaits("HELLO", job="small")["pid"], signal.SIGKILL)
    kit.wait_until(lambda: written.stat().st_size > size, 20, "the large one goes on, before the lease has ended")
    assert kit.finish(small).code != 0
    enough.touch()
    run = kit.finish(large)
    assert (run.code, run.err) == (0, "")


def test_two_that_have_what_the_other_waits_for_both_end(mpi: kit.Mpi, built, start_daemon, tmp_path: Path) -> None:
    daemon = start_daemon("--policy", "fcfs")

    def begin(name: str, other: str) -> Any:
        actions = [
            f"target={name}", f"open={tmp_path / name}1", "begin=10", f"mark={tmp_path / name}",
            f"await={tmp_path / other}", f"target={other}", f"open={tmp_path / name}2", "write=10",
            "close", "finish", "close",
        ]  # fmt: skip
        return mpi.start([built("script.c"), *actions], kit.settings(daemon.socket, name=name, job=name), ranks=2)

    one, other = begin("one", "other"), begin("other", "one")
    for process in (one, other):
        run = kit.finish(process)
        assert (run.code, run.err) == (0, ""), "nobody gave up"
    decided = Story(daemon).awaits("DECISION", action="deadlock")
    assert {decided["decided_for"], decided["because_of"]} == {"one", "other"}


def test_accesses_by_the_mpi_library_are_interrupted_between_two(
    mpi: kit.Mpi, built, start_daemon, tmp_path: Path, hocket_dir: Path
) -> None:
    config = hocket_dir / "hocket.toml"
    config.write_text("[coordinator]\nlinger_s = 30\nturn_s = 60\n")
    daemon = start_daemon("--policy", "interrupt", "--config", config)
    written, up, go, end = (tmp_path / name for name in ("f", "up", "go", "end"))
    small = mpi.start(
        [built("script.c"), f"mark={up}", f"await={go}", f"open={tmp_path / 'g'}", "write=10", "close"],
        kit.settings(daemon.socket, name="small", job="small"),
    )
    kit.wait_until(up.exists, 20, "the small one has started")
    large = mpi.start(
        [built("script.c"), f"open={written}", f"writing={end}", "close"],
        kit.settings(daemon.socket, name="large", job="large", phase_gap_s=30),
    )
    kit.wait_until(lambda: written.exists() and written.stat().st_size > 0, 20, "it writes")
    go.touch()
    run = kit.finish(small, 20)
    assert (run.code, run.err) == (0, "")
    end.touch()
    run = kit.finish(large)
    assert (run.code, run.err) == (0, "")
    assert daemon.stop() == 0
    grants = [application for _, application in trace(daemon, "GRANT_IO")]
    assert "small" in grants and grants[-1] == "large", "before the large one has come to its end"
