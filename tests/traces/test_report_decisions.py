"""Decisions about cores in traces, as the report, the live view, and the export show them."""

from __future__ import annotations

import json

import pytest
from checkout import DATA
from hocket.analysis import analyse
from hocket.bus import Event
from hocket.cli import main
from hocket.comparison import Run
from hocket.report import write_report
from hocket.report.panels import EXPANDS, LEAVES, MET, MOST_MARKS, OFF, axis_length_s, panels_of
from hocket.report.svg import svg
from hocket.top.feed import from_trace
from hocket.top.render import plain, render
from hocket.trace import read_trace
from PIL import Image

STEERED = DATA / "steered.jsonl"
pytestmark = pytest.mark.timeout(60)


def panel(most_lanes: int = 0):
    run = Run("steered", [STEERED])
    return panels_of([run], axis_length_s([run]), most_lanes)[0]


def test_a_panel_has_a_mark_for_each_decision_and_outcome():
    found = panel()
    assert [mark.kind for mark in found.marks] == [EXPANDS, MET, LEAVES, OFF]
    assert found.marks[0].at_s == pytest.approx(3.04)
    assert "stood still 0.157 s in 2 resizes" in found.marks[0].text
    assert [(round(bar.start_s, 2), round(bar.end_s, 2)) for bar in found.conflicts] == [(4.25, 4.89), (6.29, 6.74)]


def test_the_page_says_what_flop_rest_on(tmp_path):
    report = write_report([Run("steered", [STEERED])], tmp_path, "Two solvers")
    assert "steered: FLOP: not known (iterations) (jacobi-b)" in report.html.read_text()


def test_only_the_size_that_a_policy_chose_counts_as_expanded():
    lane = panel().lanes[1]
    assert [(step.processes, step.expanded) for step in lane.steps] == [(2, False), (4, True), (2, False)]
    resized = panels_of([Run("r", [DATA / "resized.jsonl"])], 10)[0]
    assert not any(step.expanded for lane in resized.lanes for step in lane.steps)
    assert (resized.marks, resized.conflicts) == ((), ())


def test_few_lanes_are_those_with_most_io_and_the_others_are_told():
    found = panel(most_lanes=1)
    assert [lane.name for lane in found.lanes] == ["jacobi-a"]
    assert "Shown: the 1 with most I/O; 1 are not." in found.caption
    assert found.marks == ()  # they are about jacobi-b


def test_more_marks_than_can_be_shown_are_counted():
    trace = read_trace(STEERED)
    decisions = [event for event in trace.events if event.type == "DECISION"]
    trace.events.extend(decisions * MOST_MARKS)
    found = panels_of([Run("many", [trace])], 20)[0]
    assert (len(found.marks), found.more_marks) == (MOST_MARKS, 2 * MOST_MARKS + 4 - MOST_MARKS)
    assert f"{found.more_marks} more" in svg(found, 20)


def test_the_page_tells_them_and_the_picture_has_room_for_them(tmp_path):
    report = write_report([Run("steered", [STEERED])], tmp_path, "Two solvers")
    text = report.html.read_text()
    assert text.count('class="decided expands"') == 2  # in the picture, and in its key
    assert text.count("jacobi-b expands from 2 to 4 processes because of jacobi-a") >= 2
    assert "predictions held against what happened" in text
    without = write_report([Run("fcfs", [DATA / "fcfs.jsonl"])], tmp_path / "without", "Two solvers")
    assert "<caption>Decisions" not in without.html.read_text()
    assert Image.open(report.pngs[0]).size[1] > Image.open(without.pngs[0]).size[1] + 100


def test_factors_where_times_alone_are_known_otherwise(tmp_path):
    runs = [Run("fcfs", [DATA / "fcfs.jsonl"], "scheduled")]
    text = write_report(runs, tmp_path, "Two solvers", io_alone_s={"jacobi-a": 4.0}).html.read_text()
    assert "<td>1.20</td>" in text  # (4.50 + 0.29) / 4.0


def test_top_shows_the_expansion_while_it_lasts():
    during = plain(render(from_trace(str(STEERED), 4.5), 100))
    assert "4 processes (expanded from 2 by phase-shift, back at iteration 600)" in during
    assert "expands from 2 to 4 processes because of jacobi-a (phase-shift)" in during
    assert "start of the next I/O phase 0.11 s later than predicted" in during
    after = plain(render(from_trace(str(STEERED), 8.0), 100))
    assert "expanded from" not in after
    assert "is left alone because of jacobi-a" in after


def test_perfetto_has_instants_and_the_expansion_as_a_slice(capsys):
    assert main(["trace", "export", str(STEERED)]) == 0
    events = json.loads(capsys.readouterr().out)["traceEvents"]
    (slot,) = [one for one in events if one.get("cat") == "expansion"]
    assert (slot["name"], slot["pid"]) == ("2 → 4 by phase-shift", 2)
    assert slot["dur"] == pytest.approx(2e6, rel=0.01)
    names = [one["name"] for one in events if one.get("cat") == "decision" and one["pid"] == 2]
    assert "jacobi-b is left alone because of jacobi-a" in names
    assert "I/O period: not as predicted" in names
    tracks = [one["args"]["name"] for one in events if one["name"] == "thread_name"]
    assert tracks.count("expansions") == 1


def test_a_live_view_forgets_old_decisions():
    analysis = analyse(read_trace(STEERED))
    analysis.about_cores.forget_before(analysis.about_cores.all[1].time_ns)
    assert [one.number for one in analysis.about_cores.all] == [2]


def test_a_run_is_named_after_all_policies_in_force(tmp_path):
    trace = read_trace(STEERED)
    trace.settings["policy"] = "fcfs+phase-shift"
    assert analyse(trace).policy == "fcfs+phase-shift"  # WELCOME has the access policy only


def test_a_policy_that_was_refused_is_not_in_force():
    analysis = analyse(read_trace(STEERED))
    for kind, fields in [("SET_POLICY", {"policy": "nonsense"}), ("REFUSED", {"text": "unknown policy"})]:
        analysis.feed(Event(kind, fields, analysis.now_ns + 1, "n", "", 77))
    assert analysis.policy == "fcfs"
    analysis.feed(Event("SET_POLICY", {"policy": "none"}, analysis.now_ns + 1, "n", "", 77))
    assert analysis.policy == "none"
