"""Put and get with lists (include/hocket/file.h) and MPI datatypes (file_mpi.h), with I/O servers and without."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from hocket.bus import Bus
from put_get_kit import ARGUMENT, MIB, Program, noise
from story import Story

pytestmark = pytest.mark.timeout(180)
SEED = 24
LIMIT_S = 150

Extents = list[tuple[int, int]]


def named(one: Program, extents: Extents) -> Path:
    path = one.scratch / "list"
    path.write_text("".join(f"{offset} {bytes_}\n" for offset, bytes_ in extents))
    return path


def get_list(one: Program, extents: Extents, *operation: int) -> tuple[int, bytes]:
    """Return the number of bytes that were got, and the memory, which held dots before."""
    command = "get_list_all" if operation else "get_list"
    got = one.must(command, *operation, named(one, extents), one.scratch / "got")
    return got, (one.scratch / "got").read_bytes()


# ---- lists -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("servers", [0, 1, 3])
def test_extents_in_any_order_are_put_and_got(program, request, served_directory: Path, servers: int) -> None:
    for i in range(servers):
        request.getfixturevalue("start_server")(f"s{i}")
    one = program()
    one.must("open", served_directory / "f", "rwc")
    extents = [(3 * MIB, 100_000), (7, 3), (MIB - 5, 10), (10, 0), (0, 7), (2 * MIB, 5000)]
    data = noise(sum(bytes_ for _, bytes_ in extents))
    one.must("put_list", named(one, extents), one.file(data))
    expected = bytearray(3 * MIB + 100_000)
    at = 0
    for offset, bytes_ in extents:
        expected[offset : offset + bytes_] = data[at : at + bytes_]
        at += bytes_
    assert (served_directory / "f").read_bytes() == expected
    assert get_list(one, extents) == (len(data), data)
    one.must("close")


@pytest.mark.parametrize("servers", [0, 2])
def test_a_get_beyond_the_end_counts_what_is_there(program, request, served_directory: Path, servers: int) -> None:
    for i in range(servers):
        request.getfixturevalue("start_server")(f"s{i}")
    (served_directory / "f").write_bytes(b"0123456789")
    one = program()
    one.must("open", served_directory / "f", "rw")
    assert get_list(one, [(20, 4), (8, 4), (0, 2), (5 * MIB, 1)]) == (4, b"....89..01.")
    assert get_list(one, [(10, 3)]) == (0, b"...")
    assert get_list(one, []) == (0, b"")
    assert get_list(one, [(5, 0), (100, 0)]) == (0, b"")
    one.must("put_list", named(one, []), one.file(b""))
    one.must("put_list", named(one, [(50, 0)]), one.file(b""))
    assert one.must("size") == 10, "an access without data leaves the file as it is"


@pytest.mark.parametrize("servers", [0, 2])
@pytest.mark.parametrize(
    ("extents", "text"),
    [
        ([(0, 4), (-1, 4)], "'offsets[1]' is -1; it must be at least 0 and below 2^62"),
        ([(0, 4), (8, -4)], "'bytes[1]' is -4; it must be at least 0"),
        (
            [(40, 4), (8, 8), (15, 4)],
            "'offsets[2]' is 15, within the 8 bytes from 'offsets[1]', 8, on; extents of one call must not overlap",
        ),
        (
            [(0, 1), ((1 << 62) - 2, 2)],
            "'bytes[1]' is 2; with 'offsets[1]' is 4611686018427387902, the data would end beyond the longest file, "
            "2^62 bytes",
        ),
    ],
    ids=["negative offset", "negative length", "overlap", "too far"],
)
def test_what_is_no_list_does_nothing_and_is_told(
    program, request, served_directory: Path, servers: int, extents: Extents, text: str
) -> None:
    for i in range(servers):
        request.getfixturevalue("start_server")(f"s{i}")
    (served_directory / "f").write_bytes(b"before")
    one = program()
    one.must("open", served_directory / "f", "rw", "participants=1", "group=7")
    for operation, ending in (((), ""), ((1,), "_all")):
        said = one.call(f"put_list{ending}", *operation, named(one, extents), one.file(bytes(100)))
        assert said == (ARGUMENT, f"hocket_file_put_list{ending}: {text}")
    assert (served_directory / "f").read_bytes() == b"before"


def test_lists_of_processes_together_are_of_a_data_set_too(program, start_server, hocket_dir: Path) -> None:
    start_server("s1")
    options = ("application=writer", "participants=2", "group=1")
    writers = [program() for _ in range(2)]
    for one in writers:
        one.tell("open", "hocket:/field", "w", *options)
    assert [one.answer()[0] for one in writers] == [0, 0]
    data = noise(8000)
    for k, one in enumerate(writers):
        extents = [(offset, 10) for offset in range(10 * k, 8000, 20)]
        own = b"".join(data[offset : offset + 10] for offset, _ in extents)
        one.tell("put_list_all", 1, named(one, extents[::-1]), one.file(b"".join(reversed(chunks(own)))))
    assert [one.answer() for one in writers] == [(0, "0")] * 2
    for one in writers:
        one.tell("close")
    assert [one.answer()[0] for one in writers] == [0, 0]
    reader = program()
    reader.must("open", "hocket:/field", "r", "application=reader")
    assert reader.get("get", 0, 8000) == data
    assert get_list(reader, [(7995, 10), (0, 5)]) == (10, data[7995:] + b"." * 5 + data[:5])


def chunks(data: bytes) -> list[bytes]:
    return [data[at : at + 10] for at in range(0, len(data), 10)]


# ---- lists and datatypes, at random ----------------------------------------------------------------------------------


@pytest.fixture
def random_put(mpi: kit.Mpi, built_programs: tuple[Path, dict]) -> Path:
    program = built_programs[0] / f"random_put-{mpi.name}"
    if program.exists():
        return program
    return mpi.compile_with([kit.PROGRAMS / "random_put.cpp"], program, mpi.libhocket, f"-Wl,-rpath,{mpi.library}")


@pytest.mark.parametrize("way", ["alone", "through", "behind"])
def test_random_lists_and_datatypes_leave_the_bytes_of_a_model(
    mpi: kit.Mpi, random_put: Path, request, daemon: Daemon, served_directory: Path, way: str
) -> None:
    for name in ("s1", "s2") if way != "alone" else ():
        request.getfixturevalue("start_server")(name, *(["--write-behind"] if way == "behind" else []))
    run = mpi.run([random_put, served_directory / "f", SEED, 60], kit.settings(daemon.socket), ranks=3, limit_s=LIMIT_S)
    assert (run.code, run.out, run.err) == (0, "60 cases\n", ""), f"{mpi.name}: {run.out}{run.err}"


def test_so_they_do_while_servers_that_write_behind_come_and_go(
    mpi: kit.Mpi, random_put: Path, start_server, daemon: Daemon, served_directory: Path, tmp_path: Path
) -> None:
    for name in ("s1", "s2", "s3"):
        start_server(name, "--write-behind")
    end = tmp_path / "end"
    job = mpi.start([random_put, served_directory / "f", SEED + 1, 20, end], kit.settings(daemon.socket), ranks=3)
    with Bus.connect(daemon.socket) as bus:
        for server, action in itertools.product(("s1", "s2", "s3"), ("drain", "add")):
            bus.send("SET_SERVER", server=server, action=action)
            time.sleep(0.5)
    end.touch()
    run = kit.finish(job, LIMIT_S)
    assert (run.code, run.err) == (0, ""), f"{mpi.name}: {run.out}{run.err}"


def test_so_they_do_while_servers_die(
    mpi: kit.Mpi, random_put: Path, start_server, story: Story, daemon: Daemon, served_directory: Path, tmp_path: Path
) -> None:
    servers = [start_server(name) for name in ("s1", "s2")]
    end = tmp_path / "end"
    job = mpi.start([random_put, served_directory / "f", SEED + 2, 20, end], kit.settings(daemon.socket), ranks=3)
    for server in servers:
        one = story.awaits("SERVER", server=server.name)["member"]
        story.awaits("SERVER_LOAD", since=len(story.lines), member=one)
        server.kill()
    end.touch()
    run = kit.finish(job, LIMIT_S)
    assert (run.code, run.err) == (0, ""), f"{mpi.name}: {run.out}{run.err}"


def test_what_is_no_datatype_for_it_is_told(mpi: kit.Mpi, built, prefix: Path, served_directory: Path) -> None:
    headers = ("-isystem", prefix / "include")
    library = (f"-L{mpi.library}", f"-Wl,-rpath,{mpi.library}", f"-lhocket-{mpi.name}")
    run = mpi.run([built("typed_errors.c", *headers, *library), served_directory / "f"], ranks=1)
    assert (run.code, run.err) == (0, ""), run.out + run.err
    assert run.out.splitlines() == [
        "before MPI_Init: hocket_file_put_typed was called before MPI_Init or after MPI_Finalize",
        "offset: hocket_file_put_typed: 'offset' is -1; it must be at least 0 and below 2^62",
        "count: hocket_file_put_typed: 'count' is -2; it must be at least 0",
        "null type: hocket_file_put_typed: 'type' is MPI_DATATYPE_NULL, which describes no data",
        "null filetype: hocket_file_put_typed: 'filetype' is MPI_DATATYPE_NULL, which describes no data",
        "overlap: hocket_file_put_typed: 'filetype' is a filetype whose data overlap or go back in the file: "
        "only rising displacements can be tiled",
        "below 0: hocket_file_put_typed: 'filetype' is a filetype with data at -8: displacements begin at 0",
        "empty: hocket_file_put_typed: 'filetype' has no data, but 'count' items of 'type' have some",
        "too far: hocket_file_put_typed: the data would end beyond the longest file, 2^62 bytes",
        "no data: hocket_file_put_typed: 'data' is NULL",
        "operation: hocket_file_put_typed_all: 'operation' is 0; it must be a number above 0",
        "bottom: no error",
        "partial: no error",
        "0 bytes",
        "after MPI_Finalize: hocket_file_put_typed was called before MPI_Init or after MPI_Finalize",
    ]
    assert (served_directory / "f").read_bytes() == b"\1\0\0\0" + b"\0" * 4 + b"\2\0\0\0"
