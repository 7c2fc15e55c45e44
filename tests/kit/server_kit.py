"""A hocket-server under test, and a client with its own implementation of the protocol (src/data/transport/frame.hpp).

With this client tests can also send frames that hocket's own client never sends.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import select
import socket
import struct
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

LIMIT_S = 20
HEADER = struct.Struct("<IBBHQQQQqqqIIiI")
MAGIC = int.from_bytes(b"HKTF", "little")
TYPES = ("prove", "share", "open", "view", "write", "read", "end", "sync", "close", "state")
TYPE = {name: number for number, name in enumerate(TYPES, 1)} | {
    "challenge": 64,
    "welcome": 65,
    "answer": 66,
    "stored": 67,
}
READS, WRITES, WRITE_BEHIND, LIST = 1, 2, 4, 8


@dataclass
class Frame:
    """One frame; the fields of its header are those in frame.hpp."""

    type: int
    flags: int = 0
    sequence: int = 0
    request: int = 0
    handle: int = 0
    operation: int = 0
    offset: int = 0
    bytes: int = 0
    shared: int = 0
    error: int = 0
    number: int = 0
    meta: bytes = b""
    payload: bytes = b""

    def encode(self, **changed: Any) -> bytes:
        """Return the bytes of the frame.

        `changed` overrides `magic`, `version`, `payload_bytes`, and `meta_bytes`, so that they may differ from the
        truth.
        """
        head = HEADER.pack(
            changed.get("magic", MAGIC), changed.get("version", 1), self.type, self.flags, self.sequence, self.request,
            self.handle, self.operation, self.offset, self.bytes, self.shared,
            changed.get("payload_bytes", len(self.payload)), changed.get("meta_bytes", len(self.meta)), self.error,
            self.number,
        )  # fmt: skip
        return head + self.meta + self.payload


class Client:
    """A connection to a server. Unless `greet` is False it proves itself, over TCP with the secret."""

    def __init__(self, address: str, secret: bytes | None = b"", greet: bool = True):
        kind, _, place = address.partition(":")
        if kind == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(LIMIT_S)
            self.socket.connect(place)
        else:
            host, _, port = place.rpartition(":")
            self.socket = socket.create_connection((host, int(port)), LIMIT_S)
        self.sequence = 0
        self.request = 0
        self.stored: list[Frame] = []  # frames of this type, which come at any time
        self.challenge = self.receive()
        self.proof = b""
        if greet:
            if kind == "tcp":
                self.proof = prove(secret or b"", self.challenge.meta)
            self.send(Frame(TYPE["prove"], meta=self.proof))
            self.welcome = self.receive()

    def send(self, frame: Frame, **changed: Any) -> None:
        self.sequence += 1
        self.socket.sendall(replace(frame, sequence=frame.sequence or self.sequence).encode(**changed))

    def ask(self, kind: str, **fields: Any) -> int:
        """Send a request and return its number."""
        self.request += 1
        if "payload" in fields:
            fields.setdefault("bytes", len(fields["payload"]))
        self.send(Frame(TYPE[kind], request=self.request, **fields))
        return self.request

    def receive(self) -> Frame:
        """Return the next frame but `stored`. Raises ConnectionError if the server has closed the connection."""
        while (frame := self._receive_any()).type == TYPE["stored"]:
            self.stored.append(frame)
        return frame

    def _receive_any(self) -> Frame:
        fields = HEADER.unpack(self._read(HEADER.size))
        assert fields[:2] == (MAGIC, 1), fields
        payload, meta = fields[11], fields[12]
        frame = Frame(*fields[2:11], error=fields[13], number=fields[14])
        frame.meta = self._read(meta)
        frame.payload = self._read(payload)
        return frame

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionError("closed")
            data += part
        return data

    def call(self, kind: str, **fields: Any) -> Frame:
        """Send a request and wait for its answer."""
        request = self.ask(kind, **fields)
        answer = self.receive()
        assert (answer.type, answer.request) == (TYPE["answer"], request)
        return answer

    def open(self, path: str, flags: int = READS | WRITES) -> int:
        answer = self.call("open", meta=path.encode(), flags=flags)
        assert answer.error == 0, os.strerror(answer.error)
        return answer.handle

    def write(self, handle: int, offset: int, data: bytes, operation: int = 0) -> int:
        return self.call("write", handle=handle, offset=offset, payload=data, operation=operation).error

    def state(self) -> dict[str, str]:
        text = self.call("state").meta.decode()
        return dict(line.split(" ", 1) for line in text.splitlines())

    def is_cut_off(self) -> bool:
        """Wait until the server has closed the connection; frames that arrive before are dropped."""
        try:
            while True:
                self.receive()
        except ConnectionError:
            return True

    def close(self) -> None:
        self.socket.close()


def prove(secret: bytes, nonce: bytes) -> bytes:
    own = os.urandom(32)
    return own + hmac.new(secret, b"hocket client" + nonce + own, hashlib.sha256).digest()


class Server:
    """A hocket-server of the prefix under test that serves `directory`."""

    def __init__(
        self, prefix: Path, runtime: Path, directory: Path, *arguments: object, name: str = "s1", **popen: Any
    ):
        self.name = name
        self.log = runtime / f"{name}.log"
        command = [prefix / "bin" / "hocket-server", "--name", name, "--runtime-dir", runtime, "--dir", directory]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, *map(str, arguments)], stdout=subprocess.PIPE, stderr=log, text=True, **popen
            )
        readable, _, _ = select.select([self.process.stdout], [], [], LIMIT_S)
        line = self.process.stdout.readline() if readable and self.process.stdout else ""
        if "listens on" not in line:
            self.kill()
            raise AssertionError(f"hocket-server {name} did not start: {line!r}\n{self.log.read_text()}")
        self.addresses = line.split("listens on ")[1].split()
        self.secret = (runtime / "servers" / "secret").read_bytes() if len(self.addresses) > 1 else b""

    @property
    def pid(self) -> int:
        return self.process.pid

    def client(self, **options: Any) -> Client:
        return Client(self.addresses[0], **options)

    def stop(self) -> int:
        """End the server with SIGTERM and return its exit code."""
        self.process.terminate()
        return self.process.wait(LIMIT_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(LIMIT_S)
