"""Fixtures of the tests of `hocket capture` and `hocket compare`."""

import os
import subprocess

import pytest
from runtime_kit import ENVIRONMENT

LIMIT_S = 100  # of one command


@pytest.fixture
def hocket(prefix, hocket_dir, mpi, tmp_path):
    """Return a function that runs the hocket command."""

    def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [prefix / "bin" / "hocket", *map(str, words)]
        settings = {**os.environ, **ENVIRONMENT, **mpi.environment, **environment}
        return subprocess.run(command, env=settings, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S)

    return run
