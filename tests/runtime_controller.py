"""A stand-in for hocketd in the tests of libhocket: `runtime_controller.py SOCKET LOG` grants everything at once.

It writes each event that comes as one JSON line to LOG, with the number of the member that sent it, and LOST where a
connection ends. `--mute` answers nothing but HELLO. Who says SYNC is answered as soon as all that was sent before is in
LOG, and is not written down.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import msgpack

LEASE_NS = 300_000_000


def frame(keys: dict[str, Any]) -> bytes:
    payload = msgpack.packb({"v": 1, **keys}, use_bin_type=True)
    return struct.pack("<I", len(payload)) + payload


class Member:
    def __init__(self, number: int, client: socket.socket) -> None:
        self.number = number
        self.client = client
        self.data = b""
        self.syncs = False

    def events(self, chunk: bytes) -> list[dict[str, Any]]:
        """The events that are whole now."""
        self.data += chunk
        found = []
        while len(self.data) >= 4 and len(self.data) >= (end := 4 + struct.unpack("<I", self.data[:4])[0]):
            found.append(msgpack.unpackb(self.data[4:end]))
            self.data = self.data[end:]
        return found


def answer(event: dict[str, Any], mute: bool) -> dict[str, Any] | None:
    match event["type"]:
        case "HELLO":
            return {"type": "WELCOME", "app": 1, "application_given": "a", "policy": "fake", "lease_ns": LEASE_NS}
        case "SYNC":
            return {"type": "SYNC"}
        case "START_IO" if not mute:
            return {"type": "GRANT_IO", "request": event["request"], "waited_ns": 0, "target": event["target"]}
    return None


def serve(path: Path, log: TextIO, mute: bool) -> None:
    listener = socket.socket(socket.AF_UNIX)
    path.unlink(missing_ok=True)
    listener.bind(str(path))
    listener.listen()
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    members = 0

    def note(member: Member, event: dict[str, Any]) -> None:
        member.syncs |= event["type"] == "SYNC"
        if member.syncs:
            return
        log.write(json.dumps({**event, "member": member.number, "at_ns": time.monotonic_ns()}) + "\n")
        log.flush()

    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                members += 1
                client, _ = listener.accept()
                selector.register(client, selectors.EVENT_READ, Member(members, client))
                continue
            member = key.data
            try:
                chunk = member.client.recv(65536)
            except ConnectionError:
                chunk = b""
            for event in member.events(chunk):
                note(member, event)
                if reply := answer(event, mute):
                    with contextlib.suppress(OSError):  # it may have said BYE and gone
                        member.client.sendall(frame(reply))
            if not chunk:
                note(member, {"type": "LOST"})
                selector.unregister(member.client)
                member.client.close()


if __name__ == "__main__":
    with Path(sys.argv[2]).open("a") as log_file:
        serve(Path(sys.argv[1]), log_file, "--mute" in sys.argv)
