"""Names that targets have by themselves on several nodes: which jobs wait for each other, by whatever numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import hosts
import pytest
import runtime_kit as kit
from cluster_kit import granted
from host_cluster import LIMIT_S, HostCluster, TraceOnHost, end_two_jobs, start_two_jobs
from hosts import SHARED

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    """A directory of the machine, in which each host has one that stands for its local disk."""
    path = tmp_path / "disks"
    for name in ("one", "two"):
        (path / name).mkdir(parents=True)
    return path


@pytest.fixture
def cluster(start_cluster: Callable[..., HostCluster], disks: Path) -> HostCluster:
    """A leader and two agents that no operator has told names of targets. Each host has a boot id, as nodes have."""
    one = start_cluster("adm", "one", "two", visible=(disks,), how=("gluster",), target_names="")
    one.give_boot_ids()
    adm, *others = one.hosts
    one.lead(adm, "--policy", "fcfs")
    for host in others:
        one.join(host)
    return one


def devices(cluster: HostCluster, path: Path) -> list[str]:
    """Return the device number of a path on the hosts `one` and `two`."""
    return [cluster.hosts[name].run(["stat", "--format=%d", path]).out.strip() for name in ("one", "two")]


def test_jobs_on_local_disks_with_equal_numbers_do_not_wait_for_each_other(
    mpi: kit.Mpi, built: Callable[..., Path], cluster: HostCluster, disks: Path
) -> None:
    adm, one, two = cluster.hosts
    number, same = devices(cluster, disks)
    assert number == same != ""
    story, script = TraceOnHost(adm), built("script.c")
    hold = ("begin=1000", f"await={SHARED / 'go'}", "finish", "close")
    first = cluster.job(one, "first", mpi, script, f"open={disks / 'one' / 'a'}", *hold)
    story.awaits("GRANT_IO", application="first")
    second = hosts.finish(
        cluster.job(two, "second", mpi, script, f"open={disks / 'two' / 'b'}", "write=1000", "close"), LIMIT_S
    )
    assert (second.code, second.out, second.err) == (0, "", "")
    story.awaits("BYE", application="second")
    assert not story.all("QUEUED_IO") and not story.all("FINISH_IO", application="first")
    third = cluster.job(one, "third", mpi, script, f"open={disks / 'one' / 'c'}", "write=1000", "close")
    assert story.awaits("QUEUED_IO", application="third")["behind"] == "first"
    (cluster.hosts.store / "go").touch()
    for job in (first, third):
        run = hosts.finish(job, LIMIT_S)
        assert (run.code, run.out, run.err) == (0, "", "")
    story.awaits("BYE", application="third")
    targets = {
        name: {line["target"] for line in story.all("START_IO", application=name)} for name in ("first", "third")
    }
    (of_second,) = {line["target"] for line in story.all("START_IO", application="second")}
    assert targets["first"] == targets["third"] and len(targets["first"]) == 1, targets
    device, node = targets["first"].pop().rsplit("@", 1)
    assert of_second.rsplit("@", 1)[0] == device and of_second.rsplit("@", 1)[1] != node


def test_jobs_on_a_shared_file_system_with_unequal_numbers_take_turns(
    mpi: kit.Mpi, built: Callable[..., Path], cluster: HostCluster
) -> None:
    """The hosts mount it as clients of GlusterFS do, so its source is its name."""
    adm, *_ = cluster.hosts
    number, other = devices(cluster, SHARED)
    assert number != other and number and other
    story = TraceOnHost(adm)
    end_two_jobs(cluster, story, start_two_jobs(cluster, story, mpi, built("script.c")))
    turns = [(kind, name) for name in ("first", "second") for kind in ("GRANT_IO", "FINISH_IO")]
    assert granted(story, "first", "second") == turns
    assert {line["target"] for line in story.all("START_IO")} == {"gluster:storage:/volume"}
