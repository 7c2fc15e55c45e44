"""Programs on several hosts, each with its own kernel's view: networks, clocks, device numbers, processes."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import hosts
import malleable_kit
import pytest
import runtime_kit as kit
from cluster_kit import granted
from host_cluster import (
    LIMIT_S,
    RUNTIME,
    HostCluster,
    TraceOnHost,
    end_two_jobs,
    said,
    spread,
    start_two_jobs,
    variables,
)
from hosts import SHARED, Host, Hosts
from users_kit import FIRST, OWNER, become

pytestmark = pytest.mark.timeout(180)
AHEAD = ["unshare", "--time", "--monotonic", "500000", "--boottime", "500000", "--fork"]


@pytest.mark.parametrize(
    "ahead", [(), ("two",), ("adm", "one")], ids=["one clock", "a clock is ahead", "a clock is behind"]
)
def test_jobs_on_two_hosts_take_turns(
    ahead: tuple[str, ...], mpi: kit.Mpi, built: Callable[..., Path], start_cluster: Callable[..., HostCluster]
):
    """Device numbers differ, and the clock of the third host is days ahead of the others, or behind them."""
    cluster = start_cluster("adm", "one", "two")
    adm, one, two = cluster.hosts
    clock = {host.name: tuple(AHEAD) if host.name in ahead else () for host in cluster.hosts}
    cluster.lead(adm, "--policy", "fcfs", within=clock["adm"])
    cluster.join(one, clock["one"]), cluster.join(two, clock["two"])
    story = TraceOnHost(adm)
    jobs = start_two_jobs(cluster, story, mpi, built("script.c"), clock)
    check_that_tools_name_the_hosts(cluster, adm)
    end_two_jobs(cluster, story, jobs)
    assert [kind for kind, _ in granted(story, "first", "second")] == 2 * ["GRANT_IO", "FINISH_IO"]
    assert {line["node"] for line in story.all("START_IO")} == {"one", "two"}
    phases = story.all("IO_PHASE")
    assert {line["application"] for line in phases} == {"first", "second"}
    assert all(0 <= line["time_ns"] - line["start_ns"] < LIMIT_S * 1e9 for line in phases), phases
    for name in "ab":
        assert (cluster.hosts.store / name).read_bytes() == 1000 * b"A" + 1000 * b"B"


def check_that_tools_name_the_hosts(cluster: HostCluster, adm: Host) -> None:
    """`first` is in I/O on one, and `second` waits on two."""
    listed = cluster.hocket(adm, "ls").out
    assert re.search(r"^APPLICATION +NODE +STATE", listed) and re.search(r"^first +one +io +2", listed, re.M), listed
    assert re.search(r"^second +two +waiting +2", listed, re.M), listed
    explained = cluster.hocket(adm, "explain")
    assert explained.out.splitlines()[-1] == "where they run: second (on two), first (on one)", explained
    live = cluster.hocket(adm, "top", "--once", "--width", "100").out
    assert "on one · 2 processes" in live and "on two · 2 processes" in live, live
    waits = cluster.hocket(adm, "events", "--filter", "QUEUED_IO", "--timeout", str(LIMIT_S))  # it comes every second
    assert re.search(r"second +QUEUED_IO +node=two request=", waits.out), waits


def test_two_hosts_of_one_name_are_told_apart(
    mpi: kit.Mpi, built: Callable[..., Path], start_cluster: Callable[..., HostCluster]
):
    """The later one gets a part of its identity behind its name. Programs on both take turns."""
    cluster = start_cluster("adm", "one", "two")
    adm, one, two = cluster.hosts
    assert two.run(["hostname", "one"]).code == 0
    cluster.lead(adm, "--policy", "fcfs")
    cluster.join(one), cluster.join(two)
    story = TraceOnHost(adm)
    jobs = start_two_jobs(cluster, story, mpi, built("script.c"))

    listed = json.loads(cluster.hocket(two, "ls", "--json").out)["applications"]
    nodes = {application["application"]: application["on_node"] for application in listed}
    assert nodes["first"] == "one" and re.fullmatch(r"one~[0-9a-f]{8}", nodes["second"]), nodes
    shown = {line.split()[0]: line.split()[1] for line in cluster.hocket(one, "ls").out.splitlines()}
    assert shown["APPLICATION"] == "NODE" and nodes.items() <= shown.items(), shown
    status = cluster.hocket(two, "daemon", "status").out
    assert "agents        2\n" in status, status
    for node in ("adm", *nodes.values()):
        assert f"cores         {node}: " in status, status

    end_two_jobs(cluster, story, jobs)
    assert [kind for kind, _ in granted(story, "first", "second")] == 2 * ["GRANT_IO", "FINISH_IO"]
    for name in "ab":
        assert (cluster.hosts.store / name).read_bytes() == 1000 * b"A" + 1000 * b"B"


def test_a_host_that_is_cut_off_goes_on_alone(
    mpi: kit.Mpi, built: Callable[..., Path], start_cluster: Callable[..., HostCluster]
):
    """Its job waits for a grant then. The leader gives its turns to others, and takes it back when it returns."""
    cluster = start_cluster("adm", "one", "two")
    adm, one, two = cluster.hosts
    cluster.lead(adm, "--policy", "fcfs")
    cluster.join(one), cluster.join(two)
    story, script = TraceOnHost(adm), built("script.c")
    first, second = start_two_jobs(cluster, story, mpi, script)
    assert two.run(["ip", "link", "set", "eth0", "down"]).code == 0
    run = hosts.finish(second, LIMIT_S)
    assert (run.code, run.out) == (0, "") and "hocketd" in run.err and run.err.count("\n") == 1, run.err
    assert "has ended" in story.awaits("LOST", application="second")["reason"]
    assert two.run(["ip", "link", "set", "eth0", "up"]).code == 0
    (cluster.hosts.store / "go").touch()
    assert hosts.finish(first, LIMIT_S).code == 0

    def is_back() -> bool:
        run = hosts.finish(
            cluster.job(two, "third", mpi, script, f"open={SHARED / 'c'}", "write=1000", "close"), LIMIT_S
        )
        assert run.code == 0, run.err
        return bool(story.all("FINISH_IO", application="third"))

    kit.wait_until(is_back, LIMIT_S, "the host's agent is linked again")


def test_one_job_over_two_hosts_takes_turns_with_another(
    mpi: kit.Mpi,
    built: Callable[..., Path],
    start_cluster: Callable[..., HostCluster],
    start_shells: Callable[[Hosts], None],
):
    """Rank 0 asks for all ranks, wherever they are."""
    cluster = start_cluster("adm", "one", "two")
    adm, one, two = cluster.hosts
    cluster.lead(adm, "--policy", "fcfs")
    cluster.join(one), cluster.join(two)
    start_shells(cluster.hosts)
    story, script = TraceOnHost(adm), built("script.c")
    _, environment = mpi.command(2, [script], preload="", settings={})
    environment |= {"UCX_TLS": "tcp,self"}  # MPICH would use shared memory between these hosts
    wide = [*spread(mpi, 4, ["one", "two"]), script, f"open={SHARED / 'a'}"]
    run_wide = [sys.executable, "-m", "hocket.cli", "run", "--name", "wide", "--", *wide]
    actions = ("begin=1000", f"await={SHARED / 'go'}", "finish", "write=1000", "close")
    first = one.start([*run_wide, *actions], variables(environment))
    story.awaits("GRANT_IO", application="wide")
    second = cluster.job(adm, "second", mpi, script, f"open={SHARED / 'b'}", "write=1000", "close")
    assert story.awaits("QUEUED_IO", application="second")["behind"] == "wide"
    (cluster.hosts.store / "go").touch()
    for job in (first, second):
        assert said(hosts.finish(job, LIMIT_S)) == (0, "", "")
    written = 2 * b"".join(1000 * bytes([letter]) for letter in b"ABCD")
    assert (cluster.hosts.store / "a").read_bytes() == written
    assert {line["node"] for line in story.all("HELLO", application_asked="wide")} >= {"one"}


@pytest.mark.parametrize("fault", ["absent", "other version"])
def test_a_job_runs_without_hocket_if_one_of_its_hosts_has_another_libhocket_or_none(
    fault: str,
    mpi: kit.Mpi,
    built: Callable[..., Path],
    start_cluster: Callable[..., HostCluster],
    start_shells: Callable[[Hosts], None],
):
    """Ranks with libhocket would wait for those without for ever, and Open MPI would start none at all."""
    cluster = start_cluster("one", "two")
    one, two = cluster.hosts
    cluster.daemon(one)
    start_shells(cluster.hosts)
    library = mpi.libhocket
    if fault == "absent":
        hidden = ["mount", "-t", "tmpfs", "none", library.parent]
    else:
        two.write(Path("/run/other.so"), library.read_bytes() + b"another")
        hidden = ["mount", "--bind", "/run/other.so", library.resolve()]
    assert two.run(hidden).code == 0
    script = built("script.c")
    _, environment = mpi.command(2, [script], preload="", settings={})
    environment |= {"UCX_TLS": "tcp,self"}
    actions = [f"open={SHARED / 'a'}", "write=1000", "close"]
    job = [*spread(mpi, 2, ["one", "two"]), script, *actions]
    run = hosts.finish(one.start([sys.executable, "-m", "hocket.cli", "run", "--", *job], variables(environment)))
    expected = f"hocket: two: there is no {library}, or it is another version's; the application runs uncoordinated\n"
    assert said(run) == (0, "", expected)
    assert (cluster.hosts.store / "a").read_bytes() == 1000 * b"A" + 1000 * b"B"
    assert not TraceOnHost(one).all("HELLO")


def test_a_shrink_leaves_the_node_that_is_named_and_only_that_is_free_again(
    mpi: kit.Mpi,
    prefix: Path,
    built: Callable[..., Path],
    start_cluster: Callable[..., HostCluster],
    start_shells: Callable[[Hosts], None],
):
    """The leader's books follow what the application reports, and the nodes that come and go."""
    cluster = start_cluster("adm", "one", "two")
    adm, one, two = cluster.hosts
    cluster.lead(adm)
    cluster.join(one)
    agent_of_two = cluster.join(two)
    start_shells(cluster.hosts)
    story = TraceOnHost(adm)
    probe = built("malleable_probe.c", *malleable_kit.link_flags(prefix, mpi.name))
    _, environment = mpi.command(4, [probe], preload="", settings={})
    environment |= {"UCX_TLS": "tcp,self"} | (malleable_kit.OPENMPI if mpi.name == "openmpi" else {})
    wide = [*spread(mpi, 4, ["one", "two"]), probe, 10**6, 997, 1]
    job = one.start([sys.executable, "-m", "hocket.cli", "run", "--name", "wide", "--", *wide], variables(environment))
    assert sorted(story.awaits("MALLEABLE")["nodes"].split()) == ["one=2", "two=2"]

    def hocket(host: Host, *words: str) -> kit.Run:
        return host.run([sys.executable, "-m", "hocket.cli", *words], limit_s=LIMIT_S)

    def taken() -> dict[str, tuple[int, int]]:
        nodes = json.loads(hocket(two, "ls", "--json").out)["nodes"]
        return {node["on_node"]: (node["taken"], node["cores"]) for node in nodes}

    cores = len(os.sched_getaffinity(0))
    assert taken() == {"adm": (0, cores), "one": (2, cores), "two": (2, cores)}
    wrong = hocket(adm, "resize", "wide", "2", "--leave", "three")
    assert wrong.code == 1 and "no process on 'three': it runs on" in wrong.err, wrong.err
    resized = hocket(two, "resize", "wide", "2", "--leave", "two")
    assert resized.code == 0 and "runs on one=2" in resized.out, resized.out + resized.err
    record = story.awaits("RECONFIGURATION", targets=2)
    assert (record["nodes"], record["left"].split()) == ("one=2", ["two", "two"])
    assert taken() == {"adm": (0, cores), "one": (2, cores), "two": (0, cores)}
    assert hocket(adm, "resize", "wide", "3").code == 0  # which wakes a process on the second host
    assert taken()["two"] == (1, cores)
    os.kill(hosts.inner(agent_of_two), signal.SIGKILL)
    kit.wait_until(lambda: story.all("NODE_CORES", on_node="two", cores=0), LIMIT_S, "the node has gone")
    status = hocket(adm, "daemon", "status")
    assert "two: gone, 1 taken" in status.out and f"one: 2 of {cores} taken" in status.out, status.out
    job.kill()


def test_a_daemon_at_its_place_serves_all_users_of_its_host(start_cluster: Callable[..., HostCluster]):
    """Programs find it by themselves. They do not trust one that root has not made the place for."""
    cluster = start_cluster("adm")
    (adm,) = cluster.hosts
    place = f"chmod 755 /run && install -d -o {OWNER} -g {OWNER} -m 755 {RUNTIME}"
    assert adm.run(["sh", "-c", place]).code == 0
    ls = [*become(FIRST), "env", "-u", "HOCKET_DIR", sys.executable, "-m", "hocket.cli", "ls"]
    cluster.daemon(adm, "--users", "all", within=tuple(become(OWNER)))
    listed = adm.run(ls)
    assert listed.code == 0 and "no application runs" in listed.out, listed.err
    assert adm.run(["chmod", "1777", "/run"]).code == 0
    listed = adm.run(ls)
    assert listed.code != 0 and "no hocketd listens" in listed.err, "anybody could have made the place"


def test_the_daemon_of_one_of_several_leaders_serves_users_who_choose_it(
    built: Callable[..., Path], start_cluster: Callable[..., HostCluster]
):
    """A program of another user joins it, and the user sees it. Neither trusts a place that anybody could have made."""
    cluster = start_cluster("adm")
    (adm,) = cluster.hosts
    runtime = Path("/run/hocket-scratch")
    adm.write(Path("/run/program"), adm.read(built("script.c")))
    place = f"chmod 755 /run /run/program && install -d -o {OWNER} -g {OWNER} -m 755 {runtime}"
    assert adm.run(["sh", "-c", place]).code == 0
    cluster.daemon(adm, "--users", "all", within=tuple(become(OWNER)), runtime=runtime)
    hocket = [*become(FIRST), "env", "-u", "HOCKET_DIR", f"HOCKET_SOCKET={runtime}/hocketd.sock"]
    hocket += [sys.executable, "-m", "hocket.cli"]
    access = ["/run/program", "open=/tmp/a", "write=1000", "close"]
    run = adm.run([*hocket, "run", "--name", "own", "--", *access])
    assert (run.code, run.err) == (0, "")
    TraceOnHost(adm, runtime).awaits("FINISH_IO", application="own")
    assert adm.run([*hocket, "ls"]).code == 0
    assert adm.run(["chmod", "1777", "/run"]).code == 0
    listed = adm.run([*hocket, "ls"])
    assert listed.code != 0 and f"belongs to user {OWNER}" in listed.err, listed.err
    run = adm.run([*hocket, "run", "--name", "wary", "--", *access])
    assert run.code == 0 and f"belongs to user {OWNER}" in run.err, "it runs uncoordinated, and is told so"


def test_a_leader_that_is_stopped_keeps_no_job_of_another_host_waiting(
    mpi: kit.Mpi, built: Callable[..., Path], start_cluster: Callable[..., HostCluster]
):
    cluster = start_cluster("adm", "one")
    adm, one = cluster.hosts
    leader = cluster.lead(adm)
    cluster.join(one)
    kit.stop(hosts.inner(leader))
    before = time.monotonic()
    run = hosts.finish(
        cluster.job(one, "solver", mpi, built("script.c"), f"open={SHARED / 'a'}", "write=1000", "close")
    )
    assert run.code == 0 and time.monotonic() - before < LIMIT_S
    os.kill(leader.pid, signal.SIGCONT)  # nsenter stops and goes on with its child
