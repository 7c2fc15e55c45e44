"""hocket.bus against a stand-in for the daemon; test_daemon.py tests both together."""

from __future__ import annotations

import os
import struct

import pytest
from hocket import connection
from hocket.bus import Bus, BusError, ConnectionEndedError, Event, NoDaemonError
from hocket.verbs.events import line
from stand_in_hocketd import StandIn, frame

pytestmark = pytest.mark.timeout(20)


@pytest.fixture
def agent(tmp_path):
    agent = StandIn(tmp_path / "hocketd.sock")
    yield agent
    agent.kill()


@pytest.fixture
def bus(agent, tmp_path):
    with Bus.connect(tmp_path / "hocketd.sock") as connected:
        yield connected


def test_publishes_and_receives_its_own_event(bus):
    subscription = bus.subscribe("SERVER_BUSY")
    bus.publish("OTHER", server="s0")
    bus.publish("SERVER_BUSY", {"server": "s1"}, load=0.5)
    event = subscription.wait(timeout=5)
    assert (event.type, event["server"], event["load"], event.node) == ("SERVER_BUSY", "s1", 0.5, "node1")
    assert subscription.test() is None


def test_wait_gives_up_after_its_time(bus):
    assert bus.wait("GRANT_IO", timeout=0.05) is None


def test_test_finds_what_came_since_its_first_call(bus):
    assert bus.test("PING") is None
    bus.publish("PING", number=1)
    bus.list()
    assert bus.test("PING")["number"] == 1
    assert bus.test("PING") is None


def test_splits_joins_and_sorts_frames(agent, bus):
    first, second = bus.subscribe("A"), bus.subscribe("B")
    data = b"".join(
        frame({"type": kind, "subscription": number, "time_ns": at, "request": at})
        for at, (kind, number) in enumerate([("A", 1), ("B", 2), ("A", 1)])
    )
    for at in range(0, len(data), 7):
        agent.raw(data[at : at + 7])
    assert [first.wait(5)["request"], first.wait(5)["request"], second.wait(5)["request"]] == [0, 2, 1]


def test_lists_applications_and_daemon(agent, bus):
    agent.applications = [{"application": "jacobi", "state": "io"}, {"application": "cg", "state": "waiting"}]
    listing = bus.list()
    assert [a["application"] for a in listing.applications] == ["jacobi", "cg"]
    assert listing.daemon["policy"] == "fcfs"


def test_closed_subscription_gets_nothing_more(agent, bus):
    subscription = bus.subscribe("PING")
    bus.publish("PING")
    subscription.close()
    bus.publish("PING")
    bus.list()
    assert subscription.test() is None
    assert [keys["type"] for keys in agent.received][-3:] == ["UNSUBSCRIBE", "PING", "LIST"]


def test_counts_what_the_daemon_left_out(agent, bus):
    agent.raw(frame({"type": "EVENTS_LOST", "events": 3}) + frame({"type": "EVENTS_LOST", "events": 4}))
    bus.list()
    assert bus.events_lost == 7


def test_refused_filter_says_why(bus):
    with pytest.raises(BusError, match="'BAD' is no condition"):
        bus.subscribe("BAD")
    assert bus.subscribe("").test() is None  # the connection still works


def test_a_refusal_leaves_nothing_behind_for_the_next_call(agent, bus):
    """Otherwise the rest of the refused call's answer would count as a positive answer to the next call."""
    for filter_text in ("BAD", "BAD again"):
        with pytest.raises(BusError, match="'BAD' is no condition"):
            bus.subscribe(filter_text)
    agent.daemon["policy"] = "set-10"
    assert bus.list().daemon["policy"] == "set-10"


def test_an_answer_that_is_late_is_not_taken_for_the_next_one(bus):
    bus.send("LIST")  # without waiting for its answer
    with pytest.raises(BusError, match="'BAD' is no condition"):
        bus.subscribe("BAD")
    bus.send("LIST")
    assert bus.answer(5).type == "DAEMON"
    assert bus.list().daemon["policy"] == "fcfs"


def test_a_refusal_that_nobody_asked_for_is_told_by_the_next_call(agent, bus):
    bus.send("SET_POLICY", policy="BAD")
    bus._pump_until(lambda: bus._answers, timeout=5)  # as a wait for an event does
    with pytest.raises(BusError, match="unknown policy 'BAD'"):
        bus.subscribe("PING")
    bus.publish("PING")
    bus.list()
    assert [keys["type"] for keys in agent.received][-3:] == ["UNSUBSCRIBE", "PING", "LIST"]  # subscription withdrawn


def test_a_refusal_before_the_connection_ends_is_what_is_told(agent, bus, monkeypatch):
    agent.raw(frame({"type": "REFUSED", "text": "you say nonsense"}))
    agent.hang_up()
    monkeypatch.setattr(bus, "_send", lambda _: None)  # a LIST under way when the daemon closes the connection
    with pytest.raises(BusError, match="you say nonsense"):
        bus.list()


def test_iteration_ends_when_the_daemon_goes(agent, bus):
    subscription = bus.subscribe("")
    bus.publish("LAST")
    assert subscription.wait(5).type == "LAST"
    agent.hang_up()
    assert list(subscription) == []
    with pytest.raises(ConnectionEndedError):
        bus.list()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (struct.pack("<I", 65537), "frame of 65537 bytes"),
        (struct.pack("<I", 3) + b"\xc1\xc1\xc1", "not an event"),
        (frame({"v": 1, "type": "X"}), "speaks version 1 of the bus and this tool version 2: update one"),
        (struct.pack("<I", 1) + b"\x05", "not an event"),
    ],
)
def test_refuses_a_malformed_frame(agent, bus, data, message):
    agent.raw(data)
    with pytest.raises(BusError, match=message):
        bus.answer(timeout=5)


def test_a_reason_is_shown_as_a_filter_sees_it():
    shift = {"kind": "shift", "iterations": 99}
    event = Event("DECISION", {"number": 1, "reason": shift, "obstacle": {}}, 2_500_000_000)
    flat = {"number": 1, "reason": "shift", "reason_iterations": 99}
    assert event.flat_fields() == flat
    assert event.as_dict().items() >= flat.items()
    assert line(event).endswith("DECISION       number=1 reason=shift reason_iterations=99")


def test_refuses_to_send_too_much(bus):
    with pytest.raises(BusError, match="too many"):
        bus.publish("X", text="x" * 65536)


def test_says_where_no_daemon_listens(tmp_path):
    with pytest.raises(NoDaemonError, match="hocket daemon start"):
        Bus.connect(tmp_path / "hocketd.sock")


def test_leaves_a_socket_of_somebody_else_alone(agent, tmp_path, monkeypatch):
    monkeypatch.setattr(connection.os, "getuid", lambda: 12345)
    if tmp_path.stat().st_uid == 0:  # a socket of root would be accepted: change its owner
        os.chown(tmp_path / "hocketd.sock", 4242, -1)
    with pytest.raises(BusError, match="belongs to user"):
        Bus.connect(tmp_path / "hocketd.sock")
