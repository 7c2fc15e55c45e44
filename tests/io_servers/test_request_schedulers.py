"""Which collective access is next: a small MPI program beside a large one, through one I/O server."""

from __future__ import annotations

from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from hocket.bus import Bus

pytestmark = pytest.mark.timeout(240)

MIB = 1 << 20


@pytest.fixture
def daemon(start_daemon) -> Daemon:
    """A daemon that makes no application wait, so that the server alone divides itself."""
    return start_daemon("--policy", "none")


def bytes_served() -> dict[str, int]:
    """Return the bytes of each application in the server's last report."""
    with Bus.connect() as bus:
        shares = bus.list().servers[0]["forward_shares"]
    lines = [line.split(" ", 3) for line in shares.splitlines()]
    return {words[3]: int(words[1]) for words in lines}


def both_have(bytes_each: int, before: dict[str, int]) -> dict[str, int]:
    """Wait until both applications have had so many bytes more. Return how many."""
    served: dict[str, int] = {}

    def have() -> bool:
        now = bytes_served()
        served.update({name: now.get(name, 0) - before.get(name, 0) for name in ("small", "large")})
        return min(served.values()) >= bytes_each

    kit.wait_until(have, 100, f"the server's work for both: {served}")
    return served


@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
def test_a_small_program_has_its_part_beside_a_large_one(
    mpi: kit.Mpi, built, start_server, daemon: Daemon, served_directory: Path, tmp_path: Path
) -> None:
    """Each request takes 20 ms of the only I/O thread. A rank has few requests under way."""
    start_server("s1", "--threads", 1, "--forward-threads", 1, "--inject", "delay=20ms")
    program, end = built("steady_writes.c"), tmp_path / "end"
    jobs = []
    for name, ranks in (("large", 6), ("small", 1)):
        settings = kit.settings(daemon.socket, io="hocket", name=name, job=name)
        jobs.append(mpi.start([program, served_directory / name, 4, end], settings, ranks=ranks))
    with Bus.connect() as bus:
        bus.send("SET_SERVER", server="s1", action="scheduler", scheduler="job-fair")
    both_have(2 * MIB, bytes_served())  # both run, by this scheduler
    before = bytes_served()
    served = both_have(8 * MIB, before)
    of_nobody = bytes_served().get("", 0) - before.get("", 0)
    end.touch()
    for job in jobs:
        run = kit.finish(job)
        assert (run.code, run.err) == (0, ""), run.err
    # Its part under fifo depends on how fast the ranks are: src/data/server/engine_test.cpp compares with it.
    assert served["small"] / sum(served.values()) > 0.35, served
    # What a rank asks for before hocketd has answered whose it is counts for nobody. That ends with the answer.
    assert of_nobody == 0, "each rank counts for its application"
