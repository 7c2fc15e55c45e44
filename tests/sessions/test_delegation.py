"""Delegated targets: an application that is alone accesses its target without asking, until another one asks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runtime_kit as kit
from hocket.analysis import Analysis, analyse
from hocket.bus import Bus
from hocket.trace import read_trace

pytestmark = pytest.mark.timeout(180)

LEASE_S = 3  # a busy machine sometimes keeps processes from running for a second
BOUND_NS = 2_000_000_000  # for what takes a message round trip, on a busy machine; less than the lease


@pytest.fixture
def start_delegating(start_daemon: Callable[..., Any], hocket_dir: Path) -> Callable[..., Any]:
    """Return a function that starts hocketd, which delegates a target after 0.2 s (or so many)."""

    def start(after_s: float = 0.2, policy: str = "fcfs") -> Any:
        config = hocket_dir / "hocket.toml"
        config.write_text(
            f'[coordinator]\npolicy = "{policy}"\nlease_s = {LEASE_S}\nkeep_alive_s = 0.1\nlinger_s = 0.02\n'
            f"delegate_after_s = {after_s}\n"
        )
        return start_daemon("--config", config)

    return start


class Course:
    """A program that writes to its file in steps that the test allows."""

    def __init__(self, mpi: kit.Mpi, program: Path, daemon: Any, directory: Path, name: str, *actions: str) -> None:
        self.directory, self.name = directory, name
        self.path = directory / name
        steps = [self._step(action) for action in actions]
        environment = kit.settings(daemon.socket, job=name, name=name)
        self.process = mpi.start([program, f"open={self.path}", *steps, "close"], environment)

    def _step(self, action: str) -> str:
        verb, _, name = action.partition("=")
        return f"{verb}={self._at(name)}" if verb in ("mark", "await") else action

    def _at(self, step: str) -> Path:
        return self.directory / f"{self.name}-{step}"

    def reached(self, step: str) -> None:
        kit.wait_until(self._at(step).exists, 60, f"'{self.name}' is at '{step}'")

    def go(self, step: str) -> None:
        self._at(step).touch()

    def ends(self) -> kit.Run:
        return kit.finish(self.process)


DELEGATED = ("write=100", "pause=0.5", "write=100", "write=100")  # the second one brings the delegation


@pytest.fixture
def course(mpi: kit.Mpi, built: Callable[..., Path], tmp_path: Path) -> Callable[..., Course]:
    return lambda daemon, name, *actions: Course(mpi, built("script.c"), daemon, tmp_path, name, *actions)


def lines(daemon: Any) -> list[dict[str, Any]]:
    """Return the lines of the trace without its header. While the daemon runs, the last lines may be missing."""
    return [json.loads(line) for line in daemon.trace.read_text().splitlines(keepends=True)[1:] if line.endswith("\n")]


def came(daemon: Any, kind: str, **fields: Any) -> list[dict[str, Any]]:
    return [e for e in lines(daemon) if e.get("in") == kind and fields.items() <= e.items()]


def said(daemon: Any, kind: str) -> list[dict[str, Any]]:
    return [e for e in lines(daemon) if e.get("out") == kind]


def stopped(daemon: Any, prefix: Path) -> Any:
    """Stop the daemon and check that its trace can be replayed; the trace is then complete."""
    assert daemon.stop() == 0
    replay = subprocess.run([prefix / "bin" / "hocketd", "--replay", daemon.trace], capture_output=True, text=True)
    assert (replay.returncode, replay.stderr) == (0, "")
    return daemon


def await_delegation(daemon: Any) -> None:
    kit.wait_until(lambda: any(e.get("delegated") for e in said(daemon, "GRANT_IO")), 30, "a delegation in the trace")


def content(sizes: list[int], ranks: int = 2) -> bytes:
    return b"".join(bytes([65 + rank]) * size for size in sizes for rank in range(ranks))


def test_who_is_alone_accesses_without_asking(course, start_delegating, prefix) -> None:
    daemon = start_delegating()
    run = course(daemon, "a", *DELEGATED, *["write=100", "alone=100"] * 50, "pause=0.5", "write=100")
    assert (run.ends().code, run.ends().err) == (0, "")
    stopped(daemon, prefix)
    granted = said(daemon, "GRANT_IO")
    begun = [e for e in came(daemon, "START_IO") if e.get("delegation")]
    assert sum(e.get("delegated", False) for e in granted) >= 1
    assert len(granted) <= 6, "rank 0 before its delegation, and each rank's independent accesses"
    assert len(begun) >= 50
    assert all(0 < e["ago_ns"] < BOUND_NS for e in begun), "in batches"
    assert len(came(daemon, "FINISH_IO")) == len(came(daemon, "START_IO"))
    assert [said(daemon, kind) for kind in ("QUEUED_IO", "RECALL_IO", "LEASE_EXPIRED")] == [[], [], []]


def test_another_application_gets_the_target_at_once(course, start_delegating, prefix, tmp_path) -> None:
    daemon = start_delegating()
    holder = course(daemon, "h", *DELEGATED, "mark=computes", "await=go", "write=100", "write=100")
    holder.reached("computes")
    await_delegation(daemon)
    run = course(daemon, "a", "write=50").ends()
    assert (run.code, run.err) == (0, "")
    holder.go("go")
    assert (holder.ends().code, holder.ends().err) == (0, "")
    stopped(daemon, prefix)
    [recalled] = said(daemon, "RECALL_IO")
    [returned] = came(daemon, "RETURN_IO")
    assert recalled["because_of"] == "a"
    assert returned["time_ns"] - recalled["time_ns"] < BOUND_NS
    waited = [e["waited_ns"] for e in said(daemon, "GRANT_IO") if e["application"] == "a"]
    assert max(waited) < BOUND_NS
    assert said(daemon, "LEASE_EXPIRED") == []
    assert (tmp_path / "h").read_bytes() == content([100] * 5)


def test_an_access_under_way_ends_first(course, start_delegating, prefix, tmp_path) -> None:
    daemon = start_delegating()
    holder = course(daemon, "h", *DELEGATED, "begin=100", "mark=held", "await=go", "finish", "write=100")
    holder.reached("held")
    other = course(daemon, "a", "write=50")
    kit.wait_until(lambda: came(daemon, "RETURN_IO"), 30, "the delegation is returned")
    holder.go("go")
    assert [run.ends().code for run in (holder, other)] == [0, 0]
    stopped(daemon, prefix)
    [returned] = came(daemon, "RETURN_IO")
    [first] = [e for e in said(daemon, "GRANT_IO") if e["application"] == "a"][:1]
    ended = [e for e in came(daemon, "FINISH_IO", application="h") if e["time_ns"] > returned["time_ns"]]
    assert ended[0]["time_ns"] <= first["time_ns"], "the holder's access ends before the other's begins"


def test_a_stopped_holder_loses_the_target_with_its_lease(course, start_delegating, prefix, tmp_path) -> None:
    daemon = start_delegating()
    holder = course(daemon, "h", *DELEGATED, "mark=computes", "await=go", "write=100", "pause=0.3", "write=100")
    holder.reached("computes")
    await_delegation(daemon)
    pid = came(daemon, "HELLO", job="h")[0]["pid"]
    kit.stop(pid)
    run = course(daemon, "a", "write=50").ends()
    os.kill(pid, signal.SIGCONT)
    assert (run.code, run.err) == (0, "")
    holder.go("go")
    assert (holder.ends().code, holder.ends().err) == (0, "")
    stopped(daemon, prefix)
    expired = said(daemon, "LEASE_EXPIRED")[0]  # another one is of what was not reported before it stopped
    [recalled] = said(daemon, "RECALL_IO")[:1]
    assert LEASE_S * 1e9 <= expired["time_ns"] - recalled["time_ns"] < (LEASE_S + 5) * 1e9
    assert (tmp_path / "h").read_bytes() == content([100] * 5)


def test_a_killed_holder_frees_the_target(course, start_delegating, prefix) -> None:
    daemon = start_delegating()
    holder = course(daemon, "h", *DELEGATED, "mark=computes", "pause=60")
    holder.reached("computes")
    await_delegation(daemon)
    os.kill(came(daemon, "HELLO", job="h")[0]["pid"], signal.SIGKILL)
    assert holder.ends().code != 0
    run = course(daemon, "a", "write=50").ends()
    assert (run.code, run.err) == (0, "")
    stopped(daemon, prefix)
    assert said(daemon, "RECALL_IO") == []
    assert all(e["waited_ns"] < BOUND_NS for e in said(daemon, "GRANT_IO"))


def test_hocketd_dies_while_a_target_is_delegated(course, start_delegating, prefix, tmp_path) -> None:
    daemon = start_delegating()
    accesses = ["write=100", "pause=0.2"] * 3
    holder = course(
        daemon, "h", *DELEGATED, "mark=computes", "await=killed", *accesses, "mark=alone", "await=new", *accesses
    )
    holder.reached("computes")
    await_delegation(daemon)
    daemon.kill()
    holder.go("killed")
    holder.reached("alone")
    new = start_delegating()
    holder.go("new")
    run = holder.ends()
    assert (run.code, len(run.warnings)) == (0, 1), run.err
    assert "has gone" in run.warnings[0]
    assert (tmp_path / "h").read_bytes() == content([100] * 9)
    stopped(new, prefix)
    assert len(said(new, "GRANT_IO")) >= 1, "coordinated again"
    assert came(new, "BYE")


def test_the_policy_is_switched_while_a_target_is_delegated(course, start_delegating, prefix) -> None:
    daemon = start_delegating()
    holder = course(daemon, "h", *DELEGATED, "mark=computes", "await=go", "write=100", "write=100")
    holder.reached("computes")
    await_delegation(daemon)
    with Bus.connect(daemon.socket) as bus:
        bus.send("SET_POLICY", policy="interfere")
        kit.wait_until(lambda: came(daemon, "RETURN_IO"), 30, "the delegation is returned")
    holder.go("go")
    assert (holder.ends().code, holder.ends().err) == (0, "")
    stopped(daemon, prefix)
    [recalled] = said(daemon, "RECALL_IO")
    assert recalled.get("because_of", "") == ""
    assert sum(e.get("delegated", False) for e in said(daemon, "GRANT_IO")) == 2, "again with its next request"


def figures(analysis: Analysis) -> dict[str, Any]:
    """Return what a report says of the only application, but for times."""
    [application] = analysis.applications
    phases = [p for p in application.phases if not p.of_one_process]
    return {
        "operations": sorted((o.routine, o.bytes, o.asker_bytes) for o in application.operations),
        "phases": [(p.operations, p.bytes_written) for p in phases],
    }


def test_a_report_says_the_same(course, start_delegating, start_daemon, prefix, tmp_path) -> None:
    actions = [*DELEGATED, *["write=1000", "write=2000", "pause=0.4"] * 4]
    seen = {}
    for after_s in (0.2, 0):
        daemon = start_delegating(after_s)
        run = course(daemon, "a", *actions).ends()
        assert (run.code, run.err) == (0, "")
        stopped(daemon, prefix)
        seen[after_s] = analyse(read_trace(daemon.trace))
        assert any(e.get("delegated") for e in said(daemon, "GRANT_IO")) == (after_s > 0)
    assert figures(seen[0.2]) == figures(seen[0])
    [batched] = seen[0.2].applications
    for operation in batched.operations:
        inside = [
            p for p in batched.phases if p.start_ns <= operation.asked_ns and operation.finished_ns <= p.end_ns + 1e8
        ]
        assert inside, "each operation lies in its phase, whenever its batch came"


def test_hocket_does_the_io_under_a_delegation(mpi, built, start_delegating, prefix, tmp_path) -> None:
    daemon = start_delegating()
    actions = [f"open={tmp_path / 'f'}", *DELEGATED, *["write=70000"] * 5, "close"]
    run = mpi.run([built("script.c"), *actions], kit.settings(daemon.socket, io="hocket"), ranks=3)
    assert (run.code, run.err) == (0, "")
    assert (tmp_path / "f").read_bytes() == content([100] * 3 + [70000] * 5, ranks=3)
    stopped(daemon, prefix)
    begun = [e for e in came(daemon, "START_IO") if e.get("delegation")]
    assert len(begun) >= 5


def test_steps_of_the_application_are_granted_at_once(mpi, coordinate, start_delegating, prefix, tmp_path) -> None:
    daemon = start_delegating()
    step = ["inform", "wait", "write=100", "release"]
    actions = ["prepare=bytes=2000", f"open={tmp_path / 'f'}", *step, "pause=0.5", *step * 4, "close", "complete"]
    run = mpi.run([coordinate, *actions], kit.settings(daemon.socket, phase_gap_s=5))
    assert (run.code, run.out, run.err) == (0, "", "")
    stopped(daemon, prefix)
    begun = [e for e in came(daemon, "START_IO") if e.get("delegation")]
    assert {e["operation"] for e in begun} >= {"hocket_io_inform"}
    assert any(e["phase_bytes"] > 0 for e in begun), "what was prepared"
    assert len(said(daemon, "GRANT_IO")) < len(came(daemon, "START_IO"))
