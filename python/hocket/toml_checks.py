"""Checks the values of a TOML file that a user has written. Each mistake is one line: file, place, key, value.

`where` is the place of a table: "jobs.toml: job 2 'BT-C'", or a Place, which knows the lines of its keys. All functions
raise UsageError.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hocket.errors import UsageError
from hocket.toml_lines import Keys, lines_of

MOST = 1_000_000  # default bound of numbers: jobs, nodes, servers
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
SHOWN = 60  # letters of a value in a message
MUST = object()  # stands for the default of a key that must be given

Table = dict[str, Any]


class Place:
    """The place of a table in a file whose lines are known. As a text, it is the line where the table begins."""

    def __init__(self, path: Path, lines: dict[Keys, int], at: Keys = (), name: str = "") -> None:
        self._path, self._lines, self._at, self._name = path, lines, at, name

    def __str__(self) -> str:
        return self.of()

    def of(self, *keys: str | int) -> str:
        """Return the place of a key of the table, or of one below it. A key without a line has that of its table."""
        at = (*self._at, *keys)
        while at and at not in self._lines:
            at = at[:-1]
        line = f"{self._path}, line {self._lines[at]}" if at else f"{self._path}"
        return f"{line}: {self._name}" if self._name else line

    def below(self, *keys: str | int, name: str) -> Place:
        """Return the place of a table in this one. `name` is what it is called in messages."""
        return Place(self._path, self._lines, (*self._at, *keys), name)


Where = str | Place


def _of(where: Where | Path, key: str) -> str:
    return where.of(key) if isinstance(where, Place) else str(where)


def shown(value: Any) -> str:
    """Return a value for a message of one line: what is longer than 60 letters is cut off."""
    told = repr(value)
    return told if len(told) <= SHOWN else f"{told[: SHOWN - 1]}…"


def read_toml(path: Path, verb: str) -> Table:
    """Return what the file contains. `verb` is the one whose --help shows the format."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}; see 'hocket {verb} --help' for the format") from error


def read_with_lines(path: Path, verb: str) -> tuple[Table, Place]:
    """Return what the file contains, and the place of its outermost table."""
    content = read_toml(path, verb)
    return content, Place(path, lines_of(path.read_text(encoding="utf-8")))


def only(table: Table, keys: Sequence[str], where: Where) -> None:
    """Check that a table has no other keys."""
    for key in table:
        if key not in keys:
            raise UsageError(f"{_of(where, key)}: key '{key}' = {shown(table[key])} is unknown; use {', '.join(keys)}")


def subtable(table: Table, key: str, where: Where, example: str) -> Table:
    """Return the table of a key; {} if there is none."""
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise UsageError(f"{_of(where, key)}: {key} = {shown(value)} is no table; write {example}")
    return value


def tables(content: Table, key: str, path: Path | Place) -> list[Table]:
    """Return the tables [[key]] of a file, at least one."""
    listed = content.get(key, [])
    if listed == []:
        raise UsageError(f"{path}: there is no [[{key}]]; describe at least one")
    if not isinstance(listed, list) or not all(isinstance(table, dict) for table in listed):
        raise UsageError(f"{_of(path, key)}: {key} = {shown(listed)} is no list of tables; write [[{key}]]")
    return listed


def is_whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def needed(table: Table, key: str, where: Where, example: str) -> None:
    """Check that a table has a key."""
    if key not in table:
        raise UsageError(f"{where}: key '{key}' is missing; write e.g. {example}")


def whole(table: Table, key: str, where: Where, *, least: int = 1, most: int = MOST, default: Any = MUST) -> Any:
    """Return a whole number."""
    if key not in table and default is not MUST:
        return default
    value = table.get(key)
    if not is_whole(value, least, most):
        raise UsageError(f"{_of(where, key)}: {key} = {value!r} must be a whole number from {least} to {most}")
    return value


def is_number(value: Any, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def number(table: Table, key: str, where: Where, *, least: float = 0, most: float, default: float) -> float:
    """Return a number from `least` to `most`."""
    value = table.get(key, default)
    if not is_number(value, least, most):
        raise UsageError(f"{_of(where, key)}: {key} = {value!r} must be from {least:g} to {most:g}")
    return float(value)


def truth(table: Table, key: str, where: Where, *, default: bool) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise UsageError(f"{_of(where, key)}: {key} = {value!r} must be true or false")
    return value


def text(table: Table, key: str, where: Where, *, default: Any = MUST) -> str:
    """Return a text of printable letters that is not empty."""
    value = table.get(key) if default is MUST else table.get(key, default)
    if not isinstance(value, str) or not value or not value.isprintable():
        raise UsageError(f"{_of(where, key)}: {key} = {value!r} must be a text of printable letters")
    return value


def word(table: Table, key: str, where: Where, words: Sequence[str]) -> str:
    """Return one of the words; the first is the default."""
    value = table.get(key, words[0])
    if value not in words:
        raise UsageError(f"{_of(where, key)}: {key} = {value!r} is unknown; use {', '.join(words)}")
    return value


def size(table: Table, key: str, where: Where, *, most: int, default: str) -> int:
    """Return bytes: a number, or a text with k, m, g."""
    value = table.get(key, default)
    found = re.fullmatch(r"(\d{1,15})([kmg]?)", value, re.ASCII) if isinstance(value, str) else None
    bytes_ = int(found[1]) * UNITS[found[2]] if found else value
    if not is_whole(bytes_, 1, most):
        raise UsageError(f'{_of(where, key)}: {key} = {value!r} must be bytes, e.g. "128k", from 1 to {most}')
    return bytes_


def distinct(names: Iterable[str], kind: str, path: Path) -> None:
    """Check that no two tables have the same name."""
    seen: set[str] = set()
    for number_, name in enumerate(names, 1):
        if name in seen:
            raise UsageError(f"{path}: {kind} {number_}: name = '{name}' is that of an earlier {kind}; give another")
        seen.add(name)
