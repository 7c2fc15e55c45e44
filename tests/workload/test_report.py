"""Runs in their file, figures over them, the tables, and the picture."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hocket.arbitration.allocate import Given, Rules
from hocket.errors import UsageError
from hocket.workload import text
from hocket.workload.jobs import Workload, read_workload
from hocket.workload.plot import write_plot
from hocket.workload.prediction import predict
from hocket.workload.results import JobRun, PlannedRun, QueueRun, QueueRuns, forwarding_settings, mean, plan
from scipy import stats

FILE = """
servers = 2
[system]
nodes = 2
[[job]]
name = "a"
nodes = 1
repeat = 2
pattern = { request = "1k", total = "10k" }
[[job]]
name = "b"
nodes = 2
command = ["true"]
"""


@pytest.fixture
def workload(tmp_path: Path) -> Workload:
    path = tmp_path / "jobs.toml"
    path.write_text(FILE)
    return read_workload(path)


def run_of(policy: str, repetition: int, seconds: float, failure: str = "") -> QueueRun:
    jobs = (
        JobRun("a", 0.0, 2.0, 10_000_000, seconds, "", ((0.5, 2), (1.0, 1))),
        JobRun("a.2", 0.1, 3.0, 10_000_000, 2 * seconds, "", ((0.5, 1),)),
        JobRun("b", 3.1, 5.0, 0 if failure else 4_000_000, 1.0, failure, ((3.5, 2),)),
    )
    return QueueRun(PlannedRun(policy, repetition), jobs)


def outcomes(workload: Workload) -> list[text.Outcome]:
    def give_out(running):
        return [Given(1, False, 5_000_000, 0.0) for _ in running]

    foreseen = predict(workload.queue, 2, give_out, {"a": 10_000_000, "b": 5_000_000})
    mckp = [run_of("mckp", number, 1.0 + number) for number in range(3)]
    static = [run_of("static", 0, 4.0, "it ended with exit code 3: bad luck")]
    return [text.Outcome("mckp", mckp, foreseen, ""), text.Outcome("static", static, None, "'b' has no bandwidth")]


def test_the_aggregate_is_the_sum_of_the_jobs_and_a_failed_one_adds_nothing():
    assert run_of("mckp", 0, 1.0).bytes_per_s == pytest.approx(19e6)
    failed = run_of("mckp", 0, 1.0, "killed")
    assert failed.bytes_per_s == pytest.approx(15e6)
    assert [one.name for one in failed.failed] == ["b"] and failed.makespan_s == 5


def test_the_interval_is_students():
    values = [1.0, 2.0, 4.0, 5.0]
    found = mean(values)
    low, high = stats.t.interval(0.95, 3, loc=3.0, scale=stats.sem(values))
    assert (found.value - found.half, found.value + found.half) == (pytest.approx(low), pytest.approx(high))
    assert mean([2.0]).half is None


def test_policies_are_interleaved():
    runs = plan(["mckp", "static", "one"], 20, seed=1)
    assert runs == plan(["mckp", "static", "one"], 20, seed=1)
    rounds = [runs[at : at + 3] for at in range(0, 60, 3)]
    assert all({one.policy for one in part} == {"mckp", "static", "one"} for part in rounds)
    assert all({one.repetition for one in part} == {number} for number, part in enumerate(rounds))
    assert len({tuple(one.policy for one in part) for part in rounds}) > 3


def test_interrupted_runs_are_resumed(tmp_path: Path, workload: Workload):
    output = tmp_path / "out"
    planned = plan(["mckp", "static"], 2, seed=1)
    first = QueueRuns(output, workload, forwarding_settings(workload, True, Rules()))
    run = run_of(planned[0].policy, 0, 1.5)
    first.add(run)
    with first.path.open("a") as file:
        file.write('{"policy": "static", "repet')  # the machine went down
    again = QueueRuns(output, workload, forwarding_settings(workload, True, Rules()))
    assert again.runs == [run] and again.missing(planned) == planned[1:]
    assert again.bytes_of(workload) == {"a": 10 * 1024, "b": 4_000_000}
    with pytest.raises(UsageError, match="runs of other workloads or settings"):
        QueueRuns(output, workload, forwarding_settings(workload, False, Rules()))


def test_the_tables_say_what_was_measured_and_predicted(workload: Workload):
    table = text.table_of(workload.queue, outcomes(workload))
    lines = table.splitlines()
    mckp = next(line for line in lines if line.startswith("mckp "))
    rates = [19.0, 11.5, 9.0]
    half = stats.t.ppf(0.975, 2) * stats.sem(rates)
    assert f"{sum(rates) / 3:.1f} ± {half:.1f}" in mckp and "15.0" in mckp and f"{sum(rates) / 45:.2f}" in mckp
    a = next(line for line in lines if line.startswith("a "))
    assert a.split() == ["a", "1", "0.00", "2.00", "2", "1", "5.0", "6.1", "1", "5.0"]
    assert "static, run 1: 'b' failed: it ended with exit code 3: bad luck" in lines
    assert "static: no prediction: 'b' has no bandwidth" in lines


def test_predictions_alone_have_their_table(workload: Workload):
    foreseen = outcomes(workload)[0].prediction
    table = text.table_of(workload.queue, [text.Outcome("mckp", [], foreseen, "")])
    assert "mckp, predicted:" in table and "runs" not in table.splitlines()[0]


def test_the_figures_as_json(workload: Workload):
    told = json.loads(json.dumps(text.json_of(workload.queue, outcomes(workload))))
    mckp, static = told["policies"]
    assert math.isclose(mckp["bytes_per_s"]["mean"], 39.5e6 / 3) and len(mckp["runs"]) == 3
    assert mckp["predicted"]["bytes_per_s"] == 15e6 and static["predicted"] is None
    assert static["runs"][0]["jobs"][2]["failure"].startswith("it ended")


def test_a_picture_is_written(tmp_path: Path, workload: Workload):
    write_plot(workload.queue, outcomes(workload), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
