"""Policies in Python in hocketd and in the simulator, and the policy of docs/write-a-policy.md in both languages."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest
from checkout import DATA, INCLUDES, REPO
from hocket.bus import Bus
from policy_page import PAGE, block, blocks

pytestmark = pytest.mark.timeout(120)
LIMIT_S = 55  # a compiler, on a machine that others use
LARGEST_FIRST = """
'''The largest request first.'''
NAME = "largest-first"
KIND = "access"


def decide(view, event):
    if view.target.holders:
        return []
    return [{"grant": max(view.target.waiting, key=lambda request: request.bytes)}]
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "largest.py"
    path.write_text(LARGEST_FIRST)
    return path


def hello(bus: Bus, name: str) -> None:
    me = {"program": name, "mpi": "mpich", "version": "t", "pid": 1, "processes": 1}
    bus.send("HELLO", job=name, application_asked=name, **me)
    assert bus.answer(LIMIT_S).type == "WELCOME"


def ask(bus: Bus, size: int) -> str:
    io = {"file": "f", "operation": "MPI_File_write_at_all"}
    bus.send("START_IO", request=1, target="disk", bytes=size, **io)
    return bus.answer(LIMIT_S).type


def replay(prefix: Path, trace: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [prefix / "bin" / "hocketd", "--replay", trace, *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT_S)


def test_in_the_daemon_and_in_its_replay(start_daemon, policy, prefix):
    daemon = start_daemon("--policy-file", policy)
    with Bus.connect() as holder, Bus.connect() as small, Bus.connect() as large:
        for bus, name in ((holder, "holder"), (small, "small"), (large, "large")):
            hello(bus, name)
        assert holder.list().daemon["policy"] == "largest-first"
        assert (ask(holder, 1), ask(small, 10), ask(large, 100)) == ("GRANT_IO", "QUEUED_IO", "QUEUED_IO")
        holder.send("FINISH_IO", request=1, io_ns=1, bytes=1, phase_over=True)
        while (answer := large.answer(LIMIT_S)).type != "GRANT_IO":
            assert answer.type == "QUEUED_IO"
        for bus in (large, small, holder):
            bus.send("BYE")
    trace = daemon.trace
    assert daemon.stop() == 0
    settings = json.loads(trace.read_text().splitlines()[0])["settings"]
    assert settings["policy_file"] == str(policy)
    assert settings["policy_file_sha256"] == hashlib.sha256(policy.read_bytes()).hexdigest()

    done = replay(prefix, trace, "--policy-file", policy)
    assert done.returncode == 0, done.stderr
    ran = policy.with_suffix(".ran")
    policy.write_text(LARGEST_FIRST + f"\nopen({str(ran)!r}, 'w').close()\n")
    changed = replay(prefix, trace, "--policy-file", policy)
    assert changed.returncode == 1
    assert "it was changed since; use the file as it was" in changed.stderr
    unnamed = replay(prefix, trace)
    assert (unnamed.returncode, unnamed.stdout) == (1, "")
    assert f"made with the policy file {policy}, and a replay runs only a file that you name" in unnamed.stderr
    assert unnamed.stderr.count("\n") == 1
    assert not ran.exists()


def test_a_replay_runs_no_file_that_only_the_trace_names(policy, prefix, tmp_path):
    ran = tmp_path / "ran"
    policy.write_text(LARGEST_FIRST + f"\nopen({str(ran)!r}, 'w').close()\n")
    trace = tmp_path / "t.jsonl"
    run_simulator(prefix, "--policy-file", policy, "--trace", trace)
    ran.unlink()
    head, _, rest = trace.read_text().partition("\n")
    header = json.loads(head)
    del header["settings"]["policy_file_sha256"]
    trace.write_text(json.dumps(header) + "\n" + rest)
    assert "add --policy-file FILE" in replay(prefix, trace).stderr
    assert not ran.exists()
    assert replay(prefix, trace, "--policy-file", policy).returncode == 0
    assert ran.exists()
    refused = replay(prefix, DATA / "version-2.jsonl", "--policy-file", policy).stderr
    assert "the trace was made without a policy file" in refused


@pytest.mark.parametrize("writable", ["file", "directory"])
def test_a_file_that_others_may_write_is_refused(policy, prefix, hocket_dir, tmp_path, writable):
    (policy if writable == "file" else tmp_path).chmod(0o777)
    daemon = [prefix / "bin" / "hocketd", "--dir", hocket_dir, "--policy-file", policy]
    done = subprocess.run(daemon, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 1
    told = f"{policy}: {'it' if writable == 'file' else tmp_path} may be written by other users (mode 0777)"
    assert told in done.stderr
    assert told in run_simulator(prefix, "--policy-file", policy).stderr


def test_a_scenario_names_no_file_to_run(policy, prefix, tmp_path):
    scenario = tmp_path / "s.toml"
    text = (REPO / "scenarios" / "use-case-d.toml").read_text()
    scenario.write_text(text.replace("[coordinator]\n", f'[coordinator]\npolicy_file = "{policy}"\n'))
    command = [prefix / "libexec" / "hocket" / "hocket-sim", scenario]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert "only a file that you name is run: add --policy-file FILE" in done.stderr


def test_a_mistake_is_a_line_in_the_log(start_daemon, policy):
    policy.write_text(LARGEST_FIRST.replace("if view.target.holders:", "if 1 / 0:"))
    daemon = start_daemon("--policy-file", policy)
    with Bus.connect() as bus:
        hello(bus, "a")
        assert ask(bus, 10) == "GRANT_IO", "as first come, first served would have it"
        bus.send("BYE")
    assert daemon.stop() == 0
    log = (daemon.directory / "hocketd.log").read_text()
    assert f"{policy}:8: ZeroDivisionError: division by zero" in log


def test_a_file_that_cannot_be_used_is_refused(policy, prefix, hocket_dir):
    policy.write_text("NAME = 'mine'\n")
    command = [prefix / "bin" / "hocketd", "--dir", hocket_dir, "--policy-file", policy]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, done.stderr) == (1, f"hocketd: {policy}: it defines no function decide(view, event)\n")


def run_simulator(prefix: Path, *arguments: object) -> subprocess.CompletedProcess:
    command = [prefix / "libexec" / "hocket" / "hocket-sim", REPO / "scenarios" / "use-case-d.toml", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT_S)


def simulate(prefix: Path, *arguments: object) -> dict:
    done = run_simulator(prefix, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_the_policy_of_the_page_in_the_simulator(prefix, tmp_path):
    path = tmp_path / "longest.py"
    path.write_text(block("python"))
    result = simulate(prefix, "--policy-file", path, "--policy", "fcfs", "--seed", 1)
    assert result["policy"] == "fcfs+longest"
    shown = [
        f"{one['application']}: {one['processes_first']} → {one['processes_last']}" for one in result["applications"]
    ]
    assert ", ".join(shown) in PAGE.read_text()
    again = simulate(prefix, "--policy-file", path, "--policy", "fcfs", "--seed", 1)
    assert {**result, "wall_s": 0} == {**again, "wall_s": 0}


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("return 3", "decide returned 3, not a list of commands"),
        ("event.no_such_field", "object has no attribute 'no_such_field'"),
    ],
)
def test_a_mistake_ends_the_simulation(prefix, policy, mistake, told):
    policy.write_text(
        LARGEST_FIRST.replace(
            "if view.target.holders:", f"if view.now_s > 50:\n        {mistake}\n    if view.target.holders:"
        )
    )
    done = run_simulator(prefix, "--policy-file", policy)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"hocket-sim: {policy}:") and told in line


def test_the_policy_of_the_page_in_cpp(tmp_path):
    policy, test = blocks("cpp")
    declared = "namespace hocket::policy {\nextern const Policy smallest_first;\n}\n"
    sources = {
        "smallest_first.cpp": policy,
        "smallest_first_test.cpp": f'#include "policy/policy.hpp"\n{declared}{test}',
    }
    for name, text in sources.items():
        source = tmp_path / name
        source.write_text(text)
        command = ["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *INCLUDES, source]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 0, done.stderr
