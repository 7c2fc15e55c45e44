"""`./dev bench elastic`: what is made of the times of a run and of hocketd's trace."""

from __future__ import annotations

import sys

import pytest
from checkout import REPO

sys.path.insert(0, str(REPO / "bench"))

import elastic
from elastic_runs import SERVERS, Run, Setup, longest_control_s, split

SECOND = 1_000_000_000
SETUP = Setup(operations=6, before=3)
OPERATIONS = [(float(start), 0.5) for start in range(10, 16)]  # each begins a second after the one before


def adopted(at_s: float, epoch: int) -> dict:
    return {"in": "MAP_ADOPTED", "time_ns": int(at_s * SECOND), "epoch": epoch}


def phase(member: int, wait_ns: int, operations: int) -> dict:
    return {"in": "IO_PHASE", "member": member, "wait_ns": wait_ns, "operations": operations}


def run(taken_out: list[str], slow: int, after: int) -> Run:
    return Run([1.0], [2.0] * slow, [1.0] * after, 0.0, 0.0, taken_out, 10.0)


def test_operations_count_as_after_the_removal_from_the_first_that_begins_in_the_new_epoch():
    seen = [adopted(10.1, SERVERS), adopted(14.1, SERVERS + 1)]
    assert [len(part) for part in split(OPERATIONS, seen, SETUP)] == [1, 2, 1]
    assert [len(part) for part in split(OPERATIONS, seen[:1], SETUP)] == [1, 3, 0]


def test_a_server_that_is_taken_out_before_the_load_leaves_no_slow_operation():
    before, slow, after = split(OPERATIONS, [adopted(11.1, SERVERS + 1)], SETUP)
    assert (len(before), len(slow), len(after)) == (1, 0, 3)


def test_the_cost_of_control_is_that_of_the_process_that_waits_longest():
    seen = [phase(1, 3000, 2), phase(1, 1000, 2), phase(2, 500, 4), phase(3, 0, 0), adopted(1, 1)]
    assert longest_control_s(seen) == pytest.approx(1000e-9)
    assert longest_control_s([]) == 0


@pytest.mark.parametrize(
    ("made", "counts"),
    [
        (run([f"s{SERVERS}"], 2, 5), True),
        (run(["s1", f"s{SERVERS}"], 2, 5), False),
        (run([], 2, 5), False),
        (run([f"s{SERVERS}"], 0, 5), False),
        (run([f"s{SERVERS}"], 2, 4), False),
    ],
)
def test_a_run_counts_only_if_the_loaded_server_was_taken_out_first_and_in_time(made, counts):
    assert elastic.was_removed(made) == counts


def test_the_load_alone_makes_an_operation_of_the_cost_longer_than_a_second():
    assert elastic.LONG.requests() * elastic.DELAY_US * 1e-6 > elastic.LONG_S


def test_the_last_server_has_the_fewest_stripes():
    assert Setup(kib=2048).requests() == 128  # one of four stripes of 1 MiB, in requests of 8 KiB
    assert Setup(kib=3072).requests() == 256
