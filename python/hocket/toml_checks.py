"""Checks the values of a TOML file that a user has written. Each mistake is one line: file, place, key, value.

`where` is the place of a table: "jobs.toml: job 2 'BT-C'". All functions raise UsageError.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hocket.errors import UsageError

MOST = 1_000_000  # default bound of numbers: jobs, nodes, servers
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
MUST = object()  # stands for the default of a key that must be given

Table = dict[str, Any]


def read_toml(path: Path, verb: str) -> Table:
    """Return what the file contains. `verb` is the one whose --help shows the format."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}; see 'hocket {verb} --help' for the format") from error


def only(table: Table, keys: Sequence[str], where: str) -> None:
    """Check that a table has no other keys."""
    for key in table:
        if key not in keys:
            raise UsageError(f"{where}: key '{key}' is unknown; use {', '.join(keys)}")


def subtable(table: Table, key: str, where: str, example: str) -> Table:
    """Return the table of a key; {} if there is none."""
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise UsageError(f"{where}: '{key}' is no table; write {example}")
    return value


def tables(content: Table, key: str, path: Path) -> list[Table]:
    """Return the tables [[key]] of a file, at least one."""
    listed = content.get(key, [])
    if not isinstance(listed, list) or not listed:
        raise UsageError(f"{path}: there is no [[{key}]]; describe at least one")
    for number, table in enumerate(listed, 1):
        if not isinstance(table, dict):
            raise UsageError(f"{path}: {key} {number}: it is no table; write [[{key}]]")
    return listed


def is_whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def whole(table: Table, key: str, where: str, *, least: int = 1, most: int = MOST, default: Any = MUST) -> Any:
    """Return a whole number."""
    if key not in table and default is not MUST:
        return default
    value = table.get(key)
    if not is_whole(value, least, most):
        raise UsageError(f"{where}: {key} = {value!r} must be a whole number from {least} to {most}")
    return value


def number(table: Table, key: str, where: str, *, most: float, default: float) -> float:
    """Return a number from 0 to `most`."""
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise UsageError(f"{where}: {key} = {value!r} must be from 0 to {most:g}")
    return float(value)


def truth(table: Table, key: str, where: str, *, default: bool) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise UsageError(f"{where}: {key} = {value!r} must be true or false")
    return value


def text(table: Table, key: str, where: str, *, default: Any = MUST) -> str:
    """Return a text of printable letters that is not empty."""
    value = table.get(key) if default is MUST else table.get(key, default)
    if not isinstance(value, str) or not value or not value.isprintable():
        raise UsageError(f"{where}: {key} = {value!r} must be a text of printable letters")
    return value


def word(table: Table, key: str, where: str, words: Sequence[str]) -> str:
    """Return one of the words; the first is the default."""
    value = table.get(key, words[0])
    if value not in words:
        raise UsageError(f"{where}: {key} = {value!r} is unknown; use {', '.join(words)}")
    return value


def size(table: Table, key: str, where: str, *, most: int, default: str) -> int:
    """Return bytes: a number, or a text with k, m, g."""
    value = table.get(key, default)
    found = re.fullmatch(r"(\d{1,15})([kmg]?)", value, re.ASCII) if isinstance(value, str) else None
    bytes_ = int(found[1]) * UNITS[found[2]] if found else value
    if not is_whole(bytes_, 1, most):
        raise UsageError(f'{where}: {key} = {value!r} must be bytes, e.g. "128k", from 1 to {most}')
    return bytes_


def distinct(names: Iterable[str], kind: str, path: Path) -> None:
    """Check that no two tables have the same name."""
    seen: set[str] = set()
    for number_, name in enumerate(names, 1):
        if name in seen:
            raise UsageError(f"{path}: {kind} {number_}: name = '{name}' is that of an earlier {kind}; give another")
        seen.add(name)
