"""Collective accesses through I/O servers: MPI programs, hocketd and hocket-servers, all real."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import runtime_kit as kit
from conftest import Daemon
from hocket.bus import Bus
from server_kit import Server

pytestmark = pytest.mark.timeout(120)
SEED = 2026


def events(daemon: Daemon, kind: str, **fields: object) -> list[dict]:
    """Of that type with these values, in the trace so far."""
    found = []
    for line in daemon.trace.read_text().splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue  # still being written
        if kind in (event.get("in"), event.get("out")) and all(event.get(k) == v for k, v in fields.items()):
            found.append(event)
    return found


def await_event(daemon: Daemon, kind: str, count: int = 1, **fields: object) -> None:
    kit.wait_until(lambda: len(events(daemon, kind, **fields)) >= count, 30, f"{count} {kind} {fields}")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    return tmp_path / "served"


@pytest.fixture
def start(prefix: Path, hocket_dir: Path, directory: Path, daemon: Daemon) -> Iterator[Callable[..., Server]]:
    """Starts a hocket-server, and waits until hocketd knows it."""
    servers: list[Server] = []

    def start_one(name: str, *arguments: object) -> Server:
        servers.append(Server(prefix, hocket_dir, directory, *arguments, name=name))
        await_event(daemon, "SERVER", server=name)
        return servers[-1]

    yield start_one
    for server in servers:
        server.kill()


@pytest.fixture
def settings(daemon: Daemon) -> dict[str, str]:
    return kit.settings(daemon.socket) | {"HOCKET_IO": "hocket"}


def test_random_accesses_leave_the_bytes_of_a_model(
    mpi: kit.Mpi, built, daemon: Daemon, start, settings, directory: Path
) -> None:
    start("s1"), start("s2")
    program = built("random_access.c")
    run = mpi.run([program, directory / "f", SEED, 30, "strict"], settings, ranks=3)
    assert (run.code, run.out, run.err) == (0, "30 cases\n", ""), f"{mpi.name}: {run.out}{run.err}"
    await_event(daemon, "SERVER_LOAD")
    assert sum(event["operations"] for event in events(daemon, "SERVER_LOAD")) > 0
    assert {event["epoch"] for event in events(daemon, "MAP_ADOPTED")} == {0, 2}


def test_files_elsewhere_are_none_of_the_servers(mpi: kit.Mpi, built, daemon, start, settings, tmp_path: Path) -> None:
    start("s1")
    run = mpi.run([built("faulty_access.c"), tmp_path / "f", "write", "interleaved", 8], settings, ranks=3)
    assert (run.code, run.out) == (0, "MPI_SUCCESS\nright\n"), run.err
    assert events(daemon, "MAP_ADOPTED") == []
    assert [e for e in events(daemon, "SERVER_LOAD") if e["operations"]] == []


def test_servers_die_one_after_the_other_and_nothing_is_lost(
    mpi: kit.Mpi, built, daemon: Daemon, start, settings, directory: Path
) -> None:
    """Each dies while an application goes through it; at last ranks aggregate."""
    servers = [start(name) for name in ("s1", "s2", "s3")]
    process = mpi.start([built("random_access.c"), directory / "f", SEED + 1, 120, "strict"], settings, ranks=3)
    for epoch, server in enumerate(servers, 3):
        await_event(daemon, "MAP_ADOPTED", 2, epoch=epoch)
        server.kill()
    run = kit.finish(process)
    assert (run.code, run.out) == (0, "120 cases\n"), f"{mpi.name}: {run.out}{run.err}"


def test_a_server_is_drained_and_added_while_applications_go_through_it(
    mpi: kit.Mpi, built, daemon: Daemon, start, settings, directory: Path
) -> None:
    start("s1"), start("s2")
    process = mpi.start([built("random_access.c"), directory / "f", SEED + 2, 80, "strict"], settings, ranks=3)
    with Bus.connect() as bus:
        for epoch, action in ((2, "drain"), (3, "add")):
            await_event(daemon, "MAP_ADOPTED", 2, epoch=epoch)
            bus.send("SET_SERVER", server="s2", action=action)
        await_event(daemon, "MAP_ADOPTED", 2, epoch=4)
    run = kit.finish(process)
    assert (run.code, run.out, run.err) == (0, "80 cases\n", ""), f"{mpi.name}: {run.out}{run.err}"


@pytest.mark.parametrize(
    ("error", "kind"), [("ENOSPC", "MPI_ERR_NO_SPACE"), ("EDQUOT", "MPI_ERR_QUOTA"), ("EIO", "MPI_ERR_IO")]
)
def test_a_servers_error_reaches_all_ranks(
    mpi: kit.Mpi, built, start, settings, directory: Path, error: str, kind: str
) -> None:
    start("s1"), start("s2", "--inject", f"errno={error}")
    run = mpi.run([built("faulty_access.c"), directory / "f", "write", "interleaved"], settings, ranks=4)
    assert (run.code, run.out) == (0, f"{kind}\nagain: {kind}\n"), f"{mpi.name}: {run.out}{run.err}"


@pytest.mark.parametrize("behind", [True, False])
def test_sync_tells_of_what_a_dead_server_had_answered(
    mpi: kit.Mpi, built, daemon: Daemon, start, settings, directory: Path, tmp_path: Path, behind: bool
) -> None:
    """With write-behind that may be lost; without, it is in the file."""
    server = start("s1", *(["--write-behind"] if behind else []))
    first, go = tmp_path / "first", tmp_path / "go"
    script = [f"open={directory / 'f'}", "write=1000", f"mark={first}", f"await={go}", "write=1000", "sync", "close"]
    process = mpi.start([built("script.c"), *script], settings)
    kit.wait_until(first.exists, 30, "the first write")
    server.kill()
    go.touch()
    run = kit.finish(process)
    if behind:
        assert run.code != 0, run.out
        assert "the I/O server s1 was lost, which answers writes before they are in the file" in run.err
    else:
        assert (run.code, run.err) == (0, "")
        assert (directory / "f").read_bytes() == (b"A" * 1000 + b"B" * 1000) * 2
