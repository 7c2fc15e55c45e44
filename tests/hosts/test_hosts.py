"""The hosts of tests of several nodes (tests/kit/hosts.py): what each has for itself, what they share, how they end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import hosts
import pytest
from checkout import KIT, REPO
from hosts import SHARED
from processes import descendants

pytestmark = pytest.mark.timeout(60)
LISTENS = "import socket; s = socket.create_server(('10.79.0.1', 7000)); print(s.accept()[0].recv(9).decode())"
CONNECTS = "import socket, time; time.sleep(0.2); socket.create_connection(('one', 7000), 5).send(b'text')"


def test_each_host_has_its_own(start_hosts: Callable[..., hosts.Hosts]):
    pair = start_hosts("one", "two")
    for host in pair:
        script = f"echo {host.name} | tee /tmp/f /run/f /dev/shm/f; hostname; stat -c %d {SHARED}; ps ax | wc -l"
        words = host.run(["sh", "-c", script]).out.split()
        assert words[:2] == [host.name, host.name]
        assert int(words[-1]) < 10
    devices = {host.run(["stat", "-c", "%d", SHARED]).out for host in pair}
    assert len(devices) == 2
    seen = pair["one"].run(["cat", "/tmp/f", "/run/f", "/dev/shm/f"])
    assert seen.out == "one\n" * 3
    assert not Path("/dev/shm/f").exists()


def test_hosts_reach_each_other_by_their_names(start_hosts: Callable[..., hosts.Hosts]):
    pair = start_hosts("one", "two")
    listener = pair["one"].start([sys.executable, "-c", LISTENS])
    assert pair["two"].run([sys.executable, "-c", CONNECTS]).code == 0
    assert hosts.finish(listener).out == "text\n"


ANSWERS = """
import socket
listener = socket.create_server(("", 7000))
print("ready", flush=True)
while True:
    listener.accept()[0].close()
"""
REACHES = "import socket, sys; socket.create_connection((sys.argv[1], 7000), 1)"


def test_parted_hosts_reach_each_other_on_their_side_alone(start_hosts: Callable[..., hosts.Hosts]):
    three = start_hosts("one", "two", "three")
    for host in three:
        assert hosts.first_line(host.start([sys.executable, "-c", ANSWERS]), hosts.LIMIT_S) == "ready\n"

    def pairs_that_reach() -> set[str]:
        """Return pairs of hosts of which the first one reaches the second one."""
        tries = {
            f"{host.name} {other.name}": host.start([sys.executable, "-c", REACHES, other.name])
            for host in three
            for other in three
            if host is not other
        }
        return {pair for pair, process in tries.items() if hosts.finish(process).code == 0}

    three.part("one", "two")
    assert pairs_that_reach() == {"one two", "two one"}
    three.reunite()
    assert len(pairs_that_reach()) == 6


@pytest.mark.parametrize("how", [(), ("late",)], ids=["through", "late"])
def test_an_open_sees_what_another_host_has_closed(how: tuple[str, ...], start_hosts: Callable[..., hosts.Hosts]):
    pair = start_hosts("one", "two", how=how)
    for number in range(20):
        writer, reader = (pair["one"], pair["two"]) if number % 2 == 0 else (pair["two"], pair["one"])
        text = b"%04d\n" % number * 1000
        writer.write(SHARED / "file", text)
        assert reader.read(SHARED / "file") == text == (pair.store / "file").read_bytes()


HOLDS = "import os, sys; os.write(1, b'a' * 9); sys.stdin.read()"


def test_a_late_client_holds_what_is_not_closed(start_hosts: Callable[..., hosts.Hosts]):
    """Otherwise tests would not notice a program whose last write comes after its close."""
    pair = start_hosts("one", "two", how=("late",))
    script = f'{sys.executable} -c "{HOLDS}" > {SHARED}/file'
    process = pair["one"].start(["sh", "-c", script], stdin=subprocess.PIPE)
    seen_here = ["sh", "-c", f"until [ -s {SHARED}/file ]; do sleep 0.01; done; cat {SHARED}/file"]
    assert pair["one"].run(seen_here).out == "a" * 9
    assert pair["two"].read(SHARED / "file") == b""
    assert hosts.finish(process).code == 0
    assert pair["two"].read(SHARED / "file") == b"a" * 9


def test_a_stale_client_shows_old_bytes(start_hosts: Callable[..., hosts.Hosts]):
    """So what the kernel keeps of a file counts, and a test fails where an open does not drop it."""
    pair = start_hosts("one", "two", how=("stale",))
    pair["one"].write(SHARED / "file", b"old")
    assert pair["two"].read(SHARED / "file") == b"old"
    pair["one"].write(SHARED / "file", b"new")
    assert pair["two"].read(SHARED / "file") == b"old"


def test_a_program_has_its_code_its_signal_and_its_limit(start_hosts: Callable[..., hosts.Hosts]):
    host = start_hosts("one")["one"]
    assert host.run(["sh", "-c", "echo $A; exit 7"], {"A": "b"}) == hosts.kit.Run(7, "b\n", "")
    process = host.start(["sleep", "60"])
    os.kill(hosts.inner(process), signal.SIGTERM)
    assert hosts.finish(process).code == -signal.SIGTERM
    with pytest.raises(AssertionError, match=r"did not end within 0.2 s"):
        host.run(["sh", "-c", "sleep 60 & sleep 60"], limit_s=0.2)


def what_is_there() -> tuple[set[int], str, set[str]]:
    devices = {path.name for path in Path("/sys/class/net").iterdir()}
    return descendants(os.getpid()), Path("/proc/self/mountinfo").read_text(), devices


def test_nothing_is_left(start_hosts: Callable[..., hosts.Hosts]):
    before = what_is_there()
    pair = start_hosts("one", "two")
    started = [
        pair["one"].start(["sh", "-c", "setsid sleep 60 & sleep 60"]),
        pair["two"].start(["dd", "if=/dev/zero", f"of={SHARED}/file", "bs=1", "status=none"]),
        pair["two"].start(["sleep", "60"]),
    ]
    time.sleep(0.1)
    started[2].kill()  # which leaves the program itself
    pair.close()
    for process in started:
        process.communicate(timeout=5)
    assert what_is_there() == before


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hosts, "COMMANDS", ("cc", "no-such-command"))
    assert hosts.what_is_missing.__wrapped__() in ("hosts need root", "hosts need the commands no-such-command")


STARTS = """
import sys, time
from pathlib import Path
sys.path[:0] = sys.argv[3:]
import hosts
both = hosts.Hosts(Path(sys.argv[1]), "one", "two", client=Path(sys.argv[2]))
both["one"].start(["sleep", "60"])
print("started", flush=True)
time.sleep(60)
"""


def test_nothing_is_left_of_a_killed_test(host_client: Path, tmp_path: Path):
    before = descendants(os.getpid())
    words = [sys.executable, "-c", STARTS, tmp_path, host_client, KIT, REPO / "demo", REPO / "python"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "started\n"
    started = descendants(process.pid)
    assert len(started) > 6
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 10
    while left := descendants(os.getpid()) - before - {process.pid}:
        assert time.monotonic() < deadline, left
        for pid in left:  # whose parent this process is now
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)


def test_hosts_of_several_tests_do_not_collide(host_client: Path, tmp_path: Path):
    several = []
    try:
        for number in range(3):
            directory = tmp_path / str(number)
            directory.mkdir()
            several.append(hosts.Hosts(directory, "one", "two", client=host_client))
            several[-1]["one"].write(SHARED / "file", b"%d" % number)
        assert [pair["two"].read(SHARED / "file") for pair in several] == [b"0", b"1", b"2"]
        assert len({pair["one"].address for pair in several}) == 1
    finally:
        for pair in several:
            pair.close()


COUNTS = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
for _ in range(200):
    fcntl.flock(fd, fcntl.LOCK_EX) if sys.argv[2] == "flock" else fcntl.lockf(fd, fcntl.LOCK_EX)
    number = int(os.pread(fd, 9, 0))
    os.pwrite(fd, b"%09d" % (number + 1), 0)
    fcntl.flock(fd, fcntl.LOCK_UN) if sys.argv[2] == "flock" else fcntl.lockf(fd, fcntl.LOCK_UN)
"""


@pytest.mark.parametrize("kind", ["flock", "fcntl"])
def test_locks_exclude_other_hosts_and_show_what_they_wrote(kind: str, start_hosts: Callable[..., hosts.Hosts]):
    pair = start_hosts("one", "two", how=("late",))
    pair["one"].write(SHARED / "file", b"000000000")
    words = [sys.executable, "-c", COUNTS, SHARED / "file", kind]
    started = [host.start(words) for host in pair for _ in range(2)]
    assert [hosts.finish(process).code for process in started] == [0] * 4
    assert pair["two"].read(SHARED / "file") == b"%09d" % 800
