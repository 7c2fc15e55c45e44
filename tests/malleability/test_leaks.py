"""Repeated growing and shrinking in one run (50 or 100 cycles): a resize keeps no resource."""

from __future__ import annotations

import re

import malleable_kit as kit
import pytest

pytestmark = pytest.mark.timeout(600)
WARM = 10  # cycles after which buffers of the MPI have their final size
KIB_A_CYCLE = 170  # what MPICH alone may keep; 35 to 70 were measured


@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
@pytest.mark.parametrize(
    ("ranks", "most", "cycles"), [(1, 3, 100), (2, 3, 50)], ids=["processes that end", "one that sleeps"]
)
def test_many_cycles(mpi, prefix, built, tmp_path, ranks, most, cycles):
    probe = kit.Probe(mpi, built("malleable_probe.c", *kit.link_flags(prefix, mpi.name)))
    sizes = [most, 1] * cycles
    steps = [(kit.FIRST + kit.APART * i, size) for i, size in enumerate(sizes)]
    end = tmp_path / "end"
    job = probe.start(ranks, 10**6, ms=1, HOCKET_RESIZE=kit.schedule(sizes), PROBE_USAGE="1", PROBE_END=str(end))
    job.reads(f"^iteration {steps[-1][0]} ", limit_s=500)
    job.await_pids(lambda pids: len(pids) == ranks, "the end of all but the first processes")
    end.touch()
    done = job.ends()
    kit.check(done, [(0, ranks), *steps], kit.ended_at(done))
    usage = r"^iteration \d+ processes 1 descriptors (\d+) kib (\d+)$"
    small = [(int(descriptors), int(kib)) for descriptors, kib in re.findall(usage, done.out, re.M)]
    assert len(small) == cycles
    descriptors = [each for each, _ in small[WARM:]]
    assert max(descriptors) <= descriptors[0] + 2, f"descriptors of rank 0, a cycle: {descriptors}"
    grown = (small[-1][1] - small[WARM][1]) / (cycles - 1 - WARM)
    assert grown < KIB_A_CYCLE, f"rank 0 grew by {grown:.0f} KiB a cycle"
    first, last = re.findall(r"^communicators (\d+)$", done.out, re.M)
    assert first == last, f"rank 0 could make {first} communicators at the start, {last} at the end"
