"""I/O servers that hang or are slow: nothing that they do later overwrites newer data (docs/guarantees.md)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from put_get_kit import IO, MIB
from server_kit import Client, Server
from story import Story

pytestmark = pytest.mark.timeout(180)
BLOCK = 1 << 20
RANKS = 2
LATER = b"later"
HUNG_S = 5  # without a heartbeat; a client gives up after 30 s


@pytest.fixture
def settings(daemon: Daemon) -> dict[str, str]:
    return kit.settings(daemon.socket) | {"HOCKET_IO": "hocket"}


def listed() -> dict[str, str]:
    """Return the states of the servers as `hocket servers` shows them."""
    shown = subprocess.run(
        [sys.executable, "-m", "hocket.cli", "servers", "--json"],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    return {one["server"]: one["state"] for one in json.loads(shown.stdout)["servers"]}


def resume(server: Server) -> None:
    """Continue a stopped server that may have been killed."""
    with contextlib.suppress(ProcessLookupError):
        server.process.send_signal(signal.SIGCONT)


def await_request(watching: Client) -> None:
    kit.wait_until(lambda: watching.state()["queue"] != "0", 30, "the server has a request")


def right(blocks: int = 1) -> bytes:
    return (b"A" * BLOCK + b"B" * BLOCK) * blocks


def test_a_hung_server_is_killed_and_writes_nothing_later(
    mpi: kit.Mpi, built, start_server, story: Story, settings, served_directory: Path
) -> None:
    """The server stops amid a write. The job goes on without it as soon as its process has ended."""
    hung, _ = start_server("s1", "--inject", "delay=2s"), start_server("s2")
    path = served_directory / "f"
    watching = hung.client()
    job = mpi.start([built("script.c"), f"open={path}", f"write={BLOCK}", "close"], settings, ranks=RANKS)
    await_request(watching)
    kit.stop(hung.pid)
    begin = time.monotonic()
    run = kit.finish(job)
    assert (run.code, run.err) == (0, "")
    assert time.monotonic() - begin < 3 * HUNG_S
    assert path.read_bytes() == right()
    path.write_bytes(LATER)
    resume(hung)
    assert hung.process.wait(10) == -signal.SIGKILL
    time.sleep(2.5)  # an absence cannot be awaited; the write was due after 2 s
    assert path.read_bytes() == LATER
    told = story.awaits("HUNG_IO_SERVER", server="s1")
    assert told["silent_ns"] >= HUNG_S * 10**9
    story.awaits("SERVER_ENDED", server="s1")


@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
def test_a_slow_server_is_waited_for(
    mpi: kit.Mpi, built, start_server, story: Story, settings, served_directory: Path
) -> None:
    """A write takes longer than the longest silence of a server, but the server shows that it runs."""
    start_server("s1", "--inject", "delay=35s after=2", "--threads", 1)
    path = served_directory / "f"
    script = [f"open={path}", "write=1000", "write=1000", "close"]
    run = mpi.run([built("script.c"), *script], settings, ranks=1, limit_s=90)
    assert (run.code, run.err) == (0, "")
    assert path.read_bytes() == b"A" * 2000
    path.write_bytes(LATER)
    time.sleep(6)
    assert path.read_bytes() == LATER
    assert story.all("HUNG_IO_SERVER") == []
    assert listed() == {"s1": "up"}


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"], indirect=True)
def test_without_a_daemon_an_access_fails_and_nothing_is_written_around(
    mpi: kit.Mpi, built, start_server, daemon: Daemon, settings, served_directory: Path
) -> None:
    """Nobody can tell whether the server still writes. When it continues, it drops what it has not begun."""
    hung = start_server("s1", "--inject", "delay=2s")
    path = served_directory / "f"
    watching = hung.client()
    job = mpi.start([built("faulty_access.c"), path, "write", "interleaved", 8], settings, ranks=RANKS)
    await_request(watching)
    daemon.kill()
    kit.stop(hung.pid)
    begin = time.monotonic()
    run = kit.finish(job, 50)
    assert (run.code, run.out) == (0, "MPI_ERR_IO\nagain: MPI_ERR_IO\n"), run.err
    assert 25 < time.monotonic() - begin < 45, "the second attempt fails at once"
    assert "the I/O server s1 may still write what it was sent" in run.err
    assert path.read_bytes() == b""


def test_a_hung_server_leaves_the_map(
    program, start_server, story: Story, daemon: Daemon, served_directory: Path
) -> None:
    """It delays nobody who comes later, and comes back when it is started again."""
    hung, _ = start_server("s1"), start_server("s2")
    kit.stop(hung.pid)
    story.awaits("SERVER_ENDED", server="s1")
    assert listed() == {"s1": "lost", "s2": "up"}
    one = program()
    begin = time.monotonic()
    one.must("open", served_directory / "f", "wc")
    assert time.monotonic() - begin < 1.5, "connecting to a hung server takes 2 s"
    one.put(0, b"data")
    one.must("close")
    assert "the I/O server s1 (process" in daemon.log.read_text()
    start_server("s1")
    kit.wait_until(lambda: listed() == {"s1": "up", "s2": "up"}, 10, "it is in the map again")


def test_put_goes_on_when_a_hung_server_has_ended(program, start_server, served_directory: Path) -> None:
    hung, _ = start_server("s1", "--inject", "delay=2s"), start_server("s2")
    path = served_directory / "f"
    watching = hung.client()
    one = program()
    one.must("open", path, "wc")
    one.tell("put", 0, one.file(b"x" * 4 * MIB))
    await_request(watching)
    kit.stop(hung.pid)
    begin = time.monotonic()
    assert one.answer() == (0, str(0))
    assert time.monotonic() - begin < 3 * HUNG_S
    assert path.read_bytes() == b"x" * 4 * MIB
    path.write_bytes(LATER)
    resume(hung)
    time.sleep(2.5)
    assert path.read_bytes() == LATER


def test_put_fails_while_a_lost_server_may_still_write(
    program, start_server, daemon: Daemon, served_directory: Path
) -> None:
    """Without a daemon nobody kills it. A put succeeds when the server has continued, and is done with the old one."""
    hung = start_server("s1", "--inject", "delay=2s after=2")
    path = served_directory / "f"
    watching = hung.client()
    one = program()
    one.must("open", path, "wc")
    one.put(0, b"first")
    one.tell("put", 0, one.file(b"older"))
    await_request(watching)
    daemon.kill()
    kit.stop(hung.pid)
    code, text = one.answer()
    assert (code, "the I/O server s1 may still write what it was sent" in text) == (IO, True), text
    assert one.call("put", 0, one.file(b"newer"))[0] == IO
    assert path.read_bytes() == b"first"
    resume(hung)
    kit.wait_until(lambda: one.call("put", 0, one.file(b"newer"))[0] == 0, 10, "the server is done")
    time.sleep(2.5)
    assert path.read_bytes() == b"newer"
    one.must("close")


def test_an_idle_server_is_not_hung(start_server, story: Story) -> None:
    start_server("s1")
    time.sleep(HUNG_S + 2)
    assert story.all("HUNG_IO_SERVER") == []
    assert len(story.all("SERVER_LOAD", server="s1") or story.all("SERVER_LOAD")) >= HUNG_S


def test_a_daemon_that_stood_still_kills_nobody(start_server, daemon: Daemon, story: Story) -> None:
    """The heartbeats that came meanwhile are read late."""
    server = start_server("s1")
    kit.stop(daemon.pid)
    kit.stop(server.pid)  # sends no heartbeat that the daemon could read
    time.sleep(HUNG_S + 2)
    os.kill(daemon.pid, signal.SIGCONT)
    time.sleep(0.5)
    resume(server)
    time.sleep(1)
    assert story.all("HUNG_IO_SERVER") == []
    assert listed() == {"s1": "up"}


def test_a_new_map_waits_until_servers_have_stored_what_they_held(
    mpi: kit.Mpi, built, start_server, story: Story, settings, served_directory: Path, tmp_path: Path
) -> None:
    start_server("s1", "--write-behind", "--inject", "delay=2s", "--threads", 1)
    path, written, go = served_directory / "f", tmp_path / "written", tmp_path / "go"
    script = [f"open={path}", "write=1000", f"mark={written}", f"await={go}", "write=1000", "close"]
    job = mpi.start([built("script.c"), *script], settings, ranks=RANKS)
    kit.wait_until(written.exists, 30, "the server has the data")
    start_server("s2")
    story.awaits("MAP_STORED", epoch=2)
    assert path.read_bytes() == b"A" * 1000 + b"B" * 1000
    application = story.all("MAP_ADOPTED")[0]["application"]
    kit.wait_until(lambda: story.all("SERVER_MAP", epoch=2, application=application), 10, "the job gets the map")
    go.touch()
    run = kit.finish(job)
    assert (run.code, run.err) == (0, "")
    order = [
        event.get("in") or event.get("out")
        for event in story.read()
        if event.get("epoch") == 2 and ("in" in event or event["application"] == application)
    ]
    assert order.index("MAP_STORED") < order.index("SERVER_MAP")
