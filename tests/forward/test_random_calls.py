"""Random calls under `hocket forward` beside a byte-by-byte model, also while servers are killed, stopped and changed.

$HOCKET_FORWARD_CALLS changes the number of calls of each run.
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
import runtime_kit as kit
from forward_kit import (
    change_servers_while,
    forwarded,
    kill_servers_while,
    pids_of_servers,
    start_servers,
    stop_or_kill_servers_while,
    wait_until,
)

CALLS = int(os.environ.get("HOCKET_FORWARD_CALLS", "100000"))
LIMIT_S = 60 + CALLS / 500
pytestmark = pytest.mark.timeout(2 * LIMIT_S)
CONSISTENCIES = pytest.mark.parametrize("consistency", ["synchronous", "close-to-open"])


@CONSISTENCIES
def test_random_calls_are_as_a_model_says(consistency: str, forward, programs: Path, mount: Path):
    options = ("--servers", "2", "--consistency", consistency)
    run = forward(programs / "random_calls", "1", str(CALLS), mount, options=options, limit_s=LIMIT_S)
    assert (run.code, run.out) == (0, f"ok {CALLS}\n"), run.out + run.err
    assert forwarded(run) > CALLS / 2


@CONSISTENCIES
def test_random_calls_survive_servers_that_are_killed(
    consistency: str, start_forward, start_daemon, programs: Path, mount: Path, prefix: Path
):
    """Each call is made once, or fails with EIO and was made wholly or not at all; the program checks that."""
    start_daemon()
    start_servers(2, mount, prefix)
    words = [programs / "random_calls", "2", str(CALLS), mount]
    process = start_forward(*words, options=("--consistency", consistency))
    killed = kill_servers_while(process, mount, prefix, 0.05)
    run = kit.finish(process, LIMIT_S)
    assert (run.code, run.out) == (0, f"ok {CALLS}\n"), run.out + run.err
    assert killed > 2 and forwarded(run) > CALLS / 10


@pytest.mark.parametrize(("consistency", "seed"), [("synchronous", 1), ("close-to-open", 3)])
def test_random_calls_of_several_processes_survive_servers_that_are_stopped_for_good(
    consistency: str, seed: int, start_forward, start_daemon, programs: Path, mount: Path, prefix: Path
):
    """Whoever waits for such a server kills it after 5 s, and all that have waited go on."""
    start_daemon()
    start_servers(2, mount, prefix)
    processes, calls = 4, CALLS // 10
    script = f"for i in $(seq {processes}); do {programs / 'random_calls'} $i {calls} {mount} & done; wait"
    process = start_forward("sh", "-c", script, options=("--consistency", consistency))
    sent = stop_or_kill_servers_while(process, mount, prefix, random.Random(seed), 4)
    run = kit.finish(process, LIMIT_S)
    assert (run.code, run.out) == (0, f"ok {calls}\n" * processes), run.out + run.err
    assert sent[signal.SIGSTOP] > 0 and forwarded(run) > calls


@CONSISTENCIES
def test_random_calls_survive_changes_of_the_servers(
    consistency: str, start_forward, start_daemon, programs: Path, mount: Path, prefix: Path
):
    start_daemon()
    start_servers(3, mount, prefix)
    words = [programs / "random_calls", "3", str(CALLS), mount]
    process = start_forward(*words, options=("--name", "app", "--consistency", consistency))
    changes = change_servers_while(process, prefix)
    run = kit.finish(process, LIMIT_S)
    assert (run.code, run.out) == (0, f"ok {CALLS}\n"), run.out + run.err
    assert changes > 3 and "calls found no server" not in run.err


@pytest.mark.parametrize(
    ("consistency", "choice"), [("synchronous", "direct"), ("synchronous", "fail"), ("close-to-open", "direct")]
)
def test_random_calls_when_all_servers_have_gone(
    consistency: str, choice: str, start_forward, start_daemon, programs: Path, mount: Path, prefix: Path
):
    """The program goes on directly, or each call fails and does nothing."""
    start_daemon()
    start_servers(2, mount, prefix)
    words = [programs / "random_calls", "4", "20000", mount]
    process = start_forward(*words, options=("--consistency", consistency, "--without-servers", choice))
    wait_until(lambda: len(list(mount.iterdir())) > 1, "the first files")
    for pid in pids_of_servers().values():
        os.kill(pid, signal.SIGKILL)
    run = kit.finish(process, LIMIT_S)
    assert (run.code, run.out) == (0, "ok 20000\n"), run.out + run.err
    assert "calls found no server" in run.err
