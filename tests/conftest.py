"""Fixtures for the scenarios of several processes.

Every test runs in its own runtime directory (`hocket_dir`). When a test ends, its fixtures kill every process that it
started, and the descendants of these. Every wait has a time limit; the failure names the wait that exceeded its limit.
"""

import contextlib
import ctypes
import functools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hosts
import put_get_kit
import pytest
import runtime_kit
from api_kit import build
from checkout import PROGRAMS, REPO
from daemon_kit import STOP_LIMIT_S, Daemon
from processes import descendants, reap
from server_kit import Server
from stand_in_hocketd import StandIn
from story import Story

# A shell that starts the tests in the background makes them ignore SIGINT. Every process they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def no_profiles_of_others(tmp_path_factory) -> None:
    """Isolate the profiles that hocketd keeps: no test reads those of another test or of the user."""
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def prefix() -> Path:
    """Return the prefix of the hocket under test: $HOCKET_PREFIX, else the checkout's .venv."""
    path = Path(os.environ.get("HOCKET_PREFIX", REPO / ".venv")).resolve()
    assert (path / "bin" / "hocketd").exists(), (
        f"no bin/hocketd in {path}: ./dev build installs it (or set HOCKET_PREFIX)"
    )
    return path


@pytest.fixture(autouse=True)
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test its own directory for temporary files.

    A killed launcher of Open MPI leaves behind a directory named by its process id. A later launcher that gets the same
    id does not start. The directory is in /tmp because it holds sockets, whose paths must be short.
    """
    with tempfile.TemporaryDirectory(prefix="hocket-test-", dir="/tmp", ignore_cleanup_errors=True) as directory:
        monkeypatch.setenv("TMPDIR", directory)
        yield


@pytest.fixture
def hocket_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A private runtime directory, named by $HOCKET_DIR. It is in /tmp: a socket's path has at most 107 characters."""
    directory = Path(tempfile.mkdtemp(prefix="hocket-test-", dir="/tmp"))
    monkeypatch.setenv("HOCKET_DIR", str(directory))
    monkeypatch.delenv("HOCKET_SOCKET", raising=False)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def start_daemon(prefix: Path, hocket_dir: Path) -> Iterator[Callable[..., Daemon]]:
    """Return a function that starts `hocketd --dir <hocket_dir> ARGUMENTS…` and waits until it accepts connections.

    A test may call it again after the daemon has ended.
    """
    daemons: list[Daemon] = []

    def start(*arguments: str, **popen) -> Daemon:
        daemons.append(Daemon(prefix / "bin" / "hocketd", hocket_dir, *arguments, **popen))
        return daemons[-1]

    yield start
    for daemon in daemons:
        daemon.kill()


@pytest.fixture
def daemon(start_daemon: Callable[..., Daemon]) -> Daemon:
    """A daemon with the default settings."""
    return start_daemon()


@pytest.fixture
def story(daemon: Daemon) -> Story:
    return Story(daemon)


@pytest.fixture
def served_directory(tmp_path: Path) -> Path:
    directory = tmp_path / "served"
    directory.mkdir()
    return directory


@pytest.fixture
def start_server(
    prefix: Path, hocket_dir: Path, served_directory: Path, story: Story
) -> Iterator[Callable[..., Server]]:
    """Return a function that starts `hocket-server --name NAME ARGUMENTS…` for `served_directory`.

    The function waits until hocketd knows the server, and applications can use it.
    """
    servers: list[Server] = []

    def start(name: str, *arguments: object, **options: bool) -> Server:
        servers.append(Server(prefix, hocket_dir, served_directory, *arguments, name=name, **options))
        at = story.awaits("SERVER", server=name)["at"]
        if "--write-behind" in arguments:  # applications get the map after its answer
            story.awaits("MAP_STORED", since=at)
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


@pytest.fixture(scope="session", autouse=True)
def adopt_orphans() -> None:
    """Make this process the parent of orphaned descendants, so that the tests find and end them."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


@pytest.fixture(autouse=True)
def no_process_left(adopt_orphans: None) -> Iterator[None]:
    before = descendants(os.getpid())
    yield
    left = reap(descendants(os.getpid()) - before, STOP_LIMIT_S)
    assert not left, f"processes {sorted(left)} could not be killed"


# ---- libhocket: the tests of src/libhocket (runtime_kit.py) -------------------------------------------------------


@pytest.fixture(scope="session")
def library(prefix: Path) -> Path:
    """The folder lib/hocket of the hocket under test."""
    return prefix / "lib" / "hocket"


@pytest.fixture(params=["mpich", "openmpi"])
def mpi(request: pytest.FixtureRequest, library: Path) -> runtime_kit.Mpi:
    """Each MPI that libhocket is built for. Tests may ask for `mpich_on_two_nodes`, too."""
    return getattr(runtime_kit, request.param)(library)


@pytest.fixture(params=["mpich", "openmpi"])
def fortran(request: pytest.FixtureRequest, library: Path, tmp_path: Path) -> runtime_kit.Mpi:
    """Each MPI, with Debian's Fortran compiler wrappers."""
    if request.param == "mpich":
        return runtime_kit.debian_mpich(library, tmp_path)
    return runtime_kit.debian_openmpi(library)


@pytest.fixture(scope="session")
def built_programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    return tmp_path_factory.mktemp("programs"), {}


@pytest.fixture
def built_for(built_programs: tuple[Path, dict]) -> Callable[..., Path]:
    """Return a function that compiles a program of tests/programs for an MPI, once for each set of compiler flags."""
    directory, done = built_programs

    def build(mpi: runtime_kit.Mpi, source: str, *flags: str) -> Path:
        key = (mpi.name, source, flags)
        if key not in done:
            done[key] = mpi.compile(source, directory / f"{Path(source).stem}-{mpi.name}", "-pthread", *flags)
        return done[key]

    return build


@pytest.fixture
def built(mpi: runtime_kit.Mpi, built_for: Callable[..., Path]) -> Callable[..., Path]:
    """Return the function of `built_for`, bound to this test's MPI."""
    return functools.partial(built_for, mpi)


@pytest.fixture
def memory() -> Iterator[Path]:
    """A directory in memory, which adds no storage time."""
    with tempfile.TemporaryDirectory(prefix="hocket-test-", dir="/dev/shm") as directory:
        yield Path(directory)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("needs root to mount a small file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=True, timeout=STOP_LIMIT_S)
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True, timeout=STOP_LIMIT_S)  # a killed program may still have it


def preloaded(name: str, directory: Path) -> Path:
    """Compile a program of tests/programs into a library to be loaded before libc."""
    library = directory / f"{name}.so"
    source = PROGRAMS / f"{name}.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True, timeout=60)
    return library


@pytest.fixture(scope="session")
def spoiling_storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return preloaded("spoiling_storage", tmp_path_factory.mktemp("spoiling-storage"))


@pytest.fixture(scope="session")
def timed_storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return preloaded("timed_storage", tmp_path_factory.mktemp("timed-storage"))


@pytest.fixture(scope="session")
def lustre_layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return preloaded("lustre_layout", tmp_path_factory.mktemp("lustre-layout"))


@pytest.fixture(scope="session")
def faulty_storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return preloaded("faulty_storage", tmp_path_factory.mktemp("faulty-storage"))


@pytest.fixture(scope="session")
def stops_when_awake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return preloaded("stops_when_awake", tmp_path_factory.mktemp("stops-when-awake"))


@pytest.fixture(scope="session")
def never_ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return preloaded("never_ready", tmp_path_factory.mktemp("never-ready"))


@pytest.fixture
def controller(hocket_dir: Path) -> Iterator[StandIn]:
    """A stand-in for hocketd that grants every request at once."""
    started = StandIn(hocket_dir / "s")
    yield started
    started.kill()


# ---- several hosts (hosts.py) ---------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def host_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client by which hosts mount their shared directory. Tests that need hosts are skipped where none can be."""
    if reason := hosts.what_is_missing():
        pytest.skip(reason)
    return hosts.build_client(tmp_path_factory.mktemp("host-client"))


@pytest.fixture
def start_hosts(host_client: Path, prefix: Path, tmp_path: Path) -> Iterator[Callable[..., hosts.Hosts]]:
    """Return a function that starts hosts of these names (hosts.py). They end with the test."""
    with contextlib.ExitStack() as stack:

        def start(*names: str, **options: Any) -> hosts.Hosts:
            options = {"env": {"HOCKET_PREFIX": str(prefix)}, "client": host_client} | options
            return stack.enter_context(hosts.Hosts(tmp_path, *names, **options))

        yield start


# ---- put and get (put_get_kit.py) ----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def put_get(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(prefix, PROGRAMS / "put_get.c", tmp_path_factory.mktemp("put-get") / "put_get")


@pytest.fixture
def program(put_get: Path, tmp_path: Path, hocket_dir: Path) -> Iterator[Callable[..., put_get_kit.Program]]:
    """Return a function that starts programs; each of them is an application."""
    started: list[put_get_kit.Program] = []

    def start(**environment: str) -> put_get_kit.Program:
        started.append(put_get_kit.Program(put_get, tmp_path, **environment))
        return started[-1]

    yield start
    for one in started:
        # The end of stdin makes the program close what is open. SIGKILL means that a test killed the program. Any code
        # but 0 and 1 is an error, such as one that a sanitizer found.
        try:
            one.process.communicate(timeout=put_get_kit.LIMIT_S)
        finally:
            one.process.kill()
        assert one.process.returncode in (0, 1, -signal.SIGKILL), f"program {one.process.pid}"
