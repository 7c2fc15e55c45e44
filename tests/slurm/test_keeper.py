"""The keeper of a Slurm job, with answers that Slurm seldom gives."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hocket import mpi, slurm, slurm_keeper
from hocket.bus import Event
from hocket.slurm import SilentError, SlurmError

pytestmark = pytest.mark.timeout(60)
NODES = {"n1": 2, "n2": 2}


class FakeBus:
    def __init__(self) -> None:
        self.sent: list[dict] = []

    def send(self, type_name: str, **fields: object) -> None:
        self.sent.append({"type": type_name, **fields})


class FakeSlurm:
    """Stands in for Slurm's commands."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.commands: list[str] = []
        self.refusal: SlurmError | None = None  # of the commands
        self.nodes: dict[str, dict[str, int]] = {"7": dict(NODES), "8": {"n3": 2}}
        self.submit: Callable[[], str] = lambda: "8"
        self.said: list[str] = []
        patch.setenv("SLURMD_NODENAME", os.uname().nodename)
        patch.setattr(slurm_keeper, "POLL_S", 0.01)
        patch.setattr(slurm_keeper, "nodes_of", self._nodes_of)
        patch.setattr(slurm_keeper, "busy_nodes", lambda job: set())
        patch.setattr(slurm_keeper, "command", self._command)
        patch.setattr(slurm_keeper, "settings_of", lambda job: slurm.JobSettings("now", []))
        patch.setattr(slurm_keeper, "request_nodes", lambda *words: self.submit())

    def keeper(self, most: int = 3) -> slurm_keeper.Keeper:
        return slurm_keeper.Keeper("7", SimpleNamespace(mpi=mpi.MPICH), (1, most), self.said.append)

    def _nodes_of(self, job: str) -> dict[str, int]:
        if job not in self.nodes:
            raise SlurmError("nothing is known")
        return dict(self.nodes[job])

    def _command(self, *words: str, directory: str | None = None) -> str:
        if words[0] == "squeue":
            return "RUNNING|None"
        self.commands.append(" ".join(words))
        if self.refusal is not None:
            raise self.refusal
        return ""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSlurm]:
    yield FakeSlurm(monkeypatch)


def change(keeper: slurm_keeper.Keeper, release: str = "", cores: int = 0) -> dict:
    """Ask for a change, and return what hocketd is told then."""
    bus = FakeBus()
    keeper._change(bus, Event("CHANGE_ALLOCATION", {"release": release, "cores": cores}))
    keeper.close()
    return bus.sent[0]


@pytest.mark.parametrize("refusal", [SilentError("no answer"), SlurmError("failed")])
def test_a_node_that_slurm_may_have_taken_is_not_used(refusal: SlurmError, fake: FakeSlurm):
    keeper = fake.keeper()
    fake.refusal = refusal
    del fake.nodes["7"]  # nor does it answer the question
    assert change(keeper, release="n2")["nodes"] == "n1=2"


def test_a_node_that_slurm_has_not_taken_is_used(fake: FakeSlurm):
    keeper = fake.keeper()
    fake.refusal = SlurmError("Access denied")
    told = change(keeper, release="n2")
    assert (told["nodes"], told["text"]) == ("n1=2 n2=2", "Access denied")
    assert fake.said == ["job 7 keeps n2, which Slurm does not take back: Access denied"]


def test_nodes_that_would_not_do_are_not_asked_for(fake: FakeSlurm):
    told = change(fake.keeper(), cores=3)
    assert told["text"] == "it would take 2 more nodes; the job has 2, and --slurm-nodes permits 3"
    assert told["waited_ns"] > 0 and fake.commands == []


def test_a_job_that_is_being_submitted_is_cancelled(fake: FakeSlurm):
    """Its number comes when the program has ended."""
    keeper = fake.keeper()
    begun, go_on = threading.Event(), threading.Event()

    def submit() -> str:
        begun.set()
        assert go_on.wait(30)
        return "8"

    fake.submit = submit
    asked = Event("CHANGE_ALLOCATION", {"release": "", "cores": 2})
    keeper._thread = threading.Thread(target=lambda: keeper._change(FakeBus(), asked))
    keeper._thread.start()
    assert begun.wait(30)
    threading.Timer(0.2, go_on.set).start()
    keeper.close()
    assert not keeper._thread.is_alive() and "scancel 8" in fake.commands


def test_a_job_whose_number_slurm_has_not_told_is_cancelled(fake: FakeSlurm):
    def submit() -> str:
        raise SilentError("sbatch has not answered for 20 s")

    fake.submit = submit
    assert change(fake.keeper(), cores=2)["text"] == "sbatch has not answered for 20 s"
    assert fake.commands == [f"scancel --name=hocket-7-{os.getpid()}"]


def test_too_many_nodes_are_not_told(fake: FakeSlurm):
    fake.nodes["7"] = {f"node-{i:08}": 128 for i in range(600)}
    keeper = fake.keeper(most=0)
    bus = FakeBus()
    keeper._report(bus)
    keeper._report(bus)
    keeper.close()
    assert [told["nodes"] for told in bus.sent] == ["", ""]
    assert fake.said == ["job 7 has too many nodes to tell hocketd, so policies do not know its cores"]


def test_other_tasks_of_an_array_do_not_count(monkeypatch: pytest.MonkeyPatch):
    said = (
        "JobId=9 ArrayJobId=7 ArrayTaskId=1   Nodes=n2 CPU_IDs=0-3 Mem=0\n"
        "JobId=7 ArrayJobId=7 ArrayTaskId=2   Nodes=n1 CPU_IDs=0-1 Mem=0\n"
    )
    monkeypatch.setattr(slurm, "command", lambda *words: said if words[1] == "show" and words[2] == "job" else words[3])
    assert slurm.nodes_of("7") == {"n1": 2}
    job = SimpleNamespace(mpi=mpi.MPICH, command=["mpiexec"])
    assert "one of an array" in slurm.why_fixed(job, {"SLURM_ARRAY_JOB_ID": "7"})
    assert "heterogeneous" in slurm.why_fixed(job, {"SLURM_HET_SIZE": "2"})


def test_a_second_job_is_like_the_first(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slurm, "command", lambda *words: "2026-11-27T10:00:00|9:00|long|(null)|normal\n")
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "4096")
    monkeypatch.delenv("SLURM_MEM_PER_CPU", raising=False)
    like = slurm.settings_of("7")
    assert like.start == "2026-11-27T10:00:00"
    assert like.options == ["--time=9:00", "--partition=long", "--qos=normal", "--mem=4096"]


def test_a_second_job_waits_while_the_first_is_suspended(tmp_path: Path):
    """Its script looks again and again, and ends with the first job."""
    states = ["RUNNING", "SUSPENDED", "STOPPED", "RUNNING", "COMPLETED", "RUNNING"]
    (tmp_path / "states").write_text("".join(f"{state}|start\n" for state in states))
    squeue = f"#!/bin/sh\nhead -n1 {tmp_path}/states\nsed -i 1d {tmp_path}/states\n"
    for name, text in {"squeue": squeue, "sleep": "#!/bin/sh\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    script = slurm.HOLD.format(job="7", start="start")
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(["sh", "-c", script], env={**os.environ, "PATH": path}, timeout=30, check=True)
    assert (tmp_path / "states").read_text() == "RUNNING|start\n"
