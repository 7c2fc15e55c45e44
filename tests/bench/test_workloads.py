"""The random workloads of `./dev bench framework`: what is drawn, and what is counted."""

from __future__ import annotations

import sys
import tomllib

import pytest
from checkout import REPO

sys.path.insert(0, str(REPO / "bench"))

import workload
import workloads

SEEDS = range(1, 101)
DRAWN = {seed: tomllib.loads(workload.scenario(seed)) for seed in SEEDS}
APPLICATIONS = [one for scenario in DRAWN.values() for one in scenario["applications"]]


def test_a_seed_always_draws_the_same():
    assert workload.scenario(7) == workload.scenario(7) != workload.scenario(8)


def test_a_workload_is_within_what_is_stated():
    for scenario in DRAWN.values():
        assert 2 <= len(scenario["applications"]) <= 40
        names = {one["name"] for one in scenario["targets"]}
        cost = scenario["reconfiguration"]
        most_s = cost["fixed_s"] + 512 * cost["per_process_s"] + workload.MOST_DATA / cost["bytes_per_s"]
        assert 0.19 <= most_s <= 15.1
        for one in scenario["applications"]:
            assert {phase.get("target", one["target"]) for phase in one["phases"]} <= names
            assert 1 <= sum(not phase.get("cached") for phase in one["phases"]) <= 3
            assert 0 <= one["jitter"] <= 0.2


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("announces", {"exact", "nothing", "wrong"}),
        ("grain", {"operation", "file", "round"}),
        ("profile", {"exact", "none", "wrong"}),
        ("malleable", {True, False}),
    ],
)
def test_all_kinds_of_applications_are_drawn(key, values):
    counted = {value: sum(one[key] == value for one in APPLICATIONS) for value in values}
    assert {one[key] for one in APPLICATIONS} == values
    assert min(counted.values()) > len(APPLICATIONS) / 20


def test_troubles_are_drawn_for_some():
    for key in ("phase_skip", "period_change", "death", "resize_refusal", "resize_failure"):
        assert 0 < sum(key in one for one in APPLICATIONS) < len(APPLICATIONS) / 2


def run(metric: float, *total_s: float) -> workloads.Run:
    return workloads.Run(total_s, metric)


def test_an_application_run_is_held_against_that_of_the_same_workload(capsys):
    alone = {1: run(10, 100, 100), 2: run(10, 50, 50)}
    cost = {1: run(9, 100, 104), 2: run(11, 60, 50)}
    found = workloads.slowdowns(cost, alone)
    assert found == {(1, 1): 1.0, (1, 2): 1.04, (2, 1): 1.2, (2, 2): 1.0}
    assert not workloads.judge_slowdowns("x", found, 0.99, 1.15)
    assert '"value": 0.75' in capsys.readouterr().out
    assert workloads.judge_slowdowns("x", found, 0.75, 1.2)


def test_the_metric_is_held_against_the_least_of_the_references():
    first, second = {1: run(10), 2: run(20)}, {1: run(20), 2: run(10)}
    found = workloads.metrics({1: run(11), 2: run(10)}, first, second)
    assert found == {1: 1.1, 2: 1.0}
    assert not workloads.judge_metric("x", found, 1.05)
    assert workloads.judge_metric("x", found, 1.1)
    assert workloads.judge_metric("x", found, None, 0.5)
    assert not workloads.judge_metric("x", found, None, 0.51)


def test_the_default_is_bound_and_the_others_are_not(capsys):
    made = {
        "interfere": {1: run(10, 100)},
        "fcfs": {1: run(10, 100)},
        "cost": {1: run(12, 120)},
        "interrupt": {1: run(12, 120)},
        "fair": {1: run(12, 120)},
    }
    assert workloads.judge(made, ["interrupt"])
    assert not workloads.judge(made, ["fair"])
    assert not workloads.judge(made, ["cost"])
    assert capsys.readouterr().out.count('"ok": false') == 1 + 3
