"""The values of one of Proteo's files, as one version names them. Each mistake is one line: file, line, key, value."""

from __future__ import annotations

from hocket.emulator.proteo_file import Entry, ProteoFile, Section
from hocket.emulator.proteo_versions import Version
from hocket.errors import UsageError


class Values:
    """Reads values by role. `notes`: lines for the user. `meanings`: what a number was taken for, with its line."""

    def __init__(self, file: ProteoFile, version: Version) -> None:
        self.file, self.version = file, version
        self.notes: list[str] = []
        self.meanings: list[tuple[int, str, str]] = []

    def entry(self, section: Section, role: str) -> Entry | None:
        keys = self.version.keys_of(section.kind)
        return next((one for one in section.entries.values() if keys.get(one.key) == role), None)

    def needed(self, section: Section, role: str) -> Entry:
        entry = self.entry(section, role)
        if entry is None:
            keys = self.version.keys_of(section.kind)
            key = next(key for key, one in keys.items() if one == role)
            told = f"[{section.label}] has no {key}; version '{self.version.name}' needs it"
            raise self.file.mistake(section.line, told)
        return entry

    def mistake(self, section: Section, role: str, told: str) -> UsageError:
        """Return the error of a key; of its section, if the key is missing."""
        entry = self.entry(section, role)
        if entry is None:
            return self.file.mistake(section.line, f"[{section.label}]: {told}")
        return self.file.mistake(entry.line, f"{entry.shown} in [{section.label}] {told}")

    def number(self, section: Section, role: str, least: float, most: float, default: float | None = None) -> float:
        if default is not None and self.entry(section, role) is None:
            return default
        entry = self.needed(section, role)
        value = number_of(entry.value)
        if value is None:
            several = isinstance(entry.value, str) and ":" in entry.value
            told = "has several values, for Proteo's script that expands them; give one" if several else "is no number"
            raise self.mistake(section, role, told)
        if not least <= value <= most:
            raise self.mistake(section, role, f"must be from {least:.15g} to {most:.15g}")
        return value

    def whole(self, section: Section, role: str, *, least: int = 0, most: int, default: int | None = None) -> int:
        value = self.number(section, role, least, most, default)
        if value != int(value):
            raise self.mistake(section, role, "must be a whole number")
        return int(value)

    def flag(self, section: Section, role: str) -> bool:
        return bool(self.whole(section, role, most=1, default=0))

    def wholes(self, section: Section, role: str) -> list[int]:
        """Return a list of numbers: in JSON a list, in INI with commas between them."""
        value = self.needed(section, role).value
        parts = value if isinstance(value, list) else str(value).split(",")
        found = [number_of(part) for part in parts]
        if not found or any(one is None or one < 0 or one != int(one) for one in found):
            raise self.mistake(section, role, "must be whole numbers, at least one")
        return [int(one) for one in found if one is not None]

    def note(self, section: Section, role: str, why: str) -> None:
        """Name a key that means nothing here, if the file has it."""
        self.tell(section, role, f"means nothing here: {why}")

    def tell(self, section: Section, role: str, told: str) -> None:
        entry = self.entry(section, role)
        if entry is not None:
            self.notes.append(f"{self.file.path}, line {entry.line}: {entry.shown} in [{section.label}] {told}")

    def means(self, section: Section, role: str, meaning: str) -> None:
        """Keep what a value was taken for. Where versions differ, this says in what."""
        entry = self.entry(section, role)
        if entry is not None:
            self.meanings.append((entry.line, f"{entry.shown} in [{section.label}]", meaning))

    def numbered(self, kind: str, of: Section, role: str, count: int) -> list[Section]:
        """Return sections 0 to `count` - 1 of a kind. Proteo ignores further ones; in JSON they are a mistake."""
        at = of.at if kind == "stage" else ()
        found = {one.at[-1]: one for one in self.file.of(kind) if one.at[:-1] == at}
        for number in range(count):
            if number not in found:
                raise self.mistake(of, role, f"needs {self._label(kind, at, number)}, which is missing")
        total = self.needed(of, role)
        for number, one in found.items():
            if number < count:
                continue
            if self.file.syntax == "json":
                raise self.mistake(of, role, f"counts fewer than there are: {one.label} is one more")
            told = f"[{one.label}] means nothing here: {total.shown} in [{of.label}] counts fewer"
            self.notes.append(f"{self.file.path}, line {one.line}: {told}")
        return [found[number] for number in range(count)]

    def _label(self, kind: str, at: tuple[int, ...], number: int) -> str:
        if self.file.syntax == "json":
            return f"phases[{at[0]}].stages[{number}]" if at else f"{kind}s[{number}]"
        return f"[phase{at[0]}.stage{number}]" if at else f"[{'resize' if kind == 'group' else kind}{number}]"


def number_of(value: object) -> float | None:
    """Return the number that a text or JSON value is; None if it is none."""
    if isinstance(value, str):
        try:
            value = int(value) if value.strip().lstrip("+-").isdecimal() else float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < float("inf") else None
