"""Read this test first: two MPI programs write to the same storage, and hocketd lets them take turns.

It has what most scenarios are made of: fixtures (tests/conftest.py) that start a daemon and end every process, a
program of tests/programs, waits for events instead of times, and the daemon's trace, which tells what happened.
tests/README.md says where the other tests are.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from story import Story

pytestmark = pytest.mark.timeout(120)  # in seconds, for one test; a wait that fails earlier says what it waited for


# pytest passes to each parameter the fixture of that name. `mpi` has two values: the test runs with MPICH and Open MPI.
def test_two_programs_take_turns(
    mpi: kit.Mpi, built: Callable[..., Path], start_daemon: Callable[..., Daemon], prefix: Path, tmp_path: Path
) -> None:
    # hocketd runs in a directory of this test alone. $HOCKET_DIR names it, so `hocket run` below finds this daemon.
    daemon = start_daemon("--policy", "fcfs")
    # A story is the trace of a daemon, read while the daemon writes it.
    story = Story(daemon)
    # script.c executes its arguments, so that a test can say what the ranks do. `built` compiles it for this MPI.
    script = built("script.c")

    def start(name: str, *actions: str) -> subprocess.Popen:
        """Start `hocket run --name NAME -- mpiexec -n 2 script open=FILE ACTIONS close`."""
        program = [script, f"open={tmp_path / name}", *actions, "close"]
        mpiexec, environment = mpi.command(2, program, preload="", settings={})
        hocket_run = [sys.executable, "-m", "hocket.cli", "run", "--name", name, "--"]
        return kit.launch([*hocket_run, *mpiexec], environment | {"HOCKET_PREFIX": str(prefix)})

    # The first program begins a collective write, and does not end it before the file `go` exists.
    go = tmp_path / "go"
    first = start("first", "begin=1000", f"await={go}", "finish")
    story.awaits("GRANT_IO", application="first")

    # The second program requests the same storage. The test waits for the daemon's answer, however long that takes.
    second = start("second", "write=1000")
    assert story.awaits("QUEUED_IO", application="second")["behind"] == "first"

    # Now the first one may end. hocket changes neither the output nor the exit code of a program, nor its file.
    go.touch()
    for process in (first, second):
        run = kit.finish(process)
        assert (run.code, run.out, run.err) == (0, "", "")
    for name in ("first", "second"):
        assert (tmp_path / name).read_bytes() == 1000 * b"A" + 1000 * b"B"  # rank 0 writes A, rank 1 writes B

    # The trace is complete once the daemon has ended. A line has the key "in" for what the daemon received, and "out"
    # for what it commanded.
    assert daemon.stop() == 0
    lines = [(line.get("in") or line.get("out"), line.get("application")) for line in story.read()]
    assert [line for line in lines if line[0] in ("GRANT_IO", "FINISH_IO")] == [
        ("GRANT_IO", "first"),
        ("FINISH_IO", "first"),
        ("GRANT_IO", "second"),
        ("FINISH_IO", "second"),
    ]
