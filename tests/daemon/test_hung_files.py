"""Files that hang, as on a network file system whose server is gone: grants do not wait for them."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_kit import LIMIT_S, Daemon, hello, start_io
from hocket.bus import Bus


@pytest.fixture
def programs(prefix: Path, tmp_path: Path) -> Iterator[Path]:
    """A directory with hocketd, and a hocket-server whose exec waits for a lease that is not given up."""
    shutil.copy(prefix / "bin" / "hocketd", tmp_path / "hocketd")
    server = tmp_path / "hocket-server"
    server.write_text("#!/bin/sh\n")
    server.chmod(0o700)
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    lease = os.open(server, os.O_RDONLY)
    try:
        fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield tmp_path
    except OSError as error:
        pytest.skip(f"no leases on this file system: {error}")
    finally:
        os.close(lease)
        signal.signal(signal.SIGIO, before)


def test_a_program_that_hangs_in_exec_stops_no_grant(programs: Path, hocket_dir: Path):
    daemon = Daemon(programs / "hocketd", hocket_dir)
    try:
        with Bus.connect() as tool, Bus.connect() as member:
            answers = tool.subscribe("token=hangs")
            tool.send("START_SERVER", token="hangs")
            hello(member, "a")
            assert start_io(member, 1) == "GRANT_IO"
            member.send("FINISH_IO", request=1)
            failed = answers.wait(2 * LIMIT_S)
            assert failed is not None and failed.type == "SERVER_FAILED", failed
            assert "does not answer" in failed["reason"], failed["reason"]
            assert start_io(member, 2) == "GRANT_IO"
    finally:
        daemon.kill()
