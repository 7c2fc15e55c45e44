"""An agent is killed and started again while programs run on its node: they never hang, rejoin, and lose nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from cluster_kit import Cluster, granted
from daemon_kit import Daemon
from story import Story

pytestmark = pytest.mark.timeout(180)
LIMIT_S = 40
RANKS = 2  # of each program
BLOCK_BYTES = 1000  # of each rank
# A program looks for hocketd again when an I/O phase begins, which takes a pause since the last access.
NEXT_PHASE = "pause=1.5"


class Programs:
    """Programs on the nodes of a cluster. Each writes a file of its own, and obeys files of the test."""

    def __init__(self, cluster: Cluster, mpi: kit.Mpi, script: Path, directory: Path) -> None:
        self.cluster, self.mpi, self.script, self.directory = cluster, mpi, script, directory

    def start(self, node: str, name: str, *actions: str) -> subprocess.Popen:
        opened = f"open={self.directory / name}"
        return self.cluster.job(node, name, self.mpi, self.script, opened, *actions, "close")

    def mark(self, name: str) -> str:
        return f"mark={self.directory / f'mark-{name}'}"

    def wait(self, name: str) -> str:
        return f"await={self.directory / f'go-{name}'}"

    def go(self, name: str) -> None:
        (self.directory / f"go-{name}").touch()

    def reached(self, name: str) -> None:
        kit.wait_until((self.directory / f"mark-{name}").exists, LIMIT_S, f"a program is at '{name}'")

    def ends(self, job: subprocess.Popen, name: str, blocks: int) -> str:
        """Wait for the end of a program that wrote so many blocks, all of which its file has. Return what it said."""
        run = kit.finish(job)
        assert (run.code, run.out) == (0, ""), f"{name}: {run}"
        written = blocks * (BLOCK_BYTES * b"A" + BLOCK_BYTES * b"B")
        assert (self.directory / name).read_bytes() == written, f"the file of {name}"
        return run.err


@pytest.fixture
def programs(mpi: kit.Mpi, built: Callable[..., Path], cluster: Cluster, tmp_path: Path) -> Programs:
    return Programs(cluster, mpi, built("script.c"), tmp_path)


@pytest.fixture
def leader(cluster: Cluster) -> Daemon:
    return cluster.lead("--policy", "fcfs")


def begin_again(cluster: Cluster, killed: Daemon) -> None:
    """Start an agent on the node of a killed one, in the same directory, and wait until the leader has admitted it."""
    again = cluster.join(killed.directory.name)
    kit.wait_until(lambda: again.log.read_text().count("linked to the leader") == 2, LIMIT_S, "the second link")


def test_a_program_that_held_the_target_takes_turns_again(cluster: Cluster, leader: Daemon, programs: Programs):
    """Its grant goes to the program of the other node at once. Its access ends, and it asks for the next one."""
    agent, _ = cluster.join("n1"), cluster.join("n2")
    story, write = Story(leader), f"write={BLOCK_BYTES}"
    first = programs.start(
        "n1", "first", f"begin={BLOCK_BYTES}", programs.wait("finish"), "finish", programs.mark("finished"),
        programs.wait("next"), NEXT_PHASE, f"begin={BLOCK_BYTES}", programs.wait("end"), "finish",
    )  # fmt: skip
    story.awaits("GRANT_IO", application="first")
    second = programs.start("n2", "second", write)
    assert story.awaits("QUEUED_IO", application="second")["behind"] == "first"
    agent.kill()
    lost = story.awaits("LOST", application="first")["at"]
    assert programs.ends(second, "second", 1) == ""
    begin_again(cluster, agent)
    programs.go("finish"), programs.reached("finished"), programs.go("next")
    story.awaits("GRANT_IO", since=lost, application="first")
    third = programs.start("n2", "third", write)
    assert story.awaits("QUEUED_IO", application="third")["behind"] == "first", "first is coordinated again"
    programs.go("end")
    assert programs.ends(first, "first", 2) == "", "it found the new agent when it asked again"
    assert programs.ends(third, "third", 1) == ""
    assert story.awaits("BYE", application="first")["bytes_written"] == 2 * RANKS * BLOCK_BYTES
    story.awaits("FINISH_IO", application="third")
    turns = [("GRANT_IO", "first"), ("FINISH_IO", "first"), ("GRANT_IO", "third"), ("FINISH_IO", "third")]
    assert granted(story, "first", "third")[1:] == turns, "after the grant that was lost"


def test_a_program_that_waited_for_the_target_waits_again(cluster: Cluster, leader: Daemon, programs: Programs):
    """It continues when the agent is killed, whoever holds the target. With the new agent it waits for its turn."""
    agent, _ = cluster.join("n1"), cluster.join("n2")
    story, write = Story(leader), f"write={BLOCK_BYTES}"
    holder = programs.start("n2", "holder", f"begin={BLOCK_BYTES}", programs.wait("end"), "finish")
    story.awaits("GRANT_IO", application="holder")
    waiter = programs.start("n1", "waiter", write, programs.mark("alone"), programs.wait("next"), NEXT_PHASE, write)
    assert story.awaits("QUEUED_IO", application="waiter")["behind"] == "holder"
    agent.kill()
    lost = story.awaits("LOST", application="waiter")["at"]
    programs.reached("alone")
    begin_again(cluster, agent)
    programs.go("next")
    assert story.awaits("QUEUED_IO", since=lost, application="waiter")["behind"] == "holder"
    programs.go("end")
    assert programs.ends(holder, "holder", 1) == ""
    said = programs.ends(waiter, "waiter", 2)
    assert said.count("\n") == 1 and "hocketd" in said, said
    assert story.awaits("BYE", application="waiter")["bytes_written"] == 2 * RANKS * BLOCK_BYTES
    turns = [("GRANT_IO", "holder"), ("FINISH_IO", "holder"), ("GRANT_IO", "waiter"), ("FINISH_IO", "waiter")]
    assert granted(story, "holder", "waiter") == turns
