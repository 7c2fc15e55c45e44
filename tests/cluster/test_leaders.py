"""Several leaders: one that is not the first of the list only grants turns, and each file system may have its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cluster_kit import Cluster, free_address, granted
from daemon_kit import hello, hocketd, start_io
from hocket.bus import Bus, BusError
from story import Story

pytestmark = pytest.mark.timeout(120)
LIMIT_S = 20


def place_of(cluster: Cluster, node: str) -> int:
    return json.loads(cluster.hocket(node, "daemon", "status", "--json").out)["leader_place"]


def wait_for(bus: Bus, kind: str) -> None:
    """Read answers up to one of that type; QUEUED_IO comes again and again."""
    answer = bus.answer(LIMIT_S)
    while answer is not None and answer.type == "QUEUED_IO" != kind:
        answer = bus.answer(LIMIT_S)
    assert answer is not None and answer.type == kind, answer


def test_a_leader_that_is_not_the_first_only_grants_turns(cluster: Cluster, prefix: Path):
    """The first leader does not answer, as behind a cut network. Nobody hangs, and nobody gets cores twice."""
    second = free_address()
    leader = cluster.lead("--policy", "fcfs", node="adm2", address=second)
    agent = cluster.join("n1", cluster.address, second)
    story = Story(leader)
    assert story.awaits("LEADER_PLACE")["place"] == 2
    with Bus.connect(agent.socket) as holder, Bus.connect(leader.socket) as waiter:
        hello(holder, "holder"), hello(waiter, "waiter")
        assert (start_io(holder, 1), start_io(waiter, 1)) == ("GRANT_IO", "QUEUED_IO")
        holder.send("FINISH_IO", request=1, phase_over=True)
        wait_for(waiter, "GRANT_IO")
        holder.send("MALLEABLE", processes=2, method="merge")
        story.awaits("MALLEABLE", application="holder")
        refused = cluster.hocket("n1", "resize", "holder", "4")
        assert refused.code != 0 and "it gives out no cores: 'holder' cannot grow here" in refused.err, refused.err
    with Bus.connect(leader.socket) as server:
        server.send("SERVER", server="s1", addresses="unix:/s1", directory="/scratch")
        with pytest.raises(BusError, match="it changes no server map"):
            server.answer(LIMIT_S)
    assert place_of(cluster, "n1") == 2
    shown = cluster.hocket("n1", "daemon", "status")
    assert "at place 2 of the list of leaders: it only grants turns" in shown.out
    assert "at place 2 of the list of leaders: it gives out no cores" in cluster.hocket("n1", "explain").out
    trace = json.loads(cluster.hocket("n1", "daemon", "status", "--json").out)["trace"]
    replayed = hocketd(prefix, "--replay", trace)
    assert replayed.returncode == 0 and "agree" in replayed.stdout, replayed.stderr


def test_a_leader_finds_its_place_in_its_own_list(cluster: Cluster):
    """The same hocket.toml may be on all nodes."""
    second = free_address()
    leaders = f"{cluster.address} {second}"
    cluster.lead("--leaders", leaders, node="adm1")
    cluster.lead("--leaders", leaders, node="adm2", address=second)
    assert (place_of(cluster, "adm1"), place_of(cluster, "adm2")) == (1, 2)


class Member:
    """A program on a node that uses one file system: it talks to the agent that belongs to that."""

    def __init__(self, cluster: Cluster, node: str, file_system: str) -> None:
        self.bus = Bus.connect(cluster.directory / f"{node}-{file_system}" / "hocketd.sock")
        hello(self.bus, f"{node}-{file_system}")


@pytest.fixture
def two_file_systems(cluster: Cluster) -> Iterator[dict[str, Story]]:
    """Nodes n1 and n2 with an agent for each of two file systems, whose leaders run on one service node."""
    stories = {}
    for file_system in ("home", "scratch"):
        address = free_address()
        leader = cluster.lead("--policy", "fcfs", node=f"adm-{file_system}", address=address)
        for node in ("n1", "n2"):
            cluster.join(f"{node}-{file_system}", address)
        stories[file_system] = Story(leader)
    yield stories


def test_each_file_system_may_have_a_leader(cluster: Cluster, two_file_systems: dict[str, Story]):
    """Programs of one file system take turns over nodes; those of the other one do not wait for them, nor for its
    leader."""
    with ExitStack() as open_:
        members = {
            (node, file_system): open_.enter_context(Member(cluster, node, file_system).bus)
            for node in ("n1", "n2")
            for file_system in two_file_systems
        }
        for file_system in two_file_systems:
            assert start_io(members["n1", file_system], 1) == "GRANT_IO"
            assert start_io(members["n2", file_system], 1) == "QUEUED_IO"
        members["n1", "home"].send("FINISH_IO", request=1, phase_over=True)
        wait_for(members["n2", "home"], "GRANT_IO")
        next(one for one in cluster.daemons if one.directory.name == "adm-home").kill()
        members["n1", "scratch"].send("FINISH_IO", request=1, phase_over=True)
        wait_for(members["n2", "scratch"], "GRANT_IO")
    two_file_systems["scratch"].awaits("GRANT_IO", application="n2-scratch")
    assert granted(two_file_systems["scratch"], "n1-home", "n2-home") == []
    turns = [("GRANT_IO", "n1-scratch"), ("FINISH_IO", "n1-scratch"), ("GRANT_IO", "n2-scratch")]
    assert granted(two_file_systems["scratch"], "n1-scratch", "n2-scratch")[:3] == turns
