"""What a job holds counts for policies, and nodes that a malleable program has left go back to Slurm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import malleable_kit
import pytest
import runtime_kit as kit
from hocket import slurm as slurm_of_hocket
from hosts import SHARED
from slurm_kit import STATE, Slurm, commands_on, environment_of, finish

pytestmark = pytest.mark.timeout(180)
LIMIT_S = 60
HOCKET = [sys.executable, "-m", "hocket.cli"]
ONE_NODE = ("-w", "one", "-N1", "-n2", "--ntasks-per-node=2", "-t", "10")
TWO_NODES = ("-w", "one,two", "-N2", "-n4", "--ntasks-per-node=2")
on_mpich = pytest.mark.parametrize("mpi", ["mpich"], indirect=True)  # programs of Open MPI keep their nodes


@pytest.fixture
def probe(mpi: kit.Mpi, built: Callable[..., Path], prefix: Path) -> Path:
    return built("malleable_probe.c", *malleable_kit.link_flags(prefix, mpi.name))


class Job:
    """A malleable program in an allocation. It runs until `end`."""

    def __init__(
        self,
        slurm: Slurm,
        mpi: kit.Mpi,
        probe: Path,
        processes: int,
        *options: str,
        allocation: tuple[str, ...] = TWO_NODES,
        number: str = "1",
        env: dict[str, str] | None = None,
    ) -> None:
        self.slurm = slurm
        self._number = number
        self._end = SHARED / "end"
        run = [*HOCKET, "run", "--name", "solver", "--malleable", "-n", str(processes), *options]
        program = [*mpi.mpiexec, probe, "1000000", "997", "10"]
        environment = environment_of(mpi) | {"PROBE_END": str(self._end), **(env or {})}
        self._process = slurm.start(["salloc", "--quiet", *allocation, *run, "--", *program], environment)
        names = allocation[1].split(",")
        self._hosts = [slurm.hosts[name] for name in names]
        self._probe = str(probe)
        kit.wait_until(lambda: self.listed().get("processes", 0) >= processes, LIMIT_S, "the program has its size")
        kit.wait_until(lambda: self.listed()["malleable"], LIMIT_S, "the program can be resized")

    def runs_on(self) -> list[bool]:
        return [any(one.startswith(self._probe) for one in commands_on(host)) for host in self._hosts]

    def hocket(self, *words: str) -> kit.Run:
        return self.slurm.run([*HOCKET, *words], {"SLURM_JOB_ID": self._number})  # which leads to a daemon of the job

    def resize(self, *words: str) -> None:
        resized = self.hocket("resize", "solver", *words)
        if resized.code != 0:
            self._process.kill()
            raise AssertionError(f"{resized.err}; the job said: {self._process.communicate()}")

    def listed(self) -> dict:
        """Return the program as `hocket ls` has it; nothing before it is there."""
        listed = self.hocket("ls", "--json")
        return next(iter(json.loads(listed.out)["applications"]), {}) if listed.code == 0 else {}

    def jobs(self) -> list[str]:
        """Return the jobs that Slurm has, with their nodes."""
        told = self.slurm.run(["squeue", "--noheader", "--states", "PENDING,RUNNING", "--format", "%i %T %N"])
        return sorted(line.strip() for line in told.out.splitlines())

    def nodes(self) -> str:
        """Return the nodes that Slurm has given to the job."""
        return self.slurm.run(["squeue", "--noheader", "--jobs", self._number, "--format", "%N"]).out.strip()

    def end(self) -> kit.Run:
        (self.slurm.hosts.store / "end").touch()
        run = finish(self._process)
        assert run.code == 0 and "ok " in run.out, run.out + run.err
        return run


def refusing(slurm: Slurm, command: str, unless: str = "") -> dict[str, str]:
    """Put a command of Slurm that refuses into a directory of the first host. Return the PATH that leads there."""
    place = STATE / "bin" / command
    assert slurm.first.run(["mkdir", place.parent]).code == 0
    slurm.first.write(place, f'#!/bin/sh\n{unless}\necho "Access denied" >&2\nexit 1\n'.encode())
    assert slurm.first.run(["chmod", "755", place]).code == 0
    return {"PATH": f"{place.parent}:{os.environ['PATH']}"}


@on_mpich
def test_a_node_that_was_left_goes_back_to_slurm(mpi: kit.Mpi, probe: Path, start_slurm):
    """Another job gets it, and the program goes on, and grows again where the job still is."""
    slurm = start_slurm("one", "two")
    job = Job(slurm, mpi, probe, 4, "--slurm-nodes", "1", allocation=(*TWO_NODES, "--exclusive"))
    job.resize("1", "--leave", "two")
    kit.wait_until(lambda: job.nodes() == "one", LIMIT_S, "the job has one node")
    other = finish(slurm.srun(["--exclusive", "-w", "two", "hostname"]))
    assert (other.code, other.out) == (0, "two\n"), other.err
    job.resize("2")  # mpiexec still counts on both nodes
    assert job.listed()["nodes"] == "one=2" and job.runs_on() == [True, False]
    run = job.end()
    assert "hocket: job 1 has given two back to Slurm; it keeps one\n" in run.err, run.err


@on_mpich
def test_a_refusal_changes_nothing(mpi: kit.Mpi, probe: Path, start_nodes):
    """hocketd does not use the node while Slurm is asked, and uses it again then."""
    nodes = start_nodes("one", "two")
    refuses = refusing(nodes.slurm, "scontrol", '[ "$1" = update ] || exec /usr/bin/scontrol "$@"')
    job = Job(nodes.slurm, mpi, probe, 4, "--slurm-nodes", "1", env=refuses)
    nodes.story.awaits("HELD_NODES", nodes="one=2 two=2", least_nodes=1)
    job.resize("1", "--leave", "two")
    assert nodes.story.awaits("CHANGE_ALLOCATION")["release"] == "two"
    refused = nodes.story.awaits("HELD_NODES", text="Access denied")
    assert refused["nodes"] == "one=2 two=2" and job.nodes() == "one,two"
    job.resize("4", "--on", "two two one")
    assert sorted(job.listed()["nodes"].split()) == ["one=2", "two=2"]
    run = job.end()
    assert "hocket: job 1 keeps two, which Slurm does not take back: Access denied\n" in run.err, run.err


@on_mpich
@pytest.mark.parametrize("first", ["the step", "the program"])
def test_a_node_with_a_step_is_kept_until_that_ends(first: str, mpi: kit.Mpi, probe: Path, start_nodes):
    nodes = start_nodes("one", "two")
    job = Job(nodes.slurm, mpi, probe, 4, "--slurm-nodes", "1")
    wait = f"until [ -e {SHARED / 'go'} ]; do sleep 0.05; done; echo ended"
    step = nodes.slurm.srun(["--jobid=1", "--overlap", "-w", "two", "-N1", "-n1", "sh", "-c", wait])
    shell = nodes.slurm.hosts["two"]
    kit.wait_until(lambda: any(wait in one for one in commands_on(shell)), LIMIT_S, "the step runs")
    job.resize("1", "--leave", "two")
    nodes.story.awaits("CHANGE_ALLOCATION", release="two")
    assert job.nodes() == "one,two"
    if first == "the program":
        run = job.end()
        assert "has given" not in run.err, run.err
        step.kill()
        return
    (nodes.store / "go").touch()
    ended = finish(step)
    assert (ended.code, ended.out) == (0, "ended\n"), ended.err
    kit.wait_until(lambda: job.nodes() == "one", LIMIT_S, "the job has one node")
    nodes.story.awaits("HELD_NODES", nodes="one=2", text="")
    job.end()


@on_mpich
def test_policies_give_out_what_the_job_holds(mpi: kit.Mpi, probe: Path, start_nodes):
    """The nodes have more cores, which are for other jobs."""
    nodes = start_nodes("one", "two", policy="fcfs+fair")
    allocation = ("-w", "one,two", "-N2", "-n2", "--ntasks-per-node=1")
    job = Job(nodes.slurm, mpi, probe, 1, allocation=allocation)
    nodes.story.awaits("HELD_NODES", nodes="one=1 two=1", least_nodes=0)
    grown = nodes.story.awaits("RECONFIGURATION", done=True)
    assert (grown["sources"], grown["targets"]) == (1, 2) and sorted(grown["nodes"].split()) == ["one=1", "two=1"]
    assert job.hocket("policy", "set", "fcfs+fair").code == 0  # which shares the cores out anew
    assert job.listed()["resizing_to"] == 0 and job.listed()["processes"] == 2
    job.end()
    assert {line["to"] for line in nodes.story.all("DECISION", action="expand")} == {2}


@on_mpich
def test_a_resize_beyond_the_job_gets_a_second_one(mpi: kit.Mpi, probe: Path, start_slurm):
    """It holds nodes for the program alone, as long as that uses them, and ends with it."""
    slurm = start_slurm("one", "two", "three")
    job = Job(slurm, mpi, probe, 2, "--slurm-nodes", "1:2", allocation=ONE_NODE)
    job.resize("4")
    (second,) = {name.partition("=")[0] for name in job.listed()["nodes"].split()} - {"one"}
    assert job.listed()["nodes"].split() == ["one=2", f"{second}=2"]
    assert job.jobs() == ["1 RUNNING one", f"2 RUNNING {second}"]
    limit = slurm.run(["squeue", "--noheader", "--jobs", "1,2", "--format", "%l"]).out.split()
    assert limit[0] == "10:00" and limit[1] in ("9:00", "10:00"), limit
    beyond = job.hocket("resize", "solver", "6")
    assert beyond.code == 1 and "6 processes for 'solver' are too many" in beyond.err, beyond.err
    job.resize("2", "--leave", second)
    kit.wait_until(lambda: job.jobs() == ["1 RUNNING one"], LIMIT_S, "the second job has ended")
    job.resize("3")
    first, third = job.jobs()
    assert first == "1 RUNNING one" and third.startswith("3 RUNNING "), third
    run = job.end()
    assert f"hocket: job 1 has got {second} from Slurm, by job 2\n" in run.err, run.err
    assert f"hocket: job 1 has given {second} back to Slurm; it keeps one\n" in run.err, run.err
    kit.wait_until(lambda: job.jobs() == [], LIMIT_S, "all jobs have ended")


@on_mpich
def test_a_request_that_slurm_refuses_changes_nothing(mpi: kit.Mpi, probe: Path, start_slurm):
    slurm = start_slurm("one", "two")
    refuses = refusing(slurm, "sbatch")
    job = Job(slurm, mpi, probe, 2, "--slurm-nodes", "1:2", allocation=ONE_NODE, env=refuses)
    refused = job.hocket("resize", "solver", "4")
    assert refused.code == 1 and "gives no more cores: Access denied" in refused.err, refused.err
    job.resize("1")
    job.resize("2")
    run = job.end()
    assert "hocket: job 1 gets no further nodes from Slurm: Access denied\n" in run.err, run.err


@on_mpich
@pytest.mark.parametrize("then", ["granted", "ended"])
def test_a_request_that_nobody_waits_for_any_more(then: str, mpi: kit.Mpi, probe: Path, start_slurm):
    """Its nodes come too late, or its program ends first."""
    slurm = start_slurm("one", "two")
    other = slurm.srun(["--exclusive", "-w", "two", "sh", "-c", f"until [ -e {SHARED / 'go'} ]; do sleep 0.05; done"])
    kit.wait_until(lambda: commands_of_sleep(slurm, "two"), LIMIT_S, "another job has the second node")
    job = Job(slurm, mpi, probe, 2, "--slurm-nodes", "1:2", allocation=ONE_NODE, number="2")
    late = job.hocket("resize", "solver", "4", "--timeout", "2")
    assert late.code == 1 and "has not given the cores yet" in late.err, late.err
    all_jobs = ["1 RUNNING two", "2 RUNNING one", "3 PENDING"]
    kit.wait_until(lambda: job.jobs() == all_jobs, LIMIT_S, "a job waits for the second node")
    if then == "granted":
        (slurm.hosts.store / "go").touch()
        assert finish(other).code == 0
        kit.wait_until(lambda: job.jobs() == ["2 RUNNING one"], LIMIT_S, "the node was given back")
    job.end()
    rest = [] if then == "granted" else ["1 RUNNING two"]
    kit.wait_until(lambda: job.jobs() == rest, LIMIT_S, "the jobs of the program have ended")
    (slurm.hosts.store / "go").touch()


def commands_of_sleep(slurm: Slurm, name: str) -> bool:
    return any("until [ -e" in one for one in commands_on(slurm.hosts[name]))


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_programs_of_open_mpi_keep_their_nodes(mpi: kit.Mpi, probe: Path, start_slurm):
    """Open MPI has a process on each node, and ends with it."""
    slurm = start_slurm("one", "two")
    job = Job(slurm, mpi, probe, 1, "--slurm-nodes", "1")
    job.resize("2")
    job.resize("1")
    assert job.nodes() == "one,two"
    run = job.end()
    assert "--slurm-nodes: job 1 keeps all its nodes: Open MPI has a process on each node" in run.err, run.err


def test_what_slurm_says_is_read(monkeypatch: pytest.MonkeyPatch):
    said = {
        ("scontrol", "show", "job", "--detail", "--oneliner", "7"): (
            "JobId=7 NumNodes=3 ReqNodeList=(null)   Nodes=n[1-2] CPU_IDs=0-3,6 Mem=0 GRES=   "
            "Nodes=m7 CPU_IDs=1 Mem=0 GRES= MinCPUsNode=1\n"
        ),
        ("scontrol", "show", "hostnames", "n[1-2]"): "n1\nn2\n",
        ("scontrol", "show", "hostnames", "m7"): "m7\n",
        ("squeue", "--noheader", "--steps", "--jobs", "7", "--format", "%i %N"): (
            "7.batch n1\n7.extern n[1-2]\n7.interactive n1\n7.0 m7\n7_3.12 m7\n"
        ),
    }
    monkeypatch.setattr(slurm_of_hocket, "command", lambda *words: said[words])
    assert slurm_of_hocket.nodes_of("7") == {"n1": 5, "n2": 5, "m7": 1}
    assert slurm_of_hocket.busy_nodes("7") == {"m7"}
    monkeypatch.setattr(slurm_of_hocket, "command", lambda *words: "JobId=7 Nodes=n1 CPU_IDs=x\n")
    with pytest.raises(slurm_of_hocket.SlurmError, match="does not say which cores job 7 holds"):
        slurm_of_hocket.nodes_of("7")


def test_the_option_is_for_malleable_programs():
    def said(*words: str) -> str:
        command = [*HOCKET, "run", *words, "--", "mpiexec", "true"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert run.returncode == 2, run
        return run.stderr

    assert "belongs to --malleable" in said("--slurm-nodes", "1")
    for wrong in ("0", "-1", "x", "1:2:3", "2:1", ":2", "1:", ""):
        assert "give the fewest nodes" in said("--malleable", "-n", "2", f"--slurm-nodes={wrong}")
