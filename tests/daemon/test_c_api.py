"""The public C API as a user gets it: the installed headers, libhocket.so, and the example that shows them."""

import re
import subprocess
from pathlib import Path

import pytest
from api_kit import build, dynamic_symbols
from checkout import REPO

EXAMPLE = REPO / "examples" / "events"


@pytest.fixture
def events_program(prefix: Path, tmp_path: Path) -> Path:
    """Build the example as C99 against the prefix."""
    return build(prefix, EXAMPLE / "events.c", tmp_path / "events")


def test_example_prints_what_it_should(daemon, events_program):
    done = subprocess.run([events_program], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr, done.returncode) == ((EXAMPLE / "expected.txt").read_text(), "", 0)


def test_without_a_daemon_says_so(hocket_dir, events_program):
    done = subprocess.run([events_program], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert done.stderr == (
        f"events: no hocketd listens at {hocket_dir}/hocketd.sock: No such file or directory; "
        "start one with 'hocket daemon start'\n"
    )


@pytest.mark.parametrize("language", [["gcc", "-x", "c", "-std=c99"], ["g++", "-x", "c++", "-std=c++11"]])
@pytest.mark.parametrize("header", ["error.h", "bus.h", "file.h"])
def test_header_stands_alone(prefix, language, header):
    subprocess.run(
        [*language, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{prefix}/include", "-"],
        input=f"#include <hocket/{header}>\n",
        text=True,
        check=True,
    )


HEADERS = sorted((REPO / "include" / "hocket").glob("*.h"))


@pytest.mark.parametrize("header", HEADERS, ids=[header.name for header in HEADERS])
def test_names_begin_with_the_subject_of_their_header(header):
    subject = header.stem.removesuffix("_mpi")  # the part of a subject that needs MPI
    code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    names = set(re.findall(r"\bhocket_\w+", code, re.IGNORECASE)) - {"HOCKET_API", "HOCKET_OK"}
    assert [name for name in sorted(names) if not re.match(rf"hocket_{subject}(_|$)", name.lower())] == []


def test_library_shows_its_api_alone_and_brings_nothing(prefix):
    library = prefix / "lib" / "libhocket.so"
    shown = dynamic_symbols(library, "--defined-only")
    assert [name for name in shown if not name.startswith("hocket_")] == []
    headers = "".join((prefix / "include" / "hocket" / name).read_text() for name in ("error.h", "bus.h", "file.h"))
    assert [name for name in shown if name not in headers] == []
    needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    libraries = [line.split("[")[1].rstrip("]") for line in needed.splitlines() if "NEEDED" in line]
    sanitizers = {"libasan", "libubsan"}
    assert {name.split(".so")[0] for name in libraries} - sanitizers <= {"libc", "libm", "ld-linux-x86-64"}
