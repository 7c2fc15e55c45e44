"""Figures, tables, and the picture of queues that share cores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checkout import REPO
from hocket.workload import core_text
from hocket.workload.core_figures import Case, CoreQueue, figures_of, policy_quotients, quotients
from hocket.workload.core_plot import busy_cores, write_plot
from hocket.workload.core_runs import MALLEABLE, RIGID, with_history
from hocket.workload.jobs import read_workload
from hocket.workload.maps import CoreHistory, histories_of
from hocket.workload.results import JobRun, PlannedRun, QueueRun, QueueRuns, Resize, plan

FILE = """
[system]
cores = 4
[[job]]
name = "a"
processes = 2
malleable = true
command = ["mpiexec", "-n", "{processes}", "x"]
[[job]]
name = "b"
processes = 3
arrival_s = 1
command = ["x"]
"""


@pytest.fixture
def queue(tmp_path: Path) -> CoreQueue:
    path = tmp_path / "jobs.toml"
    path.write_text(FILE)
    return CoreQueue(read_workload(path).queue, 4)


def rigid(repetition: int, slower: float = 1.0) -> QueueRun:
    a = JobRun("a", 0, 4 * slower, 0, 4 * slower, "", (), ((0, 2),))
    b = JobRun("b", 4 * slower, 10 * slower, 0, 6 * slower, "", (), ((4 * slower, 3),))
    return QueueRun(PlannedRun("fair", repetition, RIGID), (a, b))


def malleable(repetition: int, failure: str = "") -> QueueRun:
    a = JobRun("a", 0, 3, 0, 3, "", (), ((0, 2), (1, 4)), 0.0, (Resize(0.75, 0.25, 0.125),))
    b = JobRun("b", 2.5, 8, 0, 5.5, failure, (), ((3, 3),), 0.5)
    return QueueRun(PlannedRun("fair", repetition, MALLEABLE), (a, b))


def cases(*runs: QueueRun) -> list[Case]:
    return [Case(mode, "fair", [one for one in runs if one.run.mode == mode]) for mode in (RIGID, MALLEABLE)]


def test_the_figures_are_those_of_the_times(queue: CoreQueue):
    found = {name: one.value for name, one in figures_of(cases(malleable(0))[1], queue).items()}
    assert found == {
        "makespan_s": 8,
        "utilisation": (2 * 1 + 4 * 2 + 3 * 5) / (4 * 8),
        "waiting_s": (0 + 2) / 2,  # b was 1.5 s in the queue, and waited 0.5 s for cores
        "turnaround_s": (3 + 7) / 2,
        "reconfiguring_s": 0.25,
        "stopped_s": 0.125,
        "resizes": 1,
    }


def test_malleable_and_rigid_runs_are_compared_in_pairs(queue: CoreQueue):
    runs = [rigid(0), rigid(1, 2.0), malleable(0), malleable(1), malleable(2)]
    found = quotients(cases(*runs), "fair", queue)
    assert found["makespan_s"].value == pytest.approx((0.8 + 0.4) / 2) and found["makespan_s"].half > 0
    assert quotients(cases(malleable(0)), "fair", queue) == {}
    assert "waiting_s" not in quotients(cases(malleable(0), never_waits()), "fair", queue), "0 divides nothing"


def never_waits() -> QueueRun:
    a = JobRun("a", 0, 4, 0, 4, "", (), ((0, 2),))
    return QueueRun(PlannedRun("fair", 0, RIGID), (a, JobRun("b", 1, 4, 0, 3, "", (), ((1, 2),))))


def test_the_trace_adds_waits_and_sizes():
    job = JobRun("a", 1.0, 9.0, 0, 8.0, "", (), ((1.0, 2),))
    history = CoreHistory(0.5, 0.0, [(1.5, 2), (3.0, 4), (5.0, 2), (9.5, 1)], [Resize(2.5, 0.5, 0.1)])
    found = with_history(job, history)
    assert found.processes == ((1.5, 2), (3.0, 4), (5.0, 2)) and found.cores_wait_s == 0.5
    assert found.core_seconds == 2 * 1.5 + 4 * 2 + 2 * 4 and found.stopped_s == 0.1


def test_a_trace_has_the_sizes_that_were_reached():
    """Four resizes were tried, and one of them was given up."""
    found = histories_of(REPO / "tests" / "data" / "resized.jsonl")["jacobi-b"]
    assert [number for _, number in found.sizes] == [4, 8, 2] and len(found.resizes) == 4
    assert all(0 < one.stopped_s <= one.seconds + 1e-6 for one in found.resizes)


def test_busy_cores_are_the_sum_of_the_jobs(queue: CoreQueue):
    assert busy_cores(malleable(0)) == ((0, 2), (1, 4), (3, 3), (8, 0))


def test_both_modes_are_interleaved_and_kept(tmp_path: Path, queue: CoreQueue):
    planned = plan(["fair", "speedup"], 3, 1, (RIGID, MALLEABLE))
    rounds = [planned[at : at + 4] for at in range(0, 12, 4)]
    assert all(len({(one.policy, one.mode) for one in part}) == 4 for part in rounds)
    workload = read_workload(tmp_path / "jobs.toml")
    runs = QueueRuns(tmp_path / "out", workload, {})
    runs.add(malleable(0))
    again = QueueRuns(tmp_path / "out", workload, {})
    assert again.runs == [malleable(0)]
    assert PlannedRun("fair", 0, MALLEABLE) not in again.missing(planned) and len(again.missing(planned)) == 11


def test_the_tables_have_the_means_and_the_quotient(queue: CoreQueue):
    lines = core_text.table_of(queue, cases(rigid(0), malleable(0, "killed"))).splitlines()
    assert lines[1].split() == ["rigid", "fair", "1", "10.0", "65.0", "1.5", "6.5", "0.0", "0.0", "0.0", "0"]
    assert lines[2].split() == ["malleable", "fair", "1", "8.0", "78.1", "1.0", "5.0", "1.0", "0.2", "0.1", "1"]
    assert lines[3].split() == ["malleable/rigid", "fair", "0.80", "1.20", "0.67", "0.77"]
    row = next(line for line in reversed(lines) if line.startswith("a "))
    assert row.split() == ["a", "0.00", "0.00", "3.00", "3.00", "1.00", "0.12", "2", "4"]
    assert lines[-1] == "malleable fair, run 1: 'b' failed: killed"


def test_each_job_has_the_time_that_its_resizes_cost(queue: CoreQueue):
    """The means over two runs; rigid jobs have none."""
    twice = (Resize(0.5, 0.5, 0.25), Resize(2.0, 1.0, 0.75))
    a = JobRun("a", 0, 3, 0, 3, "", (), ((0, 2), (1, 4), (2, 2)), 0.0, twice)
    other = QueueRun(PlannedRun("fair", 1, MALLEABLE), (a, JobRun("b", 2, 8, 0, 6, "", (), ((2, 3),))))
    made = cases(rigid(0), malleable(0), other)
    rows = [
        line.split() for line in core_text.table_of(queue, made).splitlines() if line.startswith(("job ", "a ", "b "))
    ]
    assert " ".join(rows[0]) == "job arrival s waiting s run s turnaround s resizes overhead s processes"
    assert [row[5:7] for row in rows if row[0] != "job"] == [
        ["0.00", "0.00"],
        ["0.00", "0.00"],
        ["1.50", f"{(0.125 + 1.0) / 2:.2f}"],
        ["0.00", "0.00"],
    ]
    told = json.loads(json.dumps(core_text.json_of(queue, made)))
    jobs = [job for case in told["cases"] for run in case["runs"] for job in run["jobs"] if job["name"] == "a"]
    assert [(job["overhead_s"], job["reconfiguring_s"]) for job in jobs] == [(0, 0), (0.125, 0.25), (1.0, 1.5)]
    malleable_case = told["cases"][1]
    assert malleable_case["stopped_s"]["mean"] == pytest.approx((0.125 + 1.0) / 2), "the sum of the jobs' overhead"


def writer(policy: str, repetition: int, access_s: float) -> QueueRun:
    a = JobRun("a", 0, 10 + access_s, 0, 10 + access_s, "", (), ((0, 2),), access_s=access_s)
    return QueueRun(PlannedRun(policy, repetition, RIGID), (a, JobRun("b", 1, 4, 0, 3, "", (), ((1, 2),))))


def test_policies_are_compared_with_the_first_one(queue: CoreQueue):
    runs = [writer("interfere", 0, 10), writer("fcfs", 0, 5), writer("interfere", 1, 20), writer("fcfs", 1, 5)]
    made = [Case(RIGID, name, [one for one in runs if one.run.policy == name]) for name in ("interfere", "fcfs")]
    assert policy_quotients(made, made[0], queue) == {}
    found = policy_quotients(made, made[1], queue)
    assert found["access_s"].value == pytest.approx((0.5 + 0.25) / 2)
    assert found["makespan_s"].value == pytest.approx((15 / 20 + 15 / 30) / 2)
    lines = core_text.table_of(queue, made).splitlines()
    assert "I/O s" in lines[0]
    assert "I/O s" not in core_text.table_of(queue, cases(rigid(0))), "no job says how long it accessed files"
    assert next(line for line in lines if "fcfs/interfere" in line).split()[:2] == ["rigid", "fcfs/interfere"]
    (told,) = json.loads(json.dumps(core_text.json_of(queue, made)))["policy_quotients"]
    assert (told["mode"], told["policy"], told["over"]) == (RIGID, "fcfs", "interfere")
    assert told["access_s"]["mean"] == pytest.approx(0.375)


def test_the_figures_as_json(queue: CoreQueue):
    told = json.loads(json.dumps(core_text.json_of(queue, cases(rigid(0), malleable(0)))))
    assert [one["mode"] for one in told["cases"]] == [RIGID, MALLEABLE] and told["cores"] == 4
    assert told["cases"][1]["runs"][0]["jobs"][1]["waiting_s"] == 2
    assert told["quotients"]["fair"]["makespan_s"] == {"mean": 0.8, "half_interval": None}


def test_a_picture_is_written(tmp_path: Path, queue: CoreQueue):
    write_plot(queue, cases(rigid(0), malleable(0)), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
