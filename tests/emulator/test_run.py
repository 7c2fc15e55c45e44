"""Emulated applications, run with both MPIs, with and without a daemon."""

from __future__ import annotations

import math
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from emulator_kit import GROWING, LIMIT_S, ended, missing, waits_at_most
from mpi_launch import Mpi
from stand_in_hocketd import StandIn
from story import Story

pytestmark = pytest.mark.timeout(120)

EVERY_STAGE = """
name = "every-stage"
oversubscribe = true
seed = 3
[[group]]
processes = 3
iterations = 4
[[phase]]
iterations = 1
[[phase.stage]]
kind = "sleep"
time_s = 0.01
jitter = 0.1
[[phase]]
[[phase.stage]]
kind = "compute"
time_s = 0.003
imbalance = 1.5
jitter = 0.1
[[phase.stage]]
kind = "compute"
name = "cpu"
time_s = 0.003
ends_by = "cpu-time"
[[phase.stage]]
kind = "memory"
time_s = 0.003
granularity = 64
ends_by = "time"
[[phase.stage]]
kind = "isend-irecv"
bytes = 3000
shares = { 3 = [0.5, 0.25, 0.25] }
[[phase.stage]]
kind = "sendrecv"
bytes = 3000
shares = { 3 = [0.5, 0.25, 0.25] }
[[phase.stage]]
kind = "wait"
[[phase.stage]]
kind = "broadcast"
bytes = "64k"
[[phase.stage]]
kind = "allgatherv"
bytes = 3001
shares = { 3 = [0, 0.25, 0.75] }
[[phase.stage]]
kind = "reduce"
bytes = 4
[[phase.stage]]
kind = "allreduce"
time_s = 0.003
[[phase.stage]]
kind = "alltoall"
bytes = 3000
[[phase.stage]]
kind = "alltoall"
bytes = 3000
imbalance = 1.5
distribution = "random"
[[phase.stage]]
kind = "halo"
bytes = 100
dimensions = 2
repeat = 2
[[phase.stage]]
kind = "write"
file = "collective"
bytes = 1000
append = true
request_bytes = 100
pattern = "strided"
shares = { 3 = [0.5, 0.25, 0.25] }
[[phase.stage]]
kind = "write"
file = "independent"
access = "independent"
bytes = 1000
every = 2
sync = true
[[phase.stage]]
kind = "write"
file = "own"
access = "file-per-process"
bytes = 999
append = true
repeat = 2
[[phase.stage]]
kind = "write"
file = "posix"
access = "posix"
bytes = 1000
append = true
repeat = 2
request_bytes = 64
[[phase.stage]]
kind = "read"
file = "posix"
bytes = 1000
[[phase.stage]]
kind = "read"
file = "own"
access = "file-per-process"
bytes = 999
[[phase.stage]]
kind = "read"
file = "other"
access = "posix"
bytes = 1001
"""
TIMED_ACCESSES = """
name = "timed"
[[group]]
processes = 2
iterations = 5
[[group]]
processes = 3
iterations = 5
[[phase]]
[[phase.stage]]
name = "together"
kind = "write"
file = "together"
bytes = 6000
time_s = 0.04
append = true
[[phase.stage]]
name = "alone"
kind = "write"
file = "alone"
access = "independent"
bytes = 6000
time_s = 0.04
shares = { 2 = [0, 1], 3 = [0.5, 0, 0.5] }
[[phase.stage]]
name = "own"
kind = "write"
file = "mine"
access = "file-per-process"
bytes = 6000
time_s = 0.04
factors = { 1 = 1.0, 3 = 0.5 }
append = true
[[phase.stage]]
name = "reads"
kind = "read"
file = "input"
access = "posix"
bytes = 6000
request_bytes = 1000
time_s = 0.04
every = 5
repeat = 2
"""


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_every_kind_of_stage(emulate: Callable[..., subprocess.Popen], tmp_path: Path, mpi: str):
    code, figures, err = ended(emulate(mpi, EVERY_STAGE, "--no-daemon"))
    assert (code, figures["complete"], figures["iterations"]) == (0, True, 4), err
    first, second = figures["groups"]
    assert list(first["stages"]) == ["sleep"] and len(second["stages"]) == 20
    assert second["stages"]["cpu"]["median_s"] > 0.9e-3, "a third of its CPU time on each of three ranks"
    sizes = {
        path.name: path.stat().st_size
        for path in tmp_path.iterdir()
        if path.name[:3] in ("col", "ind", "own", "pos", "oth")
    }
    each = 999 // 3 * 2 * 3
    own = {f"own.{rank}": each for rank in range(3)}
    assert sizes == {"collective": 3000, "independent": 1000, **own, "posix": 6000, "other": 1001}


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_an_access_that_ends_by_time_is_repeated_until_then(
    emulate: Callable[..., subprocess.Popen], tmp_path: Path, mpi: str
):
    code, figures, err = ended(emulate(mpi, TIMED_ACCESSES, "--no-daemon"))
    assert (code, figures["complete"], figures["iterations"]) == (0, True, 10), err
    for group, own_s in zip(figures["groups"], (0.04 * 0.5 ** (math.log(2) / math.log(3)), 0.02), strict=True):
        lengths = {name: one["most_s"] for name, one in group["stages"].items()}
        for name, least_s in (("together", 0.04), ("alone", 0.04), ("own", own_s), ("reads", 0.08)):
            assert 0.5 * least_s < lengths[name] < least_s + 0.5, (name, lengths)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir() if path.is_file()}
    assert sizes["together"] % 6000 == 0 and sizes["together"] > 6000
    assert (sizes["alone"], sizes["input"]) == (6000, 6000)
    assert sizes["mine.0"] > 20 * 3000 and sizes["mine.2"] % 2000 == 0


AT_ONCE = [(1, 3, 3), (3, 2, 7)]
IN_BACKGROUND = 'spawn_strategy = "single-async"\nredistribution_strategy = "wait-targets"'


@pytest.mark.parametrize(
    ("mpi", "methods"), [("mpich", ""), ("openmpi", ""), ("mpich", 'spawn = "baseline"'), ("mpich", IN_BACKGROUND)]
)
def test_each_reconfiguration_takes_place(emulate: Callable[..., subprocess.Popen], mpi: str, methods: str):
    code, figures, err = ended(emulate(mpi, GROWING.format(methods=methods), "--no-daemon"))
    assert (code, figures["complete"], figures["iterations"], figures["missing_resizes"]) == (0, True, 10, []), err
    made = [(one["from"], one["to"], one["iteration"]) for one in figures["resizes"]]
    assert made == AT_ONCE or (methods == IN_BACKGROUND and [one[:2] for one in made] == [(1, 3), (3, 2)])
    assert [one["processes"] for one in figures["groups"]] == [1, 3, 2]
    assert all(one["bytes_moved"] > 0 for one in figures["resizes"])


@pytest.mark.parametrize(("mpi", "methods"), [("mpich", ""), ("openmpi", ""), ("mpich", IN_BACKGROUND)])
def test_unequal_data_are_redistributed_by_their_shares(
    emulate: Callable[..., subprocess.Popen], mpi: str, methods: str
):
    shares = "constant_percent = 75\nshares = { 2 = [0.9, 0.1], 3 = [0.8, 0, 0.2] }"
    text = GROWING.format(methods=methods).replace("constant_percent = 75", shares)
    code, figures, err = ended(emulate(mpi, text, "--no-daemon"))
    assert (code, figures["complete"], figures["missing_resizes"]) == (0, True, []), err
    grown, shrunk = figures["resizes"]
    # The first process keeps its 80 %. Afterwards it gets the first half of the 20 % of another process.
    assert grown["bytes_moved"] == pytest.approx(200_000, abs=200)
    assert shrunk["bytes_moved"] == pytest.approx(100_000, abs=200)


@pytest.mark.parametrize(("mpi", "spawn"), [("mpich", "merge"), ("mpich", "baseline"), ("openmpi", "merge")])
def test_replicated_data_go_to_each_new_process(emulate: Callable[..., subprocess.Popen], mpi: str, spawn: str):
    replicated = "[data]\nreplicated_bytes = 500_001\nreplicated_constant_percent = 40"
    text = GROWING.format(methods=f'spawn = "{spawn}"')
    text = text.replace("[data]\nbytes = 1_000_003\nconstant_percent = 75", replicated)
    code, figures, err = ended(emulate(mpi, text, "--no-daemon"))
    assert (code, [one["to"] for one in figures["resizes"]]) == (0, [3, 2]), err
    copies = 2 if spawn == "merge" else 3
    assert figures["resizes"][0]["bytes_moved"] == pytest.approx(copies * 500_001, abs=200)


@pytest.mark.parametrize("distribution", ["linear", "one", "random"])
def test_data_with_an_imbalance_are_whole_after_each_resize(
    emulate: Callable[..., subprocess.Popen], distribution: str
):
    sharing = f'constant_percent = 75\nimbalance = 1.8\ndistribution = "{distribution}"'
    text = GROWING.format(methods="").replace("constant_percent = 75", sharing)
    code, figures, err = ended(emulate("mpich", text, "--no-daemon"))
    assert (code, [one["to"] for one in figures["resizes"]]) == (0, [3, 2]), err


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_it_is_an_application_of_the_daemon(
    emulate: Callable[..., subprocess.Popen], cores: Callable[[int], Story], mpi: str
):
    story = cores(4)
    code, figures, err = ended(emulate(mpi, GROWING.format(methods="")))
    assert (code, [one["to"] for one in figures["resizes"]]) == (0, [3, 2]), err
    assert story.awaits("RECONFIGURATION", application="growing")


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_a_resize_that_cannot_come_ends_the_wait(
    emulate: Callable[..., subprocess.Popen], cores: Callable[[int], Story], mpi: str
):
    cores(2)
    code, figures, err = ended(emulate(mpi, GROWING.format(methods="")))
    assert (code, figures["complete"], figures["iterations"]) == (1, True, 10), err
    assert figures["missing_resizes"][0] == {"iteration": 3, "from": 1, "to": 3}
    assert "emulator: no resize from 1 to 3 processes: iteration 3 continues without it" in err
    assert figures["control_points_s"] < 50, "a refusal ends the wait, not the limit of 60 s"


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_an_answer_that_never_comes_ends_the_wait_at_its_limit(
    emulate: Callable[..., subprocess.Popen], controller: StandIn, monkeypatch: pytest.MonkeyPatch, mpi: str
):
    """The stand-in for hocketd takes the requests, and never answers them."""
    monkeypatch.setenv("HOCKET_SOCKET", str(controller.socket))
    code, figures, err = ended(emulate(mpi, waits_at_most(0.5)))
    assert (code, figures["complete"], figures["iterations"]) == (1, True, 10), err
    assert missing(figures) == [(1, 3, 3), (1, 2, 7)] and figures["resizes"] == []
    assert [one["processes"] for one in controller.events("RESIZE")] == [3, 2]
    assert 1.0 <= figures["control_points_s"] < 30, "two waits of 0.5 s"
    assert "hocketd has not answered in time whether the program may have 3 processes: it continues without them" in err
    assert "emulator: no resize from 1 to 3 processes: iteration 3 continues without it" in err


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_a_daemon_that_dies_ends_the_wait(
    emulate: Callable[..., subprocess.Popen], controller: StandIn, monkeypatch: pytest.MonkeyPatch, mpi: str
):
    """The next resize takes place: without hocketd the application resizes itself."""
    monkeypatch.setenv("HOCKET_SOCKET", str(controller.socket))
    process = emulate(mpi, waits_at_most(3600))
    controller.await_events("RESIZE", 1, LIMIT_S / 2)
    controller.kill()
    code, figures, err = ended(process)
    assert (code, figures["complete"], figures["iterations"]) == (1, True, 10), err
    assert missing(figures) == [(1, 3, 3)] and [one["to"] for one in figures["resizes"]] == [2]
    assert "not resized from 1 to 3 processes: the connection to hocketd ended before it answered" in err


SLEEPING_RANKS, SLEPT_S = 64, 8
SLEEPING = f"""
name = "sleeping"
[[group]]
processes = {SLEEPING_RANKS}
iterations = 4
[[phase]]
[[phase.stage]]
kind = "sleep"
time_s = {SLEPT_S / 4}
"""


def test_many_ranks_that_sleep_leave_the_cores_to_others(
    emulate: Callable[..., subprocess.Popen], cores: Callable[[int], Story]
):
    """Together they need less than a tenth of one core, control points and records included."""
    cores(SLEEPING_RANKS)
    code, figures, err = ended(emulate("mpich", SLEEPING))
    assert (code, figures["complete"]) == (0, True), err
    (group,) = figures["groups"]
    assert (group["processes"], group["iterations"]) == (SLEEPING_RANKS, 4)
    assert group["stages"]["sleep"]["sum_s"] >= SLEPT_S
    assert figures["cpu_s"] < 0.1 * SLEPT_S, figures


def test_an_interrupted_run_leaves_a_record(emulate: Callable[..., subprocess.Popen], tmp_path: Path):
    text = GROWING.format(methods="").replace("iterations = 3\n[[phase]]", "iterations = 1_000_000\n[[phase]]")
    process = emulate("mpich", text, "--no-daemon")
    record = tmp_path / "record"
    while process.poll() is None and not (record.exists() and record.read_text().count('"processes":2') > 1):
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
    process.send_signal(signal.SIGTERM)
    code, figures, err = ended(process)
    assert code != 0 and not figures["complete"], err
    assert figures["iterations"] > 7 and [one["to"] for one in figures["resizes"]] == [3, 2]


def test_a_file_that_cannot_be_written_is_one_line(emulate: Callable[..., subprocess.Popen], tmp_path: Path):
    (tmp_path / "out").mkdir()
    text = GROWING.format(methods="").replace('kind = "allreduce"', 'kind = "write"\nfile = "out"\naccess = "posix"')
    process = emulate("mpich", text, "--no-daemon")
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode != 0
    assert f"emulator: cannot write {tmp_path}/out: Is a directory" in err


def test_operations_are_measured_without_a_launcher(prefix: Path):
    program = Mpi("mpich").app("emulator", prefix)
    ran = subprocess.run(
        [program, "--calibrate", "0.05", "compute:1000", "memory:64"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    found = dict(line.split() for line in ran.stdout.splitlines())
    assert list(found) == ["compute:1000", "memory:64"] and all(0 < float(one) < 1 for one in found.values())
