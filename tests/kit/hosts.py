"""Hosts on one machine, for tests of several nodes.

    with Hosts(directory, "one", "two", client=client) as hosts:
        hosts["one"].run(["sh", "-c", "echo text > /run/shared/file"])
        assert hosts["two"].run(["cat", "/run/shared/file"]).out == "text\\n"

Each host has its own network (10.79.0.K on a bridge), processes, System V IPC, and name; its own /tmp, /run, and
/dev/shm; and a mount of the directory that all share, by a client of its own (tests/programs/host_mount.c). So device
numbers and page caches differ, as between nodes. The rest of the file system is the machine's.

Namespaces nest: the hosts of a `Hosts` are inside one network and process namespace, which ends with its first process.
That process ends when `close` is called, or when the test's process ends, however it does. Nothing has a name outside.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import runtime_kit as kit
from checkout import PROGRAMS, REPO
from processes import descendants

SHARED = Path("/run/shared")  # the shared directory on each host
LIMIT_S = 30
NETWORK = "10.79.0"
HIDDEN = ("/tmp", "/run", "/dev/shm")  # directories that each host has for itself
COMMANDS = ("bash", "unshare", "nsenter", "ip", "mount", "cc", "pkg-config")

# The first process of a host, in bash. Its words: the host's name, the shared directory, the table of hosts, the
# client's options in one word, the client, and directories that are to be visible although they lie below a hidden one.
FIRST_PROCESS = r"""
set -e
hostname "$1"; exec 3<"$2" {table}<"$3"; options=$4; client=$5; shift 5
fds=()
for visible; do exec {fd}<"$visible"; fds+=("$fd"); done
mount -t proc proc /proc
for hidden in HIDDEN; do mount -t tmpfs -o mode=1777 tmpfs $hidden; done
for visible; do
  mkdir -p "$visible"; mount --no-canonicalize --bind "/proc/self/fd/${fds[0]}" "$visible"; fds=("${fds[@]:1}")
done
mount --no-canonicalize --bind "/proc/self/fd/$table" /etc/hosts
mkdir SHARED
"$client" /proc/self/fd/3 SHARED $options
echo ready
exec env --ignore-signal=CHLD sleep infinity  # while that signal is ignored, orphans that end leave nothing
"""


@functools.cache
def what_is_missing() -> str:
    """Return why there can be no hosts here; "" if there can."""
    if os.geteuid() != 0:
        return "hosts need root"
    if absent := [command for command in COMMANDS if shutil.which(command) is None]:
        return f"hosts need the commands {', '.join(absent)}"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return f"hosts need /dev/fuse: {error.strerror}"
    attempts = {
        "hosts need libfuse3's headers": "pkg-config --exists fuse3",
        "hosts need namespaces": "unshare --mount --uts --ipc --net --pid --fork true",
        "hosts need mounts": "unshare --mount mount -t tmpfs none /tmp",
        "hosts need network bridges": "unshare --net ip link add name b type bridge",
        "hosts need pairs of network devices": "unshare --net ip link add name a type veth peer name b",
    }
    for reason, command in attempts.items():
        done = subprocess.run(command.split(), capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode != 0:
            return f"{reason}: {command}: {done.stderr.strip()}"
    return ""


def build_client(directory: Path) -> Path:
    """Compile the client by which hosts mount the shared directory."""
    client = directory / "host_mount"
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, timeout=LIMIT_S, check=True
    ).stdout.split()
    sources = [PROGRAMS / name for name in ("host_mount.c", "host_locks.c")]
    subprocess.run(["cc", "-O1", "-o", client, *sources, *flags], timeout=LIMIT_S, check=True)
    return client


def _children(pid: int) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        fields = kit.stat_fields(process)
        if fields and int(fields[1]) == pid:
            found.append(int(process.name))
    return found


def _only_child(pid: int) -> int:
    """Return the process that `unshare` or `nsenter` has started."""
    deadline = time.monotonic() + LIMIT_S
    while not (found := _children(pid)):
        assert time.monotonic() < deadline and Path(f"/proc/{pid}").exists(), f"process {pid} has started no other"
        time.sleep(0.002)
    return found[0]


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)


def _is_inside(pid: int) -> bool:
    """Return True if the process has a number in a further process namespace."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return any(line.startswith("NSpid:") and len(line.split()) > 2 for line in lines)
    return False


def _reap_adopted() -> None:
    """Reap programs whose `nsenter` was killed: tests adopt them, and a namespace does not end before its processes."""
    for pid in filter(_is_inside, _children(os.getpid())):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


class Host:
    """One of several hosts. `address` is that of its network, `first` the process that keeps its namespaces."""

    def __init__(self, name: str, address: str, first: int, env: Mapping[str, str]) -> None:
        self.name = name
        self.address = address
        self.first = first
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("HOCKET_", "XDG_", "LD_PRELOAD"))
        }
        self.environment |= {"HOCKET_DIR": "/run/hocket", "TMPDIR": "/tmp", "XDG_DATA_HOME": "/run/data", **env}

    def start(self, words: Sequence[str | Path], env: Mapping[str, str] | None = None, **popen) -> subprocess.Popen:
        """Start a program in the host's /tmp. The process that is returned has its exit code, or its signal."""
        enter = ["nsenter", f"--target={self.first}", "--mount", "--uts", "--ipc", "--net", "--pid", "--"]
        enter += ["env", "--chdir=/tmp"]
        options = {
            "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True
        } | popen  # fmt: skip
        return subprocess.Popen([*enter, *map(str, words)], env=self.environment | dict(env or {}), **options)

    def run(
        self, words: Sequence[str | Path], env: Mapping[str, str] | None = None, limit_s: float = LIMIT_S
    ) -> kit.Run:
        """Run a program to its end. One that exceeds the limit is killed; the error shows its output."""
        return finish(self.start(words, env), limit_s)

    def write(self, path: Path, data: bytes) -> None:
        """Write a file as a program of this host does."""
        self._exchange(["dd", f"of={path}", "bs=1M", "status=none"], data)

    def read(self, path: Path) -> bytes:
        """Read a file as a program of this host does."""
        return self._exchange(["cat", path], b"")

    def _exchange(self, words: Sequence[str | Path], data: bytes) -> bytes:
        process = self.start(words, stdin=subprocess.PIPE, text=False)
        out, err = process.communicate(data, timeout=LIMIT_S)
        assert process.returncode == 0, err.decode()
        return out


def first_line(process: subprocess.Popen, limit_s: float) -> str:
    """Return the first line that a program of `Host.start` writes; "" if it has ended, or writes none in time."""
    readable, _, _ = select.select([process.stdout], [], [], limit_s)
    return process.stdout.readline() if readable else ""


def inner(process: subprocess.Popen) -> int:
    """Return the process id, as the test's process sees it, of a program that `Host.start` has started."""
    return _only_child(process.pid)


def finish(process: subprocess.Popen, limit_s: float = LIMIT_S) -> kit.Run:
    """Wait for the end of a program that `Host.start` has started."""
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        _kill(descendants(process.pid))  # whose end this process awaits itself
        out, err = process.communicate()
        raise AssertionError(f"{process.args} did not end within {limit_s} s; it said:\n{out}\n{err}") from None
    return kit.Run(process.returncode, out, err)


class Hosts:
    """Several hosts, by their names. `store` is the directory that they share, as a server of files would have it."""

    def __init__(
        self,
        directory: Path,
        *names: str,
        client: Path,
        how: Sequence[str] = (),
        visible: Sequence[Path] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start the hosts.

        `how`: options of the client; `visible`: directories below /tmp and the like that each host sees, too; `env`:
        variables for all programs.
        """
        self.store = directory / "store"
        self._client = client
        self._how = how
        self._env = dict(env or {})
        self._table = directory / "hosts"
        needed = (REPO, Path(sys.prefix), client.parent, *visible)
        self._visible = [path for path in needed if str(path).startswith(HIDDEN)]
        self._processes: list[subprocess.Popen] = []
        self._hosts: dict[str, Host] = {}
        self.store.mkdir(exist_ok=True)
        addresses = {name: f"{NETWORK}.{number}" for number, name in enumerate(names, 1)}
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in addresses.items())]
        self._table.write_text("\n".join(lines) + "\n")
        try:
            self._begin(addresses)
        except BaseException:
            self.close()
            raise

    def __getitem__(self, name: str) -> Host:
        return self._hosts[name]

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts.values())

    def __enter__(self) -> Hosts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, addresses: Mapping[str, str]) -> None:
        # The first process of all ends when the pipe does, which is when this process ends.
        outer = subprocess.Popen(
            ["unshare", "--net", "--pid", "--fork", "--kill-child", "cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self._processes.append(outer)
        switch = self._switch = _only_child(outer.pid)
        started = {name: self._start_first(switch, name) for name in addresses}
        commands = ["link add br0 type bridge", "link set br0 up", "link set lo up"]
        for number, (name, process) in enumerate(started.items(), 1):
            self._await_ready(process)
            first = _only_child(_only_child(process.pid))  # of unshare, of nsenter
            self._hosts[name] = Host(name, addresses[name], first, self._env)
            commands += [
                f"link add port{number} type veth peer name eth0 netns {first}", f"link set port{number} master br0 up"
            ]  # fmt: skip
        self._ip(switch, commands)
        for host in self:
            self._ip(host.first, [f"addr add {host.address}/24 dev eth0", "link set eth0 up", "link set lo up"])

    def part(self, *names: str) -> None:
        """Give these hosts a network of their own: packets between them and the others are lost without a word."""
        ports = [f"link set {self._port(name)} master br1" for name in names]
        self._ip(self._switch, ["link add br1 type bridge", "link set br1 up", *ports])

    def reunite(self) -> None:
        """Give all hosts one network again."""
        ports = [f"link set {self._port(name)} master br0" for name in self._hosts]
        self._ip(self._switch, [*ports, "link del br1"])

    def _port(self, name: str) -> str:
        return f"port{list(self._hosts).index(name) + 1}"

    def _start_first(self, switch: int, name: str) -> subprocess.Popen:
        """Start the first process of a host inside the network and process namespace of all."""
        enter = ["nsenter", f"--target={switch}", "--net", "--pid", "--"]
        leave = ["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child"]
        script = FIRST_PROCESS.replace("HIDDEN", " ".join(HIDDEN)).replace("SHARED", str(SHARED))
        words = [name, self.store, self._table, " ".join(self._how), self._client, *self._visible]
        command = [*enter, *leave, "bash", "-c", script, "host", *map(str, words)]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self._processes.append(process)
        return process

    def _await_ready(self, process: subprocess.Popen) -> None:
        readable, _, _ = select.select([process.stdout], [], [], LIMIT_S)
        line = process.stdout.readline() if readable else b""
        assert line == b"ready\n", f"a host did not start: {process.stderr.read().decode() if readable else ''}"

    @staticmethod
    def _ip(namespace: int, commands: Sequence[str]) -> None:
        enter = ["nsenter", f"--target={namespace}", "--net", "ip", "-batch", "-"]
        subprocess.run(enter, input="\n".join(commands), text=True, timeout=LIMIT_S, check=True)

    def close(self) -> None:
        """End all processes of the hosts, and with them all namespaces and mounts."""
        inside = set().union(*(descendants(process.pid) for process in self._processes))
        if self._processes:
            _kill(set(_children(self._processes[0].pid)))  # the first process of all, and the kernel kills the others
        deadline = time.monotonic() + LIMIT_S
        while left := {pid for pid in inside if Path(f"/proc/{pid}").exists()}:
            assert time.monotonic() < deadline, f"processes {sorted(left)} of the hosts have not ended"
            _reap_adopted()
            time.sleep(0.002)
        for process in self._processes:
            process.communicate(timeout=LIMIT_S)
        self._processes = []
        self._hosts = {}
