"""The malleable Jacobi of examples/malleable, in C and in Fortran, built as its page says and run with resizes."""

import json
import re
import subprocess
from pathlib import Path

import malleable_kit
import pytest
import runtime_kit
from checkout import PROGRAMS, REPO

EXAMPLE = REPO / "examples" / "malleable"
PAGE = REPO / "docs" / "malleable.md"
LIMIT_S = 60

RESIZED = (EXAMPLE / "expected.txt").read_text().splitlines()
PLAIN = [line.replace("4 processes", "2 processes") for line in RESIZED]
# Two of four original ranks sleep from iteration 5 to 15: those iterations must not be computed by them afterwards.
SLEPT = [re.sub("[24] processes", f"{n} processes", line) for n, line in zip((2, 4, 4), RESIZED, strict=False)]
SLEEP = {"HOCKET_RESIZE": "5:2,15:4"}


def build_c(mpi: runtime_kit.Mpi, source: Path, program: Path, *more: str) -> Path:
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run([*mpi.compilers[".c"], *strict, source, "-o", program, *more, "-lm"], check=True, timeout=LIMIT_S)
    return program


def build_fortran(mpi: runtime_kit.Mpi, directory: Path, sources: list[Path], *more: str) -> Path:
    program = directory / "jacobi"
    compiler = mpi.compilers[".F90"]
    subprocess.run([*compiler, *sources, "-o", program, *more], check=True, timeout=LIMIT_S, cwd=directory)
    return program


def printed(mpi: runtime_kit.Mpi, program: Path, ranks: int = 2, iterations: int = 40, **settings: str) -> list[str]:
    """Return the lines that the ranks print on stdout, with numbers as C prints them."""
    settings |= malleable_kit.OPENMPI if mpi.name == "openmpi" else {}
    done = mpi.run([program, iterations], settings, ranks=ranks, limit_s=LIMIT_S, preload="")
    assert done.code == 0, f"{mpi.name}: exit code {done.code}\n{done.out}{done.err}"
    return done.out.replace("E-", "e-").splitlines()


def test_plain_c(mpi, tmp_path):
    assert printed(mpi, build_c(mpi, EXAMPLE / "jacobi.c", tmp_path / "jacobi")) == PLAIN


def test_malleable_c(mpi, prefix, tmp_path):
    program = build_c(
        mpi, EXAMPLE / "jacobi_malleable.c", tmp_path / "jacobi", *malleable_kit.link_flags(prefix, mpi.name)
    )
    assert printed(mpi, program) == PLAIN
    assert printed(mpi, program, HOCKET_RESIZE="10:4,20:2") == RESIZED
    assert printed(mpi, program, 4, 30, **SLEEP) == SLEPT


def test_plain_fortran(fortran, tmp_path):
    assert printed(fortran, build_fortran(fortran, tmp_path, [EXAMPLE / "jacobi.f90"])) == PLAIN


def test_malleable_fortran(fortran, prefix, tmp_path):
    sources = [prefix / "include" / "hocket" / "hocket_malleable.f90", EXAMPLE / "jacobi_malleable.f90"]
    program = build_fortran(fortran, tmp_path, sources, *malleable_kit.link_flags(prefix, fortran.name))
    assert printed(fortran, program) == PLAIN
    assert printed(fortran, program, HOCKET_RESIZE="10:4,20:2") == RESIZED
    assert printed(fortran, program, 4, 30, **SLEEP) == SLEPT


def test_arrays_of_all_kinds_in_fortran(fortran, prefix, tmp_path):
    sources = [prefix / "include" / "hocket" / "hocket_malleable.f90", PROGRAMS / "malleable_arrays.F90"]
    program = build_fortran(fortran, tmp_path, sources, *malleable_kit.link_flags(prefix, fortran.name))
    assert printed(fortran, program, HOCKET_RESIZE="2:4,5:1,8:3") == ["ok 3 processes"]


def test_half_of_the_data_stays_in_place(mpi, prefix, start_daemon, tmp_path):
    """With equal ranges, 2 to 4 and 4 to 2 can keep a half; without an order of the ranks they would keep a quarter."""
    flags = malleable_kit.link_flags(prefix, mpi.name)
    program = build_c(mpi, EXAMPLE / "jacobi_malleable.c", tmp_path / "jacobi", *flags)
    daemon = start_daemon()
    printed(mpi, program, 2, 20, HOCKET_RESIZE="5:4,10:2", **runtime_kit.settings(daemon.socket))

    def moves() -> list[tuple[int, float]]:
        lines = map(json.loads, daemon.trace.read_text().splitlines()[:-1])
        resizes = [line for line in lines if line.get("in") == "RECONFIGURATION"]
        return [(r["targets"], r["bytes_kept"] / (r["bytes_kept"] + r["bytes_moved"])) for r in resizes]

    # hocketd writes its trace with a delay.
    runtime_kit.wait_until(lambda: len(moves()) == 2, 10, "both resizes in the trace")
    assert moves() == [(4, 0.5), (2, 0.5)]


def main_of(source: str) -> str:
    """Return the main program of an example, as the page shows it."""
    text = (EXAMPLE / source).read_text()
    start = text.index("int main(") if source.endswith(".c") else text.index("program jacobi\n")
    return text[start:].rstrip("\n")


@pytest.mark.parametrize("source", ["jacobi.c", "jacobi_malleable.c", "jacobi.f90", "jacobi_malleable.f90"])
def test_the_page_shows_the_programs_as_they_are(source):
    assert main_of(source) in PAGE.read_text(), f"docs/malleable.md does not show main of {source} as it is"


def test_the_readme_shows_the_expected_output():
    shown = [line.strip() for line in (EXAMPLE / "README.md").read_text().splitlines()]
    first = shown.index(RESIZED[0])
    assert shown[first : first + len(RESIZED)] == RESIZED
