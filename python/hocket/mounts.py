"""Targets as people know them: a file system by where it is mounted, not by its device number.

Events, JSON and the exports keep the number ("dev:254:0"), which is the same on all nodes that see the device; its
mount point is known on this node only.
"""

from __future__ import annotations

import re
import socket
from functools import lru_cache
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
DEVICE = re.compile(r"\bdev:(\d+:\d+)\b")


def with_mount_points(text: str, node: str = "") -> str:
    """The text with mount points for device numbers, as far as they are known. `node`: where it is from; "": here."""
    if "dev:" not in text or node not in ("", socket.gethostname()):
        return text
    known = _mount_points()
    return DEVICE.sub(lambda found: known.get(found[1], found[0]), text)


@lru_cache(maxsize=1)
def _mount_points() -> dict[str, str]:
    try:
        return mount_points(MOUNTS.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return {}


def mount_points(mountinfo: str) -> dict[str, str]:
    """Of each device "MAJOR:MINOR": where its root is mounted, else a part of it; the shortest path of several."""
    best: dict[str, tuple[bool, int, str]] = {}
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if len(fields) < 5:
            continue
        device, root, where = fields[2], fields[3], _unescaped(fields[4])
        best[device] = min(best.get(device, (True, 1 << 30, "")), (root != "/", len(where), where))
    return {device: where for device, (_, _, where) in best.items()}


def _unescaped(path: str) -> str:
    """Spaces, tabs, newlines and backslashes are octal in that file."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)
