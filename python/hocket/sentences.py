"""Sentences about decisions and outcomes.

hocketd makes them from the facts in the events (src/core/explain), for its log and for every tool, so that all say the
same.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any

from hocket import paths
from hocket.errors import HocketError

LIMIT_S = 60
MOST_KNOWN = 10_000  # lines; a live view runs for days

_known: dict[str, dict[str, Any]] = {}  # by line: hocketd's answer


def sentences_of(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a dictionary of sentences for each DECISION or OUTCOME; src/control/daemon/explaining.hpp lists its keys.

    An event is a line of a trace. A DECISION may also have "zero_ns", "stopped_ns", and "until_ns". One process of
    hocketd answers for all events that were not asked for before. Raises HocketError if hocketd does not answer.
    """
    lines = [_line(event) for event in events]
    unknown = list(dict.fromkeys(line for line in lines if line not in _known))
    if unknown:
        if len(_known) + len(unknown) > MOST_KNOWN:
            _known.clear()
            unknown = list(dict.fromkeys(lines))
        _known.update(zip(unknown, _ask(unknown), strict=True))
    return [_known[line] for line in lines]


def _line(event: Mapping[str, Any]) -> str:
    try:
        return json.dumps(event, allow_nan=False)
    except ValueError:  # a trace has null for a number that is not finite
        return json.dumps({key: None if value != value else value for key, value in event.items()})


def _ask(lines: list[str]) -> list[dict[str, Any]]:
    program = paths.hocketd()
    try:
        text = "".join(f"{line}\n" for line in lines)
        command = [program, "--explain"]
        told = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", timeout=LIMIT_S)
        found = [json.loads(line) for line in told.stdout.split("\n") if line]
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise HocketError(f"'{program} --explain' cannot explain decisions: {error}") from error
    if told.returncode != 0 or len(found) != len(lines):
        why = told.stderr.strip() or f"{len(found)} answers for {len(lines)} events"
        raise HocketError(f"'{program} --explain' cannot explain decisions: {why}")
    return found
