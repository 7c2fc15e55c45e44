"""`hocket explore`: patterns and programs through different numbers of I/O servers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import runtime_kit as kit
from checkout import REPO
from hocket.arbitration.jobs import read_jobs
from hocket.errors import UsageError
from hocket.exploration.patterns import LAYOUTS, read_patterns
from hocket.exploration.results import Measured, Planned, Results, curve, jobs_text, plan

pytestmark = pytest.mark.timeout(180)

PATTERNS = """
servers = [0, 1, 2]
repetitions = 2
[[pattern]]
name = "p"
nodes = 2
processes_per_node = 2
layout = ["own", "contiguous", "strided"]
operation = ["write", "read"]
request = "64k"
total = "1m"
"""


def explore(*words: str | Path, prefix: Path, code: int = 0) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "hocket.cli", "explore", *map(str, words)]
    environment = os.environ | {"HOCKET_PREFIX": str(prefix)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, env=environment, check=False)
    assert done.returncode == code, done.stderr
    return done


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_papers_189_patterns():
    asked = read_patterns(REPO / "scenarios" / "patterns" / "forge-189.toml")
    assert len(asked.patterns) == 189
    assert {one.processes for one in asked.patterns} == {n * p for n in (8, 16, 32) for p in (12, 24, 48)}
    assert all(phase.direct and phase.seconds == 1 for one in asked.patterns for phase in one.phases)
    shrunk = read_patterns(REPO / "scenarios" / "patterns" / "forge-189.toml", 48).patterns
    assert {one.processes for one in shrunk} == {8, 16, 32}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("nodes = 2", "nodes = 0"), "pattern 1: nodes = 0 must be a whole number from 1 to 4096"),
        (("nodes = 2", "nodes = true"), "pattern 1: nodes = True must be a whole number from 1 to 4096"),
        (("nodes = 2", "nodes = []"), "pattern 1: nodes = [] must have a value"),
        (("nodes = 2", "knots = 2"), "pattern 1: key 'knots' = 2 is unknown; use name, nodes, "),
        (('"own"', '"mine"'), "pattern 1: layout = 'mine' is unknown; use own, contiguous, strided"),
        (('"64k"', '"64q"'), "pattern 1: request = '64q' must be bytes"),
        (('"64k"', '"65m"'), "pattern 1: request = '65m' must be bytes"),
        (('"64k"', '"1k"\ndirect = true'), "pattern 1: request = '1k' must be a multiple of 4k"),
        (('"1m"', "-5"), "pattern 1: total = -5 must be bytes"),
        (("nodes = 2", "nodes = 2\nseconds = -1"), "pattern 1: seconds = -1 must be from 0 to 86400"),
        (("[0, 1, 2]", "[0, 65]"), "servers = [0, 65] must be a list of numbers from 0 to 64"),
        (("[0, 1, 2]", "[]"), "servers = [] must be a list"),
        (("repetitions = 2", "repetitions = 0"), "repetitions = 0 must be a whole number from 1 to 1000"),
        (("[[pattern]]", "[pattern]"), "is no list of tables; write [[pattern]]"),
        (("nodes = 2", "nodes = 4096"), "pattern 1: 4096 nodes of 2 processes are more than 4096; use --shrink"),
        (("servers", "servers = ["), ".toml: "),
        (
            ("nodes = 2", "nodes = 2\nactive_processes = 5"),
            "pattern 1: active_processes = 5 must be a whole number from 1",
        ),
        (("nodes = 2", "nodes = 2\nrounds = 0"), "pattern 1: rounds = 0 must be a whole number from 1"),
        (("nodes = 2", "nodes = 2\npause_s = -1"), "pattern 1: pause_s = -1 must be from 0 to 86400"),
        (("nodes = 2", "nodes = 2\nnew_file = true"), "pattern 1: new_file = True must be false, because"),
    ],
)
def test_a_wrong_file_is_refused_with_its_key_and_value(tmp_path: Path, change: tuple[str, str], said: str):
    path = written(tmp_path / "p.toml", PATTERNS.replace(*change, 1))
    with pytest.raises(UsageError) as refused:
        read_patterns(path)
    assert str(path) in str(refused.value) and said in str(refused.value)
    assert "\n" not in str(refused.value).replace(str(path), "")


def test_two_patterns_of_one_name_are_refused(tmp_path: Path):
    path = written(tmp_path / "p.toml", '[[pattern]]\nname = "a"\n[[pattern]]\nname = "a"\n')
    with pytest.raises(UsageError, match="two patterns are called 'a'"):
        read_patterns(path)


def test_each_round_of_the_plan_has_every_run_once_in_random_order():
    runs = plan(["a", "b", "c"], [0, 1, 2, 4], 5, seed=3)
    assert len(set(runs)) == len(runs) == 60
    rounds = [runs[at : at + 12] for at in range(0, 60, 12)]
    assert all({one.repetition for one in part} == {number} for number, part in enumerate(rounds))
    orders = {tuple((one.name, one.servers) for one in part) for part in rounds}
    assert len(orders) == 5 and plan(["a", "b", "c"], [0, 1, 2, 4], 5, seed=3) == runs


def test_interrupted_runs_are_resumed(tmp_path: Path):
    planned = plan(["a"], [0, 1], 2, seed=1)
    first = Results(tmp_path / "runs", "x")
    first.add(Measured(planned[0], 100, 2.0))
    first.add(Measured(planned[1], 100, 4.0))
    with (tmp_path / "runs").open("a") as file:
        file.write('{"name": "a", "ser')  # the machine went down
    again = Results(tmp_path / "runs", "x")
    assert again.missing(planned) == planned[2:]
    again.add(Measured(planned[2], 100, 1.0))
    assert len(Results(tmp_path / "runs", "x").runs) == 3
    with pytest.raises(UsageError, match="runs of other patterns or settings"):
        Results(tmp_path / "runs", "y")


def test_the_curves_are_medians_that_arbitrate_reads(tmp_path: Path):
    results = Results(tmp_path / "runs", "x")
    for repetition, seconds in enumerate((1.0, 2.0, 10.0)):
        results.add(Measured(Planned('a "b"', 2, repetition), 20_000_000, seconds))
    assert curve(results.rates('a "b"')) == {2: 10.0}
    path = written(tmp_path / "curves.toml", jobs_text([('a "b"', 3, 6, {0: 1.5, 2: 10.0})]))
    (job,) = read_jobs(path).jobs
    assert (job.name, job.nodes, job.processes, job.bandwidth) == ('a "b"', 3, 6, {0: 1_500_000, 2: 10_000_000})


def test_patterns_are_measured_through_servers(prefix: Path, tmp_path: Path):
    """Each server has 20 MB/s, so that no run is faster than its servers together."""
    directory = tmp_path / "files"
    directory.mkdir()
    path = written(tmp_path / "p.toml", PATTERNS.replace('"1m"', '"4m"'))
    words = (path, "--dir", directory, "--output", tmp_path / "out", "--limit", "20m")
    done = explore(*words, prefix=prefix)
    lines = (tmp_path / "out" / "runs.jsonl").read_text().splitlines()
    assert len(lines) == 1 + 6 * 3 * 2
    assert not list(directory.iterdir())
    curves = {job["name"]: job["bandwidth_mb_s"] for job in _jobs(tmp_path / "out")}
    assert len(curves) == 6
    for name, one in curves.items():
        assert 0 < one["1"] < 22 and 0 < one["2"] < 44, (name, one)
    again = explore(*words, prefix=prefix)
    assert again.stdout == done.stdout
    assert (tmp_path / "out" / "runs.jsonl").read_text().splitlines() == lines


def test_a_killed_exploration_is_resumed(prefix: Path, tmp_path: Path):
    """What was measured stays and is not measured again, the rest is measured once, and the result is complete."""
    directory, runs = tmp_path / "files", tmp_path / "out" / "runs.jsonl"
    directory.mkdir()
    text = PATTERNS.replace("[0, 1, 2]", "[0, 1]").replace('["write", "read"]', '"write"\npause_s = 0.3')
    path = written(tmp_path / "p.toml", text)
    words = [str(word) for word in (path, "--dir", directory, "--output", tmp_path / "out")]
    command = [sys.executable, "-m", "hocket.cli", "explore", *words]
    environment = os.environ | {"HOCKET_PREFIX": str(prefix)}
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment, start_new_session=True) as process:
        kit.wait_until(lambda: runs.exists() and len(_lines(runs)) >= 1 + 3, 60, "three runs are measured")
        assert process.poll() is None, "it has ended before it was killed"
        os.killpg(process.pid, signal.SIGKILL)
    before = _lines(runs)
    planned = {(f"p-{layout}", servers, number) for layout in LAYOUTS for servers in (0, 1) for number in (0, 1)}
    assert 1 + 3 <= len(before) < 1 + len(planned)
    explore(*words, prefix=prefix)
    after = _lines(runs)
    assert after[: len(before)] == before and len(after) == 1 + len(planned)
    measured = [json.loads(line) for line in after[1:]]
    assert {(one["name"], one["servers"], one["repetition"]) for one in measured} == planned
    assert all(one["bytes"] > 0 for one in measured)
    assert {job["name"]: set(job["bandwidth_mb_s"]) for job in _jobs(tmp_path / "out")} == {
        f"p-{layout}": {"0", "1"} for layout in LAYOUTS
    }


def _lines(path: Path) -> list[str]:
    """Return the lines that have ended."""
    return path.read_text().split("\n")[:-1]


PHASES = [  # words of a phase, bytes moved, least seconds, files left
    (["layout=own,request=1000,total=10000,rounds=3"], 4 * 3 * 3000, 0),
    (["layout=strided,request=1000,total=4000,active=2,rounds=2,pause=0.2"], 2 * 4000, 0.4),
    (["layout=contiguous,request=1000,total=4000,request_pause=0.1,rounds=3"], 3 * 4000, 0.3),
    (["layout=contiguous,request=1000,total=8000", "layout=strided,request=500,total=8000,operation=read"], 16000, 0),
    (["layout=own,request=1000,total=4000,new_file=1,rounds=5"], 5 * 4000, 0),
    (["layout=own,request=100,total=100000000,seconds=0.3,request_pause=0.01"], None, 0.3),
    (["layout=own,request=1000,total=4000", "layout=own,request=1000,total=8000,operation=read"], 12000, 0),
]


@pytest.mark.parametrize(("phases", "moved", "least_s"), PHASES)
def test_phases_move_their_bytes_and_pause(prefix: Path, tmp_path: Path, phases: list, moved: int | None, least_s):
    program = prefix / "libexec" / "hocket" / "hocket-replay"
    done = subprocess.run([program, "4", tmp_path, *phases], capture_output=True, text=True, timeout=60, check=True)
    told = json.loads(done.stdout)
    assert told["seconds"] >= least_s and (told["bytes"] == moved if moved else 0 < told["bytes"] < 100_000)
    assert not list(tmp_path.iterdir())


def test_a_pattern_that_cannot_be_made_ends_with_its_error(prefix: Path, tmp_path: Path):
    program = prefix / "libexec" / "hocket" / "hocket-replay"
    for words, code, said in (
        (["4", tmp_path / "none", "layout=own,request=1,total=8"], 1, "No such file"),
        (["4", tmp_path, "layout=own,total=8"], 2, "phase 1 cannot be read"),
        (["4", tmp_path, "layout=own,request=1,total=8,active=5"], 2, "phase 1 cannot be read"),
        (["4", tmp_path], 2, "usage: "),
    ):
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code and said in done.stderr


def _jobs(output: Path) -> list[dict]:
    return tomllib.loads((output / "curves.toml").read_text())["job"]


def test_a_program_is_measured_through_servers(prefix: Path, tmp_path: Path):
    directory = tmp_path / "files"
    directory.mkdir()
    how = ("--dir", directory, "--servers", "0,1", "--repeat", "2", "--output", tmp_path / "out")
    explore(*how, "--", "dd", "if=/dev/zero", f"of={directory}/o", "bs=64k", "count=32", prefix=prefix)
    runs = [json.loads(line) for line in (tmp_path / "out" / "runs.jsonl").read_text().splitlines()[1:]]
    assert sorted((one["servers"], one["bytes"]) for one in runs) == [(0, 0), (0, 0), (1, 1 << 21), (1, 1 << 21)]
    (job,) = _jobs(tmp_path / "out")
    assert job["name"] == "dd" and all(rate > 0 for rate in job["bandwidth_mb_s"].values())


DESCRIBED = """
servers = 2
limit = "10m"
[system]
nodes = 4
servers = 2
[[job]]
name = "described"
nodes = 2
bandwidth_mb_s = { 1 = 5, 2 = 9 }
emulate = "app.toml"
"""
DESCRIPTION = """
name = "app"
[[group]]
processes = 2
iterations = 4
[[phase]]
[[phase.stage]]
kind = "sleep"
time_s = 0.01
[[phase.stage]]
kind = "write"
file = "own"
access = "file-per-process"
bytes = "512k"
append = true
request_bytes = "64k"
"""
WRITTEN = 4 * (512 << 10)


def test_a_described_job_is_measured_through_servers(prefix: Path, tmp_path: Path):
    """Each server has 10 MB/s, so a run is not faster than its servers together. The emulation writes all it says."""
    directory = tmp_path / "files"
    directory.mkdir()
    written(tmp_path / "app.toml", DESCRIPTION)
    path = written(tmp_path / "jobs.toml", DESCRIBED)
    words = (path, "--dir", directory, "--servers", "0,1,2", "--repeat", "1", "--output", tmp_path / "out")
    done = explore(*words, prefix=prefix)
    runs = [json.loads(line) for line in (tmp_path / "out" / "runs.jsonl").read_text().splitlines()[1:]]
    assert sorted((one["servers"], one["bytes"]) for one in runs) == [(0, 0), (1, WRITTEN), (2, WRITTEN)]
    assert not list(directory.iterdir())
    (job,) = _jobs(tmp_path / "out")
    assert (job["name"], job["nodes"], job["processes"]) == ("described", 2, 2)
    assert 0 < job["bandwidth_mb_s"]["1"] < 11 and 0 < job["bandwidth_mb_s"]["2"] < 22
    assert job["bandwidth_mb_s"]["0"] > 0, "the bytes of the direct run are those of the others"
    again = explore(*words, prefix=prefix)
    assert again.stdout == done.stdout, "nothing is measured twice"


def test_a_described_job_that_fails_is_named(prefix: Path, tmp_path: Path):
    directory = tmp_path / "files"
    directory.mkdir()
    description = written(tmp_path / "app.toml", DESCRIPTION.replace('"own"', '"none/own"'))
    path = written(tmp_path / "jobs.toml", DESCRIBED)
    words = (path, "--dir", directory, "--servers", "1", "--repeat", "1", "--output", tmp_path / "out")
    failed = explore(*words, prefix=prefix, code=1)
    assert "described failed with exit code" in failed.stderr.splitlines()[-1]
    assert not list(directory.iterdir())
    written(description, DESCRIPTION.replace('bytes = "512k"', "bytes = 0"))
    refused = explore(*words, prefix=prefix, code=2)
    assert "app.toml, line 14: phase 1, stage 2: bytes = 0" in refused.stderr
    description.unlink()
    assert "emulate = 'app.toml': there is no file" in explore(*words, prefix=prefix, code=2).stderr


def test_a_signal_ends_programs_and_servers(prefix: Path, tmp_path: Path):
    directory, pid = tmp_path / "files", tmp_path / "pid"
    directory.mkdir()
    words = [
        "--dir",
        directory,
        "--servers",
        "1",
        "--output",
        tmp_path / "out",
        "--",
        "sh",
        "-c",
        f"echo $$ >{pid}; sleep 99",
    ]
    command = [sys.executable, "-m", "hocket.cli", "explore", *map(str, words)]
    environment = os.environ | {"HOCKET_PREFIX": str(prefix)}
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment) as process:
        deadline = time.monotonic() + 60
        while not (pid.exists() and pid.read_text()):
            assert time.monotonic() < deadline, "waited 60 s for the program"
            time.sleep(0.05)
        process.terminate()
        assert process.wait(60) == 130
    stat = Path(f"/proc/{int(pid.read_text())}/stat")
    assert not stat.exists() or " Z " in stat.read_text()
    servers = [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(directory).encode() in _content(path)]
    assert not servers


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_it_says_what_is_wrong(prefix: Path, tmp_path: Path):
    path = written(tmp_path / "p.toml", PATTERNS)
    for words, said in (
        ((path, "--dir", "/nonexistent"), "--dir /nonexistent: there is no such directory"),
        (("--dir", tmp_path), "give either a file of patterns, PATTERNS.toml, or '-- PROGRAM …'"),
        (
            (path, "--dir", tmp_path, "--servers", "1,x"),
            "--servers 1,x: give numbers from 0 to 64, separated by commas",
        ),
        ((path, "--dir", tmp_path, "--shrink", "0"), "--shrink 0: give 1 to 100000"),
    ):
        assert explore(*words, prefix=prefix, code=2).stderr == f"hocket: {said}\n"
    failed = explore("--dir", tmp_path, "--output", tmp_path / "o", "--", "false", prefix=prefix, code=1)
    assert "false failed with exit code 1" in failed.stderr.splitlines()[-1]
