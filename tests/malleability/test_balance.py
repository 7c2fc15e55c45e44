"""Weighted arrays follow the measured speed of each process, at a resize and without one, without a call."""

from __future__ import annotations

import re

import malleable_kit as kit
import pytest
import runtime_kit
from apps_kit import runner
from mpi_launch import MPIS

pytestmark = pytest.mark.timeout(150)
LIMIT_S = 120
EQUAL = "30000 30000"  # ns for each element: 15 ms an iteration, far more than the noise of a busy machine
SLOW_FIRST = "90000 30000"
# A resize at this iteration has 23 times of each process. One pause of 0.2 s among them does not hide what lasts. The
# imbalance has cost half a second by then, which is not enough for a move without a resize.
AT = 24


def shares(done: runtime_kit.Run) -> list[tuple[int, int, float]]:
    """Return iteration, processes, and rank 0's part of the elements, after each change of the shares."""
    assert done.code == 0, done.err
    assert re.search(r"^ok ", done.out, re.M), done.out
    found = re.findall(r"^iteration (\d+) processes (\d+) share (\d+)$", done.out, re.M)
    return [(int(at), int(size), int(share) / kit.LENGTH) for at, size, share in found]


def test_an_imbalance_is_mended_without_a_resize(probe):
    (at, size, share), *later = shares(probe.run(2, 140, PROBE_WORK=SLOW_FIRST))
    assert at >= 20, "it must have cost a second"
    assert size == 2
    assert share == pytest.approx(1 / 4, abs=0.05)
    assert len(later) <= 1, "it does not oscillate"


def test_balanced_processes_keep_their_shares(probe):
    assert shares(probe.run(2, 60, PROBE_WORK=EQUAL)) == []


def test_nothing_moves_for_less_than_a_second(probe):
    """The imbalance costs 22 ms an iteration, and 44 of 50 iterations are over when it has cost a second."""
    assert shares(probe.run(2, 50, PROBE_WORK=SLOW_FIRST)) == []


@pytest.mark.parametrize("balance", ["0", "resize"])
def test_moves_between_resizes_can_be_switched_off(probe, balance):
    assert shares(probe.run(2, 140, PROBE_WORK=SLOW_FIRST, HOCKET_BALANCE=balance)) == []


def test_a_resize_shares_out_by_measured_speed(probe):
    """The new process counts as fast as the others on average: 1 + 3 + 2."""
    (at, size, share), *_ = shares(probe.run(2, AT + 1, PROBE_WORK=SLOW_FIRST, HOCKET_RESIZE=f"{AT}:3"))
    assert (at, size) == (AT, 3)
    assert share == pytest.approx(1 / 6, abs=0.04)


def test_a_smaller_size_shares_out_by_the_speed_of_those_that_stay(probe):
    (at, size, share), *_ = shares(probe.run(3, AT + 1, PROBE_WORK=SLOW_FIRST, HOCKET_RESIZE=f"{AT}:2"))
    assert (at, size) == (AT, 2)
    assert share == pytest.approx(1 / 4, abs=0.05)


def test_a_resize_of_balanced_processes_shares_out_evenly(probe):
    found = shares(probe.run(2, 8, PROBE_WORK=EQUAL, HOCKET_RESIZE="7:3"))
    assert found == [(7, 3, pytest.approx(1 / 3, abs=1 / kit.LENGTH))]


def test_it_can_be_switched_off(probe):
    found = shares(probe.run(2, 60, PROBE_WORK=SLOW_FIRST, HOCKET_BALANCE="0", HOCKET_RESIZE="40:3"))
    assert found == [(40, 3, pytest.approx(1 / 3, abs=1 / kit.LENGTH))]


def test_a_program_that_balances_itself_is_left_alone(probe):
    """It says once that rank 0 has half the speed, and hocket does not decide otherwise, also at a resize."""
    found = shares(probe.run(2, 50, PROBE_WORK="2000 30000", PROBE_BALANCE="once", HOCKET_RESIZE="40:3"))
    one = 1 / kit.LENGTH
    assert found == [(5, 2, pytest.approx(1 / 3, abs=one)), (40, 3, pytest.approx(1 / 4.5, abs=one))]


@pytest.mark.parametrize("name", MPIS)
def test_jacobi_with_a_slow_rank_computes_the_same_numbers(controller, tmp_path, name):
    """The trace shows the new shares as a reconfiguration from two to two processes."""
    lines = {}
    for slow in ("0:1", "0:12"):
        done = runner("jacobi", name, LIMIT_S)(
            *(2, "--system", tmp_path / slow, "--generate", 1500, "--iterations", 300, "--tolerance", 0),
            *("--slow-rank", slow, "--checkpoint-every", 100, "--checkpoint-dir", tmp_path, "--verify"),
            **runtime_kit.settings(controller.socket),
        )
        lines[slow] = [line for line in done.stdout.splitlines() if line.startswith("iteration ")]
        state = (tmp_path / "checkpoint-000300.jacobi").read_bytes()
        lines[slow].append(str(hash(state)))
    assert lines["0:1"] == lines["0:12"]
    assert len(lines["0:1"]) > 10
    moved = [one for one in controller.events("RECONFIGURATION") if one["bytes_moved"] > 0]
    assert moved, "the slow rank kept all of its rows"
    assert {(one["sources"], one["targets"], one["request"]) for one in moved} == {(2, 2, 0)}


@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
def test_a_resize_that_waits_for_its_iteration_is_made_after_new_shares(probe, hold, controller):
    hold.at(2)
    settings = runtime_kit.settings(controller.socket)
    job = probe.start(2, 140, PROBE_WORK=SLOW_FIRST, **settings, **hold.setting)
    job.reads("^held 2 ")
    told, *_ = controller.await_events("MALLEABLE", 1)
    controller.tell(told["member"], {"type": "RECONFIGURE", "request": 7, "processes": 3, "at_iteration": 120})
    hold.release(2)
    found = shares(job.ends())
    assert found[0][1] == 2, "it was balanced first"
    assert (120, 3) in [(at, size) for at, size, _ in found]
    (made,) = [one for one in controller.events("RECONFIGURATION") if one["request"] == 7]
    assert made["done"]
    assert made["targets"] == 3
