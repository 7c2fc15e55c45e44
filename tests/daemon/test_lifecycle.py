"""hocketd as its users and operators meet it: start, leader election, end, and what must not crash it."""

import ctypes
import errno
import fcntl
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import time
from pathlib import Path

import pytest
from daemon_kit import LIMIT_S, hello, hocketd, one_line, start_io
from hocket.bus import Bus, BusError, NoDaemonError, encode
from runtime_kit import wait_until

OTHER_USER = 65534  # nobody


# ---- one leader ------------------------------------------------------------------------------------------------------


def test_second_leader_says_who_leads(daemon, prefix):
    second = hocketd(prefix, "--dir", daemon.directory)
    assert second.returncode == 1
    assert f"another hocketd (pid {daemon.pid}) leads in {daemon.directory}" in one_line(second.stderr)
    with Bus.connect() as bus:  # the first leader works as before
        assert bus.list().daemon["pid"] == daemon.pid


def test_one_of_many_that_start_at_once_leads(hocket_dir, prefix):
    command = [prefix / "bin" / "hocketd", "--dir", hocket_dir]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, **pipes) for _ in range(8)]
    deadline = time.monotonic() + LIMIT_S
    while sum(p.poll() is None for p in started) > 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    leaders = [p for p in started if p.poll() is None]
    assert len(leaders) == 1
    assert leaders[0].stdout.readline() == f"hocketd {leaders[0].pid} listens on {hocket_dir}/hocketd.sock\n"
    assert {p.returncode for p in started if p is not leaders[0]} == {1}
    leaders[0].terminate()
    assert leaders[0].wait(LIMIT_S) == 0


def test_second_leader_waits_a_moment_for_one_that_ends(hocket_dir, prefix):
    """A leader that has removed its socket holds its lock until its last instruction."""
    with (hocket_dir / "hocketd.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.Popen(
            [prefix / "bin" / "hocketd", "--dir", hocket_dir, "--exit-when-idle", "0.01"],
            stdout=subprocess.PIPE,
            text=True,
        )
        with pytest.raises(subprocess.TimeoutExpired):
            second.wait(0.1)
    assert "listens on" in second.stdout.readline()
    assert second.wait(LIMIT_S) == 0


def test_stale_socket_of_a_killed_leader_is_replaced(start_daemon):
    first = start_daemon()
    first.kill()
    assert first.socket.exists()
    with pytest.raises(NoDaemonError):
        Bus.connect()
    second = start_daemon()
    with Bus.connect() as bus:
        assert bus.list().daemon["pid"] == second.pid


# ---- directory, socket ---------------------------------------------------------------------------------------------


def test_files_are_private(daemon):
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in daemon.directory.rglob("*")}
    assert modes.pop(daemon.trace.name) == 0o600
    assert modes == {
        "hocketd.sock": 0o600,
        "hocketd.lock": 0o600,
        "hocketd.log": 0o600,
        "traces": 0o700,
    }


def test_makes_its_directory(hocket_dir, prefix):
    where = hocket_dir / "a" / "b"
    assert hocketd(prefix, "--dir", where, "--exit-when-idle", "0.01").returncode == 0
    assert stat.S_IMODE(where.stat().st_mode) == 0o700


def test_refuses_an_open_directory(hocket_dir, prefix):
    hocket_dir.chmod(0o755)
    refused = hocketd(prefix, "--dir", hocket_dir)
    assert refused.returncode == 1
    assert f"{hocket_dir} is open to other users (mode 0755); chmod 700 it" in one_line(refused.stderr)


def test_refuses_a_file_as_directory(hocket_dir, prefix):
    (hocket_dir / "file").write_text("")
    refused = hocketd(prefix, "--dir", hocket_dir / "file")
    assert refused.returncode == 1
    assert "is not a directory" in one_line(refused.stderr)


def test_refuses_a_symbolic_link_as_directory(hocket_dir, prefix):
    (hocket_dir / "link").symlink_to(hocket_dir)
    refused = hocketd(prefix, "--dir", hocket_dir / "link")
    assert refused.returncode == 1
    assert "link is a symbolic link, not a directory" in one_line(refused.stderr)


def test_a_name_cannot_forge_a_line_of_the_log(daemon):
    name = "a\n2026-01-01 00:00:00.000 info: forged\x1b[2J\r\x9b"
    with Bus.connect(daemon.socket) as bus:
        hello(bus, name)
        bus._socket.sendall(b"\xff" * 8)  # no frame: the daemon drops the member and names its application
        with pytest.raises(BusError):
            while bus.answer(LIMIT_S) is not None:
                pass
    assert daemon.stop() == 0
    text = daemon.log.read_text()
    (line,) = [line for line in text.split("\n") if "was dropped" in line]
    assert r"a\x0a2026-01-01 00:00:00.000 info: forged\x1b[2J\x0d\xc2\x9b was dropped" in line
    assert all(letter.isprintable() or letter == "\n" for letter in text)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory to another user")
def test_refuses_a_directory_of_somebody_else(hocket_dir, prefix):
    os.chown(hocket_dir, OTHER_USER, OTHER_USER)
    refused = hocketd(prefix, "--dir", hocket_dir)
    assert refused.returncode == 1
    assert f"{hocket_dir} belongs to user {OTHER_USER}, not to user 0" in one_line(refused.stderr)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
def test_drops_a_connection_of_another_user(daemon):
    """The file modes keep other users out already. If they do not, the daemon asks the kernel for the user."""
    daemon.directory.chmod(0o711)
    daemon.socket.chmod(0o666)
    asks = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(daemon.socket)!r}); print(s.recv(1))"
    done = subprocess.run(
        ["python3", "-c", asks], user=OTHER_USER, group=OTHER_USER, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.stdout == "b''\n", done.stderr
    assert f"user {OTHER_USER} is neither this daemon's nor root" in daemon.log.read_text()


# ---- settings ------------------------------------------------------------------------------------------------------

# Maps a name to the text of the file and to the complaint: the line, then the text.
MISTAKES = {
    "misspelt_key": (
        "[coordinator]\nlease = 3\n",
        "2: unknown key 'coordinator.lease': did you mean 'coordinator.lease_s'?",
    ),
    "key_in_the_wrong_table": (
        "[daemon]\npolicy = 'fcfs'\n",
        "2: unknown key 'daemon.policy': did you mean 'coordinator.policy'?",
    ),
    "key_without_table": ("lease_s = 3\n", "1: unknown key 'lease_s': did you mean 'coordinator.lease_s'?"),
    "misspelt_table": ("\n[coordinate]\nlease_s = 3\n", "2: unknown table [coordinate]: did you mean [coordinator]?"),
    "negative_time": ("[coordinator]\nlease_s = -1\n", "2: coordinator.lease_s: -1 s is no time"),
    "negative_linger": ("[coordinator]\nlinger_s = -0.5\n", "2: coordinator.linger_s: -0.5 s is no time"),
    "no_lease": ("[coordinator]\nlease_s = 0\n", "2: coordinator.lease_s: 0 s is no time for this"),
    "endless_time": ("[coordinator]\nlease_s = inf\n", "2: coordinator.lease_s: inf s is no time"),
    "no_number": ("[coordinator]\nlease_s = nan\n", "2: coordinator.lease_s: nan s is no time"),
    "text_for_a_time": (
        "[coordinator]\nlease_s = '3'\n",
        "2: coordinator.lease_s must be a number, not the text '3'",
    ),
    "number_for_a_text": (
        "[coordinator]\npolicy = 3\n",
        "2: coordinator.policy must be a text in double quotes, not 3",
    ),
    "list_for_a_text": ("[daemon]\ndir = ['a']\n", "2: daemon.dir must be a text in double quotes"),
    "unknown_policy": (
        "[coordinator]\npolicy = 'fcsf'\n",
        "2: coordinator.policy: unknown policy 'fcsf': did you mean 'fcfs'? there are: cost, interfere, fcfs",
    ),
    "unknown_level": (
        "[daemon]\nlog_level = 'warn'\n",
        "2: daemon.log_level: unknown level 'warn': did you mean 'warning'?",
    ),
    "no_toml": ("[daemon\n", "1: "),
    "list_of_tables": (
        "[[daemon]]\ndir = 'a'\n",
        "1: 'daemon' is the name of a table: write [daemon] alone in a line",
    ),
    "key_given_twice": ("[daemon]\ndir = 'a'\ndir = 'b'\n", "3: "),
}


@pytest.mark.parametrize(("text", "says"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistake_in_the_configuration(hocket_dir, prefix, text, says):
    config = hocket_dir / "hocket.toml"
    config.write_text(text)
    refused = hocketd(prefix, "--config", config)
    assert refused.returncode == 2
    assert f"{config}:{says}" in one_line(refused.stderr)
    assert not (hocket_dir / "hocketd.sock").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--policy", "first"], "--policy: coordinator.policy: unknown policy 'first'"),
        (["--exit-when-idle", "-1"], "--exit-when-idle: daemon.exit_when_idle_s: -1 s is no time"),
        (["--exit-when-idle", "soon"], "soon"),
        (["--polcy", "fcfs"], "--polcy"),
        (["--config", "/no/such/hocket.toml"], "/no/such/hocket.toml"),
        (["--config", "/tmp"], "/tmp is a directory"),
    ],
)
def test_mistake_in_the_options(hocket_dir, prefix, arguments, says):
    refused = hocketd(prefix, *arguments)
    assert refused.returncode == 2
    assert says in one_line(refused.stderr)


def test_print_config_is_read_back_as_it_is(hocket_dir, prefix):
    first = hocketd(prefix, "--print-config", "--policy", "interfere", "--dir", '/tmp/"quoted\\')
    assert first.returncode == 0
    assert "policy = 'interfere'" in first.stdout
    config = hocket_dir / "hocket.toml"
    config.write_text(first.stdout)
    assert hocketd(prefix, "--print-config", "--config", config).stdout == first.stdout


def test_options_win_over_the_file(hocket_dir, start_daemon):
    config = hocket_dir / "hocket.toml"
    config.write_text("[coordinator]\npolicy = 'interfere'\nlease_s = 3\n")
    start_daemon("--config", config, "--policy", "fcfs")
    with Bus.connect() as bus:
        assert bus.list().daemon["policy"] == "fcfs"
        bus.send("HELLO", job="j", application_asked="a", mpi="mpich", processes=1)
        assert bus.answer(LIMIT_S)["lease_ns"] == 3_000_000_000


# ---- the end -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_stops_in_order_on_a_signal(start_daemon, prefix, number):
    daemon = start_daemon()
    with Bus.connect() as bus:
        hello(bus, "a")
        assert start_io(bus, 1) == "GRANT_IO"
        daemon.process.send_signal(number)
        assert daemon.wait() == 0
        with pytest.raises(BusError):
            bus.answer(LIMIT_S)
    assert not daemon.socket.exists()
    assert "continue uncoordinated" in daemon.log.read_text()
    replay = hocketd(prefix, "--replay", daemon.trace)  # the trace is complete
    assert replay.stdout == f"{daemon.trace}: 2 events and 2 commands agree\n"


def test_exits_when_idle_and_not_before(start_daemon):
    daemon = start_daemon("--exit-when-idle", "2")  # counted from its start: a member has time to connect
    with Bus.connect() as bus:
        with pytest.raises(subprocess.TimeoutExpired):
            daemon.process.wait(3)
        assert bus.list().applications == []
    assert daemon.wait() == 0
    assert "no member for 2 s" in daemon.log.read_text()


# ---- what must not crash it ------------------------------------------------------------------------------------------


def test_full_disk_under_the_trace(start_daemon):
    """Coordination continues; the log and every listing report that the trace ends early."""
    daemon = start_daemon("--trace", "/dev/full")
    with Bus.connect() as bus:
        hello(bus, "a")
        assert start_io(bus, 1) == "GRANT_IO"
        error = bus.list().daemon["trace_error"]
    assert "/dev/full can no longer be written: No space left on device" in error
    assert daemon.stop() == 0
    assert daemon.log.read_text().count("No space left on device") == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small file system")
def test_disk_fills_up_under_the_trace(hocket_dir, start_daemon, prefix):
    small = hocket_dir / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=True)
    try:
        daemon = start_daemon("--trace", small / "t.jsonl")
        with Bus.connect() as bus, Bus.connect() as watcher:
            hello(bus, "a")
            broken = False
            deadline = time.monotonic() + LIMIT_S
            request = 0
            while not broken and time.monotonic() < deadline:
                for _ in range(100):
                    request += 1
                    assert start_io(bus, request) == "GRANT_IO"
                    bus.send("FINISH_IO", request=request)
                broken = "No space left" in watcher.list().daemon["trace_error"]
            assert broken
            assert start_io(bus, request + 1) == "GRANT_IO"
        assert daemon.stop() == 0
        assert daemon.log.read_text().count("No space left on device") == 1
        # The part up to the cut is still a run that hocketd can replay.
        replay = hocketd(prefix, "--replay", small / "t.jsonl")
        assert (replay.returncode, "agree" in replay.stdout) == (0, True), replay.stderr
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_trace_into_a_pipe_that_nobody_reads(hocket_dir, prefix):
    pipe = hocket_dir / "pipe"
    os.mkfifo(pipe)
    assert "cannot write the trace" in one_line(hocketd(prefix, "--trace", pipe).stderr)


def test_trace_that_cannot_be_made(hocket_dir, prefix):
    refused = hocketd(prefix, "--trace", "/no/such/directory/t.jsonl")
    assert refused.returncode == 1
    assert "cannot write the trace /no/such/directory/t.jsonl" in one_line(refused.stderr)


def test_slow_subscriber_does_not_slow_others_and_is_told(daemon):
    """A slow subscriber loses events and learns how many; nobody waits for it."""
    sent = 30_000
    with Bus.connect() as slow, Bus.connect() as busy:
        events = slow.subscribe("COUNT")
        for _ in range(sent):
            busy.publish("COUNT", ballast="x" * 100)
        hello(busy, "a")
        assert start_io(busy, 1) == "GRANT_IO"
        got = 0
        deadline = time.monotonic() + LIMIT_S
        while got + slow.events_lost < sent and time.monotonic() < deadline:
            while events.wait(0.05) is not None:
                got += 1
        assert (got + slow.events_lost, slow.events_lost > 0) == (sent, True)


def test_running_out_of_descriptors_is_survived(start_daemon):
    daemon = start_daemon(preexec_fn=lambda: __import__("resource").setrlimit(7, (40, 40)))
    waiting = []
    for _ in range(60):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(daemon.socket))
        waiting.append(connection)
    for connection in waiting:
        connection.close()
    with Bus.connect() as bus:
        assert bus.list().daemon["pid"] == daemon.pid
    assert daemon.log.read_text().count("no descriptor is left") == 1


def test_who_found_no_descriptor_left_is_let_in_later(start_daemon):
    daemon = start_daemon(preexec_fn=lambda: __import__("resource").setrlimit(7, (20, 20)))
    full = [socket.socket(socket.AF_UNIX) for _ in range(20)]
    for connection in full:
        connection.connect(str(daemon.socket))
    with Bus.connect() as late:
        late._send(encode("LIST", {}))
        assert late.answer(0.3) is None  # connected to the queue only
        for connection in full:
            connection.close()
        assert late.answer(LIMIT_S).type == "DAEMON"


def test_ends_when_its_socket_is_removed_and_leaves_that_of_the_next(start_daemon, hocket_dir):
    """Nobody could find the daemon any more, and another may lead in a new directory of the same name."""
    first = start_daemon("--trace", "/dev/null")
    with Bus.connect() as bus:
        hello(bus, "a")
        hocket_dir.rename(hocket_dir.with_suffix(".old"))
        try:
            hocket_dir.mkdir(0o700)
            second = start_daemon()
            shutil.rmtree(hocket_dir.with_suffix(".old"))
            assert first.wait() == 0
        finally:
            shutil.rmtree(hocket_dir.with_suffix(".old"), ignore_errors=True)
        with pytest.raises(BusError):
            bus.answer(LIMIT_S)
    with Bus.connect() as bus:
        assert bus.list().daemon["pid"] == second.pid


def test_runs_where_the_kernel_has_only_the_older_calls(start_daemon):
    """Kernels before 5.11, and some containers, refuse epoll_pwait2."""
    daemon = start_daemon(preexec_fn=refuse_epoll_pwait2)
    with Bus.connect() as bus:
        hello(bus, "a")
        assert start_io(bus, 1) == "GRANT_IO"
        before = cpu_seconds(daemon.pid)
        assert bus.answer(1) is None
        assert cpu_seconds(daemon.pid) - before < 0.5  # it sleeps meanwhile


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def refuse_epoll_pwait2() -> None:
    """Install a seccomp filter in this process: ENOSYS for epoll_pwait2, every other call passes."""
    number, refuse, allow = 441, 0x00050000 | errno.ENOSYS, 0x7FFF0000
    program = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, number, 0x06, 0, 0, refuse, 0x06, 0, 0, allow)
    code = ctypes.create_string_buffer(program)
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(code)))
    no_new_privileges, set_seccomp, with_filter = 38, 22, 2
    libc = ctypes.CDLL(None)
    assert libc.prctl(no_new_privileges, 1, 0, 0, 0) == 0
    assert libc.prctl(set_seccomp, with_filter, filters, 0, 0) == 0


def test_nodes_that_nobody_reports_any_more_leave_the_books(daemon):
    """Their tool said no BYE: it was killed."""
    with Bus.connect() as witness:

        def nodes() -> dict[str, int]:
            return {node["on_node"]: node["cores"] for node in witness.list().nodes}

        before = nodes()
        for job in ("one", "two"):
            with Bus.connect() as tool:
                tool.send("HELD_NODES", job=job, allocation="17", nodes=f"{job}=3")
                wait_until(lambda job=job: nodes().get(job) == 3, LIMIT_S, "the node is in the books")
        wait_until(
            lambda: set(nodes()) - set(before) <= {os.uname().nodename}, LIMIT_S, "the nodes have left the books"
        )
