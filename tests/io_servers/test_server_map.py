"""The server map with a real hocketd: servers that join, leave, and slow down; applications that get it; the tools.

Servers and applications are stand-ins that use the bus.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from operator import itemgetter
from pathlib import Path

import pytest
from checkout import KIT
from hocket import daemon as daemon_module
from hocket.bus import Bus, BusError, Event
from server_kit import Client
from stand_in_server import report, say_hello

pytestmark = pytest.mark.timeout(120)
HOCKET = (sys.executable, "-m", "hocket.cli")
LIMIT_S = 40
MS = 10**6


@pytest.fixture(autouse=True)
def stand_in_prefix(tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a prefix with the real hocketd and a stand-in for hocket-server."""
    programs = tmp_path / "prefix" / "bin"
    programs.mkdir(parents=True)
    (programs / "hocketd").symlink_to(prefix / "bin" / "hocketd")
    script = programs / "hocket-server"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {KIT}/stand_in_server.py "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("HOCKET_PREFIX", str(programs.parent))


def hocket(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*HOCKET, *arguments], capture_output=True, text=True, timeout=LIMIT_S)


@pytest.fixture
def connections() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def server(connections):
    """Return a function that makes a server and returns its bus."""

    def make(name: str, **more) -> Bus:
        return say_hello(connections.enter_context(Bus.connect()), name, "/scratch", **more)

    return make


@pytest.fixture
def application(connections):
    """Return a function that makes an application and returns the bus of its rank 0, after WELCOME."""

    def make(name: str) -> Bus:
        bus = connections.enter_context(Bus.connect())
        bus.send("HELLO", job=name, application_asked=name, program="/x", mpi="mpich", version="t", pid=1, processes=4)
        assert bus.answer(10).type == "WELCOME"
        return bus

    return make


def next_map(bus: Bus) -> tuple[int, list[str]]:
    """Return the epoch of the next SERVER_MAP, and the names of the servers that files use."""
    event = bus.answer(10)
    assert event is not None and event.type == "SERVER_MAP", event
    return event["epoch"], [line.split()[0] for line in event["text"].splitlines() if not line.endswith(" slow:")]


def ended(stopped: subprocess.CompletedProcess[str]) -> set[str]:
    """Return the servers that `hocket server stop` reports, in any order."""
    said = re.fullmatch(r"hocket: (.+) ha(?:s|ve) ended\n", stopped.stderr)
    assert said and stopped.returncode == 0, stopped.stderr
    return set(said[1].split(", "))


def states() -> dict[str, str]:
    told = json.loads(hocket("servers", "--json").stdout)
    return {one["server"]: one["state"] for one in told["servers"]}


def test_applications_hear_of_each_map(daemon, server, application):
    first = application("first")
    one = server("s1", addresses="unix:/run/s1 tcp:node1:4000")
    told = first.answer(10)
    assert (told.type, told["epoch"]) == ("SERVER_MAP", 1)
    assert told["text"] == "s1 /scratch unix:/run/s1 tcp:node1:4000\n"
    second = application("second")
    assert next_map(second) == (1, ["s1"])
    server("s2")
    assert next_map(first) == next_map(second) == (2, ["s1", "s2"])
    one.close()  # as if it were killed
    assert next_map(first) == next_map(second) == (3, ["s2"])
    assert states() == {"s1": "lost", "s2": "up"}
    server("s1")
    assert next_map(first) == (4, ["s2", "s1"])


def test_a_map_reaches_servers_that_write_behind_first(daemon, server, application):
    first = application("first")
    one = server("s1", write_behind=True)  # which reads its first map
    assert first.answer(0.2) is None, "the server has not stored what it held"
    one.send("MAP_STORED", epoch=1)
    assert next_map(first) == (1, ["s1"])
    server("s2")
    assert next_map(one) == (2, ["s1", "s2"])
    one.close()  # the process is no hocket-server, so the end of the connection counts as its end
    assert next_map(first)[1] == ["s2"]


def test_a_name_is_one_servers(daemon, server, connections):
    server("s1")
    with pytest.raises(BusError, match=r"a server called 's1' runs already \(pid \d+ on \S+\)"):
        server("s1")


def test_a_slow_server_is_taken_out_and_tried_again(start_daemon, tmp_path, server, application):
    config = tmp_path / "hocket.toml"
    config.write_text("[coordinator]\nslow_server_hold_off_s = 0.2\n")
    daemon = start_daemon("--config", config)
    servers = {name: server(name) for name in ("s1", "s2", "s3", "s4")}
    watched = application("a")
    assert next_map(watched) == (4, ["s1", "s2", "s3", "s4"])
    slow = watched.subscribe("SLOW_IO_SERVER")
    for _ in range(3):
        for name in ("s1", "s2", "s3"):
            report(servers[name], 8, 8 << 20, 8 * MS)
            servers[name].list()  # the daemon has it before the next one reports
        report(servers["s4"], 8, 8 << 20, 12 * MS)
        servers["s4"].list()
    assert slow.test() is None, "1.5 times as long is less than 1.25 · 4/3"
    for _ in range(3):
        report(servers["s4"], 8, 8 << 20, 16 * MS)
    event = slow.wait(10)
    assert (event["server"], event["service_ns"], event["peers_ns"]) == ("s4", 2 * MS, 1 * MS)
    assert next_map(watched) == (5, ["s1", "s2", "s3"])
    assert next_map(watched) == (6, ["s1", "s2", "s3", "s4"]), "after the hold-off"
    assert "s4 takes 2.000 ms for an operation, its peers 1.000 ms" in daemon.log.read_text()
    assert daemon.stop() == 0
    replayed = subprocess.run(
        [daemon.process.args[0], "--replay", daemon.trace], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert replayed.returncode == 0, replayed.stderr
    for verb in ("summary", "export"):
        more = ("--format", "perfetto", "-o", str(tmp_path / "out.json")) if verb == "export" else ()
        shown = hocket("trace", verb, str(daemon.trace), *more)
        assert shown.returncode == 0, shown.stderr
    shown = hocket("top", "--once", "--from-trace", str(daemon.trace))
    assert shown.returncode == 0, shown.stderr
    shown = hocket("report", str(daemon.trace), "-o", str(tmp_path / "report"))
    assert shown.returncode == 0, shown.stderr


def test_a_monitor_of_ones_own_may_tell_that_one_is_slow(daemon, server, application, connections):
    server("s1")
    server("s2")
    watched = application("a")
    next_map(watched)
    monitor = connections.enter_context(Bus.connect())
    monitor.send("SLOW_IO_SERVER", server="s1")
    assert next_map(watched) == (3, ["s2"])
    monitor.send("SLOW_IO_SERVER", server="s2")
    with pytest.raises(BusError, match="'s2' is the last server of the map and stays"):
        monitor.list()


def test_drain_waits_for_those_who_use_the_server(daemon, server, application):
    server("s1")
    server("s2")
    user, idle = application("user"), application("idle")
    epoch, _ = next_map(user)
    user.send("MAP_ADOPTED", epoch=epoch)
    user.list()
    late = hocket("servers", "drain", "s1", "--timeout", "0.2")
    assert (late.returncode, late.stderr.count("\n")) == (1, 1)
    assert "s1: out of the map since epoch 3, which 'user' has not adopted within 0.2 s" in late.stderr
    assert next_map(user) == (3, ["s2"])
    with subprocess.Popen([*HOCKET, "servers", "drain", "s1"], stderr=subprocess.PIPE, text=True) as draining:
        user.send("MAP_ADOPTED", epoch=3)
        said = draining.communicate(timeout=LIMIT_S)[1]
    assert (draining.returncode, said) == (
        0,
        "hocket: s1 is out of the map; no application uses it, and it keeps no data sets\n",
    )
    assert states() == {"s1": "drained", "s2": "up"}

    watcher = idle.subscribe("SET_SERVER")
    with subprocess.Popen([*HOCKET, "servers", "drain", "s2"], stderr=subprocess.PIPE, text=True) as draining:
        assert watcher.wait(LIMIT_S)["server"] == "s2"
        user.close()  # a lost application uses nothing
        draining.communicate(timeout=LIMIT_S)
    assert draining.returncode == 0
    added = hocket("servers", "add", "s2")
    assert (added.returncode, "s2 is in the map of epoch 5" in added.stderr) == (0, True)
    assert (next_map(idle), next_map(idle)) == ((4, []), (5, ["s2"]))
    wrong = hocket("servers", "drain", "s3")
    assert (wrong.returncode, wrong.stderr) == (2, "hocket: no server is called 's3'; 'hocket servers' lists them\n")


def test_servers_are_assigned_to_one_application(daemon, server, application):
    for name in ("s1", "s2", "s3"):
        server(name)
    first, second = application("first"), application("second")
    assert next_map(first) == next_map(second) == (3, ["s1", "s2", "s3"])
    done = hocket("servers", "assign", "first", "s3,s1")
    said = "hocket: first uses s1, s3 from its next collective access on\n"
    assert (done.returncode, done.stderr) == (0, said)
    assert next_map(first) == (4, ["s1", "s3"])
    assert second.answer(0.2) is None, "its map is as it was"
    assert hocket("servers", "assign", "second", "1").stderr.startswith("hocket: second uses s2 from")
    assert next_map(second) == (5, ["s2"])
    assert hocket("servers").stdout.splitlines()[-2:] == ["first: s1, s3", "second: s2"]
    assert "first: its files use the I/O servers s1, s3\n" in hocket("ls").stdout
    told = json.loads(hocket("ls", "--json").stdout)["applications"]
    assert {row["application"]: row["servers"] for row in told} == {"first": "s1, s3", "second": "s2"}

    first.send("MAP_ADOPTED", epoch=4)
    first.list()
    late = hocket("servers", "drain", "s2", "--timeout", "0.2")
    assert "which 'first' has not adopted within 0.2 s" in late.stderr, "the list of all is in its map, too"
    assert (next_map(first), next_map(second)) == ((6, ["s1", "s3"]), (6, ["s1", "s3"]))
    assert hocket("servers").stdout.splitlines()[-1] == "second: all servers; s2 is assigned, but not in the map"
    anew = hocket("servers", "assign", "second", "s2").stderr
    assert anew == (
        "hocket: second uses all servers from its next collective access on; s2 is assigned, but not in the map\n"
    )
    for wrong, why in ((("third", "s1"), "no application 'third' is running"), (("first", "s9"), "called 's9' runs")):
        told = hocket("servers", "assign", *wrong)
        assert (told.returncode, told.stderr.count("\n")) == (2, 1) and why in told.stderr
    assert hocket("servers", "assign", "first", "all").stderr.startswith("hocket: first uses all servers from")
    assert first.answer(0.2) is None, "s1 and s3 are all"
    hocket("servers", "add", "s2")
    assert next_map(first) == (7, ["s1", "s2", "s3"])
    trace = daemon.trace
    assert daemon.stop() == 0
    command = [daemon.process.args[0], "--replay", trace]
    replayed = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert replayed.returncode == 0, replayed.stderr


def test_servers_lists_them(daemon, server, application):
    assert hocket("servers").stdout.startswith("no server runs")
    one = server("s1", write_behind=True)
    one.send("MAP_STORED", epoch=1)  # it writes behind, so applications get the map after this
    report(one, 10, 10 << 20, 7 * MS, queue=3, held_bytes=2_000_000)
    user = application("jacobi")
    user.send("MAP_ADOPTED", epoch=1)
    user.list()
    server("s2").close()
    lines = hocket("servers").stdout.splitlines()
    heading = lines[0].split()
    assert heading == ["SERVER", "NODE", "STATE", "DIRECTORY", "LOAD", "SERVICE", "BANDWIDTH", "QUEUE", "HELD", "EPOCH"]
    words = lines[1].split()
    assert words[:4] == ["s1", os.uname().nodename, "up", "/scratch"]
    assert "0.70 ms" in lines[1] and "2.0 MB" in lines[1] and words[-1] == "write-behind"
    assert lines[2].split()[:3:2] == ["s2", "lost"]
    assert lines[3] == "map: epoch 3; used by: jacobi 1"
    told = json.loads(hocket("servers", "--json").stdout)
    assert told["epoch"] == 3
    row = {"application": "jacobi", "map_epoch": 1, "servers": "", "assigned_servers": ""}
    row |= {"given_servers": -1, "expected_bytes_per_s": 0.0, "weight": 1, "weight_by": "default"}
    assert told["applications"] == [row]
    row = told["servers"][0]
    assert (row["operations"], row["bytes"], row["queue"], row["held_bytes"]) == (10, 10 << 20, 3, 2_000_000)
    assert row["pid"] > 1, "stamped by the daemon"


def test_start_and_stop(hocket_dir, tmp_path):
    scratch = str(tmp_path)
    try:
        with ThreadPoolExecutor(2) as pool:
            started = list(pool.map(lambda _: hocket("server", "start", "-n", "2", "--dir", scratch), range(2)))
        assert [one.returncode for one in started] == [0, 0], [one.stderr for one in started]
        assert states() == {f"s{n}": "up" for n in range(1, 5)}
        assert sorted(one.stderr.split(" serve ")[0] for one in started) == ["hocket: s1, s2", "hocket: s3, s4"]
        with Bus.connect() as bus:
            loads = bus.subscribe("SERVER_LOAD")
            bus.publish("STAND_IN", server="s3", operations=5, bytes=50, service_ns=5)
            assert loads.wait(10)["operations"] == 5
        stopped = hocket("server", "stop", "s2", "s3")
        assert (stopped.returncode, stopped.stderr) == (0, "hocket: s2, s3 have ended\n")
        assert states() == {"s1": "up", "s4": "up"}
        again = hocket("server", "start", "--dir", scratch, "--buffer", "4096", "--write-behind")
        assert again.stderr.startswith(f"hocket: s2 serves {scratch}; the map has epoch "), again.stderr
        row = next(one for one in json.loads(hocket("servers", "--json").stdout)["servers"] if one["server"] == "s2")
        assert (row["buffer_bytes"], row["write_behind"], row["directory"]) == (4096, True, scratch)
        assert ended(hocket("server", "stop")) == {"s1", "s4", "s2"}
        assert states() == {}
        assert hocket("server", "stop").stderr == "hocket: no server runs\n"
    finally:
        daemon_module.stop()


def test_servers_listen_for_other_nodes_if_asked_to(hocket_dir, tmp_path, prefix, monkeypatch):
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))
    try:
        assert hocket("server", "start", "--dir", str(tmp_path)).returncode == 0
        assert hocket("server", "start", "-n", "2", "--dir", str(tmp_path), "--tcp", "127.0.0.1:0").returncode == 0
        rows = json.loads(hocket("servers", "--json").stdout)["servers"]
        local, *both = (one["addresses"].split() for one in rows)
        number = "[0-9a-f]{16}"
        assert re.fullmatch(rf"unix:{hocket_dir}/servers/s1\.sock#{number}@{number}", " ".join(local)), local
        assert all(re.fullmatch(rf"tcp:127\.0\.0\.1:\d+#{number}@{number}", tcp) for _, tcp in both), both
        places, nodes = zip(*(tcp.split("@") for _, tcp in both), strict=True)
        assert (len(set(places)), len(set(nodes))) == (2, 1)
    finally:
        hocket("server", "stop")
        daemon_module.stop()


def test_a_hocket_server_that_is_slow_is_found(hocket_dir, memory, prefix, monkeypatch):
    """All servers are real: three are fast, on storage that never stalls, and one takes 100 ms longer."""
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))
    (memory / "f").write_bytes(b"")
    try:
        assert hocket("server", "start", "-n", "3", "--dir", str(memory)).returncode == 0
        slow = hocket("server", "start", "--dir", str(memory), "--inject", "delay=100ms after=1")
        assert slow.stderr == f"hocket: s4 serves {memory}; the map has epoch 4\n"
        with Bus.connect() as bus, ExitStack() as stack:
            found = bus.subscribe("SLOW_IO_SERVER")
            links = []
            # s4 comes first, so that its times are known before those of a server that the machine once delayed.
            for one in sorted(bus.list().servers, key=itemgetter("server"), reverse=True):
                links.append(Client(one["addresses"].split()[0]))
                stack.callback(links[-1].close)
            handles = [link.open("f") for link in links]
            event = None
            for turn in range(100):
                for number, (link, handle) in enumerate(zip(links, handles, strict=True)):
                    for at in range(4):
                        assert link.write(handle, ((turn * 4 + number) * 4 + at) << 16, bytes(1 << 16)) == 0
                if (event := found.wait(0.05)) is not None:
                    break
        assert event is not None and event["server"] == "s4", (event, turn, states())
        assert event["service_ns"] >= 100 * MS > event["peers_ns"]
        assert states() == {"s1": "up", "s2": "up", "s3": "up", "s4": "slow"}
        assert ended(hocket("server", "stop")) == {"s1", "s2", "s3", "s4"}
    finally:
        daemon_module.stop()


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--dir", "/nowhere"], 2, "--dir /nowhere: there is no such directory"),
        (["--dir", "/", "-n", "0"], 2, "-n 0: give 1 to 256 servers"),
        (["--dir", "/", "--buffer", "0"], 2, "--buffer 0: give more than 0 bytes, as a number"),
        (["--dir", "/", "--tcp", "node1"], 2, "--tcp node1: give HOST:PORT, by which other nodes reach this one"),
        (["--dir", "fails", "-n", "2"], 1, "did not start: "),
    ],
)
def test_what_cannot_be_started_is_told_in_one_line(hocket_dir, tmp_path, monkeypatch, arguments, code, text):
    (tmp_path / "fails").mkdir()
    monkeypatch.chdir(tmp_path)
    told = hocket("server", "start", *arguments)
    daemon_module.stop()
    assert (told.returncode, len(told.stderr.splitlines())) == (code, 1), told.stderr
    assert text in told.stderr
    if code == 1:
        assert told.stderr.endswith("fails: cannot be opened: Permission denied\n")


def test_members_may_not_say_what_the_controller_says(daemon, application):
    bus = application("a")
    for type_name in ("SERVER_MAP", "IO_SERVER"):
        bus.send(type_name)
        with pytest.raises(BusError, match=f"a member may not send {type_name}"):
            bus.list()


def test_readers_of_old_and_new_daemons_do_not_trip():
    """The live view accepts every event about servers without an error."""
    from hocket.top.model import TopModel

    model = TopModel()
    for type_name in (
        "SERVER",
        "SERVER_LOAD",
        "SERVER_MAP",
        "MAP_ADOPTED",
        "SLOW_IO_SERVER",
        "SET_SERVER",
        "IO_SERVER",
    ):
        model.feed(Event(type_name, {"server": "s1", "state": "up", "epoch": 1, "text": ""}, time_ns=5))
