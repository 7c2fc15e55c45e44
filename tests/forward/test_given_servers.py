"""hocketd gives programs under `hocket forward` as many servers as `hocket arbitrate` says, at each start and end."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import runtime_kit as kit
from forward_kit import LIMIT_S, hocket, start_servers, wait_until
from hocket.bus import Bus
from hocket.mounts import target_of

pytestmark = pytest.mark.timeout(180)

SERVERS = 4
# Alone `wide` is best with all servers, beside `deep` with fewer; `direct` is best without one.
JOBS = {
    "wide": (4, "{ 1 = 100, 2 = 190, 4 = 300 }"),
    "deep": (2, "{ 0 = 50, 1 = 90, 2 = 400 }"),
    "direct": (8, "{ 0 = 80, 1 = 60, 2 = 61 }"),
}
# Writes lines to its own file until it is told to end.
WRITES = 'while [ ! -e "$0/end-$1" ]; do echo line >> "$0/$1"; sleep 0.02; done'


def curves(path: Path, names: list[str]) -> Path:
    """Write the file of these jobs, as `hocket arbitrate` and `hocket forward` take it."""
    jobs = [f'[[job]]\nname = "{name}"\nnodes = {JOBS[name][0]}\nbandwidth_mb_s = {JOBS[name][1]}\n' for name in names]
    path.write_text("".join(jobs))
    return path


@dataclass
class Programs:
    """Programs that run until they are told to end."""

    start_forward: Callable[..., subprocess.Popen]
    mount: Path
    curves: Path
    running: dict[str, subprocess.Popen] = field(default_factory=dict)

    def start(self, name: str, *options: str) -> None:
        words = ("--curves", str(self.curves), "--name", name, *options)
        self.running[name] = self.start_forward("sh", "-ec", WRITES, self.mount, name, options=words)

    def end(self, name: str) -> kit.Run:
        (self.mount / f"end-{name}").touch()
        return kit.finish(self.running.pop(name), LIMIT_S)


@pytest.fixture
def programs_of(start_forward, mount: Path, tmp_path: Path) -> Iterator[Programs]:
    programs = Programs(start_forward, mount, curves(tmp_path / "curves.toml", list(JOBS)))
    yield programs
    for name in list(programs.running):
        programs.end(name)


def given() -> dict[str, int]:
    """Return how many servers each application has."""
    with Bus.connect() as bus:
        return {one["application"]: one["given_servers"] for one in bus.list().applications}


def arbitrated(policy: str, names: list[str], prefix: Path, tmp_path: Path) -> dict[str, int]:
    """Return what `hocket arbitrate` says for these jobs."""
    path = curves(tmp_path / "present.toml", names)
    done = hocket("arbitrate", str(path), "--servers", str(SERVERS), "--policy", policy, "--json", prefix=prefix)
    assert done.returncode == 0, done.stderr
    (answer,) = json.loads(done.stdout)["policies"]
    return {job["name"]: job["servers"] for job in answer["jobs"]}


def replays(daemon, prefix: Path) -> None:
    assert daemon.stop() == 0
    command = [str(prefix / "bin" / "hocketd"), "--replay", str(daemon.trace)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_start_and_end_is_followed(programs_of: Programs, start_daemon, mount: Path, prefix: Path, tmp_path: Path):
    daemon = start_daemon("--policy", "mckp")
    start_servers(SERVERS, mount, prefix)
    present: list[str] = []

    def check() -> None:
        wanted = arbitrated("mckp", present, prefix, tmp_path)
        wait_until(lambda: given() == wanted, f"the allocation {wanted}, while it is {given()}")

    for name in ("wide", "deep", "direct"):
        programs_of.start(name)
        present.append(name)
        check()
    assert given() == {"wide": 2, "deep": 2, "direct": 0}
    explained = hocket("explain", "deep", prefix=prefix).stdout
    assert "'deep' gets 2 I/O servers (" in explained and "by mckp for 2 nodes and 2 processes" in explained
    assert "expected: 400.0 MB/s; all 2: 590.0 MB/s with 4 of 4 servers; next best: 0 servers, 350.0 MB/s" in explained
    listed = hocket("servers", prefix=prefix).stdout
    assert "wide: 2 servers: " in listed and "(190.0 MB/s expected)" in listed
    assert "direct: no I/O server (80.0 MB/s expected)" in listed
    assert "direct: its files use no I/O server" in hocket("ls", prefix=prefix).stdout
    wait_until(lambda: (mount / "direct").exists(), "a write of the program without servers")
    wait_until(lambda: (mount / "wide").exists(), "a write of the program with two servers")
    runs = {}
    for name in ("deep", "wide", "direct"):
        runs[name] = programs_of.end(name)
        present.remove(name)
        if present:
            check()
    assert [run.code for run in runs.values()] == [0, 0, 0], runs
    assert "because the application was given no server" in runs["direct"].err
    assert "forwarded 0 calls" in runs["direct"].err
    assert "forwarded 0 calls" not in runs["wide"].err
    replays(daemon, prefix)
    told = hocket("explain", "deep", "--trace", str(daemon.trace), prefix=prefix)
    assert "'deep' gets 2 I/O servers (" in told.stdout, told.stderr
    for verb in (
        ("trace", "summary"),
        ("trace", "export", "-o", str(tmp_path / "out.json")),
        ("report", "-o", str(tmp_path / "page")),
    ):
        done = hocket(*verb, str(daemon.trace), prefix=prefix)
        assert done.returncode == 0, done.stderr


def test_one_without_a_server_goes_directly_even_if_it_would_fail_without_any(
    programs_of: Programs, start_daemon, mount: Path, prefix: Path
):
    """A number of 0 is no failure of the servers, and it ends with the next change of the set."""
    daemon = start_daemon("--policy", "mckp")
    start_servers(1, mount, prefix)
    programs_of.start("direct", "--without-servers", "fail")
    wait_until(lambda: (mount / "direct").exists(), "a direct write")
    assert given() == {"direct": 0}
    assert hocket("policy", "set", "one", prefix=prefix).returncode == 0
    assert given() == {"direct": 1}
    size = (mount / "direct").stat().st_size
    wait_until(lambda: (mount / "direct").stat().st_size > size + 50, "ten more writes")
    done = hocket("servers", "assign", "direct", "0", prefix=prefix)
    assert done.stderr == "hocket: direct uses no I/O server from its next call on\n"
    run = programs_of.end("direct")
    assert run.code == 0, run.err
    assert "forwarded 0 calls" not in run.err and "given no server" in run.err and "EIO" not in run.err
    replays(daemon, prefix)


def test_servers_that_come_and_go_are_given_out(programs_of: Programs, start_daemon, mount: Path, prefix: Path):
    daemon = start_daemon("--policy", "mckp")
    start_servers(2, mount, prefix)
    programs_of.start("wide")
    wait_until(lambda: given() == {"wide": 2}, "two servers for one application")
    start_servers(2, mount, prefix)
    assert given() == {"wide": 4}
    assert hocket("servers", "drain", "s1", prefix=prefix).returncode == 0
    assert given() == {"wide": 2}
    with Bus.connect() as bus:
        (row,) = bus.list().applications
        assert "s1" not in row["servers"].split(", ")
        pid = next(one["pid"] for one in bus.list().servers if one["server"] in row["servers"].split(", "))
    os.kill(pid, 9)
    wait_until(lambda: given() == {"wide": 2} and f"{pid}" not in _pids(), "another server in its place")
    run = programs_of.end("wide")
    assert run.code == 0, run.err
    assert set((mount / "wide").read_text().split()) == {"line"}
    replays(daemon, prefix)


@pytest.fixture
def in_memory(mount: Path) -> Iterator[Path]:
    """A directory on another file system than the mount."""
    with tempfile.TemporaryDirectory(prefix="hocket-test-", dir="/dev/shm") as name:
        assert Path(name).stat().st_dev != mount.stat().st_dev, "this test needs two file systems"
        yield Path(name)


@pytest.mark.parametrize("choice", ["direct", "fail"])
def test_servers_of_another_file_system_are_not_given_out(
    choice: str, programs_of: Programs, start_daemon, mount: Path, in_memory: Path, prefix: Path
):
    """s1 and s2 are on another file system; `hocket forward` starts s3. Without s3, it is as if no server ran."""
    daemon = start_daemon("--policy", "mckp")
    start_servers(2, in_memory, prefix)
    programs_of.start("wide", "--without-servers", choice)
    wait_until(lambda: given() == {"wide": 1}, "a server for the application")
    assert _servers_of("wide") == "s3"
    wait_until(lambda: (mount / "wide").exists(), "a write")

    here, there = (target_of(str(directory)) for directory in (mount, in_memory))
    named = hocket("servers", "assign", "wide", "s1", prefix=prefix)
    said = f"hocket: I/O server 's1' is on {there}, and the files of 'wide' are on {here}: name servers on it\n"
    assert (named.returncode, named.stderr) == (2, said)
    counted = hocket("servers", "assign", "wide", "2", prefix=prefix)
    said = f'hocket: cannot assign 2 servers: give 1 to 1, as many as are up on {here}, or "all"\n'
    assert (counted.returncode, counted.stderr) == (2, said)

    assert hocket("servers", "drain", "s3", prefix=prefix).returncode == 0
    assert (
        "'wide' gets no I/O server, because none is up on its file system, " in hocket("explain", prefix=prefix).stdout
    )
    if choice == "fail":
        run = kit.finish(programs_of.running.pop("wide"), LIMIT_S)
        assert run.code != 0 and "I/O error" in run.err, run.err
    else:
        assert given() == {"wide": 0}
        size = (mount / "wide").stat().st_size
        wait_until(lambda: (mount / "wide").stat().st_size > size + 50, "ten more writes")
        assert hocket("servers", "add", "s3", prefix=prefix).returncode == 0
        assert (given(), _servers_of("wide")) == ({"wide": 1}, "s3")
        run = programs_of.end("wide")
        assert run.code == 0, run.err
        assert "calls found no server" in run.err
    assert "forwarded 0 calls" not in run.err
    replays(daemon, prefix)


def _servers_of(name: str) -> str:
    with Bus.connect() as bus:
        return next(one["servers"] for one in bus.list().applications if one["application"] == name)


def _pids() -> list[str]:
    """Return the processes of the servers that the application uses."""
    with Bus.connect() as bus:
        listing = bus.list()
    names = listing.applications[0]["servers"].split(", ")
    return [str(one["pid"]) for one in listing.servers if one["server"] in names]


def test_a_file_of_curves_that_cannot_be_used_is_one_line(mount: Path, prefix: Path, tmp_path: Path):
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('[[job]]\nname = "a"\nnodes = 0\n')
    done = hocket("forward", "--mount", str(mount), "--curves", str(wrong), "--", "true", prefix=prefix)
    assert done.returncode == 2
    assert done.stderr == f"hocket: {wrong}: job 1 'a': nodes = 0 must be a whole number from 1 to 1000000\n"
    done = hocket("forward", "--mount", str(mount), "--nodes", "0", "--", "true", prefix=prefix)
    assert (done.returncode, done.stderr) == (2, "hocket: --nodes 0: give 1 to 1000000\n")


def test_rules_are_settings_of_the_daemon(prefix: Path, tmp_path: Path):
    """The options and the file have the same checks, and the file is what --print-config shows."""
    hocketd = str(prefix / "bin" / "hocketd")

    def printed(*options: str) -> subprocess.CompletedProcess:
        command = [hocketd, "--print-config", *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)

    options = ("--no-direct", "--divide-evenly", "--most-loss", "0.2", "--shared-server", "--system-nodes", "384")
    text = printed(*options, "--system-servers", "12").stdout
    table = text[text.index("[arbitration]") :]
    for line in ("direct = false", "divides_evenly = true", "most_loss = 0.2", "system_nodes = 384"):
        assert f"{line}\n" in table
    (tmp_path / "hocket.toml").write_text(table)
    assert printed("--config", str(tmp_path / "hocket.toml")).stdout == text
    assert "--most-loss: arbitration.most_loss: 2 is no share: give 0 to 1" in printed("--most-loss", "2").stderr
