"""A hocket-server under test, and a client with its own implementation of the protocol (src/data/transport/frame.hpp).

With this client tests can also send frames that hocket's own client never sends. Over TCP it proves the secret and
authenticates frames (src/data/transport/proof.hpp, frame_tag.hpp).
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

import pytest
from mount_kit import IN_A_MOUNT_NAMESPACE

LIMIT_S = 20
HEADER = struct.Struct("<IBBHQQQQqqqIIiI")
MAGIC = int.from_bytes(b"HKTF", "little")
TYPES = ("prove", "share", "open", "view", "write", "read", "end", "sync", "close", "state", "join", "store")
TYPE = {name: number for number, name in enumerate(TYPES, 1)} | {
    "challenge": 64,
    "welcome": 65,
    "answer": 66,
    "stored": 67,
    "alive": 68,
}
READS, WRITES, WRITE_BEHIND, LIST, VIEWED = 1, 2, 4, 8, 16


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
            changed.get("magic", MAGIC), changed.get("version", 2), self.type, self.flags, self.sequence, self.request,
            self.handle, self.operation, self.offset, self.bytes, self.shared,
            changed.get("payload_bytes", len(self.payload)), changed.get("meta_bytes", len(self.meta)), self.error,
            self.number,
        )  # fmt: skip
        return head + self.meta + self.payload


class Client:
    """A connection to a server. Unless `greet` is False it proves itself, over TCP with the secret.

    It ignores that a server of this node is reached by its Unix socket only.
    """

    def __init__(self, address: str, secret: bytes | None = b"", greet: bool = True):
        kind, _, place = address.partition(":")
        if kind == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(LIMIT_S)
            self.socket.connect(place.partition("#")[0])
        else:
            host, _, port = place.partition("#")[0].rpartition(":")
            self.socket = socket.create_connection((host, int(port)), LIMIT_S)
        self.own_key = self.servers_key = b""  # session keys of the two directions; none: frames have no tags
        self.sequence = self.received = 0
        self.request = 0
        self.stored: list[Frame] = []  # frames of this type, which come at any time
        self.challenge = self.receive()
        self.proof = b""
        if greet:
            if kind == "tcp":
                self.proof = prove(secret or b"", self.challenge.meta, address)
            self.send(Frame(TYPE["prove"], meta=self.proof))
            self.welcome = self.receive()
            if kind == "tcp":
                nonces = self.challenge.meta, self.proof[:32]
                self.own_key = connection_hash(b"C", secret or b"", *nonces, address)
                self.servers_key = connection_hash(b"S", secret or b"", *nonces, address)

    def send(self, frame: Frame, **changed: Any) -> None:
        self.socket.sendall(self.sealed(frame, **changed))

    def sealed(self, frame: Frame, **changed: Any) -> bytes:
        """Return the bytes of the next frame, with its tag if the connection has tags."""
        self.sequence += 1
        data = replace(frame, sequence=frame.sequence or self.sequence).encode(**changed)
        return data + frame_tag(self.own_key, self.sequence, data) if self.own_key else data

    def ask(self, kind: str, **fields: Any) -> int:
        """Send a request and return its number."""
        self.request += 1
        if "payload" in fields:
            fields.setdefault("bytes", len(fields["payload"]))
        self.send(Frame(TYPE[kind], request=self.request, **fields))
        return self.request

    def receive(self) -> Frame:
        """Return the next frame that answers. Raises ConnectionError if the server has closed the connection."""
        while (frame := self._receive_any()).type in (TYPE["stored"], TYPE["alive"]):
            if frame.type == TYPE["stored"]:
                self.stored.append(frame)
        return frame

    def _receive_any(self) -> Frame:
        head = self._read(HEADER.size)
        fields = HEADER.unpack(head)
        assert fields[:2] == (MAGIC, 2), fields
        self.received += 1
        payload, meta = fields[11], fields[12]
        frame = Frame(*fields[2:11], error=fields[13], number=fields[14])
        frame.meta = self._read(meta)
        frame.payload = self._read(payload)
        if self.servers_key:
            tag = frame_tag(self.servers_key, self.received, head + frame.meta + frame.payload)
            assert self._read(16) == tag, "the server's frame has a wrong tag"
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
        one_server = 1  # the placement: this server has all bytes
        answer = self.call("open", meta=path.encode(), flags=flags, bytes=one_server)
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


def prove(secret: bytes, nonce: bytes, address: str) -> bytes:
    """Return a client's proof for the server of the address."""
    own = os.urandom(32)
    return own + connection_hash(b"c", secret, nonce, own, address)


def connection_hash(purpose: bytes, secret: bytes, server_nonce: bytes, client_nonce: bytes, address: str) -> bytes:
    server = address.partition("@")[0].encode()
    text = b"hocket tcp 2 " + purpose + server_nonce + client_nonce + server
    return hmac.new(secret, text, hashlib.sha256).digest()


def frame_tag(key: bytes, sequence: int, message: bytes) -> bytes:
    """Return Poly1305 of the message, under the key that ChaCha20 derives for the frame (RFC 8439)."""
    once = chacha20_block(key, sequence)
    r = int.from_bytes(once[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(message), 16):
        total = (total + int.from_bytes(message[at : at + 16] + b"\1", "little")) * r % ((1 << 130) - 5)
    return ((total + int.from_bytes(once[16:32], "little")) % (1 << 128)).to_bytes(16, "little")


def chacha20_block(key: bytes, sequence: int) -> bytes:
    words = struct.unpack("<8I", key)
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *words, 0, 0, sequence & 0xFFFFFFFF, sequence >> 32]
    x = start.copy()

    def mix(a: int, b: int, c: int, d: int) -> None:
        for left, right, other, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[left] = (x[left] + x[right]) & 0xFFFFFFFF
            x[other] ^= x[left]
            x[other] = (x[other] << bits | x[other] >> (32 - bits)) & 0xFFFFFFFF

    for _ in range(10):
        for i in range(4):
            mix(i, i + 4, i + 8, i + 12)
        for i in range(4):
            mix(i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12)
    return struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(x, start, strict=True)))


def on_another_node(directory: Path) -> list[str]:
    """Return the words before a command that runs it where the kernel has another boot id."""
    boot_id = directory / "boot_id"
    boot_id.write_text("00000000-0000-4000-8000-000000000000\n")
    script = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
    words = [*IN_A_MOUNT_NAMESPACE, "sh", "-c", script, str(boot_id)]
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine allows no mount namespace, in which a server has another boot id")
    return words


class Server:
    """A hocket-server of the prefix under test that serves `directory`.

    With `elsewhere` it takes itself to be on another node, so that libhocket uses its TCP address here.
    """

    def __init__(
        self,
        prefix: Path,
        runtime: Path,
        directory: Path,
        *arguments: object,
        name: str = "s1",
        elsewhere: bool = False,
        **popen: Any,
    ):
        self.name = name
        self.log = runtime / f"{name}.log"
        command = [prefix / "bin" / "hocket-server", "--name", name, "--runtime-dir", runtime, "--dir", directory]
        if elsewhere:
            command = [*on_another_node(runtime), *command]
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

    @property
    def socket(self) -> Path:
        """The path of its Unix socket."""
        return Path(self.addresses[0].removeprefix("unix:").partition("#")[0])

    def client(self, **options: Any) -> Client:
        return Client(self.addresses[0], **options)

    def stop(self) -> int:
        """End the server with SIGTERM and return its exit code."""
        self.process.terminate()
        return self.process.wait(LIMIT_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(LIMIT_S)
