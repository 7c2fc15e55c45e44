"""Checks that a machine can run a description: enough cores, and room for its files."""

from __future__ import annotations

import os
from pathlib import Path

from hocket.emulator.description import Description, Stage
from hocket.emulator.keys import INPUT_OUTPUT
from hocket.errors import UsageError
from hocket.tables import quantity
from hocket.toml_checks import Place


def check(description: Description, directory: Path) -> None:
    """Check the description against this machine. Its files are written to `directory`."""
    check_cores(description, len(os.sched_getaffinity(0)))
    check_room(description, directory)


def check_cores(description: Description, cores: int) -> None:
    burning = next((stage for stage in description.stages if stage.burns), None)
    if description.oversubscribe or burning is None:
        return
    for at, group in enumerate(description.groups):
        if group.processes > cores:
            where = description.place.below("group", at, name=f"group {at + 1}").of("processes")
            told = f"processes = {group.processes} exceeds the {cores} cores of this machine, and '{burning.name}'"
            how = "write oversubscribe = true, or ends_by = 'time'"
            raise UsageError(f"{where}: {told} computes on a core for each rank: {how}")


def file_sizes(description: Description) -> dict[str, tuple[int, Stage]]:
    """Return the bytes of each file at the end of the run, and the stage that makes it so large."""
    sizes: dict[str, tuple[int, Stage]] = {}
    for phase in description.phases:
        for stage in phase.stages:
            if stage.kind not in INPUT_OUTPUT or stage.file is None:
                continue
            times = phase.iterations // stage.every * stage.repeat if stage.append else 1
            if stage.bytes * times > sizes.get(stage.file, (0, stage))[0]:
                sizes[stage.file] = (stage.bytes * times, stage)
    return sizes


def check_room(description: Description, directory: Path) -> None:
    try:
        status = os.statvfs(directory)
    except OSError as error:
        raise UsageError(f"cannot use {directory}: {error.strerror}; give another --dir") from error
    room = status.f_bavail * status.f_frsize
    wanted = 0
    for name, (size, stage) in file_sizes(description).items():
        path = directory / name
        wanted += size - min(size, path.stat().st_blocks * 512 if path.is_file() else 0)
        if wanted > room and isinstance(stage.place, Place):
            told = (
                f"bytes = {stage.bytes} make '{name}' {quantity(size)} long; {directory} has room for {quantity(room)}"
            )
            raise UsageError(f"{stage.place.of('bytes')}: {told}")
