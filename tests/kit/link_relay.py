"""A relay on the link between an agent and a leader: it has the cluster's key, and may change the agent's version.

Both ends of the relay are processes of `openssl`, because Python's ssl has no pre-shared keys before version 3.13. The
frames are those of src/control/link/message.hpp.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import subprocess
import threading
from pathlib import Path
from typing import IO

LIMIT_S = 20
MISSING = "" if shutil.which("openssl") else "the command openssl is not installed"
HEAD_BYTES = 1 + 8 + 8  # of a message: kind, member, clock
HELLO = 1


def with_version(hello: bytes, difference: int) -> bytes:
    """Return the payload of an agent's first message, with another version of the link."""
    head, text = hello[:HEAD_BYTES], hello[HEAD_BYTES:]
    assert head[0] == HELLO, f"the agent's first message has the kind {head[0]}"
    version, others = text.split(b"\n", 1)
    return head + b"%d\n" % (int(version) + difference) + others


class LinkRelay:
    """Relays one connection after another from `address` to the leader.

    `difference`: what is added to the version that the agent says; `connections`: how many agents have said it.
    """

    def __init__(self, address: str, leader: str, key: Path, difference: int) -> None:
        self.address, self.leader, self.difference = address, leader, difference
        secret = key.read_text().strip().encode().hex()
        self.options = ["-quiet", "-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256"]
        self.options += ["-psk_identity", "hocket", "-psk", secret]
        self.connections = 0
        self.is_over = False
        self.processes: list[subprocess.Popen] = []
        self.thread = threading.Thread(target=self._relay, daemon=True)
        self.thread.start()

    def end(self) -> None:
        self.is_over = True
        while self.thread.is_alive():
            for process in self.processes:
                process.kill()
            self.thread.join(0.1)

    def _openssl(self, *words: str) -> subprocess.Popen:
        command = ["openssl", *words, *self.options]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, bufsize=0, **pipes)

    def _relay(self) -> None:
        while not self.is_over:
            with self._openssl("s_server", "-accept", self.address, "-nocert", "-naccept", "1") as agent:
                self.processes = [agent]
                with contextlib.suppress(EOFError, OSError):
                    self._connect(agent)
                agent.kill()

    def _connect(self, agent: subprocess.Popen) -> None:
        """Relay a connection of the agent, once it has begun to speak, until the agent ends it."""
        (size,) = struct.unpack("<I", exactly(agent.stdout, 4))
        hello = with_version(exactly(agent.stdout, size), self.difference)
        self.connections += 1
        with self._openssl("s_client", "-connect", self.leader) as leader:
            self.processes = [agent, leader]
            leader.stdin.write(struct.pack("<I", len(hello)) + hello)
            back = threading.Thread(target=copy, args=(leader, agent), daemon=True)
            back.start()
            copy(agent, leader)
            leader.kill()
            back.join(LIMIT_S)


def exactly(source: IO[bytes], size: int) -> bytes:
    """Read so many bytes. Raises EOFError if the source ends before."""
    data = b""
    while len(data) < size:
        if not (piece := source.read(size - len(data))):
            raise EOFError
        data += piece
    return data


def copy(source: subprocess.Popen, sink: subprocess.Popen) -> None:
    """Copy bytes until either process has ended."""
    with contextlib.suppress(OSError):
        while data := os.read(source.stdout.fileno(), 1 << 16):
            sink.stdin.write(data)
