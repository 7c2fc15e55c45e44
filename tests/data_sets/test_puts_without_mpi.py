"""Put and get of programs without MPI are coordinated, if a hocketd runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from daemon_kit import Daemon
from hocket.bus import Bus
from hocket.mounts import target_of
from put_get_kit import noise

pytestmark = pytest.mark.timeout(120)
MIB = 1 << 20


@pytest.mark.parametrize("servers", [0, 1])
@pytest.mark.parametrize("held", [False, True], ids=["coordinates", "does not, but the operator holds the target"])
def test_a_program_without_mpi_waits_for_its_turn(
    daemon: Daemon, story, program, start_server, served_directory: Path, servers: int, held: bool
) -> None:
    for number in range(servers):
        start_server(f"s{number}")
    target = target_of(served_directory)
    with Bus.connect() as other:
        other.send("SET_POLICY", policy="fcfs", **({"target": target} if held else {}))
        other.send("HELLO", job="other", program="/x", mpi="mpich", version="t", pid=os.getpid(), processes=1)
        assert other.answer(20).type == "WELCOME"
        other.send("START_IO", request=1, target=target, operation="write", bytes=MIB)
        while other.answer(20).type != "GRANT_IO":
            pass
        one = program(HOCKET_NAME="putter", **({"HOCKET_COORDINATE": "0"} if held else {}))
        one.must("open", served_directory / "f", "wc")
        one.put(0, b"log")  # too little to ask
        data = noise(2 * MIB)
        (one.scratch / "in").write_bytes(data)
        one.tell("put", 3, one.scratch / "in")
        story.awaits("QUEUED_IO", behind="x")
        asked = story.all("START_IO", operation="hocket_file_put")
        assert [(a["application"], a["target"], a["bytes"]) for a in asked] == [("putter", target, 2 * MIB)]
        assert (served_directory / "f").stat().st_size <= 3, "the target is another application's"
        other.send("FINISH_IO", request=1, phase_over=True)
        assert one.answer()[0] == 0
        one.must("close")
        assert story.awaits("FINISH_IO", application="putter")["bytes"] == 2 * MIB
    assert (served_directory / "f").read_bytes() == b"log" + data


def test_a_program_without_mpi_goes_on_without_an_answer(controller, program, served_directory: Path) -> None:
    """hocketd stops answering: the put takes HOCKET_ANSWER_S longer, once."""
    one = program(HOCKET_SOCKET=str(controller.socket), HOCKET_ANSWER_S="0.3")
    one.must("open", served_directory / "f", "wc")
    controller.freeze()
    for i in range(3):
        one.put(i * 2 * MIB, noise(2 * MIB))
    controller.thaw()
    one.must("close")
    assert len(controller.events("START_IO")) == 0
    assert (served_directory / "f").stat().st_size == 6 * MIB


def test_a_program_without_mpi_that_does_not_coordinate_asks_for_nothing(
    controller, program, served_directory: Path
) -> None:
    one = program(HOCKET_SOCKET=str(controller.socket), HOCKET_COORDINATE="0")
    one.must("open", served_directory / "f", "wc")
    one.put(0, noise(2 * MIB))
    one.must("close")
    assert controller.events("START_IO") == []
