"""Interruptions and decisions about access in traces, as analysis, report, explain, and the live view show them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hocket.analysis import Analysis, analyse
from hocket.bus import Event
from hocket.cli import main
from hocket.lanes import COMPUTING, IO, WAITING
from hocket.perfetto import chrome_trace
from hocket.top.model import TopModel
from hocket.top.render import View, plain, render
from hocket.trace import read_trace
from hocket.unstopped import Unstopped, waited_s, waiting_for

S = 1_000_000_000
DECIDED = {
    "number": 1, "policy": "dynamic", "decided_for": "b", "because_of": "a", "action": "interrupt",
    "text": "cpu-time in s: interrupt 12.0, wait 15.2, interfere 18.0: 'b' interrupts 'a'",
}  # fmt: skip
WAITS = {"number": 2, "policy": "dynamic", "decided_for": "a", "because_of": "b", "action": "wait", "text": "as it is"}
# a writes from 1 s, is interrupted for b from 3 to 5 s, and ends at 8 s.
LINES = [
    ("in", "HELLO", 0.0, "", 1, {"job": "j1", "processes": 64, "application_asked": "a"}),
    ("out", "WELCOME", 0.0, "a", 1, {"app": 1, "application_given": "a", "policy": "dynamic"}),
    ("in", "HELLO", 0.0, "", 2, {"job": "j2", "processes": 2, "application_asked": "b"}),
    ("out", "WELCOME", 0.0, "b", 2, {"app": 2, "application_given": "b", "policy": "dynamic"}),
    ("in", "START_IO", 1.0, "a", 1, {"request": 7, "target": "t", "bytes": 500}),
    ("out", "GRANT_IO", 1.0, "a", 1, {"request": 7, "target": "t", "waited_ns": 0, "share": 1.0}),
    ("in", "START_IO", 2.9, "b", 2, {"request": 9, "target": "t", "bytes": 20}),
    ("out", "QUEUED_IO", 2.9, "b", 2, {"request": 9, "behind": "a"}),
    ("out", "DECISION", 2.9, "", 0, DECIDED),
    ("out", "PAUSE_IO", 2.9, "a", 1, {"request": 7, "because_of": "b", "target": "t"}),
    ("in", "PAUSED_IO", 3.0, "a", 1, {"request": 7, "bytes": 200, "round": 3}),
    ("out", "GRANT_IO", 3.0, "b", 2, {"request": 9, "target": "t", "waited_ns": S // 10}),
    ("out", "QUEUED_IO", 4.0, "a", 1, {"request": 7, "behind": "b"}),
    ("in", "FINISH_IO", 5.0, "b", 2, {"request": 9, "io_ns": 2 * S, "bytes": 20, "phase_over": True}),
    ("out", "GRANT_IO", 5.0, "a", 1, {"request": 7, "target": "t", "waited_ns": 2 * S, "share": 1.0}),
    ("out", "GRANT_IO", 6.0, "a", 1, {"request": 7, "target": "t", "waited_ns": 0, "share": 0.5}),
    ("in", "FINISH_IO", 8.0, "a", 1, {"request": 7, "io_ns": 5 * S, "bytes": 500, "phase_over": True}),
    ("in", "BYE", 9.0, "b", 2, {}),
    ("in", "BYE", 9.0, "a", 1, {}),
]


def write_trace(path: Path, lines=LINES) -> Path:
    header = {"hocket_trace": 1, "version": "0.1.0", "node": "n", "start_ns": 0, "start_unix_ns": 1}
    found = [
        {direction: kind, "time_ns": round(at * S), "node": "n", "application": name, "member": member, **fields}
        for direction, kind, at, name, member, fields in lines
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in [header, *found]))
    return path


@pytest.fixture
def trace(tmp_path) -> Path:
    return write_trace(tmp_path / "run.jsonl")


def lane(analysis: Analysis, name: str) -> list[tuple[str, float, float]]:
    return [(part.kind, part.start_ns / S, part.end_ns / S) for part in analysis.named(name).intervals(analysis.now_ns)]


def test_from_paused_io_to_grant_io_it_waits(trace):
    analysis = analyse(read_trace(trace))
    assert lane(analysis, "a") == [
        (COMPUTING, 0.0, 1.0), (IO, 1.0, 3.0), (WAITING, 3.0, 5.0), (IO, 5.0, 8.0), (COMPUTING, 8.0, 9.0),
    ]  # fmt: skip
    a, b = analysis.named("a"), analysis.named("b")
    assert (a.wait_s(analysis.now_ns), a.interruptions, b.interruptions) == (2.0, 1, 0)
    assert analysis.overlaps() == []
    told = [(one.application, one.text()) for one in analysis.decisions]
    assert told == [
        ("a", "granted"),
        ("b", "queued behind a"),
        ("a", "preempted for b"),
        ("b", "granted after 0.10 s"),
        ("a", "resumed after 2.00 s"),
    ]


def test_one_that_ends_instead_of_pausing_was_not_interrupted(tmp_path):
    lines = [line for line in LINES if line[1] != "PAUSED_IO"]
    analysis = analyse(read_trace(write_trace(tmp_path / "run.jsonl", lines)))
    assert (analysis.named("a").interruptions, analysis.named("a").wait_s(analysis.now_ns)) == (0, 0.0)
    assert all(one.kind != "preempted" for one in analysis.decisions)


# a ends at 8 s instead of pausing, and b gets its turn then.
UNSTOPPED = [
    *LINES[:10],
    ("in", "FINISH_IO", 8.0, "a", 1, {"request": 7, "io_ns": 7 * S, "bytes": 500, "unstopped": True}),
    ("out", "GRANT_IO", 8.0, "b", 2, {"request": 9, "target": "t", "waited_ns": 51 * S // 10}),
    ("in", "FINISH_IO", 8.5, "b", 2, {"request": 9, "io_ns": S // 2, "bytes": 20, "phase_over": True}),
    *LINES[-2:],
]


def test_an_access_that_could_not_stop_is_told_with_its_cost_and_what_to_do(tmp_path, capsys):
    path = write_trace(tmp_path / "run.jsonl", UNSTOPPED)
    a, b = analyse(read_trace(path)).applications
    assert (a.unstopped, b.unstopped, a.interruptions) == ([Unstopped(29 * S // 10, 8 * S, "b")], [], 0)
    assert main(["trace", "summary", str(path)]) == 0
    said = (
        "a could not stop once when it was asked to, and b waited 5.10 s for the end of its access; run it with "
        "--io hocket, make its accesses smaller, or use the steps of hocket/io.h"
    )
    assert capsys.readouterr().out.splitlines()[-1] == said
    assert main(["trace", "summary", "--json", str(path)]) == 0
    rows = json.loads(capsys.readouterr().out)["applications"]
    assert [(r["unstopped"], r["unstopped_wait_s"], r["unstopped_for"]) for r in rows] == [(1, 5.1, ["b"]), (0, 0, [])]
    assert main(["report", str(path), "-o", str(tmp_path / "report")]) == 0
    assert capsys.readouterr().err == f"hocket: {said}\n"
    page = (tmp_path / "report" / "report.html").read_text()
    assert "<caption>Accesses that could not stop" in page and "could not stop once" in page and "--io hocket" in page


def test_what_it_cost_ends_with_the_other_ones_wait(tmp_path):
    beside = ("out", "GRANT_IO", 4.0, "b", 2, {"request": 9, "target": "t", "waited_ns": 11 * S // 10})
    lines = [*UNSTOPPED[:10], beside, *(line for line in UNSTOPPED[10:] if line[1] != "GRANT_IO")]
    a = analyse(read_trace(write_trace(tmp_path / "run.jsonl", lines))).named("a")
    assert a.unstopped == [Unstopped(29 * S // 10, 4 * S, "b")]


def test_waits_for_several_accesses_at_once_count_once():
    found = [Unstopped(5 * S, 6 * S, "b"), Unstopped(3 * S, 8 * S, "c"), Unstopped(7 * S, 9 * S, "b")]
    assert (waited_s(found), waiting_for(found)) == (6.0, ("b", "c"))


def test_an_access_that_could_stop_is_not_told(trace, tmp_path, capsys):
    ended = [line for line in LINES if line[1] != "PAUSED_IO"]  # before its next round ended
    for path in (trace, write_trace(tmp_path / "ended.jsonl", ended)):
        assert all(not one.unstopped for one in analyse(read_trace(path)).applications)
        assert main(["trace", "summary", str(path)]) == 0
        assert "could not stop" not in capsys.readouterr().out
        assert main(["report", str(path), "-o", str(tmp_path / "report")]) == 0
        assert "could not stop" not in (tmp_path / "report" / "report.html").read_text()


def test_one_that_is_paused_waits_until_now(tmp_path):
    at = next(number for number, line in enumerate(LINES) if line[:3] == ("out", "QUEUED_IO", 4.0))
    analysis = analyse(read_trace(write_trace(tmp_path / "run.jsonl", LINES[: at + 1])))
    assert lane(analysis, "a")[-1] == (WAITING, 3.0, 4.0)


def test_one_that_went_on_without_a_grant_did_the_rest_of_its_io_at_its_end(tmp_path):
    lines = [line for line in LINES if not (line[1] == "GRANT_IO" and line[3] == "a" and line[2] >= 5.0)]
    analysis = analyse(read_trace(write_trace(tmp_path / "run.jsonl", lines)))
    assert lane(analysis, "a")[1:4] == [(IO, 1.0, 3.0), (WAITING, 3.0, 5.0), (IO, 5.0, 8.0)]


def test_explain_tells_who_interrupts_whom_and_the_costs(trace, tmp_path, capsys):
    assert main(["explain", "--trace", str(trace)]) == 0
    assert capsys.readouterr().out == (
        "decision 1, dynamic at 2.90 s, 6.10 s ago: b interrupts a\n"
        "  in its words  cpu-time in s: interrupt 12.0, wait 15.2, interfere 18.0: 'b' interrupts 'a'\n"
    )
    assert main(["explain", "a", "--json", "--trace", str(trace)]) == 0
    (told,) = json.loads(capsys.readouterr().out)["decisions"]
    assert (told["action"], told["decided_for"], told["because_of"]) == ("interrupt", "b", "a")
    both = write_trace(tmp_path / "two.jsonl", [*LINES, ("out", "DECISION", 9.0, "", 0, WAITS)])
    assert main(["explain", "-n", "1", "--trace", str(both)]) == 0
    assert capsys.readouterr().out.startswith("decision 2, dynamic at 9.00 s, 0 ms ago: a waits for b\n")


@pytest.mark.parametrize(
    ("action", "heading"),
    [
        ("interfere", "a goes on beside b"),
        ("delay", "a begins later because of b"),
        ("resume", "a goes on after b"),
    ],
)
def test_every_action_has_its_words(tmp_path, capsys, action, heading):
    line = ("out", "DECISION", 9.0, "", 0, WAITS | {"action": action})
    assert main(["explain", "--trace", str(write_trace(tmp_path / "run.jsonl", [*LINES[:4], line]))]) == 0
    assert heading in capsys.readouterr().out


def test_the_report_counts_interruptions_and_says_for_whom_it_waits(trace, tmp_path):
    assert main(["report", str(trace), "-o", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report" / "report.html").read_text()
    assert "preempted once" in page
    assert "a waits for b: 2.00 s, from 3.00 to 5.00 s" in page
    assert "b interrupts a" in page
    assert "<caption>Decisions" in page


def test_the_summary_counts_them(trace, capsys):
    assert main(["trace", "summary", "--json", str(trace)]) == 0
    told = json.loads(capsys.readouterr().out)["applications"]
    assert [(one["application"], one["interruptions"], one["wait_s"]) for one in told] == [
        ("a", 1, 2.0),
        ("b", 0, 0.1),
    ]


def test_the_live_view_counts_them(trace):
    model = TopModel()
    for event in read_trace(trace).events:
        if event.time_ns <= 4 * S:
            model.feed(event)
    text = plain(render(model, 100, View()))
    assert "preempted once" in text
    assert "interrupts a (dynamic)" in text
    assert "preempted for b" in text


def test_the_export_shows_the_pause_as_waiting(trace):
    events = chrome_trace(read_trace(trace))["traceEvents"]
    mine = [one for one in events if one.get("pid") == 1 and one["ph"] == "X"]
    assert [(one["name"], one["dur"] / 1e6) for one in mine] == [
        ("computing", 1.0), ("I/O", 2.0), ("waiting", 2.0), ("I/O", 3.0), ("computing", 1.0),
    ]  # fmt: skip
    assert "preempted for b" in [one["name"] for one in events]


def test_events_in_any_order_do_no_harm():
    analysis = Analysis()
    for kind in ("PAUSED_IO", "PAUSE_IO", "GRANT_IO", "QUEUED_IO"):
        analysis.feed(Event(kind, {"request": 1}, S, "n", "a", 1))
    assert analysis.named("a").interruptions == 0
