"""hocket run waits for cores that an expanded application returns, and never for others.

The expanded application is a stand-in on the bus, and the launcher one that prints a line. The daemon is real.
"""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_kit import Daemon
from hocket.bus import Bus
from story import Story

pytestmark = pytest.mark.timeout(90)
LIMIT_S = 40
LAUNCHER = f"""#!{sys.executable}
import sys
print("HYDRA build details:" if sys.argv[1:] == ["--version"] else "started")
"""


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    path = tmp_path / "mpiexec"
    path.write_text(LAUNCHER)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def machine(start_daemon: Callable[..., Daemon], prefix: Path, tmp_path: Path, monkeypatch) -> Daemon:
    """A daemon with 8 cores, which gives free ones to applications that can grow."""
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))
    settings = 'policy = "fcfs+fair"\ncores = 8\nprobe = false\nprofiles = "none"\n'
    (tmp_path / "hocket.toml").write_text(f"[coordinator]\n{settings}")
    return start_daemon("--config", tmp_path / "hocket.toml")


class Malleable:
    """A stand-in for an application of 4 processes that does what hocketd asks, when the test says so."""

    def __init__(self) -> None:
        self.bus = Bus.connect()
        self.processes = 4
        self.bus.send(
            "HELLO", job="m", application_asked="m", program="/x", mpi="mpich", version="t", pid=1, processes=4
        )
        self._report()

    def _report(self) -> None:
        self.bus.send("MALLEABLE", processes=self.processes, iteration=1, method="merge")

    def asked(self) -> dict[str, Any]:
        while (command := self.bus.answer(LIMIT_S)) is not None:
            if command.type == "RECONFIGURE":
                return dict(command.fields)
        raise AssertionError("no RECONFIGURE")

    def obey(self, command: dict[str, Any]) -> None:
        before, self.processes = self.processes, command["processes"]
        self._report()
        self.bus.send("RECONFIGURATION", request=command["request"], done=True, sources=before, targets=self.processes)


@pytest.fixture
def expanded(machine: Daemon) -> Iterator[Malleable]:
    """An application that has all 8 cores, 4 of them from the policy."""
    one = Malleable()
    for index in range(3):
        one.bus.send(
            "ITERATIONS", iteration=10 * (index + 1), iterations=10, processes=4, control_every=1,
            elapsed_ns=10**9, cpu_ns=10**9, comm_ns=0,
        )  # fmt: skip
    command = one.asked()
    assert command["processes"] == 8
    one.obey(command)
    yield one
    one.bus.close()


def start(launcher: Path, *options: str, programs: tuple[str, ...] = ("-n", "4", "/bin/true")) -> subprocess.Popen:
    words = [sys.executable, "-m", "hocket.cli", "run", *options, "--", str(launcher), *programs]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def hocket(*words: object) -> str:
    command = [sys.executable, "-m", "hocket.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout


def test_it_waits_until_the_cores_are_back(
    machine: Daemon, expanded: Malleable, launcher: Path, prefix: Path, tmp_path: Path
) -> None:
    story = Story(machine)
    run = start(launcher)
    command = expanded.asked()
    assert command["processes"] == 4
    story.awaits("CORES_FOR", wait=True, missing=4)
    assert run.poll() is None, "it starts nothing on busy cores"
    expanded.obey(command)
    out, err = run.communicate(timeout=LIMIT_S)
    assert (run.returncode, out) == (0, "started\n"), err
    assert "waiting for 4 cores that others return, at most 60 s" in err
    assert story.awaits("DECISION", action="start")["reason"]["missing"] == 0
    got = "before it started, and got 4 cores that others gave back"
    assert got in hocket("explain")
    trace = machine.trace
    assert machine.stop() == 0
    hocket("report", trace, "-o", tmp_path / "report")
    assert got in (tmp_path / "report" / "report.html").read_text()
    replay = subprocess.run(
        [prefix / "bin" / "hocketd", "--replay", trace], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert (replay.returncode, replay.stderr) == (0, "")


def test_the_wait_is_bounded(machine: Daemon, expanded: Malleable, launcher: Path) -> None:
    run = start(launcher, "--wait-for-cores", "0.5")
    out, err = run.communicate(timeout=LIMIT_S)
    assert (run.returncode, out) == (0, "started\n")
    assert "4 are still missing" in err


def test_ctrl_c_ends_the_wait_and_starts_nothing(machine: Daemon, expanded: Malleable, launcher: Path) -> None:
    story = Story(machine)
    run = start(launcher)
    story.awaits("CORES_FOR", wait=True)
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=LIMIT_S)
    assert (run.returncode, out) == (130, "")


@pytest.mark.parametrize(
    ("programs", "processes"),
    [
        (("-n", "1", "/bin/true", "-n", "9", ":", "-np", "3", "/bin/echo", "-n", "7"), [4]),
        (("-n", "2", "/bin/true", ":", "/bin/true"), []),
    ],
    ids=["two programs", "one without a number"],
)
def test_it_asks_for_the_cores_of_all_programs(
    machine: Daemon, launcher: Path, programs: tuple[str, ...], processes: list[int]
) -> None:
    story = Story(machine)
    out, err = start(launcher, programs=programs).communicate(timeout=LIMIT_S)
    assert out == "started\n", err
    if processes:
        story.awaits("ASK_CORES")
    assert [one["processes"] for one in story.all("ASK_CORES")] == processes


def test_it_does_not_wait_for_cores_that_nobody_returns(machine: Daemon, launcher: Path) -> None:
    with Bus.connect() as other:
        other.send("HELLO", job="r", application_asked="r", program="/x", mpi="mpich", version="t", pid=1, processes=8)
        assert other.answer(LIMIT_S).type == "WELCOME"
        out, err = start(launcher).communicate(timeout=LIMIT_S)
    assert out == "started\n"
    assert "wait" not in err
