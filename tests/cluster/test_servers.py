"""I/O servers on any node of a cluster: who reaches them, and what happens when nodes, daemons and servers fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hosts
import pytest
import runtime_kit as kit
from daemon_kit import START_LIMIT_S
from host_cluster import LIMIT_S, RUNTIME, HostCluster, TraceOnHost, on_host, said, spread, variables
from hosts import SHARED, Host, Hosts
from put_get_kit import MIB, NO_SERVER, Program, noise

pytestmark = pytest.mark.timeout(240)
Serving = Callable[..., HostCluster]


class ProgramOnHost(Program):
    """A process of put_get.c on a host. Files of its commands are in the shared directory."""

    def __init__(self, program: Path, host: Host, store: Path):
        self.process = host.start([program], stdin=subprocess.PIPE)
        self.scratch = store

    def file(self, data: bytes) -> Path:
        name = f"put-{self.process.pid}"
        (self.scratch / name).write_bytes(data)
        return SHARED / name

    def tell_get(self, *words: object) -> None:
        self.tell(*words, SHARED / f"got-{self.process.pid}")

    def got(self) -> bytes:
        code, text = self.answer()
        assert code == 0, f"get: {code} {text}"
        return (self.scratch / f"got-{self.process.pid}").read_bytes()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def serving(start_cluster: Callable[..., HostCluster], put_get: Path) -> Serving:
    """Return a function that starts a leader on `adm` and agents on the other hosts."""

    def start(*names: str, policy: str = "cost") -> HostCluster:
        cluster = start_cluster("adm", *names, visible=(put_get.parent,))
        cluster.give_boot_ids()
        adm, *others = cluster.hosts
        cluster.lead(adm, "--policy", policy)
        for host in others:
            cluster.join(host)
        return cluster

    return start


@pytest.fixture
def on(put_get: Path) -> Any:
    """Return a function that starts a program on a host of a cluster."""
    started: list[ProgramOnHost] = []

    def start(cluster: HostCluster, host: str) -> ProgramOnHost:
        started.append(ProgramOnHost(put_get, cluster.hosts[host], cluster.hosts.store))
        return started[-1]

    yield start
    for one in started:
        one.end()


def serve(cluster: HostCluster, host: str, *options: str) -> kit.Run:
    """Start a server beside the daemon of the host, by hand."""
    run = cluster.hocket(cluster.hosts[host], "server", "start", "--dir", str(SHARED), *options)
    assert run.code == 0, run.err
    return run


def logs(cluster: HostCluster) -> str:
    """Return what the daemons and servers of all hosts have said."""
    files = [path for host in cluster.hosts for path in on_host(host, RUNTIME).glob("**/*.log")]
    return "\n".join(f"{path}:\n{path.read_text()}" for path in files)


def await_state(cluster: HostCluster, name: str, *states: str, where: str = "adm") -> dict[str, Any]:
    """Wait until the server has one of these states, and return what is listed; "": it is not listed."""
    found: dict[str, Any] = {}

    def look() -> bool:
        found.clear()
        found.update(cluster.servers(cluster.hosts[where]).get(name, {"state": ""}))
        return found["state"] in states

    try:
        kit.wait_until(look, LIMIT_S, f"{name} is {' or '.join(states)}")
    except AssertionError as error:
        raise AssertionError(f"{error}, not '{found['state']}'; logs:\n{logs(cluster)}") from None
    return found


def process_of(host: Host, pid: int) -> Path:
    """Return the /proc of a process by the number that it has on the host."""
    return on_host(host, Path(f"/proc/{pid}"))


def put(program: ProgramOnHost, path: Path, data: bytes) -> None:
    program.must("open", path, "rwc")
    program.put(0, data)
    program.must("close")


# ---- who reaches them ------------------------------------------------------------------------------------------------


def test_programs_of_all_nodes_use_servers_of_another(serving: Serving, on: Any) -> None:
    """Over TCP, at the address of the link, with the secret that the daemons have left on each node."""
    cluster = serving("one", "two")
    serve(cluster, "one")
    listed = cluster.servers(cluster.hosts["adm"])["s1"]
    assert listed["on_node"] == "one" and f"tcp:{cluster.hosts['one'].address}:" in listed["addresses"]
    for count, node in enumerate(("two", "one", "adm"), 1):
        data = noise(3 * MIB, count)
        program = on(cluster, node)
        put(program, SHARED / node, data)
        program.must("open", SHARED / node, "r")
        assert program.get("get", 0, len(data)) == data
        program.must("close")
        assert (cluster.hosts.store / node).read_bytes() == data
        moved = lambda at_least=count: cluster.servers(cluster.hosts["adm"])["s1"]["bytes"] >= 6 * MIB * at_least  # noqa: E731
        kit.wait_until(moved, LIMIT_S, f"s1 has moved the bytes of {node}")


def test_a_server_of_the_same_name_on_another_node_is_refused_and_not_mistaken(serving: Serving, on: Any) -> None:
    """Its socket has the path that the map says, but on another node."""
    cluster = serving("one", "two")
    serve(cluster, "one")
    two = cluster.hosts["two"]
    words = [cluster.prefix / "bin" / "hocket-server", "--name", "s1", "--runtime-dir", RUNTIME, "--dir", SHARED]
    second = two.start(words, stderr=subprocess.STDOUT)
    cluster.started.append(second)
    assert "listens on" in hosts.first_line(second, START_LIMIT_S)
    assert "a server called 's1' runs already" in hosts.first_line(second, START_LIMIT_S)
    data = noise(MIB)
    put(on(cluster, "two"), SHARED / "f", data)
    assert (cluster.hosts.store / "f").read_bytes() == data
    kit.wait_until(lambda: cluster.servers(two)["s1"]["bytes"] >= MIB, LIMIT_S, "the server of the map wrote them")
    assert cluster.servers(two)["s1"]["on_node"] == "one"
    # A free name is found, though the leader is asked from another node.
    assert "s2" in serve(cluster, "one").err


def test_a_node_with_another_secret_reaches_no_server(serving: Serving, on: Any) -> None:
    """Its programs access files directly, and say nothing: the server does."""
    cluster = serving("one", "two")
    serve(cluster, "one")
    cluster.hosts["two"].write(RUNTIME / "servers" / "secret", b"0" * 64)
    put(on(cluster, "two"), SHARED / "f", b"direct")
    assert (cluster.hosts.store / "f").read_bytes() == b"direct"
    log = on_host(cluster.hosts["one"], RUNTIME / "servers" / "s1.log")
    assert "does not know the secret, or means another server" in log.read_text()
    assert cluster.servers(cluster.hosts["adm"])["s1"]["bytes"] == 0
    code, text = on(cluster, "two").call("open", "hocket:/field", "w", "wait_s=1")
    assert code == NO_SERVER and "is the secret the servers' own?" in text, text


# ---- starting and stopping -------------------------------------------------------------------------------------------


def test_servers_are_started_and_stopped_on_any_node(serving: Serving, on: Any) -> None:
    cluster = serving("one", "two")
    adm, _, two = cluster.hosts
    started = cluster.hocket(adm, "server", "start", "--on", "one,two,adm", "-n", "2", "--dir", str(SHARED))
    assert started.code == 0, started.err
    listed = cluster.servers(two)
    assert sorted((one["on_node"], one["state"]) for one in listed.values()) == sorted(
        (node, "up") for node in ("adm", "one", "two") for _ in range(2)
    )
    data = noise(8 * MIB)
    put(on(cluster, "two"), SHARED / "f", data)
    assert (cluster.hosts.store / "f").read_bytes() == data
    of_one = min(name for name, one in listed.items() if one["on_node"] == "one")
    stopped = cluster.hocket(two, "server", "stop", of_one)
    assert stopped.code == 0, stopped.err
    assert of_one not in cluster.servers(two)
    assert not process_of(cluster.hosts["one"], listed[of_one]["pid"]).exists()
    stopped = cluster.hocket(two, "server", "stop")
    assert (stopped.code, cluster.servers(two)) == (0, {}), stopped.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--on", "nowhere", "--dir", "/run/shared"], "no agent of this user's daemons has joined from node 'nowhere'"),
        (["--on", "one", "--dir", "/run/none"], "s1 on one did not start: "),
        (["--on", "one,nowhere", "--dir", "/run/shared"], "these nodes are there: adm one"),
        (["--on", ",", "--dir", "/run/shared"], "name nodes, joined by commas"),
    ],
)
def test_what_cannot_be_started_is_said_in_one_line(serving: Serving, options: list[str], said: str) -> None:
    cluster = serving("one")
    run = cluster.hocket(cluster.hosts["adm"], "server", "start", *options)
    assert run.code != 0 and said in run.err and run.err.count("\n") == 1, run.err
    kit.wait_until(lambda: not cluster.servers(cluster.hosts["adm"]), LIMIT_S, "no server stays")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_servers_that_an_agent_has_started_end_with_it(number: int, serving: Serving, on: Any) -> None:
    """In order, also if the agent is killed: what they held is in the file."""
    cluster = serving("one", "two")
    adm, one, _ = cluster.hosts
    options = ("--on", "one", "--dir", str(SHARED), "--write-behind", "--longest-turn-wait", "60")
    started = cluster.hocket(adm, "server", "start", *options)
    assert started.code == 0, started.err
    server = cluster.servers(adm)["s1"]
    data = noise(MIB)
    program = on(cluster, "two")
    program.must("open", SHARED / "f", "rwc")
    program.put(0, data)
    os.kill(hosts.inner(cluster.started[1]), number)
    gone = lambda: not process_of(one, server["pid"]).exists()  # noqa: E731
    kit.wait_until(gone, LIMIT_S, "the server has ended")
    assert (cluster.hosts.store / "f").read_bytes() == data
    kit.wait_until(lambda: cluster.servers(adm).get("s1", {"state": "lost"})["state"] == "lost", LIMIT_S, "its end")


# ---- faults ----------------------------------------------------------------------------------------------------------


def test_a_server_outlives_the_agent_of_its_node_and_comes_back(serving: Serving, on: Any) -> None:
    """It was started by hand. What it holds stays. A later agent knows this run of it by the lock of its name."""
    cluster = serving("one", "two")
    adm, one, _ = cluster.hosts
    serve(cluster, "one", "--write-behind", "--longest-turn-wait", "60")
    before = cluster.servers(adm)["s1"]
    program, data = on(cluster, "two"), noise(2 * MIB)
    program.must("open", SHARED / "f", "rwc")
    program.put(0, data)
    os.kill(hosts.inner(cluster.started[1]), signal.SIGKILL)
    cluster.started[1].wait(LIMIT_S)
    await_state(cluster, "s1", "lost")
    cluster.join(one)
    after = await_state(cluster, "s1", "up")
    assert (after["instance"], after["pid"]) == (before["instance"], before["pid"])
    assert program.get("get", 0, len(data)) == data
    program.must("close")
    assert (cluster.hosts.store / "f").read_bytes() == data
    # The new agent ends it, too.
    stopped = cluster.hocket(adm, "server", "stop")
    assert stopped.code == 0 and cluster.servers(adm) == {}, stopped.err


def test_the_end_of_a_server_that_nobody_saw_is_found_by_the_next_agent(serving: Serving) -> None:
    """Until then the map waits for it: it holds data, and may still write."""
    cluster = serving("one", "two")
    adm, one, _ = cluster.hosts
    serve(cluster, "one", "--write-behind")
    server = cluster.servers(adm)["s1"]
    os.kill(hosts.inner(cluster.started[1]), signal.SIGKILL)
    cluster.started[1].wait(LIMIT_S)
    await_state(cluster, "s1", "lost")
    assert one.run(["kill", "-9", str(server["pid"])]).code == 0
    serve(cluster, "two", "--write-behind")
    assert "s2" in cluster.servers(adm), "its name is not free before its end is known"
    cluster.join(one)
    log = on_host(adm, RUNTIME / "hocketd.log")
    kit.wait_until(lambda: "the I/O server s1 (process" in log.read_text(), LIMIT_S, "its end is known")
    serve(cluster, "one")
    assert cluster.servers(adm)["s1"]["instance"] != server["instance"]


def test_a_server_whose_node_is_cut_off_keeps_nobody_waiting(serving: Serving, on: Any) -> None:
    """Its client cannot know what it has written, and is told so. It comes back with its node, and has lost nothing."""
    cluster = serving("one", "two")
    adm, one, _ = cluster.hosts
    serve(cluster, "one", "--write-behind", "--longest-turn-wait", "60")
    before = cluster.servers(adm)["s1"]
    first, data = on(cluster, "two"), noise(MIB)
    put(first, SHARED / "a", data)
    assert (cluster.hosts.store / "a").read_bytes() == data, "it was closed"
    first.must("open", SHARED / "b", "rwc")
    first.put(0, data)
    assert one.run(["ip", "link", "set", "eth0", "down"]).code == 0
    await_state(cluster, "s1", "lost", "hung")
    began = time.monotonic()
    first.tell("put", len(data), first.file(data))
    code, text = first.answer()
    assert time.monotonic() - began < 45
    # Others are served by servers of other nodes, or say that there is none.
    second = on(cluster, "adm")
    assert second.call("open", SHARED / "c", "rwc")[0] in (0, NO_SERVER)
    assert one.run(["ip", "link", "set", "eth0", "up"]).code == 0
    after = await_state(cluster, "s1", "up")
    assert after["instance"] == before["instance"]
    held = lambda: (cluster.hosts.store / "b").read_bytes()[: len(data)] == data  # noqa: E731
    kit.wait_until(held, LIMIT_S, "what it had answered is in the file")
    assert code != 0, f"nobody can know what became of this: {text}"


def test_servers_go_to_a_leader_that_has_begun_again(serving: Serving, on: Any) -> None:
    cluster = serving("one", "two")
    adm, *_ = cluster.hosts
    serve(cluster, "one")
    before = cluster.servers(adm)["s1"]
    program, data = on(cluster, "two"), noise(MIB)
    program.must("open", SHARED / "f", "rwc")
    program.put(0, data)
    os.kill(hosts.inner(cluster.started[0]), signal.SIGKILL)
    cluster.started[0].wait(LIMIT_S)  # else the next daemon finds this one
    program.must("put", len(data), program.file(data))
    cluster.lead(adm)
    assert await_state(cluster, "s1", "up")["instance"] == before["instance"]
    program.must("close")
    put(on(cluster, "adm"), SHARED / "g", data)
    assert (cluster.hosts.store / "f").read_bytes() == 2 * data
    assert (cluster.hosts.store / "g").read_bytes() == data


def test_a_hung_server_of_another_node_is_killed_by_its_agent(serving: Serving) -> None:
    cluster = serving("one")
    adm, one = cluster.hosts
    serve(cluster, "one")
    server = cluster.servers(adm)["s1"]
    assert one.run(["kill", "-STOP", str(server["pid"])]).code == 0
    gone = lambda: not process_of(one, server["pid"]).exists()  # noqa: E731
    kit.wait_until(gone, LIMIT_S, "the server has been killed")
    await_state(cluster, "s1", "lost")


# ---- programs of several ranks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("opens", ["world", "self"])
def test_a_job_over_two_nodes_writes_through_servers_of_both(
    opens: str,
    mpi: kit.Mpi,
    built: Callable[..., Path],
    serving: Serving,
    start_shells: Callable[[Hosts], None],
) -> None:
    """One file of all ranks, and a file for each."""
    cluster = serving("one", "two")
    adm, one, _ = cluster.hosts
    started = cluster.hocket(adm, "server", "start", "--on", "one,two", "--dir", str(SHARED), "--write-behind")
    assert started.code == 0, started.err
    start_shells(cluster.hosts)
    script = built("script.c")
    _, environment = mpi.command(2, [script], preload="", settings={})
    environment |= {"UCX_TLS": "tcp,self"}  # MPICH would use shared memory between these hosts
    actions = [opens, f"open={SHARED / 'a'}", "write=700000", "write=700000", "sync", "close"]
    words = ["run", "--io", "hocket", "--name", "wide", "--", *spread(mpi, 4, ["one", "two"]), script, *actions]
    job = one.start([sys.executable, "-m", "hocket.cli", *words], variables(environment))
    assert said(hosts.finish(job, LIMIT_S)) == (0, "", "")
    blocks = [700000 * bytes([letter]) for letter in b"ABCD"]
    if opens == "world":
        assert (cluster.hosts.store / "a").read_bytes() == 2 * b"".join(blocks)
    else:
        for rank, block in enumerate(blocks):
            assert (cluster.hosts.store / f"a.{rank}").read_bytes() == 2 * block
    kit.wait_until(
        lambda: sum(one["bytes"] for one in cluster.servers(adm).values()) >= 8 * 700000, LIMIT_S, "the servers wrote"
    )


def test_a_file_for_each_process_of_three_nodes(
    mpi: kit.Mpi, built: Callable[..., Path], serving: Serving, start_shells: Callable[[Hosts], None]
) -> None:
    """Each rank asks for itself, through the agent of its node. Another job does no I/O while one of them does."""
    nodes = ["one", "two", "three"]
    cluster = serving(*nodes, policy="fcfs")
    adm, one, *_ = cluster.hosts
    started = cluster.hocket(adm, "server", "start", "--on", ",".join(nodes), "--dir", str(SHARED))
    assert started.code == 0, started.err
    start_shells(cluster.hosts)
    story, script = TraceOnHost(adm), built("script.c")
    _, environment = mpi.command(2, [script], preload="", settings={})
    environment |= {"UCX_TLS": "tcp,self"}  # MPICH would use shared memory between these hosts
    program = [script, "self", f"open={SHARED / 'a'}", "write=2500000", "write=700000", "close"]
    words = ["run", "--io", "hocket", "--name", "wide", "--", *spread(mpi, 6, nodes), *program]
    wide = one.start([sys.executable, "-m", "hocket.cli", *words], variables(environment))
    other = cluster.job(adm, "other", mpi, script, f"open={SHARED / 'b'}", "write=1000", "close")
    for job in (wide, other):
        run = hosts.finish(job, LIMIT_S)
        assert said(run) == (0, "", "")
    story.awaits("FINISH_IO", application="other")
    for kind in ("START_IO", "FINISH_IO"):
        story.until(lambda kind=kind: nodes_of(story, kind, "wide") == sorted(2 * nodes), f"{kind} of all ranks")
    never_two_at_once(story)
    for rank, letter in enumerate(b"ABCDEF"):
        assert (cluster.hosts.store / f"a.{rank}").read_bytes() == 3200000 * bytes([letter])
    moved = lambda: all(server["bytes"] > 0 for server in cluster.servers(adm).values())  # noqa: E731
    kit.wait_until(moved, LIMIT_S, "the servers of all nodes wrote, since each rank wrote more than three stripes")


def nodes_of(story: TraceOnHost, kind: str, name: str) -> list[str]:
    """Return the node of each process of the application that has sent such an event."""
    return sorted({line["member"]: line["node"] for line in story.all(kind, application=name)}.values())


def never_two_at_once(story: TraceOnHost) -> None:
    """Check that the accesses at each time were those of one application, by grants and by delegations."""
    holding: dict[tuple[int | None, int | None], str] = {}
    for line in story.read():
        access = line.get("member"), line.get("request")
        if line.get("out") == "GRANT_IO" or line.get("delegation"):
            holding[access] = line["application"]
        elif line.get("in") == "FINISH_IO":
            holding.pop(access, None)
        assert len(set(holding.values())) <= 1, f"{holding} at {line}"


@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
def test_a_job_whose_server_is_cut_off_ends_with_an_error(
    mpi: kit.Mpi, built: Callable[..., Path], serving: Serving
) -> None:
    """Nobody knows if the server has written what it was sent. The next job goes on without it, and with it later."""
    cluster = serving("one", "two")
    adm, one, two = cluster.hosts
    serve(cluster, "one")

    def start(name: str, *actions: str) -> subprocess.Popen:
        mpiexec, environment = mpi.command(
            2, [built("script.c"), f"open={SHARED / name}", *actions], preload="", settings={}
        )
        words = ["run", "--io", "hocket", "--name", name, "--", *mpiexec]
        return two.start([sys.executable, "-m", "hocket.cli", *words], variables(environment))

    first = start("first", "write=100000", f"mark={SHARED / 'mark'}", f"writing={SHARED / 'never'}", "close")
    kit.wait_until((cluster.hosts.store / "mark").exists, LIMIT_S, "the first write")
    assert one.run(["ip", "link", "set", "eth0", "down"]).code == 0
    run = hosts.finish(first, 90)
    assert run.code != 0 and "s1" in run.err, run.err
    written = (cluster.hosts.store / "first").read_bytes()
    assert written[:200000] == 100000 * b"A" + 100000 * b"B", "it was acknowledged"
    await_state(cluster, "s1", "lost", "hung")
    second = hosts.finish(start("second", "write=100000", "close"), 90)
    assert second.code == 0, second.err
    assert (cluster.hosts.store / "second").read_bytes() == 100000 * b"A" + 100000 * b"B"
    assert one.run(["ip", "link", "set", "eth0", "up"]).code == 0
    before = await_state(cluster, "s1", "up")["bytes"]
    third = hosts.finish(start("third", "write=100000", "close"), 90)
    assert third.code == 0, third.err
    kit.wait_until(lambda: cluster.servers(adm)["s1"]["bytes"] >= before + 200000, LIMIT_S, "it serves again")
