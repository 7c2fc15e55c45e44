"""hocket sim with a stand-in for hocket-sim: tables, comparisons, reports, and failures."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from statistics import median

import pytest
from checkout import KIT
from hocket.cli import main
from hocket.sim.figures import Series, estimate, rows, summary

pytestmark = pytest.mark.timeout(60)
STAND_IN = KIT / "stand_in_simulator.py"


@pytest.fixture(autouse=True)
def stand_in(tmp_path, monkeypatch) -> Path:
    program = tmp_path / "prefix" / "libexec" / "hocket" / "hocket-sim"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("HOCKET_PREFIX", str(tmp_path / "prefix"))
    return program


@pytest.fixture
def scenario(tmp_path) -> str:
    path = tmp_path / "scenario.toml"
    path.write_text('name = "stand-in"\n')
    return str(path)


def complaint(capsys, *words: str, code: int) -> str:
    assert main(["sim", *words]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1), captured
    return captured.err.removeprefix("hocket: ").rstrip("\n")


def test_one_run_has_the_table_of_the_demo(scenario, capsys):
    assert main(["sim", scenario]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("stand-in: 2 applications, seed 7, 1 run, 100 events, simulated in ")
    assert [line.split() for line in lines[2:8]] == [
        ["application", "run", "I/O", "s", "waited", "s", "I", "C", "total", "s"],
        [lines[3]],
        ["A", "alone", "4.00", "0.00", "24.00"],
        ["fcfs", "4.28", "0.00", "1.07", "24.28"],
        ["B", "alone", "4.00", "0.00", "24.00"],
        ["fcfs", "4.28", "4.28", "2.14", "28.56"],
    ]


def test_compare_sets_policies_side_by_side_over_seeds(scenario, capsys):
    assert main(["sim", scenario, "--compare", "--policy", "period-coupling", "--seeds", "9"]) == 0
    out = capsys.readouterr().out
    assert "9 seeds, 36 runs" in out
    table = out.split("\n\n")[2].splitlines()
    named = [line.split()[0] for line in table[1:] if not line.startswith(" ")]
    assert named == ["none", "fcfs", "phase-shift", "period-coupling"]
    assert "-25.0%" in table[5]  # I/O and delay: 2 + 2 s uncoordinated, 1 + 1 + 1 s
    assert table[5].split()[0] == "-25.0%"


def test_json_has_the_summary_and_every_run(scenario, capsys):
    assert main(["sim", scenario, "--policy", "none", "--policy", "fcfs", "--seeds", "3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(run["policy"], run["seed"]) for run in told["runs"]] == [
        (policy, seed) for policy in ("none", "fcfs") for seed in (1, 2, 3)
    ]
    fcfs = told["summary"][1]
    assert fcfs["io_with_delay_s_change"]["median"] == pytest.approx(-0.25)
    assert fcfs["worst_slowdown"] == pytest.approx(0.0)  # B: as long as before, 2 + 0 s against 1 + 1 s
    assert told["summary"][0]["delay_s_change"] is None


def test_the_report_is_that_of_live_runs(scenario, tmp_path, capsys):
    out = tmp_path / "report"
    assert main(["sim", scenario, "--policy", "none", "--policy", "fcfs", "--seeds", "2", "--report", str(out)]) == 0
    assert capsys.readouterr().err == f"hocket: report: {out}/report.html\n"
    text = (out / "report.html").read_text()
    assert "simulated, seed 1; target gpfs" in text
    assert "Uncoordinated, I/O took 2.02 times (A) and 2.02 times (B) as long as alone." in text
    assert (out / "timeline.png").exists()


def test_a_policy_of_ones_own_is_handed_on(scenario, capsys):
    assert main(["sim", scenario, "--policy-file", "mine.py", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["policy"] == "file:mine.py"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["nowhere.toml"], 1, "no scenario nowhere.toml"),
        (["SCENARIO", "--policy", "wrong"], 2, "unknown policy 'wrong'; did you mean 'fcfs'?"),
        (["SCENARIO", "--policy", "crash"], 1, "hocket-sim ended with code 3"),
        (["SCENARIO", "--policy", "silent"], 1, "printed no result"),
        (["SCENARIO", "--seeds", "0"], 2, "--seeds 0: give 1 to 1000"),
        (["SCENARIO", "more"], 2, "'more': one scenario at a time"),
        (["SCENARIO", "-o", "x"], 2, "-o belongs to import-swf"),
        ([], 2, "SCENARIO.toml"),
    ],
)
def test_what_goes_wrong_is_one_line(scenario, capsys, words, code, told):
    assert told in complaint(capsys, *[scenario if word == "SCENARIO" else word for word in words], code=code)


def test_without_the_simulator_it_says_where_it_was_looked_for(scenario, stand_in, capsys):
    stand_in.unlink()
    assert f"no hocket-sim at {stand_in}" in complaint(capsys, scenario, code=1)


# ---- statistics ---------------------------------------------------------------------------------------------------


def test_an_interval_holds_the_median_about_as_often_as_it_says():
    rng = random.Random(11)
    for count in (6, 20, 30):
        held = 0
        for _ in range(2000):
            found = estimate([rng.expovariate(1.0) for _ in range(count)])
            held += found.low <= 0.6931 <= found.high  # the median of the distribution
        assert 0.945 <= held / 2000 <= 0.985, count


@pytest.mark.parametrize("values", [[3.0], [1.0, 2.0], [5.0, 1.0, 4.0], [2.0] * 8])
def test_of_few_values_the_interval_is_their_range(values):
    found = estimate(values)
    assert (found.low, found.median, found.high) == (min(values), median(values), max(values))


def run(policy: str, total_s: float, io_s: float = 1.0) -> dict:
    one = {"application": "A", "io_s": io_s, "wait_s": 0.0, "total_s": total_s, "io_alone_s": 0.0, "alone_s": 1.0}
    one |= {"processes_first": 1, "processes_last": 2, "phases": 1, "iterations": 1, "bytes_written": 0}
    one["reconfigurations"] = 0
    return {"policy": policy, "applications": [one], "flops": 0.0, "simulated_s": total_s, "decisions": 0, "events": 1}


def test_applications_without_io_have_no_factor():
    (alone, found) = rows([Series("none", [run("none", 2.0)])])
    assert (alone.run, found.interference, found.processes) == ("alone", None, 2)


def test_runs_are_compared_seed_by_seed():
    first = Series("none", [run("none", total) for total in (10.0, 100.0, 1000.0)])
    second = Series("fcfs", [run("fcfs", total) for total in (11.0, 110.0, 1100.0)])
    told = summary([first, second])[1]
    assert told["simulated_s_change"]["median"] == pytest.approx(0.1)
    assert told["worst_slowdown"] == pytest.approx(0.1)
    assert told["flops_change"] is None  # no run has a FLOP count


def test_of_many_applications_the_table_has_those_with_most_io():
    many = run("none", 2.0)
    many["applications"] = [dict(many["applications"][0], application=f"J{n}", io_s=float(n % 7)) for n in range(50)]
    shown = {row.application for row in rows([Series("none", [many])], 5)}
    assert shown == {"J6", "J13", "J20", "J27", "J34"}
