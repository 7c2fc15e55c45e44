"""Fixtures for programs under `hocket forward`."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import runtime_kit as kit
from checkout import PROGRAMS


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    directory = tmp_path / "mount"
    directory.mkdir()
    return directory


@pytest.fixture
def start_forward(prefix: Path, hocket_dir: Path, mount: Path) -> Callable[..., subprocess.Popen]:
    """Return a function that starts `hocket forward --check --mount <mount> OPTIONS… -- PROGRAM…`."""

    def begin(*program: str | Path, options: tuple[str, ...] = ()) -> subprocess.Popen:
        words = ["forward", "--check", "--mount", str(mount), *options, "--", *map(str, program)]
        environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
        return kit.launch([sys.executable, "-m", "hocket.cli", *words], environment | {"HOCKET_PREFIX": str(prefix)})

    return begin


@pytest.fixture
def forward(start_forward: Callable[..., subprocess.Popen]) -> Callable[..., kit.Run]:
    """Return a function that runs a program under `hocket forward` to its end."""

    def run(*program: str | Path, options: tuple[str, ...] = (), limit_s: float = 60) -> kit.Run:
        return kit.finish(start_forward(*program, options=options), limit_s)

    return run


@pytest.fixture(scope="session")
def programs() -> Iterator[Path]:
    """A directory with the compiled programs that know nothing of hocket."""
    with tempfile.TemporaryDirectory(prefix="hocket-test-") as name:
        directory = Path(name)
        for source in ("random_calls.c", "forward_corners.c", "collected_writes.c", "posix_rules.c"):
            command = ["cc", "-O1", "-w", "-pthread", "-o", directory / Path(source).stem, PROGRAMS / source]
            subprocess.run(command, check=True, timeout=60)
        yield directory
