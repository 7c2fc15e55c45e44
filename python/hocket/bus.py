"""The bus, from Python: publish events, subscribe to them, wait for one, ask what runs. A public API.

    from hocket.bus import Bus

    with Bus.connect() as bus:
        bus.publish("SERVER_BUSY", server="s1", load=0.9)
        phases = bus.subscribe("IO_PHASE wait_ns>1000000")     # grammar: see subscribe()
        event = phases.wait(timeout=5)                          # None when nothing came
        for event in phases:                                    # until the daemon goes
            print(event.application, event["wait_ns"])

One thread at a time may use a Bus and its subscriptions. What has been received and is not fetched is kept, without
limit: read what you subscribe to, or close the subscription. What a client does not receive fast enough the daemon
leaves out, and `Bus.events_lost` counts it.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack

from hocket.connection import BusError, NoDaemonError, connect

__all__ = ["Bus", "BusError", "ConnectionEndedError", "Event", "Listing", "NoDaemonError", "Subscription"]

VERSION = 1
MAX_PAYLOAD = 64 * 1024
ORIGIN_KEYS = ("time_ns", "node", "application", "member")
# Types whose own field is called "application": there it is not the origin's.
OWN_APPLICATION = ("APPLICATION",)
# What is answered by several events, of which the last is DAEMON.
ANSWERED_BY_DAEMON = ("LIST", "EXPLAIN")

Value = int | float | bool | str


@dataclass(frozen=True)
class Event:
    """An event or command as it came over the bus. `event["key"]` is one of its own fields (src/event/fields.hpp).

    Times are CLOCK_MONOTONIC nanoseconds of the node. `application` and `member` say who published it, or to whom a
    command is addressed; both are empty for tools.
    """

    type: str
    fields: Mapping[str, Value] = field(default_factory=dict)
    time_ns: int = 0
    node: str = ""
    application: str = ""
    member: int = 0

    def __getitem__(self, key: str) -> Value:
        return self.fields[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self.fields.get(key, default)

    def as_dict(self) -> dict[str, Value]:
        """One flat dictionary, as a filter sees the event."""
        origin = {"type": self.type, "time_ns": self.time_ns, "node": self.node}
        return {**origin, "application": self.application, "member": self.member, **self.fields}


@dataclass(frozen=True)
class Listing:
    """What runs now: one dictionary of APPLICATION's fields each, those of DAEMON, and those of each IO_SERVER."""

    applications: list[dict[str, Any]]
    daemon: dict[str, Any]
    servers: list[dict[str, Any]] = field(default_factory=list)


def encode(type_name: str, fields: Mapping[str, Any]) -> bytes:
    """A frame of an event of hocket's own: its fields flat."""
    payload = msgpack.packb({"v": VERSION, "type": type_name, **fields}, use_bin_type=True)
    if len(payload) > MAX_PAYLOAD:
        raise BusError(f"{type_name}: {len(payload)} bytes are too many for one event (at most {MAX_PAYLOAD})")
    return struct.pack("<I", len(payload)) + payload


def make_event(type_name: str, keys: dict[str, Any]) -> Event:
    """The event that a frame's map or a trace's line holds: origin and own fields, flat, in `keys`, which it keeps."""
    origin = {key: keys.pop(key) for key in ORIGIN_KEYS if key in keys}
    fields = keys
    if isinstance(fields.get("properties"), dict):  # an event of somebody else's
        fields = fields["properties"]
    if type_name in OWN_APPLICATION:
        fields["application"] = origin.pop("application", "")
    return Event(type_name, fields, **origin)


def decode(payload: bytes) -> tuple[Event, int]:
    """The event in a frame's payload, and the number of the subscription it was sent for (0: it was an answer)."""
    try:
        keys = msgpack.unpackb(payload, raw=False)
        version, type_name = keys.pop("v"), keys.pop("type")
    except (ValueError, KeyError, AttributeError, TypeError, msgpack.UnpackException) as error:
        raise BusError(f"the daemon sent a frame that is no event ({error!r}); is it another version?") from error
    if version != VERSION:
        raise BusError(f"the daemon speaks version {version} of the bus and this tool version {VERSION}: update one")
    number = keys.pop("subscription", 0)
    return make_event(type_name, keys), number


class Subscription:
    """The events that match a filter, in the order in which they came. Iterating ends when the daemon goes."""

    def __init__(self, bus: Bus, number: int, filter_text: str) -> None:
        self.filter = filter_text
        self._bus = bus
        self._number = number
        self._events: deque[Event] = deque()

    def wait(self, timeout: float | None = None) -> Event | None:
        """The next event; None where none came within `timeout` seconds (None: wait for ever)."""
        self._bus._pump_until(lambda: bool(self._events), timeout)
        return self._events.popleft() if self._events else None

    def test(self) -> Event | None:
        """The next event if one has come already; does not wait."""
        return self.wait(0)

    def close(self) -> None:
        """No more of these events. What was not fetched is dropped."""
        self._bus._unsubscribe(self._number)
        self._events.clear()

    def __iter__(self) -> Iterator[Event]:
        with contextlib.suppress(ConnectionEndedError):
            while (event := self.wait()) is not None:
                yield event


class ConnectionEndedError(BusError):
    """The daemon closed the connection."""


class Bus:
    """A connection to hocketd. Use `Bus.connect()`."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._received = bytearray()
        self._answers: deque[Event] = deque()
        self._unanswered = 0  # of what DAEMON ends the answer to, whose DAEMON has not come yet
        self._subscriptions: dict[int, Subscription] = {}
        self._by_filter: dict[str, Subscription] = {}
        self._next = 1
        self.events_lost = 0  # left out by the daemon so far, because this client did not read fast enough

    @classmethod
    def connect(cls, path: Path | str | None = None, timeout: float = 5.0) -> Bus:
        """Connect to the daemon at `path` (default: this user's, or that of the surrounding job).

        Raises NoDaemonError where nobody listens and BusError where socket or daemon belong to somebody else.
        """
        return cls(connect(path, timeout))

    def publish(self, type_name: str, properties: Mapping[str, Value] | None = None, /, **more: Value) -> None:
        """Publish an event of one's own: any type name that hocket does not use itself, any properties."""
        self._send(encode(type_name, {"properties": {**(properties or {}), **more}}))

    def send(self, type_name: str, /, **fields: Value) -> None:
        """Send one of hocket's own events, its fields by key (src/event/fields.hpp), e.g. send("SET_POLICY", …)."""
        self._unanswered += type_name in ANSWERED_BY_DAEMON
        self._send(encode(type_name, fields))

    def subscribe(self, filter_text: str = "") -> Subscription:
        """The events that match, from now on.

        A filter is `[TYPE] {KEY OP VALUE}` with OP one of = != < <= > >= and no space around it; a value with spaces
        stands in double quotes; "" is everything. Raises BusError where the daemon does not understand it.
        """
        subscription = Subscription(self, self._next, filter_text)
        self._subscriptions[self._next] = subscription
        self._next += 1
        self._send(encode("SUBSCRIBE", {"subscription": subscription._number, "filter": filter_text}))
        try:
            self.list()  # its answer comes after a refusal: afterwards we know
        except BusError:
            with contextlib.suppress(BusError):  # the refusal may be of something else that was sent before
                self._unsubscribe(subscription._number)
            raise
        return subscription

    def wait(self, filter_text: str, timeout: float | None = None) -> Event | None:
        """The next event that matches; None after `timeout` seconds. The first call for a filter subscribes to it."""
        return self._subscribed(filter_text).wait(timeout)

    def test(self, filter_text: str) -> Event | None:
        """Like wait(), but never waits: an event that came since the first call for this filter, or None."""
        return self._subscribed(filter_text).test()

    def list(self, timeout: float = 5.0) -> Listing:
        """The applications that run, the daemon, and the I/O servers. Raises a refusal of what was sent before, too."""
        # Read to the end, refused or not and whatever was late: what was left would be taken for the next answer.
        ends = self._unanswered + sum(answer.type == "DAEMON" for answer in self._answers)
        self.send("LIST")
        listed: dict[str, list[dict[str, Any]]] = {"APPLICATION": [], "IO_SERVER": []}
        refusal: BusError | None = None
        while (answer := self._next_answer(timeout, refusal)) is not None:
            if answer.type == "REFUSED":
                refusal = refusal or _refusal(answer)
            elif answer.type in listed and ends == 0:
                listed[answer.type].append(dict(answer.fields))
            elif answer.type == "DAEMON":
                if ends == 0:
                    break
                ends -= 1
        if refusal is not None:
            raise refusal
        if answer is None:
            raise BusError(f"hocketd did not answer within {timeout:g} s; is it stopped? see 'hocket daemon status'")
        return Listing(listed["APPLICATION"], dict(answer.fields), listed["IO_SERVER"])

    def answer(self, timeout: float | None = None) -> Event | None:
        """The next event that was sent to this client itself, not for a subscription. A refusal raises BusError."""
        answer = self._next_answer(timeout)
        if answer is not None and answer.type == "REFUSED":
            raise _refusal(answer)
        return answer

    def fileno(self) -> int:
        """For select(): readable when events may have come."""
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Bus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _subscribed(self, filter_text: str) -> Subscription:
        if filter_text not in self._by_filter:
            self._by_filter[filter_text] = self.subscribe(filter_text)
        return self._by_filter[filter_text]

    def _unsubscribe(self, number: int) -> None:
        gone = self._subscriptions.pop(number, None)
        if gone is None:
            return
        if self._by_filter.get(gone.filter) is gone:
            del self._by_filter[gone.filter]
        self._send(encode("UNSUBSCRIBE", {"subscription": number}))

    def _send(self, frame: bytes) -> None:
        try:
            self._socket.settimeout(5.0)
            self._socket.sendall(frame)
        except TimeoutError as error:
            raise BusError("hocketd takes nothing in for 5 s; is it stopped? see 'hocket daemon status'") from error
        except OSError as error:
            raise ConnectionEndedError(f"the connection to hocketd has ended ({error.strerror or error})") from error

    def _next_answer(self, timeout: float | None, refusal: BusError | None = None) -> Event | None:
        """Where the connection ends, `refusal` says why."""
        try:
            self._pump_until(lambda: bool(self._answers), timeout)
        except ConnectionEndedError:
            if refusal is not None:
                raise refusal from None
            raise
        return self._answers.popleft() if self._answers else None

    def _pump_until(self, done: Any, timeout: float | None) -> None:
        """Take frames in until `done()` or the time is over; at least what has come already."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not done():
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self._receive(left):
                return

    def _receive(self, timeout: float | None) -> bool:
        """Take in what the socket has, waiting for it for `timeout` seconds. False: nothing came."""
        self._socket.settimeout(timeout)
        try:
            chunk = self._socket.recv(1 << 16)
        except (TimeoutError, BlockingIOError):
            return False
        except OSError as error:
            raise ConnectionEndedError(f"the connection to hocketd has ended ({error.strerror or error})") from error
        if not chunk:
            raise ConnectionEndedError("hocketd closed the connection; its log is hocketd.log in the runtime directory")
        self._received += chunk
        self._sort_frames()
        return True

    def _sort_frames(self) -> None:
        while len(self._received) >= 4:
            length = struct.unpack_from("<I", self._received)[0]
            if length > MAX_PAYLOAD:
                raise BusError(f"the daemon sent a frame of {length} bytes (at most {MAX_PAYLOAD}); is it hocketd?")
            if len(self._received) < 4 + length:
                return
            event, number = decode(bytes(self._received[4 : 4 + length]))
            del self._received[: 4 + length]
            if event.type == "EVENTS_LOST":
                self.events_lost += int(event["events"])
            elif number == 0:
                self._unanswered -= event.type == "DAEMON" and self._unanswered > 0
                self._answers.append(event)
            elif number in self._subscriptions:
                self._subscriptions[number]._events.append(event)


def _refusal(answer: Event) -> BusError:
    return BusError(str(answer.get("text", "the daemon refused")))
