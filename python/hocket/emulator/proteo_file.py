"""Reads the syntax of Proteo's configuration files, INI and JSON, into one form that keeps each value's line.

What the keys mean is not decided here: proteo_versions.py has the versions, proteo.py reads by them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hocket.errors import UsageError

MOST_BYTES = 1 << 24  # a file of 16 MiB is no configuration
MOST_SECTIONS = 10_000

SECTION = re.compile(r"general|stage(\d+)|phase(\d+)|phase(\d+)\.stage(\d+)|(?:resize|group)(\d+)", re.ASCII)
HEADER = re.compile(r"\[([^\]]*)\]\s*(?:[;#].*)?")
COMMENT = re.compile(r"\s[;#].*")
TOKEN = re.compile(r'\s*("(?:\\.|[^"\\])*"|[{}\[\],:]|[^\s{}\[\],:"]+)')

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Entry:
    """One key of a file. A value of an INI file is its text; one of JSON is what JSON says, lists included."""

    key: str
    value: Scalar | list[Scalar]
    line: int

    @property
    def shown(self) -> str:
        """The key and the value as messages show them."""
        return f"{self.key} = {self.value if isinstance(self.value, str) else json.dumps(self.value)}"


@dataclass
class Section:
    """`kind` is general, phase, stage, or group. `at` has the numbers of the section: (phase, stage) of a stage."""

    kind: str
    at: tuple[int, ...]
    label: str
    line: int
    entries: dict[str, Entry] = field(default_factory=dict)


@dataclass(frozen=True)
class ProteoFile:
    path: Path
    syntax: str  # ini or json
    sections: tuple[Section, ...]

    def of(self, kind: str) -> list[Section]:
        return sorted((one for one in self.sections if one.kind == kind), key=lambda one: one.at)

    def mistake(self, line: int, text: str) -> UsageError:
        return UsageError(f"{self.path}, line {line}: {text}")


def read_file(path: Path) -> ProteoFile:
    """Return the sections of a file. Raises UsageError, one line, if it is neither INI nor JSON of Proteo."""
    try:
        content = path.read_bytes()
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    if len(content) > MOST_BYTES or "\0" in text:
        raise UsageError(f"{path}: this is no configuration of Proteo")
    if path.suffix == ".json" or text.lstrip().startswith("{"):
        return ProteoFile(path, "json", tuple(_Json(path, text).sections()))
    return ProteoFile(path, "ini", tuple(_ini(path, text)))


def _ini(path: Path, text: str) -> Iterator[Section]:
    """Yield the sections of an INI file. Proteo's parser allows ';' and '#' comments, '=' and ':'."""
    section = None
    seen: dict[tuple[str, tuple[int, ...]], int] = {}
    for line, raw in enumerate(text.split("\n"), 1):
        content = COMMENT.sub("", " " + raw).strip()
        if not content:
            continue
        if content.startswith("["):
            section = _ini_section(path, line, content)
            earlier = seen.setdefault((section.kind, section.at), line)
            if earlier != line:
                raise UsageError(f"{path}, line {line}: [{section.label}] is also on line {earlier}; give it once")
            if len(seen) > MOST_SECTIONS:
                raise UsageError(f"{path}, line {line}: more than {MOST_SECTIONS} sections")
            yield section
            continue
        key, found, value = _split(content)
        if section is None or not found:
            raise UsageError(f"{path}, line {line}: '{content}' is no [section] and no KEY=VALUE within one")
        if key in section.entries:
            told = f"the key is on line {section.entries[key].line}, too; give it once"
            raise UsageError(f"{path}, line {line}: {key} = {value} in [{section.label}]: {told}")
        section.entries[key] = Entry(key, value, line)


def _split(content: str) -> tuple[str, bool, str]:
    found = re.match(r"([^=:]*)[=:](.*)", content)
    return (found[1].strip(), True, found[2].strip()) if found else (content, False, "")


def _ini_section(path: Path, line: int, content: str) -> Section:
    header = HEADER.fullmatch(content)
    name = header[1].strip() if header else content
    found = SECTION.fullmatch(name)
    if not header or not found:
        known = "[general], [stageN], [phaseN], [phaseN.stageM], [resizeN]"
        raise UsageError(f"{path}, line {line}: {content} is no section of Proteo; use {known}")
    stage, phase, of_phase, stage_of, group = (None if one is None else int(one) for one in found.groups())
    if name == "general":
        return Section("general", (), name, line)
    if group is not None:
        return Section("group", (group,), name, line)
    if stage is not None:
        return Section("stage", (stage,), name, line)
    if phase is not None:
        return Section("phase", (phase,), name, line)
    assert of_phase is not None and stage_of is not None
    return Section("stage", (of_phase, stage_of), name, line)


class _Json:
    """Reads a JSON file with the line of each key. Python's parser checks the syntax first; it keeps no lines."""

    def __init__(self, path: Path, text: str) -> None:
        try:
            json.loads(text, parse_constant=self._no_number)
        except json.JSONDecodeError as error:
            raise UsageError(f"{path}, line {error.lineno}: no JSON: {error.msg}") from error
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path}: no JSON of Proteo: {error}") from error
        self.path = path
        self.tokens: list[tuple[str, int]] = []
        line, at = 1, 0
        for found in TOKEN.finditer(text):
            line += text.count("\n", at, found.start(1))
            at = found.start(1)
            self.tokens.append((found[1], line))
        self.next = 0

    @staticmethod
    def _no_number(name: str) -> None:
        raise ValueError(f"{name} is no number")

    def sections(self) -> list[Section]:
        found: list[Section] = []
        for key, line in self._keys("the file"):
            if key == "general":
                found += self._section("general", (), "general")
            elif key in ("phases", "groups"):
                for number in self._elements(key):
                    found += self._section(key[:-1], (number,), f"{key}[{number}]")
            else:
                raise self._wrong(line, f"'{key}' is unknown; use general, phases, groups")
        return found

    def _section(self, kind: str, at: tuple[int, ...], label: str) -> list[Section]:
        """Return the section, and those of its stages if it is a phase."""
        section = Section(kind, at, label, self.tokens[self.next][1])
        found = [section]
        for key, line in self._keys(label):
            if kind == "phase" and key == "stages":
                for number in self._elements(f"{label}.stages"):
                    found += self._section("stage", (*at, number), f"{label}.stages[{number}]")
            else:
                section.entries[key] = Entry(key, self._value(key), line)
        return found

    def _keys(self, label: str) -> Iterator[tuple[str, int]]:
        """Yield the keys of an object; the caller reads each value."""
        token, line = self._take()
        if token != "{":
            raise self._wrong(line, f"{label} must be an object, {{…}}")
        seen: dict[str, int] = {}
        while self.tokens[self.next][0] != "}":
            if self.tokens[self.next][0] == ",":
                self.next += 1
            token, line = self._take()
            key = json.loads(token)
            if key in seen:
                raise self._wrong(line, f"'{key}' in {label} is on line {seen[key]}, too; give it once")
            seen[key] = line
            self.next += 1  # the colon
            yield key, line
        self.next += 1

    def _elements(self, label: str) -> Iterator[int]:
        """Yield the numbers of a list's elements; the caller reads each."""
        token, line = self._take()
        if token != "[":
            raise self._wrong(line, f"{label} must be a list, […]")
        number = 0
        while self.tokens[self.next][0] != "]":
            if self.tokens[self.next][0] == ",":
                self.next += 1
            if number >= MOST_SECTIONS:
                raise self._wrong(self.tokens[self.next][1], f"{label} has more than {MOST_SECTIONS} elements")
            yield number
            number += 1
        self.next += 1

    def _value(self, key: str) -> Scalar | list[Scalar]:
        token, line = self.tokens[self.next]
        if token == "{":
            raise self._wrong(line, f"{key} must be a number or a text, not an object")
        if token != "[":
            self.next += 1
            return json.loads(token)
        values: list[Scalar] = []
        for _ in self._elements(key):
            token, line = self._take()
            if token in "{[":
                raise self._wrong(line, f"{key} must be a list of numbers")
            values.append(json.loads(token))
        return values

    def _take(self) -> tuple[str, int]:
        self.next += 1
        return self.tokens[self.next - 1]

    def _wrong(self, line: int, text: str) -> UsageError:
        return UsageError(f"{self.path}, line {line}: {text}")
