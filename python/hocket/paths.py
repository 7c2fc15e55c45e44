"""Paths of what is installed under the prefix, and of the runtime directory of this user's daemon."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from hocket.errors import HocketError


def prefix() -> Path:
    """Return where hocket is installed: $HOCKET_PREFIX, else the Python environment of this command."""
    return Path(os.environ.get("HOCKET_PREFIX") or sys.prefix)


def hocketd() -> Path:
    return prefix() / "bin" / "hocketd"


def hocket_server() -> Path:
    return prefix() / "bin" / "hocket-server"


def simulator() -> Path:
    return prefix() / "libexec" / "hocket" / "hocket-sim"


def libhocket(mpi: str) -> Path:
    """Return the library to preload for `mpi`, which is "mpich" or "openmpi"."""
    return prefix() / "lib" / "hocket" / f"libhocket-{mpi}.so"


def runtime_dir() -> Path:
    """Return the directory of the daemon's socket, lock, log, and traces. It need not exist.

    docs/design/environment.md says where it is.
    """
    if chosen := os.environ.get("HOCKET_DIR"):
        return Path(chosen).absolute()  # absolute, because hocketd has another working directory
    if session := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(session).absolute() / "hocket"
    return Path(f"/tmp/hocket-{os.getuid()}")


def socket_path() -> Path:
    """Return the socket that a tool connects to: that of the surrounding job, if it runs in one."""
    if chosen := os.environ.get("HOCKET_SOCKET"):
        return Path(chosen)
    return runtime_dir() / "hocketd.sock"


def make_runtime_dir() -> Path:
    """Return the runtime directory, and create it if needed.

    Raises HocketError if it is not private to this user.
    """
    directory = runtime_dir()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.lstat()
    except OSError as error:
        raise HocketError(f"cannot make the runtime directory {directory}: {error.strerror}; set HOCKET_DIR") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise HocketError(
            f"{directory} is not a directory of user {os.getuid()} (owner: {status.st_uid}); set HOCKET_DIR to one"
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise HocketError(f"{directory} is open to other users (mode {mode:04o}); chmod 700 it, or set HOCKET_DIR")
    return directory
