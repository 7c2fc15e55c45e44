"""`hocket workload` runs queues that share cores: rigid and malleable jobs, waits, failures, resumption."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from workload_kit import ended, written

pytestmark = pytest.mark.timeout(120)

# The first job gets the idle cores, and gives them back when the second one comes. Its ranks sleep as they compute.
SHARED = """
time_limit_s = 60
[system]
cores = 4
[coordinator]
policy = "interfere+fair"
reconfiguration_s = 0.02
most_slowdown = 0.5
[[job]]
name = "grows"
processes = 2
malleable = true
processes_min = 1
processes_max = 3
command = [
  "mpiexec", "-n", "{{processes}}", "{app}", "--system", "{{dir}}/s", "--generate", "64", "--iterations", "160",
  "--tolerance", "0", "--emulate", "1:0.06,2:0.03,3:0.02",
]
[[job]]
name = "comes"
processes = 3
arrival_s = 3
command = [
  "mpiexec", "-n", "{{processes}}", "{app}", "--system", "{{dir}}/s", "--generate", "64", "--iterations", "20",
  "--tolerance", "0", "--emulate", "3:0.02",
]
"""
PLAIN = """
time_limit_s = 30
[system]
cores = 3
[[job]]
name = "a"
processes = 2
command = ["sh", "-c", "sleep 0.3; touch {dir}/x"]
[[job]]
name = "fails"
processes = 2
command = ["sh", "-c", "echo bad luck >&2; exit 3"]
[[job]]
name = "small"
processes = 1
command = ["true"]
"""


def test_a_malleable_job_gets_idle_cores_and_returns_them(start, prefix: Path, tmp_path: Path, directory: Path):
    path = written(tmp_path / "jobs.toml", SHARED.format(app=prefix / "lib" / "hocket" / "apps" / "jacobi-mpich"))
    words = ("--malleable", "--dir", directory, "--output", tmp_path / "out", "--json")
    (case,) = json.loads(ended(start(path, *words)))["cases"]
    grows, comes = sorted(case["runs"][0]["jobs"], key=lambda one: one["name"], reverse=True)
    assert (grows["failure"], comes["failure"]) == ("", "")
    sizes = [number for _, number in grows["processes"]]
    assert sizes[0] == 1 and max(sizes) == 3, "not 4, its limit"
    shrunk_s = next(at_s for at_s, number in grows["processes"][1:] if number == 1)
    assert comes["processes"][0][0] >= shrunk_s, "it began before it had its cores"
    assert comes["cores_wait_s"] > 0 and comes["waiting_s"] >= comes["cores_wait_s"]
    assert [number for _, number in comes["processes"]] == [3]
    assert case["resizes"]["mean"] >= 2 and 0 < case["stopped_s"]["mean"] <= case["reconfiguring_s"]["mean"]
    assert not list(directory.iterdir())


# Jobs that are descriptions. The malleable one starts with one process, and may have three.
EMULATED = """
time_limit_s = 60
[system]
cores = 3
[coordinator]
policy = "fair"
reconfiguration_s = 0.02
most_slowdown = 0.5
[[job]]
name = "grows"
emulate = "app.toml"
processes = 2
malleable = true
processes_min = 1
[[job]]
name = "rigid"
emulate = "app.toml"
processes = 2
"""
DESCRIPTION = """
name = "app"
[data]
bytes = 10_000
[[group]]
processes = 2
iterations = 40
[[phase]]
[[phase.stage]]
kind = "sleep"
time_s = 0.06
factors = { 1 = 1.0, 2 = 0.5, 3 = 0.4 }
[[phase.stage]]
kind = "write"
file = "checkpoint"
bytes = "64k"
every = 10
"""


def test_described_jobs_run_rigidly_and_malleably(start, tmp_path: Path, directory: Path):
    written(tmp_path / "app.toml", DESCRIPTION)
    path = written(tmp_path / "jobs.toml", EMULATED)
    out = ended(start(path, "--both", "--dir", directory, "--output", tmp_path / "out", "--json"))
    runs = {case["mode"]: {one["name"]: one for one in case["runs"][0]["jobs"]} for case in json.loads(out)["cases"]}
    for mode, jobs in runs.items():
        assert [one["failure"] for one in jobs.values()] == ["", ""], mode
        for one in jobs.values():
            assert one["access_s"] > 0 and one["emulator_s"] >= 0 and one["bytes"] == 4 * (64 << 10), (mode, one)
    rigid, malleable = runs["rigid"], runs["malleable"]
    assert rigid["rigid"]["started_s"] >= rigid["grows"]["ended_s"], "4 cores are not there"
    assert [number for _, number in rigid["grows"]["processes"]] == [2] and not rigid["grows"]["resizes"]
    sizes = [number for _, number in malleable["grows"]["processes"]]
    assert sizes[0] == 1 and max(sizes) > 1, "it grew when the other one had ended, or before that came"
    assert malleable["rigid"]["started_s"] < malleable["grows"]["ended_s"], "both run at once"
    assert not list(directory.iterdir())


def test_no_job_overtakes_and_both_modes_are_resumed(start, tmp_path: Path, directory: Path):
    path, output = written(tmp_path / "jobs.toml", PLAIN), tmp_path / "out"
    words = (path, "--both", "--dir", directory, "--output", output, "--json")
    told = json.loads(ended(start(*words), code=1))
    assert {one["mode"] for one in told["cases"]} == {"rigid", "malleable"}
    for case in told["cases"]:
        jobs = {one["name"]: one for one in case["runs"][0]["jobs"]}
        assert jobs["fails"]["failure"] == "it ended with exit code 3: bad luck"
        assert jobs["a"]["ended_s"] <= jobs["fails"]["started_s"] <= jobs["small"]["started_s"]
        assert jobs["small"]["waiting_s"] >= 0.3
    first = (output / "runs.jsonl").read_text()
    ended(start(*words, "--repeat", "2"), code=1)
    lines = (output / "runs.jsonl").read_text()
    assert lines.startswith(first) and lines.count("\n") == 5


def test_options_that_mean_nothing_are_refused(start, tmp_path: Path, directory: Path):
    path = written(tmp_path / "jobs.toml", PLAIN)
    servers = written(tmp_path / "servers.toml", PLAIN.replace("cores = 3", "nodes = 3"))
    for words, said in (
        ((path, "--both"), "give one of --dir DIR, to run the queue, and --simulate"),
        ((path, "--fifo", "--simulate"), "--fifo belongs to a queue that shares I/O servers"),
        ((path, "--rigid", "--arbitrate", "mckp"), "--arbitrate belongs to a queue that shares I/O servers"),
        ((path, "--arbitrate", "mckp", "--policy", "fair"), "--policy belongs to a queue that shares cores"),
        ((path, "--arbitrate", "mckp", "--predict"), f"{path}: servers is missing; give the number of I/O servers"),
        ((servers, "--both", "--dir", directory), f"{servers}: job 1 'a': nodes = None must be a whole number"),
        ((path, "--policy", ",", "--dir", directory), "--policy: give at least one of those that"),
        ((path, "--policy", "fairest", "--dir", directory, "--output", tmp_path / "out"), "hocketd did not start: "),
        ((path, "--simulate"), f"{path}: job 'a': the simulator knows described applications only; give 'emulate'"),
    ):
        process = start(*words)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 2 and err.splitlines()[-1].startswith(f"hocket: {said}"), err
