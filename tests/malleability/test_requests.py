"""Resizes that a program requests, control points that wait for them, methods of one resize, and their times."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import malleable_kit as kit
import pytest
import runtime_kit
from daemon_kit import Daemon
from hocket.bus import Bus

pytestmark = pytest.mark.timeout(100)
both = pytest.mark.parametrize("mpi", ["mpich", "openmpi"], indirect=True)
mpich = pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
AMPLE = str(kit.AMPLE_S)


@pytest.fixture
def cores(start_daemon, tmp_path) -> Callable[[int], Daemon]:
    """Return a function that starts a daemon which can allocate so many cores."""

    def start(count: int) -> Daemon:
        settings = tmp_path / "hocket.toml"
        settings.write_text(f"[coordinator]\ncores = {count}\n")
        return start_daemon("--config", settings)

    return start


def reported() -> list[dict]:
    """Return what the application has reported of its resizes to the daemon, from its trace."""
    traces = (Path(os.environ["HOCKET_DIR"]) / "traces").glob("*.jsonl")
    lines = [json.loads(line) for trace in traces for line in trace.read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("in") == "RECONFIGURATION" and line["sources"] != line["targets"]]


def times(done: runtime_kit.Run) -> dict:
    """Return the times that the probe printed at its end."""
    found = re.search("^times (.*)$", done.out, re.M)
    assert found, f"exit code {done.code}\n{done.out}{done.err}"
    return json.loads(found[1])


def ends(done: runtime_kit.Run, iterations: int, processes: int, err: str = "") -> None:
    """Check that the probe ended with this size, right numbers, and nothing else on stderr than `err`."""
    total = kit.LENGTH * (kit.LENGTH - 1) // 2 + kit.LENGTH * iterations
    said = f"exit code {done.code}\n{done.out}{done.err}"
    assert done.code == 0, said
    assert f"ok {iterations} processes {processes} sum {total}" in done.out.splitlines(), said
    assert done.err == err, said


# ---- requests of the program -----------------------------------------------------------------------------------------


@both
def test_a_program_resizes_itself_without_hocketd(probe):
    done = probe.run(1, 8, PROBE_REQUEST="2:3,5:1", PROBE_TIMES="1")
    kit.check(done, [(0, 1), (3, 3), (6, 1)], 8)
    last = times(done)
    assert (last["number"], last["sources"], last["destinations"], last["iteration"]) == (2, 3, 1, 6)
    assert last["started"] == 0
    assert last["moved"] > 0


@mpich
def test_hocketd_grants_what_the_program_requests(probe, cores):
    daemon = cores(4)
    how = {"PROBE_REQUEST": "2:3:single/node/collective,5:2", "PROBE_WAIT": f"2:{AMPLE},5:{AMPLE}"}
    done = probe.run(1, 8, **how, **runtime_kit.settings(daemon.socket))
    kit.check(done, [(0, 1), (3, 3), (6, 2)], 8)
    runtime_kit.wait_until(lambda: len(reported()) == 2, 30, "the trace has both resizes")
    first, second = reported()
    assert (first["spawn_strategy"], first["redistribution"]) == ("single", "collective")
    assert (second["spawn_strategy"], second["redistribution"]) == ("parallel", "p2p")
    assert first["request"] > 0


@mpich
def test_a_tool_chooses_the_methods_of_one_resize(probe, cores, hold):
    daemon = cores(8)
    hold.at(2)
    job = probe.start(1, 10**6, ms=1, PROBE_RESIZES="2", **hold.setting, **runtime_kit.settings(daemon.socket))
    job.reads("^held 2 ")
    with Bus.connect() as bus, Bus.connect() as other:
        bus.send("RESIZE", application_asked="a", processes=3, methods="single/collective/node/wait-sources")
        bus.list()  # it has been received
        hold.release(2)
        done = bus.answer(60)
        assert done and (done["done"], done["targets"]) == (True, 3)
        told = [done[key] for key in ("spawn", "spawn_strategy", "redistribution", "redistribution_strategy")]
        assert told == ["merge", "single", "collective", "wait-sources"]
        other.send("RESIZE", application_asked="a", processes=2, methods="merge/based")
        refused = other.answer(60)
        assert refused and not refused["done"] and "'based'" in refused["reason"]
        bus.send("RESIZE", application_asked="a", processes=2)
        done = bus.answer(60)
        assert done and (done["spawn_strategy"], done["redistribution"]) == ("parallel", "p2p"), "the job's own"
    ended = job.ends()
    ends(ended, kit.ended_at(ended), 2)


@mpich
def test_hocketd_refuses_what_exceeds_the_cores(probe, cores):
    daemon = cores(2)
    done = probe.run(1, 6, PROBE_REQUEST="2:3", PROBE_WAIT=f"2:{AMPLE}", **runtime_kit.settings(daemon.socket))
    assert re.fullmatch("hocket: not resized from 1 to 3 processes: cannot resize: .*2 cores.*\n", done.err), done.err
    ends(done, 6, 1, done.err)


@mpich
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            "silent",
            "hocketd has not answered in time whether the program may have 3 processes: it continues without them",
        ),
        ("dies", "not resized from 1 to 3 processes: the connection to hocketd ended before it answered"),
    ],
)
def test_a_hocketd_that_does_not_answer_ends_the_wait(probe, cores, hold, fault, said):
    daemon = cores(4)
    hold.at(2)
    limit_s = "0.2" if fault == "silent" else AMPLE
    job = probe.start(
        1, 6, PROBE_REQUEST="2:3", PROBE_WAIT=f"2:{limit_s}", **hold.setting, **runtime_kit.settings(daemon.socket)
    )
    job.reads("^held 2 ")
    runtime_kit.stop(daemon.process.pid)
    hold.at(3)
    hold.release(2)
    if fault == "dies":
        job.reads("^requested 3 ")
        daemon.kill()
    job.reads("^held 3 ")
    if fault == "silent":
        os.kill(daemon.process.pid, signal.SIGCONT)
    hold.release(3)
    done = job.ends()
    assert f"hocket: {said}\n" in done.err, done.err
    assert done.code == 0, f"{done.out}{done.err}"


# ---- waiting ---------------------------------------------------------------------------------------------------------

LATE = [
    "async",
    "wait-targets",
    "parallel-async/wait-sources/node",
    "baseline/single-async",
    "baseline/thread",
    "async/thread/rma-lock",
]


@mpich
@pytest.mark.parametrize("methods", LATE)
def test_the_end_of_the_iterations_waits(probe, methods):
    """Without a wait, neither would be made: the iterations take no time."""
    how = {"HOCKET_RESIZE": f"2:3:{methods},5:2:{methods}", "HOCKET_RESIZE_WAIT_S": AMPLE}
    done = probe.run(1, 5, **how, PROBE_TIMES="1")
    ends(done, 5, 2)
    assert (times(done)["number"], times(done)["sources"]) == (2, 3)


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_the_end_of_the_iterations_waits_under_openmpi(probe):
    done = probe.run(2, 5, HOCKET_RESIZE="2:4:async/wait-targets", HOCKET_RESIZE_WAIT_S=AMPLE)
    ends(done, 5, 4)


@mpich
def test_the_end_of_the_iterations_waits_for_a_join(probe, cores):
    daemon = cores(8)
    how = {"HOCKET_RESIZE": "2:4:join,5:2", "HOCKET_RESIZE_WAIT_S": AMPLE}
    ends(probe.run(2, 5, **how, **runtime_kit.settings(daemon.socket)), 5, 2)


@mpich
def test_the_end_does_not_wait_unless_asked(probe):
    done = probe.run(1, 5, HOCKET_RESIZE="4:3:wait-targets")
    ends(done, 5, 1, done.err)


@mpich
def test_a_control_point_waits(probe):
    done = probe.run(2, 10, HOCKET_RESIZE="3:4:async/wait-targets", PROBE_WAIT=f"3:{AMPLE}", PROBE_TIMES="1")
    kit.check(done, [(0, 2), (4, 4)], 10)
    last = times(done)
    parts = last["spawn_stopped_s"] + last["constant_stopped_s"] + last["variable_s"] + last["resume_s"]
    assert last["stopped_s"] == pytest.approx(parts, rel=1e-3)
    assert last["total_s"] >= last["spawn_s"] + last["variable_s"] + last["resume_s"] - 1e-6
    assert last["spawn_s"] >= last["spawn_stopped_s"] > 0
    assert (last["started"], last["woken"]) == (2, 0)


@mpich
def test_a_wait_ends_with_its_limit_and_the_resize_comes_later(probe, cores, hold):
    daemon = cores(8)
    hold.at("begin", 3)
    job = probe.start(
        1, 10**6, ms=1, HOCKET_RESIZE="2:3:join", PROBE_WAIT="2:0.2", PROBE_RESIZES="1",
        **hold.setting, **runtime_kit.settings(daemon.socket),
    )  # fmt: skip
    job.reads("^held 3 ")
    hold.release("begin")
    hold.release(3)
    done = job.ends()
    ends(done, kit.ended_at(done), 3, done.err)
    assert done.err == (
        "hocket: the processes of the resize to 3 are not ready in time: the program continues without them\n"
    )


@mpich
def test_a_new_process_dies_while_the_end_waits_for_it(probe, hold):
    hold.at("begin")
    job = probe.start(1, 5, HOCKET_RESIZE="2:3:async", HOCKET_RESIZE_WAIT_S=AMPLE, **hold.setting)
    os.kill(int(job.reads(r"^held begin (\d+)")[1]), signal.SIGKILL)
    kit.broken(job)


# ---- methods, communicator -------------------------------------------------------------------------------------------


@mpich
def test_each_resize_has_methods_of_its_own(probe, cores):
    daemon = cores(8)
    plan = "2:3:baseline/parallel/node,4:1:collective,6:4:single/rma-lock,8:2"
    done = probe.run(2, 10, HOCKET_RESIZE=plan, HOCKET_REDISTRIBUTION="p2p", **runtime_kit.settings(daemon.socket))
    kit.check(done, [(0, 2), (2, 3), (4, 1), (6, 4), (8, 2)], 10)
    runtime_kit.wait_until(lambda: len(reported()) == 4, 30, "the trace has all resizes")
    made = [(one["spawn"], one["spawn_strategy"], one["redistribution"]) for one in reported()]
    assert made == [
        ("baseline", "parallel", "p2p"),
        ("merge", "parallel", "collective"),
        ("merge", "single", "rma-lock"),
        ("merge", "parallel", "p2p"),
    ]
    # The three of the first resize share a world, so two of them must sleep in the second.
    assert (reported()[1]["put_to_sleep"], reported()[1]["ended"]) == (2, 0)


@both
def test_a_part_of_the_processes_is_malleable(probe):
    done = probe.run(3, 8, PROBE_SPLIT="1", HOCKET_RESIZE="2:4,4:1,6:3")
    kit.check(done, [(0, 2), (2, 4), (4, 1), (6, 3)], 8)


@mpich
@pytest.mark.parametrize("placement", ["compact", "spread"])
def test_new_processes_are_bound_to_cores_apart(probe, hold, placement):
    hold.at(3)
    job = probe.start(1, 4, HOCKET_RESIZE="2:3", HOCKET_PLACEMENT=placement, **hold.setting)
    job.reads("^held 3 ")
    pids = job.pids()
    bound = [os.sched_getaffinity(pid) for pid in pids[1:]]
    single = [cpus for cpus in bound if len(cpus) == 1]
    assert len(single) == min(2, os.cpu_count() - 1), bound
    assert len(set(map(frozenset, single))) == len(single), "two processes on one core"
    hold.release(3)
    ends(job.ends(), 4, 3)


# ---- joins without hocketd -------------------------------------------------------------------------------------------

NO_HOCKETD = "there is no hocketd to start processes for 'join'"


def refused(sources: int, targets: int, why: str) -> str:
    return f"hocket: not resized from {sources} to {targets} processes: {why}\n"


@mpich
@pytest.mark.parametrize("wait", [{"PROBE_WAIT": "2:3600"}, {"HOCKET_RESIZE_WAIT_S": "3600"}, {}])
def test_a_join_without_hocketd_ends_the_wait(probe, wait):
    """The failure ends the wait, not its limit of an hour. The next resize, which needs no hocketd, takes place."""
    done = probe.run(1, 6, HOCKET_RESIZE="2:4:join,5:3", **wait)
    ends(done, 6, 3, refused(1, 4, NO_HOCKETD))
    assert kit.told(done) == [(0, 1), (5, 3)]


@mpich
def test_a_join_without_hocketd_before_the_first_iteration(probe):
    done = probe.run(1, 6, HOCKET_PROCESSES="3", HOCKET_SPAWN_STRATEGY="join")
    ends(done, 6, 1, refused(1, 3, NO_HOCKETD))


@mpich
def test_a_join_where_no_socket_can_be_ends_the_wait(probe, tmp_path):
    """Processes that join meet the first rank at a socket beside the one of hocketd."""
    settings = {"HOCKET_SOCKET": str(tmp_path / "nowhere" / "socket"), "PROBE_WAIT": "2:3600"}
    done = probe.run(1, 6, HOCKET_RESIZE="2:4:join", **settings)
    ends(done, 6, 1, done.err)
    uncoordinated, told = done.err.splitlines()
    assert uncoordinated.startswith("hocket: no hocketd answers at "), done.err
    assert told.startswith(refused(1, 4, "no hocketd to start processes for 'join': ").rstrip("\n")), done.err
