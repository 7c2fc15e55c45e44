"""The campaign of resizes of CG: its plan, its record, and a small one with the real programs."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from checkout import REPO
from hocket.errors import HocketError
from hocket.reconfigurations import Reconfiguration
from hocket.reconfigure.runs import Outcome

sys.path.insert(0, str(REPO / "bench"))

import reconfigure_cg as bench
import reconfigure_cg_plan as plan
import reconfigure_cg_record as records
from reconfigure_cg_report import references, write_report

CELLS = [(1, 2), (4, 2)]
GOOD, FAIR, SLOW = "merge/plain/p2p/blocking", "merge/async/p2p/wait-sources", "baseline/plain/collective/blocking"
SETUP = {"app": "cg", "bytes": 1000}
ABOUT = {"app": "cg", "command": "cg --stencil 8", "repeat": 2}
SECONDS = {GOOD: 0.1, FAIR: 0.2, SLOW: 0.4, "bare/merge": 0.05, "bare/baseline": 0.08}


def made(job: plan.Job, reason: str = "") -> records.Run:
    """Return a run of a made-up length."""
    seconds = SECONDS.get(job.method, 0.3) * random.Random(str(job)).uniform(0.95, 1.05)
    if job.method in plan.REFERENCES:
        return records.Run(job, 2.0, Outcome(reason), seconds / 2, seconds / 2)
    times = {"start_ns": 10**9, "spawning_ns": int(seconds * 1e9), "stopped_ns": int(seconds * 1e9)}
    told = Reconfiguration("run", 5 * 10**9, done=True, sources=job.sources, targets=job.targets, **times)
    return records.Run(job, 10.0, Outcome(reason, 1.0 + seconds, 0.25, told))


def record_at(path, setup=SETUP, build="a1", machine="2 cores", **how) -> records.Record:
    return records.Record(path, setup, build, machine, **how)


def results(runs):
    return bench.results_of(runs, ABOUT)


def wanted(sizes=(), methods=(GOOD, FAIR, SLOW), repetitions=2) -> bench.Wanted:
    return bench.Wanted(CELLS, list(sizes), list(methods), repetitions)


# ---- the plan --------------------------------------------------------------------------------------------------------


def test_the_methods_are_those_that_the_readme_names():
    assert set(plan.USUAL) <= set(plan.METHODS) and len(plan.METHODS) == len(set(plan.METHODS))
    for strategy in ("single", "async", "single-async", "join"):
        for data in ("blocking", "wait-sources", "wait-targets", "thread"):
            assert f"merge/{strategy}/p2p/{data}" in plan.METHODS
    assert sum(name.endswith("/node") for name in plan.METHODS) == 5 and plan.DEFAULT in plan.METHODS
    assert set(plan.BASELINES) <= set(plan.METHODS) and len(plan.CELLS) == 4


def test_every_round_has_every_method_and_reference_once():
    jobs = plan.jobs_of(CELLS, [GOOD, SLOW], 3)
    assert Counter(jobs) == Counter(
        plan.Job(*cell, method, number)
        for cell in CELLS
        for method in (GOOD, SLOW, *plan.REFERENCES)
        for number in (1, 2, 3)
    )
    assert [job.repeat for job in jobs] == sorted(job.repeat for job in jobs)
    orders = [[(job.pair, job.method) for job in jobs if job.repeat == number] for number in (1, 2, 3)]
    assert orders[0] != orders[1] != orders[2]


@pytest.mark.parametrize("least_bytes", [1e6, 64e6, 1e9])
def test_the_generated_system_is_as_large_as_asked_and_mostly_constant(least_bytes):
    points = plan.points_of(least_bytes)
    assert plan.stencil(points - 1).bytes < least_bytes <= plan.stencil(points).bytes
    assert plan.stencil(points).constant_share >= plan.CONSTANT_SHARE


def test_the_second_part_has_the_best_and_the_baselines_on_the_other_cells():
    names = [GOOD, FAIR, SLOW, "merge/plain/p2p/thread", "merge/single/p2p/blocking"]
    asked = wanted(sizes=(1, 2, 4), methods=names)
    first, second = bench.planned(asked, [], results)
    assert not second
    runs = [made(job) for job in first]
    assert bench.planned(asked, runs[:-1], results)[1] == []  # not before the first part is complete
    again, second = bench.planned(asked, runs, results)
    assert again == first
    assert {job.pair for job in second} == {(1, 4), (2, 1), (2, 4), (4, 1)}
    best = plan.best_methods(results(runs), CELLS)
    assert best[:2] == [GOOD, FAIR] and set(best) == set(names) - {SLOW}
    assert {job.method for job in second} == {*best, *plan.BASELINES, *plan.REFERENCES}
    more = [*runs, *(made(job) for job in second)]
    assert bench.planned(asked, more, results)[1] == second  # what the second part shows does not change it


def test_the_emulation_makes_the_same_runs_and_does_not_choose_the_best_methods():
    names = [GOOD, FAIR, SLOW, "merge/plain/p2p/thread", "merge/single/p2p/blocking"]
    alone = wanted(sizes=(1, 2, 4), methods=names)
    both = dataclasses.replace(alone, emulated=True)
    first, _ = bench.planned(both, [], results)
    of_cg = [job for job in first if not job.emulated]
    assert Counter(of_cg) == Counter(bench.planned(alone, [], results)[0])
    assert {dataclasses.replace(job, emulated=False) for job in first if job.emulated} == {
        job for job in of_cg if job.method not in plan.REFERENCES
    }
    runs = [made(job) for job in of_cg]
    # The emulation is fast where CG is slow; the second part follows CG, and does not wait for the emulation.
    runs += [dataclasses.replace(made(job), wall_s=1.0) for job in first if job.emulated and job.method == SLOW]
    second = bench.planned(both, runs, results)[1]
    assert {job.method for job in second} == {job.method for job in bench.planned(alone, runs, results)[1]}
    assert sum(job.emulated for job in second) == sum(job.method not in plan.REFERENCES for job in second) / 2
    assert not bench.results_of(runs, ABOUT).samples("execution", (1, 2), GOOD)[2:]
    assert bench.results_of(runs, ABOUT, emulated=True).names == [SLOW]


def test_the_time_that_is_left_follows_the_runs_of_the_same_cell():
    long, short = plan.Job(4, 2, GOOD, 1), plan.Job(1, 2, GOOD, 1)
    bare = plan.Job(1, 2, "bare/merge", 1)
    walls = {long: 30.0, short: 10.0, bare: 1.0}
    left = [plan.Job(4, 2, SLOW, 2), plan.Job(1, 2, SLOW, 2), plan.Job(1, 2, "bare/baseline", 2)]
    assert plan.seconds_left(left, walls) == 41
    assert plan.seconds_left([plan.Job(8, 1, SLOW, 1)], walls) == 20  # an unknown cell: all cells
    assert plan.seconds_left(left, {}) is None
    assert plan.duration(7200) == "2.0 h" and plan.duration(61) == "2 min" and "--limit" in plan.duration(None)


# ---- the record ------------------------------------------------------------------------------------------------------


def test_a_record_goes_on_after_a_torn_line_and_makes_no_run_twice(tmp_path):
    path = tmp_path / "record.jsonl"
    ran = []

    def run(job):
        ran.append(job)
        return made(job, reason="exit code 1" if len(ran) == 2 else "")

    assert not bench.measure(wanted(), record_at(path), run, results, 5)
    with path.open("a") as file:
        file.write('{"job": {"sources": 1, "tar')  # killed while it wrote
    record = record_at(path)
    assert len(record.runs) == 5 and record.runs[1].outcome.reason == "exit code 1"
    assert bench.measure(wanted(), record, run, results, None)
    assert len(ran) == len(set(ran)) == 2 * 5 * 2
    whole = record_at(path)
    assert whole.runs == record.runs and len(path.read_text().splitlines()) == 22
    assert bench.measure(wanted(), whole, run, results, None) and len(ran) == 20


def test_a_record_without_emulations_goes_on_with_them(tmp_path):
    """Records of before have no word of emulations; reading one leaves its last line alone, which may be growing."""
    path = tmp_path / "record.jsonl"
    record_at(path).add(made(plan.Job(1, 2, GOOD, 1)))
    path.write_text(path.read_text().replace(', "emulated": false', ""))
    assert "emulated" not in path.read_text()
    with path.open("a") as file:
        file.write('{"job"')
    assert [run.job for run in records.read(path)[1]] == [plan.Job(1, 2, GOOD, 1)]
    assert path.read_text().endswith('{"job"')
    record = record_at(path)
    record.add(made(plan.Job(1, 2, GOOD, 1, emulated=True)))
    assert [run.job.emulated for run in records.read(path)[1]] == [False, True]


def test_a_record_of_another_campaign_is_refused(tmp_path):
    record_at(tmp_path / "record.jsonl")
    with pytest.raises(HocketError, match="another campaign: bytes 1000 and not 2000; choose another"):
        record_at(tmp_path / "record.jsonl", {**SETUP, "bytes": 2000})
    (tmp_path / "other").write_text('{"x": 1}\n')
    with pytest.raises(HocketError, match="is no record of a campaign"):
        record_at(tmp_path / "other")


@pytest.mark.parametrize("other", [{"build": "b2"}, {"machine": "4 cores"}])
def test_another_build_or_machine_goes_on_if_it_is_told_to_and_the_results_say_so(tmp_path, other):
    path = tmp_path / "record.jsonl"
    record_at(path).add(made(plan.Job(1, 2, GOOD, 1)))
    assert not record_at(path).is_new_part
    with pytest.raises(HocketError, match=r"elsewhere: (build a1 and not b2|machine 2 cores and not 4 cores); --new"):
        record_at(path, **other)
    record = record_at(path, **other, begin_part=True)
    assert record.is_new_part and len(record.runs) == 1
    for repeat in (2, 3):
        record.add(made(plan.Job(1, 2, GOOD, repeat)))
    again = record_at(path, **other)
    assert not again.is_new_part and [run.job.repeat for run in again.runs] == [1, 2, 3]
    assert record.origin() == again.origin()
    b, m = other.get("build", "a1"), other.get("machine", "2 cores")
    assert again.origin() == f"1 runs by build a1 on 2 cores; 2 runs by build {b} on {m}"


# ---- the report ------------------------------------------------------------------------------------------------------


def test_bare_calls_stand_beside_the_methods(tmp_path):
    runs = [made(job) for job in bench.planned(wanted(), [], results)[0]]
    runs[0] = made(runs[0].job, reason="exit code 9")
    write_report(results(runs), runs, tmp_path)
    told = json.loads((tmp_path / "results.json").read_text())
    assert len(told["references"]) == 2 * 2 * 2 and len(told["runs"]) == 3 * 2 * 2
    assert {cell["measure"] for cell in told["cells"]} == {"reconfiguration", "stopped", "execution"}
    table = references(results(runs), runs)
    assert "| bare/merge | 0.0" in table and f"| {GOOD} | " in table
    cell = next(line for line in table.splitlines() if line.startswith(f"| {SLOW}")).split("|")[2]
    assert float(cell.split("(")[1].rstrip(") ")) > 4  # 0.4 s and the iterations, beside 0.08 s
    assert (tmp_path / "winners.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    "words", [["--cells", "1:1"], ["--cells", "2"], ["--sizes", "1,x"], ["--methods", "merge/slow", "--plan"]]
)
def test_wrong_words_are_refused(words, capsys, monkeypatch, prefix):
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))
    with pytest.raises(SystemExit) if "--methods" not in words else pytest.raises(HocketError):
        bench.campaign(bench.parse(words))


# ---- the real programs -----------------------------------------------------------------------------------------------


@pytest.mark.timeout(600)
def test_a_small_campaign_is_interrupted_and_goes_on_without_a_failed_run(prefix, tmp_path):
    bare = REPO / "build" / "release" / "bench" / "bare_resize-mpich"
    if not bare.exists():
        pytest.skip("needs bare_resize-mpich in build/release (./dev build)")
    command = [sys.executable, str(REPO / "bench" / "reconfigure_cg.py"), "--first-only", "--output", str(tmp_path)]
    command += ["--bytes", "4e6", "--iterations", "6", "--repetitions", "1", "--cells", "1:2,2:1"]
    command += ["--methods", f"{GOOD},{FAIR},{SLOW}", "--emulated"]
    environment = {**os.environ, "HOCKET_PREFIX": str(prefix)}
    record = tmp_path / "record.jsonl"

    def lines():
        return record.read_text().splitlines() if record.exists() else []

    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as first:
        deadline = time.monotonic() + 120
        while len(lines()) < 3 and first.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        first.send_signal(signal.SIGINT)
        said = first.communicate(timeout=60)[1]
    assert first.returncode == 1 and "interrupted" in said
    before = lines()
    assert 3 <= len(before) < 18
    second = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)
    assert second.returncode == 0, second.stderr
    assert lines()[: len(before)] == before
    runs = [json.loads(line) for line in lines()[2:]]
    assert len(runs) == len({json.dumps(run["job"]) for run in runs}) == 2 * (5 + 3)
    assert [run["outcome"]["reason"] for run in runs] == [""] * 16
    for run in runs:
        if run["job"]["method"] not in plan.REFERENCES:
            assert run["outcome"]["record"]["bytes_moved"] > 1e6 and run["outcome"]["execution_s"] > 0
        else:
            assert run["data_s"] > 0
    assert "Bare MPI calls" in (tmp_path / "results.md").read_text()
    assert "cg, emulated" in (tmp_path / "emulated" / "results.md").read_text()
    assert "oversubscribe" in (tmp_path / "emulated.toml").read_text()
