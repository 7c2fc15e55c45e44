"""The real hocket-sim: each scenario of scenarios/, its repeatability, its traces, and its messages for broken
scenarios.

Broken profiles are in policies/test_profile.py. The table of all possible mistakes in a scenario is in
src/tools/sim/scenario_reader_test.cpp and scenario_servers_test.cpp.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from checkout import REPO
from hocket.cli import main
from hocket.trace import read_trace

pytestmark = pytest.mark.timeout(60)
SCENARIOS = REPO / "scenarios"
SHORTER_S = {"machine-500": 600, "from-swf": 20000, "stress": 800}  # scenarios that take a second and more
LIMIT_S = 40


@pytest.fixture
def simulate(prefix, tmp_path):
    """Return a function that runs hocket-sim on a scenario of scenarios/, or a shorter copy, and returns its result."""

    def run(name: str, *options: object) -> dict:
        path = SCENARIOS / f"{name}.toml"
        if name in SHORTER_S:
            text = re.sub(r"^until_s = .*\n", "", path.read_text(), flags=re.MULTILINE)
            path = tmp_path / path.name
            path.write_text(f"until_s = {SHORTER_S[name]}\n{text}")
        program = prefix / "libexec" / "hocket" / "hocket-sim"
        words = [str(program), str(path), *map(str, options)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
        assert (done.returncode, done.stderr) == (0, ""), f"{name}: {done.stderr}"
        return json.loads(done.stdout)

    return run


def without_wall_time(result: dict) -> dict:
    return {key: value for key, value in result.items() if key != "wall_s"}


def told_of(trace: Path, kind: str) -> list[dict]:
    return [line for line in map(json.loads, trace.read_text().splitlines()) if line.get("out") == kind]


@pytest.mark.parametrize("name", sorted(path.stem for path in SCENARIOS.glob("*.toml")))
def test_each_scenario_runs_and_its_sums_agree(simulate, name):
    told = simulate(name)
    assert told["simulated_s"] > 0
    assert told["events"] > len(told["applications"])
    for one in told["applications"]:
        parts = one["compute_s"] + one["io_s"] + one["wait_s"] + one["stopped_s"]
        assert parts == pytest.approx(one["total_s"], abs=1e-3), one["application"]
    written = sum(one["bytes_written"] for one in told["applications"])
    assert written <= sum(target["bytes"] for target in told["targets"]) * (1 + 1e-9)


@pytest.mark.parametrize("policy", ["none", "fcfs", "period-coupling", "phase-shift+predictive"])
def test_the_same_seed_gives_the_same_result_and_another_one_another(simulate, policy):
    first, again = (simulate("stress", "--policy", policy, "--seed", 7) for _ in range(2))
    assert without_wall_time(first) == without_wall_time(again)
    assert simulate("stress", "--policy", policy, "--seed", 8)["applications"] != first["applications"]


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_period_coupling_gives_a2_of_use_case_d_the_size_of_the_paper(simulate, tmp_path, seed):
    """Section 5.1 of CLARISSE+FlexMPI: A2 goes from 50 to 57 or 59 processes, and A1 keeps its own."""
    trace = tmp_path / "d.jsonl"
    simulate("use-case-d", "--policy", "period-coupling", "--seed", seed, "--trace", trace)
    resizes = [one for one in told_of(trace, "DECISION") if one["action"] in ("expand", "shrink")]
    for_good = [one for one in resizes if one["return_at_iteration"] == 0]
    assert for_good
    assert {one["decided_for"] for one in for_good} == {"A2"}
    assert 57 <= for_good[-1]["to"] <= 59


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_default_keeps_no_two_programs_in_step(simulate, seed):
    """First come, first served makes the periods of the two alike, so that one waits for the other again and again."""

    def totals_s(policy: str) -> list[float]:
        told = simulate("in-step", "--policy", policy, "--seed", seed)
        return [one["total_s"] for one in told["applications"]]

    free = totals_s("interfere")
    assert max(after / before for after, before in zip(totals_s("fcfs"), free, strict=True)) > 1.05
    assert max(after / before for after, before in zip(totals_s("cost"), free, strict=True)) < 1.02


def test_a_trace_changes_nothing_and_hocketd_decides_the_same_again(simulate, prefix, tmp_path):
    trace = tmp_path / "stress.jsonl"
    told = simulate("stress", "--policy", "phase-shift+predictive", "--trace", trace)
    assert without_wall_time(told) == without_wall_time(simulate("stress", "--policy", "phase-shift+predictive"))
    assert len(told_of(trace, "DECISION")) == told["decisions"] > 0
    words = [str(prefix / "bin" / "hocketd"), "--replay", str(trace)]
    replay = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
    assert (replay.returncode, replay.stderr) == (0, "")
    assert re.fullmatch(rf"{re.escape(str(trace))}: \d+ events and \d+ commands agree\n", replay.stdout)


def test_a_slow_server_is_taken_out_as_under_hocketd(simulate, prefix, tmp_path):
    """Fig. 10 of CLARISSE: a server is slow from the third write on, and the writes after its removal are as before."""
    trace = tmp_path / "elastic.jsonl"
    (told,) = simulate("elastic", "--trace", trace)["applications"]
    (slow,) = told_of(trace, "SLOW_IO_SERVER")
    assert slow["server"] == "aggregator.2"
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    writes = [line["io_ns"] / 1e9 for line in lines if line.get("in") == "IO_PHASE"]
    assert [line["epoch"] for line in lines if line.get("in") == "MAP_ADOPTED"] == [128, 129]
    assert writes[2] > 3 * writes[1]
    # A client sends each of the other servers nine requests instead of eight.
    assert writes[3:] == pytest.approx([writes[1]] * 7, rel=0.06)
    assert told["io_s"] == pytest.approx(sum(writes))
    words = [str(prefix / "bin" / "hocketd"), "--replay", str(trace)]
    replay = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
    assert (replay.returncode, replay.stderr) == (0, "")


def test_a_servers_policy_in_python_gives_an_application_a_server(simulate, tmp_path):
    policy = tmp_path / "first.py"
    policy.write_text(
        'NAME = "first"\nKIND = "servers"\n\n\ndef decide(view, event):\n'
        '    return [{"assign": a, "servers": ["aggregator.3"]} for a in view.applications if not view.assigned]\n'
    )
    trace = tmp_path / "elastic.jsonl"
    (told,) = simulate("elastic", "--policy-file", policy, "--trace", trace)["applications"]
    (decision,) = told_of(trace, "DECISION")
    assert (decision["action"], decision["decided_for"]) == ("assign", "S-IOR")
    # One server has all the requests: 16 MiB of each client.
    assert told["io_s"] / 10 == pytest.approx(1920 * 1024 * 189e-6 + 1920 * 2**24 / 2e9, rel=1e-6)


def test_a_new_application_waits_for_cores_as_under_hocketd(simulate, prefix, tmp_path):
    trace = tmp_path / "new.jsonl"
    expanded, new = simulate("new-application", "--trace", trace)["applications"]
    assert expanded["reconfigurations"] >= 2, "it has grown, and has returned the cores"
    assert expanded["cores_wait_s"] == 0 < new["cores_wait_s"] < 60
    assert new["start_s"] == pytest.approx(300 + new["cores_wait_s"])
    (asked,) = [line for line in map(json.loads, trace.read_text().splitlines()) if line.get("in") == "ASK_CORES"]
    assert (asked["processes"], asked["longest_ns"]) == (64, 60_000_000_000)
    assert [line["wait"] for line in told_of(trace, "CORES_FOR")] == [True, False]
    (start,) = [line for line in told_of(trace, "DECISION") if line["action"] == "start"]
    assert (start["decided_for"], start["reason"]["missing"]) == ("B", 0)
    words = [str(prefix / "bin" / "hocketd"), "--replay", str(trace)]
    replay = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
    assert (replay.returncode, replay.stderr) == (0, "")


def test_hocket_report_draws_a_simulated_run(simulate, tmp_path, capsys):
    trace, report = tmp_path / "d.jsonl", tmp_path / "report"
    told = simulate("use-case-d", "--trace", trace)
    assert main(["report", str(trace), "-o", str(report)]) == 0, capsys.readouterr().err
    page = (report / "report.html").read_text()
    assert all(one["application"] in page for one in told["applications"])
    assert page.count("<svg") >= 1
    assert len(read_trace(trace).events) > told["decisions"]


def test_predictions_that_are_off_are_told_and_explained(simulate, tmp_path, capsys):
    """If applications change their period, some predictions fail; hocketd reports these and explain shows them."""
    trace = tmp_path / "pairs.jsonl"
    simulate("stress-pairs", "--trace", trace)
    outcomes = [line for line in told_of(trace, "OUTCOME") if line["quantity"] == "phase-start"]
    off = [line for line in outcomes if not line["met"] and not line["how"]]  # others have not come at all
    by_trouble = Counter(line["decided_for"].split(".")[0] for line in off)
    assert by_trouble["restless"] > 0, by_trouble
    worst = max(off, key=lambda line: abs(line["actual_s"] - line["predicted_s"]))
    assert abs(worst["actual_s"] - worst["predicted_s"]) > 10  # of 70 s

    assert main(["explain", "--trace", str(trace), "-n", "1000"]) == 0
    predicted = f"predicted {worst['predicted_s']:.2f} s ± {worst['uncertainty_s']:.2f} s"
    told = f"{predicted}, came {worst['actual_s']:.2f} s: "
    (line,) = [line for line in capsys.readouterr().out.splitlines() if told in line]
    assert "came of it" in line
    assert line.endswith("the prediction was off")


GOOD = """name = "good"
[platform]
nodes = 4
cores_per_node = 36
[[targets]]
name = "gpfs"
bandwidth_bytes_per_s = 2.6e9
[[applications]]
name = "A1"
processes = 64
iterations = 400
iterations_per_phase = 100
curve = [[32, 1.35], [64, 0.68]]
io_bytes = 11.9e9
"""
BROKEN = {
    "missing": ("processes = 64\n", "", "application 'A1': processes: is missing"),
    "negative": ("11.9e9", "-1", "io_bytes = -1: give 0 to"),
    "not falling": ("0.68", "1.36", "64 processes take longer than fewer of them: times must not rise"),
    "absurd": ("= 400\n", "= 1000000000000\n", "iterations = "),
    "unknown": ("processes = 64\n", "processes = 64\nmaleable = true\n", "did you mean 'malleable'?"),
    "no TOML": ("nodes = 4", "nodes = = 4", "scenario.toml:3: "),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_scenario_is_one_line_with_file_key_and_value(prefix, monkeypatch, tmp_path, capsys, name):
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(GOOD)
    assert main(["sim", str(scenario)]) == 0
    capsys.readouterr()
    good, bad, words = BROKEN[name]
    assert good in GOOD
    scenario.write_text(GOOD.replace(good, bad))
    assert main(["sim", str(scenario)]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert told.err.startswith(f"hocket: {scenario}:")
    assert words in told.err
