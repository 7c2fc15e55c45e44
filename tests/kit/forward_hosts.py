"""Programs under `hocket forward` on the hosts of hosts.py, each host with a hocketd and servers of its own."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import runtime_kit as kit
from hosts import SHARED, Host
from processes import descendants

MOUNT = SHARED / "mount"
LIMIT_S = 30


def hocket(host: Host, *words: str | Path) -> kit.Run:
    return host.run([sys.executable, "-m", "hocket.cli", *words])


def forwarding(*program: str | Path, options: Sequence[str] = ()) -> list[str | Path]:
    """Return the words that run a program under `hocket forward`."""
    return [sys.executable, "-m", "hocket.cli", "forward", "--check", "--mount", MOUNT, *options, "--", *program]


def start_servers(host: Host, count: int) -> None:
    done = hocket(host, "server", "start", "-n", str(count), "--dir", MOUNT)
    assert done.code == 0, done.err


def servers_of(host: Host) -> list[int]:
    """Return the processes of the host's I/O servers."""

    def is_server(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].endswith(b"/hocket-server")
        except OSError:
            return False

    return sorted(filter(is_server, descendants(host.first)))


def end_servers_while(process: subprocess.Popen, hosts: Sequence[Host], pause_s: float, stops: int = 0) -> int:
    """Kill a server of each host in turn, and start another for it, until the process ends. Return how many.

    The first `stops` times all servers of the host are stopped instead, as if they hung. Programs that wait for them
    kill them.
    """
    ended = 0
    while process.poll() is None:
        host = hosts[ended % len(hosts)]
        time.sleep(pause_s)
        servers = servers_of(host)
        for pid in servers if ended < stops else servers[:1]:
            os.kill(pid, signal.SIGSTOP if ended < stops else signal.SIGKILL)
        ended += 1
        start_servers(host, 1)
    return ended


class Shell:
    """A shell on a host. It and what it runs are under `hocket forward`, if that is asked for."""

    def __init__(self, host: Host, options: Sequence[str] | None) -> None:
        """`options`: of `hocket forward`; None: the shell runs directly."""
        words = ["bash", "--norc"] if options is None else forwarding("bash", "--norc", options=options)
        self._process = host.start(words, stdin=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0, text=False)
        self.out("true")  # all of its processes are there now

    def run(self, command: str) -> tuple[int, str]:
        """Run a command. Return its code and what it has written to stdout and stderr."""
        self._process.stdin.write(f'{command}\necho "=end= $?"\n'.encode())
        said = b""
        deadline = time.monotonic() + LIMIT_S
        while b"=end= " not in said or not said.endswith(b"\n"):
            readable, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            some = os.read(self._process.stdout.fileno(), 1 << 20) if readable else b""
            assert some, f"{command}: no answer within {LIMIT_S} s after {said.decode()}"
            said += some
        out, _, code = said.decode().rpartition("=end= ")
        return int(code), out

    def out(self, command: str) -> str:
        """Run a command that succeeds. Return what it has written."""
        code, out = self.run(command)
        assert code == 0, f"{command}: code {code}: {out}"
        return out

    def end(self) -> str:
        """End the shell. Return its last words, which are those of `hocket forward --check`."""
        out, _ = self._process.communicate(timeout=LIMIT_S)
        return out.decode()
