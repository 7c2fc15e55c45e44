"""What hocketd does about programs on other nodes: their agents read them, and start processes like theirs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import hosts
import malleable_kit
import pytest
import runtime_kit as kit
from cluster_kit import Cluster
from daemon_kit import START_LIMIT_S
from hocket.profile.points import Point
from hocket.profile.store import Profile, Store, fingerprint_of
from host_cluster import HostCluster, TraceOnHost
from story import Story

pytestmark = pytest.mark.timeout(180)

# A member of an application, on a host. It stays until it is killed.
MEMBER = """
import os, sys, time
from hocket.bus import Bus
with Bus.connect() as bus:
    job, program = os.uname().nodename, sys.argv[1]
    bus.send("HELLO", job=job, application_asked="solver", mpi="mpich", processes=2, program=program)
    print(bus.answer(20).type, flush=True)
    time.sleep(600)
"""


def test_a_program_that_only_its_node_has_is_known_by_its_profile(
    start_cluster: Callable[..., HostCluster], tmp_path: Path
) -> None:
    """The store is on the leader's node, and the program is not."""
    program, store = tmp_path / "solver", tmp_path / "profiles.db"
    program.write_bytes(b"the solver of that node")
    Store(store, write=True).put(Profile("solver", fingerprint_of(program), "mpich", "", (Point(2, 1.5),)))
    cluster = start_cluster("adm", "one", "two")
    adm, one, two = cluster.hosts
    adm.write(Path("/run/profiles.db"), store.read_bytes())
    adm.write(Path("/run/hocket.toml"), b'[coordinator]\nprofiles = "/run/profiles.db"\n')
    cluster.lead(adm)
    cluster.join(one), cluster.join(two)
    one.write(Path("/tmp/solver"), program.read_bytes())
    two.write(Path("/tmp/solver"), b"another program of that name")
    story = TraceOnHost(adm)
    for host in (two, one):
        member = host.start([sys.executable, "-c", MEMBER, "/tmp/solver"])
        cluster.started.append(member)
        assert hosts.first_line(member, START_LIMIT_S) == "WELCOME\n"
    found = story.awaits("PROFILE")
    assert (found["processes"], found["iteration_s"]) == (2, 1.5)
    of_one = story.awaits("HELLO", node="one")
    welcome = story.awaits("WELCOME", member=of_one["member"])
    assert found["app"] == welcome["app"], "not the one of that name on the other node"


@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
def test_processes_that_join_are_started_by_the_agent_of_the_node(
    mpi: kit.Mpi, prefix: Path, built: Callable[..., Path], cluster: Cluster, tmp_path: Path
) -> None:
    config = tmp_path / "hocket.toml"
    config.write_text("[coordinator]\ncores = 16\n")
    leader, agent = cluster.lead("--config", config), cluster.join("n1")
    story = Story(leader)
    probe = malleable_kit.Probe(mpi, built("malleable_probe.c", *malleable_kit.link_flags(prefix, mpi.name)))
    how = {"HOCKET_SPAWN": "merge", "HOCKET_WORLDS": "process", "HOCKET_SPAWN_STRATEGY": "join"}
    probe.resized_in_background(1, [3, 2], **kit.settings(agent.socket), **how)
    assert story.awaits("PROCESSES_READY")["failed"] == ""
