"""The conditions under which the demo rejects its own figures, and its choice of storage."""

from pathlib import Path
from types import SimpleNamespace

import checks
import pytest
import storage
from checkout import DATA
from errors import DemoError
from hocket.analysis import analyse
from hocket.trace import read_trace
from outcome import Outcome, Pair
from probe import MIB, Probe
from solvers import MAX_CHECKPOINT_BYTES, Solver, two_solvers


def probe(bytes_per_s, *ratios):
    alone_s = 100 * MIB / bytes_per_s
    return Probe(100, (alone_s,) * len(ratios), tuple(alone_s * ratio for ratio in ratios))


@pytest.mark.parametrize(
    ("ratios", "clear"),
    [
        ((2.0, 2.0, 2.0), True),
        ((1.5, 1.6, 1.7), True),
        ((1.0, 1.1, 1.0), False),  # no interference
        ((1.49, 1.49, 1.49), False),
        ((1.1, 2.0, 2.9), False),  # too noisy for a verdict
        ((1.6, 2.0, 2.61), False),
    ],
)
def test_interference_is_clear_where_the_median_is_large_and_the_spread_small(ratios, clear):
    assert probe(1e8, *ratios).interferes_clearly is clear


@pytest.mark.parametrize(
    ("measured", "wish", "limited", "words"),
    [
        (probe(1e8, 2, 2, 2), "auto", False, "real storage, measured before: 100 MB/s alone"),
        (probe(1e8, 1, 1, 1), "auto", True, "limited to 33 MB/s for all writers together: two writers slow"),
        (probe(1e8, 1, 2, 4), "auto", True, "the real storage is too noisy (100 MB/s alone, two writers take 2.00"),
        (probe(1e9, 2, 2, 2), "auto", True, "limited to 100 MB/s for all writers together: the real storage is too"),
        (probe(1e9, 2, 2, 2), "real", False, "real storage, measured before: 1000 MB/s"),
        (probe(1e8, 2, 2, 2), "limited", True, "as requested"),
    ],
)
def test_the_storage_is_limited_only_where_it_must_be_and_says_why(monkeypatch, measured, wish, limited, words):
    monkeypatch.setattr(storage.probe, "measure", lambda directory, pairs: measured)
    chosen = storage.choose(Path("/somewhere"), wish, Path("/dev/null"), 3)
    assert bool(chosen.environment) is limited
    assert words in chosen.statement
    if limited:
        assert chosen.environment["HOCKET_LIMIT_BYTES_PER_S"] == str(round(chosen.bytes_per_s))


def test_a_limit_needs_the_library(monkeypatch, tmp_path):
    monkeypatch.setattr(storage.probe, "measure", lambda directory, pairs: probe(1e9, 1, 1, 1))
    with pytest.raises(DemoError, match="liblimited_target"):
        storage.choose(tmp_path, "auto", tmp_path / "liblimited_target.so", 3)


@pytest.mark.parametrize("bytes_per_s", [3e7, 1e8, 2e9])
@pytest.mark.parametrize("small", [True, False])
def test_the_solvers_differ_and_fit_the_storage(bytes_per_s, small):
    a, b = two_solvers(bytes_per_s, small, 3)
    assert a.n != b.n and a.checkpoint_every * a.iteration_time_s != b.checkpoint_every * b.iteration_time_s
    for solver, phase_s in ((a, 0.6 if small else 1.5), (b, 0.45 if small else 1.1)):
        assert solver.checkpoint_bytes <= MAX_CHECKPOINT_BYTES * 1.01
        assert solver.checkpoint_bytes <= bytes_per_s * phase_s * 1.01


def test_overlapping_operations_are_found():
    found = checks.overlapping(analyse(read_trace(DATA / "uncoordinated.jsonl")))
    assert found is not None
    assert checks.overlapping(analyse(read_trace(DATA / "fcfs.jsonl"))) is None


def ended(residual, name="jacobi-a"):
    summary = {"residual": residual, "b_norm": 1.0, "verified": 3, "checkpoint_bytes": 100}
    solver = Solver(name, n=10, seed=1, core=0, checkpoint_every=1, checkpoints=3, iteration_time_s=0.1)
    return SimpleNamespace(solver=solver, summary=summary)


def run_checked(checker, *solvers):
    plan = SimpleNamespace(label="a run", policy="interfere", applications=[])
    checker.run(plan, solvers, DATA / "fcfs.jsonl")


def test_another_residual_in_another_run_is_an_error(monkeypatch):
    monkeypatch.setattr(checks, "replay", lambda trace: None)
    checker = checks.Checker()
    run_checked(checker, ended(0.25), ended(0.5, "jacobi-b"))
    run_checked(checker, ended(0.25), ended(0.5, "jacobi-b"))
    assert checker.statement().startswith("12 checkpoints")
    with pytest.raises(DemoError, match="jacobi-b came to residual"):
        run_checked(checker, ended(0.5000000000000001, "jacobi-b"))


@pytest.mark.parametrize("residual", [1.0, 2.0, float("nan")])
def test_a_residual_that_did_not_fall_is_an_error(monkeypatch, residual):
    monkeypatch.setattr(checks, "replay", lambda trace: None)
    with pytest.raises(DemoError, match="jacobi-a"):
        run_checked(checks.Checker(), ended(residual))


def test_an_application_that_the_daemon_did_not_see_is_an_error():
    solver = SimpleNamespace(name="jacobi-c", checkpoints=1)
    plan = SimpleNamespace(label="a run", policy="fcfs", applications=[solver])
    with pytest.raises(DemoError, match="0 applications called jacobi-c"):
        checks.Checker().run(plan, [], DATA / "fcfs.jsonl")


# ---- the verdict on the default policy -------------------------------------------------------------------------------


def outcome(*pairs):
    """Return the outcome of pairs (a uncoordinated, a default, b uncoordinated, b default)."""
    return Outcome("default (cost)", [Pair({"a": ua, "b": ub}, {"a": da, "b": db}) for ua, da, ub, db in pairs])


def test_a_default_that_helps_says_so_and_is_no_complaint():
    found = outcome((10, 9.6, 20, 20), (10.1, 9.7, 20, 20), (10, 9.0, 20, 19))
    assert found.complaint() == ""
    assert found.sentence() == (
        "default (cost): a 4 % sooner than uncoordinated, b as soon "
        "(median of 3 pairs of runs; uncoordinated differs from itself by up to 1 %)"
    )


def test_one_solver_that_became_slower_is_a_complaint_though_the_other_gained():
    found = outcome((10, 5, 10, 10.4), (10, 5, 10, 10.4), (10, 5, 10, 10.4))
    words = "default (cost) made b 4.0 % slower than uncoordinated, where 3.0 % is allowed"
    assert found.complaint() == words
    assert "a 50 % sooner than uncoordinated, b 4 % later" in found.sentence()


@pytest.mark.parametrize(("slower", "complains"), [(1.029, False), (1.031, True), (0.9, False)])
def test_three_percent_are_allowed(slower, complains):
    assert bool(outcome(*[(10, 10 * slower, 10, 10)] * 3).complaint()) is complains


def test_what_uncoordinated_differs_from_itself_by_is_allowed_too():
    apart = [(10, 10.7, 10, 10), (10.5, 11.2, 10, 10), (11, 11.8, 10, 10)]  # uncoordinated: up to 10 % apart
    assert outcome(*apart).change("a") == pytest.approx(0.07, abs=0.004) and outcome(*apart).complaint() == ""
    steady = [(10, 10.7, 10, 10)] * 3
    assert "made a 7.0 % slower" in outcome(*steady).complaint()
    assert outcome(*[(ub, db, ua, da) for ua, da, ub, db in apart]).complaint() == ""


def test_it_is_the_median_of_the_pairs_that_counts():
    assert outcome((10, 10, 10, 10), (10, 15, 10, 10), (10, 10.1, 10, 10)).complaint() == ""
    assert outcome((10, 15, 10, 10), (10, 15, 10, 10), (10, 10, 10, 10)).complaint() != ""


def test_one_pair_tells_nothing_about_the_noise():
    said = "default (cost): a 10 % sooner than uncoordinated, b as soon (one pair of runs)"
    assert outcome((10, 9, 10, 10)).sentence() == said
    assert outcome((10, 10, 10, 10)).sentence().startswith("default (cost): a as soon as uncoordinated, b as soon (")
