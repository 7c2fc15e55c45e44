"""`hocket forward --on`: servers of other nodes carry out the calls of a program.

The hosts share a directory by a mount of one file system in one kernel. So each sees at once what another one writes,
as on Lustre and GPFS. Device numbers and page caches do not differ, which the tests of host_mount.c are for.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import hosts
import pytest
import runtime_kit as kit
from forward_kit import COMMON
from hocket import io_servers
from hocket.connection import BusError
from hocket.daemon import is_alive
from hocket.forwarding import SharedServers
from host_cluster import LIMIT_S, RUNTIME, HostCluster, variables
from hosts import SHARED, Host

pytestmark = pytest.mark.timeout(240)
MOUNT = SHARED / "mount"
CALLS = int(os.environ.get("HOCKET_FORWARD_CALLS", "100000")) // 5


@pytest.fixture
def nodes(start_hosts: Callable[..., hosts.Hosts], prefix: Path, programs: Path, tmp_path: Path):
    """Return a function that starts a leader on `adm`, agents on the other hosts, and says what they share."""

    def start(*names: str, client: Path | None = None) -> HostCluster:
        bind = tmp_path / "client" / "bind"
        bind.parent.mkdir()
        bind.write_text('#!/bin/sh\nexec mount --no-canonicalize --bind "$1" "$2"\n')
        bind.chmod(0o755)
        visible = (programs, prefix)
        cluster = HostCluster(start_hosts("adm", *names, client=client or bind, visible=visible), prefix)
        cluster.give_boot_ids()
        adm, *others = cluster.hosts
        cluster.lead(adm)
        for host in others:
            cluster.join(host)
        (cluster.hosts.store / "mount").mkdir()
        return cluster

    return start


def words_of(*program: str | Path, on: str = "one,two", options: tuple[str, ...] = ("--coherent",)) -> list[str]:
    words = ["forward", "--check", "--mount", MOUNT, "--on", on, *options, "--", *program]
    return [sys.executable, "-m", "hocket.cli", *map(str, words)]


def forward(host: Host, *program: str | Path, limit_s: float = 120, **how) -> kit.Run:
    return host.run(words_of(*program, **how), limit_s=limit_s)


def elsewhere(said: str) -> int:
    """Return how many calls --check says other nodes have carried out."""
    found = re.search(r"other nodes carried out (\d+) calls", said)
    assert found, said
    return int(found[1])


def start_server(cluster: HostCluster, node: str) -> None:
    run = cluster.hocket(cluster.hosts["adm"], "server", "start", "--on", node, "--dir", str(MOUNT))
    assert run.code == 0, run.err


def processes_of(host: Host, *words: str) -> list[int]:
    """Return the processes of the host, as this one sees them, that have these words in their command."""

    def is_wanted(path: Path) -> bool:
        try:
            command = (path / "cmdline").read_bytes().decode().split("\0")
            return set(words) <= {command[0].rpartition("/")[2], *command[1:]} and _namespace(path) == inside
        except OSError:
            return False

    inside = _namespace(Path(f"/proc/{host.first}"))
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if is_wanted(path)]


def _namespace(process: Path) -> Path:
    return (process / "ns" / "pid").readlink()


def process_of(cluster: HostCluster, name: str) -> int:
    """Return the process of a server, as this test's process sees it."""
    found = [pid for host in cluster.hosts for pid in processes_of(host, "hocket-server", name)]
    assert len(found) == 1, (name, found)
    return found[0]


def write(store: Path, name: str, text: str) -> Path:
    (store / name).write_text(text)
    return store / name


WRITER = """
import os, sys, time
path, blocks, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
failed = 0
for block in range(blocks):
    data = bytes([block % 251]) * 70000
    for attempt in range(100):
        try:
            at = os.lseek(file, 0, os.SEEK_CUR)
            assert at == block * len(data), (at, block)
            assert os.write(file, data) == len(data)
            break
        except OSError:
            failed += 1
            os.lseek(file, at, os.SEEK_SET)
    assert os.pread(file, len(data), block * len(data)) == data, block
    if block == 3:
        open(path + ".mark", "w").close()
    time.sleep(pause)
print("ok", failed)
"""


def check_writer(cluster: HostCluster, blocks: int) -> None:
    written = (cluster.hosts.store / "mount" / "f").read_bytes()
    assert written == b"".join(bytes([block % 251]) * 70000 for block in range(blocks))


def start_writer(cluster: HostCluster, blocks: int, pause_s: float = 0.005, **how) -> subprocess.Popen:
    write(cluster.hosts.store, "writer.py", WRITER)
    words = words_of(sys.executable, SHARED / "writer.py", MOUNT / "f", str(blocks), str(pause_s), **how)
    process = cluster.hosts["adm"].start(words)
    mark = cluster.hosts.store / "mount" / "f.mark"
    kit.wait_until(lambda: mark.exists() or process.poll() is not None, LIMIT_S, "the first blocks")
    return process


# ---- what programs make ----------------------------------------------------------------------------------------------


def test_what_common_programs_make_is_the_same(nodes, tmp_path: Path):
    """Servers are started on both nodes, and ended with the run."""
    cluster = nodes("one", "two")
    adm = cluster.hosts["adm"]
    text = "".join(f"line {i} of the source, {i * i}\n" for i in range(9000))
    for name, command in COMMON.items():
        wanted_in = tmp_path / "direct" / f"of-{name}"
        made_in = cluster.hosts.store / "mount" / f"of-{name}"
        for directory in (wanted_in, made_in):
            directory.mkdir(parents=True)
            for file in ("source", "../outside", "../copy"):
                (directory / file).write_text(text if file != "../copy" else "")
        script = 'cd "$0" && ln -s ../outside outside && ln -s ../copy outside-copy; ' + command
        wanted = subprocess.run(
            ["sh", "-ec", script, wanted_in], capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert wanted.returncode == 0, wanted.stderr
        run = forward(adm, "sh", "-ec", script, MOUNT / f"of-{name}")
        assert (run.code, run.out) == (0, wanted.stdout), (name, run.err)
        assert (made_in / "made").read_bytes() == (wanted_in / "made").read_bytes(), name
        said = elsewhere(run.err)
        if name in ("tar", "sort", "python", "compiler", "git", "sqlite"):
            assert said > 0, (name, run.err)
    assert cluster.servers(adm) == {}


def test_random_calls_are_as_a_model_says(nodes, programs: Path):
    cluster = nodes("one", "two")
    for seed in ("1", "2"):
        run = forward(cluster.hosts["adm"], programs / "random_calls", seed, str(CALLS), MOUNT)
        assert (run.code, run.out) == (0, f"ok {CALLS}\n"), run.out + run.err
        assert elsewhere(run.err) > CALLS / 20, run.err


def test_processes_that_share_files_keep_the_rules_of_posix(nodes, programs: Path):
    cluster = nodes("one", "two")
    run = forward(cluster.hosts["adm"], programs / "posix_rules", "all", "1", MOUNT)
    assert run.code == 0, run.out + run.err
    assert elsewhere(run.err) > 0, run.err


def test_an_mpi_program_makes_the_same(nodes, mpi: kit.Mpi, tmp_path: Path):
    cluster = nodes("one", "two")
    program = mpi.library / "apps" / f"s_ior-{mpi.name}"
    arguments = ["-b", "4k", "-t", "64k", "-s", "32", "-p", "2", "-c", "-k", "-o"]
    direct = tmp_path / "direct"
    words, environment = mpi.command(3, [program, *arguments, direct], "", {})
    assert kit.finish(kit.launch(words, environment), LIMIT_S).code == 0
    words, environment = mpi.command(3, [program, *arguments, MOUNT / "f"], "", {})
    run = hosts.finish(cluster.hosts["adm"].start(words_of(*words), variables(environment)), 100)
    assert run.code == 0, run.out + run.err
    made = cluster.hosts.store / "mount"
    for path in tmp_path.glob("direct*"):
        if path.is_file():
            assert (made / path.name.replace("direct", "f")).read_bytes() == path.read_bytes()
    assert elsewhere(run.err) > 0, run.err


def test_a_run_uses_the_servers_that_are_there_and_leaves_them(nodes):
    cluster = nodes("one", "two")
    adm = cluster.hosts["adm"]
    start_server(cluster, "one")
    run = forward(adm, "dd", "if=/dev/zero", f"of={MOUNT / 'f'}", "bs=1M", "count=8", "status=none", on="one")
    assert run.code == 0, run.err
    assert elsewhere(run.err) == 8, run.err
    assert [(name, one["on_node"]) for name, one in cluster.servers(adm).items()] == [("s1", "one")]


def test_the_own_node_may_be_one_of_them(nodes):
    """It is reached in the same way, so that one relay knows what is to be synced."""
    cluster = nodes("one")
    adm = cluster.hosts["adm"]
    script = (
        f"for i in 1 2 3 4; do head -c 200000 /dev/zero | tr '\\0' $i | dd of={MOUNT}/$i bs=50000 iflag=fullblock; done"
    )
    run = forward(adm, "sh", "-c", script, on="adm,one")
    assert run.code == 0 and elsewhere(run.err) == 16, run.err
    for digit in b"1234":
        assert (cluster.hosts.store / "mount" / chr(digit)).read_bytes() == bytes([digit]) * 200000
    assert cluster.servers(adm) == {}


def test_servers_that_cannot_be_ended_now_are_left_to_a_later_run(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("HOCKET_DIR", str(tmp_path / "run"))
    ended: list[str] = []
    answers: list[Exception | dict] = [BusError("no daemon"), {"s1": {"instance": "i1"}, "s2": {"instance": "i2"}}]

    def running(_bus: object) -> dict:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(io_servers, "running", running)
    monkeypatch.setattr(io_servers, "stop", lambda servers, _bus=None: ended.extend(servers))
    with SharedServers(None) as shared:
        shared.add({"s1": {"pid": 0, "instance": "i1", "addresses": "tcp:a:1"}})
    assert ended == []
    for _ in range(2):
        with SharedServers(None):
            pass
    assert ended == ["s1"]
    assert (tmp_path / "run" / "forward.servers").read_text() == ""


# ---- what is not sent to other nodes ---------------------------------------------------------------------------------


def test_nothing_is_sent_where_nodes_do_not_see_at_once_what_others_write(nodes, host_client: Path):
    """The mount of each host keeps pages for itself; nobody has said otherwise."""
    cluster = nodes("one", client=host_client)
    run = forward(cluster.hosts["adm"], "sh", "-c", f"echo text > {MOUNT}/f", on="one", options=())
    assert run.code == 0 and "give --coherent if it does" in run.err, run.err
    assert "the program runs directly" in run.err and (cluster.hosts.store / "mount" / "f").read_text() == "text\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--servers", "2"), "--servers does not go with --on"),
        (("--by", "fuse"), "--by fuse does not go with --on"),
        (("--consistency", "close-to-open"), "--consistency close-to-open does not go with --on"),
    ],
)
def test_what_does_not_go_together_is_said(options: tuple[str, ...], said: str, tmp_path: Path):
    words = [sys.executable, "-m", "hocket.cli", "forward", "--mount", str(tmp_path), "--on", "a", *options, "true"]
    run = kit.finish(kit.launch(words, dict(os.environ)), LIMIT_S)
    assert run.code == 2 and said in run.err and run.err.count("\n") == 1, run.err


def test_a_node_that_is_not_there_lets_the_program_run_directly(nodes):
    cluster = nodes("one")
    run = forward(cluster.hosts["adm"], "sh", "-c", f"echo text > {MOUNT}/f", on="one,nowhere")
    assert run.code == 0 and "no agent of this user's daemons has joined from node 'nowhere'" in run.err, run.err
    assert cluster.servers(cluster.hosts["adm"]) == {}


# ---- faults ----------------------------------------------------------------------------------------------------------


def test_a_relay_with_another_secret_leaves_all_calls_to_the_program(nodes):
    cluster = nodes("one")
    start_server(cluster, "one")
    cluster.hosts["adm"].write(RUNTIME / "servers" / "secret", b"0" * 64)
    process = start_writer(cluster, 10, on="one")
    run = hosts.finish(process, LIMIT_S)
    assert (run.code, run.out) == (0, "ok 0\n"), run.err
    assert elsewhere(run.err) == 0, run.err
    check_writer(cluster, 10)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP])
def test_a_server_that_ends_or_hangs_loses_nothing(number: int, nodes):
    """Its end is known before the call is made again: no call fails. One that hangs is killed by its node's agent."""
    cluster = nodes("one", "two")
    start_server(cluster, "one")
    start_server(cluster, "two")
    process = start_writer(cluster, 300)
    ended = [process_of(cluster, name) for name in ("s1", "s2")]
    for pid in ended:
        os.kill(pid, number)
    run = hosts.finish(process, 100)
    assert (run.code, run.out) == (0, "ok 0\n"), run.err
    assert elsewhere(run.err) > 3, run.err
    check_writer(cluster, 300)


def test_random_calls_survive_servers_that_are_killed(nodes, programs: Path):
    """On each node one stays, which can sync what the other one has written."""
    cluster = nodes("one", "two")
    for node in ("one", "two"):
        start_server(cluster, node)
        start_server(cluster, node)
    process = cluster.hosts["adm"].start(words_of(programs / "random_calls", "3", str(CALLS), MOUNT))
    killed = 0
    while process.poll() is None and killed < 12:
        up = [one for one in cluster.servers(cluster.hosts["adm"]).values() if one["state"] == "up"]
        of_node = [one for one in up if one["on_node"] == ("one", "two")[killed % 2]]
        pid = process_of(cluster, of_node[0]["server"])
        os.kill(pid, signal.SIGKILL)
        killed += 1
        kit.wait_until(lambda pid=pid: not is_alive(pid), LIMIT_S, "its end, with which its name is free")
        start_server(cluster, of_node[0]["on_node"])
    run = hosts.finish(process, 200)
    assert (run.code, run.out) == (0, f"ok {CALLS}\n"), run.out + run.err
    assert killed > 2


def test_a_server_that_is_cut_off_keeps_nobody_waiting_for_ever(nodes):
    """Nobody knows if it writes what it was sent: those writes fail, in time, and others of the file with them."""
    cluster = nodes("one")
    one = cluster.hosts["one"]
    start_server(cluster, "one")
    process = start_writer(cluster, 100, on="one")
    assert one.run(["ip", "link", "set", "eth0", "down"]).code == 0
    time.sleep(70)  # two limits of 30 s: for the answer, and for what becomes of the call
    assert one.run(["ip", "link", "set", "eth0", "up"]).code == 0
    run = hosts.finish(process, 100)
    assert run.code == 0 and run.out.startswith("ok "), run.out + run.err
    check_writer(cluster, 100)


def test_a_write_under_way_fails_if_the_relay_is_killed(nodes):
    """Later ones are made directly."""
    cluster = nodes("one")
    start_server(cluster, "one")
    process = start_writer(cluster, 200, on="one")
    relays = processes_of(cluster.hosts["adm"], "hocket-forward-relay")
    assert len(relays) == 1
    os.kill(relays[0], signal.SIGKILL)
    run = hosts.finish(process, 100)
    assert run.code == 0 and run.out in ("ok 0\n", "ok 1\n"), run.out + run.err
    assert "the relay was killed" in run.err
    check_writer(cluster, 200)


SYNCS = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
os.write(file, b"x" * 70000)
getattr(os, sys.argv[2])(file)
os.write(file, b"y" * 70000)
print("written", flush=True)
input()
for attempt in range(2):
    try:
        os.fsync(file)
        print("synced")
    except OSError as error:
        print(error.errno)
"""


@pytest.mark.parametrize("killed", ["server", "one of two servers", "relay"])
def test_a_sync_fails_once_if_nobody_can_sync_what_another_node_has_written(killed: str, nodes):
    """Another server of that node can: its kernel has the data."""
    cluster = nodes("one")
    adm = cluster.hosts["adm"]
    for _ in range(2 if killed == "one of two servers" else 1):
        start_server(cluster, "one")
    write(cluster.hosts.store, "syncs.py", SYNCS)
    words = words_of(sys.executable, SHARED / "syncs.py", MOUNT / "f", "fdatasync", on="one")
    process = adm.start(words, stdin=subprocess.PIPE)
    assert hosts.first_line(process, LIMIT_S) == "written\n"
    # The first process that forwards uses the first server.
    relays = processes_of(adm, "hocket-forward-relay")
    os.kill(relays[0] if killed == "relay" else process_of(cluster, "s1"), signal.SIGKILL)
    out, err = process.communicate("\n", timeout=LIMIT_S)
    assert out.split() == (["synced", "synced"] if killed == "one of two servers" else ["5", "synced"]), out + err


BROTHERS = """
import os, subprocess, sys
names = [sys.argv[1] + end for end in "ab"]
for name in names:
    subprocess.run(["dd", "if=/dev/zero", "of=" + name, "bs=70000", "count=1", "status=none"], check=True)
print("written", flush=True)
input()
files = [os.open(name, os.O_RDWR) for name in names]
for file in files * 2:
    try:
        os.fsync(file)
        print("synced")
    except OSError as error:
        print(error.errno)
"""


def test_a_process_is_told_that_nobody_can_sync_what_another_one_has_written(nodes):
    """It is told of each file."""
    cluster = nodes("one")
    adm = cluster.hosts["adm"]
    start_server(cluster, "one")
    write(cluster.hosts.store, "brothers.py", BROTHERS)
    process = adm.start(words_of(sys.executable, SHARED / "brothers.py", MOUNT / "f", on="one"), stdin=subprocess.PIPE)
    assert hosts.first_line(process, LIMIT_S) == "written\n"
    os.kill(processes_of(adm, "hocket-forward-relay")[0], signal.SIGKILL)
    out, err = process.communicate("\n", timeout=LIMIT_S)
    assert out.split() == ["5", "5", "synced", "synced"], out + err
