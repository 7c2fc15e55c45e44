"""Servers that write behind while others access the same file: each byte has one server, or what is held is stored.

The random program of tests/collective_io/test_random_io.py shows the same for the accesses of one MPI application.
"""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest
import runtime_kit as kit
from checkout import REPO
from daemon_kit import Daemon
from hocket.bus import Bus
from put_get_kit import MIB, noise
from story import Story

pytestmark = pytest.mark.timeout(180)
BLOCK = MIB + 5  # of a rank: data of both ranks lie in several stripes, which belong to both servers
SLOW = ("--inject", "delay=50ms")  # for each request: the server holds data for so long


@pytest.fixture
def settings(daemon: Daemon) -> dict[str, str]:
    return kit.settings(daemon.socket) | {"HOCKET_IO": "hocket"}


def one_after_the_other(programs: list, model: bytearray, rounds: int, seed: int) -> None:
    """Let the programs put and get in turn; what they get must be what was put last, by whichever of them."""
    draw = random.Random(seed)
    for number in range(rounds):
        one = draw.choice(programs)
        first, length = draw.randrange(3 * MIB), draw.randrange(1, MIB)
        if draw.random() < 0.6:
            data = noise(length, seed * 1000 + number)
            one.put(first, data)
            if len(model) < first + length:
                model.extend(bytes(first + length - len(model)))
            model[first : first + length] = data
        else:
            assert one.get("get", first, length) == model[first : first + length], f"round {number}"


@pytest.mark.parametrize("seed", range(3))
def test_processes_that_opened_a_file_under_different_maps_see_what_the_others_put(
    program, start_server, served_directory: Path, seed: int
) -> None:
    start_server("s2", "--write-behind", *SLOW)
    model = bytearray()
    programs = [program()]
    programs[0].must("open", served_directory / "f", "rwc")
    one_after_the_other(programs, model, 4, 10 * seed)
    start_server("s1", "--write-behind")
    programs.append(program())
    programs[1].must("open", served_directory / "f", "rw")
    one_after_the_other(programs, model, 20, 10 * seed + 1)
    with Bus.connect() as bus:
        bus.send("SET_SERVER", server="s2", action="drain")
    programs.append(program())
    programs[2].must("open", served_directory / "f", "rw")
    one_after_the_other(programs, model, 20, 10 * seed + 2)
    for one in programs:
        assert one.must("size") == len(model)
        one.must("close")
    assert (served_directory / "f").read_bytes() == model


def test_who_opened_a_file_before_servers_came_sees_what_others_put(
    program, start_server, served_directory: Path
) -> None:
    """That process uses no server, and nobody tells it of one."""
    path, model = served_directory / "f", bytearray(noise(MIB, 1))
    path.write_bytes(model)
    early = program()
    early.must("open", path, "rw")
    start_server("s1", "--write-behind", *SLOW)
    late = program()
    late.must("open", path, "rw")
    for number in range(5):
        data = noise(1000, number)
        late.put(number * 500, data)
        model[number * 500 : number * 500 + 1000] = data
        assert early.get("get", 0, MIB) == model, number
        late.put(0, noise(2000, number))
        early.put(0, bytes(model[:2000]))  # the server has an older version of these bytes
        assert early.get("get", 0, MIB) == model, number
    late.put(MIB, b"more")
    assert early.must("size") == MIB + 4
    late.must("close"), early.must("close")
    assert path.read_bytes() == model + b"more"


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_nobody_waits_for_a_server_that_ended_with_what_it_held(
    program, start_server, served_directory: Path, how: str
) -> None:
    """hocketd kills a server that is stopped. What it held is lost, which the process that put it is told."""
    path = served_directory / "f"
    path.write_bytes(bytes(MIB))
    early = program()
    early.must("open", path, "rw")
    server = start_server("s1", "--write-behind", "--inject", "delay=20s")
    late = program()
    late.must("open", path, "rw")
    late.put(0, noise(1000, 1))
    server.process.send_signal(signal.SIGSTOP if how == "stopped" else signal.SIGKILL)
    began = time.monotonic()
    assert early.get("get", 0, MIB) == bytes(MIB)
    assert time.monotonic() - began < 19
    early.put(0, b"newer")
    early.must("close")
    assert path.read_bytes()[:5] == b"newer"


def test_what_ranks_wrote_is_got_and_what_is_put_is_not_overwritten(
    mpi: kit.Mpi, built, program, start_server, settings, served_directory: Path, tmp_path: Path
) -> None:
    """Collective accesses and put and get have the same stripes."""
    start_server("s1", "--write-behind"), start_server("s2", "--write-behind", *SLOW)
    path, marks = served_directory / "f", [tmp_path / "written", tmp_path / "go"]
    script = [f"open={path}", f"write={BLOCK}", f"mark={marks[0]}", f"await={marks[1]}", "close"]
    job = mpi.start([built("script.c"), *script], settings)
    kit.wait_until(marks[0].exists, 30, "the write")
    model = bytearray(b"A" * BLOCK + b"B" * BLOCK)
    one = program()
    one.must("open", path, "rw")
    assert one.get("get", 0, 3 * MIB) == model
    for offset in (0, MIB - 100, 2 * MIB - 7):
        data = noise(4321, offset)
        one.put(offset, data)
        model[offset : offset + len(data)] = data
    marks[1].touch()
    assert kit.finish(job).code == 0
    one.must("close")
    assert path.read_bytes() == model


def test_an_application_with_servers_of_its_own_and_others_see_the_same_bytes(
    mpi: kit.Mpi, built, program, start_server, daemon: Daemon, story: Story, settings, served_directory: Path, tmp_path
) -> None:
    """A job writes by the map of all, then by its own, then by that of all again. Another process puts and gets."""
    start_server("s1", "--write-behind"), start_server("s2", "--write-behind", *SLOW)
    path = served_directory / "f"
    marks = [tmp_path / f"mark{i}" for i in range(6)]
    script: list[object] = [built("script.c"), f"open={path}"]
    for written, go in zip(marks[::2], marks[1::2], strict=True):
        script += [f"write={BLOCK}", f"mark={written}", f"await={go}"]
    job = mpi.start([*script, "close"], settings)
    model, one = bytearray(), program()
    for turn, servers in enumerate(("s1", "all", "all")):
        kit.wait_until(marks[2 * turn].exists, 30, "the write")
        model[2 * turn * BLOCK : 2 * (turn + 1) * BLOCK] = b"A" * BLOCK + b"B" * BLOCK
        if turn == 0:
            one.must("open", path, "rw")
        assert one.get("get", 0, len(model) + MIB) == model, f"after write {turn}"
        for offset in (0, MIB - 100, 2 * MIB - 7):
            data = noise(4321, offset + turn)
            one.put(offset, data)
            model[offset : offset + len(data)] = data
        since = len(story.read())
        with Bus.connect() as bus:
            job_name = next(row["application"] for row in bus.list().applications if row["mpi"] == mpi.name)
            bus.send("SET_SERVER", server=servers, action="assign", for_application=job_name)
            if turn == 0:
                story.awaits("SERVER_MAP", since=since, application=job_name)
                # A server reports 50 ms after work at the latest.
                kit.wait_until(lambda: not any(row["held_bytes"] for row in bus.list().servers), 5, "they have stored")
        marks[2 * turn + 1].touch()
    assert kit.finish(job).code == 0
    one.must("close")
    assert path.read_bytes() == model
    own = [line for line in story.all("SERVER_MAP") if line.get("application") and " slow:" in line["text"]]
    assert own and all(line["application"] == job_name for line in own)
    assert story.all("SERVER_MAP", write_through=True), "servers were told"


READS = ["pread", "readv", "fread", "fstat", "stat", "lseek", "copy", "signal", "second", "second_off"]
MORE_READS = ["fgets", "mmap", "aio", "splice", "lstat", "statx", "iread", "cat", "stdin"]
SHORTENS = ["ftruncate", "truncate", "open", "fopen"]
WRITES = ["pwrite", "second_write"]
PART = 5000  # bytes that tests/programs/sees_held.c overwrites at the start of each rank's block
VERY_SLOW = ("--write-behind", "--inject", "delay=150ms")


@pytest.mark.parametrize("how", READS + SHORTENS + WRITES)
def test_a_program_sees_what_servers_hold_of_its_files(
    mpi: kit.Mpi, built, start_server, settings, served_directory: Path, prefix: Path, how: str
) -> None:
    """Without a sync: POSIX calls and another MPI_File_open, in the rank that wrote and in the other one."""
    sees_held(mpi, built, start_server, settings, served_directory, prefix, how)


@pytest.mark.parametrize("io", ["hocket", "mpi"])
@pytest.mark.parametrize("how", READS + SHORTENS + WRITES)
def test_a_program_sees_what_servers_hold_of_its_puts(
    mpi: kit.Mpi, built, start_server, settings, served_directory: Path, prefix: Path, how: str, io: str
) -> None:
    sees_held(mpi, built, start_server, settings | {"HOCKET_IO": io}, served_directory, prefix, how, "put")


@pytest.mark.parametrize("who", ["write_alone", "put_alone"])
@pytest.mark.parametrize("how", READS + MORE_READS + SHORTENS + WRITES + ["fprintf"])
def test_who_did_not_write_sees_what_servers_hold(
    mpi: kit.Mpi, built, start_server, settings, served_directory: Path, prefix: Path, how: str, who: str
) -> None:
    """Rank 1 has not opened the file before, and takes no part in writing it."""
    sees_held(mpi, built, start_server, settings, served_directory, prefix, how, who)


@pytest.mark.parametrize("seed", range(4))
def test_whoever_writes_in_any_way_is_seen_by_anyone_in_any_way(
    mpi: kit.Mpi, built, start_server, settings, served_directory: Path, prefix: Path, seed: int
) -> None:
    """Ranks write and read one file at random: puts, collective and independent accesses, POSIX, streams, mmap."""
    start_server("s1", "--write-behind"), start_server("s2", "--write-behind", "--inject", "delay=3ms")
    flags = [f"-I{REPO}/include", f"{prefix}/lib/libhocket.so", f"-Wl,-rpath,{prefix}/lib"]
    program = built("any_access.c", *flags)
    done = kit.finish(mpi.start([program, seed, 150, served_directory / "f"], settings, ranks=3))
    assert (done.code, done.out) == (0, ""), done.err


@pytest.mark.parametrize("how", ["pread", "pwrite", "cat"])
def test_so_it_does_where_posix_calls_are_left_alone(
    mpi: kit.Mpi, built, start_server, settings, served_directory: Path, prefix: Path, how: str
) -> None:
    settings = settings | {"HOCKET_POSIX": "0"}
    sees_held(mpi, built, start_server, settings, served_directory, prefix, how, "write_alone")


def sees_held(mpi, built, start_server, settings, served_directory: Path, prefix: Path, how: str, *who: str) -> None:
    start_server("s1", *VERY_SLOW), start_server("s2", *VERY_SLOW)
    path = served_directory / "f"
    flags = [f"-I{REPO}/include", f"{prefix}/lib/libhocket.so", f"-Wl,-rpath,{prefix}/lib"]
    done = kit.finish(mpi.start([built("sees_held.c", *flags), how, path, *who], settings))
    assert done.code == 0, done.out
    model = bytearray(b"A" * BLOCK + b"B" * BLOCK)
    if how in [*WRITES, "fprintf"]:
        model[:PART] = b"1" * PART
        if not any("alone" in one for one in who):
            model[BLOCK : BLOCK + PART] = b"0" * PART
    assert path.read_bytes() == (b"" if how in SHORTENS else model)
