"""Policies in Python of the kind `servers`, with stand-in servers."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from hocket.bus import Bus
from policy_page import blocks
from stand_in_server import report, say_hello

pytestmark = pytest.mark.timeout(120)
LIMIT_S = 40
MS = 10**6
HOCKET = (sys.executable, "-m", "hocket.cli")
HEAD = 'NAME = "mine"\nKIND = "servers"\n\n\ndef decide(view, event):\n'
# Each application gets a server of its own, as long as there are enough.
ONE_EACH = """    up = [server for server in view.servers if server.state == "up"]
    pairs = zip(view.applications, up)
    return [{"assign": a, "servers": [s], "text": f"{s.name} is for {a.name}"} for a, s in pairs]
"""
# It takes turns between two servers at each event.
RESTLESS = """    turn = event.time_ns // 1000 % 2
    return [{"assign": a, "servers": [f"s{turn + 1}"]} for a in view.applications]
"""


def hocket(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*HOCKET, *arguments], capture_output=True, text=True, timeout=LIMIT_S)


@pytest.fixture
def decides(tmp_path: Path, start_daemon):
    """Return a function that starts a daemon with a policy of this body of `decide`."""

    def start(body: str):
        path = tmp_path / "mine.py"
        path.write_text(HEAD + body)
        daemon = start_daemon("--policy-file", path)
        daemon.policy_file = path
        return daemon

    return start


@pytest.fixture
def members():
    """Return a function that makes a stand-in server, named s1 and so on, or an application."""
    with ExitStack() as stack:

        def make(name: str) -> Bus:
            bus = stack.enter_context(Bus.connect())
            if name[1:].isdigit():
                return say_hello(bus, name, "/scratch")
            me = {"program": "/x", "mpi": "mpich", "version": "t", "pid": 1, "processes": 4}
            bus.send("HELLO", job=name, application_asked=name, **me)
            assert bus.answer(10).type == "WELCOME"
            return bus

        yield make


def used_by(bus: Bus) -> list[str]:
    """Return the servers of the next SERVER_MAP that files use."""
    event = bus.answer(10)
    assert event is not None and event.type == "SERVER_MAP", event
    return [line.split()[0] for line in event["text"].splitlines() if not line.endswith(" slow:")]


def replays(daemon, prefix: Path) -> None:
    assert daemon.stop() == 0
    command = [prefix / "bin" / "hocketd", "--replay", daemon.trace, "--policy-file", daemon.policy_file]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr


def test_a_policy_assigns_servers(decides, members, prefix):
    daemon = decides(ONE_EACH)
    members("s1"), members("s2")
    first = members("first")
    assert used_by(first) == ["s1", "s2"], "before the policy is asked"
    assert used_by(first) == ["s1"]
    second = members("second")
    assert (used_by(second), used_by(second)) == (["s1", "s2"], ["s2"])
    with Bus.connect() as bus:
        assert bus.list().daemon["policy"].endswith("+mine")
    explained = hocket("explain", "--json").stdout
    told = [one for one in json.loads(explained)["decisions"] if one["action"] == "assign"]
    assert [(one["decided_for"], one["text"]) for one in told] == [
        ("first", "s1 is for first; I/O servers from epoch 3 on: s1"),
        ("second", "s2 is for second; I/O servers from epoch 4 on: s2"),
    ]
    assert "first gets other I/O servers" in hocket("explain").stdout
    assert hocket("policy", "set", "fcfs").returncode == 0
    assert (used_by(first), used_by(second)) == (["s1", "s2"], ["s1", "s2"]), "it is not in force any more"
    replays(daemon, prefix)


def test_a_policy_that_raises_is_a_line_in_the_log(decides, members, prefix):
    daemon = decides("    raise RuntimeError('no')\n")
    server = members("s1")
    first = members("first")
    assert used_by(first) == ["s1"]
    for _ in range(5):
        report(server, 8, 8 << 20, 8 * MS)
    server.list()
    log = (daemon.directory / "hocketd.log").read_text()
    assert log.count(f"{daemon.policy_file}:6: RuntimeError: no") == 1
    replays(daemon, prefix)


def test_what_a_policy_wants_of_a_server_that_is_gone_is_explained(decides, members, prefix):
    daemon = decides('    return [{"assign": a, "servers": ["s2"], "text": "why not"} for a in view.applications]\n')
    members("s1"), members("s2").close()
    server = members("s3")
    first = members("first")
    assert used_by(first) == ["s1", "s3"]
    for _ in range(5):
        report(server, 8, 8 << 20, 8 * MS)
    server.list()
    assert first.answer(0.2) is None
    told = json.loads(hocket("explain", "--json").stdout)["decisions"]
    assert [(one["decided_for"], one["action"]) for one in told] == [("first", "leave")], "it is said once"
    assert "why not; left alone: no I/O server called 's2' runs" in hocket("explain").stdout
    replays(daemon, prefix)


def test_a_policy_that_changes_its_mind_at_every_event_is_held_back(decides, members, prefix):
    daemon = decides(RESTLESS)
    servers = [members("s1"), members("s2")]
    first = members("first")
    used_by(first), used_by(first)  # the map of all, and the first change
    for _ in range(40):
        for server in servers:
            report(server, 8, 8 << 20, 8 * MS)
            server.list()
    changes = daemon.trace.read_text().count('"out":"SERVER_MAP"')
    assert changes <= 2 + 2, "one every 5 s"
    assert "ago, and a policy changes it every 5.00 s at most" in hocket("explain").stdout
    replays(daemon, prefix)


def test_the_policy_of_the_page_gives_each_application_a_server(start_daemon, members, tmp_path, prefix):
    path = tmp_path / "one_each.py"
    path.write_text(blocks("python")[1])
    daemon = start_daemon("--policy-file", path)
    daemon.policy_file = path
    busy = members("s1")
    members("s2")
    report(busy, 8, 8 << 20, 8 * MS)
    busy.list()
    first = members("first")
    assert (used_by(first), used_by(first)) == (["s1", "s2"], ["s2"]), "the other one is busy"
    second = members("second")
    assert (used_by(second), used_by(second)) == (["s1", "s2"], ["s1"])
    assert first.answer(0.2) is None, "it keeps its server"
    replays(daemon, prefix)
