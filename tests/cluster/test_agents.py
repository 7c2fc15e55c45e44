"""Programs on nodes with agents take turns by the word of one leader, and never wait for a daemon that is gone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from cluster_kit import Cluster, free_address, granted, log_has
from daemon_kit import hello, hocketd, one_line, start_io
from hocket.bus import Bus, BusError
from story import Story

pytestmark = pytest.mark.timeout(120)
LIMIT_S = 20


def test_two_programs_on_two_nodes_take_turns(
    mpi: kit.Mpi, built: Callable[..., Path], cluster: Cluster, tmp_path: Path
):
    leader = cluster.lead("--policy", "fcfs")
    cluster.join("n1"), cluster.join("n2")
    story, script, go = Story(leader), built("script.c"), tmp_path / "go"
    first = cluster.job(
        "n1", "first", mpi, script, f"open={tmp_path / 'a'}", "begin=1000", f"await={go}", "finish", "close"
    )
    story.awaits("GRANT_IO", application="first")
    second = cluster.job("n2", "second", mpi, script, f"open={tmp_path / 'b'}", "write=1000", "close")
    assert story.awaits("QUEUED_IO", application="second")["behind"] == "first"
    go.touch()
    for job in (first, second):
        run = kit.finish(job)
        assert (run.code, run.out, run.err) == (0, "", "")
    story.awaits("FINISH_IO", application="second")
    turns = [("GRANT_IO", "first"), ("FINISH_IO", "first"), ("GRANT_IO", "second"), ("FINISH_IO", "second")]
    assert granted(story, "first", "second") == turns


def test_a_target_is_delegated_to_a_program_on_one_node_and_recalled_for_one_on_another(
    mpi: kit.Mpi, built: Callable[..., Path], cluster: Cluster, tmp_path: Path
):
    config = tmp_path / "hocket.toml"
    config.write_text('[coordinator]\npolicy = "fcfs"\ndelegate_after_s = 0.2\n')
    leader = cluster.lead("--config", config)
    cluster.join("n1"), cluster.join("n2")
    story, script, mark, go = Story(leader), built("script.c"), tmp_path / "mark", tmp_path / "go"
    actions = ["write=1000", "pause=0.5", *["write=1000"] * 5, f"mark={mark}", f"await={go}", "write=1000", "close"]
    first = cluster.job("n1", "first", mpi, script, f"open={tmp_path / 'a'}", *actions)
    kit.wait_until(mark.exists, LIMIT_S, "the first program computes")
    second = cluster.job("n2", "second", mpi, script, f"open={tmp_path / 'b'}", "write=1000", "close")
    assert story.awaits("RECALL_IO", application="first")["because_of"] == "second"
    story.awaits("RETURN_IO", application="first")
    assert kit.finish(second).code == 0
    go.touch()
    run = kit.finish(first)
    assert (run.code, run.out, run.err) == (0, "", "")
    assert (tmp_path / "a").stat().st_size == 7 * 2000


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
def test_programs_go_on_when_the_leader_is_gone(
    number: int, mpi: kit.Mpi, built: Callable[..., Path], cluster: Cluster, tmp_path: Path
):
    """One holds the target and one waits for it; a stopped leader is noticed within 5 s."""
    leader = cluster.lead("--policy", "fcfs")
    agent = cluster.join("n1")
    story, script, go = Story(leader), built("script.c"), tmp_path / "go"
    first = cluster.job(
        "n1", "first", mpi, script, f"open={tmp_path / 'a'}", "begin=1000", f"await={go}", "finish", "close"
    )
    story.awaits("GRANT_IO", application="first")
    second = cluster.job("n1", "second", mpi, script, f"open={tmp_path / 'b'}", "write=1000", "close")
    story.awaits("QUEUED_IO", application="second")
    before = time.monotonic()
    os.kill(leader.pid, number)
    run = kit.finish(second)
    assert (run.code, run.out) == (0, "") and run.err.count("\n") == 1 and "hocketd" in run.err
    assert time.monotonic() - before < LIMIT_S
    go.touch()
    assert kit.finish(first).code == 0
    log_has(agent, "continue uncoordinated")


def test_programs_rejoin_a_leader_that_has_begun_again(
    mpi: kit.Mpi, built: Callable[..., Path], cluster: Cluster, tmp_path: Path
):
    leader = cluster.lead()
    agent = cluster.join("n1")
    script, go, mark = built("script.c"), tmp_path / "go", tmp_path / "mark"
    # A program looks for hocketd again when an I/O phase begins, which takes a pause since the last access.
    actions = (
        "write=1000",
        f"mark={mark}",
        f"await={go}",
        "pause=1.5",
        "write=1000",
        "pause=1.5",
        "write=1000",
        "close",
    )
    job = cluster.job("n1", "solver", mpi, script, f"open={tmp_path / 'a'}", *actions)
    kit.wait_until(mark.exists, LIMIT_S, "the first write")
    leader.kill()
    log_has(agent, "1 members continue" if mpi.name == "mpich" else "members continue")
    again = cluster.lead()
    kit.wait_until(lambda: agent.log.read_text().count("linked to the leader") == 2, LIMIT_S, "the second link")
    story = Story(again)
    go.touch()
    assert kit.finish(job).code == 0
    story.awaits("FINISH_IO", application="solver")


def test_a_leader_takes_over_from_another(mpi: kit.Mpi, built: Callable[..., Path], cluster: Cluster, tmp_path: Path):
    other = free_address()
    first, second = cluster.lead(), cluster.lead(node="adm2", address=other)
    agents = [cluster.join(node, cluster.address, other) for node in ("n1", "n2")]
    assert all(f"linked to the leader at {cluster.address}" in agent.log.read_text() for agent in agents)
    first.kill()
    for agent in agents:
        log_has(agent, f"linked to the leader at {other}")
    story = Story(second)
    for node in ("n1", "n2"):
        run = kit.finish(
            cluster.job(node, node, mpi, built("script.c"), f"open={tmp_path / node}", "write=1000", "close")
        )
        assert (run.code, run.err) == (0, "")
        story.awaits("FINISH_IO", application=node)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_whoever_waits_for_a_node_that_is_gone_is_served(number: int, cluster: Cluster):
    """The members of a node that is gone lose their grants. Their node learns it when it comes back."""
    leader = cluster.lead("--policy", "fcfs")
    agents = [cluster.join("n1"), cluster.join("n2")]
    story = Story(leader)
    with Bus.connect(agents[0].socket) as holder, Bus.connect(agents[1].socket) as waiter:
        hello(holder, "holder"), hello(waiter, "waiter")
        assert (start_io(holder, 1), start_io(waiter, 1)) == ("GRANT_IO", "QUEUED_IO")
        os.kill(agents[0].pid, number)
        answer = waiter.answer(LIMIT_S)
        while answer is not None and answer.type == "QUEUED_IO":
            answer = waiter.answer(LIMIT_S)
        assert answer is not None and answer.type == "GRANT_IO"
        lost = story.awaits("LOST", application="holder")
        assert "has ended" in lost["reason"]
        os.kill(agents[0].pid, signal.SIGCONT)
        with pytest.raises(BusError):
            for _ in range(100):
                holder.answer(LIMIT_S)


def test_a_member_that_ends_is_lost_at_once(cluster: Cluster):
    leader = cluster.lead()
    agent = cluster.join("n1")
    story = Story(leader)
    member = Bus.connect(agent.socket)
    hello(member, "solver")
    member.close()
    assert story.awaits("LOST", application="solver")["reason"] == "connection closed"


def test_a_program_without_a_leader_runs_uncoordinated(
    mpi: kit.Mpi, built: Callable[..., Path], cluster: Cluster, tmp_path: Path
):
    cluster.join("n1")
    run = kit.finish(
        cluster.job("n1", "solver", mpi, built("script.c"), f"open={tmp_path / 'a'}", "write=1000", "close")
    )
    assert (run.code, run.out) == (0, "") and "uncoordinated" in run.err and run.err.count("\n") == 1, run.err
    assert (tmp_path / "a").read_bytes() == 1000 * b"A" + 1000 * b"B"


def test_whoever_asks_for_cores_is_told_that_no_leader_answers(cluster: Cluster):
    cluster.join("n1")
    program = [str(kit.MPICH / "bin" / "mpiexec"), "-n", "2", "true"]
    run = cluster.hocket("n1", "run", "--wait-for-cores", "1", "--", *program)
    assert (run.code, run.out) == (0, "") and "starting without asking for cores" in run.err, run.err
    assert cluster.hocket("n1", "run", "--", *program) == kit.Run(0, "", ""), "it does no I/O"


def test_tools_on_any_node_show_and_steer_all(cluster: Cluster):
    leader = cluster.lead("--policy", "fcfs")
    agents = [cluster.join("n1"), cluster.join("n2")]
    with Bus.connect(agents[0].socket) as here, Bus.connect(leader.socket) as there:
        hello(here, "here"), hello(there, "there")
        ticks = there.subscribe("tick")
        here.publish("tick", number=7)
        tick = ticks.wait(LIMIT_S)
        assert tick is not None and tick["number"] == 7
        for node in ("adm", "n1", "n2"):
            listed = cluster.hocket(node, "ls")
            assert listed.code == 0 and "here" in listed.out and "there" in listed.out, listed.err
        changed = cluster.hocket("n2", "policy", "set", "cost")
        assert changed.code == 0, changed.err
        status = cluster.hocket("n1", "daemon", "status", "--json")
        assert '"policy": "cost"' in status.out and '"agents": 2' in status.out


def test_agents_start_and_stop_by_the_command(cluster: Cluster):
    """Also an agent whose leader does not answer, which cannot say anything about itself."""
    for node in ("adm", "n1"):
        (cluster.directory / node).mkdir(mode=0o700)
    where = ["--key", str(cluster.key)]
    alone = cluster.hocket("n1", "daemon", "start", "--agent", "--leaders", cluster.address, *where)
    assert alone.code == 0 and "no leader of this cluster answers" in alone.err, alone.err
    stopped = cluster.hocket("n1", "daemon", "stop")
    assert stopped.code == 0 and "has ended" in stopped.err, stopped.err
    leading = cluster.hocket("adm", "daemon", "start", "--leader", "--listen", cluster.address, *where)
    assert leading.code == 0, leading.err
    joined = cluster.hocket("n1", "daemon", "start", "--agent", "--leaders", cluster.address, *where)
    assert joined.code == 0 and "its leader runs on" in joined.err, joined.err
    for node in ("n1", "adm"):
        stopped = cluster.hocket(node, "daemon", "stop")
        assert stopped.code == 0 and "has ended" in stopped.err, stopped.err


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--agent"], "--leaders HOST:PORT"),
        (["--agent", "--leaders", "adm1"], "'adm1' is no address"),
        (["--agent", "--leaders", "adm1:70000"], "1 to 65535"),
        (["--leader", "--listen", "here"], "'here' is no address"),
        (["--leader"], "the cluster has no key"),
        (["--leader", "--key", "/dev/null"], "is no file"),
        (["--leader", "--key", "/none"], "--make-key"),
    ],
)
def test_wrong_settings_are_named(options: list[str], part: str, prefix: Path, hocket_dir: Path):
    done = hocketd(prefix, "--dir", hocket_dir, *options)
    assert done.returncode in (1, 2) and part in one_line(done.stderr)
