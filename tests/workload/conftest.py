"""Fixtures of the tests of `hocket workload`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "files"
    path.mkdir()
    return path


@pytest.fixture
def start(prefix: Path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Return a function that starts `hocket workload`."""
    started = []

    def run(*words: str | Path) -> subprocess.Popen:
        command = [sys.executable, "-m", "hocket.cli", "workload", *map(str, words)]
        environment = os.environ | {"HOCKET_PREFIX": str(prefix)}
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment))
        return started[-1]

    yield run
    for one in started:
        with contextlib.suppress(ProcessLookupError):
            one.kill()
        one.communicate()
