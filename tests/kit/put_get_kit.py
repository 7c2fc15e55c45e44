"""Shared by the tests of put and get: a program that executes commands, and what they check."""

from __future__ import annotations

import os
import random
import select
import subprocess
from pathlib import Path

from server_kit import Server

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
    """A process of tests/programs/put_get.c, which executes the commands that it reads from stdin."""

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
        """Return the answer to the oldest unanswered command: the code, and the value or the text of the error."""
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
        """Run a command that must succeed, and return its value."""
        code, text = self.call(*words)
        assert code == 0, f"{words}: {code} {text}"
        return int(text)

    def file(self, data: bytes) -> Path:
        path = self.scratch / "put"
        path.write_bytes(data)
        return path

    def put(self, offset: int, data: bytes) -> None:
        self.must("put", offset, self.file(data))

    def publish(self, data: bytes, *options: object) -> None:
        """Publish a version of hocket:/field."""
        self.must("open", "hocket:/field", "w", *options)
        self.put(0, data)
        self.must("close")

    def tell_get(self, *words: object) -> None:
        self.tell(*words, self.scratch / "got")

    def got(self) -> bytes:
        """Return the data of the last get sent by `tell_get`."""
        code, text = self.answer()
        assert code == 0, f"get: {code} {text}"
        data = (self.scratch / "got").read_bytes()
        assert len(data) == int(text)
        return data

    def get(self, *words: object) -> bytes:
        self.tell_get(*words)
        return self.got()


def operations(server: Server) -> int:
    return int(server.client().state()["operations"])


def noise(bytes_: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(bytes_)
