"""Servers that write behind take their turn at the storage for the application whose writes they hold.

What somebody waits for is stored at once; the rest is stored when the application has its turn, and not beside
another one that has it.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon, hello, hocketd
from hocket.bus import Bus
from hocket.cli import main
from server_kit import READS, WRITES, Client, Server
from story import Story

pytestmark = pytest.mark.timeout(180)
WRITE_BACK = "write-back"
EARLY = 1  # Header::number of an answer to a write that is not in the file yet
LIMIT_S = 20
NEVER = """
'''Grants nothing at all.'''
NAME = "never"
KIND = "access"


def decide(view, event):
    return []
"""


@pytest.fixture
def policy() -> tuple[str, ...]:
    return "--policy", "fcfs"


@pytest.fixture
def daemon(start_daemon: Callable[..., Daemon], policy: tuple[str, ...]) -> Daemon:
    return start_daemon(*policy)


@pytest.fixture
def other(daemon: Daemon) -> Iterator[Bus]:
    """A member of application b, which has the target."""
    with Bus.connect() as bus:
        hello(bus, "b")
        ask(bus, 1)
        yield bus


def ask(bus: Bus, request: int) -> str:
    bus.send("START_IO", request=request, target="disk", file="f", operation="MPI_File_write_all", bytes=1 << 20)
    while (answer := bus.answer(LIMIT_S).type) == "SERVER_MAP":
        pass
    return answer


def end(bus: Bus, request: int) -> None:
    bus.send("FINISH_IO", request=request, phase_over=True)


class Writer:
    """A client of the server that writes for application a at the target."""

    def __init__(self, server: Server, name: str = "file"):
        self.client: Client = server.client()
        applicant = "\0".join(("job-a", "a", "disk", ""))
        opened = self.client.call("open", meta=f"{name}\0{applicant}".encode(), flags=READS | WRITES, bytes=1)
        assert opened.error == 0, os.strerror(opened.error)
        self.handle = opened.handle

    def write(self, data: bytes, offset: int = 0) -> None:
        answer = self.client.call("write", handle=self.handle, offset=offset, payload=data)
        assert (answer.error, answer.number) == (0, EARLY)


@pytest.fixture
def path(served_directory: Path) -> Path:
    file = served_directory / "file"
    file.touch()
    return file


@pytest.fixture
def held(other: Bus, start_server, story: Story, path: Path) -> tuple[Server, Writer]:
    """A server that holds a write of application a, because b has the target."""
    server = start_server("s1", "--write-behind")
    writer = Writer(server)
    writer.write(b"held")
    asked = story.awaits("START_IO", operation=WRITE_BACK)
    story.awaits("QUEUED_IO", member=asked["member"], behind="b")
    time.sleep(0.2)
    assert path.read_bytes() == b""
    return server, writer


def stored(path: Path, data: bytes = b"held", limit_s: float = LIMIT_S) -> float:
    """Wait until the file has the data, and return the seconds that it took."""
    since = time.monotonic()
    kit.wait_until(lambda: path.read_bytes() == data, limit_s, "the write is stored")
    return time.monotonic() - since


def test_it_is_stored_when_the_other_application_has_ended_its_access(
    held, other: Bus, story: Story, path: Path
) -> None:
    end(other, 1)
    stored(path)
    finished = story.awaits("FINISH_IO", application="a")
    granted = story.all("GRANT_IO", application="a")[0]
    assert finished["at"] > story.lines.index(granted) and granted["waited_ns"] > 0.2e9


@pytest.mark.parametrize("how", ["sync", "close", "store"])
def test_what_a_client_waits_for_is_stored_at_once(held, story: Story, path: Path, how: str) -> None:
    _, writer = held
    since = time.monotonic()
    assert writer.client.call(how, handle=writer.handle, bytes=1 if how == "store" else 0).error == 0
    assert time.monotonic() - since < 2
    assert path.read_bytes() == b"held"
    story.awaits("FINISH_IO", application="a")  # it does not ask for more than it needs


def test_a_drain_and_its_epoch_wait_for_no_turn(held, story: Story, path: Path) -> None:
    at = len(story.read())
    with Bus.connect() as tool:
        tool.send("SET_SERVER", server="s1", action="drain")
    story.awaits("MAP_STORED", since=at)
    assert path.read_bytes() == b"held"


def test_a_server_stores_before_it_ends(held, path: Path) -> None:
    server, _ = held
    assert server.stop() == 0
    assert path.read_bytes() == b"held"


def test_without_hocketd_it_is_stored_at_once(held, daemon: Daemon, path: Path) -> None:
    daemon.kill()
    assert stored(path) < 3


def test_a_silent_hocketd_is_not_waited_for_long(held, daemon: Daemon, path: Path) -> None:
    kit.stop(daemon.pid)
    assert stored(path) < 10
    os.kill(daemon.pid, signal.SIGCONT)


def test_a_turn_that_does_not_come_has_a_bound(other: Bus, start_server, path: Path) -> None:
    server = start_server("s1", "--write-behind", "--longest-turn-wait", 1)
    Writer(server).write(b"held")
    assert 0.8 < stored(path) < 10
    assert server.log.read_text().count("no turn at disk came for 1 s; stores what it holds for 'a' without") == 1


@pytest.fixture
def never(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "never.py").write_text(NEVER)
    return "--policy-file", str(tmp_path / "never.py")


def test_a_policy_that_never_grants_delays_it_by_the_bound(
    start_daemon, prefix: Path, hocket_dir: Path, served_directory: Path, never, path: Path
) -> None:
    start_daemon(*never)
    server = Server(prefix, hocket_dir, served_directory, "--write-behind", "--longest-turn-wait", 1)
    try:
        writer = Writer(server)
        for number in range(3):
            writer.write(bytes([number]) * 4)
            assert stored(path, bytes([number]) * 4) < 10
    finally:
        server.kill()


def test_full_memory_stops_no_client(other: Bus, start_server, path: Path) -> None:
    writer = Writer(start_server("s1", "--write-behind", "--buffer", "8m"))
    since = time.monotonic()
    for number in range(24):
        writer.client.ask("write", handle=writer.handle, offset=number << 20, payload=b"m" * (1 << 20))
        assert writer.client.receive().error == 0
    assert time.monotonic() - since < 10
    assert writer.client.call("sync", handle=writer.handle).error == 0
    assert path.stat().st_size == 24 << 20


def test_what_a_killed_application_wrote_keeps_its_turn(held, other: Bus, story: Story, path: Path) -> None:
    _, writer = held
    writer.client.close()
    time.sleep(0.5)
    assert path.read_bytes() == b""
    end(other, 1)
    stored(path)
    story.awaits("BYE", application="a")  # the server was its last member


def storing(start_server, story: Story) -> Server:
    """Start a server that stores for a long time, in its turn, while b waits."""
    server = start_server("s1", "--write-behind", "--inject", "delay=8s")
    Writer(server).write(b"slow")
    story.awaits("GRANT_IO", application="a")
    return server


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_server_that_dies_or_hangs_in_its_turn_keeps_nobody_waiting(
    daemon: Daemon, start_server, story: Story, path: Path, how: signal.Signals
) -> None:
    server = storing(start_server, story)
    with Bus.connect() as other:
        hello(other, "b")
        assert ask(other, 1) == "QUEUED_IO"
        server.process.send_signal(how)
        story.awaits("GRANT_IO", application="b")
        if how == signal.SIGKILL:
            assert story.all("LOST", application="a")


# ---- programs ------------------------------------------------------------------------------------------------------

BLOCK = 1 << 20
SLOW = ("--write-behind", "--inject", "delay=300ms")  # for each request: the storage is slow


@pytest.fixture
def jobs(daemon: Daemon) -> Callable[[str], dict[str, str]]:
    def settings(name: str) -> dict[str, str]:
        told = kit.settings(daemon.socket)
        return told | {"HOCKET_IO": "hocket", "HOCKET_JOB": f"job-{name}", "HOCKET_NAME": name}

    return settings


def turns(lines: list[dict], application: str, *, of_servers: bool) -> list[tuple[int, int]]:
    """Return when an application, or servers for it, had the target: from GRANT_IO to FINISH_IO."""
    asked, granted, had = set(), {}, []
    for line in lines:
        key = line.get("member"), line.get("request")
        kind = line.get("in") or line.get("out")
        if line.get("application") != application:
            continue
        if kind == "START_IO" and (line["operation"] == WRITE_BACK) == of_servers:
            asked.add(key)
        if kind == "GRANT_IO" and key in asked:
            granted[key] = line["time_ns"]
        if kind == "FINISH_IO" and key in granted:
            had.append((granted.pop(key), line["time_ns"]))
    return had


def test_write_backs_of_one_application_are_not_beside_the_access_of_another(
    mpi: kit.Mpi, built, start_server, jobs, story: Story, served_directory: Path, tmp_path: Path
) -> None:
    start_server("s1", *SLOW), start_server("s2", *SLOW)
    marks = {name: tmp_path / name for name in ("a wrote", "b wrote")}
    files = {name: served_directory / name for name in "ab"}
    data = {"a": b"A" * 4 * BLOCK + b"B" * 4 * BLOCK, "b": b"A" * BLOCK + b"B" * BLOCK}
    script = [f"await={marks['a wrote']}", f"open={files['b']}", f"write={BLOCK}", f"mark={marks['b wrote']}", "close"]
    b = mpi.start([built("script.c"), *script], jobs("b"))
    script = [
        f"open={files['a']}",
        f"write={4 * BLOCK}",
        f"mark={marks['a wrote']}",
        f"await={marks['b wrote']}",
        "close",
    ]
    a = mpi.start([built("script.c"), *script], jobs("a"))
    kit.wait_until(marks["a wrote"].exists, 60, "the write of a")
    assert files["a"].read_bytes() != data["a"], "servers hold it"
    kit.wait_until(marks["b wrote"].exists, 60, "the write of b")
    assert files["a"].read_bytes() == data["a"], "it was stored before b had its turn"
    assert (kit.finish(a).code, kit.finish(b).code) == (0, 0)
    assert all(files[name].read_bytes() == data[name] for name in "ab")
    stores = turns(story.read(), "a", of_servers=True)
    accesses = turns(story.lines, "b", of_servers=False)
    assert stores and accesses
    for store in stores:
        assert all(store[1] <= access[0] or access[1] <= store[0] for access in accesses)
    assert max(length[1] - length[0] for length in stores) > 0.2e9


@pytest.mark.parametrize("how", ["sync", "close"])
def test_who_waits_for_what_was_written_stores_it_in_its_own_turn(
    mpi: kit.Mpi, built, start_server, jobs, story: Story, served_directory: Path, how: str
) -> None:
    """Two programs write, and sync or close at the same time, with memory for a part of it only. Nobody hangs."""
    start_server("s1", *SLOW, "--buffer", "8m")
    again = ["sync", f"write={2 * BLOCK}"] if how == "sync" else []
    started = {
        name: mpi.start(
            [built("script.c"), f"open={served_directory / name}", f"write={2 * BLOCK}", *again, "close"], jobs(name)
        )
        for name in "ab"
    }
    assert [kit.finish(one, 90).code for one in started.values()] == [0, 0]
    for name in "ab":
        assert (served_directory / name).stat().st_size == (8 if again else 4) * BLOCK
    asked = [line["operation"] for line in story.all("START_IO")]
    assert f"MPI_File_{how}" in asked
    assert not story.all("LEASE_EXPIRED")


def test_trace_explain_and_report_say_what_the_servers_do(
    held, other: Bus, story: Story, daemon: Daemon, prefix: Path, path: Path, tmp_path: Path, capsys
) -> None:
    end(other, 1)
    stored(path)
    story.awaits("FINISH_IO", application="a")
    other.close()
    assert daemon.stop() == 0
    trace = str(daemon.trace)
    replayed = hocketd(prefix, "--replay", trace)
    assert replayed.returncode == 0, replayed
    assert main(["explain", "--trace", trace]) == 0
    assert "I/O servers hold what 'a' wrote until it has its turn on disk, after 'b'" in capsys.readouterr().out
    assert main(["report", trace, "-o", str(tmp_path / "report")]) == 0
    assert "stored by its I/O servers" in (tmp_path / "report" / "report.html").read_text()
    assert main(["trace", "export", trace, "-o", str(tmp_path / "t.json")]) == 0
    slices = [one for one in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if one.get("ph") == "X"]
    assert {"stores", "waiting"} <= {one["name"] for one in slices}
