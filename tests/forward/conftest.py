"""Fixtures for programs under `hocket forward`."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import runtime_kit as kit
from checkout import PROGRAMS
from forward_kit import with_cached_mounts


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    directory = tmp_path / "mount"
    directory.mkdir()
    return directory


@pytest.fixture
def start_forward(prefix: Path, hocket_dir: Path, mount: Path) -> Callable[..., subprocess.Popen]:
    """Return a function that starts `hocket forward --check --mount <mount> OPTIONS… -- PROGRAM…`."""

    def begin(
        *program: str | Path, options: tuple[str, ...] = (), within: tuple[str, ...] = (), hocket: Path = prefix
    ) -> subprocess.Popen:
        """`within`: a command that runs the rest of the line; `hocket`: another prefix."""
        words = ["forward", "--check", "--mount", str(mount), *options, "--", *map(str, program)]
        environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
        command = [*within, sys.executable, "-m", "hocket.cli", *words]
        return kit.launch(command, environment | {"HOCKET_PREFIX": str(hocket)})

    return begin


@pytest.fixture
def forward(start_forward: Callable[..., subprocess.Popen]) -> Callable[..., kit.Run]:
    """Return a function that runs a program under `hocket forward` to its end."""

    def run(*program: str | Path, limit_s: float = 60, **how: Any) -> kit.Run:
        return kit.finish(start_forward(*program, **how), limit_s)

    return run


def compiled(directory: Path, *options: str) -> Path:
    for source in (
        "random_calls.c", "forward_corners.c", "collected_writes.c", "posix_rules.c", "unaligned_calls.c",
        "asynchronous_calls.c",
    ):  # fmt: skip
        command = ["cc", "-O1", "-w", "-pthread", *options, "-o", directory / Path(source).stem, PROGRAMS / source]
        subprocess.run(command, check=True, timeout=60)
    return directory


@pytest.fixture(scope="session")
def programs() -> Iterator[Path]:
    """A directory with the compiled programs that know nothing of hocket."""
    with tempfile.TemporaryDirectory(prefix="hocket-test-") as name:
        yield compiled(Path(name))


@pytest.fixture(scope="session")
def static_programs() -> Iterator[Path]:
    """A directory with the same programs, statically linked."""
    with tempfile.TemporaryDirectory(prefix="hocket-test-") as name:
        yield compiled(Path(name), "-static")


@pytest.fixture(params=["uncached", "cached"])
def mounting(request: pytest.FixtureRequest, prefix: Path, tmp_path: Path) -> Path:
    """A prefix whose mounts are as on this kernel, or as on one before Linux 6.6."""
    return prefix if request.param == "uncached" else with_cached_mounts(prefix, tmp_path / "prefix")
