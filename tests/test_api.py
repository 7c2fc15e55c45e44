"""The public C API as a user has it: the installed header and libhocket.so, and the example that shows them."""

import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
EXAMPLE = REPO / "examples" / "events"


def dynamic_symbols(library: Path, which: str) -> list[str]:
    listed = subprocess.run(["nm", "-D", which, library], capture_output=True, text=True, check=True).stdout
    return [line.split()[-1].split("@")[0] for line in listed.splitlines()]


@pytest.fixture
def events_program(prefix: Path, tmp_path: Path) -> Path:
    """The example, built as C99 against the prefix."""
    program = tmp_path / "events"
    library = prefix / "lib" / "libhocket.so"
    sanitized = any(name.startswith("__asan_init") for name in dynamic_symbols(library, "--undefined-only"))
    sanitizers = ["-fsanitize=address,undefined"] if sanitized else []
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    where = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib"]
    source = EXAMPLE / "events.c"
    subprocess.run(["gcc", *strict, *sanitizers, source, "-o", program, *where, "-lhocket"], check=True)
    return program


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
def test_header_stands_alone(prefix, language):
    subprocess.run(
        [*language, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{prefix}/include", "-"],
        input="#include <hocket/hocket.h>\n",
        text=True,
        check=True,
    )


def test_library_shows_its_api_alone_and_brings_nothing(prefix):
    library = prefix / "lib" / "libhocket.so"
    shown = dynamic_symbols(library, "--defined-only")
    assert [name for name in shown if not name.startswith("hocket_")] == []
    header = (prefix / "include" / "hocket" / "hocket.h").read_text()
    assert [name for name in shown if name not in header] == []
    needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    libraries = [line.split("[")[1].rstrip("]") for line in needed.splitlines() if "NEEDED" in line]
    sanitizers = {"libasan", "libubsan"}
    assert {name.split(".so")[0] for name in libraries} - sanitizers <= {"libc", "libm", "ld-linux-x86-64"}
