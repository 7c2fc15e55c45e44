"""hocket sim import-swf: logs of jobs, the scenario drawn from them, and CALCioM's probability."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import tomllib
from pathlib import Path
from statistics import fmean, median

import pytest
from checkout import DATA, KIT
from hocket.cli import main
from hocket.sim.scenario import Draw, scenario_of
from hocket.sim.swf import Job, chosen, most_cores, probability_of_io, read_log, running

pytestmark = pytest.mark.timeout(60)
SMALL = DATA / "small.swf"
LINE = "1 10 5 100 8 -1 -1 8 600 -1 1 1 1 -1 1 -1 -1 -1\n"
DRAW = Draw(cores=1024, seed=3, io_ratio=0.1, period_s=100, bandwidth=1e9, malleable=0.5)


def complaint(capsys, *words: object, code: int = 1) -> str:
    assert main(["sim", "import-swf", *map(str, words)]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1), captured
    return captured.err.removeprefix("hocket: ").rstrip("\n")


def log_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "log.swf"
    path.write_text(text)
    return path


def test_the_log_of_the_tests_is_what_its_maker_makes(tmp_path):
    maker = tmp_path / "make_swf.py"
    maker.write_text((DATA / "make_swf.py").read_text())
    subprocess.run([sys.executable, maker], check=True, timeout=30)
    assert (tmp_path / "small.swf").read_text() == SMALL.read_text()


def test_jobs_start_when_they_were_submitted_and_had_waited(tmp_path):
    log = read_log(
        log_of(tmp_path, f"; MaxProcs: 64\n; Note: 5 and 6\n\n{LINE}2 0 -1 50 -1 0 -1 4 1 1 1 1 1 1 1 1 1 1\n")
    )
    assert (log.jobs, log.processors) == ([Job(2, 0, 50, 4), Job(1, 15, 100, 8)], 64)
    assert chosen(log, 0, 7) == [Job(2, 0, 50, 4)]
    assert chosen(log, 1, 64) == [Job(2, 0, 50, 4)]
    assert most_cores(log.jobs) == 12


def test_jobs_that_never_ran_are_counted(tmp_path):
    cancelled = LINE.replace(" 100 8 ", " -1 8 ")
    log = read_log(log_of(tmp_path, LINE + cancelled + LINE.replace(" 8 -1 -1 8 ", " -1 -1 -1 -1 ")))
    assert (len(log.jobs), log.never_ran) == (1, 2)


def test_a_compressed_log_is_read_as_it_is(tmp_path):
    path = tmp_path / "small.swf.gz"
    path.write_bytes(gzip.compress(SMALL.read_bytes()))
    assert read_log(path).jobs == read_log(SMALL).jobs


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("1 2 3\n", "3 fields; a job has 18"),
        (LINE.replace(" 100 ", " soon "), "run time (field 4) = 'soon': give a number"),
        (LINE.replace("1 10 ", "1 -10 "), "submit time (field 2) = -10: give 0 or more"),
        (LINE.replace(" 100 ", " nan "), "run time (field 4) = nan: give -1 or more"),
        (LINE.replace(" 100 ", " 1e300 "), "run time (field 4) = 1e300"),
        ("a\0b\n", "1 fields; a job has 18"),
    ],
)
def test_a_line_that_is_no_job_is_named(tmp_path, capsys, line, told):
    path = log_of(tmp_path, "; header\n" + LINE + line)
    assert f"{path}:3: {told}" in complaint(capsys, path, "-o", tmp_path / "out.toml")
    assert not (tmp_path / "out.toml").exists()


def test_logs_and_calls_that_cannot_be(tmp_path, capsys):
    out = ["-o", tmp_path / "out.toml"]
    assert "cannot read the log" in complaint(capsys, tmp_path / "none.swf", *out)
    assert "no job in it that ran" in complaint(capsys, log_of(tmp_path, "; nothing\n"), *out)
    assert "no job needs 2 cores or fewer" in complaint(capsys, log_of(tmp_path, LINE), *out, "--cores", 2)
    assert "give -o SCENARIO.toml" in complaint(capsys, SMALL, code=2)
    assert "no log given" in complaint(capsys, *out, code=2)
    assert "--io-ratio 1.5" in complaint(capsys, SMALL, *out, "--io-ratio", 1.5, code=2)
    assert "cannot write" in complaint(capsys, SMALL, "-o", tmp_path / "no" / "x.toml")


# ---- probability --------------------------------------------------------------------------------------------------


def test_the_share_of_time_in_which_so_many_run():
    jobs = [Job(1, 0, 10, 1), Job(2, 5, 10, 1), Job(3, 20, 5, 1)]
    assert running(jobs) == pytest.approx({0: 5 / 25, 1: 15 / 25, 2: 5 / 25})


def test_the_formula_agrees_with_drawing_moments():
    rng = random.Random(5)
    jobs = [Job(n, rng.uniform(0, 1000), rng.uniform(10, 400), 1) for n in range(60)]
    formula = probability_of_io(running(jobs), 0.05)
    end_s, hits, tries = max(job.end_s for job in jobs), 0, 20000
    first_s = min(job.start_s for job in jobs)
    for _ in range(tries):
        moment = rng.uniform(first_s, end_s)
        hits += any(job.start_s <= moment < job.end_s and rng.random() < 0.05 for job in jobs)
    assert formula == pytest.approx(hits / tries, abs=0.01)


def test_twenty_jobs_at_once_are_the_papers_64_per_cent():
    assert probability_of_io({20: 1.0}, 0.05) == pytest.approx(0.64, abs=0.005)


# ---- the scenario -------------------------------------------------------------------------------------------------


def test_the_same_seed_draws_the_same_scenario_and_it_says_of_what():
    jobs = chosen(read_log(SMALL), 30, 163840)
    one = scenario_of(jobs, DRAW, "s", "small.swf")
    assert one == scenario_of(jobs, DRAW, "s", "small.swf")
    assert one != scenario_of(jobs, Draw(**vars(DRAW) | {"seed": 4}), "s", "small.swf")
    assert all(f"#   {line}" in one for line in DRAW.about())
    assert "30 jobs, seed 3" in one


def test_an_applications_figures_add_up_to_the_jobs_run_time():
    jobs = chosen(read_log(SMALL), 0, 163840)
    told = tomllib.loads(scenario_of(jobs, DRAW, 'a "name"', "x"))
    assert told["name"] == 'a "name"'
    for job, one in zip(jobs, told["applications"], strict=True):
        periods = one["iterations"] // one["iterations_per_phase"]
        iteration_s = dict(map(tuple, one["curve"]))[job.processes]
        run_s = one["iterations"] * iteration_s + periods * one["io_curve"][0][1]
        assert run_s == pytest.approx(job.run_s, rel=1e-3)
        assert (one["start_s"], one["processes"]) == (pytest.approx(job.start_s, rel=1e-3), job.processes)
        sizes = [size for size, _ in one["curve"]]
        times = [time for _, time in one["curve"]]
        assert sizes == sorted(set(sizes)) and sizes[-1] <= DRAW.cores * 1000
        assert times == sorted(times, reverse=True)
        assert one["malleable"] == (len(sizes) > 1)


def test_what_is_drawn_has_the_distributions_that_are_stated():
    jobs = [Job(n, n, 100_000, 512) for n in range(1, 3001)]
    draw = Draw(cores=1024, seed=1, io_ratio=0.05, period_s=600, bandwidth=1e9, malleable=0.25)
    told = tomllib.loads(scenario_of(jobs, draw, "s", "x"))["applications"]
    periods = [100_000 / (one["iterations"] // one["iterations_per_phase"]) for one in told]
    ratios = [one["io_curve"][0][1] / period for one, period in zip(told, periods, strict=True)]
    assert fmean(ratios) == pytest.approx(0.05, abs=0.004)
    assert median(periods) == pytest.approx(600, rel=0.05)
    assert fmean(one["malleable"] for one in told) == pytest.approx(0.25, abs=0.03)
    rates = [one["io_bytes"] / one["io_curve"][0][1] for one in told if one["io_curve"][0][1] > 1]
    assert rates == pytest.approx([1e9] * len(rates), rel=1e-3)  # half the cores saturate the target


def test_the_formula_stands_beside_the_simulated_value(tmp_path, monkeypatch, capsys):
    program = tmp_path / "libexec" / "hocket" / "hocket-sim"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {KIT / "stand_in_simulator.py"} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("HOCKET_PREFIX", str(tmp_path))
    assert main(["sim", "import-swf", str(SMALL), "-o", str(tmp_path / "s.toml"), "--jobs", "50"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{tmp_path}/s.toml: 50 of 228 jobs of small.swf, 163840 cores, ")
    assert lines[1].startswith("left out: 12 that never ran, 0 that need more")
    assert lines[-4].startswith("P(another is doing I/O) = 1 - Σ P(X = n) (1 - E(µ))^n, E(µ) = 0.05")
    assert lines[-3].split()[:3] == ["by", "the", "formula"]
    assert lines[-2].split() == ["simulated", "59.9%", "(uncoordinated)"]  # 17.12 s of 28.56 in the stand-in
    assert "64 %" in lines[-1]


def test_without_the_simulator_the_scenario_is_still_made(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOCKET_PREFIX", str(tmp_path))
    assert main(["sim", "import-swf", str(SMALL), "-o", str(tmp_path / "s.toml")]) == 0
    assert "simulated           not known: no hocket-sim at" in capsys.readouterr().out
    assert len(tomllib.loads((tmp_path / "s.toml").read_text())["applications"]) == 200
