"""Users of tests that root runs: programs become them, and they reach the files of a test."""

from __future__ import annotations

import os
from pathlib import Path

OWNER, FIRST, SECOND, OPERATORS = 54320, 54321, 54322, 54323  # OWNER runs daemons for all; OPERATORS is a group


def become(user: int, *groups: int) -> list[str]:
    """Return the words before a command that this user, a member of these groups, is to run."""
    others = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
    return ["setpriv", f"--reuid={user}", f"--regid={user}", others]


def go_through(path: Path) -> None:
    """Let all users reach what lies below the directories for temporary files."""
    for one in (path, *path.parents):
        if one.stat().st_uid == os.getuid() and not one.stat().st_mode & 0o1000 and one != Path("/"):
            one.chmod(one.stat().st_mode | 0o055)
