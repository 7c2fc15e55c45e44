"""Fixtures of the tests of `hocket emulate`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_kit import Daemon
from hocket.emulator import calibration
from mpi_launch import Mpi
from story import Story


@pytest.fixture
def emulate(prefix: Path, hocket_dir: Path, tmp_path: Path) -> Callable[..., subprocess.Popen]:
    """Return a function that starts `hocket emulate` of a text in `tmp_path`."""

    def start(mpi: str, text: str, *arguments: str, **popen) -> subprocess.Popen:
        description = tmp_path / "app.toml"
        description.write_text(text)
        known = tmp_path / "state" / "hocket" / calibration.store().name
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text('{"compute:10000": 3e-5}')
        environment = Mpi(mpi).environment(
            {**os.environ, "HOCKET_PREFIX": str(prefix), "XDG_STATE_HOME": str(tmp_path / "state")}
        )
        command = [sys.executable, "-m", "hocket.cli", "emulate", str(description), "--mpi", mpi]
        command += ["--dir", str(tmp_path), "--record", str(tmp_path / "record"), "--json", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env=environment, **pipes, **popen)

    return start


@pytest.fixture
def cores(start_daemon: Callable[..., Daemon], tmp_path: Path) -> Callable[[int], Story]:
    """Return a function that starts a daemon which can allocate so many cores."""

    def start(count: int) -> Story:
        settings = tmp_path / "hocket.toml"
        settings.write_text(f"[coordinator]\ncores = {count}\n")
        return Story(start_daemon("--config", settings))

    return start
