"""hocket-server as a process: who may connect, which requests it accepts, what it survives, which data survive it."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import runtime_kit as kit
from relay_kit import host_and_port
from server_kit import HEADER, LIMIT_S, LIST, READS, TYPE, VIEWED, WRITE_BEHIND, WRITES, Client, Frame, Server, prove

OTHER_USER = 65534


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").touch()
    return tmp_path / "data"


@pytest.fixture
def start(prefix: Path, hocket_dir: Path, directory: Path) -> Iterator[Callable[..., Server]]:
    """Return a function that starts a hocket-server with more arguments; a test may call it again."""
    servers: list[Server] = []

    def start_one(*arguments: object, **options) -> Server:
        servers.append(Server(prefix, hocket_dir, directory, *arguments, **options))
        return servers[-1]

    yield start_one
    for server in servers:
        server.kill()


@pytest.fixture
def server(start: Callable[..., Server]) -> Server:
    return start("--tcp", "127.0.0.1:0")


# ---- the protocol --------------------------------------------------------------------------------------------------

BROKEN = {
    "no frame": (Frame(TYPE["state"]), {"magic": 0}),
    "another version": (Frame(TYPE["state"]), {"version": 9}),
    "an unknown type": (Frame(40), {}),
    "a server's type": (Frame(TYPE["answer"]), {}),
    "an unknown flag": (Frame(TYPE["state"], flags=1 << 14), {}),
    "a sequence number left out": (Frame(TYPE["state"], sequence=3), {}),
    "a sequence number once more": (Frame(TYPE["state"], sequence=1), {}),
    "too long a payload": (Frame(TYPE["write"], bytes=2**31), {"payload_bytes": 2**31}),
    "too long a meta part": (Frame(TYPE["open"]), {"meta_bytes": 2**30}),
    "a payload that is not its data": (Frame(TYPE["write"], bytes=8, payload=b"1234"), {}),
    "data with what is no write": (Frame(TYPE["read"], bytes=4, payload=b"1234"), {}),
    "a negative offset": (Frame(TYPE["write"], offset=-4096), {}),
    "shared memory without any": (Frame(TYPE["share"], bytes=4096), {}),
    "a view of no file": (Frame(TYPE["view"], handle=77), {}),
    "the end of an operation of no file": (Frame(TYPE["end"], handle=77, operation=1, number=2), {}),
    "a second greeting": (Frame(TYPE["prove"]), {}),
}


def test_who_breaks_the_protocol_is_cut_off_and_nobody_else(server: Server, directory: Path) -> None:
    good = server.client()
    handle = good.open("file")
    for number, (what, (frame, changed)) in enumerate(BROKEN.items()):
        bad = server.client()
        bad.send(frame, **changed)
        assert bad.is_cut_off(), what
        assert good.write(handle, number, b"x") == 0, what
    assert (directory / "file").read_bytes() == b"x" * len(BROKEN)
    assert good.state()["clients"] == "1"
    cut_off = [line for line in server.log.read_text().splitlines() if "cut off client" in line]
    assert len(cut_off) == len(BROKEN), server.log.read_text()


def test_requests_that_make_no_sense_fail_alone(server: Server, directory: Path) -> None:
    """The frames are well-formed, so the connection remains."""
    client = server.client()
    handle = client.open("file")
    pair = (10).to_bytes(8, "little") + (4).to_bytes(4, "little")
    wrong = {
        "no such file": (errno.EBADF, client.call("write", handle=99, payload=b"1234")),
        "a list that goes back": (
            errno.EINVAL,
            client.call("write", handle=handle, flags=LIST, meta=pair + pair, payload=b"12345678"),
        ),
        "a list of other length": (
            errno.EINVAL, client.call("write", handle=handle, flags=LIST, meta=pair, payload=b"12345")),
        "a view that was not sent": (errno.EINVAL, client.call("write", handle=handle, flags=16, payload=b"1234")),
        "behind the last offset": (
            errno.EINVAL, client.call("write", handle=handle, offset=2**62 - 2, payload=b"1234")),
        "no data": (errno.EINVAL, client.call("read", handle=handle)),
        "too many data": (errno.EINVAL, client.call("read", handle=handle, bytes=2**40)),
        "shared memory that was not shared": (
            errno.EFAULT, client.call("read", handle=handle, flags=32, bytes=4, shared=2**50)),
        "outside of the directory": (errno.EXDEV, client.call("open", meta=b"/etc/passwd", flags=READS)),
        "a path with a zero": (errno.EINVAL, client.call("open", meta=b"file\0", flags=READS)),
    }  # fmt: skip
    for what, (expected, answer) in wrong.items():
        assert answer.error == expected, f"{what}: {os.strerror(answer.error)}"
    assert client.write(handle, 0, b"good") == 0
    assert (directory / "file").read_bytes() == b"good"


# ---- who may connect -----------------------------------------------------------------------------------------------


def test_over_tcp_only_who_knows_the_secret(server: Server, hocket_dir: Path) -> None:
    address = server.addresses[1]
    assert stat.S_IMODE((hocket_dir / "servers" / "secret").stat().st_mode) == 0o600
    good = Client(address, server.secret)
    assert good.open("file") == 1
    # A proof holds for its own connection only, so a recorded proof is worthless.
    for what, proof in {
        "another secret": lambda nonce: prove(b"0" * 64, nonce, address),
        "a proof for another server": lambda nonce: prove(server.secret, nonce, another_instance(address)),
        "a proof of another connection": lambda nonce: good.proof,
        "no proof": lambda nonce: b"",
        "half a proof": lambda nonce: prove(server.secret, nonce, address)[:40],
    }.items():
        bad = Client(address, greet=False)
        bad.send(Frame(TYPE["prove"], meta=proof(bad.challenge.meta)))
        assert bad.is_cut_off(), what
    for what, frame in {
        "a request before the proof": Frame(TYPE["open"], meta=b"file", flags=READS),
        "data before the proof": Frame(TYPE["write"], bytes=4, payload=b"1234"),
        "much before the proof": Frame(TYPE["prove"], meta=b"x" * 5000),
    }.items():
        bad = Client(address, greet=False)
        bad.send(frame)
        assert bad.is_cut_off(), what
    assert good.state()["clients"] == "1"


def test_silent_connections_keep_nobody_out(server: Server) -> None:
    """300 of them, as a stranger without the secret may open, while 98 clients come."""
    address = server.addresses[1]
    silent = [stranger(address) for _ in range(300)]
    clients = [Client(address, server.secret) for _ in range(98)]
    assert [client.open("file") for client in clients] == [1] * 98
    assert server.client().state()["clients"] == "99"
    for one in silent:
        one.close()


def test_a_flood_of_connections_fills_no_log(server: Server) -> None:
    """Each that is over the limit displaces another one. The log has a few lines of that."""
    address = server.addresses[1]
    flood = [stranger(address) for _ in range(800)]
    assert Client(address, server.secret).open("file") == 1
    assert any(is_closed(one) for one in flood[:10]), "the oldest had to go"
    assert not any(is_closed(one) for one in flood[-10:])
    for one in flood:
        one.close()
    lines = [line for line in server.log.read_text().splitlines() if "did not identify itself" in line]
    assert 0 < len(lines) <= 20


def another_instance(address: str) -> str:
    place, _, instance = address.partition("#")
    return f"{place}#{instance[::-1]}"


def stranger(address: str) -> socket.socket:
    """Return a connection over TCP that says nothing."""
    return socket.create_connection(host_and_port(address), LIMIT_S)


def is_closed(one: socket.socket) -> bool:
    """True if the other end has closed the connection."""
    one.setblocking(False)
    try:
        while data := one.recv(4096):
            assert data
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


@pytest.mark.timeout(90)
def test_writers_of_a_byte_a_second_starve_nobody(start: Callable[..., Server]) -> None:
    """They fill the memory with writes that they hardly send; each of their bytes is no progress."""
    server = start("--buffer", "8m")
    slow = [server.client() for _ in range(64)]
    for client in slow:
        handle = client.open("file")
        client.socket.sendall(begun_write(client, handle))
    good = server.client()
    handle = good.open("file")
    done = threading.Event()

    def trickle() -> None:
        while not done.wait(0.5):
            for client in slow:
                with contextlib.suppress(OSError):
                    client.socket.send(b"x")

    trickling = threading.Thread(target=trickle)
    trickling.start()
    try:
        assert good.write(handle, 0, b"y" * (1 << 20)) == 0
    finally:
        done.set()
        trickling.join()


def number(value: int) -> bytes:
    """Return a number as serialised views have it (src/core/layout/serialise.cpp)."""
    low = value & 127
    return bytes([low | 128]) + number(value >> 7) if value > 127 else bytes([low])


def view_of_many_nodes(count: int) -> bytes:
    """Return a view whose parts are all different: each has two bytes of data, and takes some hundred of memory."""
    nodes = [number(0) + number(1)]  # a run of one byte
    nodes += [number(1) + number(0) + number(2) + number(2 * (2 + i)) for i in range(count)]  # two of them, 2 + i apart
    entries = [number(1 + i) + number(2) for i in range(count)]
    return number(1 << 60) + number(0) + b"".join(nodes) + number(4) + number(count) + b"".join(entries)


@pytest.mark.timeout(120)
def test_views_count_towards_the_memory(start: Callable[..., Server], directory: Path, prefix: Path) -> None:
    """10 sessions that send as large views as there may be, and 8 of them each."""
    server = start("--buffer", "32m")
    view = view_of_many_nodes(25_000)
    assert 200_000 < len(view) <= 256 << 10
    before = resident_bytes(server)
    sessions = [server.client() for _ in range(10)]
    for session in sessions:
        handle = session.open("file")
        for index in range(8):
            session.ask("view", handle=handle, number=index, meta=view)
        refused = session.call("write", handle=handle, flags=VIEWED, number=7, payload=b"12").error
        assert refused == errno.ENOBUFS
    keeps_freed_memory = b"__asan_init" in (prefix / "bin" / "hocket-server").read_bytes()
    assert keeps_freed_memory or resident_bytes(server) - before < 64 << 20
    # A small view is accepted by another session, and data have room.
    other = server.client()
    handle = other.open("file")
    other.ask("view", handle=handle, number=0, meta=view_of_many_nodes(3))
    assert other.call("write", handle=handle, flags=VIEWED, number=0, payload=b"12").error == 0
    assert other.write(handle, 0, b"x" * (1 << 20)) == 0
    # What sessions have goes with them.
    for session in sessions:
        session.close()
    kit.wait_until(lambda: other.state()["clients"] == "1", LIMIT_S, "they have gone")
    other.ask("view", handle=handle, number=1, meta=view_of_many_nodes(5_000))
    assert other.call("write", handle=handle, flags=VIEWED, number=1, payload=b"12").error == 0


def resident_bytes(server: Server) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def begun_write(client: Client, handle: int) -> bytes:
    """Return the begin of a write of 1 MiB: its header and one byte."""
    frame = Frame(TYPE["write"], request=1, handle=handle, bytes=1 << 20, payload=b"x" * (1 << 20))
    return client.sealed(frame)[: HEADER.size + 1]


def test_unless_asked_for_there_is_no_port_and_no_secret(start: Callable[..., Server], hocket_dir: Path) -> None:
    server = start()
    assert [address.partition(":")[0] for address in server.addresses] == ["unix"]
    assert not (hocket_dir / "servers" / "secret").exists()
    path = server.socket
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert server.stop() == 0
    assert not path.exists()


def test_a_name_is_one_servers(start: Callable[..., Server], prefix: Path, hocket_dir: Path, directory: Path) -> None:
    start()
    start(name="s2")
    program = [prefix / "bin" / "hocket-server", "--runtime-dir", hocket_dir]
    for words, code, text in (
        (["--name", "s1", "--dir", directory], 1, "another server is called 's1'"),
        (["--name", "s3", "--dir", directory / "none"], 1, "cannot serve the directory"),
        (["--name", "s/3", "--dir", directory], 2, "may only have letters"),
        (["--name", "s3", "--dir", directory, "--inject", "delay=5"], 2, "'delay=5' cannot be injected"),
        (["--name", "s3", "--dir", directory, "--buffer", "1k"], 2, "--buffer"),
        (["--name", "s3", "--dir", directory, "--tcp", "here"], 1, "--tcp 'here' is not HOST:PORT"),
        (["--name", "s3", "--dir", directory, "--tcp", "[::]:0"], 1, "names no host by which other nodes reach"),
        (["--name", "s3"], 2, "--dir is required"),
    ):
        run = subprocess.run([*program, *words], capture_output=True, text=True, timeout=LIMIT_S)
        assert (run.returncode, run.stdout) == (code, ""), run
        assert text in run.stderr and run.stderr.startswith("hocket-server: "), run.stderr


def refusal(prefix: Path, hocket_dir: Path, directory: Path) -> str:
    """Start a server that must refuse the runtime directory, and return what it says."""
    program = [prefix / "bin" / "hocket-server", "--runtime-dir", hocket_dir, "--dir", directory]
    run = subprocess.run(program, capture_output=True, text=True, timeout=LIMIT_S)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (1, "", 1), run
    assert not (hocket_dir / "servers").exists()
    return run.stderr


def test_a_runtime_directory_open_to_others_is_refused(prefix: Path, hocket_dir: Path, directory: Path) -> None:
    hocket_dir.chmod(0o777)
    assert f"{hocket_dir} is open to other users (mode 0777); chmod 700" in refusal(prefix, hocket_dir, directory)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory to another user")
def test_a_runtime_directory_of_somebody_else_is_refused(prefix: Path, hocket_dir: Path, directory: Path) -> None:
    os.chown(hocket_dir, OTHER_USER, OTHER_USER)
    assert f"{hocket_dir} belongs to user {OTHER_USER}, not to user 0" in refusal(prefix, hocket_dir, directory)


# ---- clients and servers that end ----------------------------------------------------------------------------------


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def await_one_client(watching: Client) -> dict[str, str]:
    """Wait until all other clients and their requests are gone, and return the state."""
    state = watching.state()
    while state["clients"] != "1" or state["queue"] != "0":
        state = watching.state()
    return state


def test_clients_that_die_leave_nothing_behind(server: Server, directory: Path) -> None:
    """Clients die in the middle of a frame, with data held for an operation, and with unread answers."""
    (directory / "file").write_bytes(b"r" * 4_000_000)
    watching = server.client()
    before = descriptors(server.pid)
    for _ in range(5):
        clients = [server.client() for _ in range(3)]
        handles = [client.open("file") for client in clients]
        clients[0].send(Frame(TYPE["write"], handle=handles[0], bytes=1 << 20), payload_bytes=1 << 20)
        clients[0].socket.sendall(b"half" * 1000)
        clients[1].ask("write", handle=handles[1], offset=5_000_000, payload=b"held", operation=9)
        clients[1].send(Frame(TYPE["end"], handle=handles[1], operation=9, number=3))
        for _ in range(100):
            clients[2].ask("read", handle=handles[2], bytes=1 << 20)
        for client in clients:
            client.close()
    state = await_one_client(watching)
    assert (state["held_bytes"], state["files"]) == ("0", "0")
    kit.wait_until(lambda: descriptors(server.pid) <= before, LIMIT_S, "no descriptor is left")
    handle = watching.open("file")
    assert watching.write(handle, 0, b"on it goes") == 0


def test_what_a_client_that_has_gone_was_not_told_is_not_done(server: Server, directory: Path) -> None:
    """The client gave up on a server that had stopped, and wrote the data itself."""
    client, other = server.client(), server.client()
    handle = client.open("file")
    kit.stop(server.pid)
    for place in range(3):
        client.ask("write", handle=handle, offset=place, payload=b"x")
    client.close()
    server.process.send_signal(signal.SIGCONT)
    state = await_one_client(other)
    assert (state["operations"], (directory / "file").read_bytes()) == ("0", b"")


@pytest.mark.parametrize("call", ["epoll_wait", "recvmsg"])
def test_nor_where_the_server_stood_still_with_the_first_request_heard_of(
    start: Callable[..., Server], directory: Path, stops_when_awake: Path, tmp_path: Path, call: str
) -> None:
    now = tmp_path / "now"
    how = {"LD_PRELOAD": stops_when_awake, "HOCKET_STOP": now, "HOCKET_STOP_AFTER": call}
    asan = f"{os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"
    server = start(env={**os.environ, **how, "ASAN_OPTIONS": asan})
    client, other = server.client(), server.client()
    handle = client.open("file")
    now.touch()
    client.ask("write", handle=handle, offset=0, payload=b"x")
    kit.wait_until(lambda: kit.stands_still(server.pid), LIMIT_S, "the server stands still")
    for place in range(1, 3):
        client.ask("write", handle=handle, offset=place, payload=b"x")
    time.sleep(1.1)  # a client gives up only after more than a second
    client.close()
    server.process.send_signal(signal.SIGCONT)
    await_one_client(other)
    assert (directory / "file").read_bytes() == b""


def test_a_reader_that_does_not_read_does_not_hold_others_up(start: Callable[..., Server], directory: Path) -> None:
    (directory / "file").write_bytes(bytes(8 << 20))
    server = start("--buffer", "8m")
    lazy = server.client()
    its = lazy.open("file")
    for place in range(50):
        lazy.ask("read", handle=its, offset=place % 8 << 20, bytes=1 << 20)
    other = server.client()
    handle = other.open("file")
    for place in range(20):
        assert other.write(handle, place << 20, b"w" * (1 << 20)) == 0
    for _ in range(50):
        answer = lazy.receive()
        assert (answer.error, len(answer.payload)) == (0, 1 << 20)
    assert other.state()["held_bytes"] == "0"


def test_what_was_acknowledged_survives_a_killed_server(server: Server, directory: Path) -> None:
    client = server.client()
    handle = client.open("file")
    for place in range(64):
        assert client.write(handle, place * 4096, bytes([place]) * 4096, operation=place // 8 + 1) == 0
    client.ask("write", handle=handle, offset=0, payload=b"x" * (1 << 20))  # may or may not be done
    server.kill()
    data = (directory / "file").read_bytes()
    if not data.startswith(b"xxxx"):
        assert data == b"".join(bytes([place]) * 4096 for place in range(64))
    with pytest.raises(ConnectionError):
        client.is_cut_off()
        client.state()


def test_a_stopped_server_writes_what_it_holds(start: Callable[..., Server], directory: Path) -> None:
    server = start("--write-behind", "--inject", "delay=1ms")
    client = server.client()
    handle = client.open("file")
    for place in range(200):
        assert client.write(handle, place * 100, bytes([place]) * 100, operation=5) == 0
    assert server.stop() == 0
    assert (directory / "file").read_bytes() == b"".join(bytes([place]) * 100 for place in range(200))


def test_what_a_client_wrote_behind_survives_it(start: Callable[..., Server], directory: Path) -> None:
    server = start()
    client = server.client()
    handle = client.open("file", WRITES | WRITE_BEHIND)
    assert client.write(handle, 0, b"behind", operation=3) == 0
    client.close()
    other = server.client()
    handle = other.open("file")
    assert other.call("sync", handle=handle).error == 0
    assert (directory / "file").read_bytes() == b"behind"


# ---- errors of the file system -------------------------------------------------------------------------------------


def full_at(size: int) -> Callable[[], None]:
    """Return a function for a new process that limits the length of files, like a full disk at a known offset."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def test_an_error_is_told_to_whom_it_concerns(start: Callable[..., Server], directory: Path) -> None:
    server = start(preexec_fn=full_at(100_000))
    clients = [server.client() for _ in range(3)]
    handles = [client.open("file") for client in clients]
    # The three writes are neighbours and are merged. The first ends before the limit, the second crosses it.
    asked = [
        client.ask("write", handle=handle, offset=place * 80_000, payload=b"w" * 80_000, operation=4)
        for place, (client, handle) in enumerate(zip(clients, handles, strict=True))
    ]
    for client, handle in zip(clients, handles, strict=True):
        client.send(Frame(TYPE["end"], handle=handle, operation=4, number=3))
    answers = [client.receive() for client in clients]
    assert [answer.request for answer in answers] == asked
    assert [answer.error for answer in answers] == [0, errno.EFBIG, errno.EFBIG]
    assert (directory / "file").read_bytes() == b"w" * 100_000
    assert clients[1].write(handles[1], 0, b"again") == 0


def test_sync_tells_the_truth_of_what_was_written_behind(start: Callable[..., Server], directory: Path) -> None:
    server = start("--write-behind", "--inject", "errno=ENOSPC after=2")
    client = server.client()
    handle = client.open("file")
    assert client.write(handle, 0, b"good") == 0
    assert client.call("sync", handle=handle).error == 0
    assert client.write(handle, 4, b"lost") == 0
    assert client.call("sync", handle=handle).error == errno.ENOSPC
    assert client.call("close", handle=handle).error == 0, "it was told"
    assert "lost 4 bytes of file" in server.log.read_text()
    assert (directory / "file").read_bytes() == b"good"


def test_a_file_name_cannot_forge_a_line_of_the_log(start: Callable[..., Server], directory: Path) -> None:
    (directory / "f\nhocket-server: forged\x1b[2J").touch()
    server = start("--write-behind", "--inject", "errno=ENOSPC after=1")
    client = server.client()
    handle = client.open("f\nhocket-server: forged\x1b[2J")
    client.write(handle, 0, b"lost")
    assert client.call("sync", handle=handle).error == errno.ENOSPC
    assert r"lost 4 bytes of f\x0ahocket-server: forged\x1b[2J" in server.log.read_text()


def test_a_server_that_was_stopped_and_goes_on_answers(server: Server) -> None:
    client = server.client()
    handle = client.open("file")
    kit.stop(server.pid)
    request = client.ask("write", handle=handle, offset=0, payload=b"later")
    server.process.send_signal(signal.SIGCONT)
    answer = client.receive()
    assert (answer.request, answer.error) == (request, 0)
