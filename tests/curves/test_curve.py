"""Curves and matches: what follows from measurements and patterns."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from hocket.curves.curve import SEEN, Curve, Measured, run_of
from hocket.curves.match import Access, MeasuredPattern, distance, grade, match

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MIB = 1 << 20


def curve(**what) -> Curve:
    return Curve("a", 2, 4, (SEEN,), NOW, **what)


def pattern(name: str = "p", **what) -> MeasuredPattern:
    usual = {"nodes": 2, "processes": 4, "shared": False, "spatiality": "contiguous", "operation": "write"}
    usual |= {"request_bytes": MIB, "direct": False, "rates": {0: 10.0, 1: 20.0}}
    return MeasuredPattern(name, **usual | what)


def access(**what) -> Access:
    usual = {"shared": False, "spatiality": "contiguous", "operation": "write", "request_bytes": MIB, "bytes": 100.0}
    return Access(**usual | what)


def test_a_run_with_one_number_of_servers_has_its_bytes_over_its_time():
    run = run_of({2: 1000}, {2: 1.5}, 4.0, 1)
    assert run is not None
    assert run.rates == {2: (pytest.approx(250), 1.0)}
    assert run.other_s_per_byte == pytest.approx(2.5 / 1000)


def test_a_run_whose_number_changed_gives_each_the_bandwidth_of_a_run_with_it_alone():
    """1000 bytes in 3 s of computing: with 1 server the I/O would take 10 s, with 4 servers 2.5 s."""
    run = run_of({1: 400, 4: 600}, {1: 4.0, 4: 1.5}, 8.5, 1)
    assert run is not None
    assert {number: rate for number, (rate, _) in run.rates.items()} == {
        1: pytest.approx(1000 / 13),
        4: pytest.approx(1000 / 5.5),
    }
    assert [weight for _, weight in run.rates.values()] == [0.4, 0.6]


@pytest.mark.parametrize(
    ("moved", "busy", "seconds"),
    [({}, {}, 1), ({1: 5}, {1: 1.0}, 1), ({1: 1000}, {}, 1), ({1: 1000}, {1: 0.0}, 1), ({1: 1000}, {1: 1.0}, 0)],
)
def test_a_run_that_shows_nothing_is_none(moved: dict, busy: dict, seconds: float):
    assert run_of(moved, busy, seconds, 10) is None


def test_busier_than_its_time_is_no_negative_time():
    run = run_of({1: 1000}, {1: 5.0}, 4.0, 1)
    assert run is not None and run.other_s_per_byte == 0 and run.rates[1][0] == pytest.approx(200)


def test_measured_values_are_running_means_whose_latest_counts_for_an_eighth_at_least():
    one = curve()
    for rate in (100.0, 200.0, 300.0):
        run = run_of({1: 1000}, {1: 1000 / rate}, 1000 / rate, 1)
        assert run is not None
        one = one.refined(run, NOW)
    assert one.measured[1].rate == pytest.approx(200) and one.measured[1].weight == 3 and one.runs == 3
    for _ in range(60):
        run = run_of({1: 1000}, {1: 1.0}, 1.0, 1)
        assert run is not None
        one = one.refined(run, NOW)
    assert one.measured[1].rate == pytest.approx(1000, rel=0.01)


def test_the_shape_is_moved_to_what_was_measured():
    shape = {0: 100.0, 1: 50.0, 2: 100.0, 4: 200.0}
    assert curve(shape=shape).bandwidth == pytest.approx(shape)
    moved = curve(shape=shape, measured={1: Measured(25.0, 1)})
    assert moved.bandwidth == pytest.approx({0: 50, 1: 25, 2: 50, 4: 100})


def test_time_outside_of_io_does_not_depend_on_the_servers():
    """A byte takes 0.04 s with 1 server, of which 0.03 s are outside of I/O: twice the rate saves 0.005 s."""
    one = curve(shape={1: 50.0, 2: 100.0}, measured={1: Measured(25.0, 1)}, other_s_per_byte=0.03)
    assert one.bandwidth == pytest.approx({1: 25, 2: 1 / 0.035})
    assert curve(shape={1: 50.0}, other_s_per_byte=0.03).bandwidth == pytest.approx({1: 20})


def test_a_number_that_the_shape_lacks_counts_as_measured():
    one = curve(shape={1: 50.0, 2: 100.0}, measured={3: Measured(40.0, 1)})
    assert one.bandwidth == pytest.approx({1: 50, 2: 100, 3: 40})
    assert curve(measured={3: Measured(40.0, 1)}).bandwidth == {3: 40.0}


def test_a_curve_is_always_of_finite_positive_rates():
    generator = random.Random(7)
    for _ in range(2000):
        shape = {n: generator.choice((0.0, 1e-3, 1.0, 1e9, 1e15)) for n in generator.sample(range(9), 4)}
        measured = {
            n: Measured(generator.choice((0.0, 1e-9, 1.0, 1e15)), generator.choice((1e-6, 1.0, 50.0)))
            for n in generator.sample(range(9), generator.randrange(4))
        }
        one = curve(shape=shape, measured=measured, other_s_per_byte=generator.choice((0.0, 1e-12, 1.0, 1e3)))
        for number, rate in one.bandwidth.items():
            assert 0 <= rate < 1e40, (one, number)
            assert rate > 0 or measured.get(number) == Measured(0.0, measured[number].weight)


@pytest.mark.parametrize(("processes", "same"), [(4, True), (7, True), (3, True), (8, False), (2, False), (1, False)])
def test_runs_of_half_or_twice_the_processes_are_of_another_size(processes: int, same: bool):
    assert curve().is_of_size(processes) is same


# ---- matches ---------------------------------------------------------------------------------------------------------


def test_an_access_like_the_pattern_has_no_distance_and_full_confidence():
    found = match([access()], 2, 4, [pattern()])
    assert found is not None
    assert found.parts[0].distance == 0 and found.confidence == 1 and found.rates == {0: 10.0, 1: 20.0}


@pytest.mark.parametrize(
    ("of_access", "of_pattern", "wanted"),
    [
        ({"operation": "read"}, {}, 2),
        ({"shared": True}, {}, 2),
        ({"shared": True, "spatiality": "strided"}, {"shared": True}, 1),
        ({"shared": True, "spatiality": "random"}, {"shared": True}, 2),
        ({"shared": True, "spatiality": "random"}, {"shared": True, "spatiality": "strided"}, 1),
        ({"request_bytes": MIB / 4}, {}, 1),
        ({"request_bytes": MIB * 16}, {}, 2),
        ({}, {"nodes": 8}, 1),
        ({}, {"processes": 1}, 1),
        ({}, {"direct": True}, 0),
        ({"shared": None, "spatiality": None}, {}, 1),
    ],
)
def test_each_difference_has_its_distance(of_access: dict, of_pattern: dict, wanted: float):
    assert distance(access(**of_access), 2, 4, pattern(**of_pattern)) == pytest.approx(wanted)


def test_of_equally_near_patterns_the_one_without_o_direct_is_taken():
    found = match([access()], 2, 4, [pattern("a", direct=True), pattern("b")])
    assert found is not None and found.names == "b"


def test_the_confidence_is_the_share_of_the_bytes_that_patterns_explain():
    """Three quarters of the bytes are exactly as in a pattern, and a quarter is at a distance of 2."""
    found = match([access(bytes=75), access(bytes=25, operation="read")], 2, 4, [pattern()])
    assert found is not None and found.confidence == pytest.approx(0.75 + 0.25 / 4)
    assert grade(found.confidence) == "high"


def test_parts_follow_one_another_at_the_rates_of_their_patterns():
    patterns = [pattern("w", rates={0: 10.0, 1: 40.0}), pattern("r", operation="read", rates={1: 20.0, 2: 5.0})]
    found = match([access(bytes=50), access(bytes=50, operation="read")], 2, 4, patterns)
    assert found is not None
    assert found.rates == {1: pytest.approx(1 / (0.5 / 40 + 0.5 / 20))}  # the only number that both were measured with


def test_nothing_is_matched_without_patterns_or_bytes():
    assert match([access()], 2, 4, []) is None
    assert match([], 2, 4, [pattern()]) is None
    assert match([access()], 2, 4, [pattern(rates={0: 0.0})]) is None


def test_the_nearest_pattern_is_taken_whatever_the_order():
    generator = random.Random(3)
    patterns = [
        pattern(
            f"p{at}",
            shared=generator.random() < 0.5,
            spatiality=generator.choice(("contiguous", "strided")),
            operation=generator.choice(("read", "write")),
            request_bytes=1 << generator.randrange(10, 25),
            nodes=generator.randrange(1, 64),
            processes=generator.randrange(1, 2048),
        )
        for at in range(60)
    ]
    for _ in range(100):
        one = access(request_bytes=generator.uniform(1, 1e8), shared=generator.choice((True, False, None)))
        found = match([one], 5, 99, generator.sample(patterns, len(patterns)))
        assert found is not None
        assert found.parts[0].distance == min(distance(one, 5, 99, each) for each in patterns)
