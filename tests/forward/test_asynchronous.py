"""Asynchronous calls under `hocket forward`: libc's are forwarded, the kernel's (libaio, io_uring) are direct."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from forward_kit import LIMIT_S, forwarded

pytestmark = pytest.mark.timeout(180)
CONSISTENCIES = pytest.mark.parametrize("consistency", ["synchronous", "close-to-open"])


@CONSISTENCIES
def test_calls_of_libc_are_forwarded(consistency: str, forward, programs: Path, mount: Path, tmp_path: Path):
    program, direct = programs / "asynchronous_calls", tmp_path / "direct"
    alone = subprocess.run([program, direct], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (alone.returncode, alone.stdout) == (0, "")
    run = forward(program, mount / "file", options=("--consistency", consistency))
    assert (run.code, run.out) == (0, ""), run.err
    assert (mount / "file").read_bytes() == direct.read_bytes()
    assert forwarded(run) == 64 + 64 + 1  # written, read, and refused


def fio(engine: str, path: Path) -> list[str]:
    """Return a command that writes a file at random, by 16 calls at a time, and verifies it.

    What each block contains depends on its offset only. Half of the file was written before by plain calls.
    """
    common = ["--name=global", f"--filename={path}", "--size=1m", "--bs=4k", "--verify=pattern", "--verify_pattern=%o"]
    common += ["--do_verify=1", "--verify_state_save=0", "--fallocate=none", "--randrepeat=1"]
    first = ["--name=plain", "--rw=write", "--ioengine=psync", "--io_size=512k"]
    return ["fio", *common, *first, "--name=tested", "--stonewall", "--rw=randwrite", f"--ioengine={engine}",
            "--iodepth=16"]  # fmt: skip


PLAIN = 128 + 128  # calls of the first job, which writes and verifies


@CONSISTENCIES
@pytest.mark.parametrize("engine", ["posixaio", "libaio", "io_uring"])
def test_what_fio_makes_is_the_same(engine: str, consistency: str, forward, mount: Path, tmp_path: Path):
    if shutil.which("fio") is None:
        pytest.skip("there is no fio")
    command = fio(engine, tmp_path / "direct")
    alone = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if alone.returncode != 0:
        pytest.skip(f"fio has no {engine} here: {(alone.stderr or alone.stdout).strip().splitlines()[-1]}")
    run = forward(*fio(engine, mount / "file"), options=("--consistency", consistency))
    assert run.code == 0, run.out + run.err
    assert (mount / "file").read_bytes() == (tmp_path / "direct").read_bytes()
    through_libc = 256 + 256 if engine == "posixaio" else 0
    assert forwarded(run) >= PLAIN + through_libc
    assert through_libc or forwarded(run) < PLAIN + 64
