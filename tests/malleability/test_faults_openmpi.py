"""Resizes under Open MPI during which a process dies: the job soon aborts, or continues with right numbers."""

from __future__ import annotations

import shutil
from pathlib import Path

import malleable_kit as kit
import pytest
import runtime_kit

pytestmark = [pytest.mark.timeout(300), pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)]
# These values of HOCKET_RESIZE_MAX_S end some of the jobs here. Starting two processes one after the other takes some
# seconds, and more on a busy machine.
LIMITS_S = [8, 25, kit.AMPLE_S]
FOREVER = 10**6


@pytest.fixture
def probe(mpi, prefix, built, tmp_path) -> kit.Probe:
    """The probe under a name of this test's own, which identifies its processes."""
    program = shutil.copy(built("malleable_probe.c", *kit.link_flags(prefix, mpi.name)), tmp_path / "probe")
    return kit.Probe(mpi, Path(program))


def amid_start(
    probe: kit.Probe, hold: kit.Hold, strategy: str, where: str, max_s: int
) -> tuple[kit.Running, list[int], int]:
    """Return a growing job, its first processes, and the new process that is held at `where`."""
    if where == "begin":
        hold.at(where)
    else:  # also holds the first processes: after they run, long before the resize
        hold.release(where)
    job = probe.start(
        2, FOREVER, ms=5, HOCKET_RESIZE="40:4" if where == "begin" else "400:4",
        HOCKET_RESIZE_MAX_S=str(max_s), HOCKET_SPAWN_STRATEGY=strategy, **hold.setting,
    )  # fmt: skip
    job.reads("^begin 0 processes")
    first = job.pids()
    hold.at(where)
    return job, first, held(job, where)


def held(job: kit.Running, where: str) -> int:
    """Return the first process that is held there."""
    said = f"^held {where} (\\d+)"

    def over() -> bool:
        return job.process.poll() is not None or job.has_said("^iteration")  # resized before a process was held

    runtime_kit.wait_until(lambda: job.has_said(said) or over(), 2 * kit.AMPLE_S, said)
    if not job.has_said(said):
        job.abandon()
        raise kit.OverError
    return int(job.reads(said)[1])


@pytest.mark.parametrize("strategy", ["plain", "single", "async"])
@pytest.mark.parametrize("where", ["init", "begin"])
def test_a_new_process_dies_while_it_starts(probe, hold, where, strategy):
    def attempt(max_s: int) -> kit.Running:
        job, _, new = amid_start(probe, hold, strategy, where, max_s)
        kit.kill(job, new)
        return job

    kit.breaks_off(attempt, LIMITS_S)


@pytest.mark.parametrize("strategy", ["plain", "single", "async"])
@pytest.mark.parametrize("who", [0, 1])
def test_a_source_dies_while_a_new_process_starts(probe, hold, who, strategy):
    def attempt(max_s: int) -> kit.Running:
        job, first, _ = amid_start(probe, hold, strategy, "begin", max_s)
        kit.kill(job, first[who])
        hold.release("begin")
        return job

    kit.breaks_off(attempt, LIMITS_S)


@pytest.mark.parametrize("sizes", [(2, 4), (4, 1)])
@pytest.mark.parametrize("who", kit.VICTIMS)
@pytest.mark.parametrize(
    ("method", "strategy"), [("p2p", "blocking"), ("rma-lock", "blocking"), ("collective", "thread")]
)
def test_a_process_dies_while_data_move(probe, sizes, who, method, strategy):
    kit.dies_while_data_move(probe, sizes, who, method, strategy)
