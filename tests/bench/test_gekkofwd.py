"""GekkoFWD's figures in `./dev reproduce`: made-up curves, sets, and what is said of results."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from random import Random

import numpy
import pytest
from checkout import REPO
from hocket.arbitration.allocate import Rules, allocate

sys.path.insert(0, str(REPO / "bench"))
from reproduce import gekkofwd_applications, gekkofwd_live, gekkofwd_queue, gekkofwd_sets, gekkofwd_table4
from reproduce.figure import AGREES, DIFFERS, PARTLY, Options
from reproduce.gekkofwd_curves import BEST, curves

pytestmark = pytest.mark.timeout(120)
PNG = b"\x89PNG"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_made_up_curves_have_the_paper_s_patterns_and_best_numbers(seed: int):
    jobs = curves(seed)
    assert Counter((job.nodes, job.processes) for job in jobs) == {
        (nodes, nodes * per_node): 21 for nodes in (8, 16, 32) for per_node in (12, 24, 48)
    }
    assert len({job.name for job in jobs}) == 189
    best = []
    for job in jobs:
        one, second, *_ = sorted(job.bandwidth.items(), key=lambda pair: -pair[1])
        assert one[1] > second[1] > 0, "a best number is better than the others"
        best.append(one[0])
    assert Counter(best) == BEST


def test_made_up_curves_depend_on_the_seed_alone():
    assert curves(4) == curves(4)
    assert curves(4) != curves(5)


def test_mckp_is_as_good_as_static_in_sets_where_static_shares_no_server():
    """A few of the sets of Fig. 3, through the installed hocket-arbitrate."""
    jobs, generator, compared = curves(1), Random(1), 0
    for _ in range(40):
        chosen = generator.sample(jobs, gekkofwd_sets.SIZE)
        for pool in (24, 56):
            fixed, best = allocate(chosen, pool, (gekkofwd_sets.NODES, pool), ["static", "mckp"], Rules())
            assert best.servers <= pool
            if fixed.servers <= pool:
                compared += 1
                assert best.bandwidth >= fixed.bandwidth
    assert compared > 60


def test_sets_in_which_mckp_is_worse_are_counted_by_what_static_shares():
    """Two pools, of 8 and 16 servers, and three sets each."""
    found = {
        "given_out": numpy.array([[8, 9, 8], [16, 17, 17]]),
        "static": numpy.array([[5, 5, 5], [5, 5, 5]]),
        "mckp": numpy.array([[4, 4, 5], [6, 6, 7]]),
    }
    assert gekkofwd_sets.beside_static(found, (8, 16)) == {
        "alone": 3,
        "alone_more": 1,
        "alone_less": 1,
        "shared": 3,
        "shared_more": 2,
        "shared_less": 1,
    }


def gains(at_24: float, worse: int) -> dict:
    medians = {pool: [1.0, gekkofwd_sets.MEDIANS.get(pool, 2.0), 9.0] for pool in gekkofwd_sets.POOLS}
    medians[24] = [1.0, at_24, 15.0]
    falling = [medians[pool] for pool in gekkofwd_sets.POOLS]
    return {
        "gains": {
            "alone": [None if pool < 24 else medians[pool] for pool in gekkofwd_sets.POOLS],
            "divided": falling,
            "first_come": falling,
            "sets_alone": 1,
            "mean": 2.6,
            "most": 20.0,
            "worse_alone": worse,
            "worse_divided": 3,
            "worse_first_come": 0,
        },
        "other_nodes": [7.4, 4.9, 3.2],
        "seeds": {f"gain_{pool}": [1.0, 2.0] for pool in gekkofwd_sets.MEDIANS},
    }


def test_gains_agree_only_near_the_paper_s_and_if_mckp_is_never_worse(tmp_path: Path):
    assert gekkofwd_sets.judge_gain(gains(5.0, 0)).agreement == AGREES
    assert gekkofwd_sets.judge_gain(gains(5.0, 1)).agreement == PARTLY
    assert gekkofwd_sets.judge_gain(gains(3.0, 0)).agreement == PARTLY
    gekkofwd_sets.draw_gain(gains(5.0, 0), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)


def test_table_4_agrees_only_with_the_paper_s_numbers(tmp_path: Path):
    results = gekkofwd_table4.make(Options())
    assert gekkofwd_table4.judge_table(results).agreement == AGREES
    assert gekkofwd_table4.judge_sums(results).agreement == AGREES
    gekkofwd_table4.draw_sums(results, tmp_path / "a.png")
    results["policies"]["mckp"]["servers"][0] = 1
    assert gekkofwd_table4.judge_table(results).agreement == DIFFERS


def linear(most: int, per_server: float) -> dict[str, list[float]]:
    return {str(k): [per_server * min(k, most)] * 3 for k in (1, 2, 4, 8)}


def test_the_six_applications_are_judged_from_their_curves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With the same worth of each server up to a different number, MCKP needs fewer servers than STATIC gives out."""
    most = {"BT-C": 1, "BT-D": 4, "IOR-MPI": 8, "POSIX-L": 8, "MAD": 1, "S3D": 2}
    measured = {name: linear(count, 20.0) for name, count in most.items()}
    monkeypatch.setattr(gekkofwd_applications, "applications", lambda: measured)
    results = gekkofwd_applications.make_pools(Options())
    sums = gekkofwd_applications.judge_sums(results)
    assert sums.agreement == PARTLY
    assert {value.what: value.ours for value in sums.values}["MCKP is ORACLE from"] == 24
    assert gekkofwd_applications.judge_alone(results).agreement == AGREES
    for draw in (
        gekkofwd_applications.draw_sums,
        gekkofwd_applications.draw_alone,
        gekkofwd_applications.draw_differences,
    ):
        draw(results, tmp_path / "a.png")
        assert (tmp_path / "a.png").read_bytes().startswith(PNG)


def test_numbers_whose_runs_overlap_are_as_good_as_the_best():
    curve = {"0": [1.0, 2.0, 3.0], "1": [4.0, 5.0, 6.0], "2": [2.0, 3.0, 4.5]}
    assert gekkofwd_live.best(curve) == "1"
    assert gekkofwd_live.as_good(curve) == ["1", "2"]


def queue(rates: dict[str, float]) -> dict:
    def one(policy: str, rate: float) -> dict:
        run = {"jobs": [{"name": name, "bytes_per_s": rate * 1e6} for name in ("HACC", "POSIX-L")]}
        mean, predicted = {"mean": rate * 1e6, "half_interval": None}, {"bytes_per_s": rate * 1e6}
        return {"policy": policy, "bytes_per_s": mean, "predicted": predicted, "runs": [run]}

    return {"queue": [{"name": "HACC", "job": "HACC", "nodes": 8}], "policies": [one(*each) for each in rates.items()]}


def test_the_queue_agrees_only_if_mckp_is_best_and_gains_enough(tmp_path: Path):
    judge = gekkofwd_queue.judge_live
    assert judge(queue({"one": 1.0, "static": 2.0, "mckp": 3.0})).agreement == AGREES
    assert judge(queue({"one": 1.0, "static": 2.0, "mckp": 2.2})).agreement == PARTLY
    assert judge(queue({"one": 1.0, "static": 2.0, "mckp": 1.0})).agreement == DIFFERS
    gekkofwd_queue.draw(queue({"one": 1.0, "static": 2.0, "mckp": 3.0}), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)


def test_the_simulated_queue_agrees_only_near_the_paper_s_gain():
    assert gekkofwd_queue.judge_simulated(queue({"static": 2.0, "mckp": 3.8})).agreement == AGREES
    assert gekkofwd_queue.judge_simulated(queue({"static": 2.0, "mckp": 6.0})).agreement == PARTLY
