"""Put and get of the public C API (include/hocket/data.h): C programs, hocketd and hocket-servers, all real."""

from __future__ import annotations

import os
import random
import re
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import runtime_kit as kit
from api_kit import build
from conftest import Daemon
from server_kit import Server

pytestmark = pytest.mark.timeout(120)
REPO = Path(__file__).resolve().parent.parent
LIMIT_S = 50
MIB = 1 << 20
ARGUMENT, NO_DAEMON, IO, NOT_FOUND, ACCESS, NO_SPACE, NO_SERVER, TIMEOUT, CANCELED = (
    -1,
    -2,
    -7,
    -8,
    -9,
    -10,
    -11,
    -12,
    -13,
)


class Program:
    """A process of tests/programs/put_get.c, which does what it is told."""

    def __init__(self, program: Path, scratch: Path, **environment: str):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([program], env={**os.environ, **environment}, **pipes)
        self.scratch = scratch / f"program-{self.process.pid}"
        self.scratch.mkdir()

    def tell(self, *words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self) -> tuple[int, str]:
        """To the oldest command that was not answered: the code, and the value or the error's text."""
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], LIMIT_S)
        assert readable, f"program {self.process.pid} did not answer within {LIMIT_S} s"
        code, _, text = self.process.stdout.readline().rstrip("\n").partition(" ")
        assert code, f"program {self.process.pid} has ended: {self.process.poll()}"
        return int(code), text

    def call(self, *words: object) -> tuple[int, str]:
        self.tell(*words)
        return self.answer()

    def must(self, *words: object) -> int:
        """What has no error; its value."""
        code, text = self.call(*words)
        assert code == 0, f"{words}: {code} {text}"
        return int(text)

    def file(self, data: bytes) -> Path:
        path = self.scratch / "put"
        path.write_bytes(data)
        return path

    def put(self, offset: int, data: bytes) -> None:
        self.must("put", offset, self.file(data))

    def tell_get(self, *words: object) -> None:
        self.tell(*words, self.scratch / "got")

    def got(self) -> bytes:
        """What the get that was told last has brought."""
        code, text = self.answer()
        assert code == 0, f"get: {code} {text}"
        data = (self.scratch / "got").read_bytes()
        assert len(data) == int(text)
        return data

    def get(self, *words: object) -> bytes:
        self.tell_get(*words)
        return self.got()


@pytest.fixture(scope="session")
def put_get(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(prefix, REPO / "tests" / "programs" / "put_get.c", tmp_path_factory.mktemp("put-get") / "put_get")


@pytest.fixture
def program(put_get: Path, tmp_path: Path, hocket_dir: Path) -> Iterator[Callable[..., Program]]:
    """Starts programs; each is an application by itself."""
    started: list[Program] = []

    def start(**environment: str) -> Program:
        started.append(Program(put_get, tmp_path, **environment))
        return started[-1]

    yield start
    for one in started:
        # Closes what is open. Not 0 or 1: it was killed by a test, or it is what a sanitizer found.
        try:
            one.process.communicate(timeout=LIMIT_S)
        finally:
            one.process.kill()
        assert one.process.returncode in (0, 1, -signal.SIGKILL), f"program {one.process.pid}"


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
        kit.wait_until(lambda: f'"{name}"' in daemon.trace.read_text(), 30, f"SERVER of {name}")
        return servers[-1]

    yield start_one
    for server in servers:
        server.process.send_signal(signal.SIGCONT)
        server.kill()


def operations(server: Server) -> int:
    return int(server.client().state()["operations"])


def noise(bytes_: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(bytes_)


# ---- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("servers", [0, 1, 3])
def test_what_was_put_is_got(program, request, directory: Path, servers: int) -> None:
    running = [request.getfixturevalue("start")(f"s{i}") for i in range(servers)]
    data = noise(5 * MIB + 123)
    one = program()
    one.must("open", directory / "f", "rwc")
    one.put(777, data)
    assert one.must("size") == 777 + len(data)
    assert (directory / "f").read_bytes() == bytes(777) + data
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
    program, request, directory: Path, servers: int, block: int, stride: int, count: int
) -> None:
    for i in range(servers):
        request.getfixturevalue("start")(f"s{i}")
    data, before, offset = noise(block * count), noise(stride * count, 2), 12_345
    (directory / "f").write_bytes(before)
    expected = bytearray(before.ljust(offset + stride * (count - 1) + block, b"\0"))
    for i in range(count):
        expected[offset + i * stride : offset + i * stride + block] = data[i * block : (i + 1) * block]
    one = program()
    one.must("open", directory / "f", "rw")
    one.must("put_strided", offset, block, stride, count, one.file(data))
    assert (directory / "f").read_bytes() == expected
    assert one.get("get_strided", offset, block, stride, count) == data
    # One block more than there are.
    assert one.get("get_strided", offset + stride, block, stride, count) == data[block:]


def test_random_accesses_leave_the_bytes_of_a_model(program, start, directory: Path) -> None:
    for name in ("s1", "s2", "s3"):
        start(name)
    draw = random.Random(2026)
    model = bytearray()
    one = program()
    one.must("open", directory / "f", "rwc")
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
    assert (directory / "f").read_bytes() == model


@pytest.mark.parametrize("servers", [0, 1, 3])
def test_three_processes_put_and_get_together(program, request, directory: Path, servers: int) -> None:
    for i in range(servers):
        request.getfixturevalue("start")(f"s{i}")
    block, count = 4096, 512
    data = noise(3 * block * count)
    (directory / "f").touch()
    group = [program() for _ in range(3)]
    for one in group:
        one.must("open", directory / "f", "rw", "participants=3", "group=7")
    own = [b"".join(data[(3 * i + k) * block : (3 * i + k + 1) * block] for i in range(count)) for k in range(3)]
    for k, one in enumerate(group):
        one.tell("put_strided_all", 1, k * block, block, 3 * block, count, one.file(own[k]))
    assert [one.answer() for one in group] == [(0, "0")] * 3
    assert (directory / "f").read_bytes() == data
    for k, one in enumerate(group):
        one.tell_get("get_strided_all", 2, k * block, block, 3 * block, count)
    assert [one.got() for one in group] == own
    for one in group:
        one.tell_get("get_all", 3, 0, MIB if one is group[0] else 0)
    assert [one.got() for one in group] == [data[:MIB], b"", b""]


def test_what_processes_put_together_is_merged(program, start, directory: Path) -> None:
    """Where all come within some milliseconds, which they need not at once on a busy machine."""
    server = start("s1")
    group = [program() for _ in range(3)]
    for one in group:
        one.must("open", directory / "f", "wc", "participants=3", "group=7")
    for operation in range(1, 50):
        for k, one in enumerate(group):
            one.tell("put_strided_all", operation, k * 512, 512, 3 * 512, 100, one.file(noise(51200)))
        assert [one.answer() for one in group] == [(0, "0")] * 3
        state = server.client().state()
        assert int(state["operations"]) == 3 * operation
        if int(state["batches"]) < int(state["operations"]):
            return
    pytest.fail(f"nothing was merged: {state}")


def test_a_file_elsewhere_is_none_of_the_servers(program, start, tmp_path: Path) -> None:
    server = start("s1")
    one = program()
    one.must("open", tmp_path / "f", "wc")
    one.put(0, b"data")
    assert (tmp_path / "f").read_bytes() == b"data"
    assert operations(server) == 0


def test_servers_are_named_instead_of_asked_for(
    program, start, daemon: Daemon, directory: Path, tmp_path: Path
) -> None:
    servers = [start(name) for name in ("s1", "s2")]
    daemon.kill()
    data = noise(3 * MIB)
    one = program()
    for named in (
        f"servers={servers[0].addresses[0]}",
        "servers=" + "|".join(f"{s.name},{directory},{s.addresses[0]},{s.addresses[1]}" for s in servers),
        f"servers={servers[1].addresses[1]}",  # over TCP
    ):
        one.must("open", directory / "f", "rwc", named)
        one.put(0, data)
        assert one.get("get", 0, len(data)) == data
        one.must("close")
        (directory / "f").unlink()
    assert all(operations(server) > 0 for server in servers)
    # A named server that has another directory: the process itself.
    one.must("open", tmp_path / "g", "wc", f"servers={servers[0].addresses[0]}")
    one.put(0, b"data")
    one.must("close")
    assert (tmp_path / "g").read_bytes() == b"data"
    servers[0].kill()
    code, text = one.call("open", directory / "g", "wc", f"servers={servers[0].addresses[0]}")
    assert (code, text.startswith(f"cannot open {directory}/g: cannot reach the server at unix:")) == (NO_SERVER, True)


@pytest.mark.parametrize("strided", [False, True])
def test_servers_die_one_after_the_other_and_nothing_is_lost(program, start, directory: Path, strided: bool) -> None:
    """Each dies in the middle of a put; at last the process does it itself."""
    servers = [start(name, "--inject", "delay=20ms") for name in ("s1", "s2")]
    one = program()
    one.must("open", directory / "f", "rwc")
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


def test_what_was_written_behind_further_on_is_got(program, start, directory: Path) -> None:
    """One server meets the end of the file before the other has made it longer."""
    start("s0", "--write-behind")
    start("s1", "--write-behind", "--inject", "delay=500ms")
    data = noise(MIB)
    one = program()
    one.must("open", directory / "f", "rwc")
    one.put(MIB, data)
    assert one.get("get", 0, 2 * MIB) == bytes(MIB) + data
    one.must("close")


def test_a_file_that_grows_while_it_is_got_has_no_holes(program, start, directory: Path) -> None:
    first, second = start("s0"), start("s1")
    data = noise(2 * MIB)
    (directory / "f").touch()
    one = program()
    one.must("open", directory / "f", "r")
    second.process.send_signal(signal.SIGSTOP)
    one.tell_get("get", 0, 2 * MIB)
    kit.wait_until(lambda: operations(first) == 1, 30, "the read at the end")
    (directory / "f").write_bytes(data)
    second.process.send_signal(signal.SIGCONT)
    assert one.got() == data


def test_what_others_wrote_behind_is_got_when_a_server_is_lost(program, start, directory: Path) -> None:
    """Stripes go to other servers then; the one that has some in its memory yet is slow."""
    lost = start("s0")
    start("s1")
    start("s2", "--write-behind", "--inject", "delay=1s")
    data = noise(MIB)
    one = program()
    one.must("open", directory / "f", "rwc")
    one.put(2 * MIB, data)
    lost.kill()
    assert one.get("get", 4 * MIB, 10) == b""  # s1's before and afterwards; the loss is noticed
    assert one.get("get", 2 * MIB, MIB) == data  # s2's before, s1's afterwards
    one.must("close")


def test_a_lost_server_hides_no_error_of_another(program, start, directory: Path) -> None:
    start("s0", "--write-behind", "--inject", "errno=ENOSPC")
    lost = start("s1")
    one = program()
    one.must("open", directory / "f", "wc")
    one.put(0, b"data")
    lost.kill()
    assert one.call("flush")[0] == NO_SPACE


def test_what_another_process_put_and_a_lost_server_had_is_told(program, start, directory: Path) -> None:
    server = start("s1", "--write-behind")
    one, other = program(), program()
    for opens in (one, other):
        opens.must("open", directory / "f", "wc")
    one.put(0, b"data")
    server.kill()
    code, text = other.call("flush")
    assert (code, "the I/O server s1 was lost" in text) == (IO, True), text


def test_a_server_that_had_written_behind_and_died_is_told(program, start, directory: Path) -> None:
    server = start("s1", "--write-behind")
    one = program()
    one.must("open", directory / "f", "wc")
    one.put(0, b"data")
    one.must("flush")
    one.put(4, b"more")
    server.kill()
    code, text = one.call("flush")
    assert (code, "the I/O server s1 was lost" in text and "put it again" in text) == (IO, True), text
    one.put(4, b"more")
    one.must("flush")
    one.must("close")
    assert (directory / "f").read_bytes() == b"datamore"


@pytest.mark.parametrize(("error", "code"), [("ENOSPC", NO_SPACE), ("EDQUOT", NO_SPACE), ("EIO", IO)])
def test_an_error_of_the_storage_is_told(program, start, directory: Path, error: str, code: int) -> None:
    start("s1", "--inject", f"errno={error}")
    one = program()
    one.must("open", directory / "f", "wc")
    told, text = one.call("put", 0, one.file(b"data"))
    assert (told, text.startswith(f"cannot write {directory}/f through its I/O servers: ")) == (code, True), text
    assert one.call("close")[0] == 0


def test_open_says_what_is_wrong_with_the_file(program, tmp_path: Path) -> None:
    one = program()
    assert one.call("open", tmp_path / "none", "r") == (
        NOT_FOUND,
        f"cannot open {tmp_path}/none: No such file or directory; HOCKET_CREATE beside HOCKET_WRITE makes a file",
    )
    assert one.call("open", tmp_path, "r") == (ARGUMENT, f"cannot open {tmp_path}: Is a directory; name a file")
    (tmp_path / "file").touch()
    assert one.call("open", tmp_path / "file" / "below", "wc")[0] == ARGUMENT
    assert one.call("open", tmp_path / "none" / "f", "wc") == (
        NOT_FOUND,
        f"cannot open {tmp_path}/none/f: No such file or directory; make the directory that it is to be in",
    )


@pytest.mark.parametrize("mode", ["r", "w", "rw"])
def test_what_is_no_regular_file_is_refused_at_once(program, tmp_path: Path, mode: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert program().call("open", tmp_path / "fifo", mode) == (
        ARGUMENT, f"cannot open {tmp_path}/fifo: it is no regular file; name a file",
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
def test_a_process_that_is_forked_cannot_use_the_file(program, request, directory: Path, servers: int) -> None:
    for i in range(servers):
        request.getfixturevalue("start")(f"s{i}")
    one = program()
    one.must("open", directory / "f", "rwc")
    one.put(0, b"data")
    put, get = ("put", 0, one.file(b"none")), ("get", 0, 4, one.scratch / "got")
    for words in (put, get, ("size",), ("version",), ("flush",), ("close",)):
        code, text = one.call("fork", *words)
        assert (code, f"{directory}/f was opened by process {one.process.pid}" in text) == (ARGUMENT, True), words
    assert one.get("get", 0, 10) == b"data"
    one.must("close")


WRONG_OPENINGS = {
    ("f", "c"): "'mode' is 4; join HOCKET_READ, HOCKET_WRITE and HOCKET_CREATE by |, one of the first two at least",
    ("f", "rc"): "'mode' has HOCKET_CREATE without HOCKET_WRITE",
    ("hocket:/a", "rw"): "a version of a data set is either read or written",
    ("hocket:/", "r"): "the data set's name in 'hocket:/' must have 1 to 255 characters, none of them",
    ("hocket:/" + "n" * 256, "w"): "must have 1 to 255 characters, none of them a control character",
    ("hocket:/a", "w", "application=" + "a" * 256): "'application' must have at most 255 characters",
    ("hocket:/a\tb", "w"): "none of them a control character",
    ("hocket:/a", "w", "participants=2", "group=1"): "'application' is not given; all participants must say the same",
    ("f", "wc", "participants=2"): "'group' is 0; where there are several participants it must be a number",
    ("f", "wc", "participants=-1"): "'participants' is -1; it must be at least 1",
    ("f", "wc", "readers=-2"): "'readers' is -2; it must be at least 1, or HOCKET_ANY_READERS",
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
        assert (code, text.startswith("hocket_open: "), expected in text) == (ARGUMENT, True, True), (words, text)


def test_wrong_arguments_of_accesses_are_named(program, tmp_path: Path) -> None:
    one, data = program(), tmp_path / "data"
    data.write_bytes(b"12345678")
    null = "hocket_{}: 'file' is NULL"
    assert one.call("size") == (ARGUMENT, null.format("size"))
    assert one.call("put", 0, data) == (ARGUMENT, null.format("put"))
    assert one.call("close") == (0, "0")
    one.must("open", tmp_path / "f", "wc")
    wrong = {
        ("put", -1, data): "hocket_put: 'offset' is -1; it must be at least 0 and below 2^62",
        ("put", 2**62 - 2, data): "hocket_put: the data would end behind the longest file, 2^62 bytes",
        ("put_strided", 0, 4, 3, 2, data): "'stride_bytes' is 3; it must be at least block_bytes, which is 4",
        ("put_strided", 0, 4, 4, -2, data): "'count' is -2; it must be at least 0",
        ("put_strided", 0, -4, 4, 2, data): "'bytes' is -4; it must be at least 0",
        ("put_all", 0, 0, data): "hocket_put_all: 'operation' is 0; it must be a number above 0",
        ("get", 0, 4, data): f"hocket_get: {tmp_path}/f was not opened to read (HOCKET_READ)",
        ("version",): f"hocket_version: {tmp_path}/f is a file; data sets (hocket:/NAME) have versions",
    }
    for words, expected in wrong.items():
        code, text = one.call(*words)
        assert (code, expected in text) == (ARGUMENT, True), (words, text)
        data.write_bytes(b"12345678")
    one.must("close")
    one.must("open", tmp_path / "f", "r")
    assert one.call("put", 0, data) == (ARGUMENT, f"hocket_put: {tmp_path}/f was not opened to write (HOCKET_WRITE)")
    assert (tmp_path / "f").read_bytes() == b""


# ---- data sets -----------------------------------------------------------------------------------------------------


def test_without_a_daemon_there_are_files_but_no_data_sets(program, hocket_dir: Path, tmp_path: Path) -> None:
    one = program()
    one.must("open", tmp_path / "f", "wc")
    one.must("close")
    code, text = one.call("open", "hocket:/field", "w", "wait_s=0.1")
    assert code == NO_DAEMON
    assert text.startswith("cannot open hocket:/field: no hocketd listens at ") and "hocket daemon start" in text


def test_without_a_server_there_are_no_data_sets(program, daemon: Daemon) -> None:
    assert program().call("open", "hocket:/field", "w", "wait_s=0.1") == (
        NO_SERVER, "cannot open hocket:/field: there is no I/O server; start one with 'hocket server start'",
    )  # fmt: skip


@pytest.mark.parametrize("servers", [1, 3])
def test_two_applications_exchange_versions(program, start, servers: int) -> None:
    for i in range(servers):
        start(f"s{i}")
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


def test_a_reader_may_be_first(program, start) -> None:
    start("s1")
    writer, reader = program(), program()
    reader.tell("open", "hocket:/field", "r", "wait_s=40")
    # Longer than one slice of the wait: the reader has asked again.
    with pytest.raises(subprocess.TimeoutExpired):
        reader.process.wait(2.5)
    writer.must("open", "hocket:/field", "w")
    writer.put(0, b"data")
    writer.must("close")
    assert reader.answer() == (0, "0")
    assert reader.get("get", 0, 10) == b"data"
    reader.must("close")


def test_a_reader_waits_for_a_server_that_comes_late(program, start) -> None:
    """The data set's home changes while it waits, to whichever server that is."""
    names = ["s1", "s2", "s3", "s4"]
    start(names[0])
    writer, reader = program(), program()
    reader.tell("open", "hocket:/field", "r", "wait_s=40")
    for name in names[1:]:
        start(name)
    writer.must("open", "hocket:/field", "w")
    writer.put(0, b"data")
    writer.must("close")
    assert reader.answer() == (0, "0")
    assert reader.get("get", 0, 10) == b"data"


def test_servers_of_data_sets_are_named_instead_of_asked_for(program, start, daemon: Daemon, directory: Path) -> None:
    """Both sides name the same: then both find the same home."""
    servers = [start(name) for name in ("s1", "s2", "s3")]
    daemon.kill()
    writer, reader = program(), program()
    all_of_them = "|".join(f"{s.name},{directory},{s.addresses[0]}" for s in servers)
    for named in (servers[1].addresses[0], all_of_them):
        writer.must("open", "hocket:/field", "w", f"servers={named}")
        writer.put(0, b"data")
        writer.must("close")
        reader.must("open", "hocket:/field", "r", f"servers={named}")
        assert reader.get("get", 0, 10) == b"data"
        reader.must("close")
    code, text = reader.call("open", "hocket:/field", "r", "servers=unix:/nowhere", "wait_s=0.1")
    assert (code, "no hocket-server listens at /nowhere" in text) == (NO_SERVER, True), text


def test_who_waits_at_a_server_that_ends_goes_on_to_another(program, start) -> None:
    first = start("s1")
    reader, writer = program(), program()
    reader.tell("open", "hocket:/field", "r", "wait_s=40")
    kit.wait_until(lambda: first.client().state()["clients"] == "2", 30, "the reader")
    start("s2")
    assert first.stop() == 0
    writer.must("open", "hocket:/field", "w")
    writer.put(0, b"data")
    writer.must("close")
    assert reader.answer() == (0, "0")
    assert reader.get("get", 0, 10) == b"data"


def test_who_waits_at_a_server_that_ends_slowly_goes_on_to_another(program, start, directory: Path) -> None:
    """It lets nobody wait any more, and writes what it has, before it closes its connections."""
    first = start("s1", "--write-behind", "--threads", 1, "--inject", "delay=2s")
    busy, reader, writer = program(), program(), program()
    busy.must("open", directory / "f", "wc")
    busy.put(0, b"data")
    busy.put(10 * MIB, b"data")
    reader.tell("open", "hocket:/field", "r", "wait_s=40")
    kit.wait_until(lambda: first.client().state()["clients"] == "3", 30, "the reader")
    first.process.terminate()
    start("s2")
    assert first.process.wait(LIMIT_S) == 0
    writer.must("open", "hocket:/field", "w")
    writer.put(0, b"data")
    writer.must("close")
    assert reader.answer() == (0, "0")
    assert reader.get("get", 0, 10) == b"data"


def test_who_waits_at_a_server_that_hangs_looks_for_it_once_more(program, start) -> None:
    server = start("s1")
    reader, writer = program(), program()
    reader.tell("open", "hocket:/field", "r", "wait_s=100")
    kit.wait_until(lambda: server.client().state()["clients"] == "2", 30, "the reader")
    server.process.send_signal(signal.SIGSTOP)
    # It is lost after 30 s at most, and 5 s more it may be absent.
    readable, _, _ = select.select([reader.process.stdout], [], [], 32)
    assert not readable, reader.answer()
    server.process.send_signal(signal.SIGCONT)
    writer.must("open", "hocket:/field", "w")
    writer.put(0, b"data")
    writer.must("close")
    assert reader.answer() == (0, "0")
    assert reader.get("get", 0, 10) == b"data"


def test_a_process_with_the_number_of_another_is_another_application(program, start) -> None:
    """As in a container that is started once more."""
    start("s1")
    writer = program()
    writer.must("open", "hocket:/field", "w", "readers=-1")
    writer.put(0, b"data")
    writer.must("close")
    for _ in range(2):
        reader = program(PUT_GET_PID="1")
        reader.must("open", "hocket:/field", "r", "wait_s=5")
        assert reader.get("get", 0, 10) == b"data"
        reader.must("close")


def test_groups_write_and_read_together(program, start) -> None:
    start("s1")
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


def test_versions_for_any_number_of_readers_stay(program, start) -> None:
    start("s1")
    writer, readers = program(), [program() for _ in range(3)]
    for data in (b"old", b"new"):
        writer.must("open", "hocket:/field", "w", "readers=-1")
        writer.put(0, data)
        writer.must("close")
    for reader in readers:
        reader.must("open", "hocket:/field", "r")
        assert (reader.must("version"), reader.get("get", 0, 10)) == (2, b"new")
        reader.must("close")


def test_a_version_of_a_writer_that_dies_is_never_there(program, start) -> None:
    start("s1")
    writer, reader, other = program(), program(), program()
    writer.must("open", "hocket:/field", "w")
    writer.put(0, b"half of")
    writer.process.kill()
    assert reader.call("open", "hocket:/field", "r", "wait_s=0.5") == (
        TIMEOUT,
        "cannot open hocket:/field within 0.5 s: no version to read, or not all participants have opened it; start who "
        "is missing, or wait longer (wait_s)",
    )
    other.must("open", "hocket:/field", "w")
    other.put(0, b"whole")
    other.must("close")
    reader.must("open", "hocket:/field", "r")
    assert (reader.must("version"), reader.get("get", 0, 10)) == (1, b"whole")


def test_who_waits_for_the_rest_of_his_group_waits_no_longer_than_he_said(program, start) -> None:
    start("s1")
    code, text = program().call(
        "open", "hocket:/field", "w", "participants=2", "group=3", "application=a", "wait_s=2.5"
    )
    assert (code, "within 2.5 s: no room for a version, or not all participants" in text) == (TIMEOUT, True), text


def test_another_process_of_the_group_dies(program, start) -> None:
    start("s1")
    group = [program(HOCKET_JOB="writers") for _ in range(2)]
    for one in group:
        one.tell("open", "hocket:/field", "w", "participants=2", "group=9")
    assert [one.answer() for one in group] == [(0, "0")] * 2
    group[0].put(0, b"data")
    group[1].process.kill()
    group[1].process.wait(LIMIT_S)
    code, text = group[0].call("close")
    assert (code, "another process of the group has gone" in text) == (CANCELED, True), text


def test_another_process_of_the_group_dies_that_reads(program, start) -> None:
    start("s1")
    writer, group, other = program(), [program(HOCKET_JOB="readers") for _ in range(2)], program(HOCKET_JOB="readers")
    writer.must("open", "hocket:/field", "w")
    writer.put(0, b"data")
    writer.must("close")
    for one in group:
        one.tell("open", "hocket:/field", "r", "participants=2", "group=9")
    assert [one.answer() for one in group] == [(0, "0")] * 2
    group[1].process.kill()
    group[1].process.wait(LIMIT_S)
    code, text = group[0].call("close")
    assert (code, "another process of the group has gone" in text) == (CANCELED, True), text
    other.must("open", "hocket:/field", "r")
    assert (other.must("version"), other.get("get", 0, 10)) == (1, b"data")
    other.must("close")


def test_a_server_that_is_lost_takes_its_data_sets_along(program, start) -> None:
    server = start("s1")
    reader, writer = program(), program()
    writer.must("open", "hocket:/field", "w")
    writer.put(0, b"data")
    writer.must("close")
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
    start("s2")
    writer.must("open", "hocket:/field", "w")
    writer.put(0, b"more")
    writer.must("close")
    reader.must("open", "hocket:/field", "r")
    assert reader.get("get", 0, 10) == b"more"


def test_example_prints_what_it_should(prefix: Path, start, tmp_path: Path) -> None:
    start("s1")
    example = REPO / "examples" / "put_get"
    done = subprocess.run(
        [build(prefix, example / "put_get.c", tmp_path / "put_get")], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert (done.stdout, done.stderr, done.returncode) == ((example / "expected.txt").read_text(), "", 0)
