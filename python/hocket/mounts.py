"""Shows targets by the mount point of their file system instead of their name.

Events, JSON and the exports keep the name ("nfs:nas:7b1b", "dev:254:0@8c3871fd2d164c03"), which is the same on all
nodes that mount the file system. Its mount point is known on this node only. hocketd names
targets (docs/design/targets.md), so the rules are not repeated here.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
from functools import lru_cache
from pathlib import Path

from hocket import paths
from hocket.errors import HocketError, UsageError

ANSWER_S = 20
NAME = re.compile(r"[a-z0-9]:[^\s]")  # what any name of a file system contains


def with_mount_points(text: str, node: str = "") -> str:
    """Return the text with mount points for the names of targets, if they are mounted here.

    Traces of earlier versions have device numbers ("dev:254:0"), which are those of `node`; "": this node.
    """
    if not NAME.search(text):
        return text
    is_here = node in ("", socket.gethostname())
    # A name without a colon is the operator's, and may be any word of the text.
    known = {
        name: where
        for name, where in _mount_points().items()
        if ":" in name and (is_here or not re.fullmatch(r"dev:\d+:\d+", name))
    }
    if not known:
        return text
    names = "|".join(re.escape(name) for name in sorted(known, key=len, reverse=True))
    return re.sub(rf"(?<![\w:/@.-])(?:{names})(?![\w/@#-]|[.:]\w)", lambda found: known[found[0]], text)


def target_of(target: str | Path) -> str:
    """Return the name of a target: of the file system on which a path lies, or which a device ("dev:8:1") is here.

    Any other text is a name already. Raises UsageError if the path does not exist.
    """
    text = str(target)
    if not set("/:.") & set(text):
        return text
    told = _ask("--target-of", text)
    if told.returncode != 0:
        why = told.stderr.strip().removeprefix("hocketd: ")
        raise UsageError(f"target {why}; give a path on its file system, or its name")
    return told.stdout.rstrip("\n")


def is_mounted(target: str) -> bool:
    """True if a target is a file system that is mounted on this node."""
    return target in _mount_points()


@lru_cache(maxsize=1)
def _mount_points() -> dict[str, str]:
    try:
        told = _ask("--print-targets")
    except HocketError:
        return {}
    return mount_points(told.stdout) if told.returncode == 0 else {}


def mount_points(targets: str) -> dict[str, str]:
    """Return the shortest mount point of each target, and of each device as earlier versions named it.

    `targets`: what hocketd --print-targets prints.
    """
    found: dict[str, str] = {}
    for line in targets.splitlines():
        name, device, where = line.split("\t")
        found[f"dev:{device}"] = where
        found[name] = min(where, found.get(name, where), key=lambda path: (len(path), path))
    return found


def _ask(*options: str) -> subprocess.CompletedProcess[str]:
    program = paths.hocketd()
    environment = os.environ | paths.target_names()
    try:
        return subprocess.run(
            [program, *options], capture_output=True, text=True, errors="replace", timeout=ANSWER_S, env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HocketError(f"cannot run {program} ({error}); is hocket built and installed?") from error
