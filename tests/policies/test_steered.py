"""Real malleable programs under a real hocketd that steers them: solvers grow and shrink as its policies decide.

Computing is emulated (`jacobi --emulate`: the solvers sleep, so that few cores carry many processes). The bandwidth of
the storage is emulated, too (limited_target). The solvers, their I/O, the resizes, and the daemon are real. The tests
wait for events in the daemon's trace.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import malleable_kit
import pytest
import runtime_kit
import storage
from daemon_kit import Daemon
from hocket.bus import Bus
from hocket.cli import main
from hocket.profile.points import Point
from hocket.profile.store import Profile, Store, fingerprint_of
from policy_page import block
from story import Story

pytestmark = pytest.mark.timeout(100)
LIMIT_S = 40
CORES = 8
ITERATION_S = 0.02  # with one process; half of that with twice as many, and so on
SIZES = (1, 2, 3, 4, 8)
UNKNOWNS = 300  # a checkpoint of 0.7 MB
BYTES_PER_S = 7_000_000  # a tenth of a second for a checkpoint that is written alone
FOREVER = 10**6


def curve(slower: float = 1.0) -> str:
    return ",".join(f"{size}:{ITERATION_S * slower / size:.5f}" for size in SIZES)


class Machine:
    """A daemon with CORES cores, and solvers to start on it."""

    def __init__(self, directory: Path, prefix: Path, start_daemon: Callable[..., Daemon], mpi: runtime_kit.Mpi):
        self.directory = directory
        self.mpi = mpi
        self.program = prefix / "lib" / "hocket" / "apps" / "jacobi-mpich"
        self.profiles = directory / "profiles.db"
        self._library = prefix / "lib" / "hocket" / "liblimited_target.so"
        self.limit_storage(BYTES_PER_S)
        self._start_daemon = start_daemon
        self._system = directory / "system.jacobi"
        self.run(1, self.program, "--system", self._system, "--generate", UNKNOWNS, "--iterations", 0)

    def limit_storage(self, bytes_per_s: int) -> None:
        """Limit the storage of programs started, and of the profile stored, from now on."""
        self._bytes_per_s = bytes_per_s
        self._storage = storage.limited(self.directory, bytes_per_s, self._library, "for the tests").environment

    def run(self, ranks: int, *program: Any) -> None:
        done = self.mpi.run(list(program), ranks=ranks, preload="")
        assert done.code == 0, f"{done.out}{done.err}"

    def daemon(self, policy: str, **settings: Any) -> Story:
        """Start a daemon with these settings of its section [coordinator], and return its story."""
        wanted = {
            "policy": policy,
            "cores": CORES,
            "profiles": "none",
            "linger_s": 0.005,
            "uncertainty_s": 0.1,
            "reconfiguration_s": 0.1,
        } | settings
        path = self.directory / "hocket.toml"
        path.write_text("[coordinator]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in wanted.items()))
        return Story(self._start_daemon("--config", path))

    def store_profile(self) -> None:
        """Store the profile that `hocket profile` would have measured for the solver."""
        points = tuple(
            Point(
                processes=size,
                iteration_s=ITERATION_S / size,
                iteration_spread_s=0.0,
                io_s=UNKNOWNS * (UNKNOWNS + 2) * 8 / self._bytes_per_s,
                io_spread_s=0.0,
                samples=10,
                flop_per_iteration=2.0 * UNKNOWNS**2,
                measured_unix_s=time.time(),
            )
            for size in SIZES
        )
        mine = Profile(self.program.name, fingerprint_of(self.program), "mpich", "", points)
        Store(self.profiles, write=True).put(mine)

    def start(self, name: str, *, every: int, slower: float = 1.0) -> malleable_kit.Running:
        """Start a solver with one process that writes a checkpoint after each `every` iterations until it is killed."""
        checkpoints = self.directory / name
        checkpoints.mkdir()
        program = shutil.copy(self.program, checkpoints)  # a copy, which identifies its processes
        how = ["--system", self._system, "--iterations", FOREVER, "--tolerance", 0, "--print-every", FOREVER]
        how += ["--checkpoint-every", every, "--checkpoint-dir", checkpoints, "--emulate", curve(slower)]
        return self.start_job(name, 1, Path(program), *how)

    def start_job(self, name: str, ranks: int, program: Path, *arguments: Any) -> malleable_kit.Running:
        command = [sys.executable, "-m", "hocket.cli", "run", "--name", name, "--"]
        command += [*self.mpi.mpiexec, "-n", str(ranks), str(program), *map(str, arguments)]
        process = subprocess.Popen(
            command,
            env={**os.environ, **self._storage},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return malleable_kit.Running(process, program)


@pytest.fixture
def machine(
    tmp_path: Path, prefix: Path, library: Path, start_daemon: Callable[..., Daemon], monkeypatch: pytest.MonkeyPatch
) -> Machine:
    mpi = runtime_kit.mpich(library)
    for name, value in (runtime_kit.ENVIRONMENT | mpi.environment).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    return Machine(tmp_path, prefix, start_daemon, mpi)


def sizes() -> dict[str, int]:
    """Return processes by application, as `hocket ls` shows them."""
    with Bus.connect() as bus:
        return {one["application"]: one["processes"] for one in bus.list().applications}


def become(expected: dict[str, int], story: Story) -> None:
    story.until(lambda: sizes() == expected, f"sizes {expected}")


def changed(lines: list[dict[str, Any]], decided: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the resizes, after a decision, of the application that it is about."""
    after = lines[lines.index(decided) :]
    name = decided["decided_for"]
    return [line for line in after if line.get("in") == "RECONFIGURATION" and line["application"] == name]


# ---- against interference --------------------------------------------------------------------------------------------


def went_as_meant(story: Story) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return a decision that was carried out, and its outcome.

    The application grew, went back in time, and began its I/O phase.
    """
    for decided in story.all("DECISION", policy="phase-shift", action="expand"):
        steps = [(1, decided["to"], True), (decided["to"], 1, True)]
        made = changed(story.lines, decided)[:2]
        started = story.all("OUTCOME", decision=decided["number"], quantity="phase-start")
        in_time = bool(made) and made[-1]["iteration"] == decided["return_at_iteration"]
        if [(one["sources"], one["targets"], one["done"]) for one in made] == steps and in_time and started:
            return decided, started[0]
    return None


@pytest.mark.timeout(240)
def test_phases_that_would_meet_are_shifted_by_a_stored_profile(machine, capsys, monkeypatch):
    """A stored profile makes hocketd shift phases that would meet.

    The periods are so long that a resize of a second, as on a busy machine, leaves enough to save. The phases are long,
    too: waiting for one costs more than two resizes. Before the first measurement a resize counts as almost free. With
    0.1 s, two solvers once kept a distance at which no shift would have saved as much.

    The ratio of the periods is near the golden ratio, and stays there if each iteration takes longer. The phases
    therefore meet soon, whatever their first distance is. Periods of 2 to 3 could miss each other forever.
    """
    monkeypatch.setattr("story.LIMIT_S", 120)
    machine.limit_storage(BYTES_PER_S // 7)  # 0.7 s for a checkpoint
    machine.store_profile()
    story = machine.daemon("phase-shift", profiles=str(machine.profiles), reconfiguration_s=0.02)
    machine.start("a", every=300)
    machine.start("b", every=185, slower=0.9)
    assert {one["app"] for one in (story.awaits("PROFILE", app=1), story.awaits("PROFILE", app=2))} == {1, 2}
    story.until(lambda: max(sizes().values()) > 1, "somebody grows, and ls shows it")
    # A busy machine may delay a decision until it is useless. Then the test waits for the next one.
    story.until(lambda: went_as_meant(story), "a decision that is carried out and held against what came")
    decided, outcome = went_as_meant(story)
    name, number = decided["decided_for"], decided["number"]
    assert {name, decided["because_of"]} == {"a", "b"}

    assert main(["explain", "-n", "1000", "--json"]) == 0
    told = {one["number"]: one for one in json.loads(capsys.readouterr().out)["decisions"]}[number]
    keys = ("decided_for", "because_of", "action", "from", "to", "return_at_iteration", "conflict_ns", "reason")
    assert [told[key] for key in keys] == [decided[key] for key in keys]
    assert decided["reason"]["kind"] == "shift"
    stopped = [one["stopped_ns"] for one in changed(story.lines, decided)[:2]]
    assert told["stopped_ns"] == stopped
    assert outcome["actual_s"] in [one["actual_s"] for one in told["outcomes"]]

    assert main(["explain", "-n", "1000"]) == 0
    text = capsys.readouterr().out.partition(f"decision {number}, phase-shift at ")[2].partition("\ndecision ")[0]
    plural = "cores" if decided["to"] > 2 else "core"
    for words in (
        f"{name} expands from 1 to {decided['to']} processes because of {decided['because_of']}\n",
        "  predicted     the I/O phases of ",
        f"  chosen        {decided['to']} processes at the next control point, 1 again at iteration ",
        f"  cost          {decided['to'] - 1} {plural} for ",
        f"; stood still {sum(stopped) / 1e9:.3f} s in 2 resizes\n",
        f"  in its words  {told['text']}\n",
        f"{name} grows from 1 to {decided['to']} processes for {decided['reason']['iterations']} iterations (",
        f"  came of it    start of the next I/O phase: predicted {outcome['predicted_s']:.2f} s ± ",
    ):
        assert words in text, text


# ---- idle cores ------------------------------------------------------------------------------------------------------


def test_a_program_without_a_profile_is_measured_while_it_runs(machine, capsys):
    story = machine.daemon("speedup", cores=2)
    machine.start("a", every=15, slower=5)  # one slow period must not hide what a second core gains
    measured = story.awaits("DECISION", policy="probe", action="expand", decided_for="a")
    decided = story.awaits("DECISION", measured["at"], policy="speedup", action="expand")
    steps = [(one["sources"], one["targets"], one["done"]) for one in changed(story.lines, story.lines[measured["at"]])]
    assert steps[:2] == [(1, 2, True), (2, 1, True)], "measured, and back"
    outcome = story.awaits("OUTCOME", decided["at"], decision=decided["number"], quantity="period")
    become({"a": 2}, story)
    assert decided["period_after_ns"] / 1e9 == pytest.approx(outcome["predicted_s"], abs=1e-6)
    assert main(["explain"]) == 0
    text = capsys.readouterr().out
    assert "chosen        2 processes at the next control point, 1 again when it is measured\n" in text
    assert "chosen        2 processes at the next control point, for good; its I/O period becomes " in text


def test_a_program_that_only_computes_is_measured_and_grows(machine):
    story = machine.daemon("speedup", cores=2)
    machine.start("a", every=0)
    story.awaits("ITERATIONS", processes=1)
    story.awaits("DECISION", policy="probe", action="expand", decided_for="a")
    story.awaits("ITERATIONS", processes=2)
    story.awaits("DECISION", policy="speedup", action="expand", decided_for="a")
    assert not [line for line in story.lines if line.get("in") == "IO_PHASE" and line["iteration"] > 0]


def test_fair_shares_cores_takes_them_back_and_shares_them_again(machine):
    story = machine.daemon("fair")
    machine.start("a", every=10)
    machine.start("b", every=10)
    become({"a": 4, "b": 4}, story)
    full = len(story.read())
    end = machine.directory / "end"
    script = machine.mpi.compile("script.c", machine.directory / "script")
    machine.start_job("c", 2, script, f"await={end}")
    reclaimed = story.awaits("DECISION", full, action="reclaim")
    story.until(lambda: sum(sizes().values()) == CORES and sizes().get("c") == 2, "c has two of the cores")
    assert (reclaimed["reason"]["kind"], reclaimed["reason"]["missing"]) == ("reclaim", 2)
    end.touch()
    become({"a": 4, "b": 4}, story)


def test_cores_of_an_application_that_is_killed_come_back(machine):
    story = machine.daemon("fair")
    killed = machine.start("a", every=10)
    machine.start("b", every=10)
    become({"a": 4, "b": 4}, story)
    os.kill(killed.pids()[0], signal.SIGKILL)
    malleable_kit.broken(killed, LIMIT_S)
    become({"b": 8}, story)
    back = story.awaits("OUTCOME", decided_for="a", quantity="cores", actual_s=3.0)
    assert (back["how"], back["predicted_s"]) == ("ended", 3.0)


def test_who_cannot_grow_is_left_as_it_is(machine):
    story = machine.daemon("fcfs")
    refusing = machine.start("a", every=10)
    hello = story.awaits("HELLO", application_asked="a")
    refusing.program.unlink()
    with Bus.connect() as bus:
        bus.send("SET_POLICY", policy="fair")
        assert "fair" in bus.list().daemon["policy"]
    machine.start("b", every=10)
    failed = story.awaits("RECONFIGURATION", application="a", done=False)
    assert "No such file" in failed["reason"]
    story.awaits("DECISION", failed["at"], action="cancel", decided_for="a")
    story.awaits("RECONFIGURATION", application="b", done=True)
    goes_on = story.awaits("IO_PHASE", failed["at"], application="a", member=hello["member"])
    assert goes_on["processes"] == 1
    story.until(lambda: sizes()["b"] > 1, "b has grown")
    assert sizes()["a"] == 1


def test_a_policy_in_python_resizes_a_solver(machine):
    """The policy is that of docs/write-a-policy.md."""
    policy = machine.directory / "longest.py"
    policy.write_text(block("python"))
    story = machine.daemon("fcfs", cores=3, policy_file=str(policy))
    machine.start("a", every=10)
    decided = story.awaits("DECISION", policy="longest", action="expand")
    assert "a has the longest I/O period, " in decided["text"]
    become({"a": 3}, story)


# ---- by hand ---------------------------------------------------------------------------------------------------------


def test_the_answer_of_an_application_that_dies_is_not_waited_for(machine):
    story = machine.daemon("fcfs")
    killed = machine.start("a", every=10)
    story.awaits("MALLEABLE")
    command = [sys.executable, "-m", "hocket.cli", "resize", "a", "2", "--at", str(FOREVER)]
    resize = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    story.awaits("RECONFIGURE", at_iteration=FOREVER)
    os.kill(killed.pids()[0], signal.SIGKILL)
    done = runtime_kit.finish(resize, LIMIT_S)
    assert (done.code, done.out, done.err) == (1, "", "hocket: 'a' ended before it was resized\n")


def test_an_application_that_stands_still_does_not_keep_the_tool(machine, monkeypatch, capsys):
    """It gives the resize up at its next control point, and can be resized again then."""
    monkeypatch.setattr("hocket.verbs.resize.WITHDRAW_S", 0.2)
    story = machine.daemon("fcfs")
    job = machine.start("a", every=10)
    story.awaits("IO_PHASE")
    (stopped,) = job.pids()
    runtime_kit.stop(stopped)
    assert main(["resize", "a", "2", "--timeout", "0.2"]) == 1
    assert "will withdraw the resize at its next control point" in capsys.readouterr().err
    story.awaits("WITHDRAW_RESIZE")
    os.kill(stopped, signal.SIGCONT)
    answer = story.awaits("RECONFIGURATION", done=False)
    assert answer["reason"] == "it was withdrawn before it began"
    assert main(["resize", "a", "2", "--timeout", "30"]) == 0
    assert capsys.readouterr().out.startswith("a: 1 → 2 processes at iteration ")
