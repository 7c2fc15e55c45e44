"""Put and get of files (include/hocket/file.h): C programs, hocketd, and hocket-servers, all real."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from put_get_kit import (
    ARGUMENT,
    IO,
    MIB,
    NO_SERVER,
    NO_SPACE,
    NOT_FOUND,
    noise,
    operations,
)

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("servers", [0, 1, 3])
def test_what_was_put_is_got(program, request, served_directory: Path, servers: int) -> None:
    running = [request.getfixturevalue("start_server")(f"s{i}") for i in range(servers)]
    data = noise(5 * MIB + 123)
    one = program()
    one.must("open", served_directory / "f", "rwc")
    one.put(777, data)
    assert one.must("size") == 777 + len(data)
    assert (served_directory / "f").read_bytes() == bytes(777) + data
    assert one.get("get", 777, len(data)) == data
    assert one.get("get", 777 + len(data) - 5, 100) == data[-5:]
    assert one.get("get", 100 * MIB, 10) == b""
    assert one.get("get", 0, 0) == b""
    one.must("flush")
    one.must("close")
    assert all(operations(server) > 0 for server in running)


@pytest.mark.parametrize("servers", [0, 1, 3])
@pytest.mark.parametrize(
    ("block", "stride", "count"), [(1000, 4096, 3000), (8, MIB, 20), (MIB + 5, 2 * MIB, 3), (7, 7, 9)]
)
def test_strided_data_are_where_they_belong(
    program, request, served_directory: Path, servers: int, block: int, stride: int, count: int
) -> None:
    for i in range(servers):
        request.getfixturevalue("start_server")(f"s{i}")
    data, before, offset = noise(block * count), noise(stride * count, 2), 12_345
    (served_directory / "f").write_bytes(before)
    expected = bytearray(before.ljust(offset + stride * (count - 1) + block, b"\0"))
    for i in range(count):
        expected[offset + i * stride : offset + i * stride + block] = data[i * block : (i + 1) * block]
    one = program()
    one.must("open", served_directory / "f", "rw")
    one.must("put_strided", offset, block, stride, count, one.file(data))
    assert (served_directory / "f").read_bytes() == expected
    assert one.get("get_strided", offset, block, stride, count) == data
    # This asks for one block more than there are.
    assert one.get("get_strided", offset + stride, block, stride, count) == data[block:]


def test_random_accesses_leave_the_bytes_of_a_model(program, start_server, served_directory: Path) -> None:
    for name in ("s1", "s2", "s3"):
        start_server(name)
    draw = random.Random(2026)
    model = bytearray()
    one = program()
    one.must("open", served_directory / "f", "rwc")
    for case in range(60):
        offset, block = draw.randrange(3 * MIB), draw.randrange(1, 1 << draw.randrange(1, 20))
        stride, count = block + draw.randrange(1 << draw.randrange(18)), draw.randrange(1, 6)
        data = draw.randbytes(block * count)
        if draw.random() < 0.6:
            one.must("put_strided", offset, block, stride, count, one.file(data))
            model.extend(bytes(max(0, offset + stride * (count - 1) + block - len(model))))
            for i in range(count):
                model[offset + i * stride : offset + i * stride + block] = data[i * block : (i + 1) * block]
        else:
            expected = b"".join(model[offset + i * stride : offset + i * stride + block] for i in range(count))
            assert one.get("get_strided", offset, block, stride, count) == expected, f"case {case}"
    assert (served_directory / "f").read_bytes() == model


@pytest.mark.parametrize("servers", [0, 1, 3])
def test_three_processes_put_and_get_together(program, request, served_directory: Path, servers: int) -> None:
    for i in range(servers):
        request.getfixturevalue("start_server")(f"s{i}")
    block, count = 4096, 512
    data = noise(3 * block * count)
    (served_directory / "f").touch()
    group = [program() for _ in range(3)]
    for one in group:
        one.must("open", served_directory / "f", "rw", "participants=3", "group=7")
    own = [b"".join(data[(3 * i + k) * block : (3 * i + k + 1) * block] for i in range(count)) for k in range(3)]
    for k, one in enumerate(group):
        one.tell("put_strided_all", 1, k * block, block, 3 * block, count, one.file(own[k]))
    assert [one.answer() for one in group] == [(0, "0")] * 3
    assert (served_directory / "f").read_bytes() == data
    for k, one in enumerate(group):
        one.tell_get("get_strided_all", 2, k * block, block, 3 * block, count)
    assert [one.got() for one in group] == own
    for one in group:
        one.tell_get("get_all", 3, 0, MIB if one is group[0] else 0)
    assert [one.got() for one in group] == [data[:MIB], b"", b""]


def test_what_processes_put_together_is_merged(program, start_server, served_directory: Path) -> None:
    """Data are merged if all arrive within some milliseconds. A busy machine may need several tries."""
    server = start_server("s1")
    group = [program() for _ in range(3)]
    for one in group:
        one.must("open", served_directory / "f", "wc", "participants=3", "group=7")
    for operation in range(1, 50):
        for k, one in enumerate(group):
            one.tell("put_strided_all", operation, k * 512, 512, 3 * 512, 100, one.file(noise(51200)))
        assert [one.answer() for one in group] == [(0, "0")] * 3
        state = server.client().state()
        assert int(state["operations"]) == 3 * operation
        if int(state["batches"]) < int(state["operations"]):
            return
    pytest.fail(f"nothing was merged: {state}")


def test_a_file_elsewhere_is_none_of_the_servers(program, start_server, tmp_path: Path) -> None:
    server = start_server("s1")
    one = program()
    one.must("open", tmp_path / "f", "wc")
    one.put(0, b"data")
    assert (tmp_path / "f").read_bytes() == b"data"
    assert operations(server) == 0


def test_servers_are_named_instead_of_asked_for(
    program, start_server, daemon: Daemon, served_directory: Path, tmp_path: Path
) -> None:
    servers = [start_server(name, "--tcp", "127.0.0.1:0", elsewhere=True) for name in ("s1", "s2")]
    daemon.kill()
    data = noise(3 * MIB)
    one = program()
    # A path alone, because the addresses say that the servers are on another node.
    for named in (
        f"servers=unix:{servers[0].socket}",
        "servers=" + "|".join(f"{s.name},{served_directory},unix:{s.socket},{s.addresses[1]}" for s in servers),
        f"servers={servers[1].addresses[1]}",  # over TCP
    ):
        one.must("open", served_directory / "f", "rwc", named)
        one.put(0, data)
        assert one.get("get", 0, len(data)) == data
        one.must("close")
        (served_directory / "f").unlink()
    assert all(operations(server) > 0 for server in servers)
    # A named server serves another directory: the process accesses the file itself.
    one.must("open", tmp_path / "g", "wc", f"servers=unix:{servers[0].socket}")
    one.put(0, b"data")
    one.must("close")
    assert (tmp_path / "g").read_bytes() == b"data"
    servers[0].kill()
    code, text = one.call("open", served_directory / "g", "wc", f"servers=unix:{servers[0].socket}")
    assert (code, text.startswith(f"cannot open {served_directory}/g: cannot reach the server at unix:")) == (
        NO_SERVER,
        True,
    )


@pytest.mark.parametrize("strided", [False, True])
def test_servers_die_one_after_the_other_and_nothing_is_lost(
    program, start_server, served_directory: Path, strided: bool
) -> None:
    """Each server dies in the middle of a put; in the end the process writes the data itself."""
    servers = [start_server(name, "--inject", "delay=20ms") for name in ("s1", "s2")]
    one = program()
    one.must("open", served_directory / "f", "rwc")
    words = ("put_strided", 0, 2 * MIB, 3 * MIB, 8) if strided else ("put", 0)
    for seed, server in enumerate(servers):
        data = noise(16 * MIB, seed)
        served = operations(server)
        one.tell(*words, one.file(data))
        kit.wait_until(lambda server=server, served=served: operations(server) > served, 30, "a write")
        server.kill()
        assert one.answer() == (0, "0")
        assert one.get("get_strided", 0, 2 * MIB, 3 * MIB if strided else 2 * MIB, 8) == data
    one.must("flush")
    one.must("close")


def test_what_was_written_behind_further_on_is_got(program, start_server, served_directory: Path) -> None:
    """One server reaches the end of the file before the other has extended it."""
    start_server("s0", "--write-behind")
    start_server("s1", "--write-behind", "--inject", "delay=500ms")
    data = noise(MIB)
    one = program()
    one.must("open", served_directory / "f", "rwc")
    one.put(MIB, data)
    assert one.get("get", 0, 2 * MIB) == bytes(MIB) + data
    one.must("close")


def test_a_file_that_grows_while_it_is_got_has_no_holes(program, start_server, served_directory: Path) -> None:
    first, second = start_server("s0"), start_server("s1")
    data = noise(2 * MIB)
    (served_directory / "f").touch()
    one = program()
    one.must("open", served_directory / "f", "r")
    kit.stop(second.pid)
    one.tell_get("get", 0, 2 * MIB)
    kit.wait_until(lambda: operations(first) == 1, 30, "the read at the end")
    (served_directory / "f").write_bytes(data)
    second.process.send_signal(signal.SIGCONT)
    assert one.got() == data


def test_what_others_wrote_behind_is_got_when_a_server_is_lost(program, start_server, served_directory: Path) -> None:
    """The stripes then go to other servers; the server that still holds some in memory is slow."""
    lost = start_server("s0")
    start_server("s1")
    start_server("s2", "--write-behind", "--inject", "delay=1s")
    data = noise(MIB)
    one = program()
    one.must("open", served_directory / "f", "rwc")
    one.put(2 * MIB, data)
    lost.kill()
    assert one.get("get", 4 * MIB, 10) == b""  # s1's before and afterwards; shows the loss
    assert one.get("get", 2 * MIB, MIB) == data  # s2's before, s1's afterwards
    one.must("close")


def test_a_lost_server_hides_no_error_of_another(program, start_server, served_directory: Path) -> None:
    start_server("s0", "--write-behind", "--inject", "errno=ENOSPC")
    lost = start_server("s1")
    one = program()
    one.must("open", served_directory / "f", "wc")
    one.put(0, b"data")
    lost.kill()
    assert one.call("flush")[0] == NO_SPACE


def test_what_another_process_put_and_a_lost_server_had_is_told(program, start_server, served_directory: Path) -> None:
    server = start_server("s1", "--write-behind")
    one, other = program(), program()
    for opens in (one, other):
        opens.must("open", served_directory / "f", "wc")
    one.put(0, b"data")
    server.kill()
    code, text = other.call("flush")
    assert (code, "the I/O server s1 was lost" in text) == (IO, True), text


@pytest.mark.parametrize("ending", ["flush", "close"])
def test_a_server_that_had_written_behind_and_died_is_told(
    program, start_server, served_directory: Path, ending: str
) -> None:
    server = start_server("s1", "--write-behind", "--inject", "delay=60s after=2")
    one = program()
    one.must("open", served_directory / "f", "wc")
    one.put(0, b"data")
    one.must("flush")
    one.put(4, b"more")
    server.kill()
    code, text = one.call(ending)
    assert (code, "the I/O server s1 was lost with 4 bytes" in text and "put again what" in text) == (IO, True), text
    if ending == "close":
        one.must("open", served_directory / "f", "w")
    one.put(4, b"more")
    one.must("flush")
    one.must("close")
    assert (served_directory / "f").read_bytes() == b"datamore"


@pytest.mark.parametrize("ending", ["flush", "close"])
def test_a_server_that_ends_in_order_alarms_nobody(program, start_server, served_directory: Path, ending: str) -> None:
    server = start_server("s1", "--write-behind", "--inject", "delay=300ms")
    one, other = program(), program()
    for opens in (one, other):
        opens.must("open", served_directory / "f", "wc")
    one.put(0, b"data")
    assert server.stop() == 0
    one.must(ending)
    other.must(ending)
    assert (served_directory / "f").read_bytes() == b"data"


@pytest.mark.parametrize("named", [False, True])
def test_puts_stay_in_the_file_that_was_opened(program, start_server, served_directory: Path, named: bool) -> None:
    """The server opens the path while another file has it. If it was named, that is an error."""
    server = start_server("s1")
    path, moved = served_directory / "f", served_directory / "moved"
    one = program()
    kit.stop(server.pid)
    one.tell("open", path, "wc", *([f"servers={server.addresses[0]}"] if named else []))
    kit.wait_until(path.exists, 30, "the process has opened the file")
    path.rename(moved)
    path.touch()
    server.process.send_signal(signal.SIGCONT)
    code, text = one.answer()
    if named:
        assert (code, f"a named server has another file at {path}" in text) == (IO, True), text
    else:
        one.put(0, b"data")
        one.must("close")
    assert (moved.read_bytes(), path.read_bytes()) == (b"" if named else b"data", b"")
    assert operations(server) == 0


@pytest.mark.parametrize(("error", "code"), [("ENOSPC", NO_SPACE), ("EDQUOT", NO_SPACE), ("EIO", IO)])
def test_an_error_of_the_storage_is_told(program, start_server, served_directory: Path, error: str, code: int) -> None:
    start_server("s1", "--inject", f"errno={error}")
    one = program()
    one.must("open", served_directory / "f", "wc")
    told, text = one.call("put", 0, one.file(b"data"))
    assert (told, text.startswith(f"cannot write {served_directory}/f through its I/O servers: ")) == (code, True), text
    assert one.call("close")[0] == 0


def test_open_says_what_is_wrong_with_the_file(program, tmp_path: Path) -> None:
    one = program()
    assert one.call("open", tmp_path / "none", "r") == (
        NOT_FOUND,
        f"cannot open {tmp_path}/none: No such file or directory; HOCKET_FILE_CREATE beside HOCKET_FILE_WRITE makes a "
        "file",
    )
    assert one.call("open", tmp_path, "r") == (ARGUMENT, f"cannot open {tmp_path}: Is a directory; name a file")
    (tmp_path / "file").touch()
    assert one.call("open", tmp_path / "file" / "below", "wc")[0] == ARGUMENT
    assert one.call("open", tmp_path / "none" / "f", "wc") == (
        NOT_FOUND,
        f"cannot open {tmp_path}/none/f: No such file or directory; make its directory first",
    )


@pytest.mark.parametrize("mode", ["r", "w", "rw"])
def test_what_is_no_regular_file_is_refused_at_once(program, tmp_path: Path, mode: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert program().call("open", tmp_path / "fifo", mode) == (
        ARGUMENT, f"cannot open {tmp_path}/fifo: it is not a regular file; name a file",
    )  # fmt: skip


def test_what_close_tells_is_told(program, tmp_path: Path) -> None:
    one = program(PUT_GET_FULL=str(tmp_path / "f"))
    one.must("open", tmp_path / "f", "wc")
    one.put(0, b"data")
    code, text = one.call("close")
    assert (code, text.startswith(f"cannot store {tmp_path}/f: ")) == (NO_SPACE, True), text
    one.must("open", tmp_path / "f", "r")
    one.must("close")


@pytest.mark.parametrize("servers", [0, 1])
def test_a_process_that_is_forked_cannot_use_the_file(program, request, served_directory: Path, servers: int) -> None:
    for i in range(servers):
        request.getfixturevalue("start_server")(f"s{i}")
    one = program()
    one.must("open", served_directory / "f", "rwc")
    one.put(0, b"data")
    put, get = ("put", 0, one.file(b"none")), ("get", 0, 4, one.scratch / "got")
    for words in (put, get, ("size",), ("version",), ("flush",), ("close",)):
        code, text = one.call("fork", *words)
        assert (code, f"{served_directory}/f was opened by process {one.process.pid}" in text) == (ARGUMENT, True), (
            words
        )
    assert one.get("get", 0, 10) == b"data"
    one.must("close")


WRONG_OPENINGS = {
    ("f", "c"): "'mode' is 4; join HOCKET_FILE_READ, HOCKET_FILE_WRITE and HOCKET_FILE_CREATE by |, one of the first "
        "two at least",
    ("f", "rc"): "'mode' has HOCKET_FILE_CREATE without HOCKET_FILE_WRITE",
    ("hocket:/a", "rw"): "a version of a data set is either read or written",
    ("hocket:/", "r"): "the data set's name in 'hocket:/' must have 1 to 255 characters, none of them",
    ("hocket:/" + "n" * 256, "w"): "must have 1 to 255 characters, none of them a control character",
    ("hocket:/a", "w", "application=" + "a" * 256): "'application' must have at most 255 characters",
    ("hocket:/a\tb", "w"): "none of them a control character",
    ("hocket:/a", "w", "participants=2", "group=1"): "'application' is not given; all participants must give the",
    ("f", "wc", "participants=2"): "'group' is 0; several participants need a number",
    ("f", "wc", "participants=-1"): "'participants' is -1; it must be at least 1",
    ("f", "wc", "readers=-2"): "'readers' is -2; it must be at least 1, or HOCKET_FILE_ANY_READERS",
    ("f", "wc", "wait_s=-1"): "'wait_s' must be a number of seconds, at least 0",
    ("f", "wc", "wait_s=nan"): "'wait_s' must be a number of seconds, at least 0",
    ("f", "wc", "servers=unix"): "'servers': ",
}  # fmt: skip


def test_wrong_arguments_of_open_are_named(program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOCKET_JOB", raising=False)
    one = program()
    for words, expected in WRONG_OPENINGS.items():
        code, text = one.call("open", *words)
        assert (code, text.startswith("hocket_file_open: "), expected in text) == (ARGUMENT, True, True), (words, text)


def test_wrong_arguments_of_accesses_are_named(program, tmp_path: Path) -> None:
    one, data = program(), tmp_path / "data"
    data.write_bytes(b"12345678")
    null = "hocket_file_{}: 'file' is NULL"
    assert one.call("size") == (ARGUMENT, null.format("size"))
    assert one.call("put", 0, data) == (ARGUMENT, null.format("put"))
    assert one.call("close") == (0, "0")
    one.must("open", tmp_path / "f", "wc")
    wrong = {
        ("put", -1, data): "hocket_file_put: 'offset' is -1; it must be at least 0 and below 2^62",
        ("put", 2**62 - 2, data): "hocket_file_put: the data would end beyond the longest file, 2^62 bytes",
        ("put_strided", 0, 4, 3, 2, data): "'stride_bytes' is 3; it must be at least block_bytes, which is 4",
        ("put_strided", 0, 4, 4, -2, data): "'count' is -2; it must be at least 0",
        ("put_strided", 0, -4, 4, 2, data): "'bytes' is -4; it must be at least 0",
        ("put_all", 0, 0, data): "hocket_file_put_all: 'operation' is 0; it must be a number above 0",
        ("get", 0, 4, data): f"hocket_file_get: {tmp_path}/f was not opened to read (HOCKET_FILE_READ)",
        ("version",): f"hocket_file_version: {tmp_path}/f is a file; data sets (hocket:/NAME) have versions",
    }
    for words, expected in wrong.items():
        code, text = one.call(*words)
        assert (code, expected in text) == (ARGUMENT, True), (words, text)
        data.write_bytes(b"12345678")
    one.must("close")
    one.must("open", tmp_path / "f", "r")
    assert one.call("put", 0, data) == (
        ARGUMENT,
        f"hocket_file_put: {tmp_path}/f was not opened to write (HOCKET_FILE_WRITE)",
    )
    assert (tmp_path / "f").read_bytes() == b""
