"""Data sets that applications exchange by name: MPI programs, hocketd, and hocket-servers, all real."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from data_sets_kit import NAME, Coupled, await_line, kill, versions
from hocket.bus import Bus

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("readers_first", [False, True])
@pytest.mark.parametrize("names", ["mpich openmpi", "openmpi mpich", "mpich mpich"])
def test_a_reader_gets_what_a_writer_wrote_whoever_comes_first(
    coupled: Coupled, start_server, mpich, openmpi, names: str, readers_first: bool
) -> None:
    """Three ranks write rows in turn; two ranks read one contiguous part each."""
    start_server("s1"), start_server("s2")
    mpis = {"mpich": mpich, "openmpi": openmpi}
    writer_mpi, reader_mpi = (mpis[name] for name in names.split())
    jobs = [("write", writer_mpi, 3), ("read", reader_mpi, 2)]
    started = [coupled.start(mpi, what, 3, ranks=ranks) for what, mpi, ranks in jobs[:: -1 if readers_first else 1]]
    for run in map(kit.finish, started):
        assert (run.code, run.out, run.err) == (0, versions(1, 2, 3), ""), f"{names}: {run.out}{run.err}"


def test_a_writer_is_two_versions_ahead_at_most(coupled: Coupled, start_server, mpich) -> None:
    server = start_server("s1")
    run = coupled.run(mpich, "write", 4, "--hint", "hocket_wait=1")
    assert run.code == 0, run.err
    assert run.out == versions(1, 2) + "MPI_ERR_NO_SPACE\n" * 2
    assert "there was no room beside unread versions within 1 s" in run.err
    assert server.client().state()["data_sets"] == "2"
    run = coupled.run(mpich, "read", 2, ranks=3)
    assert (run.code, run.out) == (0, versions(1, 2)), run.err
    assert server.client().state()["exchange_bytes"] == "0"


def test_each_of_several_readers_gets_every_version(coupled: Coupled, start_server, mpich, openmpi) -> None:
    start_server("s1")
    jobs = [
        coupled.start(mpich, "write", 4, "--hint", "hocket_readers=2"),
        coupled.start(mpich, "read", 4, ranks=3),
        coupled.start(openmpi, "read", 4, ranks=1),
    ]
    for run in map(kit.finish, jobs):
        assert (run.code, run.out) == (0, versions(1, 2, 3, 4)), run.err


def test_any_number_may_read_the_newest(coupled: Coupled, start_server, mpich) -> None:
    start_server("s1")
    run = coupled.run(mpich, "write", 5, "--hint", "hocket_readers=0")
    assert (run.code, run.out) == (0, versions(1, 2, 3, 4, 5)), run.err
    for _ in range(3):
        run = coupled.run(mpich, "read")
        assert (run.code, run.out) == (0, versions(5)), run.err


def test_what_a_dead_writer_left_is_never_seen(coupled: Coupled, start_server, mpich, tmp_path: Path) -> None:
    """The reader gets what the next writer writes."""
    server = start_server("s1")
    hold = tmp_path / "hold"
    hold.touch()
    reader = coupled.start(mpich, "read")
    writer = coupled.start(mpich, "write", 1, "--hold", hold)
    await_line(writer, "held")
    kill(writer)
    kit.wait_until(lambda: server.client().state()["exchange_bytes"] == "0", 20, "the version is dropped")
    hold.unlink()
    run = coupled.run(mpich, "write", 1, "--first", 7)
    assert (run.code, run.out) == (0, versions(7)), run.err
    run = kit.finish(reader)
    assert (run.code, run.out) == (0, versions(7)), run.err


def test_a_dead_reader_has_not_read(coupled: Coupled, start_server, mpich, tmp_path: Path) -> None:
    server = start_server("s1")
    run = coupled.run(mpich, "write")
    assert run.code == 0, run.err
    hold = tmp_path / "hold"
    hold.touch()
    dead = coupled.start(mpich, "read", 1, "--hold", hold)
    await_line(dead, "held")
    kill(dead)
    hold.unlink()
    run = coupled.run(mpich, "read")
    assert (run.code, run.out) == (0, versions(1)), run.err
    assert server.client().state()["exchange_bytes"] == "0"


def test_a_dead_server_is_an_error_and_no_wait(coupled: Coupled, start_server, mpich, tmp_path: Path) -> None:
    server = start_server("s1")
    hold = tmp_path / "hold"
    hold.touch()
    writer = coupled.start(mpich, "write", 1, "--hold", hold)
    await_line(writer, "held")
    server.kill()
    hold.unlink()
    run = kit.finish(writer, 30)
    assert (run.code, run.out) == (0, "MPI_ERR_IO\n" * 3), run.err
    assert f"what was written to '{NAME}' is not available to readers: its I/O server was lost" in run.err


def test_a_reader_that_waits_goes_on_with_the_next_server(
    coupled: Coupled, start_server, story, mpich, daemon: Daemon
) -> None:
    server = start_server("s1")
    reader = coupled.start(mpich, "read", 1, "--hint", "hocket_wait=60")
    kit.wait_until(lambda: int(server.client().state()["clients"]) >= 3, 20, "the reader's ranks wait at s1")
    time.sleep(6)  # longer than its search for a server when none runs
    server.kill()
    start_server("s2")
    run = coupled.run(mpich, "write")
    assert (run.code, run.out) == (0, versions(1)), run.err
    run = kit.finish(reader)
    assert (run.code, run.out) == (0, versions(1)), run.err


def test_a_silent_server_is_lost(coupled: Coupled, start_server, mpich, tmp_path: Path) -> None:
    """The writer has more data left than may be in flight."""
    server = start_server("s1")
    hold = tmp_path / "hold"
    hold.touch()
    writer = coupled.start(mpich, "write", 1, "--hold", hold, "--hint", "hocket_buffer_size=4096")
    await_line(writer, "held")
    kit.stop(server.pid)
    hold.unlink()
    run = kit.finish(writer, 90)
    assert (run.code, run.out) == (0, "MPI_ERR_IO\n" * 3), run.err


@pytest.mark.parametrize("mpi", kit.WITH_TWO_NODES, indirect=True)
def test_any_ranks_of_an_application_may_exchange(coupled: Coupled, start_server, mpi: kit.Mpi) -> None:
    """Ranks exchange also without rank 0 of the world, which hocketd knows."""
    start_server("s1")
    for what in ("write", "read"):
        run = coupled.run(mpi, what, 2, "--but-first", 1, ranks=3)
        assert (run.code, run.out) == (0, versions(1, 2)), f"{mpi.name}: {run.err}"


def test_the_smallest_wish_counts(coupled: Coupled, start_server, mpich) -> None:
    """Ranks that ask for different numbers of readers get the smallest."""
    server = start_server("s1")
    run = coupled.run(mpich, "write", 1, "--hint0", "hocket_readers=3")
    assert (run.code, run.out) == (0, versions(1)), run.err
    run = coupled.run(mpich, "read", 1, "--hint", "hocket_wait=0")
    assert (run.code, run.out) == (0, versions(1)), run.err
    assert server.client().state()["exchange_bytes"] == "0"


def test_a_version_for_anybody_makes_room_for_the_next(coupled: Coupled, start_server, mpich) -> None:
    start_server("s1", "--exchange", "1m")
    run = coupled.run(mpich, "write", 3, "--hint", "hocket_readers=0", words=100_000)
    assert (run.code, run.out) == (0, versions(1, 2, 3)), run.err
    run = coupled.run(mpich, "read", words=100_000)
    assert (run.code, run.out) == (0, versions(3)), run.err


@pytest.mark.parametrize("slow", ["s1", "s2"])
def test_a_server_that_is_found_slow_keeps_its_data_sets(coupled: Coupled, start_server, mpich, slow: str) -> None:
    """One of the two is the home of the name."""
    start_server("s1"), start_server("s2")
    run = coupled.run(mpich, "write", 1)
    assert (run.code, run.out) == (0, versions(1)), run.err
    with Bus.connect() as monitor:
        monitor.publish("SLOW_IO_SERVER", server=slow)
        monitor.list()
    run = coupled.run(mpich, "read", 1, "--hint", "hocket_wait=5")
    assert (run.code, run.out) == (0, versions(1)), run.err


def test_a_version_that_is_too_large_is_an_error(coupled: Coupled, start_server, mpich) -> None:
    server = start_server("s1", "--exchange", "1m")
    run = coupled.run(mpich, "write", words=400_000)
    assert (run.code, run.out) == (0, "opened\nMPI_ERR_NO_SPACE\n" + "MPI_ERR_IO\n" * 3), run.err
    assert f"what was written to '{NAME}' is not available to readers: one of its processes has ended" in run.err
    assert server.client().state()["exchange_bytes"] == "0"


@pytest.mark.parametrize("what, told", [("read", "no version was written within 1 s (hint hocket_wait)")])
def test_waiting_ends(coupled: Coupled, start_server, mpi: kit.Mpi, what: str, told: str) -> None:
    start_server("s1")
    begun = time.monotonic()
    run = coupled.run(mpi, what, 1, "--hint", "hocket_wait=1")
    assert (run.code, run.out) == (0, "MPI_ERR_NO_SUCH_FILE\n"), run.err
    assert [line for line in run.warnings if NAME in line and told in line], run.err
    assert time.monotonic() - begun < 20


def test_without_servers_it_says_what_to_do(coupled: Coupled, mpi: kit.Mpi) -> None:
    run = coupled.run(mpi, "write")
    assert (run.code, run.out) == (0, "MPI_ERR_IO\n"), run.err
    assert run.warnings == [
        f"hocket: '{NAME}' needs an I/O server, and none is running: hocket server start --dir DIRECTORY"
    ]


def test_what_there_is_not_for_data_sets_is_an_error(coupled: Coupled, start_server, mpi: kit.Mpi) -> None:
    """Shared file pointer, nonblocking access, split access, other size; and reading a data set opened for writing."""
    start_server("s1")
    run = coupled.run(mpi, "rules", ranks=1)
    assert run.code == 0, run.err
    assert run.out == "opened\n" + "MPI_ERR_UNSUPPORTED_OPERATION\n" * 4 + "MPI_ERR_ACCESS\n" + "MPI_ERR_IO\n"
    assert "is not available to readers: one of its processes has ended, or a write failed" in run.err
