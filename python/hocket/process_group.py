"""Ends processes together with all that they have started.

The processes must have been started in sessions of their own (`start_new_session=True`), as run_limited() does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

STOP_LIMIT_S = 10


def signal_group(process: subprocess.Popen, number: int) -> None:
    """Send a signal to a process and to all that it has started. Nothing happens if they have all ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def end_group(process: subprocess.Popen) -> None:
    """End a process and all that it has started by SIGTERM; what remains when the process has ended, by SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        signal_group(process, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_LIMIT_S)


def run_limited(command: Sequence[str], env: Mapping[str, str], limit_s: float | None) -> tuple[int | None, str, str]:
    """Run a command without input. Return its exit code, output, and messages. No process of it stays.

    At the time limit it is killed; the exit code is then None.
    """
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit_s)
    except BaseException as error:
        end_group(process)  # a launcher ends what it has started in groups of their own, if it is asked to
        for end in (process.stdout, process.stderr):
            if end:
                end.close()  # unread: a process that has left the group may hold the other end open
        if isinstance(error, subprocess.TimeoutExpired):
            return None, "", ""
        raise
    signal_group(process, signal.SIGKILL)
    return process.returncode, out, err
