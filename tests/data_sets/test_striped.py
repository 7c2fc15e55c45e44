"""Data sets whose bytes are striped over several hocket-servers, by MPI-IO and by put and get, all real."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import runtime_kit as kit
from data_sets_kit import NAME, Coupled, await_line, versions
from hocket.bus import Bus
from put_get_kit import CANCELED, MIB, NO_SERVER, NO_SPACE, noise
from server_kit import Server

pytestmark = pytest.mark.timeout(120)
WORDS = 600_000  # of a version: 4.6 MiB, five stripes
LOST = f"the I/O server that kept {NAME} was lost, with this version of it: "


def is_empty(*servers: Server) -> None:
    """Wait until the servers hold nothing."""

    def holds_nothing(server: Server) -> bool:
        state = server.client().state()
        return {state[key] for key in ("data_sets", "data_set_parts", "exchange_bytes")} == {"0"}

    kit.wait_until(lambda: all(map(holds_nothing, servers)), 20, "nothing is left of the data sets")


def parted(*servers: Server) -> tuple[Server, Server]:
    """Return the home of the only version, and the server that keeps its part."""
    home, part = sorted(servers, key=lambda server: server.client().state()["data_set_parts"])
    states = home.client().state(), part.client().state()
    assert [(s["data_sets"], s["data_set_parts"]) for s in states] == [("1", "0"), ("0", "1")]
    return home, part


@pytest.mark.parametrize("readers_first", [False, True])
@pytest.mark.parametrize("names", ["mpich openmpi", "openmpi mpich"])
def test_ranks_exchange_versions_of_many_stripes(
    coupled: Coupled, start_server, mpich, openmpi, names: str, readers_first: bool
) -> None:
    servers = [start_server(f"s{i}") for i in range(3)]
    mpis = {"mpich": mpich, "openmpi": openmpi}
    jobs = [
        (what, mpis[name], ranks) for what, name, ranks in zip(("write", "read"), names.split(), (3, 2), strict=True)
    ]
    started = [
        coupled.start(mpi, what, 3, ranks=ranks, words=WORDS)
        for what, mpi, ranks in jobs[:: -1 if readers_first else 1]
    ]
    for run in map(kit.finish, started):
        assert (run.code, run.out, run.err) == (0, versions(1, 2, 3), ""), f"{names}: {run.out}{run.err}"
    is_empty(*servers)


def test_all_servers_have_a_share(program, start_server) -> None:
    servers = [start_server(f"s{i}") for i in range(3)]
    writer, reader = program(), program()
    data = noise(7 * MIB + 77)
    writer.must("open", NAME, "w")
    writer.put(3 * MIB - 5, data[3 * MIB - 5 :])  # an access that does not begin at the home
    writer.put(0, data[: 3 * MIB - 5])
    writer.must("close")
    shares = sorted(int(server.client().state()["exchange_bytes"]) for server in servers)
    assert shares == [2 * MIB, 2 * MIB + 77, 3 * MIB]
    reader.must("open", NAME, "r")
    assert reader.must("size") == len(data)
    assert reader.get("get", MIB - 3, 8 * MIB) == data[MIB - 3 :]
    assert reader.get("get_strided", 5, 10, 100_000, 70) == b"".join(data[5 + i * 100_000 :][:10] for i in range(70))
    assert reader.get("get", len(data), 10) == b""
    reader.must("close")
    is_empty(*servers)


def test_bytes_that_nobody_wrote_are_zeros(program, start_server) -> None:
    servers = [start_server(name) for name in ("s1", "s2")]
    writer, reader = program(), program()
    writer.must("open", NAME, "w")
    writer.put(5 * MIB + 1, b"end")
    writer.must("close")
    reader.must("open", NAME, "r")
    assert reader.get("get", 0, 6 * MIB) == bytes(5 * MIB + 1) + b"end"
    reader.must("close")
    is_empty(*servers)


def test_a_small_data_set_stays_at_its_home(program, start_server) -> None:
    servers = [start_server(name) for name in ("s1", "s2")]
    program().publish(noise(MIB))
    assert sorted(server.client().state()["exchange_bytes"] for server in servers) == ["0", str(MIB)]
    assert {server.client().state()["data_set_parts"] for server in servers} == {"0"}


def test_memory_is_the_sum_of_the_servers(program, start_server) -> None:
    servers = [start_server(name, "--exchange", "3m") for name in ("s1", "s2")]
    writer, reader = program(), program()
    writer.publish(noise(6 * MIB))
    reader.must("open", NAME, "r")
    assert reader.get("get", 0, 6 * MIB) == noise(6 * MIB)
    reader.must("close")
    writer.must("open", NAME, "w")
    code, text = writer.call("put", 0, writer.file(noise(7 * MIB)))
    assert (code, "memory for data sets is full" in text) == (NO_SPACE, True), text
    assert writer.call("close")[0] == CANCELED
    is_empty(*servers)
    writer.must("open", NAME, "w")
    code, text = writer.call("put", 3 * MIB, writer.file(noise(5 * MIB)))  # the part has no room for its stripes
    assert code == NO_SPACE, text
    assert writer.call("close")[0] == CANCELED
    is_empty(*servers)


@pytest.mark.parametrize("victim", ["home", "part"])
def test_a_server_dies_that_is_written_to(program, start_server, victim: str) -> None:
    servers = [start_server(name) for name in ("s1", "s2")]
    writer, reader = program(), program()
    data = noise(4 * MIB)
    writer.must("open", NAME, "w")
    writer.put(0, data)
    lost, left = parted(*servers) if victim == "home" else parted(*servers)[::-1]
    lost.kill()
    code, text = writer.call("put", 4 * MIB, writer.file(data))
    assert code in (NO_SERVER, CANCELED), text
    code, text = writer.call("close")
    assert code in (NO_SERVER, CANCELED), text
    is_empty(left)
    writer.publish(data)
    reader.must("open", NAME, "r")
    assert reader.get("get", 0, 5 * MIB) == data
    reader.must("close")


@pytest.mark.parametrize("victim", ["home", "part"])
def test_a_server_dies_that_is_read_from(program, start_server, victim: str) -> None:
    servers = [start_server(name) for name in ("s1", "s2")]
    writer, reader, other = program(), program(), program()
    data = noise(4 * MIB)
    writer.publish(data, "readers=2")
    reader.must("open", NAME, "r")
    assert reader.get("get", 0, 3 * MIB) == data[: 3 * MIB]
    lost, left = parted(*servers) if victim == "home" else parted(*servers)[::-1]
    lost.kill()
    for words in (("get", 0, 4 * MIB, reader.scratch / "got"), ("close",)):
        code, text = reader.call(*words)
        assert (code, text.startswith(LOST)) == (NO_SERVER, True), (words, text)
    if victim == "home":
        is_empty(left)
    else:
        kit.wait_until(lambda: left.client().state()["exchange_bytes"] == "0", 20, "the version is freed")
        for one in (reader, other):  # each reader is told once
            code, text = one.call("open", NAME, "r", "wait_s=10")
            assert (code, "that kept a part of this version was lost" in text) == (NO_SERVER, True), text
    writer.publish(data[:99])
    reader.must("open", NAME, "r")
    assert reader.get("get", 0, MIB) == data[:99]
    reader.must("close")


def test_ranks_are_told_that_a_server_died(coupled: Coupled, start_server, mpi: kit.Mpi, tmp_path: Path) -> None:
    servers = [start_server(name) for name in ("s1", "s2")]
    hold = tmp_path / "hold"
    hold.touch()
    writer = coupled.start(mpi, "write", 1, "--hold", hold, words=WORDS)
    await_line(writer, "held")
    home, part = parted(*servers)
    part.kill()
    hold.unlink()
    run = kit.finish(writer, 60)
    assert (run.code, run.out) == (0, "MPI_ERR_IO\n" * 3), run.err
    is_empty(home)
    run = coupled.run(mpi, "write", words=WORDS)
    assert (run.code, run.out) == (0, versions(1)), run.err
    run = coupled.run(mpi, "read", words=WORDS)
    assert (run.code, run.out) == (0, versions(1)), run.err


def test_a_writer_that_dies_leaves_nothing(program, start_server) -> None:
    servers = [start_server(name) for name in ("s1", "s2", "s3")]
    writer = program()
    writer.must("open", NAME, "w")
    writer.put(0, noise(5 * MIB))
    assert sum(int(server.client().state()["data_set_parts"]) for server in servers) == 2
    writer.process.kill()
    is_empty(*servers)


def test_a_server_that_ends_waits_for_a_slow_reader(program, start_server) -> None:
    servers = [start_server(name) for name in ("s1", "s2")]
    writer, reader = program(), program()
    data = noise(4 * MIB)
    writer.publish(data)
    _, part = parted(*servers)
    reader.must("open", NAME, "r")  # so the version cannot move
    assert reader.get("get", 0, 2 * MIB) == data[: 2 * MIB]
    with Bus.connect() as bus:
        bus.send("SET_SERVER", server=part.name, action="drain")
        bus.list()
    part.process.terminate()
    time.sleep(2)
    assert part.process.poll() is None
    assert reader.get("get", 0, 5 * MIB) == data
    reader.must("close")
    assert part.process.wait(15) == 0
    assert "which are lost" not in part.log.read_text()


def test_a_server_that_ends_says_what_is_lost(program, start_server) -> None:
    servers = [start_server(name) for name in ("s1", "s2")]
    writer, reader = program(), program()
    writer.publish(noise(4 * MIB))
    home, part = parted(*servers)
    begun = time.monotonic()
    part.process.terminate()
    assert part.process.wait(40) == 0
    assert 15 < time.monotonic() - begun < 35
    assert (
        "ends with 2097152 bytes of data sets, of 0 versions and 1 parts of others, which are lost"
        in part.log.read_text()
    )
    assert "1 version of data sets is lost with the I/O server" in home.log.read_text()
    code, text = reader.call("open", NAME, "r", "wait_s=10")
    assert (code, "that kept a part of this version was lost" in text) == (NO_SERVER, True), text
