"""A stand-in for hocket-server that is one towards hocketd alone: it says SERVER, reports what it is told to, and goes.

In tests it is called as hocket-server is. A user event STAND_IN {server, operations, bytes, service_ns} makes it report
that load. --dir …/fails ends it with an error, as a server does that cannot start.
"""

from __future__ import annotations

import argparse
import select
import signal
import socket
import sys

from hocket.bus import Bus, ConnectionEndedError


def say_hello(bus: Bus, name: str, directory: str, **more: object) -> Bus:
    """Become a server of hocketd's; it is known there when this returns."""
    bus.send("HELLO", job="", application_asked=name, program="/stand-in", mpi="", version="t", pid=1, processes=0)
    assert bus.answer(10).type == "WELCOME"
    fields = {"addresses": f"unix:/run/{name}", "directory": directory, "buffer_bytes": 1 << 20, **more}
    bus.send("SERVER", server=name, **fields)
    bus.list()
    return bus


def report(bus: Bus, operations: int, bytes_moved: int, service_ns: int, **more: object) -> None:
    bus.send("SERVER_LOAD", operations=operations, bytes=bytes_moved, service_ns=service_ns, **more)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--runtime-dir", required=True)
    parser.add_argument("--buffer", type=int, default=1 << 20)
    parser.add_argument("--write-behind", action="store_true")
    arguments = parser.parse_args()
    if arguments.dir.endswith("fails"):
        print(f"hocket-server: {arguments.dir}: cannot be opened: Permission denied", file=sys.stderr)
        return 1
    read, write = socket.socketpair()
    write.setblocking(False)
    signal.set_wakeup_fd(write.fileno())
    signal.signal(signal.SIGTERM, lambda *_: None)
    with Bus.connect() as bus:
        wishes = bus.subscribe(f"STAND_IN server={arguments.name}")
        more = {"buffer_bytes": arguments.buffer, "write_behind": arguments.write_behind}
        say_hello(bus, arguments.name, arguments.dir, **more)
        while True:
            while (wish := wishes.test()) is not None:
                report(bus, wish["operations"], wish["bytes"], wish["service_ns"])
            ready = select.select([bus, read], [], [])[0]
            if read in ready:
                bus.send("BYE")
                return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ConnectionEndedError:
        sys.exit(3)
