"""Reconfigurations in traces, as the analysis, the summary, and the export show them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from checkout import DATA
from hocket.analysis import Analysis, analyse
from hocket.bus import Event
from hocket.cli import main
from hocket.reconfigurations import CONSTANT, SPAWNING, VARIABLE, Reconfiguration, text_table
from hocket.report.resizes import resizes_table
from hocket.trace import read_trace

RESIZED = DATA / "resized.jsonl"
MS = 1_000_000


def event(kind: str, at_ms: float, member: int = 1, application: str = "a", **fields) -> Event:
    return Event(kind, fields, int(at_ms * MS), "n", application, member)


def analysed(*events: Event) -> Analysis:
    analysis = Analysis()
    hello = event("HELLO", 0, application="", job="j", processes=2)
    for one in [hello, event("WELCOME", 0, app=1, application_given="a"), *events]:
        analysis.feed(one)
    return analysis


def test_an_application_has_its_sizes_and_its_reconfigurations():
    rigid, malleable = analyse(read_trace(RESIZED)).applications
    assert (rigid.sizes, rigid.reconfigurations, rigid.processes) == ([], [], 2)
    assert [count for _, count in malleable.sizes] == [2, 4, 8, 2]
    assert malleable.sizes[0][0] == malleable.start_ns
    assert [(one.sources, one.targets, one.done) for one in malleable.reconfigurations] == [
        (2, 4, True),
        (4, 8, True),
        (8, 16, False),  # the copy for the requesting tool is not counted again
        (8, 2, True),
    ]
    assert malleable.processes == 2


def test_processes_that_join_do_not_count_twice():
    analysis = analysed(
        event("MALLEABLE", 1, processes=2),
        event("HELLO", 5, member=2, application="", job="j", processes=1),
        event("WELCOME", 5, member=2, app=1, application_given="a"),
        event("RECONFIGURATION", 9, done=True, sources=2, targets=3, start_ns=4 * MS, spawning_ns=5 * MS),
        event("MALLEABLE", 9, processes=3),
    )
    application = analysis.named("a")
    assert application.processes == 3
    assert application.sizes == [(0, 2), (9 * MS, 3)]


def test_a_reconfiguration_alone_tells_the_size_before_it():
    analysis = analysed(event("RECONFIGURATION", 9, done=True, sources=5, targets=1, start_ns=4 * MS))
    assert [count for _, count in analysis.named("a").sizes] == [5, 1]


def test_a_live_view_forgets_old_ones_but_not_the_size():
    application = analyse(read_trace(RESIZED)).applications[1]
    application.forget_before(application.reconfigurations[2].time_ns)
    assert [one.targets for one in application.reconfigurations] == [16, 2]
    assert [count for _, count in application.sizes] == [8, 2]


def test_resizes_that_were_refused_are_listed_with_their_reason():
    asked = {"member": 9, "application": ""}
    analysis = analysed(
        event("MALLEABLE", 1, processes=2),
        event("RESIZE", 5, application_asked="a", processes=14, relative=True, **asked),
        event("REFUSED", 5, text="cannot resize: 16 processes for 'a' are too many", **asked),
        event("RESIZE", 6, application_asked="b", processes=3, **asked),
        event("REFUSED", 6, text="cannot resize: no application 'b' runs", **asked),
        event("RESIZE", 7, application_asked="a", processes=3, **asked),
        event("RECONFIGURATION", 8, done=True, sources=2, targets=3, start_ns=7 * MS),
        event("RECONFIGURATION", 8, done=True, sources=2, targets=3, start_ns=7 * MS, **asked),
        event("REFUSED", 9, text="no resize that you requested is under way: nothing to withdraw", **asked),
    )
    found = analysis.applications[0].reconfigurations
    assert [(one.sources, one.targets, one.done, one.reason) for one in found] == [
        (2, 16, False, "16 processes for 'a' are too many"),
        (2, 3, True, ""),
    ]
    table = resizes_table([SimpleNamespace(label="run", analyses=[analysis])])
    assert "given up: 16 processes for &#x27;a&#x27; are too many" in table
    assert "given up at 0.01 s, a 2 → 16: 16 processes for 'a' are too many" in text_table(found, 0)


def test_parts_follow_each_other_where_all_stood_still():
    one = Reconfiguration("a", 999 * MS, done=True, start_ns=10 * MS, spawning_ns=5 * MS, spawning_stopped_ns=5 * MS)
    assert [(p.kind, p.start_ns // MS, p.end_ns // MS, p.overlapped_ns) for p in one.parts] == [(SPAWNING, 10, 15, 0)]
    assert one.end_ns == 15 * MS


def test_what_stands_still_comes_last_where_the_application_computed_meanwhile():
    lengths = {"spawning_ns": 5 * MS, "spawning_stopped_ns": 5 * MS, "constant_ns": 20 * MS, "variable_ns": 2 * MS}
    one = Reconfiguration("a", 50 * MS, done=True, start_ns=10 * MS, **lengths)
    assert [(p.kind, p.start_ns // MS, p.end_ns // MS, p.overlapped_ns // MS) for p in one.parts] == [
        (SPAWNING, 10, 15, 0),
        (CONSTANT, 15, 35, 20),
        (VARIABLE, 48, 50, 0),
    ]


def test_one_without_any_time_is_a_moment():
    one = Reconfiguration("a", 7 * MS, reason="no slots")
    assert (one.begin_ns, one.end_ns, one.parts) == (7 * MS, 7 * MS, [])


def test_summary_lists_them_and_says_why_one_was_given_up(capsys):
    assert main(["trace", "summary", str(RESIZED)]) == 0
    out = capsys.readouterr().out
    assert "merge join, collective wait-sources" in out
    assert "0.640 (0.618)" in out
    assert "given up at 6.20 s, jacobi-b 8 → 16: MPI_Comm_spawn: no such program: /opt/apps/jacobi" in out


def test_summary_as_json_has_seconds(capsys):
    assert main(["trace", "summary", "--json", str(RESIZED)]) == 0
    told = json.loads(capsys.readouterr().out)["reconfigurations"]
    assert [(one["application"], one["targets"], one["done"]) for one in told][2] == ("jacobi-b", 16, False)
    assert told[1]["spawning_s"] - told[1]["spawning_stopped_s"] == pytest.approx(0.618)
    assert told[0]["at_s"] == pytest.approx(1.99)
    assert not any(key.endswith("_ns") for key in told[0])


def test_summary_without_any_has_no_table(capsys):
    assert main(["trace", "summary", str(RESIZED.with_name("fcfs.jsonl"))]) == 0
    assert "processes" not in capsys.readouterr().out


def test_perfetto_has_a_counter_and_nested_slices(capsys):
    assert main(["trace", "export", str(RESIZED)]) == 0
    events = json.loads(capsys.readouterr().out)["traceEvents"]
    counter = [one for one in events if one["ph"] == "C"]
    assert [one["args"]["processes"] for one in counter] == [2, 4, 8, 2, 0]
    assert {one["pid"] for one in counter} == {2}
    slices = [one for one in events if one.get("cat") == "reconfiguration"]
    outer = [one for one in slices if "→" in one["name"]]
    assert [one["name"] for one in outer] == ["2 → 4", "4 → 8", "8 → 16 given up", "8 → 2"]
    assert outer[2]["args"]["reason"].startswith("MPI_Comm_spawn")
    for part in (one for one in slices if one not in outer):
        assert any(
            whole["ts"] <= part["ts"] and part["ts"] + part["dur"] <= whole["ts"] + whole["dur"] + 1e-3
            for whole in outer
        ), part
