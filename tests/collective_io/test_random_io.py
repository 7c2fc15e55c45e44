"""Random collective accesses, each compared with a byte-by-byte model of the file (tests/programs/random_io.cpp).

The default is 500 cases; `./dev test --long [N]` sets $HOCKET_RANDOM_CASES. If HOCKET_PREFIX names a libhocket with
address or undefined-behaviour sanitizers, their runtime is preloaded before it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import threading
from pathlib import Path

import pytest
import restless_policy
import runtime_kit as kit
from daemon_kit import Daemon
from hocket.bus import Bus, BusError
from stand_in_hocketd import StandIn
from story import Story

PROGRAM = kit.PROGRAMS / "random_io.cpp"
SEED = int(os.environ.get("HOCKET_RANDOM_SEED", "2026"))
CASES = int(os.environ.get("HOCKET_RANDOM_CASES", "500"))
BATCH = 250  # cases of one mpiexec
LIMIT_S = 600  # of a batch; the program itself ends a case that hangs
pytestmark = pytest.mark.timeout(LIMIT_S + 4 * CASES)
# Each entry has the MPI, its ranks, and its share of all cases.
SHARES = [("mpich", 4, 0.4), ("mpich", 3, 0.2), ("mpich", 7, 0.1), ("openmpi", 4, 0.3)]


class MapChanges:
    """Takes servers out of the map and back into it, one after the other, as long as it is entered."""

    def __init__(self, daemon: Daemon, servers: list[str]):
        self.daemon, self.servers = daemon, servers
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.change)

    def change(self) -> None:
        with Bus.connect(self.daemon.socket) as bus:
            for server in itertools.cycle(self.servers):
                for action in ("drain", "add"):
                    bus.send("SET_SERVER", server=server, action=action)
                    if self.ends.wait(0.1):
                        return

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.ends.set()
        self.thread.join()


class Assignments(MapChanges):
    """Gives every application other servers of its own, or all again, as long as it is entered."""

    def change(self) -> None:
        with Bus.connect(self.daemon.socket) as bus:
            for servers in itertools.cycle((*self.servers, "all")):
                with contextlib.suppress(BusError):  # it has ended since
                    for one in bus.list().applications:
                        wanted = {"server": servers, "action": "assign", "for_application": one["application"]}
                        bus.send("SET_SERVER", **wanted)
                if self.ends.wait(0.1):
                    return


@pytest.fixture
def restless_daemon(start_daemon, tmp_path: Path) -> Daemon:
    return restless_policy.start(start_daemon, tmp_path)


@pytest.fixture
def daemon(request: pytest.FixtureRequest, start_daemon) -> Daemon:
    """A daemon with the default settings, or one that knows the restless policy."""
    return request.getfixturevalue("restless_daemon") if getattr(request, "param", None) else start_daemon()


def sanitizers_of(library: Path) -> list[str]:
    """Return the runtimes that must be loaded before a library built with sanitizers, which does not list them as
    needed.
    """
    code = library.read_bytes()
    needed = [name for name in ("asan", "ubsan") if f"\0__{name}_".encode() in code]
    found = [["g++", f"-print-file-name=lib{name}.so"] for name in needed]
    return [subprocess.run(ask, capture_output=True, text=True, check=True, timeout=20).stdout.strip() for ask in found]


def run_cases(
    mpi: kit.Mpi, programs: Path, file: Path, settings: dict, ranks: int, first: int, last: int, *words: str
) -> None:
    runtimes = sanitizers_of(mpi.libhocket)
    program = mpi.compile_with([PROGRAM], programs / f"random_io-{mpi.name}")
    preload = ":".join([*runtimes, str(mpi.libhocket)])
    settings |= {"HOCKET_IO": "hocket", "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    while first < last:
        cases = min(BATCH, last - first)
        arguments = [program, file, SEED, cases, first, *words]
        run = mpi.run(arguments, settings, ranks=ranks, preload=preload, limit_s=LIMIT_S)
        assert run.code == 0, f"{mpi.name}, {ranks} ranks, random_io FILE {SEED} {cases} {first}:\n{run.out}{run.err}"
        assert run.out.startswith(f"{cases} cases, "), run.out
        first += cases


@pytest.mark.parametrize("name, ranks, share", SHARES, ids=[f"{mpi}-{ranks}" for mpi, ranks, _ in SHARES])
def test_files_memory_and_statuses_are_those_of_a_model(
    library: Path, built_programs: tuple[Path, dict], tmp_path: Path, name: str, ranks: int, share: float
) -> None:
    mpi = {"mpich": kit.mpich, "openmpi": kit.openmpi}[name](library)
    run_cases(mpi, built_programs[0], tmp_path / "f", {}, ranks, 0, round(CASES * share))


@pytest.mark.parametrize("name, ranks, share", [("mpich", 4, 0.2), ("openmpi", 3, 0.1)], ids=["mpich", "openmpi"])
def test_so_they_are_when_interrupted_after_each_round(
    library: Path, built_programs: tuple[Path, dict], tmp_path: Path, name: str, ranks: int, share: float
) -> None:
    controller = StandIn(tmp_path / "s", interrupts=True)
    try:
        mpi = {"mpich": kit.mpich, "openmpi": kit.openmpi}[name](library)
        settings = kit.settings(controller.socket)
        run_cases(mpi, built_programs[0], tmp_path / "f", settings, ranks, 0, round(CASES * share))
        paused = controller.events("PAUSED_IO")
        # Each case has four to nine. On a busy machine the thread that receives PAUSE_IO may run late.
        assert len([event for event in paused if event["round"] > 0]) > CASES * share / 10, "few were interrupted"
    finally:
        controller.kill()


def test_so_they_are_through_io_servers(
    library: Path, daemon: Daemon, start_server, story: Story, built_programs: tuple[Path, dict], served_directory: Path
) -> None:
    """Hints give some files one, two, or none of the servers."""
    start_server("s1"), start_server("s2")
    run_cases(
        kit.mpich(library),
        built_programs[0],
        served_directory / "f",
        kit.settings(daemon.socket),
        3,
        0,
        round(CASES * 0.2),
    )
    assert story.all("SERVER_MAP")


@pytest.mark.parametrize("name, ranks", [("mpich", 3), ("openmpi", 4)], ids=["mpich", "openmpi"])
@pytest.mark.parametrize("changes", [None, MapChanges, Assignments], ids=["one map", "many maps", "own maps"])
def test_so_they_are_through_servers_that_write_behind(
    library: Path,
    daemon: Daemon,
    start_server,
    built_programs: tuple[Path, dict],
    served_directory: Path,
    name: str,
    ranks: int,
    changes: type[MapChanges] | None,
) -> None:
    """Servers that hold data for different times.

    In the second case they leave the map and join it all the time; in the third the application gets other ones of its
    own.
    """
    start_server("s1", "--write-behind")
    start_server("s2", "--write-behind", "--inject", "delay=20ms")
    mpi = {"mpich": kit.mpich, "openmpi": kit.openmpi}[name](library)
    with changes(daemon, ["s2", "s1"]) if changes else contextlib.nullcontext():
        run_cases(
            mpi,
            built_programs[0],
            served_directory / "f",
            kit.settings(daemon.socket),
            ranks,
            0,
            round(CASES * 0.1),
            "behind",
        )


@pytest.mark.parametrize("daemon", ["restless"], indirect=True)
@pytest.mark.parametrize("name, ranks", [("mpich", 3), ("openmpi", 4)], ids=["mpich", "openmpi"])
@pytest.mark.parametrize("assigned", [(), ("s1,s2", "s3,s2", "all")], ids=["one map", "own maps"])
@pytest.mark.parametrize("behind", [False, True], ids=["through", "behind"])
def test_so_they_are_while_weights_and_settings_change(
    library: Path,
    daemon: Daemon,
    start_server,
    story: Story,
    built_programs: tuple[Path, dict],
    served_directory: Path,
    name: str,
    ranks: int,
    assigned: tuple[str, ...],
    behind: bool,
) -> None:
    """A policy gives servers other weights all the time, and the application other settings of its collective I/O."""
    how = ["--write-behind"] if behind else []
    start_server("s1", *how), start_server("s2", *how, "--inject", "delay=20ms"), start_server("s3", *how)
    mpi = {"mpich": kit.mpich, "openmpi": kit.openmpi}[name](library)
    settings = kit.settings(daemon.socket)
    with restless_policy.Restless(daemon, *assigned):
        words = ["behind"] if behind else []
        run_cases(mpi, built_programs[0], served_directory / "f", settings, ranks, 0, round(CASES * 0.04), *words)
    adopted = {line["epoch"] for line in story.all("MAP_ADOPTED")}
    weighed = {line["epoch"] for line in story.all("SERVER_MAP") if " weight:" in line["text"]}
    assert len(adopted & weighed) > 3, "few changes were adopted"
