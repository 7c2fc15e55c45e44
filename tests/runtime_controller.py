"""A stand-in for hocketd in the tests of libhocket: `runtime_controller.py SOCKET LOG` grants every request at once.

It writes each event that arrives to LOG as one line of JSON, with the number of the member that sent it. It writes LOST
when a connection ends.

`--mute` grants nothing. `--queue` sends QUEUED_IO to steps that an application announces itself. `--interrupt` sends
PAUSE_IO after each grant, and after PAUSED_IO grants again. `--share=N:S` grants all but the first N requests with the
share S of the target's bandwidth.

A client that sends SYNC gets its answer when LOG holds everything that was sent before. A client that sends TELL with
`to` and `event` has that event sent to the member `to`. LOG has neither of these.
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
        """Return the events that are complete now."""
        self.data += chunk
        found = []
        while len(self.data) >= 4 and len(self.data) >= (end := 4 + struct.unpack("<I", self.data[:4])[0]):
            found.append(msgpack.unpackb(self.data[4:end]))
            self.data = self.data[end:]
        return found


def answers(event: dict[str, Any], options: set[str]) -> list[dict[str, Any]]:
    interrupts = "--interrupt" in options
    match event["type"]:
        case "HELLO":
            return [{"type": "WELCOME", "app": 1, "application_given": "a", "policy": "fake", "lease_ns": LEASE_NS}]
        case "SYNC" | "TELL":
            return [{"type": "SYNC"}]
        case "START_IO" if "--queue" in options and event["operation"] == "hocket_io_inform":
            return [about(event, {"type": "QUEUED_IO", "position": 1, "behind": "b"})]
        case "START_IO" if "--mute" not in options:
            granted = about(event, {"type": "GRANT_IO", "waited_ns": 0, "target": event["target"]})
            for option in options:
                if option.startswith("--share=") and event["request"] > int(option[8:].split(":")[0]):
                    granted["share"] = float(option.split(":")[1])
            return [granted, about(event, {"type": "PAUSE_IO"})] if interrupts else [granted]
        case "PAUSED_IO" if interrupts:
            return [about(event, {"type": kind}) for kind in ("GRANT_IO", "PAUSE_IO")]
    return []


def about(event: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Add to the answer the number of the event's request."""
    return {**answer, "request": event["request"]}


def serve(path: Path, log: TextIO, options: set[str]) -> None:
    listener = socket.socket(socket.AF_UNIX)
    path.unlink(missing_ok=True)
    listener.bind(str(path))
    listener.listen()
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    members: dict[int, Member] = {}

    def note(member: Member, event: dict[str, Any]) -> None:
        member.syncs |= event["type"] in ("SYNC", "TELL")
        if event["type"] == "TELL":
            members[event["to"]].client.sendall(frame(event["event"]))
        if member.syncs:
            return
        log.write(json.dumps({**event, "member": member.number, "at_ns": time.monotonic_ns()}) + "\n")
        log.flush()

    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                client, _ = listener.accept()
                member = members[len(members) + 1] = Member(len(members) + 1, client)
                selector.register(client, selectors.EVENT_READ, member)
                continue
            member = key.data
            try:
                chunk = member.client.recv(65536)
            except ConnectionError:
                chunk = b""
            for event in member.events(chunk):
                note(member, event)
                for reply in answers(event, options):
                    with contextlib.suppress(OSError):  # the client may have closed after BYE
                        member.client.sendall(frame(reply))
            if not chunk:
                note(member, {"type": "LOST"})
                selector.unregister(member.client)
                member.client.close()


if __name__ == "__main__":
    with Path(sys.argv[2]).open("a") as log_file:
        serve(Path(sys.argv[1]), log_file, set(sys.argv[3:]))
