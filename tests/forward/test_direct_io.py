"""Direct I/O (O_DIRECT) under `hocket forward`: a call is refused for its alignment if the kernel refuses it."""

from __future__ import annotations

import errno
import subprocess
import tempfile
from pathlib import Path

import pytest
from forward_kit import LIMIT_S, NEEDS_MOUNTS, forwarded

pytestmark = pytest.mark.timeout(120)
OF_MEMORY = ("memory", "cut", "apart")  # what the program varies


def directly(programs: Path, file: Path) -> str:
    """Return what the program prints without hocket."""
    alone = [programs / "unaligned_calls", file]
    printed = subprocess.run(alone, capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout
    if not printed:
        pytest.skip(f"the file system of {file.parent} has no direct I/O")
    return printed


@pytest.mark.parametrize("where", ["disk", "tmpfs"])
def test_calls_that_are_not_aligned_end_as_without_hocket(
    where: str, forward, programs: Path, tmp_path: Path, hocket_dir: Path
):
    """What is aligned goes through the server, whose memory always is."""
    with tempfile.TemporaryDirectory(dir=tmp_path if where == "disk" else "/dev/shm") as directory:
        made = [Path(directory) / name for name in ("direct", "forwarded")]
        wanted = directly(programs, made[0])
        run = forward(programs / "unaligned_calls", made[1], options=("--mount", directory))
        assert (run.code, run.out) == (0, wanted), run.err
        assert made[1].read_bytes() == made[0].read_bytes()
    assert forwarded(run) > 50 and "because their memory is not aligned" in run.err
    if where == "disk" and f"error {errno.EINVAL}" not in wanted:
        pytest.skip("the file system of the test's directory refuses nothing")


@NEEDS_MOUNTS
def test_through_a_mount_memory_need_not_be_aligned(forward, programs: Path, mount: Path, tmp_path: Path):
    """What succeeds without hocket succeeds in the same way, and only what concerns the memory succeeds besides."""
    wanted = directly(programs, tmp_path / "direct").splitlines()
    run = forward(programs / "unaligned_calls", mount / "file", options=("--by", "fuse"))
    told = run.out.splitlines()
    assert (run.code, len(told)) == (0, len(wanted)), run.err
    for direct, mounted in zip(wanted, told, strict=True):
        refused_for_memory = f"error {errno.EINVAL}" in direct and any(f", {what} by" in direct for what in OF_MEMORY)
        assert mounted == direct or refused_for_memory
