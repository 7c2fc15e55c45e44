"""Data sets of servers that are drained, by put and get and by MPI-IO: they move, and no reader loses one. All real."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from data_sets_kit import NAME, Coupled, versions
from hocket.bus import Bus
from put_get_kit import MIB, NO_SERVER, TIMEOUT, Program, noise
from server_kit import Server

pytestmark = pytest.mark.timeout(120)
HOCKET = (sys.executable, "-m", "hocket.cli")
SMALL, STRIPED = MIB // 2, 4 * MIB + 77


def drain(*names: str, timeout: float = 30) -> list[subprocess.CompletedProcess[str]]:
    """Drain the servers at once, by the command."""

    def one(name: str) -> subprocess.CompletedProcess[str]:
        command = [*HOCKET, "servers", "drain", name, "--timeout", str(timeout)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    with ThreadPoolExecutor(len(names)) as pool:
        return list(pool.map(one, names))


def drained(*servers: Server) -> None:
    """Drain servers, which must succeed, and stop them, which must lose nothing."""
    for done in drain(*(server.name for server in servers)):
        assert done.returncode == 0, done.stderr
        assert "out of the map; no application uses it, and it keeps no data sets" in done.stderr
    for server in servers:
        state = server.client().state()
        kept = state["data_sets"], state["data_set_parts"], state["exchange_bytes"]
        assert kept == ("0", "0", "0"), server.log.read_text()
        assert server.stop() == 0
        assert "lost" not in server.log.read_text(), server.log.read_text()


def set_server(name: str, action: str) -> None:
    with Bus.connect() as bus:
        bus.send("SET_SERVER", server=name, action=action)
        bus.list()


def homes(servers: list[Server]) -> list[Server]:
    """Return the servers, those with most published versions first, then those with most parts."""

    def load(server: Server) -> tuple[int, int]:
        state = server.client().state()
        return int(state["data_sets"]), int(state["data_set_parts"])

    return sorted(servers, key=load, reverse=True)


def read(reader: Program, data: bytes, version: int, name: str = NAME) -> None:
    """Read the next version, which must be this one."""
    reader.must("open", name, "r", "wait_s=20")
    assert reader.must("version") == version
    assert reader.must("size") == len(data)
    assert reader.get("get", 0, len(data) + MIB) == data
    reader.must("close")


@pytest.fixture
def servers(start_server) -> list[Server]:
    return [start_server(f"s{i}") for i in range(3)]


@pytest.mark.parametrize("size", [0, SMALL, MIB, STRIPED])
def test_unread_versions_move_in_their_order(program, servers: list[Server], size: int) -> None:
    writer, reader = program(), program()
    for version in (1, 2):
        writer.publish(noise(size, version))
    drained(homes(servers)[0])
    for version in (1, 2):
        read(reader, noise(size, version), version)
    writer.publish(noise(size, 3))
    read(reader, noise(size, 3), 3)


def test_the_newest_without_declared_readers_moves(program, servers: list[Server]) -> None:
    writer = program()
    for version in (1, 2, 3):
        writer.publish(noise(STRIPED, version), "readers=-1")
    drained(homes(servers)[0])
    for reader in (program(), program()):
        read(reader, noise(STRIPED, 3), 3)


def test_who_has_read_does_not_read_again(program, servers: list[Server]) -> None:
    writer, one, other = program(), program(), program()
    writer.publish(noise(STRIPED), "readers=2")
    read(one, noise(STRIPED), 1)
    drained(homes(servers)[0])
    assert one.call("open", NAME, "r", "wait_s=0.5")[0] == TIMEOUT
    read(other, noise(STRIPED), 1)
    left = [server for server in servers if server.process.poll() is None]
    assert [server.client().state()["data_sets"] for server in left] == ["0", "0"]


def test_a_server_with_parts_is_drained(program, servers: list[Server]) -> None:
    writer, reader = program(), program()
    for version in (1, 2):
        writer.publish(noise(STRIPED, version), *(["readers=-1"] if version == 2 else []))
    home, part, _ = homes(servers)
    assert (home.client().state()["data_sets"], part.client().state()["data_set_parts"]) == ("2", "2")
    drained(part)
    for version in (1, 2):
        read(reader, noise(STRIPED, version), version)


@pytest.mark.parametrize("role", ["home", "part"])
def test_a_writer_ends_its_version_where_it_began(program, servers: list[Server], role: str) -> None:
    writer, reader = program(), program()
    data = noise(STRIPED)
    writer.must("open", NAME, "w")
    writer.put(0, data[: 3 * MIB])
    home, part, _ = homes(servers)
    victim = home if role == "home" else part
    [late] = drain(victim.name, timeout=1)
    assert (late.returncode, late.stderr.count("\n")) == (1, 1), late.stderr
    kept = "'field' (" if role == "home" else "1 part of data sets of other servers"
    assert f"{victim.name}: out of the map, and still keeps data sets after 1 s: {kept}" in late.stderr
    assert role == "part" or "open in an application" in late.stderr
    writer.put(3 * MIB, data[3 * MIB :])
    writer.must("close")
    drained(victim)
    read(reader, data, 1)


def test_readers_find_what_another_reader_has_open(program, servers: list[Server]) -> None:
    """The name cannot move meanwhile. A writer and another reader that come during the drain are served."""
    writer, one, other = program(), program(), program()
    data = noise(STRIPED)
    writer.publish(data, "readers=2")
    one.must("open", NAME, "r")
    home = homes(servers)[0]
    [late] = drain(home.name, timeout=1)
    assert (late.returncode, "'field' (" in late.stderr, "open in an application" in late.stderr) == (1, True, True)
    read(other, data, 1)
    writer.publish(noise(99), "readers=1")
    assert one.get("get", 0, 5 * MIB) == data
    one.must("close")
    drained(home)
    read(one, noise(99), 2)


def test_who_waits_for_a_version_waits_elsewhere(program, servers: list[Server]) -> None:
    writer, reader = program(), program()
    writer.publish(noise(9))
    home = homes(servers)[0]
    read(reader, noise(9), 1)
    reader.tell("open", NAME, "r", "wait_s=30")  # waits at the home
    time.sleep(0.5)
    drained(home)
    writer.publish(noise(STRIPED, 2))  # opened after the drain
    assert reader.answer()[0] == 0
    assert reader.must("version") == 2
    assert reader.get("get", 0, 5 * MIB) == noise(STRIPED, 2)
    reader.must("close")


def test_the_last_server_keeps_what_a_reader_never_reads(program, start_server) -> None:
    server = start_server("s1")
    writer, reader = program(), program()
    writer.publish(noise(STRIPED))
    begun = time.monotonic()
    [late] = drain("s1", timeout=1)
    assert time.monotonic() - begun < 10
    assert (late.returncode, late.stderr.count("\n")) == (1, 1), late.stderr
    assert (
        f"s1: out of the map, and still keeps data sets after 1 s: 'field' ({STRIPED} bytes, no other I/O server keeps "
        "data sets); readers find them there, and they are lost if it ends\n" in late.stderr
    )
    shown = subprocess.run([*HOCKET, "servers"], capture_output=True, text=True, timeout=30).stdout
    assert "keeps data sets" in shown, shown
    code, text = writer.call("open", "hocket:/other", "w", "wait_s=60")
    assert (code, "s1 is drained" in text) == (NO_SERVER, True), text
    read(reader, noise(STRIPED), 1)
    drained(server)


def test_the_last_server_gives_its_data_sets_to_one_that_comes(program, start_server) -> None:
    first = start_server("s1")
    writer, reader = program(), program()
    writer.publish(noise(STRIPED))
    assert drain("s1", timeout=0.5)[0].returncode == 1
    start_server("s2")
    drained(first)
    read(reader, noise(STRIPED), 1)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_server_is_added_again(program, servers: list[Server], start_server, restarts: bool) -> None:
    """Its names have moved, and are found where they are."""
    writer, reader = program(), program()
    writer.publish(noise(STRIPED))
    home = homes(servers)[0]
    if restarts:
        drained(home)
        start_server(home.name)
    else:
        assert drain(home.name)[0].returncode == 0
        set_server(home.name, "add")
    writer.publish(noise(99, 2))
    read(reader, noise(STRIPED), 1)
    read(reader, noise(99, 2), 2)


def test_a_drain_is_taken_back_while_data_sets_are_left(program, servers: list[Server]) -> None:
    writer, reader = program(), program()
    data = noise(STRIPED)
    writer.publish(data)
    reader.must("open", NAME, "r")
    home = homes(servers)[0]
    with subprocess.Popen([*HOCKET, "servers", "drain", home.name], stderr=subprocess.PIPE, text=True) as draining:
        kit.wait_until(lambda: states()[home.name] == "drained", 20, "it is drained")
        set_server(home.name, "add")
        said = draining.communicate(timeout=30)[1]
    assert (draining.returncode, said) == (
        1, f"hocket: {home.name}: somebody has added it again; 'hocket servers' shows its state\n",
    )  # fmt: skip
    assert reader.get("get", 0, 5 * MIB) == data
    reader.must("close")
    writer.publish(noise(99, 2))
    read(reader, noise(99, 2), 2)


def states() -> dict[str, str]:
    with Bus.connect() as bus:
        return {one["server"]: one["state"] for one in bus.list().servers}


def test_two_servers_are_drained_at_once(program, daemon: Daemon, servers: list[Server]) -> None:
    names = [f"hocket:/field-{number}" for number in range(9)]
    writer, reader = program(), program()
    for number, name in enumerate(names):
        writer.must("open", name, "w")
        writer.put(0, noise(2 * MIB, number))
        writer.must("close")
    assert all(server.client().state()["data_sets"] != "0" for server in servers)
    drained(*servers[:2])
    assert servers[2].client().state()["data_sets"] == "9"
    for number, name in enumerate(names):
        read(reader, noise(2 * MIB, number), 1, name)
    assert daemon.stop() == 0
    command = [daemon.process.args[0], "--replay", daemon.trace]
    replayed = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert replayed.returncode == 0, replayed.stderr


def test_without_room_elsewhere_readers_find_it_where_it_is(program, start_server) -> None:
    home = start_server("s1")
    writer, reader = program(), program()
    writer.publish(noise(3 * MIB))
    start_server("s2", "--exchange", "1m")
    [late] = drain("s1", timeout=2)
    assert late.returncode == 1
    assert f"'field' ({3 * MIB} bytes, not moved: s2: No space left on device)" in late.stderr, late.stderr
    read(reader, noise(3 * MIB), 1)
    drained(home)


@pytest.fixture
def moving(program, start_server) -> Iterator[Callable[[], tuple[Server, Server, Program]]]:
    """Return a function that begins to move a version, which takes seconds. It returns both homes, and the writer."""

    def begin() -> tuple[Server, Server, Program]:
        old = start_server("s1")
        writer = program()
        writer.publish(noise(16 * MIB))
        new = start_server("s2", "--inject", "delay=300ms after=1")
        set_server("s1", "drain")
        kit.wait_until(lambda: new.client().state()["exchange_bytes"] != "0", 20, "the copy is written")
        return old, new, writer

    yield begin


def test_the_old_home_dies_while_a_data_set_moves(program, moving) -> None:
    old, new, writer = moving()
    old.kill()
    kit.wait_until(lambda: new.client().state()["exchange_bytes"] == "0", 20, "the copy is dropped")
    assert program().call("open", NAME, "r", "wait_s=1")[0] == TIMEOUT
    writer.publish(noise(99))
    reader = program()
    reader.must("open", NAME, "r")
    assert reader.get("get", 0, MIB) == noise(99)
    reader.must("close")


def test_a_server_that_dies_while_the_drain_waits_is_reported(program, servers: list[Server]) -> None:
    writer, reader = program(), program()
    writer.publish(noise(STRIPED))
    reader.must("open", NAME, "r")
    home = homes(servers)[0]
    with subprocess.Popen([*HOCKET, "servers", "drain", home.name], stderr=subprocess.PIPE, text=True) as draining:
        kit.wait_until(lambda: states()[home.name] == "drained", 20, "it is drained")
        home.kill()
        said = draining.communicate(timeout=30)[1]
    assert draining.returncode == 1
    assert said == f"hocket: {home.name}: it has ended before it was drained; data sets that it kept are lost\n"
    assert reader.call("close")[0] == NO_SERVER
    writer.publish(noise(99))
    reader.must("open", NAME, "r", "wait_s=20")
    assert reader.get("get", 0, MIB) == noise(99)
    reader.must("close")


def test_the_new_home_dies_while_a_data_set_moves(program, moving, start_server) -> None:
    old, new, _ = moving()
    new.kill()
    start_server("s3")
    drained(old)
    read(program(), noise(16 * MIB), 1)


def test_readers_wait_for_a_move(program, moving) -> None:
    _, _, writer = moving()
    reader = program()
    read(reader, noise(16 * MIB), 1)
    writer.publish(noise(99))
    read(reader, noise(99), 2)


def test_hocketd_restarts_during_a_drain(program, daemon: Daemon, start_daemon, start_server) -> None:
    servers = [start_server(f"s{i}") for i in range(2)]
    writer, reader = program(), program()
    data = noise(STRIPED)
    writer.publish(data)
    writer.publish(noise(99, 2))
    reader.must("open", NAME, "r")
    home = homes(servers)[0]
    with subprocess.Popen([*HOCKET, "servers", "drain", home.name], stderr=subprocess.PIPE, text=True) as draining:
        kit.wait_until(lambda: states()[home.name] == "drained", 20, "it is drained")
        daemon.kill()
        said = draining.communicate(timeout=30)[1]
    assert (draining.returncode, said.count("\n")) == (1, 1), said
    assert reader.get("get", 0, 5 * MIB) == data
    reader.must("close")
    start_daemon()
    kit.wait_until(lambda: states() == {"s0": "up", "s1": "up"}, 20, "the servers are back, and none is drained")
    read(reader, noise(99, 2), 2)
    writer.publish(noise(STRIPED, 3))
    drained(home)
    read(reader, noise(STRIPED, 3), 3)


def test_ranks_exchange_versions_while_their_servers_are_drained(
    coupled: Coupled, servers: list[Server], mpich, openmpi
) -> None:
    """All servers are drained one after the other, and replaced, while a writer and a reader are coupled."""
    count = 40
    numbers = tuple(range(1, count + 1))
    jobs = [
        coupled.start(mpich, "write", count, ranks=3, words=300_000),
        coupled.start(openmpi, "read", count, ranks=2, words=300_000),
    ]
    kit.wait_until(lambda: homes(servers)[0].client().state()["data_sets"] != "0", 30, "they have begun")
    drained(homes(servers)[0])
    left = [server for server in servers if server.process.poll() is None]
    drained(homes(left)[0])
    for run in map(kit.finish, jobs):
        assert (run.code, run.out, run.err) == (0, versions(*numbers), ""), f"{run.out}{run.err}"
