"""Failing resizes: the application continues as before and says why, or the job soon ends with an error."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import malleable_kit as kit
import pytest
import runtime_kit
from daemon_kit import Daemon
from processes import descendants

pytestmark = [pytest.mark.timeout(300), pytest.mark.parametrize("mpi", ["mpich"], indirect=True)]
LIMIT_S = 60
FOREVER = 10**6
JOIN = {"HOCKET_SPAWN_STRATEGY": "join"}


@pytest.fixture
def probe(mpi, prefix, built, tmp_path) -> kit.Probe:
    """The probe under a name of this test's own, which identifies its processes."""
    program = shutil.copy(built("malleable_probe.c", *kit.link_flags(prefix, mpi.name)), tmp_path / "probe")
    return kit.Probe(mpi, Path(program))


@pytest.fixture
def cores(start_daemon, tmp_path) -> Daemon:
    """A daemon that can allocate 16 cores."""
    settings = tmp_path / "hocket.toml"
    settings.write_text("[coordinator]\ncores = 16\n")
    return start_daemon("--config", settings)


class Resizable:
    """An application that runs until the test ends it."""

    def __init__(self, probe: kit.Probe, daemon: Daemon, ranks: int = 1, **settings: str):
        self.probe = probe
        self.end = probe.program.parent / "end"
        self.hold = kit.Hold(probe.program.parent)
        self.job = probe.start(
            ranks, FOREVER, ms=5, PROBE_END=str(self.end), HOCKET_RESIZE_MAX_S=str(kit.AMPLE_S),
            **self.hold.setting, **runtime_kit.settings(daemon.socket), **settings,
        )  # fmt: skip
        self.job.reads("^begin 0 processes")
        self.first = self.job.pids()

    def resize(self, *arguments: object) -> subprocess.Popen:
        command = [sys.executable, "-m", "hocket.cli", "resize", "a", *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def others(self) -> list[int]:
        """Return the processes that the launcher or hocketd started later."""
        return sorted(
            pid for pid in descendants(os.getpid()) if kit.runs(pid, self.probe.program) and pid not in self.first
        )

    def await_others(self, count: int) -> list[int]:
        runtime_kit.wait_until(lambda: len(self.others()) == count, LIMIT_S, f"{count} new processes")
        return self.others()

    def goes_on(self, processes: int) -> runtime_kit.Run:
        """Check that it runs to its end with right numbers and with this number of processes."""
        self.end.touch()
        done = self.job.ends(LIMIT_S)
        assert done.code == 0, f"exit code {done.code}\n{done.out}{done.err}"
        assert re.search(rf"^ok \d+ processes {processes} sum", done.out, re.M), done.out
        kit.nothing_left(self.probe.program)
        return done

    def breaks_off(self) -> str:
        """Check that it aborts with an error and leaves no process behind; return its stderr."""
        return kit.broken(self.job).err


@pytest.fixture
def resizable(probe, cores) -> Callable[..., Resizable]:
    return lambda **how: Resizable(probe, cores, **how)


def told(resize: subprocess.Popen) -> tuple[int, str]:
    """Return exit code and output line of `hocket resize`."""
    out, err = resize.communicate(timeout=LIMIT_S)
    return resize.returncode, (out + err).rstrip("\n")


# ---- resizes that cannot be done -------------------------------------------------------------------------------------


def test_an_executable_that_is_gone(resizable, probe):
    app = resizable()
    probe.program.unlink()
    code, line = told(app.resize(3))
    assert code == 1
    assert line.startswith("hocket: 'a' was not resized and continues with 1 processes: ")
    assert f"{probe.program}" in line
    assert "No such file" in line
    app.goes_on(1)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a user of its own, for a limit on that user's processes")
def test_no_further_process_to_be_had(probe):
    """RLIMIT_NPROC does not bind root: the job runs as a user with no other process."""
    with tempfile.TemporaryDirectory(prefix="hocket-test-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        program = shutil.copy(probe.program, directory / "probe")
        settings = {"HOCKET_RESIZE": "2:60", "HOME": name}
        command, environment = probe.mpi.command(1, [program, 5, kit.LENGTH], "", settings)
        limited = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "prlimit", "--nproc=40", *command]
        done = subprocess.run(
            limited, cwd=name, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines)) == (0, 1), f"{done.stdout}{done.stderr}"
    assert lines[0].startswith("hocket: not resized from 1 to 60 processes: no further process can be started (")
    assert done.stdout.splitlines()[-1].startswith("ok 5 processes 1 ")


def test_what_is_refused(resizable):
    app = resizable(ranks=2)
    for arguments, reason in {
        (2,): "'a' has 2 processes already",
        (0,): "'a' has 2 processes and would have 0: it needs at least 1",
        (17,): "there are 16 cores",
        (3, "--at", 1): "iteration 1 is past",
    }.items():
        code, line = told(app.resize(*arguments))
        assert code == 1
        assert reason in line
    later = app.resize(1, "--at", FOREVER - 1)

    def is_sent() -> bool:
        """Return True if the trace has this resize; an earlier one may appear there late."""
        return any(one["out"] == "RECONFIGURE" and one["at_iteration"] == FOREVER - 1 for one in commands())

    runtime_kit.wait_until(is_sent, LIMIT_S, "the resize reaches the application")
    code, line = told(app.resize(3))
    assert code == 1
    assert "'a' is being resized to 1 process already" in line
    done = app.goes_on(2)
    assert done.err == ""
    assert told(later) == (1, "hocket: 'a' ended before it was resized")


def test_a_resize_that_is_taken_back_leaves_nothing_in_the_way(resizable):
    app = resizable()
    later = app.resize(3, "--at", FOREVER - 1)
    runtime_kit.wait_until(lambda: "RECONFIGURE" in sent(), LIMIT_S, "the resize reaches the application")
    later.send_signal(signal.SIGINT)
    assert told(later) == (
        130,
        "hocket: 'a' was not resized and continues with 1 processes: it was withdrawn before it began",
    )
    assert told(app.resize(2))[0] == 0
    app.goes_on(2)


def test_a_resize_that_has_begun_is_not_taken_back(resizable):
    app = resizable(**JOIN)
    app.hold.at("begin")
    resize = app.resize(3)
    app.await_others(2)
    resize.send_signal(signal.SIGINT)
    code, line = told(resize)
    assert code == 130
    assert line.startswith("hocket: 'a' has begun to resize: that continues")
    app.hold.release("begin")
    app.job.reads("^iteration .* processes 3")
    app.goes_on(3)


def test_what_a_lost_hocketd_was_asked_for_is_not_done(resizable, cores, start_daemon, tmp_path):
    """The next hocketd counts its requests from 1 again."""
    app = resizable()
    later = app.resize(4, "--at", FOREVER - 1)
    runtime_kit.wait_until(lambda: "RECONFIGURE" in sent(), LIMIT_S, "the resize reaches the application")
    cores.kill()
    assert told(later)[0] == 1
    start_daemon("--config", tmp_path / "hocket.toml")
    runtime_kit.wait_until(lambda: sent().count("WELCOME") == 2, LIMIT_S, "the application has found the next hocketd")
    code, line = told(app.resize(2))
    assert (code, line.startswith("a: 1 → 2 processes")) == (0, True), line
    done = app.goes_on(2)
    # stderr is empty if the application lost hocketd before the control point at which it would have read the resize.
    assert done.err in ("", "hocket: not resized: the connection to hocketd ended, and the requester was informed\n")


def sent() -> list[str]:
    """Return the types of the daemons' commands so far."""
    return [command["out"] for command in commands()]


def commands() -> list[dict]:
    """Return the daemons' commands so far, from their traces."""
    traces = sorted((Path(os.environ["HOCKET_DIR"]) / "traces").glob("*.jsonl"))
    lines = [line for trace in traces for line in trace.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [line for line in map(json.loads, lines) if "out" in line]


@pytest.mark.parametrize("strategy", ["plain", "join"])
def test_processes_that_register_other_arrays_are_sent_away(resizable, strategy):
    app = resizable(PROBE_OTHER_LENGTH="1", HOCKET_SPAWN_STRATEGY=strategy)
    reason = "the new processes registered different arrays than the old ones"
    for _ in range(2):  # the first refusal does not block the second
        assert told(app.resize(3)) == (1, f"hocket: 'a' was not resized and continues with 1 processes: {reason}")
        app.await_others(0)
    app.goes_on(1)


@pytest.mark.parametrize("strategy", ["plain", "join"])
def test_a_sleeper_that_was_woken_in_vain_sleeps_again(resizable, strategy):
    app = resizable(ranks=2, PROBE_OTHER_LENGTH="1", HOCKET_SPAWN_STRATEGY=strategy)
    assert told(app.resize(1))[0] == 0
    for _ in range(2):
        code, line = told(app.resize(3))  # the sleeper, and one that registers other arrays
        assert (code, "registered different arrays" in line) == (1, True), line
        app.await_others(0)
    code, line = told(app.resize(2))
    assert (code, line.endswith("1 woken")) == (0, True), line
    app.goes_on(2)


def test_a_sleeper_that_was_woken_in_vain_ends_with_the_application(resizable):
    app = resizable(ranks=2, PROBE_OTHER_LENGTH="1")
    assert told(app.resize(1))[0] == 0
    assert told(app.resize(3))[0] == 1
    app.goes_on(1)


def test_constant_data_that_are_written_while_they_move(probe):
    how = {"HOCKET_REDISTRIBUTION_STRATEGY": "wait-targets", "HOCKET_CHECK_CONSTANT": "1", "PROBE_WRITE_CONSTANT": "1"}
    err = kit.broken(probe.start(1, FOREVER, ms=1, HOCKET_RESIZE="2:3", **how)).err
    assert "hocket: constant data were written while they moved, before iteration" in err


# ---- processes that die: started by MPI ------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["plain", "async"])
@pytest.mark.parametrize("where", ["init", "begin"])
def test_a_new_process_dies_before_the_merge(resizable, where, strategy):
    app = resizable(HOCKET_SPAWN_STRATEGY=strategy)
    app.hold.at(where)
    resize = app.resize(3)
    pid = int(app.job.reads(rf"^held {where} (\d+)")[1])
    os.kill(pid, signal.SIGKILL)
    app.breaks_off()
    assert told(resize)[0] == 1


# Each pair is a redistribution method and its strategy.
MOVES = [
    ("p2p", "blocking"),
    ("p2p", "wait-targets"),
    ("p2p", "thread"),
    ("rma-lock", "blocking"),
    ("rma-lock", "thread"),
    ("collective", "blocking"),
    ("collective", "thread"),
]


@pytest.mark.parametrize(("method", "strategy"), MOVES)
@pytest.mark.parametrize("who", kit.VICTIMS)
def test_a_process_dies_while_data_move(probe, who, method, strategy):
    kit.dies_while_data_move(probe, (2, 4), who, method, strategy)


@pytest.mark.parametrize(("method", "strategy"), MOVES)
@pytest.mark.parametrize("who", kit.VICTIMS)
def test_a_source_dies_while_data_move_to_fewer(probe, who, method, strategy):
    """The victims are the one that stays, an original rank that would sleep, and one that would end."""
    kit.dies_while_data_move(probe, (4, 1), who, method, strategy)


@pytest.mark.parametrize("who", [0, 1])
def test_a_process_dies_after_the_merge(resizable, who):
    app = resizable()
    assert told(app.resize(3))[0] == 0
    os.kill([*app.first, *app.others()][who], signal.SIGKILL)
    app.breaks_off()


# ---- processes that die: started by hocketd --------------------------------------------------------------------------


def test_a_joiner_dies_before_it_connects(resizable):
    app = resizable(**JOIN)
    app.hold.at("begin")
    resize = app.resize(3)
    # Two more processes are not enough: MPICH forks in a process that starts alone, and one may be that child.
    os.kill(int(app.job.reads(r"^held begin (\d+)")[1]), signal.SIGKILL)
    code, line = told(resize)
    assert code == 1
    assert "'a' was not resized and continues with 1 processes: " in line
    assert "was killed by signal 9 (SIGKILL)" in line
    app.hold.release("begin")
    app.await_others(0)
    assert told(app.resize(2))[0] == 0  # another resize works
    app.goes_on(2)


def test_a_joiner_dies_when_it_is_ready(resizable):
    app = resizable(**JOIN)
    app.hold.at("begin")
    resize = app.resize(3)
    victim = int(app.job.reads(r"^held begin (\d+)")[1])
    runtime_kit.stop(app.first[0])  # keeps the sources from meeting them before one is dead
    app.hold.release("begin")
    runtime_kit.wait_until(lambda: "PROCESSES_READY" in sent(), LIMIT_S, "the new processes are ready")
    os.kill(victim, signal.SIGKILL)
    os.kill(app.first[0], signal.SIGCONT)
    assert told(resize)[0] == 1
    app.goes_on(1)


@pytest.mark.parametrize("who", ["first", "joined"])
def test_a_process_dies_after_a_join(resizable, who):
    app = resizable(**JOIN)
    assert told(app.resize(3))[0] == 0
    joined = app.await_others(2)
    os.kill(app.first[0] if who == "first" else joined[-1], signal.SIGKILL)
    app.breaks_off()


def test_hocketd_dies_during_a_join(resizable, cores):
    app = resizable(**JOIN)
    app.hold.at("begin")
    resize = app.resize(3)
    app.await_others(2)
    cores.kill()
    app.hold.release("begin")
    assert told(resize)[0] != 0
    app.goes_on(1)


def test_the_first_process_dies_during_a_join(resizable):
    """The others wait for a connection that cannot come."""
    app = resizable(**JOIN)
    app.hold.at("begin")
    app.resize(3)
    app.await_others(2)
    os.kill(app.first[0], signal.SIGKILL)
    app.hold.release("begin")
    app.breaks_off()


# ---- the exit code ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dies", "code"), [(True, 1), (False, 0)])
def test_hocket_run_reports_a_failure_after_a_baseline_resize(probe, cores, prefix, monkeypatch, dies, code):
    """MPICH's mpiexec returns 0 in both cases: all processes that it started itself have ended."""
    end = probe.program.parent / "end"
    how = {"HOCKET_SPAWN": "baseline", "HOCKET_RESIZE": "3:2", "PROBE_END": str(end), "HOCKET_PREFIX": str(prefix)}
    for name, value in (runtime_kit.ENVIRONMENT | probe.mpi.environment | how).items():
        monkeypatch.setenv(name, value)
    command = [sys.executable, "-m", "hocket.cli", "run", "--", *probe.mpi.mpiexec, "-n", "1"]
    run = runtime_kit.launch([*command, str(probe.program), str(FOREVER), str(kit.LENGTH), "5"], dict(os.environ))
    job = kit.Running(run, probe.program)
    job.reads("^begin 3 processes 2")
    if dies:
        # mpiexec knows of the first process, until that has ended.
        runtime_kit.wait_until(lambda: len(job.pids()) == 2, LIMIT_S, "the end of the process that mpiexec started")
        os.kill(job.pids()[-1], signal.SIGKILL)
    else:
        end.touch()
    done = job.ends(LIMIT_S)
    assert done.code == code, f"{done.out}{done.err}"
    line = "hocket: the application ended before its work was done, although mpiexec returned 0: exit code 1 instead"
    assert (line in done.err) == dies, done.err
    kit.nothing_left(probe.program)
