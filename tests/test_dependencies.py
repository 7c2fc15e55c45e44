"""The rooms of src/ include only what their targets declare, without cycles, and pure rooms stay pure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
PURE = {"base", "event", "model", "policy", "coordinator", "redistribute", "layout"}
# These headers of pure rooms are not pure. They serve the programs around: a clock, descriptors, the host name.
SHELL_HEADERS = {"base/clock.hpp", "base/descriptor.hpp", "base/host_name.hpp"}
# These standard headers bring a clock, randomness, a thread, a file, or a stream, which a pure room must not have.
IMPURE = {
    "atomic", "condition_variable", "ctime", "cstdio", "filesystem", "fstream", "future", "iostream", "mutex",
    "random", "shared_mutex", "stop_token", "semaphore", "thread",
}  # fmt: skip
IMPURE_CALLS = re.compile(r"\b(?:\w*_clock::now|clock_gettime|gettimeofday|std::rand|getenv|time\(nullptr\))")


def declared(src: Path) -> dict[str, set[str]]:
    """Return a map from each folder to the folders that its CMakeLists.txt declares."""
    result = {}
    for cmake in sorted(src.glob("*/CMakeLists.txt")):
        text = re.sub(r"#.*", "", cmake.read_text())
        # The scan covers the folder's own library and every other target there, hocket_unit_tests and programs
        # included.
        names = set(re.findall(r"\bhocket_(\w+)\b", text)) - {"library", "unit_tests"}
        for call in re.findall(r"hocket_library\(([^)]*)\)", text):
            words = call.split()
            if "DEPENDS" in words:
                rest = words[words.index("DEPENDS") + 1 :]
                names |= set(rest[: rest.index("SYSTEM")] if "SYSTEM" in rest else rest)
        result[cmake.parent.name] = {n for n in names if (src / n).is_dir()} - {cmake.parent.name}
    return result


def includes(folder: Path) -> list[tuple[Path, str, str]]:
    """Return (file, '"' or '<', header) for every include in the folder."""
    found = []
    for file in sorted(folder.rglob("*")):
        if file.suffix in {".hpp", ".cpp", ".h", ".c"}:
            for kind, header in re.findall(r'^\s*#\s*include\s*(["<])([^">]+)[">]', file.read_text(), re.M):
                found.append((file, kind, header))
    return found


def undeclared(src: Path) -> list[str]:
    """Return one line for each include that the folder's target does not declare."""
    allowed = declared(src)
    wrong = []
    for folder, names in allowed.items():
        for file, kind, header in includes(src / folder):
            room = header.split("/")[0]
            if kind == '"' and (src / room).is_dir() and room != folder and room not in names:
                wrong.append(
                    f"{file.relative_to(src)} includes {header}, but {folder}/CMakeLists.txt declares no {room}"
                )
    return wrong


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return a cycle of folders, or an empty list."""
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        for following in sorted(graph.get(node, ())):
            if found := visit(following, [*path, node]):
                return found
        done.add(node)
        return []

    for start in sorted(graph):
        if found := visit(start, []):
            return found
    return []


def impurities(src: Path) -> list[str]:
    """Return one line for each impurity in a pure room. Tests beside the source are exempt."""
    wrong = []
    for room in sorted(PURE & {p.name for p in src.iterdir()}):
        for file, kind, header in includes(src / room):
            name = str(file.relative_to(src))
            if file.stem.endswith(("_test", "_testing")) or name in SHELL_HEADERS:
                continue
            if kind == '"' and header in SHELL_HEADERS:
                wrong.append(f"{name} includes {header}: pure rooms get the time with the event")
            if kind == "<" and ("/" in header or "." in header or header in IMPURE):
                wrong.append(f"{name} includes <{header}>: pure rooms have the plain standard library alone")
        for file in sorted((src / room).glob("*.[ch]pp")):
            name = str(file.relative_to(src))
            if not file.stem.endswith("_test") and name not in SHELL_HEADERS:
                wrong += [f"{name} calls {call}" for call in IMPURE_CALLS.findall(file.read_text())]
    return wrong


def test_every_include_is_declared():
    assert undeclared(REPO / "src") == []


def test_no_cycle():
    assert cycle(declared(REPO / "src")) == []


def test_pure_rooms_are_pure():
    assert impurities(REPO / "src") == []


def test_rooms_on_top_are_included_by_nobody():
    tops = {"runtime", "daemon", "sim", "server"}
    graph = declared(REPO / "src")
    assert {room: sorted(names & tops) for room, names in graph.items() if names & tops} == {}


def test_architecture_tells_the_same_story():
    """The table of ARCHITECTURE.md, the folders, and the targets agree."""
    table = dict(re.findall(r"^\| `src/(\w+)/` \|.*\|([^|]*)\|$", (REPO / "ARCHITECTURE.md").read_text(), re.M))
    told = {room: set() if "nothing" in text else set(text.split()) for room, text in table.items()}
    built = declared(REPO / "src")
    assert sorted(told) == sorted(built) == sorted(p.name for p in (REPO / "src").iterdir() if p.is_dir())
    assert {room: sorted(names) for room, names in told.items()} == {room: sorted(n) for room, n in built.items()}


@pytest.fixture
def rooms(tmp_path):
    """Make two rooms, `low` and `high`; high may include low."""
    for name, text in {"low": "hocket_library(low)", "high": "hocket_library(high DEPENDS low)"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "CMakeLists.txt").write_text(text)
        (tmp_path / name / f"{name}.hpp").write_text("#pragma once\n")
    (tmp_path / "high" / "high.cpp").write_text('#include "low/low.hpp"\n')
    return tmp_path


def test_the_check_passes_a_good_house(rooms):
    assert undeclared(rooms) == []


def test_the_check_finds_an_undeclared_include(rooms):
    (rooms / "low" / "low.cpp").write_text('#include "high/high.hpp"\n')
    assert undeclared(rooms) == ["low/low.cpp includes high/high.hpp, but low/CMakeLists.txt declares no high"]


def test_the_check_finds_a_cycle(rooms):
    (rooms / "low" / "CMakeLists.txt").write_text("hocket_library(low DEPENDS high)")
    assert cycle(declared(rooms)) == ["high", "low", "high"]


def test_the_check_finds_an_impure_room(rooms):
    (rooms / "model").mkdir()
    (rooms / "model" / "a.cpp").write_text("#include <thread>\n#include <sys/socket.h>\n#include <vector>\n")
    (rooms / "model" / "b.cpp").write_text("auto t = std::chrono::steady_clock::now();\n")
    assert len(impurities(rooms)) == 3
