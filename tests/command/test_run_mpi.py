"""hocket run with real MPI jobs and a real daemon: under MPICH and under Open MPI, two ranks each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import runtime_kit as kit
from hocket import daemon as daemon_module
from hocket.analysis import analyse
from hocket.bus import Bus
from hocket.trace import read_trace

pytestmark = pytest.mark.timeout(120)
LIMIT_S = 60
# With and without hocket, MPICH's mpiexec dies of SIGPIPE if a program without MPI ends right after its start. This
# happens in one run of a hundred on a busy machine.
LASTS = "sleep 1"
# Prints which processes have libhocket: the rank, and those above it up to $TOP.
WHO_HAS_IT = f"""
who=rank pid=$$
while [ "$pid" -gt 1 ] && [ "$pid" != "$TOP" ]; do
  grep -q libhocket- /proc/$pid/maps && echo "$who"
  who=launcher pid=$(awk '/^PPid/ {{print $2}}' /proc/$pid/status)
done
{LASTS}
"""


@pytest.fixture(params=["mpich", "openmpi"])
def mpi(request, prefix: Path, hocket_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[kit.Mpi]:
    found = getattr(kit, request.param)(prefix / "lib/hocket")
    for name, value in (kit.ENVIRONMENT | found.environment).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    yield found
    daemon_module.stop()


@pytest.fixture
def script(mpi: kit.Mpi, tmp_path: Path) -> Path:
    return mpi.compile("script.c", tmp_path / "script")


@pytest.fixture
def start(mpi: kit.Mpi) -> Callable[..., subprocess.Popen]:
    """Return a function that starts `hocket run [options] -- mpiexec -n 2 program…`."""

    def start(program: list, *options: str, **more) -> subprocess.Popen:
        extra = ["--oversubscribe"] if mpi.name == "openmpi" else []
        run = [sys.executable, "-m", "hocket.cli", "run", *options]
        command = [*run, "--", *mpi.mpiexec, *extra, "-n", "2", *map(str, program)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        return subprocess.Popen(command, text=True, **(pipes | more))

    return start


def traced():
    """Stop the daemon of this runtime directory and return the analysis of its trace."""
    with Bus.connect() as bus:
        path = bus.list().daemon["trace"]
    daemon_module.stop()
    return analyse(read_trace(path))


def test_the_ranks_and_only_the_ranks_get_libhocket(start, mpi, monkeypatch):
    monkeypatch.setenv("TOP", str(os.getpid()))
    done = kit.finish(start(["bash", "-c", WHO_HAS_IT]), LIMIT_S)
    assert (done.code, done.err) == (0, "")
    assert sorted(done.out.split()) == ["rank", "rank"]


def test_an_application_is_watched_and_asks(start, script, tmp_path):
    run = start([script, f"open={tmp_path / 'f'}", "write=1000", "close"], "--name", "writer")
    done = kit.finish(run, LIMIT_S)
    assert (done.code, done.err) == (0, "")
    analysis = traced()
    assert [(a.name, a.processes, a.lost) for a in analysis.applications] == [("writer", 2, "")]
    application = analysis.named("writer")
    assert any(operation.routine.startswith("MPI_File_write") for operation in application.operations)
    assert all(operation.granted_ns and operation.finished_ns for operation in application.operations)
    assert application.bytes("written") == 2000


def test_spawned_processes_belong_to_the_application(start, script, tmp_path):
    done = kit.finish(start([script, "spawn=2", f"open={tmp_path / 'f'}", "write=10", "close"]), LIMIT_S)
    assert done.code == 0, done.err
    analysis = traced()
    assert [(a.name, a.processes) for a in analysis.applications] == [("script", 4)]


def test_without_coordination_nothing_is_asked(start, script, tmp_path):
    run = start([script, f"open={tmp_path / 'f'}", "write=1000", "close"], "--no-coordinate")
    done = kit.finish(run, LIMIT_S)
    assert (done.code, done.err) == (0, "")
    assert (tmp_path / "f").read_bytes() == b"A" * 1000 + b"B" * 1000
    assert traced().decisions == []


def test_output_is_the_programs(start):
    done = kit.finish(start(["sh", "-c", f"echo out; echo err >&2; {LASTS}"]), LIMIT_S)
    assert (done.code, done.out, done.err) == (0, "out\nout\n", "err\nerr\n")


@pytest.mark.parametrize("code", [3, 127])
def test_exit_code_is_the_launchers(start, mpi, code):
    done = kit.finish(start(["sh", "-c", f"{LASTS}; exit {code}"]), LIMIT_S)
    assert done.code == code
    assert done.warnings == []


def test_a_terminated_job_ends_and_its_daemon_hears_of_it(start, script, tmp_path):
    with daemon_module.connect_or_start()[0] as bus:
        gone = bus.subscribe("application=sleeper")
        run = start([script, f"open={tmp_path / 'f'}", "write=10", "pause=60"], "--name", "sleeper")
        while (event := gone.wait(LIMIT_S)) is not None and event.type != "FINISH_IO":
            pass
        assert event is not None, "the application never wrote"
        run.send_signal(signal.SIGTERM)
        assert run.wait(LIMIT_S) != 0
        while (event := gone.wait(LIMIT_S)) is not None and event.type not in ("BYE", "LOST"):
            pass
        assert event is not None, "the daemon never heard of the end"
    run.communicate()
