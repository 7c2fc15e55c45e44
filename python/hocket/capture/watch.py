"""Runs an application under libhocket, which logs its calls, and reads the logs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hocket.capture.log import CaptureError, RankLog, read_logs
from hocket.emulator.description import read_description
from hocket.errors import UsageError

PLACEHOLDER = "{processes}"
# Resizes of the application, which the emulation has in its description.
OF_THE_APPLICATION = ("HOCKET_RESIZE", "HOCKET_PROCESSES")
HOCKET = (sys.executable, "-m", "hocket.cli")


def command_for(command: Sequence[str], processes: int | None) -> list[str]:
    """Return the command with the number of processes in place of {processes}. Raises UsageError."""
    if processes is None:
        if any(PLACEHOLDER in word for word in command):
            raise UsageError(f"the command has {PLACEHOLDER}; say which with --processes 1,2,4")
        return list(command)
    if not any(PLACEHOLDER in word for word in command):
        raise UsageError(
            f"--processes {processes}: write {PLACEHOLDER} in the command, for instance mpiexec -n {PLACEHOLDER} ./app"
        )
    return [word.replace(PLACEHOLDER, str(processes)) for word in command]


def watch(command: Sequence[str], *, quietly: bool = False) -> list[RankLog]:
    """Run a launcher's command and return the logs of its ranks, and of those that joined.

    The application takes no turns: it is only watched. It has the input and the output of this process; `quietly`: it
    has neither. Raises CaptureError if it fails or leaves no logs.
    """
    return _logs([*HOCKET, "run", "--no-coordinate", "--", *command], quietly)


def watch_emulation(
    description: Path, processes: int, *, resizes: bool = False, record: Path | None = None
) -> list[RankLog]:
    """Run the emulation of a description with so many processes at the start, and return the logs of its ranks.

    `resizes`: it runs without hocketd, which may refuse its resizes for a lack of cores. `record`: where its own record
    is kept.
    """
    options = [*(["--no-daemon"] if resizes else []), *(["--record", str(record)] if record else [])]
    return _logs([*HOCKET, "emulate", str(description), "-n", str(processes), *options], True, OF_THE_APPLICATION)


def by_turns(command: Sequence[str], description: Path, repeat: int) -> tuple[list[list[RankLog]], list[list[RankLog]]]:
    """Run an application and its emulation alternately, and return the logs of both. Which is first alternates, too."""
    real: list[list[RankLog]] = []
    emulated: list[list[RankLog]] = []
    resizes = len(read_description(description).groups) > 1
    for number in range(repeat):
        if number % 2:
            emulated.append(watch_emulation(description, real[0][0].processes, resizes=resizes))
        real.append(watch(command, quietly=True))
        if not number % 2:
            emulated.append(watch_emulation(description, real[0][0].processes, resizes=resizes))
    return real, emulated


def _logs(command: Sequence[str], quietly: bool, without: Sequence[str] = ()) -> list[RankLog]:
    """Run a command and return the logs. `without`: variables that it does not get."""
    with tempfile.TemporaryDirectory(prefix="hocket-capture-") as directory:
        settings = {"HOCKET_CAPTURE": directory, "HOCKET_COORDINATE": "0"}
        nothing = subprocess.DEVNULL if quietly else None
        environment = {name: value for name, value in os.environ.items() if name not in without} | settings
        done = subprocess.run(command, env=environment, stdout=nothing, stdin=nothing)
        if done.returncode != 0:
            ended = f"exit code {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
            raise CaptureError(f"{ended} of '{' '.join(command[len(HOCKET) :])}'; nothing is captured")
        return read_logs(Path(directory))


def cores() -> int:
    """Return the cores that this process may use, which those that it starts share."""
    return len(os.sched_getaffinity(0))
