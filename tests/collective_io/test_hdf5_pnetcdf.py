"""Unchanged programs of parallel HDF5 and PnetCDF under `hocket run --io hocket`: each reads what the other wrote.

HDF5's own parallel example comes from Debian's libhdf5-doc. Debian has no example of PnetCDF: tests/programs has a
program with the calls that its manual shows.
"""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import runtime_kit as kit

EXAMPLE = Path("/usr/share/doc/libhdf5-doc/examples/ph5example.c.gz")
RANKS = 4
LIMIT_S = 60
WRITTEN_BY = [("hocket", "mpi"), ("mpi", "hocket"), ("hocket", "hocket")]


@pytest.fixture
def run(prefix: Path, hocket_dir: Path, daemon):
    """Return a function that runs ranks of a program under `hocket run` and returns its output."""

    def run(mpi: kit.Mpi, io: str, program: list, environment: dict[str, str] | None = None) -> str:
        command, settings = mpi.command(RANKS, program, "", {})
        done = kit.finish(
            subprocess.Popen(
                [sys.executable, "-m", "hocket.cli", "run", "--io", io, "--", *command],
                env={**settings, "HOCKET_DIR": str(hocket_dir), "HOCKET_PREFIX": str(prefix), **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            ),
            LIMIT_S,
        )
        assert done.code == 0, f"{mpi.name}, --io {io}: {done.out}{done.err}"
        return done.out

    return run


@pytest.fixture(scope="session")
def hdf5_example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert EXAMPLE.exists(), f"no {EXAMPLE}: ./dev setup installs libhdf5-doc"
    source = tmp_path_factory.mktemp("hdf5-example") / "ph5example.c"
    source.write_bytes(gzip.decompress(EXAMPLE.read_bytes()))
    return source


@pytest.mark.parametrize("writer, reader", WRITTEN_BY)
def test_hdf5s_own_example_reads_back_what_it_wrote(
    mpi: kit.Mpi, run, hdf5_example: Path, tmp_path: Path, writer: str, reader: str
) -> None:
    """Options of the example: -c keeps the files, -r does not read, -w does not write."""
    program = tmp_path / "ph5example"
    hdf5 = [f"-I/usr/include/hdf5/{mpi.name}", f"/usr/lib/{machine()}/libhdf5_{mpi.name}.so"]
    compiler = [*mpi.compilers[".c"], "-w", "-o", program, hdf5_example, *hdf5, "-Wl,--allow-shlib-undefined"]
    subprocess.run(compiler, check=True, timeout=60, env={**os.environ, **mpi.environment})
    # Debian's HDF5 knows MPICH by another name (apps/CMakeLists.txt).
    found = {"LD_LIBRARY_PATH": str(mpi.library / "mpich-name")} if mpi.name == "mpich" else {}
    for io, options in ((writer, ["-c", "-r"]), (reader, ["-c", "-w"])):
        out = run(mpi, io, [program, *options, "-f", tmp_path], found)
        assert "PHDF5 tests finished with no errors" in out, f"{mpi.name}, --io {io}: {out}"
    files = re.findall(r"^\s+(\S+\.h5\S*)$", out, re.MULTILINE)
    assert files and all(Path(file).stat().st_size > 2 * 24 * 24 * 4 for file in files), out


@pytest.mark.parametrize("writer, reader", WRITTEN_BY)
def test_pnetcdf_reads_back_what_it_wrote(run, library: Path, tmp_path: Path, writer: str, reader: str) -> None:
    """The program uses Debian's PnetCDF on Debian's Open MPI."""
    mpi = kit.debian_openmpi(library)
    program = mpi.compile("pnetcdf_patterns.c", tmp_path / "pnetcdf_patterns", "-lpnetcdf")
    file = tmp_path / "f.nc"
    assert run(mpi, writer, [program, file, "write"]) == "written\n"
    assert run(mpi, reader, [program, file, "read"]) == "right\n"


def machine() -> str:
    return subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
