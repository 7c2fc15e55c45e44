"""Damaged and forged traces: each command that reads one answers in one line, and never with a Python traceback."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from checkout import DATA, REPO
from hocket.fields import KEYS, REASONS, TYPES

TRACES = sorted(path for path in DATA.glob("*.jsonl"))
SEEDS = range(9)  # for each trace; 60 more were run when this test was written
LIMIT_S = 60
STRANGE = (
    None, True, -1, 0, 2**63 - 1, -(2**63), 2**63, 10**400, 1.5, -1e308, float("nan"), "", "x", "\ud800", "\n\x1b[2J",
    [], {}, [1], {"kind": "access"}, {"properties": {"a": 1}},
)  # fmt: skip
pytestmark = pytest.mark.timeout(600)


# ---- mutations -----------------------------------------------------------------------------------------------------


def change_bytes(text: bytes, chance: random.Random) -> bytes:
    """Replace, remove or insert a few bytes anywhere."""
    changed = bytearray(text)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(changed))
        changed[at : at + chance.randint(0, 3)] = bytes(chance.choices(range(256), k=chance.randint(0, 3)))
    return bytes(changed)


def change_values(text: bytes, chance: random.Random) -> bytes:
    """Give fields of a few lines strange values, the header's too, or remove them."""
    lines = text.splitlines()
    for _ in range(chance.randint(1, 4)):
        at = chance.choice((0, chance.randrange(len(lines)), chance.randrange(len(lines))))
        keys = json.loads(lines[at])
        if not isinstance(keys, dict) or not keys:
            continue
        inner = [value for value in keys.values() if isinstance(value, dict) and value]
        part = chance.choice([keys, keys, *inner])
        key = chance.choice([*part, "stopped_ns", "outcomes", "properties"])
        part[key] = chance.choice(STRANGE)
        if chance.random() < 0.25:
            del part[key]
        lines[at] = json.dumps(keys).encode()
    return b"\n".join(lines) + b"\n"


def change_order(text: bytes, chance: random.Random) -> bytes:
    """Remove, repeat and exchange lines."""
    head, *lines = text.splitlines()
    for _ in range(chance.randint(1, 8)):
        one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        change = chance.choice(["remove", "repeat", "exchange", "rename"])
        if change == "remove" and len(lines) > 1:
            del lines[one]
        elif change == "repeat":
            lines.insert(other, lines[one])
        elif change == "exchange":
            lines[one], lines[other] = lines[other], lines[one]
        else:
            lines[one] = re.sub(rb'"(in|out)": "\w+"', chance.choice(TYPE_NAMES), lines[one], count=1)
    return b"\n".join([head, *lines]) + b"\n"


TYPE_NAMES = sorted({name for path in TRACES for name in re.findall(rb'"(?:in|out)": "\w+"', path.read_bytes())})
MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (change_bytes, change_values, change_order)


def mutated(directory: Path) -> Iterator[Path]:
    for path in TRACES:
        for seed in SEEDS:
            chance = random.Random(f"{path.name} {seed}")
            file = directory / f"{path.stem}-{seed}.jsonl"
            file.write_bytes(MUTATIONS[seed % len(MUTATIONS)](path.read_bytes(), chance))
            yield file


# ---- commands ------------------------------------------------------------------------------------------------------

# Runs every command on every trace in one process, because starting Python takes longer than reading a trace.
COMMANDS = """
import contextlib, io, json, sys, time, traceback
from hocket.cli import main

for path in sys.stdin.read().split():
    for words in (
        ["trace", "export", path], ["trace", "summary", path], ["trace", "summary", "--json", path],
        ["report", path, "-o", sys.argv[1]], ["explain", "--trace", path], ["explain", "--json", "--trace", path],
        ["top", "--from-trace", path],
    ):
        out, err, since = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO(), time.monotonic()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(words)
                out.flush()
            wrong = "" if code in (0, 1) and err.getvalue().count("\\n") <= 1 else f"{code}: {err.getvalue()}"
        except BaseException:
            wrong = traceback.format_exc()
        if time.monotonic() - since > 20:
            wrong += f"took {time.monotonic() - since:.1f} s"
        if wrong:
            print(json.dumps([words, wrong]), flush=True)
"""


def test_each_command_answers_in_one_line(tmp_path: Path, prefix: Path) -> None:
    (tmp_path / "traces").mkdir()
    paths = "\n".join(map(str, mutated(tmp_path / "traces")))
    command = [sys.executable, "-c", COMMANDS, str(tmp_path / "report")]
    done = subprocess.run(command, input=paths, capture_output=True, text=True, timeout=580)
    wrong = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert not wrong, f"{len(wrong)}, the first: {' '.join(wrong[0][0])}\n{wrong[0][1]}"


def test_a_replay_answers_in_one_line(tmp_path: Path, prefix: Path) -> None:
    for path in mutated(tmp_path):
        command = [prefix / "bin" / "hocketd", "--replay", path]
        done = subprocess.run(command, capture_output=True, timeout=LIMIT_S)
        assert done.returncode in (0, 1), (path, done)
        if done.returncode == 1:
            told = done.stderr.decode()
            assert (done.stdout, told.count("\n")) == (b"", 1) and told.startswith("hocketd: "), (path, told)
            assert all(letter.isprintable() or letter == "\n" for letter in told), told


# ---- the table of types --------------------------------------------------------------------------------------------


def types_in_cpp() -> dict[str, set[str]]:
    """Return the C++ types of the members that have each key."""
    headers, kinds = REPO / "src/core/event", ("member", "daemon", "command", "tool")
    events = "\n".join((headers / f"{kind}_events.hpp").read_text() for kind in kinds)
    member = re.compile(r"^  (?!static|using)([\w:]+) (\w+)(?: *\{\}| = [^;]+)?;", re.MULTILINE)
    structs = {
        name: {one[2]: one[1] for one in member.finditer(body)}
        for name, body in re.findall(r"^struct (\w+)[^{;]*\{\n(.*?)^\};", events, re.DOTALL | re.MULTILINE)
    }
    found: dict[str, set[str]] = {}
    lists = "\n".join((headers / f"{kind}_fields.hpp").read_text() for kind in kinds)
    for name, body in re.findall(r"template <Of<(\w+)> E(.*?)(?:\n|\{)\}", lists, re.DOTALL):
        for key, member in re.findall(r'visit\("(\w+)", e\.(\w+)\)', body):
            found.setdefault(key, set()).add(structs[name].get(member, ""))
    return found


def test_the_table_of_types_has_every_field() -> None:
    python = {str: {"std::string", "Prose"}, bool: {"bool"}, float: {"double"}}
    for key, kinds in types_in_cpp().items():
        known = kinds - {"", "Reason", "Properties"}
        if not known:
            assert key in (*REASONS, "properties"), key
        elif TYPES[key] is int:
            assert all(kind in ("std::int64_t", "Duration", "Time") or kind.endswith("Id") for kind in known), key
        else:
            assert known <= python[TYPES[key]], key
    assert len(TYPES) == sum(len(keys.split()) for keys in KEYS.values()), "a key has two types"
