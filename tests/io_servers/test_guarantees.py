"""What a returned call promises when files are renamed, servers end, and storage fails (docs/guarantees.md)."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from server_kit import READS, WRITES, Client, Server
from story import Story

pytestmark = pytest.mark.timeout(120)
BLOCK = 1000
RANKS = 2


@pytest.fixture
def settings(daemon: Daemon) -> dict[str, str]:
    return kit.settings(daemon.socket) | {"HOCKET_IO": "hocket"}


class Script:
    """A job of tests/programs/script.c, which stops at `hold` until the test calls `go`."""

    def __init__(self, mpi: kit.Mpi, built, settings: dict[str, str], scratch: Path):
        self.mpi, self.built, self.settings, self.scratch = mpi, built, settings, scratch
        self.holds = 0

    def hold(self) -> list[str]:
        self.holds += 1
        return [f"mark={self.scratch / f'at-{self.holds}'}", f"await={self.scratch / f'go-{self.holds}'}"]

    def start(self, *actions: str) -> None:
        self.process = self.mpi.start([self.built("script.c"), *actions], self.settings, ranks=RANKS)

    def write_and(self, ending: str, path: Path) -> None:
        """Write a block, stop, then sync and close the file, or only close it; the ranks print what both return."""
        ends = ["sync", "close"] if ending == "sync" else ["close"]
        self.start(f"open={path}", f"write={BLOCK}", *self.hold(), "try", *ends)

    def await_hold(self, number: int) -> None:
        kit.wait_until((self.scratch / f"at-{number}").exists, 30, f"the job is at stop {number}")

    def go(self, number: int) -> None:
        (self.scratch / f"go-{number}").touch()

    def finish(self) -> kit.Run:
        return kit.finish(self.process)


@pytest.fixture
def script(mpi: kit.Mpi, built, settings, tmp_path: Path) -> Script:
    return Script(mpi, built, settings, tmp_path)


def replace_by_a_strangers(path: Path) -> Path:
    """Rename the file, and make an empty one under its old name. Returns the new path of the file."""
    moved = path.with_name("moved")
    path.rename(moved)
    path.touch()
    return moved


OVER = {"unix": (), "tcp": ("--tcp", "127.0.0.1:0")}

# ---- which file is written -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_writes_stay_in_the_file_that_was_opened(
    script: Script, start_server, story: Story, served_directory: Path, hocket_dir: Path, transport: str
) -> None:
    server = start_server("s1", *OVER[transport], elsewhere=transport == "tcp")
    if transport == "tcp":
        (hocket_dir / "servers" / "s1.sock").unlink()
    path = served_directory / "f"
    script.start(f"open={path}", *script.hold(), f"write={BLOCK}", "sync", "close")
    script.await_hold(1)
    moved = replace_by_a_strangers(path)
    script.go(1)
    run = script.finish()
    assert run.code == 0, run.err
    assert moved.read_bytes() == b"A" * BLOCK + b"B" * BLOCK
    assert path.read_bytes() == b""
    assert int(server_client(server).state()["operations"]) == 0
    assert f"the I/O server s1 has another file at {path}" in run.err


def test_a_server_that_joins_later_gets_no_part_of_another_file(
    script: Script, start_server, story: Story, served_directory: Path
) -> None:
    first = start_server("s1")
    path = served_directory / "f"
    script.start(f"open={path}", f"write={BLOCK}", *script.hold(), f"write={1 << 20}", "sync", "close")
    script.await_hold(1)
    moved = replace_by_a_strangers(path)
    second = start_server("s2")
    script.go(1)
    run = script.finish()
    assert run.code == 0, run.err
    assert moved.read_bytes() == (b"A" * BLOCK + b"B" * BLOCK + b"A" * (1 << 20) + b"B" * (1 << 20))
    assert path.read_bytes() == b""
    assert int(server_client(first).state()["operations"]) > RANKS, "it had the file open, and goes on"
    assert int(server_client(second).state()["operations"]) == 0


def server_client(server: Server) -> Client:
    """Connect over TCP if there is: a test may have removed the Unix socket."""
    return Client(server.addresses[-1], server.secret)


# ---- sync and close --------------------------------------------------------------------------------------------------


def told(run: kit.Run) -> list[str]:
    """Return what sync and close returned in the ranks, sorted. Launchers may mix the ranks' lines."""
    return sorted(re.findall(r"MPI_SUCCESS|MPI_ERR_NO_SPACE|MPI_ERR_IO", run.out))


def ending_with(result: str, ending: str) -> list[str]:
    """Return what `told` returns if the first of the two returns `result`: all ranks get it, once."""
    return sorted([result, *(["MPI_SUCCESS"] if ending == "sync" else [])] * RANKS)


SLOW = ("--write-behind", "--inject", "delay=60s")


@pytest.mark.parametrize("ending", ["sync", "close"])
def test_a_killed_server_with_data_is_told(
    script: Script, start_server, story: Story, served_directory: Path, ending: str
) -> None:
    server = start_server("s1", *SLOW)
    script.write_and(ending, served_directory / "f")
    script.await_hold(1)
    server.kill()
    script.go(1)
    run = script.finish()
    assert (run.code, told(run)) == (0, ending_with("MPI_ERR_IO", ending))
    assert f"{served_directory / 'f'}: the I/O server s1 was lost with {BLOCK} bytes" in run.err


@pytest.mark.parametrize("ending", ["sync", "close"])
def test_a_killed_server_that_had_stored_everything_is_no_loss(
    script: Script, start_server, story: Story, served_directory: Path, ending: str
) -> None:
    server = start_server("s1", "--write-behind")
    script.write_and(ending, served_directory / "f")
    script.await_hold(1)
    watching = server.client()
    kit.wait_until(lambda: watching.state()["queue"] == "0", 30, "it has stored everything")
    watching.state()  # its answer follows what the server sent to others when it had stored everything
    server.kill()
    script.go(1)
    run = script.finish()
    assert (run.code, run.err, told(run)) == (0, "", ending_with("MPI_SUCCESS", ending))
    assert (served_directory / "f").read_bytes() == b"A" * BLOCK + b"B" * BLOCK


@pytest.mark.parametrize("transport", ["unix", "tcp"])
@pytest.mark.parametrize("ending", ["sync", "close"])
def test_a_server_that_ends_in_order_stores_and_alarms_nobody(
    script: Script, start_server, story: Story, served_directory: Path, hocket_dir: Path, ending: str, transport: str
) -> None:
    late = ("--write-behind", "--inject", "delay=500ms")
    server = start_server("s1", *late, *OVER[transport], elsewhere=transport == "tcp")
    if transport == "tcp":
        (hocket_dir / "servers" / "s1.sock").unlink()
    script.write_and(ending, served_directory / "f")
    script.await_hold(1)
    assert server.stop() == 0
    script.go(1)
    run = script.finish()
    assert (run.code, run.err, told(run)) == (0, "", ending_with("MPI_SUCCESS", ending))
    assert (served_directory / "f").read_bytes() == b"A" * BLOCK + b"B" * BLOCK


@pytest.mark.parametrize("ending", ["sync", "close"])
def test_a_server_that_ends_amid_writes_loses_nothing(
    script: Script, start_server, story: Story, served_directory: Path, tmp_path: Path, ending: str
) -> None:
    """What it had answered is in the file, and the access under way is repeated without it."""
    servers = [start_server(name, "--write-behind", "--inject", "delay=1ms") for name in ("s1", "s2")]
    path, end = served_directory / "f", tmp_path / "end"
    ends = ["sync", "close"] if ending == "sync" else ["close"]
    script.start(f"open={path}", f"writing={end}", "try", *ends)
    kit.wait_until(lambda: path.exists() and path.stat().st_size > 2_000_000, 30, "it writes")
    assert servers[0].stop() == 0
    before = path.stat().st_size
    kit.wait_until(lambda: path.stat().st_size > before + 1_000_000, 30, "it writes without the server")
    end.touch()
    run = script.finish()
    assert (run.code, run.err, told(run)) == (0, "", ending_with("MPI_SUCCESS", ending))
    data = path.read_bytes()
    assert data == (b"A" * 100_000 + b"B" * 100_000) * (len(data) // 200_000)


@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("ending", ["sync", "close"])
def test_an_error_of_writing_behind_is_told_by_its_name(
    script: Script, start_server, story: Story, served_directory: Path, ending: str, stops: bool
) -> None:
    """Also if the server has ended in order meanwhile."""
    server = start_server("s1", "--write-behind", "--inject", "errno=ENOSPC")
    script.write_and(ending, served_directory / "f")
    script.await_hold(1)
    if stops:
        assert server.stop() == 0
    script.go(1)
    run = script.finish()
    assert (run.code, told(run)) == (0, ending_with("MPI_ERR_NO_SPACE", ending))
    assert "the I/O server s1 could not store what was written" in run.err
    assert "No space left on device" in run.err
    assert "was lost" not in run.err


# ---- a file system that fills up -------------------------------------------------------------------------------------


@pytest.fixture
def overfull(tmp_path: Path) -> Iterator[Path]:
    """A file system of 60 MB on a device that has room for 3 MB: writes succeed, and storing them fails."""
    device, directory = tmp_path / "device", tmp_path / "overfull"
    device.mkdir(), directory.mkdir()
    mounted: list[Path] = []

    def run(*command: object) -> None:
        subprocess.run(list(map(str, command)), check=True, timeout=30, capture_output=True)

    try:
        run("mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", device)
        mounted.append(device)
        run("truncate", "-s", "64m", device / "image")
        run("mkfs.ext4", "-q", "-O", "^has_journal", device / "image")
        run("mount", "-o", "loop", device / "image", directory)
        mounted.append(directory)
        yield directory
    finally:
        for one in reversed(mounted):
            subprocess.run(["umount", "-l", one], check=True, timeout=30)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mkfs.ext4"), reason="needs root, to mount a file system")
@pytest.mark.parametrize("behind", [[], ["--write-behind"]])
def test_each_client_learns_of_a_failed_sync_once(
    prefix: Path, hocket_dir: Path, overfull: Path, behind: list[str]
) -> None:
    (overfull / "file").touch()
    server = Server(prefix, hocket_dir, overfull, *behind)
    try:
        clients = [server.client() for _ in range(4)]
        handles = [client.open("file", READS | WRITES) for client in clients]
        for place in range(24):
            client, handle = clients[place % 3], handles[place % 3]
            assert client.write(handle, place << 19, b"x" * (1 << 19)) == 0
        errors = [
            client.call("sync", handle=handle).error for client, handle in zip(clients[:3], handles, strict=False)
        ]
        assert all(errors), errors
        assert clients[3].call("close", handle=handles[3]).error != 0, "it was open all the time"
        later = clients[3].open("file", READS | WRITES)
        assert clients[3].call("close", handle=later).error == 0
    finally:
        server.kill()


def test_an_error_is_told_to_each_client_once(prefix: Path, hocket_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    server = Server(prefix, hocket_dir, tmp_path, "--write-behind", "--inject", "errno=ENOSPC")
    try:
        clients = [server.client() for _ in range(3)]
        handles = [client.open("file") for client in clients]
        assert clients[0].write(handles[0], 0, b"lost") == 0
        answers = [
            [client.call(how, handle=handle).error for how in ("sync", "sync", "close")]
            for client, handle in zip(clients, handles, strict=True)
        ]
        assert answers == [[errno.ENOSPC, 0, 0]] * 3
    finally:
        server.kill()
