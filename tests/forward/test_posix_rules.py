"""Appends, locks, renames, holes, and their like by several processes under `hocket forward`: each rule holds.

They run plainly, and while servers are killed, stopped, slow, and changed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from forward_kit import build, forwarded, hocket, kill_servers_while, pids_of_servers, start_servers

pytestmark = pytest.mark.timeout(300)
LIMIT_S = 150
ROUNDS = 400
CONSISTENCIES = pytest.mark.parametrize("consistency", ["synchronous", "close-to-open"])


@pytest.fixture
def start_rules(start_forward, programs: Path, mount: Path) -> Callable[..., subprocess.Popen]:
    def start(consistency: str, rounds: int, *options: str) -> subprocess.Popen:
        words = [programs / "posix_rules", "all", str(rounds), mount]
        return start_forward(*words, options=("--consistency", consistency, *options))

    return start


def ends_well(process: subprocess.Popen) -> kit.Run:
    run = kit.finish(process, LIMIT_S)
    assert (run.code, run.out) == (0, ""), run.out + run.err
    assert forwarded(run) > 1000
    return run


def test_the_rules_hold_without_hocket(programs: Path, mount: Path):
    words = [programs / "posix_rules", "all", str(ROUNDS), mount]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@CONSISTENCIES
def test_the_rules_hold(consistency: str, start_rules):
    run = ends_well(start_rules(consistency, ROUNDS, "--servers", "2"))
    assert ("were collected first" in run.err) == (consistency == "close-to-open")


@CONSISTENCIES
def test_the_rules_hold_while_servers_are_killed(
    consistency: str, start_rules, start_daemon, mount: Path, prefix: Path
):
    start_daemon()
    start_servers(2, mount, prefix)
    process = start_rules(consistency, ROUNDS)
    killed = kill_servers_while(process, mount, prefix, 0.02)
    ends_well(process)
    assert killed > 2


@CONSISTENCIES
def test_the_rules_hold_while_servers_are_changed(
    consistency: str, start_rules, start_daemon, mount: Path, prefix: Path
):
    start_daemon()
    start_servers(3, mount, prefix)
    process = start_rules(consistency, ROUNDS, "--name", "app")
    changes = 0
    for choice in itertools.cycle(("1", "2", "all", "s2", "s3")):
        if process.poll() is not None:
            break
        changes += hocket("servers", "assign", "app", choice, prefix=prefix).returncode == 0
    ends_well(process)
    assert changes > 2


@CONSISTENCIES
def test_the_rules_hold_while_a_server_is_stopped_for_some_time(
    consistency: str, start_rules, start_daemon, mount: Path, prefix: Path
):
    """It is stopped for less time than a client waits, again and again: nobody ends it, and everybody waits."""
    start_daemon()
    start_servers(2, mount, prefix)
    before = pids_of_servers()
    process = start_rules(consistency, ROUNDS)
    stops = 0
    for pid in itertools.cycle(before.values()):
        if process.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.1)
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.05)
        stops += 1
    ends_well(process)
    assert stops > 2
    assert pids_of_servers() == before


IS_SLOW = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
static int calls;
ssize_t pwritev2(int fd, const struct iovec* parts, int count, off_t at, int flags) {
  if (++calls % 100 == 0) usleep(20000);
  return syscall(SYS_pwritev2, fd, parts, count, at, 0, flags);
}
ssize_t pwritev64v2(int, const struct iovec*, int, off64_t, int) __attribute__((alias("pwritev2")));
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) {
  usleep(2000);
  return syscall(SYS_pwrite64, fd, data, bytes, at);
}
ssize_t pwrite64(int, const void*, size_t, off64_t) __attribute__((alias("pwrite")));
"""


@CONSISTENCIES
def test_the_rules_hold_with_a_slow_server(
    consistency: str, start_rules, start_daemon, mount: Path, prefix: Path, tmp_path: Path, monkeypatch
):
    start_daemon()
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(build(IS_SLOW, tmp_path / "slow.so", "-shared", "-fPIC")))
        start_servers(1, mount, prefix)
    start_servers(1, mount, prefix)
    ends_well(start_rules(consistency, ROUNDS // 4))
