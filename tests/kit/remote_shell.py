#!/usr/bin/env python3
"""A remote shell between the hosts of hosts.py, by which launchers of MPI start processes on other hosts.

    remote_shell.py serve                    on each host: carries out what comes
    remote_shell.py [OPTION…] HOST WORD…     runs the words there by sh, as ssh does, with this process's streams

It has no security whatever: the network of such hosts ends at them.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading

PORT = 514
PIECE_BYTES = 65536


def serve() -> None:
    with socket.create_server(("", PORT)) as listener:
        print("ready", flush=True)
        while True:
            threading.Thread(target=carry_out, args=(listener.accept()[0],), daemon=True).start()


def carry_out(connection: socket.socket) -> None:
    """Run one command. Its streams are the connection; its exit code is the last line."""
    with connection, connection.makefile("rb", buffering=0) as lines:
        line = lines.readline()
        command = json.loads(line)
        process = subprocess.Popen(
            ["sh", "-c", command["line"]],
            stdin=connection, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=command["environment"],
        )  # fmt: skip
        assert process.stdout is not None
        while piece := os.read(process.stdout.fileno(), PIECE_BYTES):
            connection.sendall(piece)


def run(host: str, words: list[str]) -> None:
    with socket.create_connection((host, PORT)) as connection:
        # Some variables name things of this host, or of the launcher that starts the next one.
        command = {"line": " ".join(words), "environment": dict(os.environ)}
        connection.sendall(json.dumps(command).encode() + b"\n")
        sources = [connection, sys.stdin]
        while True:
            for ready in select.select(sources, [], [])[0]:
                piece = connection.recv(PIECE_BYTES) if ready is connection else os.read(0, PIECE_BYTES)
                if ready is connection and not piece:
                    return
                if ready is connection:
                    os.write(1, piece)
                elif piece:
                    connection.sendall(piece)
                else:
                    sources.remove(sys.stdin)
                    connection.shutdown(socket.SHUT_WR)


def main() -> None:
    words = sys.argv[1:]
    if words == ["serve"]:
        return serve()
    while words and words[0].startswith("-"):
        words.pop(0)
    return run(words[0], words[1:])


if __name__ == "__main__":
    main()
