"""Distributions, memory and changes of registered arrays; the probe checks each element at each iteration.

Each test of test_methods.py moves block-cyclic, two-dimensional and listed arrays and one in the program's own memory,
too: the probe always has them.
"""

from __future__ import annotations

import random

import malleable_kit as kit
import pytest

pytestmark = pytest.mark.timeout(100)
mpich = pytest.mark.parametrize("mpi", ["mpich"], indirect=True)

WAYS = [("collective", "thread"), ("p2p", "wait-sources"), ("rma-lock", "wait-targets"), ("rma-lockall", "thread")]


def some_sizes(seed: int, first: int, number: int, most: int = 6) -> list[int]:
    """Return sizes of which no two that follow each other are equal."""
    chance = random.Random(seed)
    sizes = [first]
    while len(sizes) <= number:
        sizes.append(chance.choice([n for n in range(1, most + 1) if n != sizes[-1]]))
    return sizes[1:]


@mpich
@pytest.mark.parametrize(("seed", "ranks", "spawn"), [(1, 1, "merge"), (2, 4, "merge"), (3, 2, "baseline")])
def test_arrays_come_change_and_go_between_resizes(probe, seed, ranks, spawn):
    """Resizes come before iterations 2, 4, 6, …; the arrays change at 3, 6, and 9."""
    probe.resized(ranks, some_sizes(seed, ranks, 6), PROBE_LATE="1", HOCKET_SPAWN=spawn)


@mpich
@pytest.mark.parametrize(("method", "strategy"), WAYS)
@pytest.mark.parametrize("sizes", [[4, 1, 3], [1, 3, 2]])
def test_arrays_change_while_constant_data_move(probe, method, strategy, sizes):
    """Resizes begin before iterations 3, 6, and 9, in which the arrays change."""
    schedule = ",".join(f"{3 * (i + 1)}:{size}" for i, size in enumerate(sizes))
    how = {"HOCKET_REDISTRIBUTION": method, "HOCKET_REDISTRIBUTION_STRATEGY": strategy}
    done = probe.run(2, 10**6, ms=1, PROBE_LATE="1", PROBE_RESIZES="3", HOCKET_RESIZE=schedule, **how)
    steps = kit.told(done)
    assert [size for _, size in steps] == [2, *sizes], f"{done.out}{done.err}"
    kit.check(done, steps, steps[-1][0] + 2)


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_arrays_change_under_openmpi(probe):
    probe.resized(2, [4, 1, 3, 2], PROBE_LATE="1", HOCKET_REDISTRIBUTION="collective")


@mpich
@pytest.mark.parametrize(("ranks", "size"), [(2, 3), (4, 3)])
def test_a_resize_with_wrong_owners_is_refused(probe, ranks, size):
    done = probe.run(ranks, 8, HOCKET_RESIZE=f"2:{size},4:1", PROBE_WRONG_OWNERS=str(size))
    assert done.err.splitlines() == [
        f"hocket: not resized from {ranks} to {size} processes: 'listed': the function of owners is wrong for {size} "
        f"processes: element {kit.LENGTH - 1} belongs to no rank"
    ]
    done.err = ""
    kit.check(done, [(0, ranks), (4, 1)], 8)
