"""`hocket bench reconfigure`: its plan, its output for made-up runs, and its messages for wrong calls."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hocket.cli import main
from hocket.reconfigurations import Reconfiguration
from hocket.reconfigure.heatmap import colour, write_heatmap
from hocket.reconfigure.methods import ALL, USUAL, choose
from hocket.reconfigure.results import EXECUTION, RECONFIGURATION, STOPPED, Planned, Results, plan
from hocket.reconfigure.runs import Outcome
from PIL import Image

SIZES = (1, 2, 4)
METHODS = choose(["merge/plain/collective/blocking", "merge/plain/p2p/blocking", "baseline/plain/collective/blocking"])
FAST, SECOND, SLOW = (method.name for method in METHODS)
ABOUT = {"app": "cg", "command": "cg --stencil 8", "repeat": 9}


def outcome(run: Planned, stopped_s: float) -> Outcome:
    size = {"sources": run.sources, "targets": run.targets}
    record = Reconfiguration("run", 10**9, done=True, stopped_ns=int(stopped_s * 1e9), **size)
    return Outcome("", execution_s=2.0, check=0.125, record=record)


def made_up(seconds: dict[str, float], repeat: int = 9) -> Results:
    """Return results of runs that take these times with each method, plus or minus a tenth."""
    rng = random.Random(3)
    done = [
        (run, outcome(run, seconds[run.method.name] * rng.uniform(0.9, 1.1)))
        for run in plan(SIZES, METHODS, repeat, seed=1)
    ]
    return Results(SIZES, METHODS, done, ABOUT)


def strictly(results: Results) -> dict:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(json.dumps(results.as_json(), allow_nan=False), parse_constant=refuse)


def test_the_plan_has_every_cell_and_method_in_every_round():
    runs = plan(SIZES, METHODS, 2, seed=7)
    assert [run.repeat for run in runs] == [0] * 18 + [1] * 18 + [2] * 18
    rounds = [runs[at : at + 18] for at in (0, 18, 36)]
    keys = [[(run.pair, run.method) for run in one] for one in rounds]
    assert all(len(set(key)) == 18 for key in keys)
    assert keys[0] != keys[1]  # each round has its own order
    assert runs == plan(SIZES, METHODS, 2, seed=7)
    assert all(run.sources != run.targets for run in runs)


def test_the_fastest_method_wins_every_cell_and_execution_times_tie():
    results = made_up({FAST: 0.1, SECOND: 0.2, SLOW: 0.3})
    assert set(results.shown[STOPPED].values()) == {FAST}
    assert all(verdict.best == (FAST,) for verdict in results.verdicts[STOPPED].values())
    assert all(len(verdict.best) == 3 for verdict in results.verdicts[EXECUTION].values())  # all equal: not tested
    told = strictly(results)
    cell = next(c for c in told["cells"] if (c["measure"], c["sources"], c["targets"]) == (STOPPED, 1, 4))
    assert (cell["shown"], cell["best"]) == (FAST, [FAST])
    assert len(cell["methods"][SECOND]["samples"]) == 9  # without the warm-up
    assert len(told["runs"]) == 6 * 3 * 10


def test_failed_runs_are_counted_and_told():
    results = made_up({FAST: 0.1, SECOND: 0.2, SLOW: 0.3})
    done = [
        (run, Outcome("exit code 1: no | slots") if run.method.name == FAST and run.pair == (1, 4) else one)
        for run, one in results.done
    ]
    results = Results(SIZES, METHODS, done, ABOUT)
    assert len(results.failed) == 10
    assert results.shown[STOPPED][1, 4] == SECOND
    text = results.markdown()
    assert "10 failed" in text
    assert f"| 1 → 4 | {FAST} | 0 | exit code 1: no \\| slots |" in text
    strictly(results)


def test_a_wrong_result_is_a_failure():
    results = made_up({FAST: 0.1, SECOND: 0.2, SLOW: 0.3}, repeat=1)
    run, one = results.done[5]
    results.done[5] = (run, Outcome("", one.execution_s, 0.1250001, one.record))
    results = Results(SIZES, METHODS, results.done, ABOUT)
    assert [one.reason for _, one in results.failed] == ["wrong result: residual 0.1250001, most runs have 0.125"]


def test_nothing_but_failures_is_told_too(tmp_path):
    done = [(run, Outcome("did not end within 90 s")) for run in plan(SIZES, METHODS, 1, seed=1)]
    results = Results(SIZES, METHODS, done, ABOUT)
    assert results.shown == {RECONFIGURATION: {}, STOPPED: {}, EXECUTION: {}}
    assert "36 failed" in results.markdown()
    strictly(results)
    write_heatmap(results, tmp_path / "none.png")


def test_one_run_each_is_told_without_tests():
    results = made_up({FAST: 0.1, SECOND: 0.2, SLOW: 0.3}, repeat=1)
    assert "not tested" in results.markdown()
    assert set(results.shown[STOPPED].values()) <= {FAST, SECOND, SLOW}
    strictly(results)


def test_the_picture_has_the_winners_colour(tmp_path):
    write_heatmap(made_up({FAST: 0.2, SECOND: 0.1, SLOW: 0.3}), tmp_path / "winners.png")
    with Image.open(tmp_path / "winners.png") as picture:
        painted = {paper: count for count, paper in picture.convert("RGB").getcolors(1 << 20)}
    second = tuple(round(255 * part) for part in colour(2))
    assert painted[second] > 0.05 * sum(painted.values())


def test_methods_have_colours_of_their_own():
    assert len({colour(number) for number in range(1, 21)}) == 20
    assert len(choose(USUAL)) == len(set(USUAL)) <= 20


def test_the_reconfiguration_lasts_from_the_spawn_until_the_data_are_there():
    run = Planned(1, 2, METHODS[0], 1)
    parts = {"spawning_ns": 300, "constant_ns": 200, "variable_ns": 50, "resuming_ns": 7}
    parts |= {"spawning_stopped_ns": 300, "constant_stopped_ns": 200}
    blocking = Reconfiguration("run", 1600, done=True, start_ns=1000, sources=1, targets=2, **parts)
    told = Results((1, 2), METHODS[:1], [(run, Outcome("", 1.0, 0.5, blocking))], ABOUT)
    assert told.samples(RECONFIGURATION, (1, 2), FAST) == [pytest.approx(550e-9)]
    overlapping = replace(blocking, spawning_stopped_ns=100, constant_stopped_ns=10)  # iterations until it is told
    told = Results((1, 2), METHODS[:1], [(run, Outcome("", 1.0, 0.5, overlapping))], ABOUT)
    assert told.samples(RECONFIGURATION, (1, 2), FAST) == [pytest.approx(593e-9)]


def test_worlds_of_a_node_are_methods_of_their_own():
    (method,) = choose(["merge/plain/p2p/blocking/node"])
    assert method.name == "merge/plain/p2p/blocking/node"
    assert method.environment["HOCKET_WORLDS"] == "node"
    assert choose(["merge/plain/p2p/blocking"])[0].environment["HOCKET_WORLDS"] == "process"


def test_patterns_choose_methods():
    assert choose(["*"]) == list(ALL)
    assert [method.name for method in choose(["merge/single/*/thread"])] == [
        f"merge/single/{data}/thread" for data in ("collective", "p2p", "rma-lock", "rma-lockall")
    ]
    assert len(choose(["merge/plain/p2p/blocking", "merge/plain/p2p/*"])) == 4  # no method twice


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sizes", "1,x"], "--sizes '1,x': give numbers of processes"),
        (["--sizes", "4"], "--sizes '4': give two or more different numbers from 1 to 64"),
        (["--sizes", "0,2"], "--sizes '0,2': give two or more"),
        (["--repeat", "0"], "--repeat 0: give 1 or more"),
        (["--methods", "merge"], "--methods: 'merge' is no method; a method is one of each: merge|baseline / plain|"),
        (["--app", "sort"], "invalid choice: 'sort'"),
    ],
)
def test_wrong_calls_are_told(options, said, capsys):
    assert main(["bench", "reconfigure", *options]) == 2
    assert said in capsys.readouterr().err


def test_says_where_the_program_should_be(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOCKET_PREFIX", str(tmp_path))
    assert main(["bench", "reconfigure", "--output", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.startswith(f"hocket: no {tmp_path}/lib/hocket/apps/cg-mpich: is hocket built")


def test_help_has_examples(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "reconfigure", "--help"])
    assert "hocket bench reconfigure --app cg --quick" in capsys.readouterr().out


@pytest.mark.timeout(180)
def test_a_table_of_two_methods_on_the_real_program(prefix, monkeypatch, tmp_path, capsys):
    """Run cg with 1 and 2 processes under the bench's own daemon."""
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))
    names = "merge/plain/collective/blocking,merge/plain/p2p/blocking"
    options = ["--quick", "--sizes", "1,2", "--repeat", "1", "--methods", names, "--output", str(tmp_path)]
    assert main(["bench", "reconfigure", "--app", "cg", *options]) == 0, capsys.readouterr().err
    told = json.loads((tmp_path / "results.json").read_text())
    assert [run["failed"] for run in told["runs"]] == [""] * 8
    for run in told["runs"]:
        record = run["record"]
        assert (record["sources"], record["targets"], record["done"]) == (run["sources"], run["targets"], True)
        assert 0 < record["stopped_s"] < run["execution_s"]
    assert len({run["residual"] for run in told["runs"]}) == 1
    assert (tmp_path / "trace.jsonl").stat().st_size > 0
    assert "0 failed" in (tmp_path / "results.md").read_text()
