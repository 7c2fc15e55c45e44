"""Put and get of data sets (include/hocket/file.h): C programs, hocketd, and hocket-servers, all real."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest
import runtime_kit as kit
from api_kit import build
from checkout import REPO
from daemon_kit import Daemon
from hocket.bus import Bus
from put_get_kit import (
    CANCELED,
    LIMIT_S,
    MIB,
    NO_DAEMON,
    NO_SERVER,
    TIMEOUT,
    noise,
)

pytestmark = pytest.mark.timeout(120)


def test_without_a_daemon_there_are_files_but_no_data_sets(program, hocket_dir: Path, tmp_path: Path) -> None:
    one = program()
    one.must("open", tmp_path / "f", "wc")
    one.must("close")
    code, text = one.call("open", "hocket:/field", "w", "wait_s=0.1")
    assert code == NO_DAEMON
    assert text.startswith("cannot open hocket:/field: no hocketd listens at ") and "hocket daemon start" in text


def test_without_a_server_there_are_no_data_sets(program, daemon: Daemon) -> None:
    assert program().call("open", "hocket:/field", "w", "wait_s=0.1") == (
        NO_SERVER, "cannot open hocket:/field: no I/O server runs; start one with 'hocket server start'",
    )  # fmt: skip


@pytest.mark.parametrize("servers", [1, 3])
def test_two_applications_exchange_versions(program, start_server, servers: int) -> None:
    for i in range(servers):
        start_server(f"s{i}")
    writer, reader = program(), program()
    for version in (1, 2, 3):
        data = noise(2 * MIB + 77, version)
        writer.must("open", "hocket:/field", "w")
        assert writer.must("version") == version
        writer.put(0, data[:100])
        writer.put(100, data[100:])
        assert writer.must("size") == len(data)
        writer.must("flush")
        writer.must("close")
        reader.must("open", "hocket:/field", "r")
        assert (reader.must("version"), reader.must("size")) == (version, len(data))
        assert reader.get("get", 0, 3 * MIB) == data
        assert reader.get("get_strided", 5, 10, 1000, 50) == b"".join(data[5 + i * 1000 :][:10] for i in range(50))
        assert reader.get("get", len(data), 10) == b""
        reader.must("close")


def test_a_reader_may_be_first(program, start_server) -> None:
    start_server("s1")
    writer, reader = program(), program()
    reader.tell("open", "hocket:/field", "r", "wait_s=40")
    # This is longer than one slice of the wait: the reader has asked again.
    with pytest.raises(subprocess.TimeoutExpired):
        reader.process.wait(2.5)
    writer.publish(b"data")
    assert reader.answer() == (0, "0")
    assert reader.get("get", 0, 10) == b"data"
    reader.must("close")


def test_a_reader_waits_for_a_server_that_comes_late(program, start_server) -> None:
    """The home of the data set may change while the reader waits."""
    names = ["s1", "s2", "s3", "s4"]
    start_server(names[0])
    writer, reader = program(), program()
    reader.tell("open", "hocket:/field", "r", "wait_s=40")
    for name in names[1:]:
        start_server(name)
    writer.publish(b"data")
    assert reader.answer() == (0, "0")
    assert reader.get("get", 0, 10) == b"data"


def test_servers_of_data_sets_are_named_instead_of_asked_for(
    program, start_server, daemon: Daemon, served_directory: Path
) -> None:
    """Writer and reader name the same servers, so both find the same home."""
    servers = [start_server(name) for name in ("s1", "s2", "s3")]
    daemon.kill()
    writer, reader = program(), program()
    all_of_them = "|".join(f"{s.name},{served_directory},{s.addresses[0]}" for s in servers)
    for named in (servers[1].addresses[0], all_of_them):
        writer.publish(b"data", f"servers={named}")
        reader.must("open", "hocket:/field", "r", f"servers={named}")
        assert reader.get("get", 0, 10) == b"data"
        reader.must("close")
    code, text = reader.call("open", "hocket:/field", "r", "servers=unix:/nowhere", "wait_s=0.1")
    assert (code, "no hocket-server listens at /nowhere" in text) == (NO_SERVER, True), text


def test_who_waits_at_a_server_that_ends_goes_on_to_another(program, start_server) -> None:
    first = start_server("s1")
    reader, writer = program(), program()
    reader.tell("open", "hocket:/field", "r", "wait_s=40")
    kit.wait_until(lambda: first.client().state()["clients"] == "2", 30, "the reader")
    start_server("s2")
    assert first.stop() == 0
    writer.publish(b"data")
    assert reader.answer() == (0, "0")
    assert reader.get("get", 0, 10) == b"data"


def test_who_waits_at_a_server_that_ends_slowly_goes_on_to_another(
    program, start_server, served_directory: Path
) -> None:
    """The server ends all waits and writes what it holds before it closes its connections."""
    first = start_server("s1", "--write-behind", "--threads", 1, "--inject", "delay=2s")
    busy, reader, writer = program(), program(), program()
    busy.must("open", served_directory / "f", "wc")
    busy.put(0, b"data")
    busy.put(10 * MIB, b"data")
    reader.tell("open", "hocket:/field", "r", "wait_s=40")
    kit.wait_until(lambda: first.client().state()["clients"] == "3", 30, "the reader")
    first.process.terminate()
    start_server("s2")
    assert first.process.wait(LIMIT_S) == 0
    writer.publish(b"data")
    assert reader.answer() == (0, "0")
    assert reader.get("get", 0, 10) == b"data"


def test_who_waits_at_a_server_that_hangs_looks_for_it_once_more(program, start_server) -> None:
    """hocketd kills it after 5 s; the reader waits for another 5 s until a server is there."""
    server = start_server("s1")
    reader, writer = program(), program()
    reader.tell("open", "hocket:/field", "r", "wait_s=100")
    kit.wait_until(lambda: server.client().state()["clients"] == "2", 30, "the reader")
    kit.stop(server.pid)
    assert server.process.wait(15) == -signal.SIGKILL
    start_server("s1")
    writer.publish(b"data")
    assert reader.answer() == (0, "0")
    assert reader.get("get", 0, 10) == b"data"


def test_a_process_with_the_number_of_another_is_another_application(program, start_server) -> None:
    """A restarted container has such processes."""
    start_server("s1")
    writer = program()
    writer.publish(b"data", "readers=-1")
    for _ in range(2):
        reader = program(PUT_GET_PID="1")
        reader.must("open", "hocket:/field", "r", "wait_s=5")
        assert reader.get("get", 0, 10) == b"data"
        reader.must("close")


def test_groups_write_and_read_together(program, start_server) -> None:
    start_server("s1")
    block, count = 4096, 100
    data = noise(2 * block * count)
    writers = [program(HOCKET_JOB="writers") for _ in range(2)]
    readers = [program(HOCKET_JOB="readers") for _ in range(3)]
    for one in readers:
        one.tell("open", "hocket:/field", "r", "participants=3", "group=1", "wait_s=40")
    for one in writers:
        one.tell("open", "hocket:/field", "w", "participants=2", "group=1", "wait_s=40")
    assert [one.answer() for one in writers] == [(0, "0")] * 2
    for k, one in enumerate(writers):
        own = b"".join(data[(2 * i + k) * block :][:block] for i in range(count))
        one.tell("put_strided_all", 1, k * block, block, 2 * block, count, one.file(own))
    assert [one.answer() for one in writers] == [(0, "0")] * 2
    for one in writers:
        one.must("close")
    assert [one.answer() for one in readers] == [(0, "0")] * 3
    for one in readers:
        one.tell_get("get_all", 1, 0, len(data))
    assert [one.got() for one in readers] == [data] * 3
    for one in readers:
        one.must("close")


def test_a_server_that_is_found_slow_keeps_its_data_sets(program, start_server) -> None:
    """Whichever of the servers is the home of a name: a version that was published is found."""
    for name in ("s1", "s2", "s3"):
        start_server(name)
    writer, reader = program(), program()
    sets = {f"hocket:/field{i}": noise(1000, i) for i in range(12)}
    for name, data in sets.items():
        writer.must("open", name, "w")
        writer.put(0, data)
        writer.must("close")
    with Bus.connect() as monitor:
        for slow in ("s1", "s3"):
            monitor.publish("SLOW_IO_SERVER", server=slow)
        monitor.list()
    for name, data in sets.items():
        reader.must("open", name, "r", "wait_s=5")
        assert reader.get("get", 0, 2000) == data
        reader.must("close")


def test_versions_for_any_number_of_readers_stay(program, start_server) -> None:
    start_server("s1")
    writer, readers = program(), [program() for _ in range(3)]
    for data in (b"old", b"new"):
        writer.publish(data, "readers=-1")
    for reader in readers:
        reader.must("open", "hocket:/field", "r")
        assert (reader.must("version"), reader.get("get", 0, 10)) == (2, b"new")
        reader.must("close")


def test_a_version_of_a_writer_that_dies_is_never_there(program, start_server) -> None:
    start_server("s1")
    writer, reader, other = program(), program(), program()
    writer.must("open", "hocket:/field", "w")
    writer.put(0, b"half of")
    writer.process.kill()
    assert reader.call("open", "hocket:/field", "r", "wait_s=0.5") == (
        TIMEOUT,
        "cannot open hocket:/field within 0.5 s: no version to read, or not all participants have opened it; start the "
        "missing ones, or wait longer (wait_s)",
    )
    other.publish(b"whole")
    reader.must("open", "hocket:/field", "r")
    assert (reader.must("version"), reader.get("get", 0, 10)) == (1, b"whole")


def test_who_waits_for_the_rest_of_his_group_waits_no_longer_than_he_said(program, start_server) -> None:
    start_server("s1")
    code, text = program().call(
        "open", "hocket:/field", "w", "participants=2", "group=3", "application=a", "wait_s=2.5"
    )
    assert (code, "within 2.5 s: no room for a version, or not all participants" in text) == (TIMEOUT, True), text


def test_another_process_of_the_group_dies(program, start_server) -> None:
    start_server("s1")
    group = [program(HOCKET_JOB="writers") for _ in range(2)]
    for one in group:
        one.tell("open", "hocket:/field", "w", "participants=2", "group=9")
    assert [one.answer() for one in group] == [(0, "0")] * 2
    group[0].put(0, b"data")
    group[1].process.kill()
    group[1].process.wait(LIMIT_S)
    code, text = group[0].call("close")
    assert (code, "another process of the group has ended" in text) == (CANCELED, True), text


def test_another_process_of_the_group_dies_that_reads(program, start_server) -> None:
    start_server("s1")
    writer, group, other = program(), [program(HOCKET_JOB="readers") for _ in range(2)], program(HOCKET_JOB="readers")
    writer.publish(b"data")
    for one in group:
        one.tell("open", "hocket:/field", "r", "participants=2", "group=9")
    assert [one.answer() for one in group] == [(0, "0")] * 2
    group[1].process.kill()
    group[1].process.wait(LIMIT_S)
    code, text = group[0].call("close")
    assert (code, "another process of the group has ended" in text) == (CANCELED, True), text
    other.must("open", "hocket:/field", "r")
    assert (other.must("version"), other.get("get", 0, 10)) == (1, b"data")
    other.must("close")


def test_a_server_that_is_lost_takes_its_data_sets_along(program, start_server) -> None:
    server = start_server("s1")
    reader, writer = program(), program()
    writer.publish(b"data")
    reader.must("open", "hocket:/field", "r")
    writer.must("open", "hocket:/field", "w")
    server.kill()
    lost = r"the I/O server that kept hocket:/field was lost, with this version of it: .*; open it again"
    for one, words in (
        (reader, ("get", 0, 4, reader.scratch / "got")),
        (reader, ("close",)),
        (writer, ("put", 0, writer.file(b"more"))),
        (writer, ("flush",)),
        (writer, ("close",)),
    ):
        code, text = one.call(*words)
        assert (code, bool(re.fullmatch(lost, text))) == (NO_SERVER, True), (words, text)
    start_server("s2")
    writer.publish(b"more")
    reader.must("open", "hocket:/field", "r")
    assert reader.get("get", 0, 10) == b"more"


def test_example_prints_what_it_should(prefix: Path, start_server, tmp_path: Path) -> None:
    start_server("s1")
    example = REPO / "examples" / "put_get"
    done = subprocess.run(
        [build(prefix, example / "put_get.c", tmp_path / "put_get")], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert (done.stdout, done.stderr, done.returncode) == ((example / "expected.txt").read_text(), "", 0)
