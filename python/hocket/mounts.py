"""Shows targets by the mount point of their file system instead of its device number.

Events, JSON and the exports keep the number ("dev:254:0"), which is the same on all nodes that see the device. Its
mount point is known on this node only.
"""

from __future__ import annotations

import os
import re
import socket
from functools import lru_cache
from pathlib import Path

from hocket.errors import UsageError

MOUNTS = Path("/proc/self/mountinfo")
DEVICE = re.compile(r"\bdev:(\d+:\d+)\b")


def with_mount_points(text: str, node: str = "") -> str:
    """Return the text with mount points for device numbers, if they are known.

    `node`: where the text comes from; "": this node.
    """
    if "dev:" not in text or node not in ("", socket.gethostname()):
        return text
    known = _mount_points()
    return DEVICE.sub(lambda found: known.get(found[1], found[0]), text)


def target_of(text: str) -> str:
    """Return the name of the target: of the file system on which a path lies, or else the name as it was given.

    Raises UsageError if the path does not exist.
    """
    if "/" not in text and text not in (".", ".."):
        return text
    try:
        device = Path(text).stat().st_dev
    except OSError as error:
        raise UsageError(f"target '{text}': {error.strerror}; give a path on its file system, or its name") from error
    return f"dev:{os.major(device)}:{os.minor(device)}"


def is_mounted(target: str) -> bool:
    """True if a target named by a device ("dev:8:1") is a file system that is mounted on this node."""
    return target.removeprefix("dev:") in _mount_points()


@lru_cache(maxsize=1)
def _mount_points() -> dict[str, str]:
    try:
        return mount_points(MOUNTS.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return {}


def mount_points(mountinfo: str) -> dict[str, str]:
    """Return a mount point for each device "MAJOR:MINOR".

    A mount of its root comes before a mount of a part of it, then the shortest path.
    """
    best: dict[str, tuple[bool, int, str]] = {}
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if len(fields) < 5:
            continue
        device, root, where = fields[2], fields[3], _unescaped(fields[4])
        best[device] = min(best.get(device, (True, 1 << 30, "")), (root != "/", len(where), where))
    return {device: where for device, (_, _, where) in best.items()}


def _unescaped(path: str) -> str:
    """Decode the octal escapes of spaces, tabs, newlines, and backslashes in /proc/self/mountinfo."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)
