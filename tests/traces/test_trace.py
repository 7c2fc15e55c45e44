"""Reading of traces, and their analysis: on the golden traces and on small ones written here."""

from __future__ import annotations

import itertools
import json
import random

import pytest
from checkout import DATA
from hocket.analysis import Analysis, Spent, analyse
from hocket.bus import Event
from hocket.cli import main
from hocket.comparison import ALONE, SCHEDULED, UNCOORDINATED, Run, compare
from hocket.lanes import COMPUTING, IO, WAITING, Interval, coalesce, overlaps, overlay, seconds
from hocket.trace import TraceError, read_trace

S = 1_000_000_000
HEADER = '{"hocket_trace": 1, "version": "0.1.0", "node": "n", "start_unix_ns": 0, "start_ns": 5, "settings": {}}\n'


def event(kind: str, at_s: float, application: str = "a", member: int = 1, **fields) -> Event:
    return Event(kind, fields, int(at_s * S), "n", application, member)


def analysed(*events: Event) -> Analysis:
    analysis = Analysis()
    for one in [
        event("HELLO", 0, application="", job="j", processes=2, program="/x", mpi="mpich"),
        event("WELCOME", 0, app=1, application_given="a", policy="fcfs"),
        *events,
    ]:
        analysis.feed(one)
    return analysis


def lane(analysis: Analysis) -> list[tuple[str, float, float]]:
    return [(p.kind, p.start_ns / S, p.end_ns / S) for p in analysis.named("a").intervals(analysis.now_ns)]


def test_reads_a_golden_trace():
    trace = read_trace(DATA / "fcfs.jsonl")
    assert (trace.node, trace.settings, trace.cut_short) == ("node1", {"policy": "fcfs"}, False)
    assert trace.events[0].type == "HELLO"
    assert trace.events[0]["application_asked"] == "jacobi-a"


def test_a_last_line_cut_short_is_left_out(tmp_path):
    whole = (DATA / "fcfs.jsonl").read_bytes()
    for cut in (1, 2, 40):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(whole[:-cut])
        trace = read_trace(path)
        assert (len(trace.events), trace.cut_short) == (whole.count(b"\n") - (2 if cut > 1 else 1), cut > 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: not a trace of hocket"),
        ("[]\n", "line 1: not a trace of hocket"),
        ('{"version": 1}\n', "line 1: not a trace of hocket"),
        (HEADER.replace('"hocket_trace": 1', '"hocket_trace": 9'), "line 1: a trace of version 9; this hocket reads"),
        (HEADER + '{"in": "TICK", "time_ns": 5}\nnonsense\n{"in": "TICK", "time_ns": 6}\n', "line 3: no event"),
        (HEADER + '{"time_ns": 5}\n', "line 2: no event"),
        (HEADER + '{"in": "TICK"}\n', "line 2: no event"),
        (HEADER + "7\n", "line 2: no event"),
    ],
)
def test_says_where_a_file_is_no_trace(tmp_path, text, message):
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(TraceError, match=message):
        read_trace(path)


def test_says_which_file_is_not_there(tmp_path, capsys):
    assert main(["trace", "summary", str(tmp_path / "none.jsonl")]) == 1
    assert (
        capsys.readouterr().err == f"hocket: cannot read the trace {tmp_path}/none.jsonl: No such file or directory\n"
    )


def test_an_operation_waits_until_its_grant_and_does_io_until_its_end():
    analysis = analysed(
        event("START_IO", 2, request=1, target="dev:1", bytes=10),
        event("QUEUED_IO", 2, request=1, position=1, behind="b"),
        event("QUEUED_IO", 3, request=1, position=1, behind="b"),
        event("GRANT_IO", 4, request=1, waited_ns=2 * S, target="dev:1"),
        event("FINISH_IO", 7, request=1, io_ns=3 * S),
        event("BYE", 8, io_ns=3 * S, bytes_written=20),
    )
    assert lane(analysis) == [(COMPUTING, 0, 2), (WAITING, 2, 4), (IO, 4, 7), (COMPUTING, 7, 8)]
    application = analysis.named("a")
    assert (application.io_s(), application.wait_s(analysis.now_ns), application.total_s(0)) == (3, 2, 8)
    assert (application.processes, application.bytes("written"), application.lost) == (2, 20, "")
    assert [d.text() for d in analysis.decisions] == ["queued behind b", "granted after 2.00 s"]


def test_an_operation_without_a_grant_did_its_io_at_its_end():
    analysis = analysed(event("START_IO", 1, request=1), event("FINISH_IO", 9, request=1, io_ns=2 * S))
    assert lane(analysis) == [(COMPUTING, 0, 1), (WAITING, 1, 7), (IO, 7, 9)]


def test_a_phase_without_grants_is_io_and_one_with_grants_counts_once():
    figures = {"io_ns": S, "wait_ns": 0, "cpu_ns": 0, "comm_ns": 0, "operations": 1, "bytes_read": 5}
    analysis = analysed(
        event("START_IO", 1, request=1),
        event("GRANT_IO", 1, request=1),
        event("FINISH_IO", 2, request=1, io_ns=S),
        event("IO_PHASE", 2, index=0, start_ns=1 * S, end_ns=2 * S, **figures),
        event("IO_PHASE", 6, index=1, start_ns=4 * S, end_ns=6 * S, **figures),
    )
    assert lane(analysis) == [(COMPUTING, 0, 1), (IO, 1, 2), (COMPUTING, 2, 4), (IO, 4, 6)]
    assert (analysis.named("a").io_s(), analysis.named("a").bytes("read")) == (2, 10)


def test_what_a_process_reports_of_itself_is_io_time_and_no_phase():
    figures = {"index": 0, "io_ns": 2 * S, "wait_ns": 0, "cpu_ns": 0, "comm_ns": 0, "operations": 1, "bytes_written": 5}
    analysis = analysed(
        event("IO_PHASE", 4, start_ns=1 * S, end_ns=3 * S, **figures),
        event("IO_PHASE", 4, member=2, start_ns=2 * S, end_ns=4 * S, of_one_process=True, **figures),
    )
    application = analysis.named("a")
    assert (application.io_s(), application.bytes("written"), len(application.io_phases)) == (3, 10, 1)


def test_computing_and_communication_are_of_all_processes():
    spent = {"cpu_ns": 9 * S, "comm_ns": 6 * S, "processes": 3, "cpu_most_ns": 5 * S, "comm_most_ns": 4 * S}
    figures = {"io_ns": 0, "wait_ns": 0, "operations": 1, "start_ns": S, "end_ns": 2 * S}
    told = {"told_processes": 3, "all_cpu_ns": 6 * S, "all_comm_ns": 3 * S, "cpu_most_ns": 3 * S, "comm_most_ns": 2 * S}
    events = [
        event("IO_PHASE", 2, index=0, cpu_ns=S, comm_ns=S, **figures),
        event("IO_PHASE", 3, member=2, index=0, cpu_ns=3 * S, comm_ns=0, of_one_process=True, **figures),
        event("IO_PHASE", 4, index=1, cpu_ns=S, comm_ns=0, **figures, **told),
        event("BYE", 5, member=2),
        event("BYE", 6, **spent),
    ]
    assert analysed(*events[:2]).named("a").spent() == Spent(2, 2.0, 0.5, 3.0, 1.0)
    assert analysed(*events[:3]).named("a").spent() == Spent(3, 2.0, 1.0, 3.0, 2.0)
    assert analysed(*events).named("a").spent() == Spent(3, 3.0, 2.0, 5.0, 4.0)
    assert analysed(events[0]).named("a").spent() == Spent(1, 1.0, 1.0, 1.0, 1.0)
    assert analysed(event("START_IO", 1, request=1)).named("a").spent() == Spent()


def test_a_lost_application_ends_there():
    analysis = analysed(
        event("START_IO", 1, request=1),
        event("GRANT_IO", 1, request=1),
        event("LEASE_EXPIRED", 2, request=1, holder="a", target="dev:1"),
        event("LOST", 3, reason="connection closed"),
        event("START_IO", 5, application="b", member=2),
    )
    assert lane(analysis) == [(COMPUTING, 0, 1), (IO, 1, 3)]
    assert analysis.named("a").lost == "connection closed"
    assert [d.kind for d in analysis.decisions] == ["granted", "lease expired"]


def test_members_of_one_application_share_its_lane():
    analysis = analysed(
        event("HELLO", 1, application="", member=2, job="j", processes=0),
        event("WELCOME", 1, member=2, app=1, application_given="a"),
        event("START_IO", 2, member=2, request=1),
        event("GRANT_IO", 2, member=2, request=1),
        event("START_IO", 3, member=1, request=1),
        event("FINISH_IO", 4, member=2, request=1, io_ns=2 * S),
        event("BYE", 5, member=2),
        event("GRANT_IO", 6, member=1, request=1),
        event("FINISH_IO", 7, member=1, request=1, io_ns=S),
        event("BYE", 8, member=1),
    )
    assert len(analysis.applications) == 1
    assert lane(analysis) == [(COMPUTING, 0, 2), (IO, 2, 4), (WAITING, 4, 6), (IO, 6, 7), (COMPUTING, 7, 8)]


def test_spawned_processes_that_come_late_belong_to_the_same_application():
    analysis = analysed(
        event("BYE", 1, io_calls=2),
        event("HELLO", 2, application="", member=2, job="j", processes=3),
        event("WELCOME", 2, member=2, app=2, application_given="a"),
        event("BYE", 4, member=2, io_calls=3),
    )
    assert [(a.name, a.processes, a.sums["io_calls"]) for a in analysis.applications] == [("a", 5, 5)]
    assert analysis.named("a").total_s(0) == 4


def test_tools_are_no_applications():
    analysis = Analysis()
    analysis.feed(event("HELLO", 0, application="", member=7, job="", processes=0))
    analysis.feed(event("WELCOME", 0, application="", member=7, app=0))
    analysis.feed(event("LOST", 1, application="", member=7))
    assert analysis.applications == []


def test_a_lane_agrees_with_a_moment_by_moment_model():
    rng = random.Random(20240117)
    for _ in range(200):
        parts = [
            Interval(rng.choice((WAITING, IO)), start, start + rng.randint(0, 9))
            for start in (rng.randint(0, 40) for _ in range(rng.randint(0, 8)))
        ]
        lane = list(overlay(parts, 5, 45))
        for moment in range(5, 45):
            kinds = {p.kind for p in parts if p.start_ns <= moment < p.end_ns}
            expected = IO if IO in kinds else WAITING if WAITING in kinds else COMPUTING
            assert [p.kind for p in lane if p.start_ns <= moment < p.end_ns] == [expected], (parts, moment)
        assert all(before.end_ns == after.start_ns for before, after in itertools.pairwise(lane))


def test_overlaps_agree_with_a_moment_by_moment_model():
    rng = random.Random(7)
    for _ in range(200):
        lanes = [
            list(overlay([Interval(IO, s, s + rng.randint(1, 9)) for s in rng.sample(range(40), 4)], 0, 50))
            for _ in range(3)
        ]
        found = overlaps(lanes)
        for moment in range(50):
            writing = sum(p.kind == IO and p.start_ns <= moment < p.end_ns for lane in lanes for p in lane)
            assert any(p.start_ns <= moment < p.end_ns for p in found) == (writing >= 2)


def test_coalesce_joins_across_short_computing_only():
    parts = [Interval(IO, 0, 10), Interval(COMPUTING, 10, 11), Interval(IO, 11, 20), Interval(COMPUTING, 20, 30)]
    assert coalesce(parts, 5) == [Interval(IO, 0, 20), Interval(COMPUTING, 20, 30)]
    assert coalesce(parts, 1) == parts


def test_coalesce_puts_short_intervals_together():
    parts = [Interval(COMPUTING, 0, 100)]
    for at in range(100, 200, 4):
        parts += [Interval(WAITING, at, at + 1), Interval(IO, at + 1, at + 3), Interval(COMPUTING, at + 3, at + 4)]
    parts.append(Interval(COMPUTING, 200, 300))
    assert coalesce(parts, 48) == [parts[0], Interval(IO, 100, 200, pytest.approx(0.5, abs=0.05)), parts[-1]]


def test_factors_of_the_golden_runs():
    runs = [
        Run("alone", [DATA / "alone-a.jsonl", DATA / "alone-b.jsonl"], ALONE),
        Run("together", [DATA / "uncoordinated.jsonl"], UNCOORDINATED),
        Run("turns", [DATA / "fcfs.jsonl"], SCHEDULED),
    ]
    rows = {(row.application, row.run): row for row in compare(runs)}
    alone, together, turns = (rows["jacobi-b", run] for run in ("alone", "together", "turns"))
    assert together.interference == pytest.approx(together.io_s / alone.io_s)
    assert turns.cost == pytest.approx((turns.io_s + turns.wait_s) / alone.io_s)
    assert together.interference > 1.2
    assert (alone.interference, alone.cost, together.cost, turns.interference) == (None, None, None, None)
    assert turns.io_s == pytest.approx(alone.io_s, rel=0.01)  # a writer with the target to itself is as fast as alone
    assert runs[2].analyses[0].overlaps() == []
    both = sum(part.seconds for part in runs[1].analyses[0].overlaps())
    assert both == pytest.approx(2 * (together.io_s - alone.io_s), rel=0.02)  # half the bandwidth while both write


def test_lanes_of_a_golden_trace_add_up():
    analysis = analyse(read_trace(DATA / "fcfs.jsonl"))
    for application in analysis.applications:
        lane = application.intervals(analysis.now_ns)
        assert sum(part.seconds for part in lane) == pytest.approx(application.total_s(analysis.now_ns))
        assert seconds(lane, IO) == pytest.approx(application.io_s(), rel=0.01)
        assert seconds(lane, WAITING) == pytest.approx(application.wait_s(analysis.now_ns))


def test_summary_as_json(capsys):
    assert main(["trace", "summary", "--json", str(DATA / "fcfs.jsonl")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [a["application"] for a in told["applications"]] == ["jacobi-a", "jacobi-b"]
    assert told["applications"][0]["phases"] == 5


def test_perfetto_export_is_a_valid_chrome_trace(tmp_path):
    out = tmp_path / "out.json"
    assert main(["trace", "export", "--format", "perfetto", str(DATA / "fcfs.jsonl"), "-o", str(out)]) == 0
    told = json.loads(out.read_text())
    by_phase: dict[str, list] = {"M": [], "X": [], "i": []}
    for one in told["traceEvents"]:
        by_phase[one["ph"]].append(one)  # no other phase
        assert isinstance(one["pid"], int)
        assert isinstance(one["tid"], int)
        assert isinstance(one["name"], str)
    names = {one["pid"]: one["args"]["name"] for one in by_phase["M"] if one["name"] == "process_name"}
    assert sorted(names.values()) == ["jacobi-a", "jacobi-b"]
    analysis = analyse(read_trace(DATA / "fcfs.jsonl"))
    for pid, name in names.items():
        slices = [one for one in by_phase["X"] if one["pid"] == pid]
        assert {one["name"] for one in slices} == {"computing", "waiting", "I/O"}
        assert all(one["dur"] > 0 and one["ts"] >= 0 for one in slices)
        ends = [one["ts"] + one["dur"] for one in slices[:-1]]
        assert ends == pytest.approx([one["ts"] for one in slices[1:]])  # one track: no gaps, no overlaps
        io_s = sum(one["dur"] for one in slices if one["name"] == "I/O") / 1e6
        assert io_s == pytest.approx(analysis.named(name).io_s(), rel=0.01)
    assert all(one["s"] == "t" and one["ts"] >= 0 for one in by_phase["i"])
    assert "queued behind jacobi-b" in [one["name"] for one in by_phase["i"]]
