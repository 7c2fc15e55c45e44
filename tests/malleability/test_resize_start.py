"""Processes that hocketd starts to join an application: started like the one that asks, watched, and ended."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from checkout import KIT, REPO
from hocket.bus import Bus
from processes import descendants

pytestmark = pytest.mark.timeout(60)
LIMIT_S = 30
PROGRAM = KIT / "stand_in_application.py"
PYTHON = str(REPO / "python")
OF_LAUNCHERS = {"PMI_RANK": "0", "PMI_FD": "5", "HYDI_CONTROL_FD": "251", "MPI_LOCALRANKID": "0", "PMIX_RANK": "0"}
OF_LAUNCHERS |= {"MPI_LOCALNRANKS": "1", "OMPI_COMM_WORLD_RANK": "0"}
OF_USERS = {"MPIR_CVAR_CH4_NETMOD": "ofi", "OMPI_MCA_osc": "^ucx", "MINE": "a=b c"}


class Process:
    """The requesting process; it and those that join write to one pipe."""

    def __init__(self, count: int, kind: str, directory: Path, environment: dict[str, str]):
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, str(count), kind, "two words"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=directory, env=environment, umask=0o027,
        )  # fmt: skip
        self._rest = b""

    def says(self) -> dict[str, Any]:
        """Return the next line of any of them."""
        deadline = time.monotonic() + LIMIT_S
        out = self.process.stdout.fileno()
        while b"\n" not in self._rest:
            ready = select.select([out], [], [], max(0, deadline - time.monotonic()))[0]
            chunk = os.read(out, 65536) if ready else b""
            assert chunk, f"process {self.process.pid} said nothing within {LIMIT_S} s, or ended; so far {self._rest!r}"
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def told(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the daemon's answer, and the earlier lines of the processes that joined."""
        others = []
        while "told" not in (line := self.says()):
            others.append(line)
        return line, others

    def take(self, command: str) -> None:
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        assert self.says() == {"took": command}


@pytest.fixture
def start(hocket_dir: Path, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []
    environment = {**os.environ, **OF_LAUNCHERS, **OF_USERS, "HOCKET_JOB": "job-1", "PYTHONPATH": PYTHON}

    def begin(count: int, kind: str, **more: str) -> Process:
        started.append(Process(count, kind, tmp_path, environment | more))
        return started[-1]

    yield begin
    for one in started:
        one.process.kill()
        one.process.wait(LIMIT_S)
        one.process.stdin.close()
        one.process.stdout.close()


def wait_until_gone(pids: list[int]) -> None:
    """Wait until the processes are gone. Zombies count as present: the daemon must reap them."""
    deadline = time.monotonic() + LIMIT_S
    while left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, f"processes {left} are still there"
        time.sleep(0.01)  # the end of another parent's child is not reported to this process


def test_they_run_like_the_process_that_asks(daemon, start, tmp_path):
    app = start(2, "ready", HOCKET_JOIN_WAS="unset")
    answer, joined = app.told()
    assert (answer["told"], answer["request"], answer["failed"]) == ("PROCESSES_READY", 7, "")
    assert len(joined) == 2
    for one in joined:
        assert one["port"] == "the port$1 #"
        assert one["cwd"] == str(tmp_path)
        assert one["arguments"] == ["2", "ready", "two words"]
        assert one["umask"] == 0o027
        assert one["session"] == one["joined"], "it has a session of its own"
        assert one["blocked"] == []
        assert one["descriptors"] == [0, 1, 2], "the daemon's descriptors are not inherited"
        environment = one["environment"]
        assert {key: environment.get(key) for key in OF_USERS} == OF_USERS
        assert not OF_LAUNCHERS.keys() & environment.keys()
        assert environment["HOCKET_JOB"] == "job-1"
    with Bus.connect() as bus:
        listed = bus.list().applications
    assert [(a["application"], a["processes"], a["malleable"]) for a in listed] == [("app", 1, True)]
    app.take("done")
    with Bus.connect() as bus:
        assert bus.list().applications[0]["processes"] == 3
    app.take("stop")  # too late: they have joined
    assert all(Path(f"/proc/{one['joined']}").exists() for one in joined)


def test_they_start_on_the_cores_of_their_places(daemon, start):
    cores = sorted(os.sched_getaffinity(0))
    app = start(3, "ready", PLACES=f"localhost:{cores[0]} {socket.gethostname()}:{cores[-1]} localhost")
    answer, joined = app.told()
    assert answer["failed"] == ""
    assert sorted(one["cores"] for one in joined) == sorted([cores[:1], cores[-1:], cores])


@pytest.mark.parametrize(
    ("places", "why"),
    [
        ("localhost elsewhere:0", "starts processes only on its own node, not on 'elsewhere'"),
        ("localhost", "1 places for 2 processes: give one for each, or none"),
        ("localhost localhost:x", "'localhost:x' is no place: write NODE or NODE:CORE"),
    ],
)
def test_places_that_are_not_to_be_had_are_told(daemon, start, places, why):
    answer, joined = start(2, "ready", PLACES=places).told()
    assert (answer["told"], joined) == ("PROCESSES_READY", [])
    assert answer["failed"].startswith("processes cannot be started: ")
    assert answer["failed"].endswith(why)


@pytest.mark.parametrize(
    ("kind", "why"),
    [("exit", "ended with exit code 3 before it had joined"), ("signal", "was killed by signal 9 (SIGKILL)")],
)
def test_one_that_ends_too_early_is_told_with_the_reason(daemon, start, kind, why):
    app = start(3, kind)
    answer, _ = app.told()
    assert (answer["told"], answer["request"]) == ("PROCESSES_READY", 7)
    assert answer["failed"].startswith("joining process ")
    assert answer["failed"].endswith(why)
    wait_until_gone(list(descendants(daemon.pid)))


def test_a_program_that_is_gone_is_told(daemon, start, tmp_path):
    program = tmp_path / "program"
    program.write_bytes(Path(sys.executable).resolve().read_bytes())
    program.chmod(0o755)
    code = (
        "import sys, os; os.unlink(sys.argv[4]); sys.argv = [sys.argv[3], '2', 'ready']; exec(open(sys.argv[0]).read())"
    )
    environment = {**os.environ, "HOCKET_JOB": "j", "PYTHONHOME": sys.base_prefix}
    environment["PYTHONPATH"] = os.pathsep.join([PYTHON, *(path for path in sys.path if "site-packages" in path)])
    process = subprocess.Popen(
        [program, "-c", code, "2", "ready", PROGRAM, program], env=environment, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    answer = json.loads(process.stdout.readline())
    process.communicate(timeout=LIMIT_S)
    assert answer["told"] == "PROCESSES_READY"
    assert answer["failed"] == (
        f"processes cannot be started: {program}: it was removed or replaced since the requesting process started"
    )


def test_those_that_are_not_ready_in_time_are_ended(start_daemon, start, tmp_path):
    settings = tmp_path / "hocket.toml"
    settings.write_text("[coordinator]\njoin_limit_s = 2\n")
    start_daemon("--config", settings)
    app = start(2, "silent")
    answer, joined = app.told()
    assert "of 2 processes were ready after 2 s" in answer["failed"]
    wait_until_gone([one["joined"] for one in joined])


def test_those_that_are_not_wanted_are_ended(daemon, start):
    app = start(2, "ready")
    _, joined = app.told()
    app.take("stop")
    wait_until_gone([one["joined"] for one in joined])


def test_they_end_with_the_application_that_they_have_not_joined(daemon, start):
    app = start(2, "ready")
    _, joined = app.told()
    app.process.kill()
    wait_until_gone([one["joined"] for one in joined])


def test_they_go_on_when_the_daemon_is_killed(daemon, start):
    app = start(2, "ready")
    _, joined = app.told()
    app.take("done")
    daemon.kill()
    went_on = {app.says()["went_on"], app.says()["went_on"]}
    assert went_on == {one["joined"] for one in joined}


def test_another_daemon_can_lead_while_they_run(daemon, start, start_daemon):
    """The processes have not inherited the lock."""
    app = start(1, "ready")
    app.told()
    daemon.kill()
    with start_daemon().process.stdout:
        pass


def test_a_run_with_a_join_replays(daemon, start, prefix):
    app = start(2, "exit")
    assert app.told()[0]["failed"]
    daemon.stop()
    replay = subprocess.run(
        [prefix / "bin" / "hocketd", "--replay", daemon.trace], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert (replay.returncode, replay.stderr) == (0, "")
    outs = [line for line in daemon.trace.read_text().splitlines() if '"out": "START_PROCESSES"' in line]
    assert len(outs) == 1
    assert json.loads(outs[0])["pid"] == app.process.pid
