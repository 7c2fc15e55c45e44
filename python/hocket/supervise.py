"""Runs a launcher whose exit code says nothing of the processes that do the work in the end.

MPICH's mpiexec reports only the processes that it started itself. With HOCKET_SPAWN=baseline all of them end at the
first resize, and their successors may fail later: mpiexec then still returns 0. So libhocket keeps a file while such
successors compute (HOCKET_UNFINISHED), and this process looks for it when the launcher has ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

from hocket.errors import HocketError

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
BY_KERNEL = 0x80  # SI_KERNEL: a key in the terminal, which has reached the launcher as well
FAILED = 1
PR_SET_CHILD_SUBREAPER = 36


class UnfinishedError(HocketError):
    exit_code = FAILED


def supervise(
    program: str,
    command: list[str],
    environment: dict[str, str],
    at_end: Callable[[], None] | None = None,
    *,
    hides_failures: bool = True,
) -> int:
    """Run the launcher and return its exit code. Calls `at_end` when it has ended.

    Raises UnfinishedError if it `hides_failures`, its exit code is 0, and the application has failed. Raises OSError if
    it cannot be started.
    """
    failed = False
    try:
        if hides_failures:
            with tempfile.TemporaryDirectory(prefix="hocket-run-") as directory:
                unfinished = Path(directory) / "unfinished"
                code = run_child(program, command, environment | {"HOCKET_UNFINISHED": str(unfinished)})
                failed = unfinished.exists()
        else:
            code = run_child(program, command, environment)
    finally:
        if at_end is not None:
            at_end()
    end_like(code)
    if code == 0 and failed:
        raise UnfinishedError(
            f"the application ended before its work was done, although {Path(program).name} returned 0: exit code "
            f"{FAILED} instead; its own messages say why"
        )
    return code


def end_like(code: int) -> None:
    """End this process by the signal that ended a child: `code` is minus its number. Else return."""
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)


def run_child(program: str, command: list[str], environment: dict[str, str], *, adopts: bool = False) -> int:
    """Start the program, forward signals to it, and return its exit code, or minus the number of its signal.

    With `adopts`, orphans among its descendants become children of this process, so that the kernel still tells whose
    they are; they are waited for as init would. Call it in the main thread. Raises OSError if the program cannot be
    started.
    """
    if adopts:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    waited = {*FORWARDED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        child = os.posix_spawn(
            program, command, environment, setsigmask=before, setsigdef=(signal.SIGPIPE, signal.SIGXFSZ)
        )
        while True:
            came = signal.sigwaitinfo(waited)
            ended, status = os.waitpid(-1 if adopts else child, os.WNOHANG)
            while ended and ended != child:
                ended, status = os.waitpid(-1, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            if came.si_signo != signal.SIGCHLD and came.si_code != BY_KERNEL:
                os.kill(child, came.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
