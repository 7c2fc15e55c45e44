"""Agents and leaders of another version: each refuses the other in one line, and programs run on without it.

A relay with the cluster's key (link_relay.py) changes the version that the agent says; all else is as it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import link_relay
import pytest
import runtime_kit as kit
from cluster_kit import Cluster, free_address, log_has
from daemon_kit import Daemon
from link_relay import LinkRelay
from story import Story

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(bool(link_relay.MISSING), reason=link_relay.MISSING),
]
LIMIT_S = 20
REFUSAL = re.compile(
    r"the other end speaks version (?P<agent>\d+) of the link, this one version (?P<leader>\d+); "
    r"give all nodes the same hocket"
)


@pytest.fixture
def relay(cluster: Cluster) -> Iterator[Callable[[int], LinkRelay]]:
    """Return a function that starts a relay to the cluster's leader, whose agents say a version that differs by N."""
    started: list[LinkRelay] = []

    def start(difference: int) -> LinkRelay:
        started.append(LinkRelay(free_address(), cluster.address, cluster.key, difference))
        return started[-1]

    yield start
    for one in started:
        one.end()


def test_an_agent_of_the_same_version_passes_the_relay(cluster: Cluster, relay: Callable[[int], LinkRelay]):
    """Otherwise the other tests would show nothing about versions."""
    cluster.lead()
    agent = cluster.join("n1", relay(0).address)
    log_has(agent, "linked to the leader")
    listed = cluster.hocket("n1", "ls")
    assert (listed.code, listed.out) == (0, "no application runs\n"), listed


def refusal(daemon: Daemon) -> int:
    """Wait until the log has the refusal in one line. Return how much the agent's version is above the leader's."""
    found: list[re.Match] = []

    def look() -> bool:
        found[:] = REFUSAL.finditer(daemon.log.read_text())
        return bool(found)

    kit.wait_until(look, LIMIT_S, f"the refusal in the log of {daemon.directory.name}")
    return int(found[0]["agent"]) - int(found[0]["leader"])


@pytest.mark.parametrize("difference", [-1, 1], ids=["older", "newer"])
def test_an_agent_of_another_version_is_refused(
    difference: int,
    mpi: kit.Mpi,
    built: Callable[..., Path],
    cluster: Cluster,
    relay: Callable[[int], LinkRelay],
    tmp_path: Path,
):
    """Programs of its node run uncoordinated, those of other nodes as before."""
    leader, script = cluster.lead("--policy", "fcfs"), built("script.c")
    story = Story(leader)
    refused = cluster.join("n1", relay(difference).address)
    cluster.join("n2")
    assert (refusal(leader), refusal(refused)) == (difference, difference)
    said = {}
    for node in ("n1", "n2"):
        run = kit.finish(cluster.job(node, node, mpi, script, f"open={tmp_path / node}", "write=1000", "close"))
        assert (run.code, run.out) == (0, ""), f"the program on {node}: {run}"
        assert (tmp_path / node).read_bytes() == 1000 * b"A" + 1000 * b"B"
        said[node] = run.err
    assert said["n1"].count("\n") == 1 and "uncoordinated" in said["n1"] and said["n2"] == "", said
    story.awaits("FINISH_IO", application="n2")
    assert story.all("HELLO", application_asked="n1") == []
    listed = cluster.hocket("n1", "ls")
    assert listed.code == 1 and listed.err.count("\n") == 1 and REFUSAL.search(listed.err), listed
    assert json.loads(cluster.hocket("n2", "daemon", "status", "--json").out)["agents"] == 1


def test_an_agent_goes_past_a_leader_of_another_version(
    mpi: kit.Mpi, built: Callable[..., Path], cluster: Cluster, relay: Callable[[int], LinkRelay], tmp_path: Path
):
    """It asks that leader again and again, as the first of its list. Its members notice nothing of it."""
    later = free_address()
    first, second = cluster.lead(), cluster.lead("--policy", "fcfs", node="adm2", address=later)
    between = relay(1)
    agent, story, go = cluster.join("n1", between.address, later), Story(second), tmp_path / "go"
    log_has(agent, f"linked to the leader at {later}")
    actions = ("begin=1000", f"await={go}", "finish", "close")
    job = cluster.job("n1", "solver", mpi, built("script.c"), f"open={tmp_path / 'a'}", *actions)
    story.awaits("GRANT_IO", application="solver")
    assert refusal(first) == 1
    before = between.connections
    kit.wait_until(lambda: between.connections > before + 1, 3 * LIMIT_S, "the agent asks the first leader twice")
    go.touch()
    run = kit.finish(job)
    assert (run.code, run.out, run.err) == (0, "", "")
    story.awaits("FINISH_IO", application="solver")
    assert "has ended" not in agent.log.read_text()
