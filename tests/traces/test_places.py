"""Nodes and jobs of applications: what ls, top, explain, events, and the report show of them, and when."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hocket.analysis import analyse
from hocket.bus import Bus, Event
from hocket.cli import main
from hocket.places import Place, nodes_in, slurm_job
from hocket.report import Run, write_report
from hocket.trace import read_trace
from hocket.verbs.events import Places, line
from hocket.verbs.ls import table
from stand_in_hocketd import StandIn

pytestmark = pytest.mark.timeout(60)
S = 1_000_000_000
STEP = "slurm:cluster:1234.0"
WAITS = {"number": 1, "policy": "fcfs", "decided_for": "b", "because_of": "a", "action": "wait"}


def joins(member: int, name: str, job: str, node: str) -> list[dict[str, Any]]:
    one = {"time_ns": member * S, "member": member}
    return [
        {"in": "HELLO", **one, "node": node, "application": "", "job": job, "application_asked": name, "processes": 2},
        {"out": "WELCOME", **one, "application": name, "app": member, "application_given": name, "policy": "fcfs"},
    ]


def write_trace(path: Path, jobs: tuple[str, str], nodes: tuple[str, str], *more: dict[str, Any]) -> Path:
    """Write the trace of a daemon on n1, where b waits for a."""
    header = {"hocket_trace": 2, "version": "0.1.0", "node": "n1", "start_ns": S, "start_unix_ns": 1}
    reason = {"reason": {"kind": "access", "target": "t"}, "obstacle": {}}
    decision = {"out": "DECISION", "time_ns": 5 * S, "application": "", "member": 0, **WAITS, **reason}
    lines = [*joins(1, "a", jobs[0], nodes[0]), *joins(2, "b", jobs[1], nodes[1]), decision, *more]
    path.write_text("".join(json.dumps(one) + "\n" for one in (header, *lines)))
    return path


def shown(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


@pytest.fixture
def hocketd(hocket_dir: Path) -> Iterator[StandIn]:
    one = StandIn(hocket_dir / "hocketd.sock")
    yield one
    one.kill()


@pytest.mark.parametrize(
    ("jobs", "nodes", "of_a", "of_b"),
    [
        (("j1", "j2"), ("n1", "n1"), "", ""),
        ((STEP, "j2"), ("n1", "n1"), "job 1234.0", ""),
        (("j1", "j2"), ("n1", "n2"), "on n1", "on n2"),
        (("j1", "j2"), ("n2", "n2"), "on n2", "on n2"),  # the daemon's own node is another one
        ((STEP, "j2"), ("n1", "n2"), "on n1, job 1234.0", "on n2"),
    ],
)
def test_views_of_a_trace_show_nodes_if_there_are_several_and_jobs(
    jobs: tuple[str, str], nodes: tuple[str, str], of_a: str, of_b: str, tmp_path: Path, capsys
) -> None:
    trace = write_trace(tmp_path / "run.jsonl", jobs, nodes)
    told = ", ".join(f"{name} ({where})" for name, where in (("b", of_b), ("a", of_a)) if where)
    explained = shown(capsys, "explain", "--trace", trace)
    assert ("where they run" in explained) == bool(told)
    assert explained.endswith(f"where they run: {told}\n" if told else "on t\n"), explained
    lines = shown(capsys, "top", "--from-trace", trace, "--width", "100").splitlines()
    for name, where in (("a", of_a), ("b", of_b)):
        (lane,) = (number for number, text in enumerate(lines) if text.startswith(f"{name} ") and "│" in text)
        assert lines[lane + 1].strip() == (f"{where} · 2 processes" if where else "2 processes")
    report = write_report([Run("run", [trace])], tmp_path / "report", "title")
    assert [row.place for row in report.rows] == [of_a, of_b]
    page = report.html.read_text()
    assert page.count("run<small>") == bool(of_a) + bool(of_b)
    assert all(f"run<small>{where}</small>" in page for where in (of_a, of_b) if where)
    assert main(["explain", "--json", "--trace", str(trace)]) == 0
    job = "1234.0" if jobs[0] == STEP else ""
    assert json.loads(capsys.readouterr().out)["places"]["a"] == {"nodes": [nodes[0]], "job": job, "user": ""}


def test_a_malleable_application_is_where_it_computes(tmp_path: Path) -> None:
    one = {"node": "n1", "application": "a", "member": 1}
    grown = {"in": "RECONFIGURATION", "time_ns": 7 * S, **one, "done": True, "sources": 2, "targets": 6}
    held = {"in": "HELD_NODES", "time_ns": S, "node": "n1", "application": "", "member": 9, "job": "user 7: j1"}
    events = [
        {**held, "allocation": "user 7: 77", "nodes": "n1=2 n3=4"},
        {"in": "MALLEABLE", "time_ns": 6 * S, **one, "processes": 2, "nodes": "n3=2"},
        {**grown, "nodes": "n3=2 n4=2 n5=2"},
    ]
    for number, nodes in ((2, ("n3",)), (3, ("n3", "n4", "n5"))):
        trace = read_trace(
            write_trace(tmp_path / f"{number}.jsonl", ("user 7: j1", "j2"), ("n1", "n1"), *events[:number])
        )
        assert analyse(trace).named("a").place == Place(nodes, "77")
    assert Place(("n3", "n4", "n5"), "77").text(with_nodes=True) == "on n3 and 2 more, job 77"


def test_processes_of_several_nodes_are_one_application(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "run.jsonl", ("j1", "j2"), ("n1", "n2"), *joins(3, "a", "j1", "n2"))
    assert analyse(read_trace(trace)).named("a").place.text(with_nodes=True) == "on n1 n2"


def test_names_in_events() -> None:
    jobs = [slurm_job({"job": job}) for job in (STEP, "slurm:c:9_7.0:1", "n1-77-5", "slurm:")]
    assert jobs == ["1234.0", "9_7.0", "", ""]
    assert slurm_job({"job": f"user 1000: {STEP}"}) == "1234.0", "a daemon of all users names jobs so"
    assert slurm_job({"job": STEP, "slurm_step": "77.batch"}) == "77.batch", "the kernel knows better"
    assert nodes_in("n1=2 n2=1 n3") == ("n1", "n2", "n3")
    assert Place(("n\x1b[2J",), "1\n").text(with_nodes=True) == "on n?[2J, job 1?"


def test_ls_has_a_column_of_nodes_if_there_are_several(hocketd: StandIn, capsys) -> None:
    figures = {"state": "io", "processes": 2, "phases": 1, "last_io_end_ns": 0, "wait_ns": 0, "period_ns": 0}
    figures |= {"period_spread_ns": 0, "next_start_ns": 0, "target": "", "parts": "", "since_ns": 1}
    a = {"application": "a", "job": STEP, "on_node": "node1", **figures}
    b = {"application": "b", "job": "j", "on_node": "node1", **figures}
    hocketd.daemon |= {"now_ns": S}
    hocketd.applications = [a, b]
    assert shown(capsys, "ls").splitlines()[0].split()[:3] == ["APPLICATION", "JOB", "STATE"]
    hocketd.applications = [a, b | {"on_node": "n2"}]
    listed = [one.split()[:4] for one in shown(capsys, "ls").splitlines()]
    assert listed == [["APPLICATION", "JOB", "NODE", "STATE"], ["a", "1234.0", "node1", "io"], ["b", "n2", "io", "2"]]
    assert "NODE" not in table([b], S)
    hocketd.applications = [b | {"on_node": "node1", "nodes": "n3=2 n4=2 n5=1"}]
    assert "b            n3 and 2 more  io" in shown(capsys, "ls")


def test_applications_of_other_users_are_told(hocketd: StandIn, capsys, tmp_path: Path) -> None:
    """Those of the own user, and of users whom nobody knows, are not: then the list says nothing of users."""
    figures = {"state": "io", "processes": 2, "phases": 1, "last_io_end_ns": 0, "wait_ns": 0, "period_ns": 0}
    figures |= {"period_spread_ns": 0, "next_start_ns": 0, "target": "", "parts": "", "since_ns": 1}
    own = {"application": "a", "job": "j", "on_node": "node1", "user": os.getuid(), **figures}
    hocketd.daemon |= {"now_ns": S}
    hocketd.applications = [own, own | {"application": "b", "user": -1}]
    assert "USER" not in shown(capsys, "ls")
    name = pwd.getpwall()[1].pw_name
    other = own | {"application": "b", "user": pwd.getpwnam(name).pw_uid, "slurm_step": "77.0"}
    hocketd.applications = [own, other, own | {"application": "c", "user": 2**31 - 2}]
    listed = [one.split()[:4] for one in shown(capsys, "ls").splitlines()]
    assert listed == [
        ["APPLICATION", "USER", "JOB", "STATE"], ["a", "io", "2", "1"], ["b", name, "77.0", "io"],
        ["c", str(2**31 - 2), "io", "2"],
    ]  # fmt: skip
    with Bus.connect(hocketd.socket) as bus:
        assert Places(bus).known_of(Event("START_IO", {}, S, "node1", "b"))["user"] == name
    hello, welcome = joins(1, "a", "j1", "n1")
    trace = write_trace(tmp_path / "run.jsonl", ("j1", "j2"), ("n1", "n1"))
    lines = trace.read_text().splitlines(keepends=True)
    stamped = json.dumps(hello | {"user": other["user"], "slurm_step": "77.0"}) + "\n"
    trace.write_text("".join([lines[0], stamped, json.dumps(welcome) + "\n", *lines[3:]]))
    assert analyse(read_trace(trace)).named("a").place.text(with_nodes=False) == f"job 77.0, of {name}"


def test_events_show_what_hocketd_lists_of_their_applications(hocketd: StandIn) -> None:
    hocketd.applications = [{"application": "a", "job": STEP, "on_node": "node1"}]
    with Bus.connect(hocketd.socket) as bus:
        places = Places(bus)
        own = {"user": ""}
        assert places.known_of(Event("START_IO", {}, S, "node1", "a")) == {"node": "", "job": "1234.0"} | own
        hocketd.applications.append({"application": "b", "job": "slurm:c:5.1", "on_node": "n2"})
        assert places.known_of(Event("WELCOME", {}, S, "n2", "b")) == {"node": "n2", "job": "5.1"} | own
        assert places.known_of(Event("START_IO", {}, S, "node1", "a")) == {"node": "node1", "job": "1234.0"} | own
        asked = len(hocketd.events("LIST"))
        for _ in range(3):
            assert places.known_of(Event("BYE", {}, S, "n2", "ended")) == {"node": "n2", "job": ""} | own
        assert len(hocketd.events("LIST")) == asked + 1, "an application that has ended is asked for once"
        hocketd.applications = [{"application": "ended", "job": "slurm:c:7.0", "on_node": "n2"}]
        assert places.known_of(Event("WELCOME", {}, S, "n2", "ended"))["job"] == "7.0", "another one of that name"


def test_events_have_node_and_job_before_their_fields() -> None:
    event = Event("START_IO", {"request": 1}, 2 * S, "n1", "a")
    assert line(event).endswith("START_IO       request=1")
    assert line(event, {"node": "n1", "job": ""}).endswith("START_IO       node=n1 request=1")
    assert line(event, {"node": "n1", "job": "12.0"}).endswith("START_IO       node=n1 job=12.0 request=1")
    asked = Event("HELLO", {"job": STEP}, 2 * S, "n1")
    assert line(asked, {"node": "n1", "job": ""}).endswith(f"HELLO          node=n1 job={STEP}")
