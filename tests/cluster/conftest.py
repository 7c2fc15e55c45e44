"""Fixtures for several nodes."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import hosts
import pytest
from checkout import KIT
from cluster_kit import Cluster
from daemon_kit import START_LIMIT_S
from host_cluster import HostCluster
from hosts import Hosts


@pytest.fixture
def cluster(prefix: Path) -> Iterator[Cluster]:
    one = Cluster(prefix)
    yield one
    one.end()
    shutil.rmtree(one.directory, ignore_errors=True)


@pytest.fixture
def start_cluster(
    start_hosts: Callable[..., Hosts], prefix: Path, built_programs
) -> Iterator[Callable[..., HostCluster]]:
    def start(*names: str, visible: Sequence[Path] = (), how: Sequence[str] = (), **options: str) -> HostCluster:
        return HostCluster(start_hosts(*names, visible=(built_programs[0], *visible), how=how), prefix, **options)

    yield start


@pytest.fixture
def start_shells(prefix: Path) -> Iterator[Callable[[Hosts], None]]:
    """Return a function that starts a remote shell on each host."""
    started: list[subprocess.Popen] = []

    def start(several: Hosts) -> None:
        for host in several:
            started.append(host.start([sys.executable, KIT / "remote_shell.py", "serve"]))
            assert hosts.first_line(started[-1], START_LIMIT_S) == "ready\n"

    yield start
    for process in started:
        process.kill()
