"""MPI programs under `hocket forward`, alone and with `hocket run` inside, for both MPIs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from story import Story

pytestmark = pytest.mark.timeout(240)

LIMIT_S = 100
# Each pattern has a program, its arguments, the number of ranks, and the bytes of both phases.
PATTERNS = {
    "shared file": ("s_ior", ["-b", "4k", "-t", "64k", "-s", "32"], 3, 2 * 3 * 32 * 4096),
    "file per process": ("s_ior", ["-b", "64k", "-t", "16k", "-s", "2", "-F"], 3, 2 * 3 * 2 * 65536),
    "solver": ("bt_io", ["-g", "13"], 4, 2 * 13**3 * 40),
}
INSIDE = {"alone": [], "hocket run": [sys.executable, "-m", "hocket.cli", "run", "--name", "inner", "--"]}


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_an_mpi_program_makes_is_the_same(
    pattern: str,
    inside: str,
    mpi: kit.Mpi,
    forward: Callable[..., kit.Run],
    story: Story,
    mount: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """It compares what it reads with what it has written, and its files are those of a run without hocket."""
    program, arguments, ranks, moved = PATTERNS[pattern]
    direct, counts = tmp_path / "direct", tmp_path / "counts"
    direct.mkdir()

    def command(directory: Path) -> tuple[list[str], dict[str, str]]:
        path = mpi.library / "apps" / f"{program}-{mpi.name}"
        return mpi.command(ranks, [path, *arguments, "-o", directory / "f", "-p", "2", "-c", "-k"], "", {})

    alone = kit.finish(kit.launch(*command(direct)), LIMIT_S)
    words, environment = command(mount)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    run = forward(*INSIDE[inside], *words, options=("--servers", "2", "--counts", str(counts)), limit_s=LIMIT_S)
    for one in (alone, run):
        assert one.code == 0, one.out + one.err
        told = json.loads(one.out.splitlines()[-1])
        assert told["ranks"] == ranks and told["compared"] == moved / 4 and told["different"] == 0
    assert contents(mount) == contents(direct)
    assert sum(map(len, contents(mount).values())) == moved
    told = json.loads(counts.read_text())
    assert told["bytes"] >= 2 * moved and told["no_server"] == told["lost"] == 0, told
    # libhocket asks for turns of collective accesses, and only watches POSIX calls.
    asks = inside == "hocket run" and pattern != "file per process"
    assert {line["application"] for line in story.all("START_IO")} == ({"inner"} if asks else set())
