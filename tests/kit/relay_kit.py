"""A stranger on the path between a client and a server: he relays a TCP connection, reads it, and may alter it."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable

LIMIT_S = 30
Alter = Callable[[bytes], bytes]


def host_and_port(address: str) -> tuple[str, int]:
    """Return both of "tcp:HOST:PORT#INSTANCE@NODE"."""
    host, _, port = address.removeprefix("tcp:").partition("#")[0].rpartition(":")
    return host, int(port)


class Relay:
    """Listens at `place`, relays what comes to `target` and back, and keeps what clients sent in `seen`.

    `alter` gets what a client sent, piece by piece, and returns what the server gets.
    """

    def __init__(self, place: tuple[str, int], target: tuple[str, int], alter: Alter = lambda data: data):
        self.target, self.alter = target, alter
        self.seen = b""
        self.connections = 0
        self.listener = socket.create_server(place)
        self.place = self.listener.getsockname()[:2]
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(LIMIT_S)
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        with client, socket.create_connection(self.target, LIMIT_S) as server, contextlib.suppress(OSError):
            while True:
                for one in select.select([client, server], [], [], LIMIT_S)[0]:
                    data = one.recv(1 << 16)
                    if not data:
                        return
                    if one is client:
                        self.seen += data
                        server.sendall(self.alter(data))
                    else:
                        client.sendall(data)
