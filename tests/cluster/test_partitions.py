"""The network between hosts is parted: each side has a leader, both grant turns, and nobody hangs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import hosts
import pytest
import runtime_kit as kit
from host_cluster import LEADER_PORT, LIMIT_S, HostCluster, TraceOnHost
from hosts import SHARED, Host

pytestmark = pytest.mark.timeout(180)
# A program looks for hocketd again when an I/O phase begins, which takes a pause since the last access.
NEXT_PHASE = "pause=1.5"


class Sides:
    """Hosts adm1 and one on one side, adm2 and two on the other; leaders on adm1 and adm2; programs of two ranks."""

    def __init__(self, cluster: HostCluster, mpi: kit.Mpi, script: Path) -> None:
        self.cluster, self.mpi, self.script = cluster, mpi, script
        self.adm1, self.adm2, self.one, self.two = cluster.hosts
        self.leaders = [f"{host.address}:{LEADER_PORT}" for host in (self.adm1, self.adm2)]
        for host in (self.adm1, self.adm2):
            cluster.lead(host, "--policy", "fcfs", "--leaders", " ".join(self.leaders))
        for host in (self.one, self.two):
            cluster.join(host, leaders=self.leaders)
        self.first_story, self.later_story = TraceOnHost(self.adm1), TraceOnHost(self.adm2)

    def part(self) -> None:
        self.cluster.hosts.part("adm2", "two")

    def reunite(self) -> None:
        self.cluster.hosts.reunite()

    def start(self, host: Host, name: str, *actions: str) -> subprocess.Popen:
        return self.cluster.job(host, name, self.mpi, self.script, f"open={SHARED / name}", *actions, "close")

    def go(self, name: str) -> None:
        (self.cluster.hosts.store / f"go-{name}").touch()

    def reached(self, name: str) -> None:
        mark = self.cluster.hosts.store / f"mark-{name}"
        kit.wait_until(mark.exists, LIMIT_S, f"a program is at '{name}'")

    def linked(self, host: Host, leader: str, times: int = 1) -> None:
        """Wait until the host's agent has been linked to the leader so often."""
        line = f"linked to the leader at {leader} "
        kit.wait_until(lambda: self.cluster.log(host).count(line) == times, LIMIT_S, f"{host.name}: {times} '{line}'")

    def ends(self, job: subprocess.Popen, name: str, blocks: int) -> str:
        """Wait for the end of a program that wrote so many blocks, all of which its file has. Return what it said."""
        run = hosts.finish(job, LIMIT_S)
        assert (run.code, run.out) == (0, ""), f"{name}: {run}"
        written = blocks * (1000 * b"A" + 1000 * b"B")
        assert (self.cluster.hosts.store / name).read_bytes() == written, f"the file of {name}"
        return run.err


def mark(name: str) -> str:
    return f"mark={SHARED / f'mark-{name}'}"


def wait(name: str) -> str:
    return f"await={SHARED / f'go-{name}'}"


@pytest.fixture
def sides(mpi: kit.Mpi, built: Callable[..., Path], start_cluster: Callable[..., HostCluster]) -> Sides:
    return Sides(start_cluster("adm1", "adm2", "one", "two"), mpi, built("script.c"))


def test_two_leaders_grant_while_the_network_is_parted_and_one_afterwards(sides: Sides):
    """Turns are worse meanwhile: two programs hold the target at once. All go back to the first leader afterwards."""
    first = sides.start(sides.one, "first", "begin=1000", wait("first"), "finish")
    sides.first_story.awaits("GRANT_IO", application="first")
    second = sides.start(
        sides.two, "second", "write=1000", mark("alone"), wait("parted"), NEXT_PHASE, "begin=1000", wait("reunited"),
        "finish", NEXT_PHASE, "write=1000",
    )  # fmt: skip
    assert sides.first_story.awaits("QUEUED_IO", application="second")["behind"] == "first"

    sides.part()
    lost = sides.first_story.awaits("LOST", application="second")["at"]
    sides.reached("alone")
    sides.linked(sides.two, sides.leaders[1])
    sides.go("parted")
    sides.later_story.awaits("GRANT_IO", application="second")
    third = sides.start(sides.two, "third", "write=1000")
    assert sides.later_story.awaits("QUEUED_IO", application="third")["behind"] == "second"
    assert sides.first_story.all("FINISH_IO", application="first") == [], "both leaders have granted the target"
    assert sides.later_story.awaits("LEADER_PLACE")["place"] == 2

    sides.reunite()
    sides.linked(sides.two, sides.leaders[0], times=2)
    sides.first_story.awaits("QUEUED_IO", application="third")
    sides.go("reunited")
    assert sides.first_story.awaits("QUEUED_IO", since=lost, application="second")["behind"] == "first"
    sides.go("first")
    assert sides.ends(first, "first", 1) == ""
    assert sides.ends(third, "third", 1) == "", "it asked the first leader as soon as its own one was gone"
    said = sides.ends(second, "second", 3)
    assert said.count("\n") == 1 and "hocketd" in said, said
    for name in ("second", "third"):
        sides.first_story.awaits("FINISH_IO", application=name)
    status = sides.cluster.hocket(sides.two, "daemon", "status", "--json")
    assert json.loads(status.out)["leader_place"] == 1, status
