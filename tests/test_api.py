"""The public C API as a user gets it: the installed headers, libhocket.so, and the example that shows them."""

import subprocess
from pathlib import Path

import pytest
from api_kit import build, dynamic_symbols

REPO = Path(__file__).resolve().parent.parent
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
@pytest.mark.parametrize("header", ["hocket.h", "data.h"])
def test_header_stands_alone(prefix, language, header):
    subprocess.run(
        [*language, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{prefix}/include", "-"],
        input=f"#include <hocket/{header}>\n",
        text=True,
        check=True,
    )


def test_library_shows_its_api_alone_and_brings_nothing(prefix):
    library = prefix / "lib" / "libhocket.so"
    shown = dynamic_symbols(library, "--defined-only")
    assert [name for name in shown if not name.startswith("hocket_")] == []
    headers = "".join((prefix / "include" / "hocket" / name).read_text() for name in ("hocket.h", "data.h"))
    assert [name for name in shown if name not in headers] == []
    needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    libraries = [line.split("[")[1].rstrip("]") for line in needed.splitlines() if "NEEDED" in line]
    sanitizers = {"libasan", "libubsan"}
    assert {name.split(".so")[0] for name in libraries} - sanitizers <= {"libc", "libm", "ld-linux-x86-64"}
