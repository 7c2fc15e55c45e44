"""The page by which the processes of `hocket forward` know their servers (src/libhocket/forwarding/page_layout.h)."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hocket.errors import HocketError

VERSION = 5
MOST_SERVERS = 64
SOCKET_BYTES, NAME_BYTES, PREFIX_BYTES = 108, 64, 4096
HEAD = struct.Struct("<8s5I")
SERVERS = struct.Struct("<2I" + MOST_SERVERS * f"{SOCKET_BYTES}s")  # how many, direct, their sockets
EPOCH_AT, PROCESSES_AT = 12, 24
SERVERS_AT = HEAD.size + NAME_BYTES + PREFIX_BYTES  # twice: for even and for odd epochs
COUNTS_AT = (SERVERS_AT + 2 * SERVERS.size + 7) // 8 * 8
COUNTS = (
    "calls",
    "bytes",
    "too_large",
    "limited",
    "no_slot",
    "unsafe",
    "no_server",
    "mapped",
    "redone",
    "lost",
    "unpatched",
    "sandboxed",
    "unserved",
    "collected",
    "unaligned",
    "static",
)
SEEN = struct.Struct("<4Q")  # calls, bytes read and written, busy ns: for each number of servers, from 0 on
SEEN_AT = COUNTS_AT + 8 * len(COUNTS)
FIRST_STATIC_AT = SEEN_AT + (MOST_SERVERS + 1) * SEEN.size + 8
DEVICE_AT = FIRST_STATIC_AT + NAME_BYTES
PAGE_BYTES = DEVICE_AT + 16


@dataclass(frozen=True)
class Seen:
    """What a run moved while it had one number of servers, and the time in which at least one process was in a call."""

    calls: int
    read_bytes: int
    written_bytes: int
    busy_s: float

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.written_bytes


class ForwardPage:
    """A new page in a file. The processes of one run map it; this object alone changes its servers."""

    def __init__(
        self,
        path: Path,
        prefix: str,
        application: str,
        group: int,
        fails: bool,
        collects: bool = False,
        relayed: bool = False,
    ) -> None:
        encoded = os.fsencode(prefix)
        if len(encoded) >= PREFIX_BYTES:
            raise HocketError(f"the path {prefix[:80]}… has {len(encoded)} bytes, more than {PREFIX_BYTES - 1}")
        self.path = path
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            # A page without storage would end the processes that map it by SIGBUS.
            os.posix_fallocate(descriptor, 0, PAGE_BYTES)
            self._memory = mmap.mmap(descriptor, PAGE_BYTES)
        finally:
            os.close(descriptor)
        self._memory[HEAD.size : SERVERS_AT] = application.encode()[: NAME_BYTES - 1].ljust(
            NAME_BYTES, b"\0"
        ) + encoded.ljust(PREFIX_BYTES, b"\0")
        struct.pack_into("<Q", self._memory, DEVICE_AT, _device_of(prefix))
        HEAD.pack_into(
            self._memory, 0, b"hocketFW", VERSION, 2, group, int(fails) + 2 * int(collects) + 4 * int(relayed), 0
        )

    def set_servers(self, sockets: Sequence[str], *, direct: bool = False) -> None:
        """Let all processes use these servers from their next call on.

        With `direct` there are none, and calls are made directly, whatever the user chose for a time without servers.
        """
        names = [os.fsencode(one) for one in sockets[:MOST_SERVERS]]
        too_long = next((one for one in names if len(one) >= SOCKET_BYTES), None)
        if too_long is not None:
            raise HocketError(f"the socket {os.fsdecode(too_long)} has a path of more than {SOCKET_BYTES - 1} bytes")
        epoch = (self._number(EPOCH_AT) + 1) % (1 << 32) or 2
        rest = [b""] * (MOST_SERVERS - len(names))
        # No process looks there before the epoch changes, so that none finds servers that are half written.
        SERVERS.pack_into(self._memory, SERVERS_AT + epoch % 2 * SERVERS.size, len(names), int(direct), *names, *rest)
        struct.pack_into("<I", self._memory, EPOCH_AT, epoch)

    def counts(self) -> dict[str, int]:
        """Return what all processes have done so far, by the names in COUNTS, and how many `processes` there were."""
        values = struct.unpack_from(f"<{len(COUNTS)}Q", self._memory, COUNTS_AT)
        return dict(zip(COUNTS, values, strict=True)) | {"processes": self._number(PROCESSES_AT)}

    def seen(self) -> dict[int, Seen]:
        """Return what calls have moved so far, by the number of servers that there were; 0: directly."""
        found = {}
        for number in range(MOST_SERVERS + 1):
            calls, read, written, busy_ns = SEEN.unpack_from(self._memory, SEEN_AT + number * SEEN.size)
            if calls > 0:
                found[number] = Seen(calls, read, written, busy_ns / 1e9)
        return found

    def first_static(self) -> str:
        """Return the file name of the first static program that ran directly; "" if it is not known."""
        name = self._memory[FIRST_STATIC_AT : FIRST_STATIC_AT + NAME_BYTES].partition(b"\0")[0]
        return "".join(one if one.isprintable() else "?" for one in name.decode(errors="replace"))

    def await_mount_end(self, limit_s: float) -> None:
        """Wait until the process that serves the program's mount has ended. It holds a lock of the page's file."""
        deadline = time.monotonic() + limit_s
        with self.path.open("rb") as file:
            while time.monotonic() < deadline:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                time.sleep(0.005)

    def remove(self) -> None:
        self._memory.close()
        self.path.unlink(missing_ok=True)

    def _number(self, at: int) -> int:
        return struct.unpack_from("<I", self._memory, at)[0]


def _device_of(path: str) -> int:
    """Return the device of a directory's file system, as stat has it; 0 if that is not known."""
    try:
        return Path(path).stat().st_dev
    except OSError:
        return 0
