"""The programs of I/O patterns on each MPI, alone and with `HOCKET_IO=hocket` for their collective accesses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import runtime_kit as kit

LIMIT_S = 60
# Each pattern has a program, its arguments, the number of ranks, and the bytes of a phase.
PATTERNS = {
    "segmented": ("s_ior", ["-b", "64k", "-t", "16k", "-s", "2"], 3, 3 * 2 * 65536),
    "strided": ("s_ior", ["-b", "4k", "-t", "64k", "-s", "32"], 3, 3 * 32 * 4096),
    "fragments": ("s_ior", ["-b", "100", "-t", "10000", "-s", "200"], 4, 4 * 200 * 100),
    "random": ("s_ior", ["-b", "100", "-t", "10000", "-s", "200", "-R", "7"], 4, 4 * 200 * 100),
    "own files": ("s_ior", ["-b", "64k", "-t", "16k", "-s", "2", "-F"], 3, 3 * 2 * 65536),
    "multipartition": ("bt_io", ["-g", "13"], 4, 13**3 * 40),
    "blocks": ("bt_io", ["-g", "13", "-D", "blocks"], 3, 13**3 * 40),
    "particles": ("vpic_io", ["-n", "1001"], 3, 3 * 1001 * 32),
    "field": ("vorpal_io", ["-b", "5,7,3", "-D", "2,1,2"], 4, 4 * 105 * 24),
}


@pytest.fixture
def run(mpi: kit.Mpi):
    def run(program: str, arguments: list, ranks: int, settings: dict | None = None) -> kit.Run:
        path = mpi.library / "apps" / f"{program}-{mpi.name}"
        assert path.exists(), f"no {path}: ./dev build installs it"
        preload = "" if settings is None else None
        return mpi.run([path, *arguments], settings, ranks=ranks, preload=preload, limit_s=LIMIT_S)

    return run


def summary(done: kit.Run) -> dict:
    assert done.code == 0, f"{done.out}{done.err}"
    return json.loads(done.out.splitlines()[-1])


@pytest.mark.parametrize("settings", [None, {"HOCKET_IO": "hocket"}], ids=["alone", "hocket"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_read_is_what_was_written(run, tmp_path: Path, pattern: str, settings: dict | None) -> None:
    program, arguments, ranks, phase_bytes = PATTERNS[pattern]
    file = tmp_path / "f"
    told = summary(run(program, [*arguments, "-o", file, "-p", "2", "-c"], ranks, settings))
    assert told[program] == 1 and told["ranks"] == ranks and told["phases"] == 2
    assert told["phase_bytes"] == phase_bytes
    assert told["compared"] == 2 * phase_bytes / 4 and told["different"] == 0
    assert len(told["write_s"]) == len(told["read_s"]) == 2 and min(told["write_s"]) > 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("pattern", [pattern for pattern in PATTERNS if pattern != "own files"])
def test_files_are_the_same_with_hocket(run, tmp_path: Path, pattern: str) -> None:
    """Check that the files are equal; those of HDF5 are too, because the programs turn off the times in data set
    headers.
    """
    program, arguments, ranks, _ = PATTERNS[pattern]
    files = [tmp_path / "alone", tmp_path / "hocket"]
    for file, settings in zip(files, [None, {"HOCKET_IO": "hocket"}], strict=True):
        told = summary(run(program, [*arguments, "-o", file, "-p", "2", "-w", "-k"], ranks, settings))
        assert "read_s" not in told and told["compared"] == 0
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("pattern", ["segmented", "strided", "multipartition", "particles"])
def test_a_spoilt_byte_is_found(run, tmp_path: Path, pattern: str) -> None:
    program, arguments, ranks, phase_bytes = PATTERNS[pattern]
    file = tmp_path / "f"
    summary(run(program, [*arguments, "-o", file, "-p", "1", "-w", "-k"], ranks))
    content = bytearray(file.read_bytes())
    content[-phase_bytes // 2] ^= 1
    file.write_bytes(content)
    done = run(program, [*arguments, "-o", file, "-p", "1", "-r", "-c"], ranks)
    assert done.code == 1
    assert f"{program}: {file}: 1 of " in done.err and "differ from what was written" in done.err
    assert json.loads(done.out.splitlines()[-1])["different"] == 1


@pytest.mark.parametrize(
    "program, arguments, ranks, complaint",
    [
        ("s_ior", [], 1, "s_ior: give --file FILE (see --help)"),
        ("s_ior", ["-o", "f", "-b", "3"], 1, "s_ior: --block and --transfer: give multiples of 4 bytes"),
        ("s_ior", ["-o", "f", "-b", "4x"], 1, "s_ior: --block 4x: give a number of bytes, with k, m or g"),
        ("s_ior", ["-o", "f", "-b", "4k", "-t", "12k"], 1, "s_ior: --transfer 12288: a rank's 4096 bytes of a phase"),
        ("s_ior", ["-o", "f", "-w", "-c"], 1, "s_ior: --check needs --read"),
        ("s_ior", ["-o", "f", "-H", "key"], 1, "s_ior: --hint key: give KEY=VALUE"),
        ("s_ior", ["-o", "f", "-F", "-R", "7"], 1, "s_ior: --random: with --file-per-process a rank's blocks"),
        ("s_ior", ["-o", "/nowhere/f"], 2, "s_ior: cannot open /nowhere/f: "),
        ("s_ior", ["-o", "/nowhere/f", "-F"], 2, "s_ior: cannot open /nowhere/f.0: No such file or directory"),
        ("bt_io", ["-o", "f"], 3, "bt_io: the multi-partition needs a square number of ranks, not 3"),
        ("bt_io", ["-o", "f", "-g", "1"], 4, "bt_io: --grid 1: give 2 at least for 4 ranks"),
        ("vpic_io", ["-o", "f", "-n", "0"], 1, "vpic_io: --particles 0: give a whole number from 1"),
        ("vpic_io", ["-o", "/nowhere/f"], 2, "vpic_io: cannot create the file in /nowhere/f: HDF5 says: "),
        ("vorpal_io", ["-o", "f", "-D", "2,2,2"], 2, "vorpal_io: --decomposition 2,2,2: its product must be"),
        ("vorpal_io", ["-o", "f", "-b", "5,5"], 1, "vorpal_io: --block 5,5: give three whole numbers"),
    ],
)
def test_mistakes_are_told_in_one_line(run, program: str, arguments: list, ranks: int, complaint: str) -> None:
    done = run(program, arguments, ranks)
    lines = [line for line in done.err.splitlines() if line.startswith(f"{program}: ")]
    assert done.code == (1 if "/nowhere/f" in arguments else 2), done.err
    assert len(lines) == 1 and lines[0].startswith(complaint), done.err


@pytest.mark.parametrize("program", ["s_ior", "bt_io", "vpic_io", "vorpal_io"])
def test_help_lists_the_options(run, program: str) -> None:
    done = run(program, ["--help"], 2)
    assert done.code == 0 and done.out.startswith(f"{program}: ") and "--phases" in done.out
