"""I/O time and waiting time of an application of several processes: one definition, checked on a trace made by hand."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hocket.analysis import analyse
from hocket.busy import Part, parts_of, times_of
from hocket.comparison import Run, compare
from hocket.top.feed import from_trace
from hocket.trace import read_trace

S = 1_000_000_000
MS = 1_000_000
pytestmark = pytest.mark.timeout(60)

# Two processes of one application; the times are in seconds.
#   first:   waits 1 to 2, writes 2 to 4;  waits 6 to 7, writes 7 to 8
#   second:  waits 1 to 3, writes 3 to 5
# At least one process writes from 2 to 5 and from 7 to 8: 4 s. From 1 to 2 and from 6 to 7 at least one waits and none
# writes: 2 s.
OPERATIONS = [(1, 1, 2, 4), (2, 1, 3, 5), (1, 6, 7, 8)]
IO_S, WAITED_S = 4.0, 2.0


def phase(index: int, spans: list[tuple[int, int, int]], with_intervals: bool) -> dict:
    start, end = spans[0][0], spans[-1][2]
    told = {"index": index, "start_ns": start * S, "end_ns": end * S, "target": "t", "operations": len(spans)}
    told["io_ns"] = sum(end - granted for _, granted, end in spans) * S
    told["wait_ns"] = sum(granted - asked for asked, granted, _ in spans) * S
    if with_intervals:
        told["io_intervals"] = " ".join(f"{(granted - start) * S}:{(end - granted) * S}" for _, granted, end in spans)
        told["wait_intervals"] = " ".join(
            f"{(asked - start) * S}:{(granted - asked) * S}" for asked, granted, _ in spans
        )
    return told


def write_trace(path: Path, reports: str = "intervals") -> Path:
    """Write the trace and return its path.

    `reports` is "intervals", "sums" (an older trace), or "" (the run was cut off).
    """
    lines = [(0, "in", "HELLO", member, {"job": "j", "processes": 1}) for member in (1, 2)]
    lines += [(0, "out", "WELCOME", member, {"app": 1, "application_given": "a"}) for member in (1, 2)]
    for request, (member, asked, granted, end) in enumerate(OPERATIONS, start=1):
        lines.append((asked, "in", "START_IO", member, {"request": request, "target": "t"}))
        lines.append((granted, "out", "GRANT_IO", member, {"request": request, "waited_ns": (granted - asked) * S}))
        lines.append((end, "in", "FINISH_IO", member, {"request": request, "io_ns": (end - granted) * S}))
    if reports:
        exact = reports == "intervals"
        lines.append((4.5, "in", "IO_PHASE", 1, phase(0, [(1, 2, 4)], exact)))
        lines.append((5.5, "in", "IO_PHASE", 2, phase(0, [(1, 3, 5)], exact)))
        lines.append((8.5, "in", "IO_PHASE", 1, phase(1, [(6, 7, 8)], exact)))
        lines += [(10, "in", "BYE", member, {}) for member in (1, 2)]
    lines.sort(key=lambda line: line[0])
    header = {"hocket_trace": 1, "version": "0.1.0", "node": "n", "start_ns": 0, "start_unix_ns": 1}
    told = [
        {
            way: kind,
            "time_ns": int(at * S),
            "node": "n",
            "application": "" if kind == "HELLO" else "a",
            "member": member,
            **fields,
        }
        for at, way, kind, member, fields in lines
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in [header, *told]))
    return path


@pytest.mark.parametrize("reports", ["intervals", ""])
def test_what_processes_do_at_once_counts_once(tmp_path, reports):
    trace = read_trace(write_trace(tmp_path / "t.jsonl", reports))
    (application,) = analyse(trace).applications
    assert application.io_s(10 * S) == pytest.approx(IO_S)
    assert application.wait_s(10 * S) == pytest.approx(WAITED_S)


def test_an_older_trace_goes_by_its_sums(tmp_path):
    """Check the estimates from the sums of an older trace.

    They are exact for one process. Several processes are assumed independent, and never exceed the sums.
    """
    trace = read_trace(write_trace(tmp_path / "t.jsonl", "sums"))
    (application,) = analyse(trace).applications
    assert 3 < application.io_s(10 * S) < 5
    assert 1 < application.wait_s(10 * S) < 3
    of_one = [one for one in application.phases if one.member == 1]
    times = times_of(part for one in of_one for part in one.parts())
    assert (times.io_ns, times.wait_ns) == (pytest.approx(3 * S), pytest.approx(2 * S))


def test_all_figures_use_the_one_definition(tmp_path):
    path = write_trace(tmp_path / "t.jsonl")
    (row,) = compare([Run("fcfs", [path], "scheduled")], {"a": 3.0})
    assert (row.io_s, row.wait_s) == (pytest.approx(IO_S), pytest.approx(WAITED_S))
    assert row.cost == pytest.approx((IO_S + WAITED_S) / 3.0)
    model = from_trace(str(path), None)
    assert model.waited_s(model.analysis.named("a")) == pytest.approx(WAITED_S)


def test_a_burst_counts_without_the_gap_at_its_end(tmp_path):
    """A process that reports no phases: libhocket ends its burst a while after the last access."""
    path = write_trace(tmp_path / "t.jsonl", "")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line.get("in") == "FINISH_IO":
            line["time_ns"] += S // 10
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (application,) = analyse(read_trace(path)).applications
    assert application.io_s(10 * S) == pytest.approx(IO_S)
    assert application.wait_s(10 * S) == pytest.approx(WAITED_S)


def test_a_wait_counts_while_it_lasts(tmp_path):
    model = from_trace(str(write_trace(tmp_path / "t.jsonl")), 6.5)
    assert model.waited_s(model.analysis.named("a")) == pytest.approx(1.5)


def test_what_is_forgotten_still_counts(tmp_path):
    trace = read_trace(write_trace(tmp_path / "t.jsonl"))
    (application,) = analyse(trace).applications
    application.forget_before(int(5.7 * S))
    assert len(application.phases) == 1
    assert application.io_s(10 * S) == pytest.approx(IO_S)
    assert application.wait_s(10 * S) == pytest.approx(WAITED_S)


@pytest.mark.parametrize("text", ["", "x", "1", "1:", "0:-5", "0:5 3:5", "0:5:6", "0:5:", "0:5 ", "0:5,10:5"])
def test_intervals_that_cannot_be_count_as_none(text):
    times = times_of(parts_of(1000, 2000, 250, 500, text))
    assert (times.io_ns, times.wait_ns) == (pytest.approx(250), pytest.approx(500))


def test_intervals_may_be_partly_busy():
    times = times_of(parts_of(1000, 2000, 1, 1, "0:100 500:200:50 900:500", "100:400"))
    assert (times.io_ns, times.wait_ns) == (pytest.approx(250), pytest.approx(400))


def test_whole_intervals_are_exact():
    rng = random.Random(5)
    for _ in range(100):
        length, parts = 300, []
        io, waits = [0] * length, [0] * length
        for _member in range(4):
            now = rng.randrange(50)
            while now < length:
                end = min(length, now + 1 + rng.randrange(40))
                writes = rng.random() < 0.5
                parts.append(Part(now, end, float(writes), float(not writes)))
                for at in range(now, end):
                    (io if writes else waits)[at] += 1
                now = end + rng.randrange(60)
        times = times_of(parts)
        assert times.io_ns == pytest.approx(sum(count > 0 for count in io))
        assert times.wait_ns == pytest.approx(sum(i == 0 and w > 0 for i, w in zip(io, waits, strict=True)))
