"""Collective accesses through I/O servers: MPI programs, hocketd, and hocket-servers, all real."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from hocket.bus import Bus
from processes import descendants
from story import Story

pytestmark = pytest.mark.timeout(240)
LIMIT_S = 120  # of a program; it takes 10 s, and five times as long beside ten others
SEED = 2026


@pytest.fixture
def settings(daemon: Daemon) -> dict[str, str]:
    return kit.settings(daemon.socket) | {"HOCKET_IO": "hocket"}


def cases(run: kit.Run) -> int:
    """Return the number of cases that `random_access` reports."""
    said = re.fullmatch(r"(\d+) cases\n", run.out)
    return int(said[1]) if said else 0


@pytest.mark.parametrize("mpi", kit.WITH_TWO_NODES, indirect=True)
def test_random_accesses_leave_the_bytes_of_a_model(
    mpi: kit.Mpi, built, start_server, story: Story, settings, served_directory: Path
) -> None:
    start_server("s1"), start_server("s2")
    program = built("random_access.c")
    run = mpi.run([program, served_directory / "f", SEED, 30, "strict"], settings, ranks=3)
    assert (run.code, run.out, run.err) == (0, "30 cases\n", ""), f"{mpi.name}: {run.out}{run.err}"
    story.awaits("SERVER_LOAD")
    assert sum(event["operations"] for event in story.all("SERVER_LOAD")) > 0
    assert {event["epoch"] for event in story.all("MAP_ADOPTED")} == {0, 2}


@pytest.mark.parametrize(("method", "travels"), [("list", "listed"), ("view", "viewed"), ("auto", "viewed")])
def test_the_method_of_the_hint_is_used_through_servers_too(
    mpi: kit.Mpi, built, start_server, settings, served_directory: Path, method: str, travels: str
) -> None:
    """A regular view is a formula, which `auto` finds shorter than lists of 64 runs."""
    servers = [start_server(name) for name in ("s1", "s2")]
    program = [built("faulty_access.c"), served_directory / "f", "write", "interleaved", 512]
    run = mpi.run([*program, f"hocket_collective={method}"], settings, ranks=3)
    assert (run.code, run.out) == (0, "MPI_SUCCESS\nright\n"), f"{mpi.name}: {run.out}{run.err}"
    for state in (server.client().state() for server in servers):
        requests = {way: int(state[f"{way}_requests"]) for way in ("listed", "viewed")}
        assert requests.pop(travels) > 0, state
        assert set(requests.values()) == {0}, state


def test_files_elsewhere_are_none_of_the_servers(
    mpi: kit.Mpi, built, start_server, story: Story, settings, tmp_path: Path
) -> None:
    start_server("s1")
    run = mpi.run([built("faulty_access.c"), tmp_path / "f", "write", "interleaved", 8], settings, ranks=3)
    assert (run.code, run.out) == (0, "MPI_SUCCESS\nright\n"), run.err
    assert story.all("MAP_ADOPTED") == []
    assert [e for e in story.all("SERVER_LOAD") if e["operations"]] == []


def test_servers_die_one_after_the_other_and_nothing_is_lost(
    mpi: kit.Mpi, built, start_server, story: Story, settings, served_directory: Path, tmp_path: Path
) -> None:
    """Each server dies while an application uses it; in the end the ranks aggregate."""
    servers = [start_server(name) for name in ("s1", "s2", "s3")]
    end = tmp_path / "end"
    program = [built("random_access.c"), served_directory / "f", SEED + 1, 120, "strict", end]
    process = mpi.start(program, settings, ranks=3)
    for epoch, server in enumerate(servers, 3):
        story.awaits("MAP_ADOPTED", count=2, epoch=epoch)
        server.kill()
    end.touch()
    run = kit.finish(process, LIMIT_S)
    assert run.code == 0 and cases(run) >= 120, f"{mpi.name}: {run.out}{run.err}"


def await_adoption(bus: Bus) -> None:
    """Wait until the application uses the present map. A server that is drained leaves it in two steps."""
    deadline = time.monotonic() + 40
    while True:
        listing = bus.list()
        if all(one["map_epoch"] >= listing.daemon["map_epoch"] for one in listing.applications):
            return
        assert time.monotonic() < deadline, (
            f"epoch {listing.daemon['map_epoch']} is not adopted: {listing.applications}"
        )
        time.sleep(0.05)


def test_a_server_is_drained_and_added_while_applications_go_through_it(
    mpi: kit.Mpi, built, start_server, story: Story, settings, served_directory: Path, tmp_path: Path
) -> None:
    start_server("s1"), start_server("s2")
    end = tmp_path / "end"
    program = [built("random_access.c"), served_directory / "f", SEED + 2, 80, "strict", end]
    process = mpi.start(program, settings, ranks=3)
    with Bus.connect() as bus:
        story.awaits("MAP_ADOPTED", count=2, epoch=2)
        for action in ("drain", "add"):
            bus.send("SET_SERVER", server="s2", action=action)
            await_adoption(bus)
    end.touch()
    run = kit.finish(process, LIMIT_S)
    assert (run.code, run.err) == (0, "") and cases(run) >= 80, f"{mpi.name}: {run.out}{run.err}"


@pytest.mark.parametrize(
    ("error", "kind"), [("ENOSPC", "MPI_ERR_NO_SPACE"), ("EDQUOT", "MPI_ERR_QUOTA"), ("EIO", "MPI_ERR_IO")]
)
def test_a_servers_error_reaches_all_ranks(
    mpi: kit.Mpi, built, start_server, settings, served_directory: Path, error: str, kind: str
) -> None:
    start_server("s1"), start_server("s2", "--inject", f"errno={error}")
    run = mpi.run([built("faulty_access.c"), served_directory / "f", "write", "interleaved"], settings, ranks=4)
    assert (run.code, run.out) == (0, f"{kind}\nagain: {kind}\n"), f"{mpi.name}: {run.out}{run.err}"


@pytest.mark.parametrize("behind", [True, False])
def test_sync_tells_of_what_a_dead_server_had_answered(
    mpi: kit.Mpi, built, start_server, story: Story, settings, served_directory: Path, tmp_path: Path, behind: bool
) -> None:
    """With write-behind the data are lost; without it they are in the file."""
    server = start_server("s1", *(["--write-behind", "--inject", "delay=60s"] if behind else []))
    first, go = tmp_path / "first", tmp_path / "go"
    script = [
        f"open={served_directory / 'f'}",
        "write=1000",
        f"mark={first}",
        f"await={go}",
        "write=1000",
        "try",
        "sync",
        "close",
    ]
    process = mpi.start([built("script.c"), *script], settings)
    kit.wait_until(first.exists, 30, "the first write")
    server.kill()
    go.touch()
    run = kit.finish(process, LIMIT_S)
    if behind:
        assert sorted(re.findall("MPI_ERR_IO|MPI_SUCCESS", run.out)) == [
            "MPI_ERR_IO",
            "MPI_ERR_IO",
            "MPI_SUCCESS",
            "MPI_SUCCESS",
        ]
        assert "the I/O server s1 was lost with 1000 bytes that it had not stored yet" in run.err
    else:
        assert (run.code, run.err) == (0, "")
        assert (served_directory / "f").read_bytes() == (b"A" * 1000 + b"B" * 1000) * 2


# ---- interrupted -----------------------------------------------------------------------------------------------------

RANKS, BLOCKS, WINDOW = 4, 1024, 64 << 10
PATTERNS = [("interleaved", "on"), ("separate", "on"), ("separate", "off")]
DELAY = {"interleaved": "delay=20ms", "separate": "delay=50ms"}  # for each request: the access takes some seconds


@pytest.fixture
def interrupted(
    mpi: kit.Mpi, built, start_server, daemon: Daemon, story: Story, served_directory: Path, tmp_path: Path, request
) -> Interrupted:
    """An interrupted access; the parameter is its pattern, and "on" or "off" for shared memory between the ranks."""
    return Interrupted(mpi, built, start_server, daemon, story, served_directory, tmp_path, *request.param)


class Interrupted:
    """A large application amid a collective access through servers, and a small application that preempts it."""

    def __init__(
        self, mpi, built, start_server, daemon: Daemon, story: Story, directory: Path, tmp_path: Path, pattern, sharing
    ):
        self.story, self.end, self.pattern = story, tmp_path / "end", pattern
        self.servers = [start_server(name, "--inject", DELAY[pattern]) for name in ("s1", "s2")]
        with Bus.connect() as bus:
            bus.send("SET_POLICY", policy="interrupt")
        up, go, held = (tmp_path / name for name in ("up", "go", "held"))
        script = [f"mark={up}", f"await={go}", f"open={directory / 'small'}", "begin=10", f"mark={held}"]
        script += [f"await={self.end}", "finish", "close"]
        self.small = mpi.start([built("script.c"), *script], kit.settings(daemon.socket, name="small", job="small"))
        kit.wait_until(up.exists, 30, "the small one has started")
        written = directory / "large"
        program = [built("faulty_access.c"), written, "write", pattern, BLOCKS]
        program += [f"hocket_buffer_size={WINDOW}", f"hocket_shared_memory={sharing}"]
        how = kit.settings(daemon.socket, name="large", job="large", io="hocket", posix=0)
        self.large = mpi.start(program, how, ranks=RANKS)
        kit.wait_until(lambda: written.exists() and written.stat().st_size > 0, 30, "it writes")
        for server in self.servers:  # keeps the access under way until the small application asks
            kit.stop(server.pid)
        go.touch()
        story.awaits("PAUSE_IO", application="large")
        for server in self.servers:
            os.kill(server.pid, signal.SIGCONT)
        kit.wait_until(held.exists, 30, "the small one has its turn")
        self.paused = story.awaits("PAUSED_IO", application="large")

    def stored(self) -> int:
        """Return the number of bytes that the servers have reported."""
        return sum(event["bytes"] for event in self.story.all("SERVER_LOAD"))

    def await_stored(self, count: int) -> None:
        self.story.until(lambda: self.stored() == count, f"the servers have stored {count} bytes")

    def finish(self) -> tuple[kit.Run, kit.Run]:
        self.end.touch()
        return kit.finish(self.small), kit.finish(self.large)


@pytest.mark.parametrize("interrupted", PATTERNS, indirect=True, ids="-".join)
def test_an_access_stands_still_between_two_rounds(interrupted: Interrupted) -> None:
    """All ranks stop after the same round, and nothing is in flight at the servers."""
    every = RANKS * BLOCKS * 4096
    # A round is a collective buffer at each of the two servers: interleaved, of all ranks together; separate, of each.
    of_a_round = 2 * WINDOW * (RANKS if interrupted.pattern == "separate" else 1)
    assert 0 <= interrupted.paused["round"] < every // of_a_round // 2, "long before its end"
    assert interrupted.paused["bytes"] == (interrupted.paused["round"] + 1) * of_a_round
    interrupted.await_stored(interrupted.paused["bytes"])
    time.sleep(1.5)  # an absence cannot be awaited; servers report within a second
    assert interrupted.stored() == interrupted.paused["bytes"]
    small, large = interrupted.finish()
    assert (small.code, small.err) == (0, "")
    assert (large.code, large.out, large.err) == (0, "MPI_SUCCESS\nright\n", "")
    interrupted.await_stored(every)


@pytest.mark.parametrize("interrupted", PATTERNS[1:2], indirect=True, ids="-".join)
@pytest.mark.parametrize("killed", [1, 2])
def test_servers_die_while_an_access_stands_still(interrupted: Interrupted, killed: int) -> None:
    for server in interrupted.servers[:killed]:
        server.kill()
    small, large = interrupted.finish()
    assert (small.code, small.err) == (0, "")
    assert (large.code, large.out) == (0, "MPI_SUCCESS\nright\n"), large.err


@pytest.mark.parametrize("interrupted", PATTERNS[1:], indirect=True, ids="-".join)
def test_hocketd_dies_while_an_access_stands_still(interrupted: Interrupted, daemon: Daemon) -> None:
    daemon.kill()
    _, large = interrupted.finish()
    assert (large.code, large.out, len(large.warnings)) == (0, "MPI_SUCCESS\nright\n", 1), large.err


@pytest.mark.parametrize("interrupted", PATTERNS[1:], indirect=True, ids="-".join)
def test_a_rank_is_killed_while_an_access_stands_still(interrupted: Interrupted) -> None:
    started = sorted(descendants(interrupted.large.pid))
    ranks = [pid for pid in started if Path(f"/proc/{pid}/comm").read_text().startswith("faulty_access")]
    assert len(ranks) == RANKS
    os.kill(ranks[-1], signal.SIGKILL)
    _, large = interrupted.finish()
    assert large.code != 0
