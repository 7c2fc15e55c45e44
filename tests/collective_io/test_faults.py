"""Storage fails during a collective access by hocket: every rank gets the error, no rank hangs, no hole remains."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import pytest
import runtime_kit as kit
from mount_kit import IN_A_MOUNT_NAMESPACE

RANKS = 4
FULL_BYTES = 3 << 20  # size of the file system, which is too small: 4 ranks write 2 MiB each
LIMIT_S = 60
PATTERNS = ["interleaved", "separate"]
CLASSES = {errno.ENOSPC: "MPI_ERR_NO_SPACE", errno.EDQUOT: "MPI_ERR_QUOTA", errno.EIO: "MPI_ERR_IO"}


@pytest.fixture
def access(mpi: kit.Mpi, built, tmp_path: Path, faulty_storage: Path):
    """Return a function that runs faulty_access under hocket and returns its output lines. It checks that the fault
    struck.
    """

    def run(way: str, pattern: str, fault: str) -> list[str]:
        done = mpi.run(
            [built("faulty_access.c"), tmp_path / "faulty", way, pattern],
            {"HOCKET_IO": "hocket", "HOCKET_FAULT": fault},
            ranks=RANKS,
            preload=f"{mpi.libhocket}:{faulty_storage}",
            limit_s=LIMIT_S,
        )
        assert done.code == 0, f"{mpi.name}, {fault}: {done.out}{done.err}"
        assert "faulty_storage: strikes" in done.err, f"{mpi.name}, {fault}: the rank made no such access"
        return done.out.splitlines()

    return run


@pytest.mark.parametrize("number", CLASSES, ids=errno.errorcode.get)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_rank_gets_the_class_of_a_failed_write(access, pattern: str, number: int) -> None:
    """A write of rank 0 fails: its second if interleaved, else its first. The repeated access writes every byte."""
    after = 1 if pattern == "interleaved" else 0
    lines = access("write", pattern, f"rank=0 call=write after={after} errno={number}")
    assert lines == [CLASSES[number], "again: MPI_SUCCESS", "right"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_rank_gets_the_class_of_a_failed_read(access, pattern: str) -> None:
    lines = access("read", pattern, f"rank=0 call=read errno={errno.EIO}")
    assert lines == ["MPI_ERR_IO", "again: MPI_SUCCESS", "right"]


def test_a_rank_that_only_one_access_needs_fails(access) -> None:
    """In the pattern "separate" each rank writes its own data, so the last rank serves no other."""
    lines = access("write", "separate", f"rank={RANKS - 1} call=write errno={errno.ENOSPC}")
    assert lines == ["MPI_ERR_NO_SPACE", "again: MPI_SUCCESS", "right"]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("way", ["write", "read"])
def test_short_accesses_are_continued(access, way: str, pattern: str) -> None:
    """Storage that moves 1000 bytes of each access causes neither a hole nor an error."""
    lines = access(way, pattern, f"rank=0 call={way} short=1000")
    assert lines == (["MPI_SUCCESS", "right"] if way == "write" else ["MPI_SUCCESS"])


@pytest.mark.parametrize("rule, told", [("read-only", "refused"), ("atomic", "one")])
def test_refused_and_overlapping_accesses_are_as_the_standard_says(
    mpi: kit.Mpi, built, tmp_path: Path, rule: str, told: str
) -> None:
    """hocket itself follows the standard. Open MPI reports no error in the first case and mixes bytes in the second."""
    done = mpi.run([built("access_rules.c"), tmp_path / "f", rule], {"HOCKET_IO": "hocket"}, ranks=RANKS)
    assert (done.code, done.out) == (0, f"{told}\n"), f"{mpi.name}: {done.out}{done.err}"


# ---- a file system that is full --------------------------------------------------------------------------------------

MOUNT = 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec "$@"'


def in_small_file_system(directory: Path, command: list[str]) -> list[str]:
    return [*IN_A_MOUNT_NAMESPACE, "sh", "-c", MOUNT, "sh", str(FULL_BYTES), str(directory), *command]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_full_file_system_is_told_to_every_rank(mpi: kit.Mpi, built, tmp_path: Path, pattern: str) -> None:
    directory = tmp_path / "small"
    directory.mkdir()
    if subprocess.run(in_small_file_system(directory, ["true"]), capture_output=True, timeout=20).returncode != 0:
        pytest.skip("no file system may be mounted here, not even in a mount namespace of its own")
    program = [built("faulty_access.c"), directory / "f", "write", pattern]
    command, environment = mpi.command(RANKS, program, str(mpi.libhocket), {"HOCKET_IO": "hocket"})
    done = kit.finish(kit.launch(in_small_file_system(directory, command), environment), LIMIT_S)
    assert done.code == 0, f"{mpi.name}: {done.out}{done.err}"
    assert done.out.splitlines() == ["MPI_ERR_NO_SPACE", "again: MPI_ERR_NO_SPACE"]
