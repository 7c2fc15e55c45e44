"""The promise "as if hocket did not exist", for each pair of a launcher and a program, whichever MPI each belongs to.

A launcher starts a program of another MPI as so many worlds of one process, or not at all; so it does with hocket.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import runtime_kit as kit
from hocket import daemon as daemon_module

pytestmark = pytest.mark.timeout(150)
LIMIT_S = 60
PYTHON = kit.REPO / ".venv" / "bin" / "python"
MPI4PY = """\
import os, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
mode = MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE
file = MPI.File.Open(MPI.COMM_SELF, f"{sys.argv[1]}.{os.getpid()}", mode)
file.Write_at_all(0, bytearray(b"x" * 100))
size = file.Get_size()
file.Close()
counts = [2] * world.size
sent, got, back = bytearray(range(2 * world.size)), bytearray(2 * world.size), bytearray(2 * world.size)
world.Alltoallv([sent, counts, MPI.BYTE], [got, counts, MPI.BYTE])
world.Ialltoallv([got, counts, MPI.BYTE], [back, counts, MPI.BYTE]).Wait()
mpi = MPI.Get_library_version().split()[0]
said = [mpi, world.rank, world.size, world.allreduce(world.rank + 1), size, back == sent]
os.write(1, (" ".join(map(str, said)) + "\\n").encode())  # in one piece: both ranks write at once
MPI.Finalize()
sys.exit(3)
"""
# Runs a program in each of two processes, and ends when both have run it: a launcher ends the other process, whatever
# that has not said yet, as soon as one exits with an error.
TOGETHER = """\
#!/bin/sh
ready=$1.ready.$PPID
shift
"$@"
code=$?
mkdir -p "$ready" && : > "$ready/$$"
tries=0
while [ "$(ls "$ready" | wc -l)" -lt 2 ] && [ $((tries += 1)) -lt 200 ]; do sleep 0.1; done
exit $code
"""
# Exits after a second: mpiexec of MPICH may die of SIGPIPE if a program without MPI ends at once, also without hocket.
WITHOUT_MPI = "echo out $((6 * 7)); sleep 1; exit 5"


@pytest.fixture(params=["mpich", "openmpi"])
def launcher(request, prefix: Path, hocket_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[kit.Mpi]:
    found = getattr(kit, request.param)(prefix / "lib/hocket")
    for name, value in (kit.ENVIRONMENT | found.environment).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    yield found
    daemon_module.stop()


@pytest.fixture(params=["mpich", "openmpi", "debian_openmpi"])
def program_mpi(request, prefix: Path) -> kit.Mpi:
    return getattr(kit, request.param)(prefix / "lib/hocket")


Compare = Callable[..., list[str]]


@pytest.fixture
def compare(launcher: kit.Mpi) -> Compare:
    """Return a function that runs a program without hocket and with it, and compares what both show.

    It returns the lines of hocket on stderr.
    """

    def run(program: list, ranks: int, *options: str) -> kit.Run:
        hocket = [sys.executable, "-m", "hocket.cli", "run", *options, "--"] if options else []
        extra = ["--oversubscribe"] if launcher.name == "openmpi" else []
        command = [*hocket, *launcher.mpiexec, *extra, "-n", str(ranks), *map(str, program)]
        return kit.finish(kit.launch(command, dict(os.environ)), LIMIT_S)

    def compare(program: list, ranks: int = 2) -> list[str]:
        alone, watched = run(program, ranks), run(program, ranks, "--name", "a")
        assert watched.code == alone.code, f"{alone.err}\n{watched.err}"
        assert sorted(watched.out.splitlines()) == sorted(alone.out.splitlines()), watched.err
        return watched.warnings

    return compare


def same_mpi(launcher: kit.Mpi, program: kit.Mpi) -> bool:
    return launcher.name == program.name


def test_a_linked_program(compare: Compare, launcher: kit.Mpi, program_mpi: kit.Mpi, tmp_path: Path) -> None:
    """It calls every I/O routine. `hocket run` sees its MPI."""
    program = program_mpi.compile("io_routines.c", tmp_path / "app", "-pthread")
    warnings = compare([program, tmp_path / "f"], ranks=1)
    if same_mpi(launcher, program_mpi):
        assert warnings == []
    else:
        assert len(warnings) == 1
        assert f"built with {program_mpi.name}, but" in warnings[0]
        assert "runs uncoordinated" in warnings[0]


def test_a_program_in_a_script(compare: Compare, launcher: kit.Mpi, program_mpi: kit.Mpi, tmp_path: Path) -> None:
    """Only the library, which is in the process, can see the MPI. The script starts three programs in a row."""
    program = program_mpi.compile("io_routines.c", tmp_path / "app", "-pthread")
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\n{program} {tmp_path}/f\necho code $?\n")
    script.chmod(0o755)
    check_warnings(compare([script], ranks=1), launcher, program_mpi, "app")


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_mpi4py(compare: Compare, launcher: kit.Mpi, name: str, tmp_path: Path) -> None:
    """It loads its MPI only when the program runs."""
    script = tmp_path / "m4.py"
    script.write_text(MPI4PY)
    libraries = (kit.OPENMPI if name == "openmpi" else kit.MPICH) / "lib"
    together = tmp_path / "together.sh"
    together.write_text(TOGETHER)
    program = ["env", f"MPI4PY_MPIABI={name}", f"LD_LIBRARY_PATH={libraries}", PYTHON, script, tmp_path / "f"]
    warnings = compare(["sh", together, tmp_path / "f", *program])
    check_warnings(warnings, launcher, getattr(kit, name)(launcher.library), r"python\S*")


def check_warnings(warnings: list[str], launcher: kit.Mpi, program: kit.Mpi, name: str) -> None:
    """One process says that libhocket stands aside, and only if it does."""
    if same_mpi(launcher, program):
        assert warnings == []
        return
    assert len(warnings) == 1, warnings
    assert re.fullmatch(f"hocket: {name} does not use {launcher.name}, .* runs uncoordinated; .*", warnings[0])


def test_the_standard_binary_interface_is_another_mpi(compare: Compare, launcher: kit.Mpi, tmp_path: Path) -> None:
    """MPICH's library for it is MPICH, too, but its handles have other values."""
    program = tmp_path / "app"
    source = kit.PROGRAMS / "io_routines.c"
    subprocess.run([kit.MPICH / "bin" / "mpicc_abi", "-pthread", "-o", program, source], check=True, timeout=60)
    warnings = compare([program, tmp_path / "f"], ranks=1)
    if launcher.name == "mpich":
        assert len(warnings) == 1
        assert "does not use mpich" in warnings[0]


def test_a_program_without_mpi(compare: Compare) -> None:
    assert compare(["sh", "-c", WITHOUT_MPI]) == []
