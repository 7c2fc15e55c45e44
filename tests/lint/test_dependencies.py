"""The rooms of src/ include only what their targets declare, without cycles, and what is called pure is pure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checkout import REPO

PURE = {
    "base", "event", "explain", "model", "policy", "coordinator", "redistribute", "layout", "collective_plan",
    "request_scheduler", "allocation", "file_system",
}  # fmt: skip
# These headers of pure rooms, and their sources, are not pure. They serve the programs around: a clock, descriptors,
# the host name, files of the system, the layout of a file, the mounts.
SHELL_HEADERS = {
    "base/clock.hpp", "base/descriptor.hpp", "base/host_name.hpp", "base/kept_descriptor.hpp",
    "base/node_number.hpp", "base/unix_address.hpp", "base/whole_file.hpp",
    "file_system/ask_stripes.hpp", "file_system/ask_target.hpp",
}  # fmt: skip
# These standard headers bring a clock, randomness, a thread, a file, or a stream, which a pure room must not have.
IMPURE = {
    "atomic", "condition_variable", "ctime", "cstdio", "filesystem", "fstream", "future", "iostream", "mutex",
    "random", "shared_mutex", "stop_token", "semaphore", "thread",
}  # fmt: skip
IMPURE_CALLS = re.compile(r"\b(?:\w*_clock::now|clock_gettime|gettimeofday|std::rand|getenv\(|time\(nullptr\))")


# Each group of rooms may include these other groups.
GROUPS: dict[str, set[str]] = {
    "core": set(),
    "control": {"core"},
    "data": {"core", "control"},
    "libhocket": {"core", "control", "data"},
    "tools": {"core", "control"},
}
# A header outside of a pure room that calls itself pure may include these headers, which only name things.
PURE_ENOUGH = {"mpi_shim/spent.hpp"}

# This command links more to the test program of a folder than to the folder.
TEST_LINKS = re.compile(r"target_link_libraries\(\w+_test\b[^)]*\)")
SECTIONS = {"DEPENDS", "SYSTEM", "FOLDERS", "SOURCES", "GENERATED"}


def folders(src: Path) -> dict[str, Path]:
    """Return a map from each room to its folder; rooms lie in groups."""
    found = {path.name: path for path in sorted(src.glob("*/*")) if path.is_dir()}
    assert len(found) == len([path for path in src.glob("*/*") if path.is_dir()]), "two rooms have one name"
    return found


def sections(call: str) -> dict[str, list[str]]:
    """Return the arguments of a hocket_library or hocket_mpi_room by section; "" has those before the first one."""
    result: dict[str, list[str]] = {"": []}
    name = ""
    for word in call.split():
        if word in SECTIONS:
            name = word
        result.setdefault(name, []).extend([] if word in SECTIONS else [word])
    return result


def calls(cmake: Path) -> list[dict[str, list[str]]]:
    text = re.sub(r"#.*", "", cmake.read_text())
    return [sections(call) for call in re.findall(r"hocket_(?:library|mpi_room)\(([^)]*)\)", text)]


def declared(src: Path, of_tests: bool = False) -> dict[str, set[str]]:
    """Return a map from each room to the rooms that its CMakeLists.txt declares.

    With `of_tests`, the rooms that only its test programs link to are included.
    """
    result = {}
    rooms = folders(src)
    for room, folder in rooms.items():
        cmake = folder / "CMakeLists.txt"
        text = re.sub(r"#.*", "", cmake.read_text())
        if not of_tests:
            text = TEST_LINKS.sub("", text)
        # The scan covers the room's own library and every other target there, hocket_unit_tests and programs included.
        names = set(re.findall(r"\bhocket_(\w+)\b", text)) | {
            name for call in calls(cmake) for name in call.get("DEPENDS", [])
        }
        result[room] = (names & set(rooms)) - {room}
    return result


def includes(folder: Path) -> list[tuple[Path, str, str]]:
    """Return (file, '"' or '<', header) for every include in the folder and below; or of one file."""
    found = []
    for file in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
        if file.suffix in {".hpp", ".cpp", ".h", ".c"}:
            for kind, header in re.findall(r'^\s*#\s*include\s*(["<])([^">]+)[">]', file.read_text(), re.M):
                found.append((file, kind, header))
    return found


def is_of_tests(file: Path) -> bool:
    return file.stem.endswith(("_test", "_testing")) or file.stem == "testing"


def undeclared(src: Path) -> list[str]:
    """Return one line for each include that the room's target does not declare."""
    allowed, of_tests, rooms = declared(src), declared(src, of_tests=True), folders(src)
    wrong = []
    for room, folder in rooms.items():
        for file, kind, header in includes(folder):
            names = (of_tests if is_of_tests(file) else allowed)[room]
            other = header.split("/")[0]
            if kind == '"' and other in rooms and other != room and other not in names:
                name = file.relative_to(folder.parent)
                wrong.append(f"{name} includes {header}, but {room}/CMakeLists.txt declares no {other}")
    return wrong


def disordered(src: Path) -> list[str]:
    """Return one line for each room that depends on a group above its own."""
    rooms = folders(src)
    return [
        f"{room} ({folder.parent.name}) depends on {other} ({rooms[other].parent.name})"
        for room, folder in rooms.items()
        for other in sorted(declared(src)[room])
        if rooms[other].parent.name not in GROUPS[folder.parent.name] | {folder.parent.name}
    ]


def nested(room: Path) -> dict[str, set[str]]:
    """Return a map from each folder inside a room to the folders that its files include; "" is the room's own level.

    What the room's level includes of its folders counts, and so does what they include of the files there that do so:
    a folder that includes the file which ties all together would close a circle.
    """
    graph: dict[str, set[str]] = {}
    inner = {path.name for path in room.iterdir() if path.is_dir()}
    ties = {
        file.name
        for file, _, header in includes(room)
        if file.parent == room and header.split("/")[0] == room.name and header.split("/")[1] in inner
    }
    for file, kind, header in includes(room):
        if is_of_tests(file) or kind != '"' or header.split("/")[0] != room.name:
            continue
        own, other = file.relative_to(room).parts[:-1], header.split("/")[1:]
        here = own[0] if own else ""
        if other[0] in inner:
            graph.setdefault(here, set()).add(other[0])
        elif other[0] in ties and here:
            graph.setdefault(here, set()).add("")
    return {folder: others - {folder} for folder, others in graph.items()}


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


def impurities_of(file: Path, name: str) -> list[str]:
    """Return one line for each impurity of a file."""
    wrong = []
    for _, kind, header in includes(file):
        if kind == '"' and header in SHELL_HEADERS:
            wrong.append(f"{name} includes {header}: what is pure gets the time with the event")
        if kind == "<" and ("/" in header or "." in header or header in IMPURE):
            wrong.append(f"{name} includes <{header}>: what is pure has the plain standard library alone")
    return wrong + [f"{name} calls {call}" for call in IMPURE_CALLS.findall(file.read_text())]


def impurities(src: Path) -> list[str]:
    """Return one line for each impurity in a pure room. Tests beside the source are exempt."""
    wrong = []
    for room, folder in folders(src).items():
        for file in sorted(folder.rglob("*.[ch]pp")) if room in PURE else []:
            name = file.relative_to(folder.parent)
            if not is_of_tests(file) and str(name.with_suffix(".hpp")) not in SHELL_HEADERS:
                wrong += impurities_of(file, str(name))
    return wrong


def says_pure(file: Path) -> bool:
    """True if the comment at the head of a file calls the whole file pure: "Pure.", "Pure; not thread-safe." …"""
    head = " ".join(re.match(r"(?://[^\n]*\n)*", file.read_text())[0].replace("//", " ").split())
    return re.search(r"(?:^|[.:;] )Pure(?: state machines?| functions?[^.]*)?(?:[.;:,]|$)", head) is not None


def not_so_pure(src: Path) -> list[str]:
    """Return one line for each impurity of a file outside of the pure rooms whose head calls it pure.

    Its source file of the same name counts too. Project headers must be of a pure room, or pure themselves.
    """
    wrong = []
    rooms = folders(src)
    for room, folder in rooms.items():
        for header in sorted(folder.rglob("*.hpp")) if room not in PURE else []:
            if is_of_tests(header) or not says_pure(header):
                continue
            for file in filter(Path.exists, [header, header.with_suffix(".cpp")]):
                name = str(file.relative_to(folder.parent))
                wrong += impurities_of(file, name)
                for _, kind, other in includes(file):
                    at = rooms.get(other.split("/")[0])
                    if kind != '"' or at is None or at.name in PURE or other in PURE_ENOUGH:
                        continue
                    if not says_pure(at.parent / other):
                        wrong.append(f"{name} includes {other}, which is not pure")
    return wrong


def test_every_include_is_declared():
    assert undeclared(REPO / "src") == []


def test_no_cycle():
    assert cycle(declared(REPO / "src")) == []


def test_no_cycle_among_the_folders_inside_a_room():
    rooms = {room: nested(folder) for room, folder in folders(REPO / "src").items()}
    assert rooms["coordinator"]["cores"] == set(), "the check sees the folders of the coordinator"
    assert {room: found for room, graph in rooms.items() if (found := cycle(graph))} == {}


def test_every_folder_inside_a_room_is_declared():
    for room, folder in folders(REPO / "src").items():
        told = {name for call in calls(folder / "CMakeLists.txt") for name in call.get("FOLDERS", [])}
        # A library, and programs of their own.
        built = {"pypolicy": {"module"}, "forwarding": {"fuse"}, "emulator": {"program"}}.get(room, set())
        assert {path.name for path in folder.iterdir() if path.is_dir()} - {"__pycache__"} == told | built, room


def test_groups_keep_their_order():
    assert {path.name for path in (REPO / "src").iterdir() if path.is_dir()} == set(GROUPS)
    assert disordered(REPO / "src") == []


def test_pure_rooms_are_pure():
    assert impurities(REPO / "src") == []


def test_a_file_that_is_called_pure_is_pure():
    assert not_so_pure(REPO / "src") == []


def test_rooms_on_top_are_included_by_nobody():
    tops = {"collective", "malleable", "daemon", "sim", "server"}
    graph = declared(REPO / "src")
    assert {room: sorted(names & tops) for room, names in graph.items() if names & tops} == {}


def test_every_message_from_any_rank_is_received_by_one_function():
    """MPICH loses messages between nodes whose receive names MPI_ANY_SOURCE, so a probe finds the sender first."""
    sources = [*(REPO / "src").rglob("*.cpp"), *(REPO / "src").rglob("*.hpp")]
    named = [line.strip() for path in sources for line in path.read_text().splitlines() if "MPI_ANY_SOURCE" in line]
    assert named, "the test looks in the wrong place"
    assert [line for line in named if not re.match(r"//|(if \()?HOCKET_PMPI\(Iprobe\)\(MPI_ANY_SOURCE,", line)] == []


def test_interception_includes_no_service():
    assert declared(REPO / "src")["intercept"] & {"collective", "malleable", "collective_plan", "redistribute"} == set()


def test_architecture_tells_the_same_story():
    """The tables of ARCHITECTURE.md, the folders, and the targets agree."""
    rows = re.findall(r"^\| `src/(\w+/\w+)/` \|.*\|([^|]*)\|$", (REPO / "ARCHITECTURE.md").read_text(), re.M)
    told = {Path(room).name: set() if "nothing" in text else set(text.split()) for room, text in rows}
    built = declared(REPO / "src")
    assert sorted(room for room, _ in rows) == sorted(
        str(path.relative_to(REPO / "src")) for path in folders(REPO / "src").values()
    )
    assert {room: sorted(names) for room, names in told.items()} == {room: sorted(n) for room, n in built.items()}


@pytest.fixture
def rooms(tmp_path):
    """Make two rooms, `low` and `high`, in two groups; high may include low."""
    for group, name, text in (
        ("core", "low", "hocket_library(low)"),
        ("control", "high", "hocket_library(high DEPENDS low)"),
    ):
        folder = tmp_path / group / name
        folder.mkdir(parents=True)
        (folder / "CMakeLists.txt").write_text(text)
        (folder / f"{name}.hpp").write_text("#pragma once\n")
    (tmp_path / "control" / "high" / "high.cpp").write_text('#include "low/low.hpp"\n')
    return tmp_path


def test_the_check_passes_a_good_house(rooms):
    assert undeclared(rooms) == [] and disordered(rooms) == []


def test_the_check_finds_an_undeclared_include(rooms):
    (rooms / "core" / "low" / "inner").mkdir()
    (rooms / "core" / "low" / "inner" / "low.cpp").write_text('#include "high/high.hpp"\n')
    assert undeclared(rooms) == ["low/inner/low.cpp includes high/high.hpp, but low/CMakeLists.txt declares no high"]


def test_what_a_test_links_is_for_tests_alone(rooms):
    cmake = "hocket_library(low)\ntarget_link_libraries(low_test PRIVATE hocket_high)\n"
    low = rooms / "core" / "low"
    (low / "CMakeLists.txt").write_text(cmake)
    (low / "low_test.cpp").write_text('#include "high/high.hpp"\n')
    assert undeclared(rooms) == []
    assert cycle(declared(rooms)) == []
    (low / "low.cpp").write_text('#include "high/high.hpp"\n')
    assert undeclared(rooms) == ["low/low.cpp includes high/high.hpp, but low/CMakeLists.txt declares no high"]


def test_the_check_finds_a_cycle_and_a_wrong_order(rooms):
    (rooms / "core" / "low" / "CMakeLists.txt").write_text("hocket_library(low DEPENDS high)")
    assert cycle(declared(rooms)) == ["high", "low", "high"]
    assert disordered(rooms) == ["low (core) depends on high (control)"]


def test_the_check_finds_a_cycle_inside_a_room(rooms):
    low = rooms / "core" / "low"
    for folder, other in (("a", "b"), ("b", "a")):
        (low / folder).mkdir()
        (low / folder / f"{folder}.hpp").write_text(f'#include "low/{other}/{other}.hpp"\n')
    assert cycle(nested(low)) == ["a", "b", "a"]
    (low / "b" / "b.hpp").write_text('#include "low/low.hpp"\n')
    assert cycle(nested(low)) == []
    (low / "low.hpp").write_text('#include "low/a/a.hpp"\n')
    assert cycle(nested(low)) != []


def test_the_check_finds_an_impure_room(rooms):
    (rooms / "core" / "model" / "deep").mkdir(parents=True)
    (rooms / "core" / "model" / "CMakeLists.txt").write_text("hocket_library(model)")
    (rooms / "core" / "model" / "a.cpp").write_text("#include <thread>\n#include <sys/socket.h>\n#include <vector>\n")
    (rooms / "core" / "model" / "deep" / "b.cpp").write_text("auto t = std::chrono::steady_clock::now();\n")
    assert len(impurities(rooms)) == 3


def test_the_check_finds_a_file_that_is_not_as_pure_as_it_says(rooms):
    high = rooms / "control" / "high"
    (high / "plan.hpp").write_text('// A plan. Pure; not thread-safe.\n#include "high/clock.hpp"\n')
    (high / "clock.hpp").write_text("// A clock.\n#pragma once\n")
    (high / "plan.cpp").write_text("#include <mutex>\n")
    assert not_so_pure(rooms) == [
        "high/plan.hpp includes high/clock.hpp, which is not pure",
        "high/plan.cpp includes <mutex>: what is pure has the plain standard library alone",
    ]
