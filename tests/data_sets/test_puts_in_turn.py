"""Put and get through I/O servers are coordinated like other accesses of an application."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from checkout import REPO
from daemon_kit import Daemon
from hocket.bus import Bus
from hocket.mounts import target_of

pytestmark = pytest.mark.timeout(120)
MIB = 1 << 20


@pytest.fixture
def program(mpi: kit.Mpi, built: Callable[..., Path], prefix: Path) -> Path:
    return built("puts_in_turn.c", f"-I{REPO}/include", f"{prefix}/lib/libhocket.so", f"-Wl,-rpath,{prefix}/lib")


@pytest.mark.parametrize("behind", [False, True])
def test_a_put_waits_until_another_application_has_finished(
    daemon: Daemon, story, mpi: kit.Mpi, program: Path, start_server, served_directory: Path, behind: bool
) -> None:
    start_server("s1", *(["--write-behind"] if behind else []))
    target = target_of(served_directory)
    with Bus.connect() as other:
        other.send("SET_POLICY", policy="fcfs")
        other.send("HELLO", job="other", program="/x", mpi="mpich", version="t", pid=os.getpid(), processes=1)
        assert other.answer(20).type == "WELCOME"
        other.send("START_IO", request=1, target=target, operation="write", bytes=MIB)
        while other.answer(20).type != "GRANT_IO":
            pass
        job = mpi.start([program, served_directory / "f", 0], kit.settings(daemon.socket), ranks=2)
        asked = [story.awaits("START_IO", operation="hocket_file_put", target=target) for _ in range(2)]
        assert all(one["file"] == str(served_directory / "f") and one["bytes"] == 4 * MIB for one in asked)
        story.awaits("QUEUED_IO", since=asked[0]["at"])
        assert (served_directory / "f").stat().st_size == 0, "the target is another application's"
        other.send("FINISH_IO", request=1, phase_over=True)
        done = kit.finish(job)
    assert (done.code, done.err) == (0, "")
    assert (served_directory / "f").read_bytes() == b"a" * 4 * MIB + b"b" * 4 * MIB
    story.awaits("BYE")
    phases = [one for one in story.all("IO_PHASE") if one["bytes_written"] or one["bytes_read"]]
    assert sum(one["bytes_written"] for one in phases) == 8 * MIB, phases
    assert sum(one["bytes_read"] for one in phases) == 8 * MIB, phases


def test_storing_what_was_put_is_an_access_of_its_own(
    daemon: Daemon, story, mpi: kit.Mpi, program: Path, start_server, served_directory: Path
) -> None:
    start_server("s1", "--write-behind")
    settings = kit.settings(daemon.socket, phase_gap_s=0.1)
    done = mpi.run([program, served_directory / "f", 500], settings, ranks=1)
    assert (done.code, done.err) == (0, "")
    story.awaits("BYE")
    asked = [one["operation"] for one in story.all("START_IO") if one["operation"] != "write-back"]  # of the server
    assert asked[:2] == ["hocket_file_put", "hocket_file_flush"], asked
