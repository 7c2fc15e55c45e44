"""Collective accesses that hocket does itself (HOCKET_IO=hocket, src/libhocket/collective), on real MPIs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import runtime_kit as kit
from stand_in_hocketd import StandIn
from story import Story

SERVED = {"HOCKET_IO": "hocket"}


@pytest.mark.parametrize("mpi", kit.WITH_TWO_NODES, indirect=True)
@pytest.mark.parametrize("ranks", [1, 3, 5])
def test_random_accesses_leave_the_bytes_of_a_model(mpi: kit.Mpi, built, tmp_path: Path, ranks: int) -> None:
    """Check contents, status, and file pointer of random accesses.

    They cover random views and etypes, offsets and pointers, holes, ranks without data, and places beyond 4 GiB.
    Independent and atomic accesses of the MPI come between them. `strict` adds cases in which MPI libraries differ, so
    that a run without hocket's accesses fails.
    """
    program = built("random_access.c")
    run = mpi.run([program, tmp_path / "f", 2026 + ranks, 40, "strict"], SERVED, ranks=ranks)
    assert (run.code, run.out, run.err) == (0, "40 cases\n", ""), f"{mpi.name}, {ranks} ranks: {run.out}{run.err}"


@pytest.mark.parametrize("mpi", kit.WITH_TWO_NODES, indirect=True)
def test_served_accesses_ask_and_are_counted_like_others(
    mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path
) -> None:
    """The program uses every I/O routine, as in interception/test_mpi_io.py."""
    run = mpi.run([built("io_routines.c"), tmp_path / "f"], kit.settings(controller.socket) | SERVED)
    assert (run.code, run.warnings) == (0, []), run.err
    calls, read, written = map(int, re.fullmatch(r"calls (\d+) read (\d+) written (\d+)\n", run.out).groups())
    bye = controller.bye()
    assert (bye["io_calls"], bye["bytes_read"], bye["bytes_written"]) == (2 * calls, 2 * read, 2 * written)
    started, finished = controller.events("START_IO"), controller.events("FINISH_IO")
    assert {"MPI_File_write_at_all", "MPI_File_read_all", "MPI_File_sync"} <= {e["operation"] for e in started}
    requests = sorted((e["member"], e["request"]) for e in started)
    assert sorted((e["member"], e["request"]) for e in finished) == requests


def test_a_hint_that_is_set_later_steers_what_comes_after(mpi: kit.Mpi, built, tmp_path: Path) -> None:
    """A tool behind libhocket sees only the accesses that the MPI library does."""
    tool = mpi.compile("tool.c", tmp_path / "tool.so", "-shared", "-fPIC", "-DTOOL_NEXT")
    script = ["write=10", "collective=off", "write=10", "write=10", "collective=list", "write=10", "close"]
    run = mpi.run(
        [built("script.c"), f"open={tmp_path / 'f'}", *script],
        SERVED | {"TOOL_LOG": str(tmp_path / "log")},
        preload=f"{mpi.libhocket}:{tool}",
    )
    assert (run.code, run.err) == (0, "")
    assert [log.read_text() for log in tmp_path.glob("log.*")] == ["tool init 1 allreduce 0 write 2\n"] * 2
    assert (tmp_path / "f").read_bytes() == (b"A" * 10 + b"B" * 10) * 4


def test_a_slow_aggregator_loses_its_file_domain(mpi: kit.Mpi, built, tmp_path: Path, timed_storage: Path) -> None:
    """Each access has four rounds in each of four domains, until rank 2 has been slow in three of them."""
    times, rounds = 20, 4
    settings = {"HOCKET_IO": "hocket", "STORAGE_LOG": str(tmp_path / "log")}
    settings |= {"STORAGE_SLOW_RANK": "2", "STORAGE_MS": "50"}
    hints = ("cb_nodes=4", f"hocket_buffer_size={64 << 10}")
    program = [built("rewrites.c"), tmp_path / "timed", times, *hints]
    run = mpi.run(program, settings, ranks=4, preload=f"{mpi.libhocket}:{timed_storage}")
    assert (run.code, run.out) == (0, "right\n"), f"{mpi.name}: {run.out}{run.err}"
    logs = [log.read_text().splitlines() for log in tmp_path.glob("log.*")]
    written = [sum(line.startswith("write ") for line in log) for log in logs]
    of_slow_rank = next(count for log, count in zip(logs, written, strict=True) if log[0].startswith("begun"))
    assert len(written) == 4
    assert 3 * rounds <= of_slow_rank <= times * rounds / 2, written
    assert sum(written) - of_slow_rank > 3 * times * rounds, f"{written}: the others have its domain"


def test_one_of_two_slow_aggregators_is_told_and_explained(
    mpi: kit.Mpi, built, story: Story, hocket_dir: Path, tmp_path: Path, timed_storage: Path
) -> None:
    """By default, two of the four ranks of a node aggregate."""
    settings = {"HOCKET_IO": "hocket", "STORAGE_LOG": str(tmp_path / "log")}
    settings |= {"STORAGE_SLOW_RANK": "0", "STORAGE_MS": "20"} | kit.settings(hocket_dir / "hocketd.sock")
    program = [built("rewrites.c"), tmp_path / "timed", 20, f"hocket_buffer_size={64 << 10}"]
    run = mpi.run(program, settings, ranks=4, preload=f"{mpi.libhocket}:{timed_storage}")
    assert (run.code, run.out) == (0, "right\n"), f"{mpi.name}: {run.out}{run.err}"
    told = story.awaits("SLOW_AGGREGATOR")
    assert (told["rank"], Path(told["file"]).name) == (0, "timed")
    assert told["service_ns"] > 5 * told["peers_ns"] > 0
    story.awaits("BYE")
    writers = [log for log in tmp_path.glob("log.*") if "write " in log.read_text()]
    assert len(writers) == 2, "two ranks aggregate"
    done = subprocess.run([sys.executable, "-m", "hocket.cli", "explain"], capture_output=True, text=True, timeout=60)
    assert "rank 0" in done.stdout
    assert "timed" in done.stdout
