"""One run of `./dev bench regret`: programs under `hocket run` and their own hocketd, which has no history."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread

from hocket.analysis import Analysis, analyse
from hocket.errors import HocketError
from hocket.paths import prefix
from hocket.private_daemon import private_daemon
from hocket.process_group import end_group
from hocket.reconfigure.runs import last_line
from hocket.trace import read_trace
from regret_programs import LOG, Drawn, Places, program, system_of, unknowns

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "demo"))

from mpi_launch import Mpi  # noqa: E402 (needs the path)
from storage import Storage  # noqa: E402 (needs the path)

RUN_LIMIT_S = 180
GENERATE_LIMIT_S = 60
SPIN = "while True: pass"


@dataclass(frozen=True)
class Told:
    """The measurements of one program of a run, in seconds and bytes.

    `total_s` is from its launch to its end, the time of `hocket run` included.
    """

    name: str
    total_s: float
    io_s: float
    wait_s: float
    bytes_read: int
    bytes_written: int

    @property
    def io_with_waits_s(self) -> float:
        return self.io_s + self.wait_s

    def as_json(self) -> dict:
        return asdict(self)


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Run `count` processes that compute all the time."""
    loops = [subprocess.Popen([sys.executable, "-c", SPIN], start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            end_group(loop)


class _Running:
    """A started program; a thread records its end."""

    def __init__(self, one: Drawn, command: Sequence[object], environment: dict[str, str], messages: Path):
        self.drawn, self._messages = one, messages
        with messages.open("wb") as said:
            self.launched_s = time.monotonic()
            self._process = subprocess.Popen(
                list(map(str, command)),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
        self.ended_s = 0.0
        self._waiter = Thread(target=self._wait, daemon=True)
        self._waiter.start()

    def _wait(self) -> None:
        self._process.wait()
        self.ended_s = time.monotonic()

    def finish(self, deadline_s: float) -> None:
        """Wait for the end. Raises HocketError if the program failed or has not ended by the deadline."""
        self._waiter.join(max(0.0, deadline_s - time.monotonic()))
        said = self._messages.read_text(errors="replace")
        if self._waiter.is_alive():
            raise HocketError(f"{self.drawn.name} did not end within {RUN_LIMIT_S} s: {last_line(said)}")
        if self._process.returncode != 0 or "hocket:" in said:
            raise HocketError(f"{self.drawn.name} ended with code {self._process.returncode}: {last_line(said)}")

    def end(self) -> None:
        end_group(self._process)


class Runs:
    """Makes runs on `storage`; the systems of the solvers are below `directory`."""

    def __init__(self, directory: Path, storage: Storage, traces: Path | None = None) -> None:
        self.storage, self._traces = storage, traces
        self.mpi = Mpi("mpich")
        self._hocket = Path(sys.executable).parent / "hocket"
        self._systems = directory / "systems"
        self._systems.mkdir()

    def _places(self, target: Path) -> Places:
        return Places(lambda name: self.mpi.app(name, prefix()), target, self._systems)

    @contextmanager
    def systems(self, programs: Sequence[Drawn]) -> Iterator[None]:
        """Provide the files that the programs of a round read. Raises HocketError."""
        places = self._places(self.storage.directory)
        made = {system_of(one, places): one for one in programs if one.kind.startswith("jacobi")}
        try:
            for path, one in made.items():
                words = ["--system", path, "--generate", unknowns(one), "--iterations", 0]
                command = self.mpi.command(one.ranks, places.app("jacobi"), *words)
                done = subprocess.run(
                    command, env=self.mpi.environment(), capture_output=True, text=True, timeout=GENERATE_LIMIT_S
                )
                if done.returncode != 0:
                    raise HocketError(f"jacobi could not generate its system: {last_line(done.stderr)}")
            yield
        finally:
            for path in made:
                path.unlink(missing_ok=True)

    def run(self, name: str, policy: str, programs: Sequence[Drawn]) -> list[Told]:
        """Run all programs to their end, each from its start time. Raises HocketError.

        fio ends with the last of the other programs.
        """
        with ExitStack() as stack:
            # The path of a socket must be short.
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hocket-regret-", dir="/tmp")))
            target = Path(tempfile.mkdtemp(prefix="run-", dir=self.storage.directory))
            stack.callback(shutil.rmtree, target, ignore_errors=True)
            settings = {"policy": policy, "profiles": str(directory / "profiles.db")}
            with private_daemon(directory, settings) as trace:
                ended = self._run(programs, directory, target)
            if self._traces:
                self._traces.mkdir(parents=True, exist_ok=True)
                shutil.copy(trace, self._traces / f"{name}.jsonl")
            analysis = analyse(read_trace(trace))
            return [_told(one, analysis) for one in ended if one.drawn.coordinated]

    def _run(self, programs: Sequence[Drawn], directory: Path, target: Path) -> list[_Running]:
        environment = {**self.mpi.environment(), **self.storage.environment, "HOCKET_DIR": str(directory)}
        environment.pop("HOCKET_SOCKET", None)
        begun_s = time.monotonic()
        with ExitStack() as stack:
            running = []
            for one in sorted(programs, key=lambda one: one.start_s):
                own = target / one.name
                own.mkdir()
                words = program(one, self._places(own))
                if one.coordinated:
                    words = [self._hocket, "run", "--name", one.name, "--", *self.mpi.command(one.ranks, *words)]
                time.sleep(max(0.0, begun_s + one.start_s - time.monotonic()))
                running.append(_Running(one, words, environment, directory / f"{one.name}.stderr"))
                stack.callback(running[-1].end)
            for one in running:
                if one.drawn.coordinated:
                    one.finish(begun_s + RUN_LIMIT_S)
            return running


def _told(ended: _Running, analysis: Analysis) -> Told:
    name = ended.drawn.name
    try:
        seen = analysis.named(name)
    except KeyError:
        raise HocketError(f"hocketd's trace does not contain {name}") from None
    # A log of few bytes stays below what libhocket counts as I/O (intercept/volume.hpp).
    if seen.io_s() <= 0 and ended.drawn.kind != LOG:
        raise HocketError(f"hocketd saw no I/O of {name}")
    return Told(
        name,
        ended.ended_s - ended.launched_s,
        seen.io_s(),
        seen.wait_s(analysis.now_ns),
        seen.bytes("read"),
        seen.bytes("written"),
    )


def cores() -> int:
    return len(os.sched_getaffinity(0))
