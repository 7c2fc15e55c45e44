"""Runs a private hocketd in its own directory, for measurements."""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hocket import paths
from hocket.errors import HocketError, UsageError
from hocket.process_group import end_group
from hocket.reconfigure.runs import last_line

Setting = str | float | int
START_LIMIT_S = 20
BAD_SETTINGS = 2  # exit code of hocketd for bad settings


@contextmanager
def private_daemon(
    directory: Path, coordinator: Mapping[str, Setting], arbitration: Mapping[str, Setting] | None = None
) -> Iterator[Path]:
    """Run a hocketd in `directory`, whose path must be short, with these settings of [coordinator] and [arbitration].

    Yields the path of its trace, which is complete when the context has ended. Raises HocketError, or UsageError for
    bad settings.
    """
    program = paths.hocketd()
    if not program.exists():
        raise HocketError(f"no hocketd at {program}; is hocket built and installed? (HOCKET_PREFIX says where)")
    config, trace = directory / "hocket.toml", directory / "trace.jsonl"
    text = ""
    for table, settings in (("coordinator", coordinator), ("arbitration", arbitration or {})):
        if settings:
            text += f"[{table}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    config.write_text(text, encoding="utf-8")
    command = [str(program), "--dir", str(directory), "--config", str(config), "--trace", str(trace)]
    with (directory / "hocketd.err").open("w+") as messages:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=messages, text=True, start_new_session=True)
        try:
            assert process.stdout
            readable, _, _ = select.select([process.stdout], [], [], START_LIMIT_S)
            if not readable or "listens on" not in process.stdout.readline():
                end_group(process)
                messages.seek(0)
                said = last_line(messages.read()).removeprefix("hocketd: ")
                refused = process.returncode == BAD_SETTINGS
                raise (UsageError if refused else HocketError)(f"hocketd did not start: {said}")
            yield trace
            if process.poll() is not None:
                messages.seek(0)
                said = last_line(messages.read()).removeprefix("hocketd: ")
                raise HocketError(f"hocketd ended too early, so nothing was measured{': ' if said else ''}{said}")
        finally:
            end_group(process)
            process.stdout.close()
