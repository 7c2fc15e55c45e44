"""What makes the demo distrust its own figures, and how it chooses its storage."""

from pathlib import Path
from types import SimpleNamespace

import checks
import pytest
import storage
from errors import DemoError
from hocket.analysis import analyse
from hocket.trace import read_trace
from probe import MIB, Probe
from solvers import MAX_CHECKPOINT_BYTES, two_solvers

DATA = Path(__file__).parent / "data"


def probe(bytes_per_s, *ratios):
    alone_s = 100 * MIB / bytes_per_s
    return Probe(100, (alone_s,) * len(ratios), tuple(alone_s * ratio for ratio in ratios))


@pytest.mark.parametrize(
    ("ratios", "clear"),
    [
        ((2.0, 2.0, 2.0), True),
        ((1.5, 1.6, 1.7), True),
        ((1.0, 1.1, 1.0), False),  # they do not disturb each other
        ((1.49, 1.49, 1.49), False),
        ((1.1, 2.0, 2.9), False),  # too noisy to tell
        ((1.6, 2.0, 2.61), False),
    ],
)
def test_interference_is_clear_where_the_median_is_large_and_the_spread_small(ratios, clear):
    assert probe(1e8, *ratios).interferes_clearly is clear


@pytest.mark.parametrize(
    ("measured", "wish", "limited", "words"),
    [
        (probe(1e8, 2, 2, 2), "auto", False, "real storage, measured before: 100 MB/s alone"),
        (probe(1e8, 1, 1, 1), "auto", True, "limited to 33 MB/s for all writers together: on the real storage two"),
        (probe(1e8, 1, 2, 4), "auto", True, "the real storage is too noisy (100 MB/s alone, two writers take 2.00"),
        (probe(1e9, 2, 2, 2), "auto", True, "limited to 100 MB/s for all writers together: the real storage is too"),
        (probe(1e9, 2, 2, 2), "real", False, "real storage, measured before: 1000 MB/s"),
        (probe(1e8, 2, 2, 2), "limited", True, "as asked for"),
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
@pytest.mark.parametrize("quick", [True, False])
def test_the_solvers_differ_and_fit_the_storage(bytes_per_s, quick):
    a, b = two_solvers(bytes_per_s, quick)
    assert a.n != b.n and a.checkpoint_every * a.iteration_time_s != b.checkpoint_every * b.iteration_time_s
    for solver, phase_s in ((a, 0.6 if quick else 1.5), (b, 0.45 if quick else 1.1)):
        assert solver.checkpoint_bytes <= MAX_CHECKPOINT_BYTES * 1.01
        assert solver.checkpoint_bytes <= bytes_per_s * phase_s * 1.01


def test_overlapping_operations_are_found():
    found = checks.overlapping(analyse(read_trace(DATA / "uncoordinated.jsonl")))
    assert found is not None
    assert checks.overlapping(analyse(read_trace(DATA / "fcfs.jsonl"))) is None


def ended(residual, name="jacobi-a"):
    summary = {"residual": residual, "b_norm": 1.0, "verified": 3, "checkpoint_bytes": 100}
    return SimpleNamespace(solver=SimpleNamespace(name=name), summary=summary)


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
