"""`./dev bench emulator`: its matrices, plan, record, times and bounds, and a small run with the real programs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from capture_logs import Call, log_of
from checkout import REPO
from hocket.capture.log import CaptureError
from hocket.capture.stages import Run, run_of
from hocket.emulator.description import read_description
from hocket.errors import UsageError

sys.path.insert(0, str(REPO / "bench"))

import emulator as bench
from captured import Moved, Part, iterating, middle, resizable
from emulator_cases import (
    CAPTURE,
    EMULATED,
    REAL,
    Calibrate,
    Gather,
    Job,
    Solve,
    all_cases,
    by_turns,
    jobs_of,
    seconds_of,
    select,
)
from emulator_figures import AGAIN, FIRST, bound_of, lines_of
from emulator_matrices import matrices
from emulator_record import COMMUNICATING, COMPUTING, CPU, RESIZING, TOTAL, Ran, Record, read, times_of

CASE = Solve("band", 2)
GRAPH = "% a triangle and a point\n4 3\n2 3\n1 3\n1 2\n\n"


def iteration(computes_s: float) -> list[Call]:
    return [Call("MPI_Allgatherv", 800, 0.001, takes_s=0.002), Call("MPI_Allreduce", 8, computes_s, takes_s=0.001)]


def captured(cpu_s: float, ranks: int = 2) -> Run:
    return run_of([log_of(rank, ranks, iteration(cpu_s) * 20) for rank in range(ranks)])


def ran(job: Job, total: float = 1.0, **more) -> Ran:
    if job.kind == CAPTURE:
        return Ran(job, 2.0, 0.5, captured=captured(0.01))
    return Ran(job, 2.0, 0.5, times={TOTAL: total, COMPUTING: 0.8 * total, COMMUNICATING: 0.2}, **more)


def pairs(case: str, *totals: tuple[float, float]) -> list[Ran]:
    return [
        ran(Job(case, kind, number), total)
        for number, both in enumerate(totals, 1)
        for kind, total in zip((REAL, EMULATED), both, strict=True)
    ]


# ---- matrices and cases ----------------------------------------------------------------------------------------------


def test_matrices_are_written_for_the_solver_with_their_imbalance(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "point.graph").write_text(GRAPH)
    found = {one.name: one for one in matrices(tmp_path / "real", tmp_path / "made")}
    assert set(found) == {"stencil-40", "stencil-60", "band", "point"}
    assert found["stencil-40"].nonzeros == (3 * 40 - 2) ** 3 and found["stencil-40"].rows == 40**3
    assert found["stencil-60"].imbalance(2) == pytest.approx(1, abs=1e-3)
    assert found["band"].imbalance(1) == 1
    assert 1.3 < found["band"].imbalance(2) < 1.6 and found["band"].imbalance(4) > 2
    point = (tmp_path / "made" / "point.mtx").read_text().splitlines()
    assert point[1] == "4 4 7" and len(point) == 9 and point[-1] == "4 4 0.001" and "2 1 -1" in point
    assert found["point"].row_nonzeros.tolist() == [3, 3, 3, 1]
    band = (tmp_path / "made" / "band.mtx").read_text().splitlines()
    entries = int(band[1].split()[2])
    assert len(band) == entries + 2 and found["band"].nonzeros == 2 * entries - found["band"].rows


def test_the_symmetric_part_of_a_file_is_counted(tmp_path):
    (tmp_path / "x.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n1 3\n")
    x = matrices(tmp_path, tmp_path / "made")[-1]
    assert (x.name, x.row_nonzeros.tolist()) == ("x", [3, 2, 2]) and "--dominant" in x.words


def test_a_graph_with_weights_is_refused(tmp_path):
    (tmp_path / "w.graph").write_text("2 1 11\n1 2 5\n1 1 5\n")
    with pytest.raises(UsageError, match="it has weights"):
        matrices(tmp_path, tmp_path)


def test_cases_are_chosen_by_name():
    cases = all_cases(["band"], 10**9)
    assert [case.name for case in select(cases, ["cg/band/1*", "*/1GB/*"])] == [
        "cg/band/1",
        "cg/band/1:2",
        "allgatherv/1GB/2",
    ]
    assert select(cases, ["*"]) == cases
    with pytest.raises(UsageError, match="'cg/other/' matches none; there are cg/band/1"):
        select(cases, ["cg/other/"])
    small = [case for case in all_cases([], 3 * 10**6) if isinstance(case, Gather)]
    assert [(case.bytes, case.count) for case in small] == [(100_000, 1000), (3_000_000, 1000)]


def test_each_round_captures_and_pairs_alternate():
    first, second = (jobs_of(Solve("band", 1, 2), number) for number in (1, 2))
    assert [(job.case, job.kind) for job in first[:2]] == [("cg/band/1", CAPTURE), ("cg/band/2", CAPTURE)]
    assert [job.kind for job in first[2:] + second[2:]] == [REAL, EMULATED, EMULATED, REAL]
    assert {job.repeat for job in first} == {1} and {job.repeat for job in second} == {2}
    assert all(job.kind != CAPTURE for job in jobs_of(Gather(8, 2), 3))


def test_the_cases_of_a_matrix_run_in_rounds():
    cases = [Solve("a", 1), Solve("b", 1), Solve("a", 1, 2), Gather(8, 2)]
    ran = [(case.name, jobs[0].repeat) for case, jobs in by_turns(cases, 2)]
    of_a = [("cg/a/1", 1), ("cg/a/1:2", 1), ("cg/a/1", 2), ("cg/a/1:2", 2)]
    assert ran == [*of_a, ("cg/b/1", 1), ("cg/b/1", 2), ("allgatherv/8B/2", 1), ("allgatherv/8B/2", 2)]


def test_the_time_that_is_left_follows_runs_of_the_case(tmp_path):
    known = {one.name: one for one in matrices(tmp_path, tmp_path)}
    case = Solve("stencil-60", 2)
    jobs = jobs_of(case, 1)
    guess = seconds_of(case, jobs, {}, known)
    assert guess > 3 * 2.5
    assert seconds_of(case, jobs, {jobs[0]: 3.0}, known) == 9.0
    assert seconds_of(Gather(10**9, 20), [Job("x", REAL, 1)], {}, known) > seconds_of(
        Gather(10**5, 20), [Job("x", REAL, 1)], {}, known
    )


# ---- the record ------------------------------------------------------------------------------------------------------


def test_a_record_goes_on_after_a_torn_line_and_makes_no_run_twice(tmp_path):
    path, made = tmp_path / "record.jsonl", []

    def run(case, job):
        if len(made) == 4:
            raise KeyboardInterrupt
        made.append(job)
        return ran(job)

    cases = [CASE, Gather(8, 2)]
    with pytest.raises(KeyboardInterrupt):
        bench.measure(cases, 2, Record(path, "x"), run)
    with path.open("a") as file:
        file.write('{"job": {"case": "cg/ba')
    assert len(read(path)) == 4 and path.read_text().endswith("cg/ba")
    record = Record(path, "x")
    assert [one.job for one in record.runs] == made
    assert [record.captured(CASE.name, number) for number in (1, 2, 3)] == [captured(0.01)] * 2 + [None]
    made.append(None)  # run() goes on
    bench.measure(cases, 2, record, run)
    assert len(record.done) == len(record.runs) == 2 * 3 + 2 * 2
    assert not any(bench.left_of(case, record, 2) for case in cases)
    assert read(path) == record.runs
    with pytest.raises(UsageError, match="other emulators or settings"):
        Record(path, "another build")


def test_what_could_not_be_captured_is_not_emulated(tmp_path):
    record = Record(tmp_path / "r", "x")

    def run(case, job):
        return Ran(job, 1.0, 0.5, failed="exit code 1") if job.kind == CAPTURE else ran(job)

    bench.measure([CASE], 2, record, run)
    assert {one.job.kind for one in record.runs} == {CAPTURE, REAL}


# ---- times and descriptions ------------------------------------------------------------------------------------------


def test_a_resize_parts_the_times_of_a_solver():
    script = iteration(0.010)
    stays = log_of(0, 1, [*script * 10, Call("MPI_Allgatherv", 400, 0.5, takes_s=0.002), *script * 5])
    stays = replace(stays, calls=stays.calls[:-1])
    joins = replace(log_of(0, 1, iteration(0.020) * 6), spawned=True)
    times = times_of([stays, joins], 16, 10)
    # The first part has nine iterations between its gathers, the second four and a gather, in the other rank five.
    assert times[COMPUTING] == pytest.approx(9 * 0.011 + (4 * 0.011 + 0.001 + 5 * 0.021) / 2)
    assert times[COMMUNICATING] == pytest.approx(9 * 0.003 + (4 * 0.003 + 0.002 + 5 * 0.003) / 2)
    assert times[TOTAL] == pytest.approx(9 * 0.014 + 0.513 + 4 * 0.014 + 0.003)
    assert times[CPU] == pytest.approx(times[COMPUTING]), "nobody else uses the core in these logs"
    assert times[RESIZING] == pytest.approx(times[TOTAL] - times[COMPUTING] - times[COMMUNICATING])
    alone = times_of([replace(joins, spawned=False)] * 2, 6, 6)
    assert alone == pytest.approx({TOTAL: 0.12, COMPUTING: 0.105, COMMUNICATING: 0.015, CPU: 0.105})
    with pytest.raises(CaptureError, match="no process made 20 gathers, 10 of them"):
        times_of([stays, joins], 20, 10)


def test_a_captured_solver_is_described_with_its_resize(tmp_path):
    runs = {ranks: iterating(captured(0.02 / ranks, ranks), 30) for ranks in (1, 2)}
    text = resizable("cg", runs, [Part(1, 10), Part(2, 20)], Moved(1000, 0.97))
    path = tmp_path / "cg.toml"
    path.write_text(text)
    read_ = read_description(path, 1)
    assert [(one.processes, one.iterations) for one in read_.groups] == [(1, 10), (2, 20)]
    assert (read_.data.bytes, read_.data.constant_bytes, read_.oversubscribe) == (1000, 970, True)
    assert len(read_.phases) == 1 and read_.iterations == 30
    longest = max(read_.stages, key=lambda stage: stage.time_s or 0)
    assert longest.factors == pytest.approx({1: 1.0, 2: 0.5}, rel=0.01)


def test_the_run_in_the_middle_is_described():
    fast, usual, slow = (captured(cpu_s) for cpu_s in (0.01, 0.02, 0.05))
    assert middle([slow, fast, usual]) == usual


# ---- figures ---------------------------------------------------------------------------------------------------------


def test_bounds_follow_balance_and_cores():
    assert bound_of(Solve("m", 2), TOTAL, 1.0, 2) == (0.95, 1.05)
    assert bound_of(Solve("m", 2), COMPUTING, 1.4, 2) == (0.90, 1.10)
    assert bound_of(Solve("m", 2), COMMUNICATING, 1.0, 2) == (0.95, 1.05)
    assert bound_of(Solve("m", 2, 4), COMMUNICATING, 1.0, 2) is None, "waiting for a core is no communication"
    assert bound_of(Solve("m", 1), COMMUNICATING, 1.0, 2) is None
    assert bound_of(Solve("m", 1, 2), RESIZING, 1.0, 2) is None
    assert bound_of(Gather(8, 2), TOTAL, 1.0, 2) == (0.97, 1.03)


def test_a_figure_has_ratio_deviation_and_verdict():
    runs = pairs(CASE.name, (1.0, 1.04), (2.0, 2.0), (1.0, 1.02))
    lines = {one["case"]: one for one in lines_of(CASE, runs, 1.0, 2)}
    total = lines["cg/band/2, total"]
    assert total["ratio"] == pytest.approx(1.04) and total["ok"] and total["runs"] == 3
    assert total["stdq"] == pytest.approx(0.02) and total["bound"] == (0.95, 1.05)
    off = {one["case"]: one for one in lines_of(CASE, pairs(CASE.name, *[(1.0, 1.08)] * 3), 1.0, 2)}
    assert not off["cg/band/2, total"]["ok"]
    uneven = lines_of(CASE, pairs(CASE.name, *[(1.0, 1.08)] * 3), 1.5, 2)
    assert all(one["ok"] for one in uneven)


def test_an_emulation_stands_beside_the_run_that_it_was_captured_from():
    """The application itself may be slower in one run than in another; then its emulation follows the captured one."""
    captures = {1: 1.0, 2: 1.2, 3: 1.1}
    runs = pairs(CASE.name, (1.3, 1.01), (1.4, 1.212), (1.2, 1.111))
    assert "of_captured" not in lines_of(CASE, runs, 1.0, 2)[0]
    for number, took_s in captures.items():
        runs.append(Ran(Job(CASE.name, CAPTURE, number), 1.0, 0.0, times={TOTAL: took_s}, captured=captured(0.01)))
    (total, *_) = lines_of(CASE, runs, 1.0, 2)
    assert total["of_captured"] == pytest.approx(1.01) and total["itself"] == pytest.approx(1.1 / 1.3)
    assert total["ratio"] == pytest.approx(1.111 / 1.3)
    resized = Solve("band", 2, 1)
    other = [*runs, *pairs(resized.name, (1.0, 1.0), (1.0, 1.0))]
    assert "of_captured" not in lines_of(resized, other, 1.0, 2)[0]


def test_a_pair_of_which_one_failed_does_not_count():
    runs = pairs(CASE.name, (1.0, 1.0), (1.0, 1.0), (1.0, 9.0))
    runs[-1] = replace(runs[-1], failed="exit code 1")
    (total, *_) = lines_of(CASE, runs, 1.0, 2)
    assert (total["runs"], total["failed"], total["ratio"]) == (2, 1, 1.0)
    assert lines_of(CASE, runs[:2], 1.0, 2) == [], "one pair has no deviation"


def test_the_emulators_own_work_has_a_bound():
    runs = pairs(CASE.name, (1.0, 1.0), (1.0, 1.0), (1.0, 1.0))
    assert not any("own work" in one["case"] for one in lines_of(CASE, runs, 1.0, 2)), "an older record does not say it"
    for share, ok in ((0.004, True), (0.006, False)):
        shares = iter([share, 0.001, 0.02])
        told = [replace(one, own_share=next(shares)) if one.job.kind == EMULATED else one for one in runs]
        *_, own = lines_of(CASE, told, 1.0, 2)
        assert (own["case"], own["unit"], own["ok"]) == ("cg/band/2, own work", "%", ok)
        assert (own["value"], own["most"], own["bound"]) == (pytest.approx(100 * share), 2.0, (0, 0.5))


def test_the_calibration_has_a_bound_and_takes_place_once():
    case = Calibrate()
    assert jobs_of(case, 3) == [Job("calibration", EMULATED, 3)] and lines_of(case, [], 1.0, 2) == []

    def lines(first: float, again: float) -> dict:
        times = [(3.0, 0.01), (first, again), (3.0, 0.01)]
        runs = [
            Ran(Job(case.name, EMULATED, number), 3.1, 0.5, times={FIRST: one, AGAIN: other})
            for number, (one, other) in enumerate(times, 1)
        ]
        return {one["case"]: one for one in lines_of(case, runs, 1.0, 2)}

    held = lines(4.9, 0.02)
    first, again = held["calibration, first"], held["calibration, again"]
    assert (first["value"], first["most"], first["bound"], first["ok"]) == (3.0, 4.9, (0, 5), True)
    assert (again["value"], again["ok"]) == (0.01, True)
    assert not lines(5.1, 0.02)["calibration, first"]["ok"], "each one is bounded, not the median"
    assert not lines(3.0, 3.0)["calibration, again"]["ok"], "it was measured again"


def test_the_calibration_is_measured_where_nothing_is_stored(monkeypatch, tmp_path):
    """The second time, the program is not started."""
    log, program = tmp_path / "log", tmp_path / "emulator-mpich"
    program.write_text(f'#!/bin/sh\necho "$@" >> {log}; shift 2; for one in "$@"; do echo $one 0.5; done\n')
    program.chmod(0o755)
    monkeypatch.setattr(bench.paths, "apps", lambda: tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for _ in range(2):
        times = bench.calibration_times()
        assert list(times) == [FIRST, AGAIN] and all(one > 0 for one in times.values())
    assert log.read_text().splitlines() == ["--calibrate 3.0 compute:10000 memory:1024"] * 2
    assert not (tmp_path / "state").exists() and os.environ["XDG_STATE_HOME"] == str(tmp_path / "state")


def test_an_emulations_own_work_is_in_the_record(monkeypatch, tmp_path):
    def watch_emulation(path, processes, *, record, resizes=False):
        block = {"first": 0, "unix_s": 1.0, "phase": 0, "processes": 2, "ranks": 2, "cpu_ns": 1, "control_ns": 0}
        block |= {"own_ns": 30, "mean_ns": {"iteration": [9970], "stages": []}, "most_ns": {}}
        record.write_text(json.dumps({"iterations": block}) + "\n")
        return [log_of(0, 2, [Call("MPI_Allgatherv", 8, 0.001, takes_s=0.002)])]

    monkeypatch.setattr(bench, "watch_emulation", watch_emulation)
    case = Gather(8, 1)
    record = Record(tmp_path / "record.jsonl", "x")
    run = bench.Bench(record, {}, tmp_path, tmp_path / "probe").run(case, Job(case.name, EMULATED, 1))
    assert (run.failed, run.own_share) == ("", pytest.approx(0.003))
    record.add(run)
    assert read(tmp_path / "record.jsonl") == [run]


# ---- the real programs -----------------------------------------------------------------------------------------------


@pytest.mark.timeout(600)
def test_a_small_run_is_interrupted_and_goes_on(prefix: Path, tmp_path: Path):
    probe = REPO / "build" / "release" / "bench" / "allgatherv_probe-mpich"
    if not probe.exists():
        pytest.skip("needs allgatherv_probe-mpich in build/release (./dev build)")
    command = [sys.executable, str(REPO / "bench" / "emulator.py"), "--output", str(tmp_path), "--repeat", "2"]
    command += ["--cases", "cg/stencil-40/1:2,allgatherv/100KB/2"]
    environment = {**os.environ, "HOCKET_PREFIX": str(prefix)}
    record = tmp_path / "record.jsonl"

    def lines() -> list[str]:
        return record.read_text().splitlines() if record.exists() else []

    plan = subprocess.run([*command, "--plan"], env=environment, capture_output=True, text=True, timeout=100)
    assert plan.returncode == 0 and "cg/stencil-40/1:2: imbalance 1.00, 8 runs left" in plan.stderr, plan.stderr
    assert len(lines()) == 1
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as first:
        deadline = time.monotonic() + 200
        while len(lines()) < 3 and first.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        first.send_signal(signal.SIGINT)
        said = first.communicate(timeout=100)[1]
    assert first.returncode == 1 and "interrupted" in said, said
    before = lines()
    assert 3 <= len(before) < 14
    second = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)
    assert lines()[: len(before)] == before
    assert len(lines()) == 1 + 8 + 4 and "failed" not in second.stderr, second.stderr
    # Ratios are not asserted: the machine may be busy.
    told = {one["case"]: one for one in map(json.loads, second.stdout.splitlines())}
    assert {"cg/stencil-40/1:2, total", "cg/stencil-40/1:2, resize", "allgatherv/100KB/2, total"} <= set(told)
    assert "cg/stencil-40/1:2, own work" in told
    assert all(one["runs"] == 2 and one.get("failed", 0) == 0 for one in told.values())
    total, resize = told["cg/stencil-40/1:2, total"], told["cg/stencil-40/1:2, resize"]
    assert 0 < resize["value"] < total["value"] and 0 < resize["reference"] < total["reference"]
