"""Resizes under Open MPI in which a process dies: the job ends with an error, soon, or goes on with right numbers."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import malleable_kit as kit
import pytest

pytestmark = [pytest.mark.timeout(100), pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)]
# HOCKET_RESIZE_MAX_S: starting two processes one after the other takes some seconds, and more on a busy machine.
MAX_S, AMPLE_S = 8, 25
FOREVER = 10**6


@pytest.fixture
def probe(mpi, prefix, built, tmp_path) -> kit.Probe:
    """The probe under a name of this test's own, by which its processes are known."""
    program = shutil.copy(built("malleable_probe.c", *kit.link_flags(prefix, mpi.name)), tmp_path / "probe")
    return kit.Probe(mpi, Path(program))


def amid_start(probe: kit.Probe, strategy: str, where: str) -> tuple[kit.Running, list[int], int]:
    """A job that grows, its first processes, and the new one that is held at `where`."""
    hold = probe.program.parent / "hold"
    job = probe.start(
        2, FOREVER, ms=5, PROBE_HOLD=f"{where}:{hold}", PROBE_END=str(probe.program.parent / "end"),
        HOCKET_RESIZE="40:4", HOCKET_RESIZE_MAX_S=str(MAX_S), HOCKET_SPAWN_STRATEGY=strategy,
    )  # fmt: skip
    job.reads("^begin 0 processes")
    first = job.pids()
    hold.touch()
    return job, first, int(job.reads(rf"^held {where} (\d+)")[1])


@pytest.mark.parametrize("strategy", ["plain", "single", "async"])
@pytest.mark.parametrize("where", ["init", "begin"])
def test_a_new_process_dies_while_it_starts(probe, where, strategy):
    job, _, new = amid_start(probe, strategy, where)
    os.kill(new, 9)
    kit.broken(job)


@pytest.mark.parametrize("strategy", ["plain", "single", "async"])
@pytest.mark.parametrize("who", [0, 1])
def test_a_source_dies_while_a_new_process_starts(probe, who, strategy):
    job, first, _ = amid_start(probe, strategy, "begin")
    os.kill(first[who], 9)
    (probe.program.parent / "hold").unlink()
    kit.broken(job)


@pytest.mark.parametrize("sizes", [(2, 4), (4, 1)])
@pytest.mark.parametrize("who", kit.VICTIMS)
@pytest.mark.parametrize(
    ("method", "strategy"), [("p2p", "blocking"), ("rma-lock", "blocking"), ("collective", "thread")]
)
def test_a_process_dies_while_data_move(probe, sizes, who, method, strategy):
    kit.dies_while_data_move(probe, sizes, who, AMPLE_S, method, strategy)
