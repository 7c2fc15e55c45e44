"""Fixtures of the tests of data sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from data_sets_kit import Coupled


@pytest.fixture
def coupled(built_for, daemon: Daemon) -> Iterator[Coupled]:
    found = Coupled(built_for, kit.settings(daemon.socket))
    yield found
    found.end()


@pytest.fixture(scope="module")
def mpich(library: Path) -> kit.Mpi:
    return kit.mpich(library)


@pytest.fixture(scope="module")
def openmpi(library: Path) -> kit.Mpi:
    return kit.openmpi(library)
