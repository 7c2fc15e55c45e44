"""Tools that change the server map from outside: a monitor's findings, by C, Python, and the command line.

Servers and applications are stand-ins that use the bus.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from api_kit import build
from checkout import PROGRAMS, REPO
from hocket.bus import Bus, BusError
from runtime_kit import wait_until
from stand_in_server import report, say_hello

pytestmark = pytest.mark.timeout(60)
MS = 10**6


def hocket(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hocket.cli", *arguments], capture_output=True, text=True, timeout=40)


@pytest.fixture
def servers(daemon) -> Iterator[dict[str, Bus]]:
    """Start two servers, and keep their connections."""
    with ExitStack() as stack:
        yield {name: say_hello(stack.enter_context(Bus.connect()), name, "/scratch") for name in ("first", "second")}


def states() -> dict[str, str]:
    with Bus.connect() as bus:
        return {one["server"]: one["state"] for one in bus.list().servers}


def test_an_external_monitor_takes_a_slow_server_out(servers, prefix: Path, tmp_path: Path) -> None:
    monitor = build(prefix, REPO / "examples" / "monitor" / "monitor.c", tmp_path / "monitor")
    with subprocess.Popen([monitor, "50", "50"], stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout.readline() == "watching\n"
        report(servers["first"], 1, 1 << 20, 10 * MS)
        report(servers["second"], 1, 1 << 20, 90 * MS)
        assert watching.stdout.readline() == "second takes 90.0 ms for an operation: reported\n"
        wait_until(lambda: states() == {"first": "up", "second": "slow"}, 10, "a map without the slow server")
        report(servers["first"], 1, 1 << 20, 90 * MS)
        assert "'first' is the last server of the map and stays" in watching.stdout.readline()
        watching.kill()


def test_c_programs_list_and_change_the_map(servers, prefix: Path, tmp_path: Path) -> None:
    program = build(prefix, PROGRAMS / "servers_api.c", tmp_path / "servers_api")

    def act(server: str, action: str) -> list[str]:
        done = subprocess.run([program, server, action], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done
        return done.stdout.splitlines()

    listed = ["IO_SERVER first up", "IO_SERVER second up", "DAEMON  "]
    assert act("third", "drain") == ["no server is called 'third'; 'hocket servers' lists them", *listed]
    assert act("second", "drain") == ["done", "IO_SERVER first up", "IO_SERVER second drained", "DAEMON  "]
    assert act("second", "add") == ["done", *listed]
    assert act("first", "slow") == ["done", "IO_SERVER first slow", "IO_SERVER second up", "DAEMON  "]
    assert act("second", "slow")[0] == "SLOW_IO_SERVER: 'second' is the last server of the map and stays"
    assert act("first", "add") == ["done", *listed]
    assert act("second", "assign")[0] == "no application 'app' is running: 'hocket ls' lists them"
    assert act("second", "publish more")[0].startswith("SLOW_IO_SERVER has one property, the text 'server'")
    assert act("second", "publish") == ["done", "IO_SERVER first up", "IO_SERVER second slow", "DAEMON  "]


def test_the_command_reports_slow_servers(servers) -> None:
    published = hocket("publish", "SLOW_IO_SERVER", "server=first")
    assert (published.returncode, published.stderr, states()["first"]) == (0, "", "slow")
    named = hocket("publish", "SLOW_IO_SERVER", "server=1")
    assert (named.returncode, named.stderr) == (
        1,
        "hocket: SLOW_IO_SERVER: no server called '1' runs; 'hocket servers' lists them\n",
    )
    wrong = hocket("publish", "SLOW_IO_SERVER", "server=first", "load=3")
    assert wrong.returncode == 1 and "SLOW_IO_SERVER has one property" in wrong.stderr
    last = hocket("servers", "slow", "second")
    assert last.returncode == 1 and "'second' is the last server of the map and stays" in last.stderr
    assert hocket("servers", "add", "first").returncode == 0
    told = hocket("servers", "slow", "second")
    assert told.returncode == 0 and told.stderr.startswith("hocket: second is out of the map, and is tried again in ")
    assert json.loads(hocket("servers", "--json").stdout)["servers"][1]["state"] == "slow"


def test_python_monitors_publish_what_they_find(servers) -> None:
    with Bus.connect() as monitor:
        with pytest.raises(BusError, match="one property, the text 'server'"):
            monitor.publish("SLOW_IO_SERVER", server=3)
        monitor.publish("SLOW_IO_SERVER", server="first")
        monitor.list()
        assert states() == {"first": "slow", "second": "up"}
