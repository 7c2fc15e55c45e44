"""A stand-in for hocketd in tests of the Python side: speaks the frames of docs/design/bus.md, decides nothing."""

from __future__ import annotations

import socket
import struct
import threading
from pathlib import Path
from typing import Any

import msgpack


def frame(keys: dict[str, Any]) -> bytes:
    payload = msgpack.packb({"v": 1, **keys}, use_bin_type=True)
    return struct.pack("<I", len(payload)) + payload


class FakeAgent:
    """Serves one client at a time; `received` holds every event that arrived.

    `applications` and `daemon` are the answer to LIST, `decisions` and `daemon` the answer to EXPLAIN. A policy or a
    metric that contains BAD is refused.

    A subscription receives every event of the type that its filter's first word names (all for an empty filter). A
    filter that contains BAD is refused.
    """

    def __init__(self, path: Path) -> None:
        self.applications: list[dict[str, Any]] = []
        self.daemon: dict[str, Any] = {"policy": "fcfs", "pid": 1, "on_node": "node1"}
        self.decisions: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []
        self._subscriptions: dict[int, str] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._client: socket.socket | None = None
        self._connected = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def raw(self, data: bytes) -> None:
        assert self._connected.wait(5)
        assert self._client
        self._client.sendall(data)

    def hang_up(self) -> None:
        assert self._connected.wait(5)
        assert self._client
        self._client.shutdown(socket.SHUT_RDWR)

    def publish(self, keys: dict[str, Any]) -> None:
        for number, text in self._subscriptions.items():
            if text.split(" ")[0] in ("", keys["type"]):
                self.raw(frame({"time_ns": 7, "node": "node1", "subscription": number, **keys}))

    def close(self) -> None:
        self._listener.close()
        if self._client:
            self._client.close()

    def _serve(self) -> None:
        while True:
            try:
                self._client, _ = self._listener.accept()
                self._connected.set()
                self._read(self._client)
            except OSError:
                return

    def _read(self, client: socket.socket) -> None:
        data = b""
        while chunk := client.recv(65536):
            data += chunk
            while len(data) >= 4 and len(data) >= 4 + (length := struct.unpack("<I", data[:4])[0]):
                self._take(msgpack.unpackb(data[4 : 4 + length]))
                data = data[4 + length :]

    def _take(self, keys: dict[str, Any]) -> None:
        self.received.append(keys)
        if keys["type"] == "SUBSCRIBE":
            if "BAD" in keys["filter"]:
                self.raw(frame({"type": "REFUSED", "text": "filter: 'BAD' is no condition"}))
            else:
                self._subscriptions[keys["subscription"]] = keys["filter"]
        elif keys["type"] == "UNSUBSCRIBE":
            self._subscriptions.pop(keys["subscription"], None)
        elif keys["type"] == "SET_POLICY":
            given = {name: keys[name] for name in ("policy", "metric") if keys.get(name)}
            if bad := [name for name, value in given.items() if "BAD" in value]:
                self.raw(frame({"type": "REFUSED", "text": f"unknown {bad[0]} '{given[bad[0]]}'"}))
            else:
                self.daemon |= given
        elif keys["type"] == "EXPLAIN":
            for decision in self.decisions:
                self.raw(frame(decision))
            self.raw(frame({"type": "DAEMON", **self.daemon}))
        elif keys["type"] == "LIST":
            for application in self.applications:
                self.raw(frame({"type": "APPLICATION", **application}))
            self.raw(frame({"type": "DAEMON", **self.daemon}))
        elif "properties" in keys:
            self.publish(keys)
