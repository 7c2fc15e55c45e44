"""Every key that the reader of descriptions knows, with every mistake that its declaration rules out."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hocket.cli import main
from hocket.emulator.keys import DATA, GROUP, METHODS, PHASE, STAGE, STAGES, TOP, Key
from hocket.toml_checks import MUST

TIMED = {"time_s": "0.01"}
ACCESS = {"file": '"f"', "bytes": "1000"}
SENT = {"bytes": "1000"}
# The keys that a stage of each kind cannot do without, beside its kind.
NEEDED = {
    "compute": TIMED,
    "memory": TIMED,
    "sleep": TIMED,
    "wait": {},
    "write": ACCESS,
    "read": ACCESS,
    **dict.fromkeys(("sendrecv", "broadcast", "allgatherv", "reduce", "allreduce", "alltoall", "halo"), SENT),
    "isend-irecv": SENT,
}
# Texts of TOML that are of no type that the kind of key has, or are outside of what every key of that kind allows.
WRONG = {
    "whole": ["'4'", "1.5", "true", "[1]", "-1", "nan"],
    "number": ["'0.5'", "true", "[0.5]", "-0.5", "nan", "inf"],
    "truth": ["1", "'true'", "[]"],
    "text": ["1", "''", "true", "['a']", '"a\\nb"'],
    "word": ["1", "''", "'no-such-word'", "true", "['merge']", "{}"],
    "size": ["0", "-1", "1.5", "true", "'4x'", "'-1'", "'0'", "[1]", "'9999999g'"],
    "factors": ["1", "[1]", "{}", "{ 2 = '1' }", "{ 2 = -1 }", "{ 2 = 0 }", "{ 2 = true }", "{ 0 = 1 }", "{ x = 1 }"],
    "shares": ["1", "[1]", "{}", "{ 2 = 1 }", "{ 2 = ['1', 0] }", "{ 2 = [1.5, -0.5] }", "{ 2 = [1] }", "{ x = [1] }"],
}


class File:
    """A description that is right, with one stage of a kind, in which one table can be changed."""

    def __init__(self, path: Path, kind: str = "sleep") -> None:
        self.path = path
        # As many groups and stages as a table needs to be right: name, keys, and what messages call the table.
        self.tables: list[tuple[str, dict[str, str], str]] = [
            ("", {"name": '"a"', "oversubscribe": "true"}, ""),
            ("[data]", {"bytes": "1000", "replicated_bytes": "1000"}, "data"),
            ("[[group]]", {"processes": "2", "iterations": "4"}, "group 1"),
            ("[[group]]", {"processes": "3", "iterations": "4"}, "group 2"),
            ("[[phase]]", {"iterations": "8"}, "phase 1"),
            ("[[phase.stage]]", {"kind": '"isend-irecv"', "bytes": "1000"}, "phase 1, stage 1"),
            ("[[phase.stage]]", {"kind": f'"{kind}"', **NEEDED[kind]}, "phase 1, stage 2"),
            *[("[[phase.stage]]", {"kind": '"wait"'}, f"phase 1, stage {at}") for at in (3, 4)[: _waits(kind)]],
        ]

    def write(self, table: str, changes: dict[str, str | None]) -> dict[str, int]:
        """Write the file. The keys of one table are set, or left out (None). Return the lines of that table's keys.

        The line of "" is the one where the table begins.
        """
        text: list[str] = []
        lines: dict[str, int] = {}
        for heading, keys, name in self.tables:
            if heading:
                text.append(heading)
            if name == table:
                lines[""] = len(text)
                keys = {key: value for key, value in (keys | changes).items() if value is not None}
            for key, value in keys.items():
                text.append(f"{key} = {value}")
                if name == table:
                    lines[key] = len(text)
        self.path.write_text("\n".join(text) + "\n")
        return lines


def _waits(kind: str) -> int:
    """Return how many stages must follow to complete the two that may be non-blocking."""
    return {"isend-irecv": 2, "wait": 0}.get(kind, 1)


def _mistakes(key: Key) -> Iterator[str]:
    """Return values that the declaration of a key rules out, as TOML."""
    yield from WRONG[key.kind]
    if key.kind == "whole":
        yield from (str(int(key.least) - 1), str(int(key.most) + 1))
    elif key.kind == "number":
        yield from (repr(key.least - 1), repr(key.most * 2))
    elif key.kind == "size":
        yield from (str(int(key.most) + 1), f"'{int(key.most) // (1 << 30) + 1}g'")
    elif key.kind == "word":
        yield from (f"'{word}{letter}'" for word in key.words for letter in ("s", " "))
        yield from (f"'{word.upper()}'" for word in key.words)


def _shown(toml: str) -> str:
    """Return how a message shows a value that is written so."""
    return repr(tomllib.loads(f"x = {toml}")["x"])


def _below(key: Key, toml: str) -> tuple[str, ...]:
    """Return the words in one of which a message gives key and value. Those of a table may name the entry only."""
    found = [f"{key.name} = {_shown(toml)}"]
    if key.kind in ("factors", "shares"):
        table = tomllib.loads(f"x = {toml}")["x"]
        for entry, value in table.items() if isinstance(table, dict) else ():
            found += [f"{key.name}.{entry} = {value!r}", f"key '{entry}' of {key.name}"]
    return tuple(found)


class Checker:
    """Checks descriptions by the command, and collects the mistakes whose message is not as it should be."""

    def __init__(self, file: File, capsys: pytest.CaptureFixture) -> None:
        self._file, self._capsys = file, capsys
        self.checked, self.wrong = 0, []

    def accepts(self, table: str, changes: dict[str, str | None]) -> None:
        self._file.write(table, changes)
        code, told = self._told()
        if code != 0 or told:
            self.wrong.append(f"{table} with {changes} is refused: {told}")

    def refuses(self, table: str, changes: dict[str, str | None], at: str, *words: str) -> None:
        """Check that one line names the file, the line of the key `at`, and one of the words."""
        lines = self._file.write(table, changes)
        code, told = self._told()
        line = lines[at] if at in lines else lines[""]
        place = f", line {line}" if line else ""
        start = f"hocket: {self._file.path}{place}: {table}{': ' if table else ''}"
        named = any(one in told for one in words)
        if code != 2 or not told.startswith(start) or told.count("\n") != 1 or not named:
            self.wrong.append(f"{table} with {changes}: exit code {code}, expected {start} … {words}, told {told!r}")

    def _told(self) -> tuple[int, str]:
        self.checked += 1
        code: Any = main(["emulate", str(self._file.path), "--check", "--dir", str(self._file.path.parent)])
        return code, self._capsys.readouterr().err


def _check(checker: Checker, table: str, keys: tuple[Key, ...], needed: tuple[str, ...]) -> None:
    """Check every mistake in every key of a table. `needed`: keys that the table cannot do without."""
    checker.accepts(table, {})
    for name in needed:
        checker.refuses(table, {name: None}, "", f"key '{name}' is missing", f"neither {name} nor ", f"nor {name} ")
    for key in keys:
        for mistake in _mistakes(key):
            checker.refuses(table, {key.name: mistake}, key.name, *_below(key, mistake))
    for name in ("no_such_key", keys[0].name + "s", keys[0].name.upper()):
        for value in ("7", "[[1]]", "'x'"):
            checker.refuses(table, {name: value}, name, f"key '{name}' = {_shown(value)} is unknown; use ")
    assert checker.wrong == []


OF_GROUPS = (*GROUP, *METHODS)
TABLES = {"": TOP, "data": DATA, "group 1": GROUP, "group 2": OF_GROUPS, "phase 1": PHASE}


@pytest.mark.parametrize("table", TABLES)
def test_mistakes_of_each_table(tmp_path: Path, capsys: pytest.CaptureFixture, table: str):
    checker = Checker(File(tmp_path / "app.toml"), capsys)
    keys = TABLES[table]
    _check(checker, table, keys, tuple(key.name for key in keys if key.default is MUST))
    assert checker.checked > 5 * len(keys)


@pytest.mark.parametrize("kind", STAGES)
def test_mistakes_of_each_kind_of_stage(tmp_path: Path, capsys: pytest.CaptureFixture, kind: str):
    checker = Checker(File(tmp_path / "app.toml", kind), capsys)
    own = tuple(key for key in STAGE if kind in key.stages)
    assert {key.name for key in own if key.default is MUST} <= {"kind", *NEEDED[kind]}
    stage = "phase 1, stage 2"
    for key in STAGE:
        if key not in own:
            told = f"{key.name} = 1 means nothing in a stage of kind '{kind}'"
            checker.refuses(stage, {key.name: "1"}, key.name, told)
    _check(checker, stage, own, ("kind", *NEEDED[kind]))


WORDS = [(at, key, word) for at, keys in (("group 2", METHODS), ("", STAGE)) for key in keys for word in key.words]


@pytest.mark.parametrize(("at", "key", "word"), [one for one in WORDS if one[1].name != "kind"])
def test_each_word_is_known(tmp_path: Path, capsys: pytest.CaptureFixture, at: str, key: Key, word: str):
    """A word that were misspelt in the declaration, or that no kind of stage can have, would be refused here."""
    kind = "compute" if key.name in ("distribution", "ends_by") else "write"
    checker = Checker(File(tmp_path / "app.toml", kind), capsys)
    beside = {"imbalance": "1.5"} if key.name == "distribution" else {}
    checker.accepts(at or "phase 1, stage 2", {key.name: f'"{word}"', **beside})
    assert checker.wrong == []


@pytest.mark.parametrize("value", ["3", "'x'", "true", "[1]", "[[]]"])
@pytest.mark.parametrize("name", ["data", "group", "phase", "stage"])
def test_a_table_that_is_none_is_named(tmp_path: Path, capsys: pytest.CaptureFixture, name: str, value: str):
    file = File(tmp_path / "app.toml")
    heading = {"data": "[data]", "stage": "[[phase.stage]]"}.get(name, f"[[{name}]]")
    left_out = (heading, "[[phase.stage]]") if name == "phase" else (heading,)
    file.tables = [one for one in file.tables if one[0] not in left_out]
    checker = Checker(file, capsys)
    checker.refuses("phase 1" if name == "stage" else "", {name: value}, name, f"{name} = {_shown(value)} is no ")
    assert checker.wrong == []
