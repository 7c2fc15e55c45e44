"""Fixtures for a virtual cluster with Slurm (slurm_kit.py)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import runtime_kit as kit
import slurm_kit
from host_cluster import HostCluster, TraceOnHost
from hosts import Hosts
from slurm_kit import PMI, Slurm, environment_of


@pytest.fixture(scope="session")
def has_slurm() -> None:
    """Skip tests where there can be no virtual Slurm."""
    if reason := slurm_kit.what_is_missing():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def plugin(has_slurm: None, prefix: Path) -> Path:
    """The SPANK plugin of the hocket under test. Tests are skipped where it was not built."""
    built = prefix / "lib" / "hocket" / "slurm" / "spank_hocket.so"
    if not built.exists():
        pytest.skip(f"no {built}: hocket was built without slurm/spank.h (Debian: libslurm-dev)")
    return built


@pytest.fixture(scope="session")
def group_of_jobs() -> Iterator[str]:
    """The name of a group of processes, in the machine's freezer cgroup, for the jobs of proctrack/cgroup."""
    if reason := slurm_kit.why_no_cgroups():
        pytest.skip(reason)
    with slurm_kit.group_of_processes() as name:
        yield name


@pytest.fixture
def start_slurm(
    has_slurm: None, start_hosts: Callable[..., Hosts], built_programs: tuple[Path, dict]
) -> Callable[..., Slurm]:
    """Return a function that starts hosts of these names, and Slurm on them. They end with the test."""

    def start(*names: str, **options: Any) -> Slurm:
        return Slurm(start_hosts(*names, visible=(built_programs[0],)), **options)

    return start


class Nodes:
    """A leader on `adm`, where no jobs run, agents on the other hosts, and Slurm on all."""

    def __init__(self, cluster: HostCluster, slurm: Slurm) -> None:
        self.cluster = cluster
        self.slurm = slurm
        self.store = cluster.hosts.store  # what all hosts see as hosts.SHARED
        self.story = TraceOnHost(slurm.first)

    def step(self, mpi: kit.Mpi, *words: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen:
        """Start `srun --mpi=… WORDS`. Its program is among the words, because options come before it."""
        return self.slurm.srun([f"--mpi={PMI[mpi.name]}", *words], {**environment_of(mpi), **(env or {})})


@pytest.fixture
def start_nodes(start_slurm: Callable[..., Slurm], plugin: Path, prefix: Path) -> Callable[..., Nodes]:
    """Return a function that starts such hosts. `plugins`: as in Slurm; the plugin alone, if none are given."""

    def start(*names: str, plugins: Mapping[str, str] | str | None = None, policy: str = "fcfs") -> Nodes:
        slurm = start_slurm(
            "adm", *names, compute=names, plugins=f"optional {plugin}\n" if plugins is None else plugins
        )
        cluster = HostCluster(slurm.hosts, prefix)
        cluster.lead(slurm.first, "--policy", policy)
        for name in names:
            cluster.join(slurm.hosts[name])
        return Nodes(cluster, slurm)

    return start
