"""Shared by the tests of programs under `hocket forward`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest
import runtime_kit as kit
from hocket import io_servers
from hocket.bus import Bus

LIMIT_S = 60

SQL = "create table t(a); with recursive n(i) as (select 1 union all select i+1 from n where i<2000) " \
    "insert into t select i from n; select sum(a) from t;"  # fmt: skip

# The words before the directory of a tmpfs that is to become read-only. With its device's name, mount(8) does not hand
# on the present options: in a user namespace these name users of the outside, which the kernel refuses.
READ_ONLY = "mount -t tmpfs -o remount,ro none"

CORNERS = (
    "errors", "offsets", "no-name", "locks", "close-all", "children", "handlers", "cancel", "cancel-pipe", "limit",
    "threads", "fork", "many", "direct", "large", "jump", "seccomp", "part", "limited",
    "rights", "stack", "mapped", "names", "record-locks",
)  # fmt: skip


def _mounts_are_allowed() -> bool:
    """Return True if this user may mount by FUSE in a mount namespace of its own, whatever hocket does."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
        how = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "true"]
        return subprocess.run(how, capture_output=True, timeout=LIMIT_S, check=False).returncode == 0
    except OSError:
        return False


NEEDS_MOUNTS = pytest.mark.skipif(
    not _mounts_are_allowed(), reason="no FUSE mount in a namespace of its own is allowed to this user here"
)


def forwarded(run: kit.Run) -> int:
    """Return how many calls --check says were forwarded."""
    found = re.search(r"forwarded (\d+) calls", run.err)
    assert found, run.err
    return int(found[1])


def hocket(*words: str, prefix: Path) -> subprocess.CompletedProcess:
    environment = os.environ | {"HOCKET_PREFIX": str(prefix)}
    command = [sys.executable, "-m", "hocket.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment, check=False)


def pids_of_servers() -> dict[str, int]:
    with Bus.connect() as bus:
        return {name: one["pid"] for name, one in io_servers.running(bus).items()}


def wait_until(condition: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {limit_s} s"
        time.sleep(0.02)


def start_servers(count: int, mount: Path, prefix: Path, *options: str) -> None:
    done = hocket("server", "start", "-n", str(count), "--dir", str(mount), *options, prefix=prefix)
    assert done.returncode == 0, done.stderr


def build(source: str, target: Path, *options: str) -> Path:
    subprocess.run(["cc", *options, "-o", target, "-xc", "-"], input=source.encode(), check=True, timeout=LIMIT_S)
    return target


def kill_servers_while(process: subprocess.Popen, mount: Path, prefix: Path, pause_s: float, most: float = inf) -> int:
    """Kill the servers one after the other, and start another for each, until the process ends or `most` are killed.

    Return how many were killed.
    """
    killed = 0
    while process.poll() is None and killed < most:
        for pid in pids_of_servers().values():
            time.sleep(pause_s)
            os.kill(pid, signal.SIGKILL)
            killed += 1
            start_servers(1, mount, prefix)
    return killed
