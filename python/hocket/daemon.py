"""Starts, finds, and stops this user's hocketd."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hocket import paths
from hocket.connection import NoDaemonError, connect
from hocket.errors import HocketError

TYPE_CHECKING = False  # like typing.TYPE_CHECKING; importing typing takes longer than a daemon's start
if TYPE_CHECKING:
    from hocket.bus import Bus

START_LIMIT_S = 10.0
STOP_LIMIT_S = 10.0
START_POLL_S = 0.001  # shorter, because the start of an application waits for hocketd's socket


def connect_or_start(options: Sequence[str] = (), socket: Path | None = None) -> tuple[Bus, bool]:
    """Return the bus of the daemon at `socket` (default: paths.socket_path()), and True if this call started it.

    If no daemon runs, one is started with `options`. Raises HocketError if that fails.
    """
    from hocket.bus import Bus

    started = start_if_none(options, socket)
    return Bus.connect(paths.own_socket_path() if started else socket), started


def start_if_none(options: Sequence[str] = (), socket: Path | None = None) -> bool:
    """Start a daemon with `options` if none runs. Return True if this call started it.

    Raises HocketError if that fails. Two concurrent calls get the same daemon: the lock of the runtime directory lets
    only one lead, and the other hocketd ends.
    """
    try:
        connect(socket).close()
    except NoDaemonError:
        start(options)
        return True
    return False


def start(options: Sequence[str]) -> None:
    """Start hocketd in the background, and wait until a daemon listens, this one or another."""
    directory = paths.make_runtime_dir()
    program = paths.hocketd()
    if not program.exists():
        raise HocketError(f"no hocketd at {program}; is hocket built and installed? (HOCKET_PREFIX says where)")
    with os.fdopen(os.memfd_create("messages"), "w+b") as messages:
        first = spawn([str(program), "--dir", str(directory), *options], messages.fileno())
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline:
            try:
                connect(directory / "hocketd.sock").close()
                return
            except NoDaemonError:
                ended = not is_alive(first)
            if ended and not _lock_holder(directory):
                messages.seek(0)
                said = messages.read().decode(errors="replace").strip().splitlines()
                why = said[-1].removeprefix("hocketd: ") if said else f"see {directory}/hocketd.log"
                raise HocketError(f"hocketd did not start: {why}")
            time.sleep(START_POLL_S)
    raise HocketError(f"hocketd does not listen after {START_LIMIT_S:g} s; see {directory}/hocketd.log")


def stop() -> int | None:
    """Stop the running daemon in order and wait for its end. Return its pid, or None if none ran."""
    import select  # imported here, to keep the start of every run fast
    import signal

    from hocket.bus import Bus

    try:
        with Bus.connect(paths.own_socket_path()) as bus:
            # The daemon's own word for its pid may be of another PID namespace, where that number is another process.
            pid = bus.daemon_process()
            if pid == 0:
                raise HocketError("hocketd runs in another PID namespace; run 'hocket daemon stop' there")
            process = os.pidfd_open(pid)
            try:
                _confirm(bus, pid)  # so that the process has not ended before `process` was opened
                signal.pidfd_send_signal(process, signal.SIGTERM)
                if not select.select([process], [], [], STOP_LIMIT_S)[0]:
                    raise HocketError(
                        f"hocketd {pid} has not ended {STOP_LIMIT_S:g} s after SIGTERM; see its log, or kill -9 it"
                    )
            finally:
                os.close(process)
    except NoDaemonError:
        return None
    except ProcessLookupError:
        pass  # it has ended by itself
    except OSError as error:
        raise HocketError(f"cannot stop hocketd {pid}: {error.strerror}") from error
    return pid


def default_policy() -> str:
    """Return the policy of a hocketd without options. Raises HocketError."""
    import subprocess  # imported here, to keep the start of every run fast
    import tomllib

    try:
        told = subprocess.run([paths.hocketd(), "--print-config"], capture_output=True, text=True, check=True)
        return str(tomllib.loads(told.stdout)["coordinator"]["policy"])
    except (OSError, subprocess.CalledProcessError, ValueError, KeyError) as error:
        raise HocketError(f"'{paths.hocketd()} --print-config' does not print the policy: {error}") from error


def spawn(command: list[str], stderr: int) -> int:
    """Start a process that is nobody's child and has no terminal. Return its pid. `stderr` becomes its own.

    The calling process may become a launcher later, which must not find a child that it has not started itself.
    """
    if sys.stdout is not None:  # it was closed when this process began
        sys.stdout.flush()
    read_end, write_end = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.setsid()
        pid = os.fork()
        if pid:
            os.write(write_end, str(pid).encode())
            os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.dup2(stderr, 2)
        os.chdir("/")
        try:
            os.execv(command[0], command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}".encode())
            os._exit(127)
    os.close(write_end)
    os.waitpid(middle, 0)
    with os.fdopen(read_end) as pipe:
        return int(pipe.read())


def is_alive(pid: int) -> bool:
    """Return True if the process exists and has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _confirm(bus: Bus, pid: int) -> None:
    """Raise BusError if the daemon does not answer. An agent without a leader does not, but holds its lock."""
    from hocket.bus import BusError

    try:
        bus.list()
    except BusError:
        if _lock_holder(paths.runtime_dir()) != pid:
            raise


def _lock_holder(directory: Path) -> int:
    """Return the pid in the lock file if that process is alive, else 0."""
    try:
        pid = int((directory / "hocketd.lock").read_text().strip() or 0)
    except (OSError, ValueError):
        return 0
    return pid if pid and is_alive(pid) else 0
