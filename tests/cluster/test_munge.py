"""Agents and leader that know each other by MUNGE, with a munged of the test's own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import runtime_kit as kit
from cluster_kit import Cluster, log_has
from daemon_kit import Daemon, hocketd

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(shutil.which("munged", path="/usr/sbin:/usr/bin") is None, reason="MUNGE is not installed"),
]
STRANGER = 54321
LIMIT_S = 20


class Munged:
    """A munged with its own key and socket, which users of the machine reach."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        directory.chmod(0o755)
        self.directory = directory
        (directory / "key").write_bytes(b"k" * 1024)
        (directory / "key").chmod(0o600)

    @property
    def socket(self) -> Path:
        return self.directory / "socket"

    def start(self) -> None:
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        options = [f"--{option}={self.directory / name}" for option, name in files.items()]
        environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"}
        subprocess.run(["munged", "--force", *options], check=True, timeout=LIMIT_S, env=environment)

    def end(self) -> None:
        pid = self.directory / "pid"
        if pid.exists():
            os.kill(int(pid.read_text()), signal.SIGTERM)
            kit.wait_until(lambda: not pid.exists(), LIMIT_S, "munged has ended")


@pytest.fixture
def munged(cluster: Cluster) -> Iterator[Munged]:
    cluster.directory.chmod(0o755)
    one = Munged(cluster.directory / "munge")
    (cluster.directory / "hocket.toml").write_text(f'[cluster]\nmunge_socket = "{one.socket}"\n')
    yield one
    one.end()


@pytest.fixture
def start(cluster: Cluster, munged: Munged) -> Callable[..., Daemon]:
    """Return a function that starts a hocketd with MUNGE."""

    def begin(name: str, *options: str, **popen) -> Daemon:
        directory = cluster.directory / name
        directory.mkdir(mode=0o700)
        if "user" in popen:
            os.chown(directory, popen["user"], popen["user"])
        common = ("--munge", "--config", cluster.directory / "hocket.toml")
        one = Daemon(cluster.prefix / "bin" / "hocketd", directory, *common, *options, **popen)
        cluster.daemons.append(one)
        return one

    return begin


def test_an_agent_joins_once_munged_is_there(cluster: Cluster, munged: Munged, start: Callable[..., Daemon]):
    leader = start("adm", "--leader", "--listen", cluster.address)
    agent = start("n1", "--agent", "--leaders", cluster.address)
    log_has(agent, "munged of this node does not answer")
    munged.start()
    log_has(agent, "linked to the leader")
    log_has(leader, "has joined")
    assert agent.log.read_text().count("munged of this node does not answer") == 1
    assert "agents        1" in cluster.hocket("n1", "daemon", "status").out
    munged.end()
    assert "agents        1" in cluster.hocket("n1", "daemon", "status").out, "a link needs it only at its start"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_strangers_agent_and_leader_are_refused(cluster: Cluster, munged: Munged, start: Callable[..., Daemon]):
    munged.start()
    leader = start("adm", "--leader", "--listen", cluster.address)
    as_stranger = {"user": STRANGER, "group": STRANGER, "extra_groups": []}
    agent = start("n1", "--agent", "--leaders", cluster.address, **as_stranger)
    for daemon in (leader, agent):
        log_has(daemon, f"user {STRANGER} runs it, by MUNGE: neither this hocketd's user nor root")
    assert "has joined" not in leader.log.read_text()
    leader.stop()
    start("other", "--leader", "--listen", cluster.address, **as_stranger)
    own = start("n2", "--agent", "--leaders", cluster.address)
    log_has(own, f"the leader is not trusted: user {STRANGER} runs it")
    assert "linked to" not in own.log.read_text()


def test_a_wrong_choice_of_key_is_one_line(cluster: Cluster, munged: Munged, start: Callable[..., Daemon]):
    munged.start()
    leader = start("adm", "--leader", "--listen", cluster.address)
    agent = cluster.join("n1")  # with a key
    log_has(agent, "the other end has another key, or does not speak TLS 1.3")
    assert "has joined" not in leader.log.read_text()
    both = hocketd(cluster.prefix, "--leader", "--munge", "--key", cluster.key)
    assert both.returncode == 2 and "--key and --munge: give one of them" in both.stderr
    alone = hocketd(cluster.prefix, "--munge")
    assert alone.returncode == 2 and "--munge and --address are for --leader and --agent" in alone.stderr
