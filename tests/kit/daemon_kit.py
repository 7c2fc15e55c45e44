"""A hocketd of the prefix under test as a process, and a member of it that does what a test says."""

from __future__ import annotations

import select
import subprocess
from pathlib import Path

from hocket.bus import Bus

LIMIT_S = 20
START_LIMIT_S = 20  # sanitizer builds start slowly on a loaded machine
STOP_LIMIT_S = 10


class Daemon:
    """A hocketd of the prefix under test, in one runtime directory."""

    def __init__(self, program: Path, directory: Path, *arguments: str, **popen):
        self.directory = directory
        self.socket = directory / "hocketd.sock"
        self.log = directory / "hocketd.log"
        self.process = subprocess.Popen(
            [program, "--dir", directory, *map(str, arguments)], stdout=subprocess.PIPE, text=True, **popen
        )
        self._wait_until_it_accepts()

    def _wait_until_it_accepts(self) -> None:
        """Wait for the line on stdout in which hocketd reports its address."""
        readable, _, _ = select.select([self.process.stdout], [], [], START_LIMIT_S)
        line = self.process.stdout.readline() if readable else f"nothing within {START_LIMIT_S} s"
        if "listens on" not in line:
            self.kill()
            log = self.log.read_text() if self.log.exists() else "(no log)"
            raise AssertionError(
                f"hocketd in {self.directory} did not start: {line!r}, exit {self.process.returncode}\n{log}"
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def trace(self) -> Path:
        """The most recently written trace in this directory, which is that of the newest leader."""
        traces = sorted((self.directory / "traces").glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
        assert traces, f"hocketd {self.pid} wrote no trace in {self.directory}/traces"
        return traces[-1]

    def stop(self) -> int:
        """End the daemon with SIGTERM and return its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.wait()

    def wait(self, limit_s: float = STOP_LIMIT_S) -> int:
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"hocketd {self.pid} did not end within {limit_s} s") from None

    def kill(self) -> None:
        """Kill the daemon with SIGKILL, as if it had crashed."""
        self.process.kill()
        self.process.wait(STOP_LIMIT_S)


def hocketd(prefix: Path, *arguments: str, **run) -> subprocess.CompletedProcess:
    return subprocess.run(
        [prefix / "bin" / "hocketd", *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S, **run
    )


def one_line(text: str) -> str:
    """Check that the text is one line for users, and return it."""
    assert text.startswith("hocketd: ") and text.count("\n") == 1 and text.endswith("\n"), text
    return text


def hello(bus: Bus, name: str, job: str = "") -> None:
    """Become a member of an application of 2 processes."""
    bus.send("HELLO", job=job or f"job-{name}", application_asked=name, mpi="mpich", processes=2)
    assert bus.answer(LIMIT_S).type == "WELCOME"


def start_io(bus: Bus, request: int) -> str:
    """Request the target that all tests share, and return the type of the first answer."""
    bus.send("START_IO", request=request, target="dev:8:1", file="f", operation="MPI_File_write_all")
    return bus.answer(LIMIT_S).type
