"""A leader and agents on this machine: each stands for a node, with a runtime directory of its own.

Tests of whole nodes, with kernels' clocks and namespaces of their own, use hosts.py.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import runtime_kit as kit
from daemon_kit import Daemon, hocketd
from story import Story


def free_address() -> str:
    """Return an address of this machine at which nobody listened a moment ago."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


class Cluster:
    """The daemons of a test. `end` ends them all."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self.directory = Path(tempfile.mkdtemp(prefix="hocket-test-", dir="/tmp"))
        self.key = self.directory / "key"
        made = hocketd(prefix, "--make-key", self.key)
        assert made.returncode == 0, made.stderr
        self.address = free_address()
        self.daemons: list[Daemon] = []

    def start(self, node: str, *options: Any) -> Daemon:
        """Start a hocketd for the node, with the cluster's key."""
        directory = self.directory / node
        directory.mkdir(mode=0o700, exist_ok=True)
        self.daemons.append(Daemon(self.prefix / "bin" / "hocketd", directory, *options, "--key", self.key))
        return self.daemons[-1]

    def lead(self, *options: Any, node: str = "adm", address: str = "") -> Daemon:
        return self.start(node, "--leader", "--listen", address or self.address, *options)

    def join(self, node: str, *leaders: str) -> Daemon:
        return self.start(node, "--agent", "--leaders", " ".join(leaders or (self.address,)))

    def environment(self, node: str) -> dict[str, str]:
        return {"HOCKET_DIR": str(self.directory / node), "HOCKET_PREFIX": str(self.prefix)}

    def job(self, node: str, name: str, mpi: kit.Mpi, *program: Any) -> subprocess.Popen:
        """Start `hocket run --name NAME -- mpiexec -n 2 PROGRAM…` on the node."""
        mpiexec, environment = mpi.command(2, list(program), preload="", settings={})
        words = [sys.executable, "-m", "hocket.cli", "run", "--name", name, "--", *mpiexec]
        return kit.launch(words, environment | self.environment(node))

    def hocket(self, node: str, *words: str) -> kit.Run:
        """Run a `hocket` command on the node to its end."""
        return kit.finish(kit.launch([sys.executable, "-m", "hocket.cli", *words], os.environ | self.environment(node)))

    def end(self) -> None:
        for daemon in self.daemons:
            daemon.kill()


def log_has(daemon: Daemon, text: str) -> None:
    """Wait until the log of the daemon has the text."""
    kit.wait_until(lambda: text in daemon.log.read_text(), 20, f"'{text}' in the log of {daemon.directory.name}")


def granted(story: Story, *names: str) -> list[tuple[str, str]]:
    """Return GRANT_IO and FINISH_IO of these applications, in order."""
    lines = [(line.get("in") or line.get("out"), line.get("application")) for line in story.read()]
    return [line for line in lines if line[0] in ("GRANT_IO", "FINISH_IO") and line[1] in names]
