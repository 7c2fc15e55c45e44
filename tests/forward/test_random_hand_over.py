"""Two hosts write files of a shared directory in turn, each under `hocket forward`, beside a byte-by-byte model.

Each host opens what the other one has closed or synced (tests/programs/random_hand_over.c).
$HOCKET_HAND_OVER_ROUNDS changes the number of rounds of each run.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import hosts
import pytest
from checkout import PROGRAMS
from forward_hosts import MOUNT, end_servers_while, forwarding, start_servers
from forward_kit import forwarded

ROUNDS = int(os.environ.get("HOCKET_HAND_OVER_ROUNDS", "500"))
LIMIT_S = 120 + ROUNDS / 10  # on a machine that runs much else; alone, 2,000 rounds take 10 to 40 s
pytestmark = pytest.mark.timeout(2 * LIMIT_S)
HOW = {
    "synchronous": (),
    "close-to-open": ("--consistency", "close-to-open"),
    "fuse": ("--by", "fuse"),
}


@pytest.fixture(scope="module")
def random_hand_over(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("hand-over") / "random_hand_over"
    command = ["cc", "-O1", "-w", "-o", program, PROGRAMS / "random_hand_over.c"]
    subprocess.run(command, check=True, timeout=60)
    return program


@pytest.fixture
def begin(start_hosts: Callable[..., hosts.Hosts], random_hand_over: Path, prefix: Path) -> Callable[..., tuple]:
    """Return a function that starts both hosts, and the program on each."""

    def start(
        options: tuple[str, ...], seed: int, *words: str, client: tuple[str, ...] = ("late",), rounds: int = ROUNDS
    ) -> tuple[list[hosts.Host], list[subprocess.Popen]]:
        both = start_hosts(
            "one", "two", how=client, visible=(random_hand_over.parent, prefix), env={"HOCKET_PREFIX": str(prefix)}
        )
        (both.store / "mount").mkdir()
        processes = []
        for host in both:
            start_servers(host, 2)
            program = [random_hand_over, host.name, both["one"].address, str(seed), str(rounds), MOUNT, *words]
            processes.append(host.start(forwarding(*program, options=options)))
        return list(both), processes

    return start


@pytest.mark.parametrize("how", HOW)
def test_each_open_sees_what_the_other_host_has_closed(how: str, begin):
    _, processes = begin(HOW[how], 1)
    for process in processes:
        run = hosts.finish(process, LIMIT_S)
        assert (run.code, run.out) == (0, f"ok {ROUNDS}, repaired 0\n"), run.out + run.err
        assert forwarded(run) > 2 * ROUNDS
        assert ("were writes that were collected" in run.err) == (how == "close-to-open")


@pytest.mark.parametrize("how", ["synchronous", "close-to-open"])
def test_each_open_sees_it_while_servers_end(how: str, begin):
    """They are killed, or stopped at first."""
    both, processes = begin(HOW[how], 2, "killed")
    ended = end_servers_while(processes[0], both, 0.3, stops=1)
    for process in processes:
        run = hosts.finish(process, LIMIT_S)
        assert run.code == 0 and run.out.startswith(f"ok {ROUNDS}, "), run.out + run.err
        assert int(run.out.split()[-1]) < ROUNDS / 20
    assert ended > 3


def test_a_host_that_keeps_old_pages_is_noticed(begin):
    """The tests above would fail if an open did not show what another host has closed."""
    _, processes = begin((), 1, client=("late", "stale"))
    outcomes = [hosts.finish(process, LIMIT_S) for process in processes]
    assert any("the byte is" in run.out for run in outcomes)
