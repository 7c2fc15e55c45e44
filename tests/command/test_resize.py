"""hocket resize, and what ls and top show of it, with a real hocketd and a stand-in for a malleable application."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hocket.bus import Bus, BusError, Event
from hocket.cli import main
from hocket.top.model import TopModel
from hocket.top.render import plain, render

pytestmark = pytest.mark.timeout(60)
LIMIT_S = 30
S = 1_000_000_000
MIB = 1 << 20
HOCKET = (sys.executable, "-m", "hocket.cli")
RECORD = {
    "done": True, "sources": 2, "targets": 4, "iteration": 120, "spawn": "merge", "spawn_strategy": "single",
    "redistribution": "collective", "redistribution_strategy": "blocking", "wait_ns": S // 2, "spawning_ns": S // 10,
    "spawning_stopped_ns": S // 10, "constant_ns": S // 4, "constant_stopped_ns": S // 100, "variable_ns": S // 50,
    "resuming_ns": S // 1000, "stopped_ns": S * 131 // 1000, "started": 2, "bytes_moved": 512 * MIB,
    "bytes_kept": 256 * MIB,
}  # fmt: skip


@pytest.fixture
def cores(start_daemon, tmp_path):
    """A daemon that can allocate eight cores."""
    settings = tmp_path / "hocket.toml"
    settings.write_text("[coordinator]\ncores = 8\n")
    return start_daemon("--config", settings)


class Application:
    """A stand-in for rank 0 of a malleable application."""

    def __init__(self, processes: int = 2, iteration: int = 100, name: str = "jacobi", malleable: bool = True):
        self.bus = Bus.connect()
        me = {"program": "/x", "mpi": "mpich", "version": "t", "pid": 1, "processes": processes}
        self.bus.send("HELLO", job=f"job-{name}", application_asked=name, **me)
        assert self.bus.answer(LIMIT_S).type == "WELCOME"
        if malleable:
            self.bus.send("MALLEABLE", processes=processes, iteration=iteration, sleeping=1, method="merge single")
        self.bus.list()  # the daemon knows it now

    def asked(self) -> Event:
        event = self.bus.answer(LIMIT_S)
        assert event is not None, "the application was told nothing"
        assert event.type == "RECONFIGURE"
        return event

    def __enter__(self) -> Application:
        return self

    def __exit__(self, *_: object) -> None:
        self.bus.close()


class Resize:
    """A `hocket resize` in the background."""

    def __init__(self, *arguments: str):
        self.process = subprocess.Popen(
            [*HOCKET, "resize", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out, err


def refused(*arguments: str) -> str:
    code, out, err = Resize(*arguments).ended()
    assert (code, out, len(err.splitlines())) == (1, "", 1), err
    return err.removeprefix("hocket: ").removesuffix("\n")


def test_a_resize_tells_what_it_took(cores):
    with Application() as app:
        resize = Resize("jacobi", "4", "--at", "120", "--on", "n1:1", "--methods", "collective/single")
        asked = app.asked()
        assert {key: asked[key] for key in ("processes", "at_iteration", "places", "methods")} == {
            "processes": 4,
            "at_iteration": 120,
            "places": "n1:1",
            "methods": "collective/single",
        }
        app.bus.send("RECONFIGURATION", request=asked["request"], **RECORD)
        assert resize.ended() == (
            0,
            "jacobi: 2 → 4 processes at iteration 120: stopped for 0.131 s, 0.500 s after the request\n"
            "  merge single, collective blocking: spawn 0.100, constant data 0.250 (0.240), variable data 0.020, "
            "resume 0.001 s\n"
            "  512 MiB moved, 256 MiB kept, 2 started\n",
            "",
        )


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        ("based", "--methods based: 'based' is no method; there are merge, baseline, plain, "),
        ("merge/p2p/baseline", "--methods merge/p2p/baseline: 'merge' and 'baseline' exclude each other; give one"),
        ("merge/", "--methods merge/: '' is no method"),
    ],
)
def test_unknown_methods_are_refused_at_once(methods, said):
    code, out, err = Resize("jacobi", "4", "--methods", methods).ended()
    assert (code, out, len(err.splitlines())) == (2, "", 1), err
    assert said in err


@pytest.mark.parametrize(("size", "processes"), [("-1", 1), ("+2", 4)])
def test_sizes_with_a_sign_are_relative(cores, size, processes):
    with Application() as app:
        resize = Resize("jacobi", size, "--json")
        asked = app.asked()
        assert (asked["processes"], asked["methods"]) == (processes, "")
        app.bus.send("RECONFIGURATION", request=asked["request"], **RECORD | {"targets": processes})
        code, out, _ = resize.ended()
        told = json.loads(out)
        assert (code, told["application"], told["targets"], told["stopped_ns"]) == (0, "jacobi", processes, 131000000)


def test_a_resize_that_was_given_up_tells_the_reason(cores):
    with Application() as app:
        resize = Resize("jacobi", "3")
        asked = app.asked()
        app.bus.send("RECONFIGURATION", request=asked["request"], done=False, reason="no slots", sources=2, targets=3)
        assert resize.ended() == (
            1,
            "",
            "hocket: 'jacobi' was not resized and continues with 2 processes: no slots\n",
        )
        again = Resize("jacobi", "3")
        app.asked()
        app.bus.send("BYE")
        assert again.ended() == (1, "", "hocket: 'jacobi' ended before it was resized\n")


def test_every_refusal_is_one_line_and_changes_nothing(cores):
    assert refused("jacobi", "2") == "cannot resize: no application runs"
    with Application() as app, Application(1, name="rigid", malleable=False):
        known = "There are: jacobi, rigid"
        assert refused("jacoby", "3") == (
            f"cannot resize: no application 'jacoby' runs; did you mean 'jacobi'? {known}"
        )
        assert "'rigid' is not malleable: it does not call hocket_malleable_create" in refused("rigid", "2")
        assert "'jacobi' has 2 processes and would have 0: it needs at least 1" in refused("jacobi", "0")
        assert "'jacobi' has 2 processes and would have -1: it needs at least 1" in refused("jacobi", "-3")
        assert "'jacobi' has 2 processes already" in refused("jacobi", "2")
        assert "there are 8 cores, 1 of them used by other applications" in refused("jacobi", "8")
        assert "are too many" in refused("jacobi", "+" + "9" * 18)
        assert "iteration 100 is past: 'jacobi' has done 100" in refused("jacobi", "3", "--at", "100")
        assert "places: ':1' is no place" in refused("jacobi", "4", "--on", ":1")
        assert "places: 2 are given, but 'jacobi' gets 1 process that must" in refused("jacobi", "4", "--on", "a b")
        resize = Resize("jacobi", "3")
        asked = app.asked()  # its first request: refused resizes send it nothing
        assert "is being resized to 3 processes already: wait until it has ended" in refused("jacobi", "4")
        app.bus.send("RECONFIGURATION", request=asked["request"], **RECORD | {"targets": 3})
        assert resize.ended()[0] == 0


@pytest.mark.parametrize("arguments", [("jacobi", "two"), ("jacobi", "2", "--at", "-1"), ("jacobi",)])
def test_a_wrong_call_is_exit_code_2(hocket_dir, arguments):
    code, out, err = Resize(*arguments).ended()
    assert (code, out, len(err.splitlines())) == (2, "", 1), err


def give_up(app: Application, request: int) -> None:
    app.bus.send("RECONFIGURATION", request=request, done=False, reason="it was withdrawn", sources=2, targets=3)


@pytest.mark.parametrize(
    ("number", "code", "within"), [(signal.SIGINT, 130, ""), (signal.SIGTERM, 143, ""), (0, 1, " within 0.2 s")]
)
def test_who_does_not_want_to_wait_longer_takes_the_resize_back(cores, number, code, within):
    with Application() as app:
        resize = Resize("jacobi", "3", "--at", "999999", *([] if number else ["--timeout", "0.2"]))
        asked = app.asked()
        if number:
            resize.process.send_signal(number)
        assert (event := app.bus.answer(LIMIT_S)) is not None
        assert (event.type, event["request"]) == ("WITHDRAW_RESIZE", asked["request"])
        give_up(app, asked["request"])
        why = f"hocket: 'jacobi' was not resized{within} and continues with 2 processes: it was withdrawn\n"
        assert resize.ended() == (code, "", why)
        again = Resize("jacobi", "4")
        app.bus.send("RECONFIGURATION", request=app.asked()["request"], **RECORD)
        assert again.ended()[0] == 0


def test_a_resize_that_has_begun_is_not_taken_back(cores):
    with Application() as app:
        resize = Resize("jacobi", "3")
        asked = app.asked()
        resize.process.send_signal(signal.SIGINT)
        assert app.bus.answer(LIMIT_S).type == "WITHDRAW_RESIZE"
        app.bus.send("WITHDRAW_RESIZE", request=asked["request"], begun=True)
        code, out, err = resize.ended()
        assert (code, out) == (130, "")
        assert err.startswith("hocket: 'jacobi' has begun to resize: that continues")
        app.bus.send("RECONFIGURATION", request=asked["request"], **RECORD | {"targets": 3})
        assert app.bus.list().applications[0]["processes"] == 3


def test_a_resize_is_taken_back_when_its_tool_is_killed(cores):
    with Application() as app:
        resize = Resize("jacobi", "3")
        asked = app.asked()
        resize.process.kill()
        event = app.bus.answer(LIMIT_S)
        assert (event.type, event["request"]) == ("WITHDRAW_RESIZE", asked["request"])
        give_up(app, asked["request"])
        assert app.bus.list().applications[0]["resizing_to"] == 0


def test_an_application_that_does_not_answer_does_not_keep_the_tool(cores):
    with Application() as app:
        resize = Resize("jacobi", "3")
        app.asked()
        resize.process.send_signal(signal.SIGINT)
        assert app.bus.answer(LIMIT_S).type == "WITHDRAW_RESIZE"
        resize.process.send_signal(signal.SIGINT)
        why = "hocket: 'jacobi' will withdraw the resize at its next control point\n"
        assert resize.ended() == (130, "", why)


def test_a_next_control_point_that_does_not_come_is_not_waited_for_without_end(cores, monkeypatch, capsys):
    monkeypatch.setattr("hocket.verbs.resize.PATIENCE_S", 0.2)
    monkeypatch.setattr("hocket.verbs.resize.WITHDRAW_S", 0.2)
    with Application() as app:
        assert main(["resize", "jacobi", "3"]) == 1
        why = "hocket: 'jacobi' will withdraw the resize at its next control point\n"
        assert capsys.readouterr().err == why
        request = app.asked()["request"]
        assert app.bus.answer(LIMIT_S).type == "WITHDRAW_RESIZE"
        give_up(app, request)
        assert app.bus.list().applications[0]["resizing_to"] == 0


def test_nothing_to_withdraw(cores):
    with Bus.connect() as bus:
        bus.send("WITHDRAW_RESIZE")
        with pytest.raises(BusError, match="nothing to withdraw"):
            bus.answer(LIMIT_S)


def test_a_daemon_that_ends_meanwhile_is_one_line(cores):
    with Application() as app:
        resize = Resize("jacobi", "3")
        app.asked()
        cores.kill()
        code, _, err = resize.ended()
        assert (code, len(err.splitlines())) == (1, 1)


def test_an_application_cannot_be_made_to_answer_for_another(cores):
    with Application() as app, Application(1, name="other") as other:
        resize = Resize("jacobi", "3")
        asked = app.asked()
        other.bus.send("RECONFIGURATION", request=asked["request"], **RECORD)
        other.bus.list()
        app.bus.send("RECONFIGURATION", request=asked["request"], **RECORD | {"targets": 3})
        assert "2 → 3 processes" in resize.ended()[1]


def test_members_may_not_send_what_only_the_daemon_says(cores):
    with Bus.connect() as bus:
        bus.send("PROCESS_FAILED", request=1, app=1, reason="x")
        with pytest.raises(BusError, match="a member may not send PROCESS_FAILED"):
            bus.list()


def test_ls_and_top_show_it(cores, capsys):
    with Application() as app:
        resize = Resize("jacobi", "4")
        asked = app.asked()
        assert main(["ls"]) == 0
        table = capsys.readouterr().out.splitlines()
        assert table[0].split()[:5] == ["APPLICATION", "STATE", "PROCESSES", "SLEEPING", "RESIZED"]
        assert table[1].split()[:7] == ["jacobi", "computing", "2", "→", "4", "1", "0x"]
        assert main(["top", "--once", "--width", "100"]) == 0
        assert "2 → 4 processes" in capsys.readouterr().out
        app.bus.send("RECONFIGURATION", request=asked["request"], **RECORD)
        assert resize.ended()[0] == 0
        assert main(["ls", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        row = told["applications"][0]
        keys = ("malleable", "processes", "resizing_to", "reconfigurations", "sleeping")
        assert [row[key] for key in keys] == [True, 4, 0, 1, 1]
        assert told["daemon"]["cores"] == 8


def test_cores_of_the_machine_are_the_default(daemon):
    with Bus.connect() as bus:
        assert bus.list().daemon["cores"] == len(os.sched_getaffinity(0))


def test_a_run_with_a_resize_replays(cores, prefix):
    with Application() as app:
        resize = Resize("jacobi", "+1")
        app.bus.send("RECONFIGURATION", request=app.asked()["request"], **RECORD | {"targets": 3})
        assert resize.ended()[0] == 0
        refused("jacobi", "80")
    cores.stop()
    command = [prefix / "bin" / "hocketd", "--replay", cores.trace]
    replay = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert (replay.returncode, replay.stderr) == (0, "")
    header = json.loads(Path(cores.trace).read_text().splitlines()[0])
    assert header["settings"]["cores"] == 8


def test_top_lists_resizes_among_the_decisions():
    model = TopModel()
    events = [
        ("HELLO", 0.0, {"job": "j", "processes": 2}, ""),
        ("WELCOME", 0.0, {"app": 1, "application_given": "a", "policy": "fcfs"}, "a"),
        ("MALLEABLE", 1.0, {"processes": 2}, "a"),
        ("RECONFIGURE", 5.0, {"request": 1, "processes": 4}, "a"),
    ]
    for kind, at_s, fields, name in events:
        model.feed(Event(kind, fields, int(at_s * S), "n", name, 1))
    text = plain(render(model, 100))
    assert "2 → 4 processes" in text
    assert "to become 4 processes" in text
    model.feed(Event("RECONFIGURATION", {"request": 1, **RECORD}, 6 * S, "n", "a", 1))
    model.feed(Event("RECONFIGURATION", {"request": 1, **RECORD}, 6 * S, "n", "", 9))  # the tool's
    model.feed(Event("RECONFIGURATION", {"done": False, "sources": 4, "reason": "no slots"}, 7 * S, "n", "a", 1))
    lines = plain(render(model, 100)).splitlines()
    assert any(line.strip().startswith("4 processes") for line in lines)
    assert sum("2 → 4 processes, stopped for 0.13 s" in line for line in lines) == 1
    assert "stays at 4 processes: no slots" in "\n".join(lines)
