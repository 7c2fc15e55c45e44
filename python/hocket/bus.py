"""The bus client for Python: publish events, subscribe to them, wait for one, list what runs. A public API.

    from hocket.bus import Bus

    with Bus.connect() as bus:
        bus.publish("SERVER_BUSY", server="s1", load=0.9)
        phases = bus.subscribe("IO_PHASE wait_ns>1000000")     # grammar: see subscribe()
        event = phases.wait(timeout=5)                          # None after a timeout
        for event in phases:                                    # until the daemon ends
            print(event.application, event["wait_ns"])

One thread at a time may use a Bus and its subscriptions. Received events are kept without limit until they are fetched:
read what you subscribe to, or close the subscription. If a client receives too slowly, the daemon leaves events out.
`Bus.events_lost` counts them.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import msgpack

from hocket.connection import BusError, NoDaemonError, connect, process_of

__all__ = [
    "Bus",
    "BusError",
    "ConnectionEndedError",
    "Event",
    "Listing",
    "NoDaemonError",
    "RefusedError",
    "Subscription",
]

VERSION = 2
MAX_PAYLOAD = 64 * 1024
ORIGIN_KEYS = ("time_ns", "node", "application", "member")
# Types whose own field is called "application": in them it is not a field of the origin.
OWN_APPLICATION = ("APPLICATION",)
# Requests that are answered by several events, of which the last is DAEMON.
ANSWERED_BY_DAEMON = ("LIST", "EXPLAIN")
SLOW_IO_SERVER = "SLOW_IO_SERVER"

Value = int | float | bool | str


@dataclass(frozen=True)
class Event:
    """An event or command that came over the bus. `event["key"]` is one of its own fields (src/core/event/fields.hpp).

    Times are CLOCK_MONOTONIC nanoseconds of the node. `application` and `member` name the publisher of an event, or the
    addressee of a command. Both are empty for tools.
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

    def flat_fields(self) -> dict[str, Value]:
        """Return the fields as a filter sees them: a reason is its kind, and fields such as "reason_iterations"."""
        flat: dict[str, Value] = {}
        for key, value in self.fields.items():
            if isinstance(value, dict):
                flat |= {key if name == "kind" else f"{key}_{name}": part for name, part in value.items()}
            else:
                flat[key] = value
        return flat

    def as_dict(self) -> dict[str, Value]:
        """Return one flat dictionary: the event as a filter sees it."""
        origin = {"type": self.type, "time_ns": self.time_ns, "node": self.node}
        return {**origin, "application": self.application, "member": self.member, **self.flat_fields()}


@dataclass(frozen=True)
class Listing:
    """The answer to LIST: the fields of each APPLICATION, of DAEMON, of each IO_SERVER, and of each NODE."""

    applications: list[dict[str, Any]]
    daemon: dict[str, Any]
    servers: list[dict[str, Any]] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)


def encode(type_name: str, fields: Mapping[str, Any]) -> bytes:
    """Return the frame of one of hocket's own events, its fields flat."""
    payload = msgpack.packb({"v": VERSION, "type": type_name, **fields}, use_bin_type=True)
    if len(payload) > MAX_PAYLOAD:
        raise BusError(f"{type_name}: {len(payload)} bytes are too many for one event (at most {MAX_PAYLOAD})")
    return struct.pack("<I", len(payload)) + payload


def make_event(type_name: str, keys: dict[str, Any]) -> Event:
    """Return the event of a frame's map or of a trace's line.

    `keys` holds the origin and the event's own fields, flat. The event keeps it.
    """
    origin = {key: keys.pop(key) for key in ORIGIN_KEYS if key in keys}
    fields = keys
    if isinstance(fields.get("properties"), dict):  # an event that a tool published
        fields = fields["properties"]
    if type_name in OWN_APPLICATION:
        fields["application"] = origin.pop("application", "")
    return Event(type_name, fields, **origin)


def decode(payload: bytes) -> tuple[Event, int]:
    """Return the event in a frame's payload, and the number of its subscription (0: the event is an answer)."""
    try:
        keys = msgpack.unpackb(payload, raw=False)
        version, type_name = keys.pop("v"), keys.pop("type")
    except (ValueError, KeyError, AttributeError, TypeError, msgpack.UnpackException) as error:
        raise BusError(f"the daemon sent a frame that is not an event ({error!r}); is it another version?") from error
    if version != VERSION:
        raise BusError(f"the daemon speaks version {version} of the bus and this tool version {VERSION}: update one")
    number = keys.pop("subscription", 0)
    return make_event(type_name, keys), number


class Subscription:
    """The events that match a filter, in the order of their arrival. Iteration ends when the daemon ends."""

    def __init__(self, bus: Bus, number: int, filter_text: str) -> None:
        self.filter = filter_text
        self._bus = bus
        self._number = number
        self._events: deque[Event] = deque()

    def wait(self, timeout: float | None = None) -> Event | None:
        """Return the next event, or None if none comes within `timeout` seconds (None: wait without limit)."""
        self._bus._pump_until(lambda: bool(self._events), timeout)
        return self._events.popleft() if self._events else None

    def test(self) -> Event | None:
        """Return the next event if one has arrived already. Does not wait."""
        return self.wait(0)

    def close(self) -> None:
        """End the subscription. Events that were not fetched are dropped."""
        self._bus._unsubscribe(self._number)
        self._events.clear()

    def __iter__(self) -> Iterator[Event]:
        with contextlib.suppress(ConnectionEndedError):
            while (event := self.wait()) is not None:
                yield event


class ConnectionEndedError(BusError):
    """The daemon closed the connection."""


class RefusedError(BusError):
    """The daemon refused a message. The connection stays."""


class Bus:
    """A connection to hocketd. Use `Bus.connect()`."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._received = bytearray()
        self._answers: deque[Event] = deque()
        self._questions = count(1)  # numbers of ASK_WAIT
        self._unanswered = 0  # number of LIST and EXPLAIN requests whose DAEMON has not arrived yet
        self._subscriptions: dict[int, Subscription] = {}
        self._by_filter: dict[str, Subscription] = {}
        self._next = 1
        self.events_lost = 0  # number of events that the daemon left out, because this client received too slowly

    @classmethod
    def connect(cls, path: Path | str | None = None, timeout: float = 5.0) -> Bus:
        """Connect to the daemon at `path` (default: this user's, or that of the surrounding job).

        Raises NoDaemonError if nothing listens there, and BusError if the socket or the daemon belongs to another user.
        """
        return cls(connect(path, timeout))

    def publish(self, type_name: str, properties: Mapping[str, Value] | None = None, /, **more: Value) -> None:
        """Publish an event of your own, with any properties and any type name that hocket does not use itself.

        One type of hocket is allowed: SLOW_IO_SERVER with the property `server`, the finding of a monitor. It takes the
        server out of the server map for a while. Raises BusError if it has other properties.
        """
        all_properties = {**(properties or {}), **more}
        if type_name != SLOW_IO_SERVER:
            self._send(encode(type_name, {"properties": all_properties}))
        elif list(all_properties) == ["server"] and isinstance(all_properties["server"], str):
            self.send(SLOW_IO_SERVER, server=all_properties["server"])
        else:
            raise BusError(f"{SLOW_IO_SERVER} has one property, the text 'server': the name of an I/O server")

    def send(self, type_name: str, /, **fields: Value) -> None:
        """Send one of hocket's own events.

        The fields are given by key (src/core/event/fields.hpp), e.g. send("SET_POLICY", …).
        """
        self._unanswered += type_name in ANSWERED_BY_DAEMON
        self._send(encode(type_name, fields))

    def subscribe(self, filter_text: str = "") -> Subscription:
        """Return the events that match, from now on.

        A filter is `[TYPE] {KEY OP VALUE}`. OP is one of = != < <= > >=, without spaces around it. A value with spaces
        stands in double quotes, and "" matches everything. Raises BusError if the daemon refuses the filter.
        """
        subscription = Subscription(self, self._next, filter_text)
        self._subscriptions[self._next] = subscription
        self._next += 1
        self._send(encode("SUBSCRIBE", {"subscription": subscription._number, "filter": filter_text}))
        try:
            self.list()  # a refusal arrives before this answer
        except BusError:
            with contextlib.suppress(BusError):  # the refusal may belong to an earlier message
                self._unsubscribe(subscription._number)
            raise
        return subscription

    def wait(self, filter_text: str, timeout: float | None = None) -> Event | None:
        """Return the next event that matches, or None after `timeout` seconds.

        The first call with a filter subscribes to it.
        """
        return self._subscribed(filter_text).wait(timeout)

    def test(self, filter_text: str) -> Event | None:
        """Return an event that has arrived since the first call with this filter, or None. Never waits."""
        return self._subscribed(filter_text).test()

    def list(self, timeout: float = 5.0) -> Listing:
        """Return the applications that run, the daemon, and the I/O servers.

        Raises BusError also for a refusal of an earlier message.
        """
        # Read to the end in every case, also past late answers: what is left would be taken for the next answer.
        ends = self._unanswered + sum(answer.type == "DAEMON" for answer in self._answers)
        self.send("LIST")
        listed: dict[str, list[dict[str, Any]]] = {"APPLICATION": [], "IO_SERVER": [], "NODE": []}
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
        return Listing(listed["APPLICATION"], dict(answer.fields), listed["IO_SERVER"], listed["NODE"])

    def expected_wait(self, target: str, timeout: float = 5.0, parts: str = "") -> dict[str, Any]:
        """Return how long a request for the target would wait, with the fields of EXPECTED_WAIT.

        `parts` are those of the target for which it would ask, "ost3,ost7"; "" asks for all of it.
        `uncertainty_ns` is -1 if an application ahead is unknown. Raises BusError if hocketd does not answer.
        """
        number = next(self._questions)
        self.send("ASK_WAIT", number=number, target=target, parts=parts)
        others: list[Event] = []
        try:
            while (answer := self._next_answer(timeout)) is not None:
                if answer.type == "EXPECTED_WAIT" and answer["number"] == number:
                    return dict(answer.fields)
                others.append(answer)
        finally:
            self._answers.extendleft(reversed(others))
        raise BusError(f"hocketd did not say within {timeout:g} s how busy {target} is; is it stopped?")

    def answer(self, timeout: float | None = None) -> Event | None:
        """Return the next event that is addressed to this client, not to a subscription. A refusal raises BusError."""
        answer = self._next_answer(timeout)
        if answer is not None and answer.type == "REFUSED":
            raise _refusal(answer)
        return answer

    def daemon_process(self) -> int:
        """Return the pid of the daemon in this process's PID namespace; 0: it cannot be seen from here."""
        return process_of(self._socket)

    def fileno(self) -> int:
        """Return the file descriptor for select(): it is readable when events may have arrived."""
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
            raise BusError("hocketd has accepted no data for 5 s; is it stopped? see 'hocket daemon status'") from error
        except OSError as error:
            raise ConnectionEndedError(f"the connection to hocketd has ended ({error.strerror or error})") from error

    def _next_answer(self, timeout: float | None, refusal: BusError | None = None) -> Event | None:
        """Return the next answer. If the connection ends, raise `refusal` if there is one."""
        try:
            self._pump_until(lambda: bool(self._answers), timeout)
        except ConnectionEndedError:
            if refusal is not None:
                raise refusal from None
            raise
        return self._answers.popleft() if self._answers else None

    def _pump_until(self, done: Any, timeout: float | None) -> None:
        """Receive frames until `done()`, or until the timeout. A timeout of 0 receives what has arrived."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not done():
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self._receive(left):
                return

    def _receive(self, timeout: float | None) -> bool:
        """Receive what the socket holds, and wait up to `timeout` seconds for it. Return False if nothing came."""
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


def _refusal(answer: Event) -> RefusedError:
    return RefusedError(str(answer.get("text", "the daemon refused")))
