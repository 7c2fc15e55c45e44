"""Finds the line of each key and table of a TOML file, which tomllib does not keep.

The text has passed tomllib, so this scan need not check it.
"""

from __future__ import annotations

import re

Keys = tuple[str | int, ...]  # keys and positions in arrays of tables: ("phase", 0, "stage", 2, "bytes")

BARE = re.compile(r"[A-Za-z0-9_-]+")
BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
SPACE = re.compile(r"[ \t]*")
ESCAPES = re.compile(r"\\(?:([btnfr\"\\])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
LETTERS = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
# A string; the multi-line kinds may end with up to two quotation marks of their own.
STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")' r"|'''.*?'{3,5}(?!')" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'",
    re.DOTALL,
)
PLAIN = re.compile(r"[^,\]}#\n\"'\[{]+")  # a number, a date, a truth


def lines_of(text: str) -> dict[Keys, int]:
    """Return the line of each key and table, counted from 1."""
    return _Scan(text).all()


class _Scan:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counts: dict[Keys, int] = {}  # tables of each array so far
        self._lines: dict[Keys, int] = {}

    def all(self) -> dict[Keys, int]:
        table: Keys = ()
        self._skip(BLANK)
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(BLANK)
        return self._lines

    def _skip(self, what: re.Pattern[str]) -> str:
        found = what.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found[0] if found else ""

    def _note(self, path: Keys, at: int) -> None:
        self._lines.setdefault(path, self._text.count("\n", 0, at) + 1)

    def _header(self) -> Keys:
        """Read [a.b] or [[a.b]], and return the path of its table."""
        begin = self._at
        several = self._text.startswith("[[", begin)
        self._at += 2 if several else 1
        keys = self._keys()
        self._at += 2 if several else 1
        path: Keys = ()
        for number, key in enumerate(keys, 1):
            path = (*path, key)
            if number == len(keys) and several:
                self._counts[path] = self._counts.get(path, 0) + 1
            self._note(path, begin)
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        self._note(path, begin)
        return path

    def _keys(self) -> list[str]:
        """Read a dotted key and the space around it."""
        keys = []
        while True:
            self._skip(SPACE)
            quoted = self._text[self._at] in "\"'"
            keys.append(_unquoted(self._skip(STRING)) if quoted else self._skip(BARE))
            self._skip(SPACE)
            if self._text[self._at] != ".":
                return keys
            self._at += 1

    def _pair(self, table: Keys) -> None:
        begin = self._at
        path = table
        for key in self._keys():
            path = (*path, key)
            self._note(path, begin)
        self._at += 1  # the equals sign
        self._skip(SPACE)
        self._value(path)

    def _value(self, path: Keys) -> None:
        first = self._text[self._at]
        if first in "\"'":
            self._skip(STRING)
        elif first == "[":
            self._list(path)
        elif first == "{":
            self._inline(path)
        else:
            self._skip(PLAIN)

    def _list(self, path: Keys) -> None:
        self._at += 1
        for number in range(len(self._text)):
            self._skip(BLANK)
            if self._text[self._at] == "]":
                break
            self._note((*path, number), self._at)
            self._value((*path, number))
            self._skip(BLANK)
            self._at += self._text[self._at] == ","
        self._at += 1

    def _inline(self, path: Keys) -> None:
        self._at += 1
        while True:
            self._skip(BLANK)
            if self._text[self._at] == "}":
                break
            self._pair(path)
            self._skip(BLANK)
            self._at += self._text[self._at] == ","
        self._at += 1


def _unquoted(text: str) -> str:
    if text[0] == "'":
        return text[1:-1]
    return ESCAPES.sub(lambda one: LETTERS[one[1]] if one[1] else chr(int(one[2] or one[3], 16)), text[1:-1])
