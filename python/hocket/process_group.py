"""Ends processes together with all that they have started.

The processes must have been started in sessions of their own (`start_new_session=True`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

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
