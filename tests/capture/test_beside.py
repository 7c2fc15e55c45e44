"""The comparison of an application with its emulation."""

import pytest
from hocket.capture.beside import compare, measure, table
from hocket.capture.stages import Run


def test_a_ratio_is_that_of_the_medians() -> None:
    found = measure("elapsed", [1.0, 1.0, 4.0], [1.1, 1.1, 1.1])
    assert found.ratio == pytest.approx(1.1)


def test_runs_that_differ_are_told_apart() -> None:
    different = measure("elapsed", [1.0, 1.01, 1.02, 1.03, 1.04], [2.0, 2.01, 2.02, 2.03, 2.04])
    assert different.kruskal_p is not None and different.kruskal_p < 0.05
    alike = measure("elapsed", [1.0, 1.01, 1.02, 1.03, 1.04], [1.005, 1.015, 1.0, 1.035, 1.025])
    assert alike.kruskal_p is None or alike.kruskal_p > 0.05


def test_a_time_that_the_application_does_not_have_has_no_ratio() -> None:
    runs = [Run(2, 1.0, 0.9, 0.1, 0.0, 0, ())] * 3
    by_name = {one.name: one for one in compare(runs, runs)}
    assert by_name["I/O"].ratio is None
    assert by_name["computing"].ratio == pytest.approx(1.0)
    assert "communication" in table(list(by_name.values()))
