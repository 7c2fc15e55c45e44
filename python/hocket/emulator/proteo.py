"""Imports Proteo's configuration files of every version (docs/proteo-files.md).

A file does not say its version. It is recognised by its keys, and by numbers that other versions do not have. If two
versions would read different programs, the file is refused: a wrong guess would emulate another program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hocket.emulator.proteo_file import Entry, ProteoFile, Section, read_file
from hocket.emulator.proteo_methods import ROLES
from hocket.emulator.proteo_program import Program, Reading, read_as
from hocket.emulator.proteo_versions import BY_NAME, VERSIONS, Version
from hocket.errors import UsageError

SUFFIXES = (".ini", ".json")


@dataclass(frozen=True)
class Imported:
    """`notes`: lines for the user, first the version that the file was read as."""

    path: Path
    version: str
    program: Program
    notes: tuple[str, ...]


def import_file(path: Path, version: str | None = None) -> Imported:
    """Return the program of a file. `version`: its name. Raises UsageError, one line, for a mistake or if unclear."""
    file = read_file(path)
    reading = _as_given(file, version) if version is not None else _recognised(file)
    first = f"{path}: read as Proteo's version '{reading.version.name}' ({reading.version.known_by})"
    return Imported(path, reading.version.name, reading.program, (first, *reading.notes))


def _as_given(file: ProteoFile, name: str) -> Reading:
    if name not in BY_NAME:
        raise UsageError(f"--version '{name}' is unknown; use {', '.join(BY_NAME)}")
    version = BY_NAME[name]
    for mismatch in _mismatches(file, version):
        raise mismatch
    return read_as(file, version)


def _recognised(file: ProteoFile) -> Reading:
    """Return the reading in which all versions agree that can read the file."""
    fitting = [one for one in VERSIONS if next(_mismatches(file, one), None) is None]
    if not fitting:
        raise next(_mismatches(file, _nearest(file)))
    readings: list[Reading] = []
    mistakes: list[str] = []
    for one in fitting:
        try:
            readings.append(read_as(file, one))
        except UsageError as error:
            mistakes.append(str(error))
    if not readings:
        others = "" if len(set(mistakes)) == 1 else f"; or say --version {_alternatives(fitting)}"
        raise UsageError(f"{mistakes[-1]}{others}")
    for other in readings[1:]:
        if other.program != readings[0].program:
            raise _ambiguous(file, readings)
    return readings[0]


def _alternatives(versions: Sequence[Version]) -> str:
    *names, last = (one.name for one in versions)
    return f"{', '.join(names)}{',' if len(names) > 1 else ''} or {last}"


def _ambiguous(file: ProteoFile, readings: list[Reading]) -> UsageError:
    """Return the refusal, with the first key that the versions read differently."""
    names = [one.version.name for one in readings]
    choose = f"say --version {_alternatives([one.version for one in readings])}"
    tables = [{(line, shown): meaning for line, shown, meaning in one.meanings} for one in readings]
    for line, shown in sorted(tables[0]):
        meanings = [table.get((line, shown), "nothing") for table in tables]
        if len(set(meanings)) > 1:
            told = "; ".join(f"{one} in version '{name}'" for one, name in zip(meanings, names, strict=True))
            return file.mistake(line, f"{shown} is {told}: {choose}")
    return UsageError(f"{file.path}: versions {', '.join(names)} would read different programs: {choose}")


def _mismatches(file: ProteoFile, version: Version) -> Iterator[UsageError]:
    """Yield what a version does not know in the file, and what it misses."""
    if file.syntax not in version.syntaxes:
        yield UsageError(f"{file.path}: version '{version.name}' has no {file.syntax.upper()} files")
    for section in file.sections:
        if not _has_section(version, section):
            yield file.mistake(section.line, f"[{section.label}] is unknown in version '{version.name}'")
            continue
        keys = version.keys_of(section.kind)
        for entry in section.entries.values():
            if entry.key not in keys:
                yield _unknown(file, version, section, entry)
        yield from _missing(file, version, section)


def _has_section(version: Version, section: Section) -> bool:
    if section.kind == "phase":
        return version.phased
    if section.kind == "stage":
        return bool(version.kinds) and (len(section.at) == 2) == version.phased
    return True


def _unknown(file: ProteoFile, version: Version, section: Section, entry: Entry) -> UsageError:
    known = ", ".join(version.keys_of(section.kind))
    told = f"{entry.shown} in [{section.label}]: the key is unknown in version '{version.name}'; it has {known}"
    return file.mistake(entry.line, told)


def _missing(file: ProteoFile, version: Version, section: Section) -> Iterator[UsageError]:
    first = section.kind == "group" and section.at == (0,)
    for key, role in version.keys_of(section.kind).items():
        if key not in section.entries and role not in version.optional and not (first and role in ROLES):
            told = f"[{section.label}] has no {key}; version '{version.name}' needs it"
            yield file.mistake(section.line, told)


def _nearest(file: ProteoFile) -> Version:
    """Return the version with the fewest mismatches; of several, the newest."""
    return min(reversed(VERSIONS), key=lambda one: sum(1 for _ in _mismatches(file, one)))
