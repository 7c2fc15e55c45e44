"""The stand-in for hocketd: it speaks the frames of docs/design/bus.md, records what arrives, and decides nothing.

A thread of the test serves all clients: ranks with libhocket, tools, and the Python bus. For unit tests in C++,
src/control/bus/stand_in_testing.hpp does the same with the real node agent.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgpack
from hocket.bus import VERSION
from runtime_kit import wait_until

LEASE_NS = 300_000_000
LIMIT_S = 20

Event = dict[str, Any]


def frame(keys: Event) -> bytes:
    payload = msgpack.packb({"v": VERSION, **keys}, use_bin_type=True)
    return struct.pack("<I", len(payload)) + payload


@dataclass
class Client:
    """A connection, with the number that hocketd would give this member."""

    number: int
    socket: socket.socket
    data: bytes = b""
    subscriptions: dict[int, str] = field(default_factory=dict)  # filters, by the number of the subscription

    def events(self, chunk: bytes) -> list[Event]:
        """Return the events that are complete now."""
        self.data += chunk
        found = []
        while len(self.data) >= 4 and len(self.data) >= (end := 4 + struct.unpack("<I", self.data[:4])[0]):
            found.append(msgpack.unpackb(self.data[4:end]))
            self.data = self.data[end:]
        return found


class StandIn:
    """Listens at `path` until `kill`.

    Members of applications: every request is granted at once. With `grants=False` nothing is granted. With
    `queues_steps`, a step that an application announces itself gets QUEUED_IO. With `interrupts`, PAUSE_IO follows each
    grant, and the next grant follows PAUSED_IO. `share=(N, S)` grants all but the first N requests with the share S of
    the target's bandwidth. `held_targets` are those that WELCOME names as the operator's, one a line. `wait_s` is the
    answer to ASK_WAIT; None: there is none.

    Tools: `applications` and `daemon` are the answer to LIST, `decisions` and `daemon` the answer to EXPLAIN. A policy
    or a metric that contains BAD is refused, and so is such a filter. A subscription receives every event of the type
    that its filter's first word names, or every event if the filter is empty.
    """

    def __init__(
        self,
        path: Path,
        *,
        grants: bool = True,
        queues_steps: bool = False,
        interrupts: bool = False,
        share: tuple[int, float] | None = None,
    ) -> None:
        self.socket = path
        self.applications: list[Event] = []
        self.daemon: Event = {"policy": "fcfs", "pid": 1, "on_node": "node1"}
        self.decisions: list[Event] = []
        self.held_targets = ""
        self.wait_s: float | None = None
        self._grants, self._queues_steps, self._interrupts, self._share = grants, queues_steps, interrupts, share
        self._arrived: list[tuple[int, int, Event]] = []  # number of the client, time in ns, event
        self._clients: dict[int, Client] = {}
        self._orders: SimpleQueue[tuple[Callable[[], None], Future]] = SimpleQueue()
        self._thawed = threading.Event()
        self._thawed.set()
        self._ending = False
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        path.unlink(missing_ok=True)
        self._listener.bind(str(path))
        self._listener.listen()
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._waker, woken = socket.socketpair()
        self._selector.register(woken, selectors.EVENT_READ, partial(woken.recv, 4096))
        self._thread = threading.Thread(target=self._serve, name="stand-in for hocketd", daemon=True)
        self._thread.start()

    # ---- what a test sees --------------------------------------------------------------------------------------------

    @property
    def received(self) -> list[Event]:
        """Every event that was sent so far, as the client sent it; LOST where a connection has ended."""
        self._settle()
        return [event for _, _, event in self._arrived]

    def events(self, *types: str) -> list[Event]:
        """Return the events of these types (all without types) that were sent so far.

        `member` is the number of the client, and `at_ns` the time at which the event was read.
        """
        self._settle()
        every = [{**event, "member": number, "at_ns": at_ns} for number, at_ns, event in self._arrived]
        return [event for event in every if not types or event["type"] in types]

    def await_events(self, kind: str, count: int, limit_s: float = LIMIT_S) -> list[Event]:
        wait_until(lambda: len(self.events(kind)) >= count, limit_s, f"{count} events {kind}")
        return self.events(kind)

    def only(self, kind: str) -> Event:
        found = self.events(kind)
        assert len(found) == 1, f"{len(found)} events {kind}, not 1: {found}"
        return found[0]

    def first(self) -> int:
        """Return the member number of rank 0, which is not always the first to connect."""
        (first,) = [hello["member"] for hello in self.events("HELLO") if hello["processes"] > 0]
        return first

    def of_first(self, *types: str) -> list[Event]:
        """Return the events of these types that rank 0 sent."""
        return [event for event in self.events(*types) if event["member"] == self.first()]

    def bye(self) -> Event:
        """Return the only BYE of rank 0, which reports the sums of all processes."""
        (said,) = self.of_first("BYE")
        return said

    # ---- what a test makes it do -------------------------------------------------------------------------------------

    def tell(self, member: int, event: Event) -> None:
        """Send the event to the member with that number."""
        self._order(lambda: self._clients[member].socket.sendall(frame(event)))

    def tell_of(self, kind: str, about: Event, **fields: Any) -> None:
        """Send an event about the request of `about`, a recorded event, to the member that sent `about`."""
        self.tell(about["member"], {"type": kind, "request": about["request"], **fields})

    def grant(self, about: Event) -> None:
        self.tell_of("GRANT_IO", about, waited_ns=0, target="t", share=1.0)

    def pause(self, about: Event) -> None:
        self.tell_of("PAUSE_IO", about, because_of="b", target="t")

    def publish(self, event: Event) -> None:
        """Send the event to all who subscribed to it."""
        self._order(partial(self._publish, event))

    def raw(self, data: bytes) -> None:
        """Send bytes that need not be a frame to the client that connected last."""
        self._order(lambda: self._last().socket.sendall(data))

    def hang_up(self) -> None:
        """Close the connection of the client that connected last."""
        self._order(lambda: self._last().socket.shutdown(socket.SHUT_RDWR))

    def freeze(self) -> None:
        """Read and answer nothing until `thaw`, like a stopped process: connections stay open."""
        self._order(self._thawed.clear)

    def thaw(self) -> None:
        self._thawed.set()

    def kill(self) -> None:
        """End like a killed process: its connections close, and the socket's file stays. May be called again."""
        self.thaw()
        if self._thread.is_alive():
            self._order(partial(setattr, self, "_ending", True))
            self._thread.join(LIMIT_S)
            self._waker.close()

    # ---- the thread --------------------------------------------------------------------------------------------------

    def _order(self, action: Callable[[], None]) -> None:
        """Make the thread take everything that was sent before, and then run the action. Returns when it has."""
        done: Future = Future()
        self._orders.put((action, done))
        with contextlib.suppress(BrokenPipeError):  # it ends just now
            self._waker.send(b"!")
        try:
            done.result(LIMIT_S)
        except TimeoutError:
            raise AssertionError(f"the stand-in for hocketd did not answer within {LIMIT_S} s") from None

    def _settle(self) -> None:
        """Wait until everything that was sent before has been recorded."""
        if self._thread.is_alive():
            self._order(lambda: None)

    def _serve(self) -> None:
        while not self._ending:
            self._thawed.wait()
            self._take_in(None)
            while not self._orders.empty():
                while self._take_in(0):
                    pass
                action, done = self._orders.get()
                try:
                    done.set_result(action())
                except Exception as error:  # the test sees it
                    done.set_exception(error)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()

    def _take_in(self, timeout: float | None) -> bool:
        """Handle what is ready. Returns False if nothing was."""
        ready = self._selector.select(timeout)
        for key, _ in ready:
            key.data()
        return bool(ready)

    def _accept(self) -> None:
        accepted, _ = self._listener.accept()
        client = self._clients[len(self._clients) + 1] = Client(len(self._clients) + 1, accepted)
        self._selector.register(accepted, selectors.EVENT_READ, partial(self._read, client))

    def _last(self) -> Client:
        assert self._clients, "nobody has connected to the stand-in for hocketd"
        return self._clients[len(self._clients)]

    def _read(self, client: Client) -> None:
        try:
            chunk = client.socket.recv(65536)
        except ConnectionError:
            chunk = b""
        for event in client.events(chunk):
            self._record(client, event)
            for answer in self._answers(client, event):
                with contextlib.suppress(OSError):  # the client may have closed after BYE
                    client.socket.sendall(frame(answer))
        if not chunk:
            self._record(client, {"type": "LOST"})
            self._selector.unregister(client.socket)
            client.socket.close()
            client.subscriptions.clear()

    def _record(self, client: Client, event: Event) -> None:
        self._arrived.append((client.number, time.monotonic_ns(), event))

    def _publish(self, event: Event) -> None:
        for client in self._clients.values():
            for number, text in client.subscriptions.items():
                if text.split(" ")[0] in ("", event["type"]):
                    with contextlib.suppress(OSError):  # the client may have closed
                        client.socket.sendall(frame({"time_ns": 7, "node": "node1", "subscription": number, **event}))

    # ---- its answers -------------------------------------------------------------------------------------------------

    def _answers(self, client: Client, event: Event) -> list[Event]:
        request = {"request": event.get("request")}
        match event["type"]:
            case "HELLO":
                given = {"app": 1, "application_given": "a", "policy": self.daemon["policy"], "lease_ns": LEASE_NS}
                return [{"type": "WELCOME", "held_targets": self.held_targets, **given}]
            case "ASK_WAIT" if self.wait_s is not None:
                asked = {key: event[key] for key in ("number", "target")}
                wait_ns = int(self.wait_s * 1e9)
                return [{"type": "EXPECTED_WAIT", **asked, "wait_ns": wait_ns, "uncertainty_ns": 0, "ahead": 1}]
            case "START_IO":
                return self._answers_to_start(event)
            case "PAUSED_IO" if self._interrupts:
                return [{"type": kind, **request} for kind in ("GRANT_IO", "PAUSE_IO")]
            case "LIST":
                rows = [{"type": "APPLICATION", **application} for application in self.applications]
                return [*rows, {"type": "DAEMON", **self.daemon}]
            case "EXPLAIN":
                return [*self.decisions, {"type": "DAEMON", **self.daemon}]
            case "SET_POLICY":
                return self._set_policy(event)
            case "SUBSCRIBE" if "BAD" in event["filter"]:
                return [{"type": "REFUSED", "text": "filter: 'BAD' is no condition"}]
            case "SUBSCRIBE":
                client.subscriptions[event["subscription"]] = event["filter"]
            case "UNSUBSCRIBE":
                client.subscriptions.pop(event["subscription"], None)
            case _ if "properties" in event:  # an event that a tool publishes
                self._publish(event)
        return []

    def _answers_to_start(self, event: Event) -> list[Event]:
        request = {"request": event["request"]}
        if self._queues_steps and event["operation"] == "hocket_io_inform":
            return [{"type": "QUEUED_IO", "position": 1, "behind": "b", **request}]
        if not self._grants:
            return []
        granted = {"type": "GRANT_IO", "waited_ns": 0, "target": event["target"], **request}
        if self._share and event["request"] > self._share[0]:
            granted["share"] = self._share[1]
        return [granted, {"type": "PAUSE_IO", **request}] if self._interrupts else [granted]

    def _set_policy(self, event: Event) -> list[Event]:
        given = {name: event[name] for name in ("policy", "metric") if event.get(name)}
        if bad := [name for name, value in given.items() if "BAD" in value]:
            return [{"type": "REFUSED", "text": f"unknown {bad[0]} '{given[bad[0]]}'"}]
        self.daemon |= given
        return []
