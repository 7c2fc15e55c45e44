"""Helpers for tests of programs under `hocket forward`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

LIMIT_S = 60


def hocket(*words: str, prefix: Path) -> subprocess.CompletedProcess:
    environment = os.environ | {"HOCKET_PREFIX": str(prefix)}
    command = [sys.executable, "-m", "hocket.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment, check=False)


def wait_until(condition: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {limit_s} s"
        time.sleep(0.02)


def start_servers(count: int, mount: Path, prefix: Path, *options: str) -> None:
    done = hocket("server", "start", "-n", str(count), "--dir", str(mount), *options, prefix=prefix)
    assert done.returncode == 0, done.stderr
