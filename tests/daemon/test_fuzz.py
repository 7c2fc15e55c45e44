"""Truncated, oversized, random, and mutated frames into the live socket; with sanitizers if $HOCKET_PREFIX has them."""

import random
import socket
import struct
import time
from pathlib import Path

import msgpack
import pytest
from daemon_kit import LIMIT_S, hello, start_io
from hocket.bus import Bus, encode

CONNECTIONS = 1500

VALID = [
    encode("HELLO", {"job": "j", "application_asked": "fuzz", "mpi": "mpich", "processes": 2}),
    encode("START_IO", {"request": 1, "target": "t", "file": "/f", "operation": "w", "bytes": 1}),
    encode("FINISH_IO", {"request": 1, "io_ns": 5, "bytes": 1, "phase_over": True}),
    encode("RENEW_IO", {"request": 1}),
    encode("IO_PHASE", {"index": 0, "start_ns": 1, "end_ns": -5, "io_ns": 3, "operations": 1}),
    encode("BYE", {"cpu_ns": 1}),
    encode(
        "HELD_NODES", {"job": "j", "allocation": "7", "nodes": "n1=1152921504606846976 n2=1 n1=1152921504606846976"}
    ),
    encode("SET_POLICY", {"policy": "fcfs"}),
    encode("SUBSCRIBE", {"subscription": 1, "filter": "START_IO bytes>3"}),
    encode("UNSUBSCRIBE", {"subscription": 1}),
    encode("LIST", {}),
    encode("NOTE", {"properties": {"a": 1, "b": 2.5, "c": True, "d": "x"}}),
]


def garbage(rng: random.Random) -> bytes:
    """Return valid frames with a fault somewhere, or random bytes."""
    frames = b"".join(rng.choices(VALID, k=rng.randint(1, 4)))
    kind = rng.randrange(5)
    if kind == 0:
        return frames[: rng.randrange(len(frames))]
    if kind == 1:
        return frames + struct.pack("<I", rng.choice([0, 65537, 2**31, 2**32 - 1])) + rng.randbytes(50)
    if kind == 2:
        return rng.randbytes(rng.randint(1, 300))
    if kind == 3:
        payload = rng.randbytes(rng.randint(1, 100))
        return frames + struct.pack("<I", len(payload)) + payload
    mutated = bytearray(frames)
    for _ in range(rng.randint(1, 6)):
        mutated[rng.randrange(len(mutated))] = rng.randrange(256)
    return bytes(mutated)


@pytest.mark.timeout(300)
def test_random_bytes_leave_the_daemon_up(daemon):
    rng = random.Random(7)
    with Bus.connect() as witness:
        hello(witness, "witness")
        for i in range(CONNECTIONS):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(LIMIT_S)
                connection.connect(str(daemon.socket))
                connection.sendall(garbage(rng))
            if i % 100 == 0:
                witness.list()
        deadline = time.monotonic() + LIMIT_S
        while len((listing := witness.list()).applications) > 1 and time.monotonic() < deadline:
            pass  # the daemon may not have seen the end of the last connections yet
    assert listing.daemon["pid"] == daemon.pid
    assert [row["application"] for row in listing.applications] == ["witness"]
    assert daemon.stop() == 0, "hocketd did not survive, see its stderr"
    check_trace(daemon.trace)


def check_trace(trace: Path) -> None:
    lines = trace.read_bytes().splitlines()
    assert len(lines) > CONNECTIONS / 2
    for line in lines:
        line.decode("utf-8")


REFUSED = {
    "oversized": struct.pack("<I", 65537),
    "empty": struct.pack("<I", 0),
    "no_messagepack": struct.pack("<I", 1) + b"\xc1",
    "no_map": struct.pack("<I", 1) + b"\x01",
    "earlier_version": encode("LIST", {}).replace(b"\xa1v\x02", b"\xa1v\x01"),
    "unknown_type": encode("LISTEN", {}),
    "own_type_as_user_event": encode("USER", {"properties": {}}),
    "wrong_type_of_field": encode("START_IO", {"request": "one"}),
    "forged_application": encode("NOTE", {"properties": {"application": "other"}}),
}


@pytest.mark.parametrize("frame", REFUSED.values(), ids=REFUSED.keys())
def test_refused_frame_closes_the_connection_and_says_why(daemon, frame):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(LIMIT_S)
        connection.connect(str(daemon.socket))
        connection.sendall(frame)
        answer = b""
        while chunk := connection.recv(4096):
            answer += chunk
    refusal = msgpack.unpackb(answer[4:])
    assert refusal["type"] == "REFUSED" and "frame" in refusal["text"]
    assert refusal["text"] in daemon.log.read_text()


def test_frame_that_arrives_byte_by_byte(daemon):
    with Bus.connect() as bus:
        for byte in encode("LIST", {}):
            bus._socket.sendall(bytes([byte]))
        assert bus.answer(LIMIT_S).type == "DAEMON"


def test_frame_that_never_ends_holds_nobody_up(daemon):
    with socket.socket(socket.AF_UNIX) as stuck, Bus.connect() as bus:
        stuck.connect(str(daemon.socket))
        stuck.sendall(struct.pack("<I", 60000) + b"\x85")
        hello(bus, "a")
        assert start_io(bus, 1) == "GRANT_IO"


@pytest.mark.parametrize("name", ["GRANT_IO", "WELCOME", "LOST", "TICK", "QUEUED_IO", "APPLICATION", "DAEMON"])
def test_members_may_not_say_what_the_controller_says(daemon, name):
    with Bus.connect() as bus:
        bus._socket.sendall(encode(name, {}))
        refusal = None
        while refusal is None:
            bus._receive(LIMIT_S)
            refusal = bus._answers.popleft() if bus._answers else None
        assert (refusal.type, refusal["text"]) == ("REFUSED", f"a member may not send {name}: the name is hocket's own")
        hello(bus, "a")  # the connection still works
