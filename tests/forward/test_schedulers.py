"""Which forwarded call is next: schedulers change while programs run, merge calls, and know whose calls they are."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from forward_kit import NEEDS_MOUNTS, hocket, start_servers, wait_until
from hocket.bus import Bus
from hocket.io_servers import SCHEDULERS as NAMES
from policy_page import blocks

pytestmark = pytest.mark.timeout(240)

LIMIT_S = 90


def listed(name: str = "s1") -> dict:
    with Bus.connect() as bus:
        return next(one for one in bus.list().servers if one["server"] == name)


def shares(name: str = "s1") -> dict[str, int]:
    """Return the bytes of each application in a server's last report."""
    lines = [line.split(" ", 3) for line in listed(name)["forward_shares"].splitlines()]
    return {words[3]: int(words[1]) for words in lines}


# Processes that write a file together, each by pwrite: block i of the file has the letter of process i % COUNT.
TOGETHER = """
import os, sys, time
path, count, blocks, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
go, ready = os.pipe(), os.pipe()
for number in range(count):
    if os.fork() == 0:
        os.close(go[1])
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(ready[1], b".")
        os.read(go[0], 1)
        for i in range(number, blocks, count):
            assert os.pwrite(file, bytes([97 + number % 26]) * size, i * size) == size
        os._exit(0)
for _ in range(count):
    os.read(ready[0], 1)
os.close(go[1])
sys.exit(any(os.wait()[1] for _ in range(count)))
"""


def together(count: int, blocks: int, size: int) -> str:
    return "".join(chr(97 + i % count % 26) * size for i in range(blocks))


def test_the_scheduler_is_changed_while_a_program_runs(
    start_forward, start_daemon, programs: Path, mount: Path, prefix: Path
):
    """The program checks each of its random calls; none is lost or made twice, and each change is recorded."""
    start_daemon()
    start_servers(2, mount, prefix, "--scheduler", "wfq")
    assert listed("s2")["scheduler"] == "wfq"
    with Bus.connect() as bus:
        used = bus.subscribe("SCHEDULER_USED")
        process = start_forward(programs / "random_calls", "11", "40000", mount)
        changes = 0
        while process.poll() is None and changes < 26:
            where = () if changes % 3 else ("--server", "s1")
            done = hocket("servers", "scheduler", NAMES[changes % len(NAMES)], *where, prefix=prefix)
            assert done.returncode == 0, done.stderr
            changes += 1
        run = kit.finish(process, LIMIT_S)
        assert (run.code, run.out) == (0, "ok 40000\n"), run.out + run.err
        assert changes > 2
        first = used.wait(5)
    assert (first["server"], first["scheduler"], first["previous"], first["error"]) == ("s1", "fifo", "wfq", "")
    told = hocket("explain", prefix=prefix).stdout
    assert "a tool changed the request scheduler from '" in told
    assert hocket("servers", "scheduler", "size-fair", "--server", "s2", prefix=prefix).returncode == 0
    shown = hocket("servers", prefix=prefix).stdout.splitlines()
    row = next(
        line for line in shown[shown.index(next(x for x in shown if x.startswith("FORWARDED"))) :] if line[:2] == "s2"
    )
    assert row.split()[1] == "size-fair" and int(row.split()[2]) > 0
    asked = json.loads(hocket("servers", "--json", prefix=prefix).stdout)["servers"]
    assert [one["scheduler"] for one in asked if one["server"] == "s2"] == ["size-fair"]


def test_calls_that_wait_move_to_the_new_scheduler(start_forward, start_daemon, mount: Path, prefix: Path):
    """64 processes write one file through a slow server, whose scheduler is changed again and again."""
    start_daemon()
    start_servers(1, mount, prefix, "--forward-threads", "1", "--forward-limit", "1m")
    program = (sys.executable, "-c", TOGETHER, mount / "made", "64", "1024", "4096")
    process = start_forward(*program)
    most = 0
    for round_number in range(200):
        if process.poll() is not None:
            break
        done = hocket("servers", "scheduler", NAMES[round_number % len(NAMES)], prefix=prefix)
        assert done.returncode == 0, done.stderr
        words = done.stderr.split() + done.stdout.split()
        moved = [
            int(words[at - 1])
            for at, word in enumerate(words)
            if word in ("accesses", "access") and words[at - 1].isdigit()
        ]
        most = max([most, *moved])
    run = kit.finish(process, LIMIT_S)
    assert run.code == 0, run.err
    assert (mount / "made").read_text() == together(64, 1024, 4096)
    assert most > 32, "so many calls moved at once"


def is_traced(pid: int) -> bool:
    """Return True if each thread of the process is traced."""
    states = (path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status"))
    return all("TracerPid:\t0\n" not in state for state in states)


@pytest.mark.parametrize("scheduler", ["fifo", "to-agg"])
def test_calls_that_follow_one_another_are_merged(
    scheduler: str, start_forward, start_daemon, mount: Path, prefix: Path
):
    start_daemon()
    start_servers(1, mount, prefix, "--forward-threads", "1", "--scheduler", scheduler)
    server = listed()["pid"]
    counted = mount.parent / "calls"
    command = ["strace", "-f", "-qq", "-e", "trace=pwritev2", "-o", str(counted), "-p", str(server)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as tracer:
        kit.wait_until(lambda: is_traced(server) or tracer.poll() is not None, 20, "the start of strace")
        traced = tracer.poll() is None  # it may be forbidden
        run = kit.finish(start_forward(sys.executable, "-c", TOGETHER, mount / "made", "32", "2048", "4096"), LIMIT_S)
        tracer.send_signal(signal.SIGINT)
        tracer.wait(LIMIT_S)
    assert run.code == 0, run.err
    assert (mount / "made").read_text() == together(32, 2048, 4096)
    kit.wait_until(lambda: listed()["forwarded"] >= 2048, 10, "the report of the calls")
    row = listed()
    if scheduler == "fifo":
        assert row["merged"] == 0 and row["system_calls"] == row["forwarded"]
    else:
        assert row["merged"] > 512 and row["system_calls"] < row["forwarded"] - 256, row
    if traced:
        seen = sum("pwritev2(" in line for line in counted.read_text().splitlines())
        assert seen == row["system_calls"], (seen, row)


def test_calls_count_for_the_application_that_hocketd_names(start_forward, start_daemon, mount: Path, prefix: Path):
    """Two runs ask for one name, and a program of the second shows the page of the first: neither gets its share."""
    start_daemon()
    start_servers(1, mount, prefix)
    waits = "while [ ! -e stop ]; do sleep 0.05; done"
    first = start_forward("sh", "-c", f"cd {mount}; head -c 100000 /dev/zero > one; {waits}", options=("--name", "app"))
    kit.wait_until(lambda: (mount / "one").exists() and (mount / "one").stat().st_size == 100000, 20, "the first run")
    page = next(path for path in Path(os.environ["HOCKET_DIR"]).glob("forward-*"))
    # What it writes before hocketd has answered counts for nobody, so it writes until somebody has a part.
    writes = "while [ ! -e known ]; do printf x; sleep 0.05; done; "
    writes += "i=0; while [ $i -lt 300 ]; do printf %1000s x; i=$((i+1)); done"
    forge = f"cd {mount}; HOCKET_FORWARD={page} sh -c '{writes}' > two"
    second = start_forward("sh", "-c", forge, options=("--name", "app"))
    kit.wait_until(lambda: shares().keys() - {"", "app"}, 30, "the name of the second run")
    (mount / "known").touch()
    second = kit.finish(second, LIMIT_S)
    (mount / "stop").touch()
    first = kit.finish(first, LIMIT_S)
    assert (first.code, second.code) == (0, 0), first.err + second.err
    size = (mount / "two").stat().st_size
    assert size > 300000
    kit.wait_until(lambda: sum(shares().values()) == 100000 + size, 10, "the report of the bytes")
    given = shares()
    assert given.keys() <= {"", "app", "app-2"}, given
    assert given["app-2"] >= 300000 and given.get("app", 0) <= 100000, given


def test_what_cannot_be_is_one_line_and_changes_nothing(start_daemon, mount: Path, prefix: Path):
    start_daemon()
    done = hocket("servers", "scheduler", "job-fair", prefix=prefix)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1) and "no server runs" in done.stderr
    start_servers(2, mount, prefix)
    for words, what in {
        ("jobfair",): f"did you mean 'job-fair'? there are: {', '.join(NAMES)}",
        ("job-fair", "--server", "s9"): "no server is called 's9'",
        ("twins", "--data-servers", "0"): "--data-servers 0: give 1 or more",
        ("twins", "--data-servers", "70000"): "invalid twins_servers 70000: must be at most 65536",
        ("twins", "--stripe-bytes", "4x"): "--stripe-bytes 4x: give more than 0 bytes",
        ("default", "--server", "s9"): "no server is called 's9'",
    }.items():
        done = hocket("servers", "scheduler", *words, prefix=prefix)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert what in done.stderr, done.stderr
    for words, what in {
        ("app", "0"): "invalid weight 0: must be 1 to 1000, or default",
        ("app", "2000"): "invalid weight 2000: must be 1 to 1000, or default",
        ("app", "2"): "no application 'app' is running",
    }.items():
        done = hocket("servers", "weight", *words, prefix=prefix)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1) and what in done.stderr, done.stderr
    assert listed("s1")["scheduler"] == listed("s2")["scheduler"] == "fifo"
    assert (
        hocket(
            "servers", "scheduler", "twins", "--data-servers", "4", "--stripe-bytes", "64k", prefix=prefix
        ).returncode
        == 0
    )
    assert listed("s1")["scheduler"] == listed("s2")["scheduler"] == "twins"


def test_a_server_that_dies_during_the_change_is_one_line(start_daemon, mount: Path, prefix: Path):
    start_daemon()
    start_servers(2, mount, prefix)
    stopped = listed("s1")["pid"]
    kit.stop(stopped)
    command = [sys.executable, "-m", "hocket.cli", "servers", "scheduler", "job-fair"]
    environment = os.environ | {"HOCKET_PREFIX": str(prefix)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as change:
        kit.wait_until(lambda: listed("s2")["scheduler"] == "job-fair", 20, "the change of the other server")
        os.kill(stopped, signal.SIGKILL)
        _, told = change.communicate(timeout=LIMIT_S)
    assert change.returncode == 1 and told.count("\n") == 1
    assert "s1: ended before it could change its scheduler" in told


def test_a_server_keeps_its_scheduler_when_hocketd_starts_anew(start_daemon, mount: Path, prefix: Path):
    daemon = start_daemon()
    start_servers(1, mount, prefix)
    assert hocket("servers", "scheduler", "job-fair", prefix=prefix).returncode == 0
    daemon.kill()
    start_daemon()

    def is_there() -> bool:
        with Bus.connect() as bus:
            return any(one["scheduler"] == "job-fair" for one in bus.list().servers)

    kit.wait_until(is_there, 20, "the server's return")


def test_twins_lets_one_data_server_work_at_a_time(
    start_forward: Callable[..., subprocess.Popen], start_daemon, mount: Path, prefix: Path
):
    """Files are right under windows of data servers, which the command line of the server describes."""
    start_daemon()
    start_servers(
        1,
        mount,
        prefix,
        "--scheduler",
        "twins",
        "--data-servers",
        "4",
        "--stripe-bytes",
        "16k",
        "--forward-threads",
        "2",
    )
    run = kit.finish(start_forward(sys.executable, "-c", TOGETHER, mount / "made", "8", "256", "4096"), LIMIT_S)
    assert run.code == 0, run.err
    assert (mount / "made").read_text() == together(8, 256, 4096)
    # A call waits for its server's window of 2 ms, one in four, unless it comes within it.
    kit.wait_until(lambda: listed()["forwarded"] >= 256, 10, "the report of the calls")
    row = listed()
    assert row["forward_waited_ns"] / row["forwarded"] > 200_000, row


def test_twins_asks_the_file_system_once_for_the_data_servers_of_a_file(
    start_forward: Callable[..., subprocess.Popen],
    start_daemon,
    mount: Path,
    prefix: Path,
    lustre_layout: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """A server that is on Lustre, as far as it knows, lets one OST of a striped file work at a time."""
    start_daemon()
    log = tmp_path / "layout.log"
    with monkeypatch.context() as of_server:
        of_server.setenv("LD_PRELOAD", str(lustre_layout))
        of_server.setenv("LAYOUT_UNDER", str(mount))
        of_server.setenv("LAYOUT_OST", "3,11,20,7")
        of_server.setenv("LAYOUT_STRIPE", "16384")
        of_server.setenv("LAYOUT_LOG", str(log))
        start_servers(1, mount, prefix, "--scheduler", "twins", "--forward-threads", "2")
    for name in ("one", "two"):
        run = kit.finish(start_forward(sys.executable, "-c", TOGETHER, mount / name, "8", "128", "4096"), LIMIT_S)
        assert run.code == 0, run.err
        assert (mount / name).read_text() == together(8, 128, 4096)
    assert len(log.read_text().splitlines()) == 2, "one question for each file"
    kit.wait_until(lambda: listed()["forwarded"] >= 256, 10, "the report of the calls")
    row = listed()
    assert row["forward_waited_ns"] / row["forwarded"] > 200_000, row
    assert hocket("servers", "scheduler", "fifo", prefix=prefix).returncode == 0
    (mount / "three").touch()
    assert kit.finish(start_forward("cp", mount / "one", mount / "three"), LIMIT_S).code == 0
    assert len(log.read_text().splitlines()) == 2, "no other scheduler asks"


def explained(prefix: Path) -> str:
    return hocket("explain", prefix=prefix).stdout


def chosen(name: str = "s1") -> tuple[str, str]:
    """Return a server's scheduler, and who chose it."""
    row = listed(name)
    return row["scheduler"], row["scheduler_by"]


def weight_of(application: str) -> tuple[int, str]:
    """Return an application's weight, and who chose it."""
    with Bus.connect() as bus:
        row = next(one for one in bus.list().applications if one["application"] == application)
    return row["weight"], row["weight_by"]


def test_hocket_toml_names_scheduler_and_weights(
    start_forward, start_daemon, mount: Path, prefix: Path, tmp_path: Path
):
    """An operator's choice goes first, and what hocket.toml chose ends with that hocketd."""
    config = tmp_path / "hocket.toml"
    config.write_text('[coordinator]\nrequest_scheduler = "wfq"\napplication_weights = "app=4 other=2"\n')
    daemon = start_daemon("--config", str(config))
    start_servers(1, mount, prefix)
    start_servers(1, mount, prefix, "--scheduler", "sjf")
    wait_until(lambda: chosen() == ("wfq", "configuration"), "the scheduler of hocket.toml")
    assert chosen("s2") == ("sjf", "")
    assert "hocket.toml changed the request scheduler from 'fifo' to 'wfq'" in explained(prefix)
    waits = f"cd {mount}; while [ ! -e stop ]; do head -c 5000 /dev/zero > one; sleep 0.05; done"
    program = start_forward("sh", "-c", waits, options=("--name", "app"))
    wait_until(lambda: "4 app\n" in (listed()["forward_weights"], listed("s2")["forward_weights"]), "the weight")
    assert weight_of("app") == (4, "configuration")
    shown = hocket("servers", prefix=prefix).stdout
    assert "wfq (hocket.toml)" in shown and "(weight 4)" in shown, shown
    assert hocket("servers", "weight", "app", "7", prefix=prefix).returncode == 0
    wait_until(lambda: "7 app\n" in (listed()["forward_weights"], listed("s2")["forward_weights"]), "the new weight")
    assert hocket("servers", "scheduler", "default", "--server", "s2", prefix=prefix).returncode == 0
    assert chosen("s2") == ("wfq", "configuration")
    assert hocket("servers", "weight", "app", "default", prefix=prefix).returncode == 0
    assert weight_of("app") == (4, "configuration")
    (mount / "stop").touch()
    assert kit.finish(program, LIMIT_S).code == 0
    daemon.kill()
    start_daemon()
    kit.wait_until(lambda: {"s1", "s2"} <= {one["server"] for one in servers_now()}, 20, "the servers' return")
    wait_until(lambda: chosen() == ("fifo", "default") and chosen("s2") == ("sjf", "default"), "their own schedulers")


def servers_now() -> list[dict]:
    with Bus.connect() as bus:
        return bus.list().servers


def test_a_policy_chooses_until_an_operator_does(
    start_forward, start_daemon, mount: Path, prefix: Path, tmp_path: Path
):
    """The policy is that of docs/write-a-policy.md: `wfq` while several applications run."""
    path = tmp_path / "mine.py"
    path.write_text(next(text for text in blocks("python") if '"schedule"' in text))
    start_daemon("--policy-file", str(path))
    start_servers(1, mount, prefix)
    assert chosen() == ("fifo", "default")
    waits = f"while [ ! -e {mount}/stop ]; do sleep 0.05; done"
    programs = [start_forward("sh", "-c", waits, options=("--name", name)) for name in ("solver", "post")]
    wait_until(lambda: chosen() == ("wfq", "policy"), "the policy's scheduler")
    assert "the policy changed the request scheduler from 'fifo' to 'wfq'" in explained(prefix)
    assert (weight_of("solver"), weight_of("post")) == ((3, "policy"), (1, "default"))
    assert hocket("servers", "scheduler", "sjf", prefix=prefix).returncode == 0
    assert hocket("servers", "weight", "solver", "5", prefix=prefix).returncode == 0
    wait_until(lambda: "the weight of 'solver' was chosen by hand" in explained(prefix), "the policy's next decision")
    assert "the scheduler of 's1' was chosen by hand" in explained(prefix)
    assert (chosen(), weight_of("solver")) == (("sjf", ""), (5, ""))
    assert hocket("servers", "scheduler", "default", prefix=prefix).returncode == 0
    wait_until(lambda: chosen() == ("wfq", "policy"), "the policy's choice again")
    (mount / "stop").touch()
    for program in programs:
        assert kit.finish(program, LIMIT_S).code == 0


@NEEDS_MOUNTS
def test_calls_through_a_mount_count_for_the_application(start_forward, start_daemon, mount: Path, prefix: Path):
    """The process that serves the mount is not the program's child."""
    start_daemon()
    start_servers(1, mount, prefix)
    script = f"while [ ! -e {mount}/go ]; do echo a > {mount}/a; sleep 0.05; done"  # the first calls are nobody's
    process = start_forward("sh", "-c", script, options=("--by", "fuse", "--name", "mounted"))
    wait_until(lambda: shares().get("mounted", 0) > 0, "calls of the application")
    (mount / "go").touch()
    assert kit.finish(process, LIMIT_S).code == 0
