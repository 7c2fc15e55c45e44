"""Many grants and many sessions of servers, after which hocketd and hocket-server have what they had before.

The defaults are 20,000 grants and 2,000 sessions. `./dev test --long` sets $HOCKET_SOAK_GRANTS and
$HOCKET_SOAK_SESSIONS.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_kit import LIMIT_S, Daemon, hello
from hocket.bus import Bus
from server_kit import TYPE, Client, Frame, Server
from soak_kit import Watch

GRANTS = int(os.environ.get("HOCKET_SOAK_GRANTS", "20000"))
SESSIONS = int(os.environ.get("HOCKET_SOAK_SESSIONS", "2000"))
GRANTS_A_CONNECTION = 250
PHASE = 25  # grants of an I/O phase
NAMES = 8  # programs that run again and again
TRACE_MOST_MIB = 4
pytestmark = pytest.mark.timeout(3600)


@pytest.fixture
def daemon(start_daemon: Callable[..., Daemon], hocket_dir: Path) -> Daemon:
    """A daemon that removes the oldest parts of its trace."""
    config = hocket_dir / "hocket.toml"
    config.write_text(f"[daemon]\ntrace_part_mib = 1\ntrace_most_mib = {TRACE_MOST_MIB}\n")
    return start_daemon("--config", str(config))


# ---- grants --------------------------------------------------------------------------------------------------------


class Application:
    """A member of hocketd that requests the same target as all others."""

    def __init__(self, number: int):
        self.bus = Bus.connect()
        self.last = 0
        hello(self.bus, f"soak-{number % NAMES}", f"job-{number}")

    def ask(self) -> None:
        self.last += 1
        fields = {"target": "dev:8:1", "file": "/scratch/f", "operation": "MPI_File_write_all", "bytes": 1 << 20}
        self.bus.send("START_IO", request=self.last, **fields)

    def await_grant(self) -> None:
        while (answer := self.bus.answer(LIMIT_S)) is not None:
            if answer.type == "GRANT_IO" and answer["request"] == self.last:
                return
        raise AssertionError(f"no grant of request {self.last} within {LIMIT_S} s")

    def finish(self) -> None:
        ends = self.last % PHASE == 0
        self.bus.send("FINISH_IO", request=self.last, io_ns=1000, bytes=1 << 20, phase_over=ends)
        if ends:
            now = time.monotonic_ns()
            phase = {"start_ns": now - 100_000, "end_ns": now, "io_ns": 1000 * PHASE, "operations": PHASE}
            self.bus.send("IO_PHASE", index=self.last // PHASE, **phase)

    def access(self) -> None:
        self.ask()
        self.await_grant()
        self.finish()

    def leave(self, orderly: bool) -> None:
        """End in order, or as a process that was killed with its grant."""
        if orderly:
            self.finish()
            self.bus.send("BYE", cpu_ns=1)
        self.bus.close()


def hand_over(holder: Application, number: int) -> Application:
    """Let the next application wait for the holder, which ends. Every third one is killed."""
    holder.ask()
    holder.await_grant()
    following = Application(number)
    following.ask()
    holder.leave(orderly=number % 3 != 0)
    following.await_grant()
    following.finish()
    return following


def test_grants_leave_nothing_behind(daemon: Daemon) -> None:
    watch = Watch({"hocketd": daemon.pid}, GRANTS)
    application = Application(0)
    for done in range(GRANTS + 1):
        watch.after(done)
        if done % GRANTS_A_CONNECTION == GRANTS_A_CONNECTION - 1:
            application = hand_over(application, done // GRANTS_A_CONNECTION + 1)
        else:
            application.access()
    with Bus.connect() as bus:
        assert len(bus.list().applications) == 1
    application.leave(orderly=True)
    watch.judge()
    sizes = [part.stat().st_size for part in (daemon.directory / "traces").iterdir()]
    assert len(sizes) > 1 and sum(sizes) <= (TRACE_MOST_MIB + 1) << 20, sizes


# ---- sessions of servers -------------------------------------------------------------------------------------------


def orderly_session(client: Client, number: int) -> None:
    handle = client.open("file")
    data = number.to_bytes(8, "little") * 32
    offset = number % 64 * len(data)
    assert client.write(handle, offset, data) == 0
    assert client.call("read", handle=handle, offset=offset, bytes=len(data)).payload == data
    assert client.call("close", handle=handle).error == 0


def session_cut_in_a_write(client: Client, number: int) -> None:
    """Leave when half of a write has been sent."""
    handle = client.open("file")
    write = Frame(TYPE["write"], request=99, handle=handle, offset=number % 64, bytes=4096, payload=bytes(4096))
    frame = client.sealed(write)
    client.socket.sendall(frame[: len(frame) // 2])


def session_without_its_answer(client: Client, number: int) -> None:
    """Leave when the server owes answers to a write and to a read."""
    handle = client.open("file")
    client.ask("write", handle=handle, offset=number % 64 * 256, payload=bytes(256))
    client.ask("read", handle=handle, offset=0, bytes=4096)


def session_that_does_not_close(client: Client, number: int) -> None:
    client.write(client.open("file"), number % 64 * 256, bytes(256))


KINDS = (
    orderly_session, orderly_session, session_cut_in_a_write, session_without_its_answer, session_that_does_not_close,
)  # fmt: skip


def one_session(server: Server, number: int) -> None:
    client = server.client(greet=number % 50 != 49)
    try:
        if number % 50 != 49:  # every fiftieth client leaves before it greets
            KINDS[number % len(KINDS)](client, number)
    finally:
        client.close()


def test_sessions_of_servers_leave_nothing_behind(
    daemon: Daemon, start_server: Callable[..., Server], served_directory: Path
) -> None:
    (served_directory / "file").touch()
    servers = {"s1": start_server("s1"), "s2": start_server("s2", "--write-behind")}
    pids = {name: server.pid for name, server in servers.items()}
    watch = Watch({"hocketd": daemon.pid, **pids}, SESSIONS)
    both = list(servers.values())
    for done in range(SESSIONS + 1):
        watch.after(done)
        one_session(both[done % 2], done // 2)
    watch.judge()
