"""Writes and reads profiles as a JSON file, for another machine.

The format is {"hocket_profile": 1, "profiles": [{…, "points": [{…}, …]}, …]}.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hocket.errors import HocketError
from hocket.profile.points import PointError, check_order, point_of
from hocket.profile.store import Profile

VERSION = 1
KEYS = ("program", "fingerprint", "mpi", "arguments", "points")


class ProfileFileError(HocketError):
    """The file holds no valid profiles. The text names file, key, and value."""


def text_of(profiles: Sequence[Profile]) -> str:
    return json.dumps({"hocket_profile": VERSION, "profiles": [asdict(one) for one in profiles]}, indent=1) + "\n"


def read(path: Path) -> list[Profile]:
    """Return the profiles of a file. Raises ProfileFileError at the first error in it."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileFileError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ProfileFileError(f"{path}: no JSON ({error})") from error
    if not isinstance(told, dict) or "hocket_profile" not in told:
        raise ProfileFileError(f"{path}: hocket_profile is missing: no file of 'hocket profile export'")
    if told["hocket_profile"] != VERSION:
        version = told["hocket_profile"]
        raise ProfileFileError(f"{path}: hocket_profile = {version!r}: this hocket reads version {VERSION}")
    listed = told.get("profiles")
    if not isinstance(listed, list) or not listed:
        raise ProfileFileError(f"{path}: profiles = {listed!r}: give a list of at least one")
    return [_profile(path, at, one) for at, one in enumerate(listed)]


def _profile(path: Path, at: int, told: Any) -> Profile:
    where = f"{path}: profiles[{at}]"
    if not isinstance(told, dict):
        raise ProfileFileError(f"{where}: {told!r} is no profile")
    for key in KEYS:
        if key not in told:
            raise ProfileFileError(f"{where}: {key} is missing")
    for key in told:
        if key not in KEYS:
            raise ProfileFileError(f"{where}: {key}: unknown; there are: {', '.join(KEYS)}")
    for key in KEYS[:-1]:
        if not isinstance(told[key], str) or (key in ("program", "fingerprint") and not told[key].isprintable()):
            raise ProfileFileError(f"{where}: {key} = {told[key]!r}: give a text")
    if not told["program"] or "/" in told["program"]:
        raise ProfileFileError(f"{where}: program = {told['program']!r}: give the base name of the executable")
    if len(told["fingerprint"]) != 64 or set(told["fingerprint"]) - set("0123456789abcdef"):
        raise ProfileFileError(f"{where}: fingerprint = {told['fingerprint']!r}: give 64 hexadecimal digits (SHA-256)")
    if not isinstance(told["points"], list) or not told["points"]:
        raise ProfileFileError(f"{where}: points = {told['points']!r}: give a list of at least one")
    points = []
    for number, values in enumerate(told["points"]):
        try:
            if not isinstance(values, dict):
                raise PointError(f"{values!r} is no point")
            points.append(point_of(values))
            check_order(points)
        except PointError as error:
            raise ProfileFileError(f"{where} ({told['program']}): points[{number}]: {error}") from None
    return Profile(told["program"], told["fingerprint"], told["mpi"], told["arguments"], tuple(points))
