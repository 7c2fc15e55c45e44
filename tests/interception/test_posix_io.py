"""Reads and writes of ranks past MPI: libhocket sees, counts, and requests them like independent MPI-IO."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runtime_kit as kit
from stand_in_hocketd import StandIn

pytestmark = pytest.mark.timeout(180)

# These functions close a descriptor and move no data.
CLOSING = {"close", "dup2", "dup3", "close_range", "fclose", "freopen", "freopen64", "pclose", "closefrom", "fcloseall"}
# These depend on what I/O servers hold of a file. They are not counted: tests/io_servers tests them.
SHOWING = {
    *("lseek", "ftruncate", "truncate", "fstat", "stat", "lstat", "fstatat", "statx", "open", "openat", "creat"),
    *("lseek64", "ftruncate64", "truncate64", "fstat64", "stat64", "lstat64", "fstatat64", "open64", "openat64"),
    *("creat64", "__open_2", "__open64_2", "__xstat", "__lxstat", "__fxstat", "__xstat64", "__lxstat64", "__fxstat64"),
    *("mmap", "mmap64", "splice", "aio_read", "aio_read64", "aio_write", "aio_write64", "lio_listio", "lio_listio64"),
    *("fopen", "fopen64", "fseek", "fseeko", "fseeko64", "fflush", "fgets", "fgets_unlocked", "getline", "getdelim"),
    *("__getdelim", "fputs", "fputs_unlocked", "fprintf", "vfprintf", "__fprintf_chk", "__vfprintf_chk"),
    *("__isoc99_fscanf", "__isoc99_vfscanf"),
}

LARGE = 2 << 20  # large enough for a request
SMALL = 1000


@pytest.fixture
def posix_io(mpi: kit.Mpi, built: Callable[..., Path]) -> Path:
    return built("posix_io.c")


def wrapped(mpi: kit.Mpi) -> set[str]:
    out = subprocess.run(
        ["nm", "-D", "--defined-only", mpi.libhocket], capture_output=True, text=True, check=True
    ).stdout
    return {name for name in re.findall(r" T (\w+)", out) if not re.match(r"P?MPI_|hocket_", name)}


def test_counts_every_function_once_and_its_bytes_exactly(
    mpi: kit.Mpi, posix_io: Path, controller: StandIn, tmp_path: Path
) -> None:
    names = wrapped(mpi) - CLOSING - SHOWING
    assert {"write", "pwrite64", "__read_chk", "fwrite", "fsync", "copy_file_range"} <= names
    syncs = {"fsync", "fdatasync"}
    # First a write, so that the reads find data.
    actions = ["write=3000000", *(f"{name}={2_000_000 + 8 * i}" for i, name in enumerate(sorted(names - syncs)))]
    run = mpi.run([posix_io, tmp_path / "f", *actions, *syncs], kit.settings(controller.socket))
    assert (run.code, run.warnings) == (0, []), run.err
    calls, read, written = map(int, re.fullmatch(r"calls (\d+) read (\d+) written (\d+)\n", run.out).groups())
    assert calls == len(actions)
    bye = controller.bye()
    assert bye["io_calls"] == 2 * (calls + len(syncs))
    assert (bye["bytes_read"], bye["bytes_written"]) == (2 * read, 2 * written)
    assert bye["io_ns"] > 0


def test_asks_once_a_burst_and_says_what_for(mpi: kit.Mpi, posix_io: Path, controller: StandIn, tmp_path: Path) -> None:
    run = mpi.run(
        [posix_io, tmp_path / "f", *[f"write={LARGE}"] * 3, f"write={SMALL}", "pause=4", f"pread={LARGE}", "fsync"],
        kit.settings(controller.socket, phase_gap_s=1.5),
    )
    assert (run.code, run.err) == (0, "")
    for member in (1, 2):
        started = [e for e in controller.events("START_IO") if e["member"] == member]
        assert [(e["operation"], e["bytes"]) for e in started] == [("write", LARGE), ("pread", LARGE)]
        assert re.fullmatch(rf"{tmp_path}/f\.[01]", started[0]["file"])
        assert re.fullmatch(r"dev:\d+:\d+@[0-9a-f]{16}", started[0]["target"])
        finished = [e for e in controller.events("FINISH_IO") if e["member"] == member]
        assert [e["bytes"] for e in finished] == [3 * LARGE + SMALL, LARGE]
    phases = [e for e in controller.events("IO_PHASE") if e["member"] == controller.first()]
    assert [(e["operations"], e["bytes_written"], e["bytes_read"]) for e in phases] == [
        (4, 3 * LARGE + SMALL, 0),
        (2, 0, LARGE),
    ]


def test_asks_for_nothing_small_until_it_adds_up(
    mpi: kit.Mpi, posix_io: Path, controller: StandIn, tmp_path: Path
) -> None:
    settings = kit.settings(controller.socket)
    in_one_phase = kit.settings(controller.socket, phase_gap_s=5)
    slowly = ["loop=500:write=1000", "pause=0.3"] * 3
    run = mpi.run([posix_io, tmp_path / "f", *slowly], settings, ranks=1)
    assert (run.code, run.err, controller.events("START_IO")) == (0, "", [])
    run = mpi.run([posix_io, tmp_path / "f", f"loop=1000:write={SMALL}", "fsync"], in_one_phase, ranks=1)
    assert (run.code, run.err) == (0, "")
    assert controller.events("START_IO", "IO_PHASE") == []
    assert controller.events("BYE")[-1]["bytes_written"] == 1000 * SMALL, "counted all the same"
    run = mpi.run([posix_io, tmp_path / "f", f"loop=1100:write={SMALL}"], in_one_phase, ranks=1)
    assert (run.code, run.err) == (0, "")
    assert controller.only("START_IO")["operation"] == "write"


def test_blocks_of_streams_add_up(mpi: kit.Mpi, posix_io: Path, controller: StandIn, tmp_path: Path) -> None:
    run = mpi.run([posix_io, tmp_path / "f", "loop=20000:fwrite=8"], kit.settings(controller.socket), ranks=1)
    assert (run.code, run.err) == (0, "")
    bye = controller.bye()
    assert (bye["io_calls"], bye["bytes_written"]) == (2, 2 << 16), "what is left is less than is looked at"


def test_counts_what_threads_write(mpi: kit.Mpi, posix_io: Path, controller: StandIn, tmp_path: Path) -> None:
    run = mpi.run([posix_io, tmp_path / "f", "threads=10000"], kit.settings(controller.socket), ranks=1)
    assert (run.code, run.err) == (0, "")
    bye = controller.bye()
    assert (bye["io_calls"], bye["bytes_written"]) == (4000, 4000 * 10000)


def test_a_sync_is_about_what_was_written_before(
    mpi: kit.Mpi, posix_io: Path, controller: StandIn, tmp_path: Path
) -> None:
    run = mpi.run(
        [posix_io, tmp_path / "f", f"write={LARGE}", "pause=3", "fsync"], kit.settings(controller.socket), ranks=1
    )
    assert (run.code, run.err) == (0, "")
    assert [e["operation"] for e in controller.events("START_IO")] == ["write", "fsync"]


def test_pauses_between_two_accesses(mpi: kit.Mpi, posix_io: Path, controller: StandIn, tmp_path: Path) -> None:
    up, go = tmp_path / "up", tmp_path / "go"
    process = mpi.start(
        [posix_io, tmp_path / "f", f"write={LARGE}", f"mark={up}", f"await={go}", f"write={LARGE}"],
        kit.settings(controller.socket, phase_gap_s=30),
        ranks=1,
    )
    (start,) = controller.await_events("START_IO", 1)
    kit.wait_until(up.exists, 20, "the first access has ended")
    controller.pause(start)
    controller.await_events("PAUSED_IO", 1)
    go.touch()
    time.sleep(0.2)  # an absence cannot be awaited
    assert (tmp_path / "f.0").stat().st_size == LARGE
    controller.grant(start)
    run = kit.finish(process)
    assert (run.code, run.err) == (0, "")
    assert (tmp_path / "f.0").stat().st_size == 2 * LARGE


def test_a_descriptor_that_is_another_files_by_now_is_known(
    mpi: kit.Mpi, posix_io: Path, controller: StandIn, tmp_path: Path
) -> None:
    assert wrapped(mpi) >= CLOSING
    closing = sorted(CLOSING - {"closefrom", "fcloseall"})  # those would close too much
    actions = [f"reused={name}" for name in closing]
    run = mpi.run([posix_io, tmp_path / "f", *actions], kit.settings(controller.socket), ranks=1)
    assert (run.code, run.err) == (0, "")
    assert controller.bye()["bytes_written"] == len(closing) * 1000, "of each its write to the file"


def test_leaves_errors_as_they_are(mpi: kit.Mpi, posix_io: Path, controller: StandIn, tmp_path: Path) -> None:
    run = mpi.run([posix_io, tmp_path / "f", "errno"], kit.settings(controller.socket))
    assert (run.code, run.err) == (0, "")


def test_a_child_is_left_alone(mpi: kit.Mpi, posix_io: Path, controller: StandIn, tmp_path: Path) -> None:
    run = mpi.run([posix_io, tmp_path / "f", f"fork={LARGE}"], kit.settings(controller.socket), ranks=1)
    assert (run.code, run.err) == (0, "")
    assert (tmp_path / "f.0.copy").stat().st_size == LARGE
    assert controller.events("START_IO") == []


@pytest.mark.parametrize("silent", [False, True])
def test_a_thread_can_be_cancelled_in_its_write(
    mpi: kit.Mpi, posix_io: Path, hocket_dir: Path, tmp_path: Path, silent: bool
) -> None:
    controller = StandIn(hocket_dir / "s", grants=not silent)
    run = mpi.run(
        [posix_io, tmp_path / "f", f"cancel={LARGE}", f"write={LARGE}"],
        kit.settings(controller.socket, answer_s=0.5),
        ranks=1,
    )
    events = controller.events("START_IO", "FINISH_IO")
    controller.kill()
    assert run.code == 0, run.err
    assert (tmp_path / "f.0").stat().st_size == LARGE
    started = [e["request"] for e in events if e["type"] == "START_IO"]
    assert started and sorted(started) == sorted(e["request"] for e in events if e["type"] == "FINISH_IO")


def test_goes_on_where_the_controller_is_silent(mpi: kit.Mpi, posix_io: Path, hocket_dir: Path, tmp_path: Path) -> None:
    controller = StandIn(hocket_dir / "s", grants=False)
    run = mpi.run([posix_io, tmp_path / "f", *[f"write={LARGE}"] * 5], kit.settings(controller.socket, answer_s=0.5))
    controller.kill()
    assert (run.code, len(run.warnings)) == (0, 1), run.err
    assert (tmp_path / "f.1").stat().st_size == 5 * LARGE


def test_can_be_switched_off(mpi: kit.Mpi, posix_io: Path, controller: StandIn, tmp_path: Path) -> None:
    run = mpi.run([posix_io, tmp_path / "f", f"write={LARGE}"], kit.settings(controller.socket, posix=0))
    assert (run.code, run.err) == (0, "")
    assert controller.events("START_IO") == []
    assert controller.bye()["bytes_written"] == 0


@pytest.mark.parametrize("io", ["mpi", "hocket"])
def test_what_mpi_io_writes_is_not_seen_twice(
    mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path, io: str
) -> None:
    run = mpi.run(
        [built("script.c"), f"open={tmp_path / 'f'}", *[f"write={LARGE}"] * 3, "sync", "close"],
        kit.settings(controller.socket, io=io),
    )
    assert (run.code, run.err) == (0, "")
    assert {e["operation"] for e in controller.events("START_IO")} == {"MPI_File_write_at_all", "MPI_File_sync"}
    bye = controller.bye()
    assert (bye["io_calls"], bye["bytes_written"]) == (2 * 4, 2 * 3 * LARGE)


def test_two_programs_take_turns(
    mpi: kit.Mpi, posix_io: Path, start_daemon: Callable[..., Any], tmp_path: Path
) -> None:
    daemon = start_daemon("--policy", "fcfs")

    def told() -> list[tuple[str, str]]:
        lines = daemon.trace.read_text().splitlines(keepends=True)[1:]
        events = [json.loads(line) for line in lines if line.endswith("\n")]  # the last line may be incomplete
        return [(e.get("in") or e.get("out"), e.get("application")) for e in events]

    up, go = tmp_path / "up", tmp_path / "go"
    first = mpi.start(
        [posix_io, tmp_path / "f", f"write={LARGE}", f"mark={up}", f"await={go}", f"loop=10:pwrite={LARGE}"],
        kit.settings(daemon.socket, name="first", job="first", phase_gap_s=30),
        ranks=1,
    )
    kit.wait_until(up.exists, 20, "the first one has its turn")
    second = mpi.start(
        [posix_io, tmp_path / "g", f"write={LARGE}"], kit.settings(daemon.socket, name="second", job="second"), ranks=1
    )
    kit.wait_until(lambda: ("QUEUED_IO", "second") in told(), 20, "the second one waits")
    go.touch()
    for process in (first, second):
        run = kit.finish(process)
        assert (run.code, run.err) == (0, "")
    assert daemon.stop() == 0
    holders: set[str] = set()
    for kind, application in told():
        if kind == "GRANT_IO":
            assert holders <= {application}, f"{application} was granted while {holders} had the target"
            holders.add(application)
        if kind == "FINISH_IO":
            holders.discard(application)
