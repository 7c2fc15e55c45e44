"""Fixtures of the tests of malleability."""

from __future__ import annotations

import malleable_kit as kit
import pytest


@pytest.fixture
def probe(mpi, prefix, built) -> kit.Probe:
    return kit.Probe(mpi, built("malleable_probe.c", *kit.link_flags(prefix, mpi.name)))


@pytest.fixture
def hold(tmp_path) -> kit.Hold:
    return kit.Hold(tmp_path)
