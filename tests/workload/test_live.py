"""`hocket workload` runs queues: order, numbers of servers, failures, signals, resumption."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hocket.arbitration.allocate import Rules, allocate
from hocket.trace import read_trace
from hocket.workload.jobs import Workload, read_workload
from workload_kit import ended, written

pytestmark = pytest.mark.timeout(300)
WAIT_S = 60.0

QUEUE = """
servers = 4
limit = "10m"
queue = ["wide", "narrow", "slow", "wide", "narrow", "whole"]
[system]
nodes = 8
servers = 4
[[job]]
name = "wide"
nodes = 4
bandwidth_mb_s = { 1 = 10, 2 = 20, 4 = 40 }
pattern = { layout = "own", request = "64k", total = "6m" }
[[job]]
name = "narrow"
nodes = 2
processes = 4
bandwidth_mb_s = { 1 = 10, 2 = 11 }
pattern = [
  { layout = "contiguous", request = "128k", total = "2m" },
  { layout = "contiguous", request = "128k", total = "2m", operation = "read" },
]
[[job]]
name = "slow"
nodes = 2
bandwidth_mb_s = { 1 = 1, 2 = 1 }
pattern = { request = "32k", total = "512k", request_pause_s = 0.1 }
[[job]]
name = "whole"
nodes = 8
bandwidth_mb_s = { 1 = 9, 2 = 19, 4 = 39 }
command = ["dd", "if=/dev/zero", "of={dir}/x", "bs=256k", "count={nodes}"]
"""
TROUBLES = """
servers = 1
queue = ["fails", "hangs", "unknown", "whole"]
[system]
nodes = 2
[[job]]
name = "fails"
nodes = 1
command = ["sh", "-c", "echo bad luck >&2; exit 3"]
[[job]]
name = "hangs"
nodes = 1
time_limit_s = 1
command = ["sh", "-c", "trap '' TERM; sleep 1000 & while :; do wait; done"]
[[job]]
name = "unknown"
nodes = 1
command = ["/nonexistent/program"]
[[job]]
name = "whole"
nodes = 2
bandwidth_mb_s = { 1 = 50 }
pattern = { request = "64k", total = "1m" }
"""


def told_runs(out: str) -> dict[str, list[dict]]:
    """Return the jobs of each policy's last run."""
    return {one["policy"]: one["runs"][-1]["jobs"] for one in json.loads(out)["policies"]}


def test_jobs_start_in_order_with_the_servers_that_arbitrate_gives(start, tmp_path: Path, directory: Path):
    path, output = written(tmp_path / "jobs.toml", QUEUE), tmp_path / "out"
    out = ended(
        start(path, "--fifo", "--arbitrate", "mckp,static,size", "--dir", directory, "--output", output, "--json")
    )
    workload = read_workload(path)
    assert not list(directory.iterdir())
    for policy, jobs in told_runs(out).items():
        assert not [one["failure"] for one in jobs if one["failure"]], policy
        check_order(workload, jobs)
        assert {one["name"]: one["bytes"] for one in jobs} == {
            "wide": 6 << 20,
            "wide.2": 6 << 20,
            "narrow": 4 << 20,
            "narrow.2": 4 << 20,
            "slow": 512 << 10,
            "whole": 2 << 20,
        }
        assert check_numbers(workload, policy, output / f"{policy}-1.trace.jsonl") >= 6
    for one in json.loads(out)["policies"]:
        predicted = {job["name"]: job["bytes_per_s"] for job in one["predicted"]["jobs"]}
        assert predicted.keys() == {queued.name for queued in workload.queue}
        assert predicted["slow"] == 1e6


EMULATED = """
servers = 2
queue = ["app", "wide"]
[system]
nodes = 4
servers = 2
[[job]]
name = "app"
nodes = 2
bandwidth_mb_s = { 1 = 5, 2 = 9 }
emulate = "app.toml"
[[job]]
name = "wide"
nodes = 2
bandwidth_mb_s = { 1 = 10, 2 = 20 }
pattern = { layout = "own", request = "64k", total = "1m" }
"""
DESCRIPTION = """
name = "app"
[[group]]
processes = 2
iterations = 6
[[phase]]
[[phase.stage]]
kind = "sleep"
time_s = 0.02
[[phase.stage]]
kind = "write"
file = "shared"
bytes = "256k"
every = 2
append = true
[[phase.stage]]
kind = "read"
file = "own"
access = "file-per-process"
bytes = "128k"
every = 6
repeat = 2
"""


def test_a_described_job_goes_through_the_servers_as_any_other(start, tmp_path: Path, directory: Path):
    written(tmp_path / "app.toml", DESCRIPTION)
    words = ("--fifo", "--arbitrate", "mckp", "--dir", directory, "--output", tmp_path / "out", "--json")
    out = ended(start(written(tmp_path / "jobs.toml", EMULATED), *words))
    jobs = {one["name"]: one for one in told_runs(out)["mckp"]}
    assert (jobs["app"]["failure"], jobs["app"]["bytes"]) == ("", 3 * (256 << 10) + 2 * (128 << 10))
    assert [number for _, number in jobs["app"]["servers"]][-1] in (1, 2)
    (told,) = json.loads(out)["policies"]
    assert {one["name"] for one in told["predicted"]["jobs"]} == {"app", "wide"}
    assert not list(directory.iterdir())


def check_order(workload: Workload, jobs: Sequence[dict]) -> None:
    """Check that jobs started in the order of the queue, and never used more nodes than there are."""
    by_name = {one["name"]: one for one in jobs}
    starts = [by_name[queued.name]["started_s"] for queued in workload.queue]
    assert starts == sorted(starts)
    for at_s in starts:
        running = [one for one in workload.queue if starts[one.number] <= at_s < by_name[one.name]["ended_s"]]
        assert sum(one.nodes for one in running) <= workload.system_nodes


def check_numbers(workload: Workload, policy: str, trace: Path) -> int:
    """Check that, between changes of the running applications, each has what `hocket arbitrate` gives it.

    Return how many sets of applications were checked.
    """
    queued = {one.name: one.job for one in workload.queue}
    system = (workload.system_nodes, workload.system_servers)
    members: dict[tuple[str, int], str] = {}
    numbers: dict[str, int] = {}
    checked = 0

    def check() -> int:
        running = [name for name in members.values() if name in queued]
        if not running:
            return 0
        jobs = [queued[name] for name in running]
        (found,) = allocate(jobs, workload.servers, system, [policy], Rules(direct=False))
        assert [numbers.get(name) for name in running] == [one.servers for one in found.jobs], (policy, running)
        return 1

    for event in read_trace(trace).events:
        if event.type in ("HELLO", "BYE", "LOST"):
            checked += check()
        if event.type == "WELCOME":
            members[event.application, event.member] = str(event["application_given"])
        elif event.type in ("BYE", "LOST"):
            numbers.pop(members.pop((event.application, event.member), ""), None)
        elif event.type == "SERVER_MAP" and event.application:
            numbers[event.application] = (
                0
                if event.get("direct")
                else sum(not line.endswith(" slow:") for line in str(event["text"]).splitlines())
            )
    return checked


def test_a_job_that_fails_or_hangs_is_recorded_and_the_queue_goes_on(start, tmp_path: Path, directory: Path):
    path = written(tmp_path / "jobs.toml", TROUBLES)
    words = (path, "--fifo", "--arbitrate", "one", "--dir", directory, "--output", tmp_path / "out", "--json")
    jobs = {one["name"]: one for one in told_runs(ended(start(*words), code=1))["one"]}
    assert jobs["fails"]["failure"] == "it ended with exit code 3: bad luck"
    assert jobs["hangs"]["failure"] == "it exceeded its time limit of 1 s"
    assert jobs["unknown"]["failure"].startswith("it ended with exit code 127: ")
    assert "/nonexistent/program" in jobs["unknown"]["failure"]
    assert not jobs["whole"]["failure"] and jobs["whole"]["bytes"] == 1 << 20
    assert jobs["whole"]["started_s"] >= jobs["hangs"]["ended_s"] > 1
    assert not list(directory.iterdir())


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {WAIT_S} s for {what}"
        time.sleep(0.05)


def runs(pid: int) -> bool:
    """Return True if the process exists and has not ended; the test itself is the parent of orphans."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_and_the_next_call_resumes(start, tmp_path: Path, directory: Path, number: signal.Signals):
    gate = tmp_path / "gate"
    held = f"""
servers = 1
[system]
nodes = 2
[[job]]
name = "held"
nodes = 1
repeat = 2
command = ["sh", "-c", "echo $$ > {{dir}}/pid; while test -e {gate}; do sleep 0.1; done; echo done > {{dir}}/x"]
"""
    path, output = written(tmp_path / "jobs.toml", held), tmp_path / "out"
    words = (path, "--fifo", "--arbitrate", "one", "--dir", directory, "--output", output)
    ended(start(*words))
    first = (output / "runs.jsonl").read_text()
    assert first.count("\n") == 2
    gate.touch()
    process = start(*words, "--repeat", "2")
    wait_for(lambda: sum(one.stat().st_size > 0 for one in directory.glob("*/*/files/pid")) == 2, "both jobs")
    pids = [int(one.read_text()) for one in directory.glob("*/*/files/pid")]
    process.send_signal(number)
    ended(process, code=130)
    assert not [pid for pid in pids if runs(pid)]
    assert not list(directory.iterdir()) and (output / "runs.jsonl").read_text() == first
    gate.unlink()
    ended(start(*words, "--repeat", "2"))
    lines = (output / "runs.jsonl").read_text()
    assert lines.startswith(first) and lines.count("\n") == 3


def test_a_run_without_its_daemon_does_not_count(start, prefix: Path, tmp_path: Path, directory: Path):
    gate = tmp_path / "gate"
    gate.touch()
    held = f"""
servers = 1
[[job]]
name = "held"
nodes = 1
command = ["sh", "-c", "touch {{dir}}/started; while test -e {gate}; do sleep 0.1; done"]
"""
    path, output = written(tmp_path / "jobs.toml", held), tmp_path / "out"
    process = start(path, "--fifo", "--dir", directory, "--output", output)
    wait_for(lambda: bool(list(directory.glob("*/*/files/started"))), "the job")
    (daemon,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[:1]
    assert b"hocketd" in Path(f"/proc/{daemon}/cmdline").read_bytes()
    os.kill(int(daemon), signal.SIGKILL)
    gate.unlink()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1 and "hocketd ended too early" in err.splitlines()[-1]
    assert (output / "runs.jsonl").read_text().count("\n") == 1
    assert not list(directory.iterdir())


def test_jobs_start_when_they_arrive(start, tmp_path: Path, directory: Path):
    """Without --fifo nodes do not count."""
    text = TROUBLES.replace('queue = ["fails", "hangs", "unknown", "whole"]\n', "").replace("time_limit_s = 1", "")
    text = text.replace("trap '' TERM; sleep 1000 & while :; do wait; done", "sleep 3").replace(
        "bandwidth_mb_s", "arrival_s = 0.5\nbandwidth_mb_s"
    )
    words = (written(tmp_path / "jobs.toml", text), "--arbitrate", "one", "--dir", directory, "--json")
    jobs = {one["name"]: one for one in told_runs(ended(start(*words, "--output", tmp_path / "out"), code=1))["one"]}
    assert jobs["whole"]["started_s"] >= 0.5 and jobs["whole"]["started_s"] < jobs["hangs"]["ended_s"]


def test_what_is_wrong_is_one_line(start, tmp_path: Path, directory: Path):
    path = written(tmp_path / "jobs.toml", QUEUE)
    for words, said in (
        ((path, "--fifo"), "give one of --dir DIR, to run the queue, --simulate, and --predict"),
        ((path, "--predict", "--dir", directory), "give one of --dir DIR, to run the queue, --simulate, and --predict"),
        ((path, "--dir", "/nonexistent"), "--dir /nonexistent: there is no such directory"),
        ((path, "--predict", "--arbitrate", "best"), "--arbitrate: 'best' is unknown; use mckp, static, "),
        ((path, "--predict", "--arbitrate", ","), "--arbitrate: give at least one of mckp, static, "),
        ((path, "--dir", directory, "--repeat", "0"), "--repeat 0: give 1 to 10000"),
        ((path, "--predict", "--most-loss", "2"), "--most-loss 2.0 must be from 0 to 1; 0.2 means 20 %"),
        ((path, "--predict", "--servers", "65"), "--servers 65: give 1 to 64"),
        ((path, "--dir", directory, "--output", path), f"cannot keep runs in {path / 'runs.jsonl'}: "),
        ((path, "--generate", "0"), "--generate 0: give 1 to 10000"),
        ((tmp_path / "none.toml", "--predict"), f"cannot read {tmp_path / 'none.toml'}: "),
    ):
        process = start(*words)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 2 and err.startswith(f"hocket: {said}") and err.count("\n") == 1, err


def test_a_random_queue_is_a_file(start, tmp_path: Path):
    path = written(tmp_path / "jobs.toml", QUEUE)
    drawn = ended(start(path, "--generate", "12", "--seed", "5"))
    assert drawn == ended(start(path, "--generate", "12", "--seed", "5"))
    queue = read_workload(written(tmp_path / "drawn.toml", drawn)).queue
    assert len(queue) == 12 and {one.kind.name for one in queue} == {"wide", "narrow", "slow", "whole"}
    predicted = ended(start(tmp_path / "drawn.toml", "--fifo", "--predict", "--arbitrate", "mckp,static"))
    assert "nobody knows how many bytes 'whole' moves" in predicted
