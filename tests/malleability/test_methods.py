"""Malleable programs on each MPI: every method, from any size to any other; each iteration checks each element."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import time
from pathlib import Path

import malleable_kit as kit
import pytest
import runtime_kit
from mpi_launch import Mpi
from processes import descendants

pytestmark = pytest.mark.timeout(100)
mpich = pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
openmpi = pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)

WALKS = {1: [3, 6, 2, 4], 4: [6, 1, 3, 2]}  # by the number of original ranks
FOREGROUND = ["plain", "single", "parallel"]
BACKGROUND = ["async", "single-async", "parallel-async"]


# ---- how processes are started ---------------------------------------------------------------------------------------


@mpich
@pytest.mark.parametrize("strategy", FOREGROUND)
@pytest.mark.parametrize(("worlds", "ranks"), [("process", 1), ("process", 4), ("node", 1), ("node", 4)])
@pytest.mark.parametrize("spawn", ["merge", "baseline"])
def test_spawn(probe, spawn, strategy, worlds, ranks):
    how = {"HOCKET_SPAWN": spawn, "HOCKET_SPAWN_STRATEGY": strategy, "HOCKET_WORLDS": worlds}
    probe.resized(ranks, WALKS[ranks], **how)


@mpich
@pytest.mark.parametrize("strategy", BACKGROUND)
@pytest.mark.parametrize(("worlds", "ranks"), [("process", 4), ("node", 1)])
@pytest.mark.parametrize("spawn", ["merge", "baseline"])
def test_spawn_beside_the_computation(probe, spawn, strategy, worlds, ranks):
    how = {"HOCKET_SPAWN": spawn, "HOCKET_SPAWN_STRATEGY": strategy, "HOCKET_WORLDS": worlds}
    probe.resized_in_background(ranks, WALKS[ranks], **how)


@mpich
@pytest.mark.timeout(330)
@pytest.mark.parametrize("ranks", [1, 4])
def test_any_size_to_any_other(probe, ranks):
    sizes = kit.every_pair(8, ranks, seed=ranks)
    assert set(itertools.pairwise([ranks, *sizes])) == set(itertools.permutations(range(1, 9), 2))
    probe.resized(ranks, sizes, limit_s=300)


@mpich
def test_starts_with_as_many_as_were_asked_for(probe):
    done = probe.run(1, 6, HOCKET_PROCESSES="4", HOCKET_RESIZE="3:2")
    kit.check(done, [(0, 4), (3, 2)], 6)


@mpich
@pytest.mark.parametrize(
    ("spawn", "worlds", "ranks", "sizes"),
    [
        ("merge", "process", 1, [3, 6, 2, 4]),
        ("merge", "node", 2, [4, 1, 3]),
        ("baseline", "process", 2, [3, 1]),
    ],
)
def test_join(probe, start_daemon, tmp_path, spawn, worlds, ranks, sizes):
    """hocketd starts the processes while the application computes."""
    config = tmp_path / "hocket.toml"
    config.write_text("[coordinator]\ncores = 16\n")
    daemon = start_daemon("--config", config)
    how = {"HOCKET_SPAWN": spawn, "HOCKET_WORLDS": worlds, "HOCKET_SPAWN_STRATEGY": "join"}
    probe.resized_in_background(ranks, sizes, **runtime_kit.settings(daemon.socket), **how)


LIMIT_S = 8  # of processes that wait for each other; the iteration of test_a_long_iteration… is longer


def long_iteration(probe: kit.Probe, hold: kit.Hold, start: str, move: str, **settings: str) -> None:
    """Check a resize that begins before iteration 1, which then takes longer than HOCKET_RESIZE_MAX_S in rank 0."""
    hold.at(1)
    job = probe.start(
        2, 10**6, ms=1, HOCKET_RESIZE="1:3", PROBE_RESIZES="1", HOCKET_RESIZE_MAX_S=str(LIMIT_S),
        HOCKET_SPAWN_STRATEGY=start, HOCKET_REDISTRIBUTION_STRATEGY=move, **settings, **hold.setting,
    )  # fmt: skip
    job.reads("^held 1 ")

    def has_new() -> bool:
        return sum(kit.runs(pid, probe.program) for pid in descendants(os.getpid())) >= 3

    runtime_kit.wait_until(lambda: has_new() or job.process.poll() is not None, 30, "a new process")
    time.sleep(LIMIT_S + 2)  # the time that this test is about
    hold.release(1)
    done = job.ends()
    steps = kit.told(done)
    assert [size for _, size in steps] == [2, 3], f"{done.out}{done.err}"
    kit.check(done, steps, steps[-1][0] + 2)


@mpich
@pytest.mark.parametrize(("start", "move"), [*((start, "blocking") for start in BACKGROUND), ("async", "thread")])
def test_a_long_iteration_ends_no_resize(probe, hold, start, move):
    long_iteration(probe, hold, start, move)


@openmpi
@pytest.mark.parametrize("start", ["async", "single-async"])
def test_a_long_iteration_ends_no_resize_under_openmpi(probe, hold, start):
    long_iteration(probe, hold, start, "blocking")


@mpich
def test_a_long_iteration_ends_no_join(probe, hold, start_daemon, tmp_path):
    config = tmp_path / "hocket.toml"
    config.write_text("[coordinator]\ncores = 16\n")
    daemon = start_daemon("--config", config)
    long_iteration(probe, hold, "join", "blocking", **runtime_kit.settings(daemon.socket))

    def resizes() -> list[tuple[int, bool]]:
        lines = map(json.loads, daemon.trace.read_text().splitlines()[:-1])
        return [(line["targets"], line["done"]) for line in lines if line.get("in") == "RECONFIGURATION"]

    # hocketd writes its trace with a delay.
    runtime_kit.wait_until(lambda: resizes()[-1:] == [(3, True)], 10, "the resize to 3 in the trace")


# ---- how data move ---------------------------------------------------------------------------------------------------

METHODS = ["collective", "p2p", "rma-lock", "rma-lockall"]


@mpich
@pytest.mark.parametrize("method", METHODS)
def test_redistribution(probe, method):
    probe.resized(2, [5, 3, 1, 4], HOCKET_REDISTRIBUTION=method)


@mpich
@pytest.mark.parametrize("strategy", ["wait-sources", "wait-targets", "thread"])
@pytest.mark.parametrize("method", METHODS)
def test_redistribution_beside_the_computation(probe, method, strategy):
    how = {"HOCKET_REDISTRIBUTION": method, "HOCKET_REDISTRIBUTION_STRATEGY": strategy}
    probe.resized_in_background(2, [5, 3, 1, 4], **how)


@mpich
@pytest.mark.parametrize("spawn", ["merge", "baseline"])
def test_both_beside_the_computation(probe, spawn):
    how = {"HOCKET_SPAWN": spawn, "HOCKET_SPAWN_STRATEGY": "async", "HOCKET_REDISTRIBUTION_STRATEGY": "thread"}
    probe.resized_in_background(2, [4, 1, 3], **how)


two_nodes = pytest.mark.parametrize("mpi", ["mpich_on_two_nodes"], indirect=True)


@two_nodes
@pytest.mark.parametrize("method", METHODS)
def test_sleepers_of_another_node_wake(probe, method):
    probe.resized(5, [1, 5, 2, 4, 3, 5], HOCKET_REDISTRIBUTION=method)


@two_nodes
@pytest.mark.parametrize("strategy", FOREGROUND)
@pytest.mark.parametrize(("spawn", "sizes"), [("merge", [4, 1, 3]), ("baseline", [4])])
def test_spawn_on_two_nodes(probe, spawn, sizes, strategy):
    """mpiexec cannot start more processes once all of a node's first ones have ended, as they do in baseline."""
    probe.resized(2, sizes, HOCKET_SPAWN=spawn, HOCKET_SPAWN_STRATEGY=strategy)


@two_nodes
@pytest.mark.parametrize("strategy", BACKGROUND)
def test_spawn_on_two_nodes_beside_the_computation(probe, strategy):
    probe.resized_in_background(2, [4, 1, 3], HOCKET_SPAWN_STRATEGY=strategy)


@mpich
def test_shares_follow_the_speed_through_resizes(probe):
    """Rank 0 reports half the speed; each fifth iteration redistributes the weighted array."""
    done = probe.run(2, 22, PROBE_BALANCE="1", HOCKET_RESIZE="7:4,12:3,17:1")
    assert done.code == 0, done.err
    sizes = dict(kit.told(done))
    assert {7: 4, 12: 3, 17: 1}.items() <= sizes.items(), done.out
    assert 5 in sizes, f"it was not shared out anew at iteration 5:\n{done.out}"
    assert done.out.splitlines()[-1].startswith("ok 22 processes 1 sum ")


@mpich
@pytest.mark.parametrize(("ranks", "size", "share"), [(2, 4, 1 / 6), (4, 3, 1 / 5)])
def test_a_resize_shares_out_by_the_speeds_of_its_own_control_point(probe, ranks, size, share):
    """Rank 0 has half the speed of the other sources. New processes count as fast as the sources on average."""
    done = probe.run(ranks, 7, PROBE_BALANCE="1", HOCKET_RESIZE=f"5:{size}")
    assert done.code == 0, done.err
    found = re.search(rf"^iteration 5 processes {size} share (\d+)$", done.out, re.M)
    assert found, done.out
    assert abs(int(found[1]) - share * kit.LENGTH) <= 1


# ---- who leaves, and who sleeps --------------------------------------------------------------------------------------


@mpich
def test_processes_of_a_world_of_their_own_end(probe, hold):
    hold.at(5, 8)
    job = probe.start(1, 10**6, HOCKET_RESIZE="5:4,8:1,11:2", PROBE_RESIZES="3", **hold.setting)
    job.reads("^held 5 ")
    first, *others = job.await_pids(lambda pids: len(pids) == 4, "4 processes")
    hold.release(5)
    job.reads("^held 8 ")
    job.await_pids(lambda pids: pids == [first], f"the end of {others}")
    hold.release(8)
    assert job.ends().code == 0


@mpich
def test_original_ranks_sleep_and_wake(probe, hold):
    """Ranks of one mpiexec cannot end alone: they use no core, free their memory, and are used again."""
    hold.at(4, 5, 8)
    job = probe.start(4, 17, length=1 << 20, HOCKET_RESIZE="5:1,8:4,11:1,14:6", **hold.setting)
    job.reads("^held 4 ")
    pids = job.await_pids(lambda pids: len(pids) == 4, "4 processes")
    large = {pid: kit.resident_mib(pid) for pid in pids}
    hold.release(4)
    job.reads("^held 5 ")
    runtime_kit.wait_until(
        lambda: sum(kit.resident_mib(pid) < large[pid] - 10 for pid in pids) == 3, 10, "three sleepers gave memory back"
    )
    asleep = [pid for pid in pids if kit.resident_mib(pid) < large[pid] - 10]
    before = {pid: kit.cpu_s(pid) for pid in asleep}
    since = time.monotonic()
    time.sleep(1)  # the CPU time in this second is measured
    for pid in asleep:
        used = (kit.cpu_s(pid) - before[pid]) / (time.monotonic() - since)
        assert used < 0.1, f"sleeper {pid} uses {used:.2f} of a core"
    hold.release(5)
    job.reads("^held 8 ")
    assert job.pids() == pids, "they were woken: nobody new was started"
    hold.release(8)
    done = job.ends()
    kit.check(done, [(0, 4), (5, 1), (8, 4), (11, 1), (14, 6)], 17, length=1 << 20)


# ---- real programs ---------------------------------------------------------------------------------------------------

ITERATIONS = ["--iterations", "40", "--tolerance", "0", "--print-every", "5"]
APPS = {
    "jacobi": ["--system", "system", "--generate", "48", *ITERATIONS],
    "cg": ["--stencil", "8", "--rows", "nonzeros", *ITERATIONS],
}


def numbers(name: str, ranks: int, prefix: Path, directory: Path, *options: str, **how: str) -> tuple[str, int, str]:
    """Return the program's output without times, its last number of processes, and its stderr."""
    launch = Mpi("mpich")
    command = [*launch.command(ranks, launch.app(name, prefix), *APPS[name]), *options]
    environment = {**launch.environment(), **runtime_kit.ENVIRONMENT, **how}
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{name} {how}: {done.returncode}\n{done.stdout}{done.stderr}"
    *lines, last = done.stdout.splitlines()
    summary = json.loads(last)
    kept = {key: value for key, value in summary.items() if key != "ranks" and not key.endswith(("seconds", "_s"))}
    return "\n".join([*lines, json.dumps(kept)]), summary["ranks"], done.stderr


HOW = [
    ("1", "merge", "plain", "process", "p2p", "blocking"),
    ("4", "merge", "parallel", "node", "collective", "blocking"),
    ("2", "baseline", "single", "process", "rma-lockall", "blocking"),
    ("4", "baseline", "plain", "node", "p2p", "blocking"),
    ("3", "merge", "single", "process", "rma-lock", "wait-targets"),
    ("1", "merge", "plain", "process", "p2p", "thread"),
]


@pytest.mark.parametrize("how", HOW, ids=["-".join(how) for how in HOW])
@pytest.mark.parametrize("name", APPS)
def test_programs_print_the_same_numbers(prefix, tmp_path, name, how):
    ranks, spawn, strategy, worlds, method, redistribution = how
    alone, _, _ = numbers(name, int(ranks), prefix, tmp_path)
    # Resizes that are late, since the program computes while data move, are completed when its iterations are done.
    resized, ended_with, said = numbers(
        name, int(ranks), prefix, tmp_path,
        HOCKET_RESIZE="3:5,9:2,15:8,21:3", HOCKET_RESIZE_WAIT_S="60",
        HOCKET_SPAWN=spawn, HOCKET_SPAWN_STRATEGY=strategy, HOCKET_WORLDS=worlds,
        HOCKET_REDISTRIBUTION=method, HOCKET_REDISTRIBUTION_STRATEGY=redistribution,
    )  # fmt: skip
    assert (resized, ended_with, said) == (alone, 3, "")


# ---- Open MPI --------------------------------------------------------------------------------------------------------


@openmpi
@pytest.mark.parametrize(
    ("ranks", "sizes", "how"),
    [
        (1, [3, 1, 2], {}),
        (2, [4, 1], {"HOCKET_SPAWN_STRATEGY": "single", "HOCKET_REDISTRIBUTION": "collective"}),
        (2, [4, 3], {"HOCKET_SPAWN_STRATEGY": "parallel", "HOCKET_REDISTRIBUTION": "p2p"}),
        (2, [3, 1], {"HOCKET_SPAWN": "baseline", "HOCKET_WORLDS": "node"}),
    ],
)
def test_openmpi(probe, ranks, sizes, how):
    probe.resized(ranks, sizes, **how)


@openmpi
@pytest.mark.parametrize(
    "how",
    [
        {"HOCKET_SPAWN_STRATEGY": "async", "HOCKET_REDISTRIBUTION_STRATEGY": "thread"},
        {"HOCKET_SPAWN_STRATEGY": "single-async", "HOCKET_REDISTRIBUTION_STRATEGY": "wait-targets"},
    ],
)
def test_openmpi_beside_the_computation(probe, how):
    probe.resized_in_background(1, [3, 2], **how)


@openmpi
def test_openmpi_says_that_it_cannot_join(probe):
    done = probe.run(1, 6, HOCKET_RESIZE="2:2", HOCKET_SPAWN_STRATEGY="join")
    assert done.err.splitlines() == [
        "hocket: HOCKET_SPAWN_STRATEGY=join: Open MPI cannot connect processes that it did not start: using plain"
    ]
    done.err = ""
    kit.check(done, [(0, 1), (2, 2)], 6)
