"""hocket delta: in the simulator, on two small programs, and its failures."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import runtime_kit
from hocket import paths
from hocket.analysis import analyse
from hocket.cli import main
from hocket.delta.graph import first_phase
from hocket.trace import read_trace
from mpi_launch import Mpi
from PIL import Image
from processes import descendants

pytestmark = pytest.mark.timeout(120)
LIVE_LIMIT_S = 240
LARGE, SMALL = "processes=744,bytes=2325m", "processes=24,bytes=75m"
BANDWIDTH = str(100 << 20)  # in bytes/s: LARGE takes 23.25 s alone, SMALL 0.75 s
DTS = ["--from", "-2", "--to", "26", "--step", "1.75"]
POLICIES = ["interfere", "fcfs", "interrupt", "dynamic"]
RANGE = ["--from", "0", "--to", "1", "--step", "1"]
POINT_KEYS = {"policy", "wanted_dt_s", "dt_s", "runs", "A", "B", "cost", "expected_cost"}
SIDE_KEYS = {"io_s", "least_s", "most_s", "wait_s", "interruptions", "factor", "expected_s", "expected_factor"}


@pytest.fixture(autouse=True)
def installed(prefix, monkeypatch) -> None:
    monkeypatch.setenv("HOCKET_PREFIX", os.fspath(prefix))


def complaint(capsys, *words: str, code: int = 2) -> str:
    assert main(["delta", *words]) == code
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.splitlines()[-1].startswith("hocket: "), captured
    assert len(captured.err.splitlines()) == 1, captured
    return captured.err.removeprefix("hocket: ").rstrip("\n")


def simulate(tmp_path: Path, *words: str, large: str = LARGE, small: str = SMALL) -> dict:
    out = tmp_path / "delta.json"
    apps = ["--app", large, "--app", small]
    assert main(["delta", "--simulate", *apps, "--bandwidth", BANDWIDTH, "--json", str(out), *words]) == 0
    return json.loads(out.read_text())


def check_schema(told: dict) -> None:
    assert told["hocket_delta"] == 1
    assert {"simulated", "grain", "sharing", "metric", "repetitions", "bandwidth_bytes_per_s"} <= set(told)
    assert [one["name"] for one in told["applications"]] == ["A", "B"]
    keys = {"name", "command", "processes", "alone_s", "alone_runs_s", "accesses", "bytes", "target"}
    assert all(set(one) == keys for one in told["applications"])
    for point in told["points"]:
        assert set(point) == POINT_KEYS and set(point["A"]) == set(point["B"]) == SIDE_KEYS
    for run in told["runs"]:
        assert set(run) == {"policy", "wanted_dt_s", "dt_s", "A", "B"}
        assert set(run["A"]) == {"io_s", "wait_s", "interruptions"}


# ---- simulated ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sharing", ["fair", "proportional"])
def test_the_simulator_does_what_is_expected(tmp_path, capsys, sharing):
    told = simulate(tmp_path, *DTS, "--sharing", sharing, "--plot", str(tmp_path / "delta.png"))
    check_schema(told)
    assert [one["alone_s"] for one in told["applications"]] == pytest.approx([23.25, 0.75])
    assert len(told["points"]) == len(POLICIES) * 17
    for point in told["points"]:
        where = (point["policy"], point["wanted_dt_s"])
        assert point["dt_s"] == point["wanted_dt_s"], where
        for name in ("A", "B"):
            side = point[name]
            assert side["io_s"] == pytest.approx(side["expected_s"], abs=1e-6), (where, name)
        assert point["cost"] == pytest.approx(point["expected_cost"], rel=1e-6), where
    assert Image.open(tmp_path / "delta.png").size[0] > 1000
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"A alone: 23.250 s, 744 processes: {LARGE}"
    assert [line.split()[0] for line in lines[3:] if not line.startswith(" ")] == ["policy", *POLICIES]


def test_the_small_one_is_helped_by_interruption(tmp_path):
    told = simulate(tmp_path, "--metric", "interference", "--from", "5", "--to", "5", "--step", "1")
    factors = {point["policy"]: point["B"]["factor"] for point in told["points"]}
    assert factors == pytest.approx({"interfere": 2.0, "fcfs": 25.333, "interrupt": 1.0, "dynamic": 1.0}, rel=1e-3)
    stops = {point["policy"]: point["A"]["interruptions"] for point in told["points"]}
    assert stops == {"interfere": 0, "fcfs": 0, "interrupt": 1, "dynamic": 1}


def test_with_files_alone_there_is_a_saw(tmp_path):
    four, one = "processes=2048,bytes=800m,files=4", "processes=2048,bytes=200m"
    words = ["--policies", "interrupt", "--from", "0.25", "--to", "9.75", "--step", "0.5"]
    told = simulate(tmp_path, *words, "--grain", "file", large=four, small=one)
    times = [point["B"]["io_s"] for point in told["points"]]
    assert times == pytest.approx([point["B"]["expected_s"] for point in told["points"]], abs=1e-6)
    assert times[:4] == pytest.approx([3.75, 3.25, 2.75, 2.25])
    assert times[4:8] == pytest.approx(times[:4])
    assert [point["A"]["interruptions"] for point in told["points"]] == [1] * 12 + [0] * 8
    never = simulate(tmp_path, *words, "--grain", "phase", large=four, small=one)
    assert {point["A"]["interruptions"] for point in never["points"]} == {0}


def test_dynamic_finds_the_boundary_of_the_decision(tmp_path):
    large, small = "processes=2048,bytes=800m", "processes=2048,bytes=200m"  # 8 and 2 s alone: interrupt before 6 s
    words = ["--policies", "dynamic", "--from", "5.5", "--to", "6.5", "--step", "0.1"]
    told = simulate(tmp_path, *words, large=large, small=small)
    assert [point["A"]["io_s"] for point in told["points"] if point["dt_s"] < 5.95] == pytest.approx([10.0] * 5)
    assert [point["A"]["io_s"] for point in told["points"] if point["dt_s"] > 6.05] == pytest.approx([8.0] * 5)


def test_a_formula_is_a_metric(tmp_path):
    told = simulate(tmp_path, "--metric", "max(io_time/alone)", *RANGE)
    assert told["metric"] == "max(io_time/alone)"
    by_policy = {point["policy"]: point["cost"] for point in told["points"] if point["dt_s"] == 1}
    assert by_policy["dynamic"] == pytest.approx(min(by_policy.values()))


def test_json_alone_goes_to_standard_output(capsys):
    words = ["--app", LARGE, "--app", SMALL, "--policies", "fcfs", *RANGE]
    assert main(["delta", "--simulate", *words, "--json", "-"]) == 0
    check_schema(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--app", LARGE], "--app is given 1 times: give it twice"),
        (["--app", LARGE] * 3, "--app is given 3 times"),
        (["--app", LARGE, "--app", SMALL, "--step", "0"], "--step 0: give more than 0"),
        (["--app", LARGE, "--app", SMALL, "--step", "-1"], "--step -1: give more than 0"),
        (["--app", LARGE, "--app", SMALL, "--from", "3"], "--from 3 --to 1: the first dt is after the last one"),
        (["--app", LARGE, "--app", SMALL, "--step", "1e-6"], "more than 2000 dts"),
        (["--app", LARGE, "--app", SMALL, "--to", "nan"], "--to nan: give seconds"),
        (["--app", LARGE, "--app", SMALL, "--to", "1999"], "are too many (at most 2000 points)"),
        (["--app", LARGE, "--app", SMALL, "--policies", ","], "--policies ',': give names"),
        (["--app", LARGE, "--app", SMALL, "--policies", "fcsf"], "fcsf"),
        (["--app", LARGE, "--app", SMALL, "--metric", "cpu_time"], "cpu_time"),
        (["--app", LARGE, "--app", SMALL, "--metric", "sum("], "sum("),
        (["--app", LARGE, "--app", "bytes=1g,size=2"], "'size=2': with --simulate give processes=…"),
        (["--app", LARGE, "--app", "processes=2"], "bytes is missing"),
        (["--app", LARGE, "--app", "bytes=much"], "bytes = 'much': give a number"),
        (["--app", LARGE, "--app", "bytes=1g,processes=1.5"], "processes = 1.5: give a whole number"),
        (["--app", LARGE, "--app", SMALL, "--bandwidth", "0"], "--bandwidth 0: give 1 byte/s or more"),
        (["--app", LARGE, "--app", SMALL, "--bandwidth", "fast"], "--bandwidth 'fast': give a number of bytes"),
        (["--app", LARGE, "--app", SMALL, "--limit", "1m", "/tmp"], "--limit and --traces are for real applications"),
        (["--app", LARGE, "--app", SMALL, "--json", "/nowhere/x"], "there is no directory /nowhere"),
        (["--app", LARGE, "--app", SMALL, "--repetitions", "0"], "--repetitions 0: give 1 or more"),
    ],
)
def test_a_wrong_call_is_one_line(capsys, words, told):
    assert told in complaint(capsys, "--simulate", *RANGE, *words)


# ---- real applications --------------------------------------------------------------------------------------------


@pytest.fixture
def mpich(monkeypatch) -> Mpi:
    mpi = Mpi("mpich")
    for key, value in mpi.environment().items():
        monkeypatch.setenv(key, value)
    return mpi


@pytest.fixture
def s_ior(mpich, prefix, memory):
    """Return a function that makes a command: it writes `mib` in one phase, in collective calls of 1 MiB a rank."""
    (memory / "target").mkdir()

    def command(name: str, mib: int, *more: object, ranks: int = 2) -> str:
        words = mpich.command(ranks, mpich.app("s_ior", prefix), "-o", memory / "target" / name, "-w", "-p", 1)
        return " ".join(map(str, [*words, "-t", "1m", "-b", f"{mib // ranks}m", *more]))

    return command


def left_running(what: str) -> list[str]:
    """Return the command lines, of processes below this one, that contain `what`. Orphans are below this one."""
    lines = []
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            lines.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in lines if what in line]


def least_s(mib: int, accesses: int) -> float:
    """Return the least time at 40 MiB/s. An idle target takes kSlackNs (limited_target.c) of each access at once."""
    return 0.95 * (mib / 40 - accesses * 0.01)


def replay(trace: Path) -> subprocess.CompletedProcess:
    command = [str(paths.hocketd()), "--replay", str(trace)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def check_traces(directory: Path) -> None:
    """Check that each run has one trace with its applications only, and that hocketd can replay each trace.

    A trace continues those of the runs before. Its replay fails if one of them is missing.
    """
    traces = sorted(directory.glob("*.jsonl"), key=lambda path: int(path.stem.rsplit("-", 1)[1]))
    assert len(traces) == 2 + 8
    for trace in traces:
        applications = analyse(read_trace(trace)).applications
        assert [one.end_ns is not None for one in applications] == [True] * (1 if "alone" in trace.name else 2)
        done = replay(trace)
        assert (done.returncode, done.stderr) == (0, ""), trace
    traces[0].rename(traces[0].with_suffix(".moved"))
    done = replay(traces[-1])
    assert done.returncode == 1
    assert f"{traces[1]}, line 1: the trace continues {traces[0]}, which does not exist" in done.stderr


@pytest.mark.timeout(LIVE_LIMIT_S)
@pytest.mark.parametrize(("grain", "ranks"), [("round", 1), ("file", 2)])
def test_two_small_programs(tmp_path, memory, s_ior, capsys, monkeypatch, grain, ranks):
    # Each program has one phase. A blocked machine may leave long gaps between its accesses.
    monkeypatch.setattr("hocket.delta.live.first_phase", functools.partial(first_phase, gap_s=60))
    out, traces = tmp_path / "delta.json", tmp_path / "traces"
    words = [
        "--app",
        s_ior("a", 32),
        "--app",
        s_ior("b", 4, ranks=ranks),
        "--from",
        "-0.2",
        "--to",
        "0.4",
        "--step",
        "0.6",
    ]
    words += ["--limit", "40m", str(memory / "target"), "--grain", grain, "--traces", str(traces)]
    assert main(["delta", *words, "--json", str(out), "--plot", str(tmp_path / "delta.png")]) == 0
    told = json.loads(out.read_text())
    check_schema(told)
    a, b = told["applications"]
    assert (a["processes"], b["processes"], a["accesses"], b["accesses"]) == (2, ranks, 16, 4 // ranks)
    assert a["target"] == b["target"]
    assert a["alone_s"] >= least_s(32, 16) and b["alone_s"] >= least_s(4, 4 // ranks)
    assert sorted(point["policy"] for point in told["points"]) == sorted(POLICIES * 2)
    for run in told["runs"]:
        # The storage below the limited target may stall for seconds.
        assert abs(run["dt_s"] - run["wanted_dt_s"]) < 60, run
        assert run["A"]["io_s"] >= least_s(32, 16), run
    check_traces(traces)
    assert Image.open(tmp_path / "delta.png").size[0] > 1000
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0].startswith("A alone: ")
    same = "A and B are the same program with equal numbers of processes"  # the warning also needs different times
    assert (same in captured.err) == (ranks == 2)
    assert left_running("hocketd") == []


@pytest.mark.parametrize(
    ("app", "told"),
    [
        # A program without MPI that ends at once sometimes makes MPICH's mpiexec die of SIGPIPE. This one takes a
        # second.
        ("mpiexec -n 1 timeout 1 sleep 9", "B ('mpiexec -n 1 timeout 1 sleep 9') ended with exit code 124"),
        ("no-such-launcher -n 1 x", "no-such-launcher: no such program"),
        ("mpiexec -n 1 'x", "No closing quotation"),
        ("", "give the launcher and its arguments"),
    ],
)
def test_a_program_that_fails_is_named(s_ior, capsys, app, told):
    assert main(["delta", "--app", s_ior("a", 2), "--app", app, "--policies", "fcfs", *RANGE]) != 0
    err = capsys.readouterr().err.splitlines()
    assert told in err[-1], err
    assert left_running("hocketd") == []


def test_a_program_that_fails_is_told_with_its_last_line(s_ior, capsys):
    bad = s_ior("b", 2).replace("/target/", "/nowhere/")
    assert main(["delta", "--app", s_ior("a", 2), "--app", bad, "--policies", "fcfs", *RANGE]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("hocket: B ('") and "ended with exit code" in line and "nowhere" in line


def test_a_program_without_io_is_named(mpich, built_for, s_ior, library, tmp_path, capsys):
    idle = tmp_path / "idle.c"
    idle.write_text("#include <mpi.h>\nint main(int c, char** v) { MPI_Init(&c, &v); MPI_Finalize(); return 0; }\n")
    subprocess.run([mpich.bin / "mpicc", idle, "-o", tmp_path / "idle"], check=True, timeout=60)
    apps = ["--app", s_ior("a", 2), "--app", f"mpiexec -n 2 {tmp_path}/idle"]
    assert main(["delta", *apps, "--policies", "fcfs", *RANGE]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"hocket: B ('mpiexec -n 2 {tmp_path}/idle') did no I/O")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--policies", "fcsf"], "fcsf"),
        (["--policies", "dynamic", "--metric", "sum(cores)"], "cores"),
        (["--grain", "phase"], "--grain phase is for --simulate"),
        (["--limit", "1m", "/nowhere"], "'/nowhere' is no directory"),
        (["--timeout", "0"], "--timeout 0: give more than 0 seconds"),
    ],
)
def test_what_is_refused_is_refused_before_anything_is_run(s_ior, memory, capsys, words, told):
    assert told in complaint(capsys, "--app", s_ior("a", 2), "--app", s_ior("b", 2), *RANGE, *words)
    assert list((memory / "target").iterdir()) == []


def test_a_run_that_takes_too_long_is_ended_and_named(s_ior, capsys):
    slow = s_ior("a", 2, "-d", 60)
    assert main(["delta", "--app", slow, "--app", slow, "--policies", "fcfs", *RANGE, "--timeout", "3"]) == 1
    assert "run alone-A: A did not end within 3 s (--timeout)" in capsys.readouterr().err.splitlines()[-1]
    assert left_running("hocketd") == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_daemon_and_the_programs(s_ior, memory, number, code):
    slow = s_ior("a", 2, "-d", 60)
    words = ["delta", "--app", slow, "--app", slow, "--policies", "fcfs", *RANGE]
    process = subprocess.Popen(
        [sys.executable, "-m", "hocket.cli", *words], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 30
    while not (memory / "target" / "a").exists():  # opened before it computes
        assert time.monotonic() < deadline and process.poll() is None, "A was not started"
        time.sleep(0.05)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code, err
    assert left_running("hocketd") == []
    file = str(memory / "target" / "a")
    runtime_kit.wait_until(lambda: not left_running(file), 10, f"the end of the processes that write {file}")
