"""Connects to hocketd's socket.

This module imports little, because `hocket run` only needs to know if a daemon listens.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

from hocket import paths
from hocket.errors import HocketError


class BusError(HocketError):
    """The bus cannot be used: no daemon, a daemon of another user, a connection that ended, or a refusal."""


class NoDaemonError(BusError):
    """No daemon listens at the socket."""


def connect(path: Path | str | None = None, timeout: float = 5.0) -> socket.socket:
    """Connect to the daemon at `path` (default: this user's, or that of the surrounding job).

    Raises NoDaemonError if nothing listens there, and BusError if the socket or the daemon belongs to another user.
    """
    where = Path(path) if path else paths.socket_path()
    try:
        _check_owner(where, where.stat().st_uid, f"the socket {where}")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        connection.settimeout(timeout)
        connection.connect(str(where))
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise NoDaemonError(f"no hocketd listens at {where}; start one with 'hocket daemon start'") from error
    except OSError as error:
        raise BusError(f"cannot connect to hocketd at {where}: {error.strerror or error}") from error
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _check_owner(where, struct.unpack("3i", credentials)[1], f"the daemon at {where}")
    return connection


def process_of(connection: socket.socket) -> int:
    """Return the process that listens at the other end, as the kernel knows it; 0: it is in another PID namespace."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", credentials)[0]


def _check_owner(where: Path, uid: int, what: str) -> None:
    if uid not in (os.getuid(), 0) and uid != paths.system_owner(where):
        raise BusError(f"{what} belongs to user {uid}, not to user {os.getuid()} or root; not used. Set HOCKET_DIR")
