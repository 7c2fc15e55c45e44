"""Queues that share cores in the simulator: what descriptions become there, and what hocketd's policies do."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from checkout import REPO
from hocket.emulator.description import read_description
from hocket.errors import UsageError
from hocket.workload.core_runs import MALLEABLE, RIGID
from hocket.workload.jobs import read_workload
from hocket.workload.results import PlannedRun, plan
from hocket.workload.simulated_cores import curve_of, scenario_of, simulate_on_cores
from workload_kit import ended, written

pytestmark = pytest.mark.timeout(120)
WORKLOADS = REPO / "scenarios" / "workloads"
DESCRIPTION = """
name = "app"
[data]
bytes = 4000
[[group]]
processes = 2
iterations = 120
[[phase]]
[[phase.stage]]
kind = "sleep"
time_s = 0.4
factors = { 1 = 1.0, 2 = 0.5, 4 = 0.4 }
[[phase.stage]]
kind = "compute"
time_s = 0.1
ends_by = "time"
shares = { 2 = [0.75, 0.25] }
every = 2
[[phase.stage]]
kind = "allreduce"
bytes = 8
"""
ACCESSES = """
[[phase.stage]]
kind = "write"
file = "x"
bytes = 1000
every = 20
repeat = 2
[[phase.stage]]
kind = "read"
file = "x"
bytes = 500
every = 30
"""
JOBS = """
[system]
cores = 4
bandwidth_mb_s = 100
[reconfiguration]
fixed_s = 0.1
[coordinator]
policy = "fair"
reconfiguration_s = 0.1
most_slowdown = 0.5
[[job]]
name = "a"
emulate = "app.toml"
processes = 2
malleable = true
processes_min = 1
processes_max = 3
[[job]]
name = "b"
emulate = "app.toml"
processes = 4
arrival_s = 5
"""


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    written(tmp_path / "app.toml", DESCRIPTION)
    return written(tmp_path / "jobs.toml", JOBS)


def test_an_iteration_takes_the_sum_of_its_timed_stages(jobs: Path):
    """The compute stage has the group's factor, 1/2 at 2 processes, and of those the first has 1.5 times the mean."""
    curve = curve_of(read_description(jobs.with_name("app.toml")), range(1, 5))
    halfway = 0.5 * (0.4 / 0.5) ** 0.5849625  # of log 2 to log 4
    assert [size for size, _ in curve] == [1, 2, 3, 4]
    assert [seconds for _, seconds in curve] == pytest.approx(
        [0.4 + 0.05, 0.2 + 0.05 * 0.5 * 1.5, 0.4 * halfway + 0.05 * 0.5, 0.16 + 0.05 * 0.5], rel=1e-6
    )


def test_accesses_repeat_after_their_common_period(jobs: Path):
    written(jobs.with_name("app.toml"), DESCRIPTION + ACCESSES)
    scenario = tomllib.loads(scenario_of(read_workload(jobs), PlannedRun("fair", 0, MALLEABLE)))
    a, b = scenario["applications"]
    assert (a["processes"], a["nodes"], a["malleable"], b["malleable"]) == (1, 1, True, False)
    assert [size for size, _ in a["curve"]] == [1, 2, 3] and [size for size, _ in b["curve"]] == [4]
    assert (a["iterations"], a["iterations_per_phase"], a["data_bytes"]) == (120, 60, 4000)
    assert [(round(one["after"] * 60), one["io_bytes"], one["kind"]) for one in a["phases"]] == [
        (20, 2000, "write"),
        (30, 500, "read"),
        (40, 2000, "write"),
        (60, 2000, "write"),
        (60, 500, "read"),
    ]
    assert scenario["coordinator"]["size_limits"] == "a=3 b=4" and scenario["coordinator"]["cores"] == 4


def test_a_rigid_queue_takes_its_times_and_a_malleable_one_uses_the_cores(jobs: Path):
    workload = read_workload(jobs)
    runs = {one.run.mode: one for one in simulate_on_cores(workload, plan(["fair"], 1, 1, (RIGID, MALLEABLE)))}
    rigid, malleable = runs[RIGID], runs[MALLEABLE]
    a_s, b_s = 120 * (0.2 + 0.0375), 120 * (0.16 + 0.0125)  # b has 4 processes at its start, so its factor is 1/4
    assert rigid.job("a").ended_s == pytest.approx(a_s, rel=1e-3)
    assert rigid.job("b").started_s == pytest.approx(a_s, rel=1e-3), "4 cores are free when a has ended"
    assert rigid.makespan_s == pytest.approx(a_s + b_s, rel=1e-3)
    assert rigid.job("a").processes == ((0, 2),) and not rigid.job("a").resizes
    sizes = [number for _, number in malleable.job("a").processes]
    assert sizes[0] == 1 and max(sizes) == 3, "it grows to its limit"
    assert malleable.job("a").stopped_s == pytest.approx(0.1 * len(malleable.job("a").resizes), rel=1e-3)


def test_accesses_take_their_time_and_waits_for_each_other(jobs: Path):
    """Two jobs write 200 MB six times each, and begin together. The storage has 100 MB/s."""
    written(jobs.with_name("app.toml"), DESCRIPTION + ACCESSES.replace("bytes = 1000", "bytes = 100_000_000"))
    text = JOBS.replace("processes = 4\narrival_s = 5", "processes = 2")
    runs = simulate_on_cores(read_workload(written(jobs, text)), plan(["interfere", "fcfs"], 1, 1, (RIGID,)))
    by_policy = {one.run.policy: [job.access_s for job in one.jobs] for one in runs}
    assert by_policy["interfere"] == pytest.approx([6 * 4, 6 * 4], rel=0.02), "both share the storage each time"
    first, second = sorted(by_policy["fcfs"])
    assert (first, second) == pytest.approx((6 * 2, 6 * 2 + 2), rel=0.05), "one waits once, then they alternate"


def test_a_job_without_accesses_does_no_io(jobs: Path):
    (run,) = simulate_on_cores(read_workload(jobs), plan(["fair"], 1, 1, (RIGID,)))
    assert [one.access_s for one in run.jobs] == [0, 0]


def test_an_access_that_ends_by_time_is_refused(jobs: Path):
    written(jobs.with_name("app.toml"), DESCRIPTION + ACCESSES.replace("bytes = 500", "bytes = 500\ntime_s = 0.1"))
    with pytest.raises(UsageError, match=r"app\.toml: stage 'read' ends by time; the simulator needs the bytes"):
        simulate_on_cores(read_workload(jobs), plan(["fair"], 1, 1, (RIGID,)))


def test_a_job_waits_until_others_return_its_cores(jobs: Path):
    text = JOBS.replace("processes = 4", "processes = 3")
    (run,) = simulate_on_cores(read_workload(written(jobs, text)), plan(["fair"], 1, 1, (MALLEABLE,)))
    a, b = run.job("a"), run.job("b")
    assert 5 < b.started_s < 10, "a has one process that it may keep"
    assert [number for at_s, number in a.processes if at_s <= b.started_s][-1] == 1
    assert max(number for _, number in a.processes) == 3


@pytest.mark.parametrize(
    ("text", "jobs_text", "said"),
    [
        (DESCRIPTION + ACCESSES, JOBS.replace("bandwidth_mb_s = 100", ""), "bandwidth_mb_s is missing; the simulator"),
        (DESCRIPTION + ACCESSES.replace("= 30", "= 1").replace("= 20", "= 90"), JOBS, "I/O phases before they repeat"),
        (
            DESCRIPTION.replace("[[phase]]", "[[group]]\nprocesses = 3\niterations = 1\n[[phase]]"),
            JOBS,
            "it has 2",
        ),
        (DESCRIPTION, JOBS.replace('emulate = "app.toml"', 'command = ["x", "-n", "{processes}"]'), "give 'emulate'"),
    ],
)
def test_what_the_simulator_does_not_know_is_refused(jobs: Path, text: str, jobs_text: str, said: str):
    written(jobs.with_name("app.toml"), text)
    with pytest.raises(UsageError) as refused:
        scenario_of(read_workload(written(jobs, jobs_text)), PlannedRun("fair", 0, MALLEABLE))
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_the_workloads_that_come_with_hocket(start):
    """Turns cost the second writer what sharing costs both; malleable jobs use cores that rigid ones leave idle."""
    out = ended(start(WORKLOADS / "clarisse-v-c.toml", "--policy", "interfere,fcfs", "--simulate", "--json"))
    assert [one["mode"] for one in json.loads(out)["cases"]] == [RIGID, RIGID]
    out = ended(start(WORKLOADS / "malleable.toml", "--both", "--simulate", "--repeat", "2", "--json"))
    told = json.loads(out)["quotients"]["fair"]
    assert told["utilisation"]["mean"] > 1 and told["waiting_s"]["mean"] < 1
    for name in ("clarisse-v-b.toml", "clarisse-v-c-kernels.toml"):
        assert read_workload(WORKLOADS / name).cores
