"""Paths of what is installed under the prefix, and of the runtime directory of this user's daemon."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from pathlib import Path

from hocket.errors import HocketError

SYSTEM_SOCKET = Path("/run/hocket/hocketd.sock")
SYSTEM_SOCKETS = re.compile(r"/run/hocket(-[^/]+)?/hocketd\.sock")  # one for each leader, if there are several


def prefix() -> Path:
    """Return where hocket is installed: $HOCKET_PREFIX, else the Python environment of this command."""
    return Path(os.environ.get("HOCKET_PREFIX") or sys.prefix)


def hocketd() -> Path:
    return prefix() / "bin" / "hocketd"


def hocket_server() -> Path:
    return prefix() / "bin" / "hocket-server"


def simulator() -> Path:
    return prefix() / "libexec" / "hocket" / "hocket-sim"


def apps() -> Path:
    """Return the directory of the programs of apps/; their names end with the name of their MPI."""
    return prefix() / "lib" / "hocket" / "apps"


def libhocket(mpi: str) -> Path:
    """Return the library to preload for `mpi`, which is "mpich" or "openmpi"."""
    return prefix() / "lib" / "hocket" / f"libhocket-{mpi}.so"


def runtime_dir() -> Path:
    """Return the directory of the daemon's socket, lock, log, and traces. It need not exist.

    docs/design/environment.md says where it is. src/control/bus/local_socket.cpp chooses alike.
    """
    if chosen := os.environ.get("HOCKET_DIR"):
        return Path(chosen).absolute()  # absolute, because hocketd has another working directory
    private = _private_dir()
    session = os.environ.get("XDG_RUNTIME_DIR")
    own = Path(session).absolute() / "hocket" if session else private
    job = slurm_job()
    if not job or _is_answered(own / "hocketd.sock"):
        return own
    return _dir_of_job(job)


def _private_dir() -> Path:
    return Path(f"/tmp/hocket-{os.getuid()}")


def _dir_of_job(job: str) -> Path:
    return _private_dir().with_name(f"{_private_dir().name}-job{job}")


def is_of_slurm_job() -> bool:
    """Return True if the daemon in the runtime directory is that of the Slurm job around this process alone."""
    job = slurm_job()
    return bool(job) and runtime_dir() == _dir_of_job(job)


def slurm_job() -> str:
    """Return the number of the Slurm job around this process; "" if there is none.

    A daemon that is started in a job ends with it, so it serves this job alone.
    """
    job = os.environ.get("SLURM_JOB_ID", "")
    return job if job.isascii() and job.isdecimal() else ""


def socket_path() -> Path:
    """Return the socket that a tool connects to: that of the surrounding job, if it runs in one.

    Without $HOCKET_DIR it is that of the daemon of all users, if there is one. src/control/bus/local_socket.cpp chooses
    alike.
    """
    if chosen := os.environ.get("HOCKET_SOCKET"):
        return Path(chosen)
    if not os.environ.get("HOCKET_DIR") and system_owner(SYSTEM_SOCKET) is not None and _is_answered(SYSTEM_SOCKET):
        return SYSTEM_SOCKET
    return own_socket_path()


def _is_answered(path: Path) -> bool:
    """Return True if a process listens there. The socket of a daemon that was killed stays."""
    import socket  # late: most runs need it elsewhere only

    with socket.socket(socket.AF_UNIX) as one:
        one.setblocking(False)
        try:
            return one.connect_ex(str(path)) in (0, errno.EAGAIN)
        except OSError:  # the path is too long for a socket
            return False


def own_socket_path() -> Path:
    """Return the socket of this user's own daemon."""
    return runtime_dir() / "hocketd.sock"


def server_socket_path() -> Path:
    """Return the socket of the daemon that may use this user's I/O servers: not that of the daemon of all users."""
    chosen = Path(os.environ.get("HOCKET_SOCKET") or own_socket_path())
    return own_socket_path() if SYSTEM_SOCKETS.fullmatch(str(chosen)) else chosen


def system_owner(where: Path) -> int | None:
    """Return the user whose daemon serves all users at this socket: root has made its directory.

    None if there is no such daemon, or the socket is elsewhere.
    """
    if not SYSTEM_SOCKETS.fullmatch(str(where)):
        return None
    try:
        above, directory = where.parent.parent.lstat(), where.parent.lstat()
    except OSError:
        return None
    others_write = stat.S_IWGRP | stat.S_IWOTH
    made_by_root = above.st_uid == 0 and not above.st_mode & others_write
    usable = stat.S_ISDIR(directory.st_mode) and not directory.st_mode & others_write
    return directory.st_uid if made_by_root and usable else None


def target_names() -> dict[str, str]:
    """Return the variable of the operator's names of targets, unless the environment has it or there are none."""
    if "HOCKET_TARGET_NAMES" in os.environ:
        return {}
    try:
        return {"HOCKET_TARGET_NAMES": socket_path().with_name("target-names").read_text(encoding="utf-8")}
    except OSError:
        return {}


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
