"""The statistics of `hocket bench reconfigure`, on samples made here."""

from __future__ import annotations

import random

import pytest
from hocket.reconfigure.statistics import Verdict, judge, settle, shapiro_p, spread


def noisy(centre: float, seed: int, count: int = 9, width: float = 0.01) -> list[float]:
    rng = random.Random(seed)
    return [centre * (1 + rng.uniform(-width, width)) for _ in range(count)]


def test_a_clear_winner_wins_alone():
    verdict = judge({"slow": noisy(2, 1), "fast": noisy(1, 2), "slower": noisy(3, 3)})
    assert verdict.best == ("fast",)
    assert verdict.kruskal_p < 0.001
    assert verdict.p_of["slow"] < 0.05 < verdict.p_of["fast"]


def test_two_that_are_alike_tie_and_the_third_does_not():
    verdict = judge({"slow": noisy(2, 1), "a": noisy(1, 2), "b": noisy(1, 3)})
    assert set(verdict.best) == {"a", "b"}
    assert verdict.tie


def test_all_alike_is_no_reason_to_look_further():
    verdict = judge({name: noisy(1, seed) for seed, name in enumerate("abcd")})
    assert set(verdict.best) == set("abcd")
    assert verdict.kruskal_p >= 0.05
    assert verdict.p_of == {}


def test_random_samples_of_one_distribution_seldom_have_a_single_winner():
    """The tests keep their error rate: at most about 5 in 100 equal distributions are told apart."""
    told_apart = sum(
        len(judge({name: noisy(1, 1000 * trial + seed) for seed, name in enumerate("abcd")}).best) < 4
        for trial in range(200)
    )
    assert told_apart <= 20


def test_equal_values_tie():
    assert judge({"a": [1.0] * 5, "b": [1.0] * 5}) == Verdict(("a", "b"), None, {})


def test_values_without_any_spread_are_told_apart():
    verdict = judge({"a": [2.0] * 9, "b": [1.0] * 9, "c": [1.0] * 9})
    assert verdict.best == ("b", "c")
    assert verdict.p_of == pytest.approx({"b": 1.0, "c": 1.0, "a": 0.0})


def test_one_sample_each_cannot_be_tested():
    assert judge({"a": [2.0], "b": [1.0]}) == Verdict(("b", "a"), None, {})


def test_a_method_with_one_sample_does_not_take_part_beside_others_with_more():
    assert judge({"a": noisy(2, 1), "b": noisy(1, 2), "c": [0.5]}).best == ("b",)


def test_methods_that_always_failed_do_not_take_part():
    assert judge({"a": noisy(1, 1), "b": noisy(2, 2), "c": []}).best == ("a",)
    assert judge({"a": noisy(1, 1), "b": []}) == Verdict(("a",), None, {})
    assert judge({"a": [], "b": []}) == Verdict((), None, {})


def test_shapiro_knows_the_normal_and_the_skewed():
    rng = random.Random(5)
    assert shapiro_p([rng.gauss(0, 1) for _ in range(50)]) > 0.05
    assert shapiro_p([rng.expovariate(1) ** 2 for _ in range(50)]) < 0.001
    assert shapiro_p([1.0, 2.0]) is None
    assert shapiro_p([1.0] * 9) is None


def test_spread():
    told = spread([3.0, 1.0, 2.0, 10.0])
    assert (told.samples, told.median, told.mean, told.least, told.most) == (4, 2.5, 4.0, 1.0, 10.0)
    assert told.deviation == pytest.approx(4.0825, abs=1e-4)
    assert spread([7.0]).deviation == 0.0


def verdicts(cells: dict[tuple[int, int], str]) -> dict[tuple[int, int], Verdict]:
    """Return the verdicts of these cells: in "ab" a and b tie, and a has the least median."""
    return {pair: Verdict(tuple(best), 0.01, {}) for pair, best in cells.items()}


def test_a_winner_is_shown_whatever_its_neighbours_say():
    assert settle(verdicts({(1, 2): "a", (2, 1): "b", (1, 4): "b"})) == {(1, 2): "a", (2, 1): "b", (1, 4): "b"}


def test_a_tie_goes_to_the_one_that_is_best_in_the_nearest_cells():
    shown = settle(verdicts({(1, 2): "ab", (1, 4): "b", (2, 1): "bc", (2, 4): "a", (4, 1): "a", (4, 2): "a"}))
    assert shown[1, 2] == "b"  # neighbours (1, 4), (2, 1), and (2, 4): b twice, a once


def test_a_tie_that_the_nearest_leave_open_goes_on_to_the_next():
    cells = {(1, 2): "ab", (1, 4): "ab", (2, 1): "ab", (2, 4): "ab", (4, 1): "b", (4, 2): "b"}
    assert settle(verdicts(cells))[1, 2] == "b"


def test_a_tie_everywhere_goes_to_the_least_median():
    assert settle(verdicts({(1, 2): "ab", (2, 1): "ba"})) == {(1, 2): "a", (2, 1): "b"}


def test_cells_without_a_run_that_ended_well_are_not_shown():
    assert settle(verdicts({(1, 2): "", (2, 1): "a"})) == {(2, 1): "a"}
