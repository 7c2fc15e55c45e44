"""The expected Δ-graphs: the formulas beside a small simulation by steps, and metrics as formulas."""

from __future__ import annotations

import math
import random

import pytest
from hocket.delta.metric import FORMULAS, Figures, UnknownFormulaError, value_of
from hocket.delta.model import FAIR, Expected, Model, Side, rates
from hocket.delta.simulated import ROUND, Machine, parse_spec, pieces_of
from hocket.verbs.delta import dts_of

LARGE, SMALL = Side(10.0, 744), Side(1.0, 24)


def times(model: Model, policy: str, dt_s: float) -> tuple[float, float]:
    found = model.expected(policy, dt_s)
    assert found is not None
    return found.a_s, found.b_s


@pytest.mark.parametrize("policy", ["interfere", "fcfs", "interrupt", "dynamic"])
def test_who_does_not_meet_is_not_disturbed(policy):
    model = Model(LARGE, SMALL)
    for dt_s in (-50.0, -1.0, 10.0, 11.0):
        assert times(model, policy, dt_s) == (10.0, 1.0)


def test_the_formulas_of_calciom():
    model = Model(Side(8.0, 2048), Side(2.0, 2048))
    for dt_s in (0.0, 1.0, 5.9, 6.1, 7.9):
        fcfs, interrupt = (model.expected(policy, dt_s) for policy in ("fcfs", "interrupt"))
        assert model.cost(fcfs, dt_s) == pytest.approx(2048 * (2 * 8.0 + 2.0 - dt_s))
        assert model.cost(interrupt, dt_s) == pytest.approx(2048 * (8.0 + 2 * 2.0))
        chosen = interrupt if dt_s < 8.0 - 2.0 else fcfs
        assert model.expected("dynamic", dt_s) == chosen


def test_who_comes_second_waits_or_interrupts_whoever_it_is():
    model = Model(LARGE, SMALL)
    assert times(model, "fcfs", 4.0) == (10.0, 7.0)
    assert times(model, "fcfs", -0.25) == (10.75, 1.0)
    assert times(model, "interrupt", 4.0) == (11.0, 1.0)
    assert times(model, "interrupt", -0.25) == (10.0, 11.0)


def test_with_files_as_pieces_there_is_a_saw():
    model = Model(Side(8.0, pieces=4), Side(2.0))
    expected = {0.0: 4.0, 0.5: 3.5, 2.0: 2.0, 2.1: 3.9, 3.9: 2.1, 5.0: 3.0}
    for dt_s, b_s in expected.items():
        assert times(model, "interrupt", dt_s) == pytest.approx((10.0, b_s))
    assert times(model, "interrupt", 6.5) == pytest.approx((8.0, 3.5))  # in the last file: as with fcfs
    assert times(Model(Side(8.0, pieces=1), Side(2.0)), "interrupt", 3.0) == pytest.approx((8.0, 7.0))


def test_ends_are_counted_from_the_first_start_whoever_that_is():
    model = Model(Side(5.0), Side(5.0), "makespan")
    for dt_s in (4.0, -4.0):
        assert model.cost(model.expected("fcfs", dt_s), dt_s) == pytest.approx(10.0)


@pytest.mark.parametrize(("spec", "pieces"), [("bytes=24m", 1), ("bytes=100m", 2), ("bytes=384m,files=2", 6)])
def test_an_application_can_be_interrupted_after_each_round_of_each_file(spec, pieces):
    assert pieces_of(parse_spec(spec), Machine(1e9, FAIR, ROUND, 64 << 20)) == pieces


def interfere_by_steps(model: Model, dt_s: float, step_s: float = 1e-3) -> tuple[float, float]:
    """Return the times if both run at once; an application that is alone runs at full speed."""
    left, ends, now_s = {"a": model.a.alone_s, "b": model.b.alone_s}, {}, min(0.0, dt_s)
    starts, speeds = {"a": 0.0, "b": dt_s}, {"a": model.a.rate, "b": model.b.rate}
    while left:
        busy = [name for name in left if starts[name] <= now_s + step_s / 2]
        for name in busy:
            left[name] -= step_s * (speeds[name] if len(busy) == 2 else 1.0)
        now_s += step_s
        for name in [name for name in busy if left[name] <= 1e-9]:
            ends[name] = now_s - starts[name]
            del left[name]
    return ends["a"], ends["b"]


def test_interference_is_what_a_simulation_by_steps_gives():
    rng = random.Random(61)
    for _ in range(60):
        share = rng.uniform(0.05, 0.95)
        sides = [Side(rng.uniform(0.2, 3.0), rate=rate) for rate in (share, rng.uniform(1 - share, 1.0))]
        model, dt_s = Model(*sides), round(rng.uniform(-3.5, 3.5), 3)
        assert times(model, "interfere", dt_s) == pytest.approx(interfere_by_steps(model, dt_s), abs=0.02)


def test_an_expectation_has_its_mirror_image():
    rng = random.Random(62)
    for _ in range(100):
        a, b = (Side(rng.uniform(0.1, 9.0), rng.randint(1, 99), rng.choice([0, 1, 4]), 0.5) for _ in range(2))
        dt_s = rng.uniform(-10.0, 10.0)
        for policy in ("interfere", "fcfs", "interrupt", "dynamic"):
            there, back = times(Model(a, b), policy, dt_s), times(Model(b, a), policy, -dt_s)
            assert there == back[::-1], (policy, dt_s)
            assert min(there[0] - a.alone_s, there[1] - b.alone_s) >= -1e-9


def test_dynamic_is_never_worse_than_the_three_by_its_metric():
    rng = random.Random(63)
    for metric in [*FORMULAS, "max(io_time/alone)", "io_time^2"]:
        for _ in range(50):
            a, b = (Side(rng.uniform(0.1, 9.0), rng.randint(1, 99)) for _ in range(2))
            model, dt_s = Model(a, b, metric), rng.uniform(0.0, 10.0)
            costs = {
                policy: model.cost(model.expected(policy, dt_s), dt_s)
                for policy in ("interfere", "fcfs", "interrupt", "dynamic")
            }
            assert costs["dynamic"] == min(costs.values())


def test_what_overlaps_may_end_together():
    assert times(Model(LARGE, SMALL, together=True), "interfere", 4.0) == (11.0, 7.0)


def test_shares_of_a_target():
    assert rates("fair", (1.0, 744), (1.0, 24), 1.0) == (0.5, 0.5)
    assert rates("proportional", (1.0, 744), (1.0, 24), 1.0) == pytest.approx((744 / 768, 24 / 768))
    assert rates("fair", (0.7, 1), (0.7, 1), 1.0) == pytest.approx((1 / 1.4, 1 / 1.4))  # two take 1.4 times as long
    assert rates("fair", (0.2, 1), (1.0, 1), 1.0) == pytest.approx((1.0, 0.8))
    assert rates("fair", (0.3, 1), (0.4, 1), 1.0) == (1.0, 1.0)


def test_a_policy_that_the_model_does_not_know_has_no_expectation():
    assert Model(LARGE, SMALL).expected("set-10", 1.0) is None
    assert Model(LARGE, SMALL).expected("set-10", -1.0) is None


# ---- metrics ------------------------------------------------------------------------------------------------------

TWO = [Figures(4.0, 3.0, 2.0, 3.0), Figures(10.0, 1.0, 0.5, 5.0)]


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("cpu-time", 22.0), ("io-time", 4.0), ("interference", 3.5), ("makespan", 5.0),
        ("io_time", 4.0), ("max(io_time / alone)", 2.0), ("mean(end) - min(end)", 1.0), ("2 * sum(-io_time) + 1", -7.0),
        ("io_time^2", 10.0), ("-io_time^2", -10.0), ("2^3^2*0 + end", 8.0), ("1e3 * max(end)", 5000.0),
    ],
)  # fmt: skip
def test_metrics(metric, value):
    assert value_of(metric, TWO) == pytest.approx(value)


@pytest.mark.parametrize(
    "metric",
    ["", "nonsense", "sum(", "max(end) + end", "end.real", "[end]", "sum(end, end)", "end/0", "(-end)^0.5", "end^9^99"],
)
def test_what_is_no_metric_has_no_value(metric):
    with pytest.raises(UnknownFormulaError):
        value_of(metric, TWO)


def test_the_model_says_so_too():
    model = Model(LARGE, SMALL, "nonsense")
    assert model.expected("fcfs", 4.0) == Expected(10.0, 7.0)
    with pytest.raises(UnknownFormulaError):
        model.expected("dynamic", 4.0)


# ---- which dts ----------------------------------------------------------------------------------------------------


def test_dts_are_even_and_have_their_ends():
    assert dts_of(-20, 20, 1) == list(range(-20, 21))
    assert dts_of(-0.3, 0.3, 0.1) == [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3]
    assert dts_of(1, 1, 5) == [1.0]
    assert dts_of(0, 1, 0.4) == [0.0, 0.4, 0.8]
    assert not any(math.isnan(dt) for dt in dts_of(0, 1e-3, 1e-4))
