"""hocket explain: decisions and outcomes in sentences, from a trace and from a stand-in for the daemon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hocket.bus import Event
from hocket.cli import main
from hocket.decisions import Accuracy, Outcome, PolicyDecision, accuracies, collect, tell
from hocket.errors import HocketError
from hocket.flop import sources_text
from hocket.sentences import sentences_of
from stand_in_hocketd import StandIn

pytestmark = pytest.mark.timeout(30)
S = 1_000_000_000
EXPANDS = {
    "number": 1, "policy": "phase-shift", "decided_for": "A1", "because_of": "A2", "action": "expand", "from": 64,
    "to": 82, "at_iteration": 412, "return_at_iteration": 500, "conflict_ns": 93 * S + S // 2, "overlap_ns": 4 * S,
    "start_before_ns": 93 * S + S // 2, "start_after_ns": 90 * S, "text": "it is the shorter period",
}  # fmt: skip
MET = {
    "decision": 1,
    "decided_for": "A1",
    "quantity": "phase-start",
    "predicted_s": 9.0,
    "actual_s": 9.25,
    "met": True,
    "uncertainty_s": 0.5,
    "period_s": 10.0,
}
LEFT = {
    "number": 2, "policy": "phase-shift", "decided_for": "A2", "because_of": "A1", "action": "leave", "from": 8,
    "to": 8, "conflict_ns": 120 * S, "overlap_ns": S, "text": "82 processes do not reach the speedup 1.4",
}  # fmt: skip
LINES = [
    ("out", "DECISION", 81, "", EXPANDS),
    ("in", "RECONFIGURATION", 82, "A1", {"done": True, "sources": 64, "targets": 82, "stopped_ns": S // 2}),
    ("out", "OUTCOME", 90, "", MET),
    ("in", "RECONFIGURATION", 91, "A1", {"done": True, "sources": 82, "targets": 64, "stopped_ns": S // 4}),
    ("out", "DECISION", 100, "", LEFT),
    ("out", "OUTCOME", 110, "", MET | {"actual_s": 12.0, "met": False}),
]


def write_trace(path: Path) -> Path:
    header = {"hocket_trace": 1, "version": "0.1.0", "node": "n", "start_ns": S, "start_unix_ns": 1}
    lines = [{d: kind, "time_ns": at * S, "application": name, **f} for d, kind, at, name, f in LINES]
    path.write_text("".join(json.dumps(line) + "\n" for line in [header, *lines]))
    return path


def events() -> list[Event]:
    return [Event(kind, fields, at * S, "n", name) for _, kind, at, name, fields in LINES]


def test_whose_io_phases_fit_no_period_is_told(tmp_path, capsys):
    hello = {"job": "j", "application_asked": "A1", "program": "/bin/a", "mpi": "mpich", "processes": 4}
    for models, told in ((["irregular"], True), (["irregular", "regular"], False)):
        path = write_trace(tmp_path / "run.jsonl")
        lines = [{"in": "HELLO", "time_ns": S, "application": "A1", "member": 1, **hello}]
        lines += [{"out": "MODEL", "time_ns": 5 * S, "modelled": "A1", "model": model} for model in models]
        path.write_text(path.read_text() + "".join(json.dumps(line) + "\n" for line in lines))
        assert main(["explain", "--trace", str(path)]) == 0
        assert ("no period fits the I/O phases of A1" in capsys.readouterr().out) == told
        assert main(["explain", "--trace", str(path), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["irregular"] == (["A1"] if told else [])


def test_a_trace_is_told_in_sentences(tmp_path, capsys):
    assert main(["explain", "--trace", str(write_trace(tmp_path / "run.jsonl"))]) == 0
    assert capsys.readouterr().out == (
        "decision 1, phase-shift at 80.00 s, 29.0 s ago: A1 expands from 64 to 82 processes because of A2\n"
        "  predicted     the I/O phases of A1 and A2 meet at 92.50 s, for 4.00 s\n"
        "  chosen        82 processes from iteration 412 on, 64 again at iteration 500; "
        "its next I/O phase begins at 89.00 s instead of 92.50 s\n"
        "  cost          18 cores for 10.00 s; stood still 0.750 s in 2 resizes\n"
        "  in its words  it is the shorter period\n"
        "  came of it    start of the next I/O phase: predicted 9.00 s ± 0.50 s, came 9.25 s: "
        "0.25 s later than predicted (2% of the I/O period), within what was assumed\n"
        "  came of it    start of the next I/O phase: predicted 9.00 s ± 0.50 s, came 12.00 s: "
        "3.00 s later than predicted (30% of the I/O period), outside of what was assumed: the prediction was off\n"
        "decision 2, phase-shift at 99.00 s, 10.0 s ago: A2 is left alone because of A1\n"
        "  predicted     the I/O phases of A2 and A1 meet at 119.00 s, for 1.00 s\n"
        "  in its words  82 processes do not reach the speedup 1.4\n"
        "\n"
        "predictions held against what happened\n"
        "  start of the next I/O phase: 2 predictions, 1 within what was assumed; "
        "error 1.62 s (16% of the I/O period) at the median, 3.00 s (30% of the I/O period) at the worst\n"
        "FLOP: not known (iterations) (A1)\n"
    )


def test_json_has_all_fields(tmp_path, capsys):
    assert main(["explain", "A2", "-n", "1", "--json", "--trace", str(write_trace(tmp_path / "run.jsonl"))]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["number"] for one in told["decisions"]] == [2]
    assert (told["decisions"][0]["from"], told["decisions"][0]["overlap_ns"], told["accuracy"]) == (8, S, [])


def test_it_says_what_flop_rest_on(tmp_path, capsys):
    path = write_trace(tmp_path / "run.jsonl")
    header, *lines = path.read_text().splitlines(keepends=True)
    one = {"time_ns": S, "member": 1}
    hello = {"in": "HELLO", **one, "application": "", "job": "j", "processes": 64}
    welcome = {"out": "WELCOME", **one, "application": "A1", "app": 7, "application_given": "A1"}
    path.write_text("".join([header, json.dumps(hello) + "\n", json.dumps(welcome) + "\n", *lines]))
    for kind, fields, of in (
        ("PROFILE", {"app": 7, "processes": 64, "flop_per_iteration": 1e9}, "profile of an earlier run"),
        ("MALLEABLE", {"processes": 64, "flop_per_iteration": 2e9}, "declared"),
        ("IO_PHASE", {"processes": 64, "iteration": 4, "flop": 3e9}, "hardware counters"),
    ):
        line = {"in": kind, "time_ns": 2 * S, "application": "A1", "member": 1, **fields}
        path.write_text(path.read_text() + json.dumps(line) + "\n")
        assert main(["explain", "A1", "--trace", str(path)]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == f"FLOP: {of} (A1)"
    assert main(["explain", "--json", "--trace", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["flop"] == {"A1": "counters"}


def test_of_many_applications_only_some_are_named():
    sources = {f"a{number}": "declared" for number in range(6)} | {"b": "", "c": "counters"}
    told = "FLOP: hardware counters (c), declared (a0, a1, a2, a3 and 2 more), not known (iterations) (b)"
    assert sources_text(sources) == told
    assert sources_text({}) == ""


def test_an_application_that_is_not_there_is_named(tmp_path, capsys):
    path = write_trace(tmp_path / "run.jsonl")
    assert main(["explain", "B", "--trace", str(path)]) == 1
    assert capsys.readouterr().err == f"hocket: no application 'B' in {path}\n"
    assert main(["explain", "-n", "0"]) == 2


def test_the_daemon_is_asked_and_its_trace_tells_the_cost(hocket_dir, tmp_path, capsys):
    agent = StandIn(hocket_dir / "hocketd.sock")
    agent.decisions = [{"type": "DECISION", **EXPANDS}, {"type": "OUTCOME", **MET}]
    agent.daemon |= {"trace": str(write_trace(tmp_path / "run.jsonl")), "started_ns": S, "now_ns": 120 * S}
    try:
        assert main(["explain", "A1", "-n", "4"]) == 0
    finally:
        agent.kill()
    out = capsys.readouterr().out
    assert "decision 1, phase-shift at 80.00 s, 39.0 s ago: A1 expands from 64 to 82 processes" in out
    assert "stood still 0.750 s in 2 resizes" in out
    asked = next(keys for keys in agent.received if keys["type"] == "EXPLAIN")
    assert (asked["count"], asked["application_asked"]) == (4, "A1")


def test_without_a_trace_the_daemon_still_tells(hocket_dir, capsys):
    agent = StandIn(hocket_dir / "hocketd.sock")
    agent.decisions = [{"type": "DECISION", **LEFT}]
    agent.daemon |= {"trace": "/nonexistent", "started_ns": S, "now_ns": 120 * S}
    try:
        assert main(["explain"]) == 0
        agent.decisions = []
        assert main(["explain"]) == 0
    finally:
        agent.kill()
    out = capsys.readouterr().out
    assert out.startswith("decision 2, phase-shift: A2 is left alone because of A1\n")
    assert out.endswith("nothing was decided so far\n")


def test_an_expansion_that_failed_costs_nothing_and_ends_nothing():
    failed = Event("RECONFIGURATION", {"done": False, "sources": 64, "targets": 82}, 82 * S, "n", "A1")
    found = collect([events()[0], failed]).all
    assert (found[0].stopped_ns, found[0].until_ns) == ([], 0)


def test_the_way_back_belongs_to_the_decision_that_went_forth():
    back = EXPANDS | {"number": 3, "action": "return", "from": 82, "to": 64}
    told = events()
    told.insert(3, Event("DECISION", back, 90 * S, "n", ""))
    found = collect(told).all
    assert [(one.number, one.stopped_ns) for one in found] == [(1, [S // 2, S // 4]), (3, []), (2, [])]


def test_unknown_fields_and_missing_ones_do_no_harm():
    found = collect([Event("DECISION", {"number": 1, "later": 5}), Event("OUTCOME", {"decision": 1, "more": 1})])
    assert [(one.number, len(one.outcomes)) for one in found.all] == [(1, 1)]
    assert found.all[0].heading().strip() == ""


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome(quantity="cores", predicted_s=4, actual_s=4, met=True), "cores: 4 came back"),
        (Outcome(quantity="cores", predicted_s=4, actual_s=2), "cores: 2 of 4 came back"),
        (
            Outcome(quantity="period", predicted_s=10, actual_s=17.3, uncertainty_s=8, period_s=10),
            "predicted 10.00 s ± 8.00 s, came 17.30 s: 7.30 s more than predicted (73% of the I/O period), "
            "off: what was assumed is too wide to predict anything",
        ),
        (Outcome(quantity="period", predicted_s=2, actual_s=2.5), "0.50 s more than predicted"),
        (Outcome(quantity="phase-start", predicted_s=2, actual_s=1), "1.00 s earlier than predicted"),
    ],
)
def test_outcomes_in_words(outcome, words):
    assert words in outcome.sentence()


def test_facts_are_worded_and_shown_as_json(tmp_path, capsys):
    shared = {"kind": "equal-part", "cores": 8, "applications": 2}
    fair = {"number": 3, "policy": "fair", "decided_for": "A1", "action": "expand", "from": 4, "to": 8, "text": ""}
    path = write_trace(tmp_path / "run.jsonl")
    line = {"out": "DECISION", "time_ns": 110 * S, "application": "", **fair, "reason": shared, "obstacle": {}}
    path.write_text(path.read_text() + json.dumps(line) + "\n")
    words = "A1 goes from 4 to 8 processes: an equal part of the 8 cores that 2 applications share"
    assert main(["explain", "-n", "1", "--trace", str(path)]) == 0
    assert f"  in its words  {words}\n" in capsys.readouterr().out
    assert main(["explain", "-n", "1", "--json", "--trace", str(path)]) == 0
    (told,) = json.loads(capsys.readouterr().out)["decisions"]
    assert (told["text"], told["reason"]) == (words, shared)


def test_hocketd_is_asked_once_for_all_that_is_shown(monkeypatch):
    asked = []
    answer = {"heading": "h", "sentence": "s", "brief": "b", "lines": []}
    monkeypatch.setattr("hocket.sentences._ask", lambda lines: asked.append(lines) or [answer] * len(lines))
    found = collect(Event("DECISION", {**EXPANDS, "number": number}) for number in range(7000, 7050)).all
    tell(found, S)
    for one in found:
        assert (one.heading(), one.sentence(), list(one.sentences(S))) == ("h", "s", [])
    assert len(asked) == 1


def test_without_hocketd_the_error_says_what_is_missing(monkeypatch):
    monkeypatch.setenv("HOCKET_PREFIX", "/nonexistent")
    with pytest.raises(HocketError, match="/nonexistent/bin/hocketd --explain"):
        sentences_of([{"out": "OUTCOME", "quantity": "never asked before"}])


def test_what_is_no_decision_is_refused():
    with pytest.raises(HocketError, match="'TICK' has no sentences: give a DECISION or an OUTCOME"):
        sentences_of([{"in": "TICK"}])


def test_starts_of_phases_come_first_in_the_summary():
    period = Outcome(quantity="period", predicted_s=2, actual_s=3)
    start = Outcome(quantity="phase-start", predicted_s=2, actual_s=1.5, met=True)
    assert accuracies([PolicyDecision(outcomes=[period, start])]) == [
        Accuracy("phase-start", 1, 1, 0.5, 0.5),
        Accuracy("period", 1, 0, 1.0, 1.0),
    ]


def test_what_came_back_is_no_prediction():
    back = Outcome(quantity="cores", predicted_s=22, actual_s=22, met=True)
    assert accuracies([PolicyDecision(outcomes=[back])]) == []


def test_errors_are_stated_as_shares_of_the_period_where_it_is_known_of_all():
    known = Outcome(quantity="period", predicted_s=2, actual_s=3, period_s=2)
    (one,) = accuracies([PolicyDecision(outcomes=[known, known])])
    assert (one.median_share, one.worst_share) == (0.5, 0.5)
    (one,) = accuracies([PolicyDecision(outcomes=[known, Outcome(quantity="period", predicted_s=2, actual_s=9)])])
    assert (one.median_share, one.worst_share) == (None, None)
