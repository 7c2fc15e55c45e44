"""A short demo on each MPI: what it prints, what it writes, and its one line on an error."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
import runtime_kit
from checks import replay
from errors import DemoError
from hocket.analysis import analyse
from hocket.comparison import Run, compare
from hocket.daemon import default_policy
from hocket.trace import read_trace
from mpi_launch import MPIS, REPO, Mpi
from outcome import Outcome, Pair
from processes import descendants

DEMO = REPO / "demo" / "demo.py"
LIMIT_S = 150
# On a busy machine one solver may start late, so that the two never write at the same time. Then the demo runs again.
LEAST_WAIT_S = 0.05
MOST_RUNS = 3
TRACES = ("alone-a", "alone-b", "uncoordinated", "fcfs", "default")


@dataclass
class Demo:
    """A demo that has ended."""

    code: int
    out: str
    err: str
    run_dir: Path
    report_dir: Path

    def trace(self, name: str) -> Path:
        return self.run_dir / "traces" / f"{name}.jsonl"


def run_demo(directory: Path, *arguments: str, pairs: int = 0, **environment: str) -> Demo:
    """Run the demo and return its output.

    `pairs` is the number of pairs of runs that judge the default policy. Other tests on the machine may make the
    verdict fail.
    """
    run_dir, report_dir = directory / "run", directory / "report"
    done = subprocess.run(
        [sys.executable, DEMO, "--quick", "--pairs", str(pairs), "--run-dir", run_dir, "--out", report_dir, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    return Demo(done.returncode, done.stdout, done.stderr, run_dir, report_dir)


def granted(trace: Path) -> list[tuple[int, int, str]]:
    """Return (granted, finished, application) of each I/O operation, directly from the lines of the trace."""
    open_at: dict[tuple[int, int], int] = {}
    spans = []
    for line in trace.read_text().splitlines()[1:]:
        event = json.loads(line)
        key = (event["member"], event.get("request"))
        if event.get("out") == "GRANT_IO":
            open_at[key] = event["time_ns"]
        elif event.get("in") == "FINISH_IO" and key in open_at:
            spans.append((open_at.pop(key), event["time_ns"], event["application"]))
    return sorted(spans)


def overlaps(trace: Path) -> list[tuple[Any, Any]]:
    """Return the pairs of operations in which the two solvers were active at the same time."""
    spans = granted(trace)
    return [(a, b) for at, a in enumerate(spans) for b in spans[at + 1 :] if a[2] != b[2] and b[0] < a[1]]


def waited_s(trace: Path) -> float:
    """Return the total wait for grants, over all applications."""
    grants = [json.loads(line) for line in trace.read_text().splitlines() if '"GRANT_IO"' in line]
    return sum(grant["waited_ns"] for grant in grants) * 1e-9


@pytest.fixture(scope="module", params=MPIS)
def demo(request, prefix, tmp_path_factory) -> Demo:
    """Run the demo with the limited target, so that the factors do not depend on the storage of the machine."""
    for _ in range(MOST_RUNS):
        ended = run_demo(tmp_path_factory.mktemp("demo"), "--mpi", request.param, "--storage", "limited")
        assert ended.code == 0, f"the demo on {request.param} failed: {ended.err}\n{ended.out}"
        if overlaps(ended.trace("uncoordinated")) and waited_s(ended.trace("fcfs")) > LEAST_WAIT_S:
            break
    return ended


pytestmark = pytest.mark.timeout(MOST_RUNS * LIMIT_S + 30)


def test_it_says_what_it_does(demo):
    assert re.search(
        r"together, fcfs [\d.]+ s \| jacobi-a: iteration 36/36, residual [\d.e+-]+, 3 checkpoints", demo.out
    )
    assert re.search(r"storage target limited to [\d.]+ MB/s for all writers together", demo.out)
    assert "24 checkpoints" in demo.out and "byte for byte" in demo.out and "5 traces replay" in demo.out
    assert demo.err == ""


def test_the_table_stands_under_the_storage(demo):
    heading, _, table = demo.out.partition("application  run")
    assert heading.rstrip().splitlines()[-1].startswith("storage target limited to")
    assert [line.split()[0] for line in table.splitlines() if line.startswith("jacobi-")] == ["jacobi-a", "jacobi-b"]


def test_the_table_has_the_default_beside_fcfs(demo, prefix):
    lines = [line.split("  ") for line in demo.out.splitlines() if "together, " in line and "|" not in line]
    labels = [next(word.strip() for word in words if "together, " in word) for words in lines if "[" not in words[0]]
    assert labels == ["together, uncoordinated", "together, fcfs", f"together, default ({default_policy()})"] * 2


def test_its_traces_replay(demo, prefix):
    for name in TRACES:
        done = subprocess.run(
            [prefix / "bin" / "hocketd", "--replay", demo.trace(name)], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{name}: {done.stderr}"


def test_a_trace_that_was_changed_by_hand_does_not_replay(demo, prefix, monkeypatch, tmp_path):
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))
    lines = demo.trace("fcfs").read_text().splitlines()
    grant = next(at for at, line in enumerate(lines) if '"GRANT_IO"' in line)
    lines[grant] = json.dumps({**json.loads(lines[grant]), "request": 999})
    changed = tmp_path / "changed.jsonl"
    changed.write_text("\n".join(lines) + "\n")
    with pytest.raises(DemoError, match="does not replay"):
        replay(changed)


def rows(demo):
    """Return the figures by (application, role)."""
    runs = [
        Run("alone", [demo.trace("alone-a"), demo.trace("alone-b")], role="alone"),
        Run("uncoordinated", [demo.trace("uncoordinated")], role="uncoordinated"),
        Run("fcfs", [demo.trace("fcfs")], role="scheduled"),
    ]
    return {(row.application, row.role): row for row in compare(runs)}


def test_its_factors_are_those_of_its_times(demo):
    figures = rows(demo)
    for name in ("jacobi-a", "jacobi-b"):
        alone, together, scheduled = (figures[name, role] for role in ("alone", "uncoordinated", "scheduled"))
        assert together.interference == pytest.approx(together.io_s / alone.io_s)
        assert scheduled.cost == pytest.approx((scheduled.io_s + scheduled.wait_s) / alone.io_s)


def test_they_wait_under_fcfs_only(demo):
    assert waited_s(demo.trace("uncoordinated")) == 0
    assert waited_s(demo.trace("fcfs")) > LEAST_WAIT_S


def test_granted_operations_never_overlap_under_fcfs(demo):
    spans = granted(demo.trace("fcfs"))
    assert {name for _, _, name in spans} == {"jacobi-a", "jacobi-b"}
    assert len(spans) >= 2 * 3 * 3  # read, and header, rows, sync of each checkpoint
    assert overlaps(demo.trace("fcfs")) == []


def test_uncoordinated_operations_do_overlap(demo):
    assert overlaps(demo.trace("uncoordinated")), "the two solvers never wrote at once"


def test_it_writes_the_report(demo):
    page = (demo.report_dir / "report.html").read_text()
    assert "jacobi-a" in page and "jacobi-b" in page and "storage target limited to" in page
    for png in ("timeline.png", "timeline-together-fcfs.png"):
        assert (demo.report_dir / png).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_it_leaves_no_checkpoints(demo):
    assert not list((demo.run_dir / "storage").rglob("*.jacobi*"))


def test_it_can_be_ended(prefix, tmp_path):
    """Nothing that the demo started survives; the running solver would last longer than the wait here."""
    command = [sys.executable, DEMO, "--run-dir", tmp_path / "run", "--out", tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        said = next((line for line in process.stdout if "| jacobi-a: iteration" in line), "nothing of a run")
        started = descendants(process.pid)
        process.terminate()
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1 and err == "demo: ended by SIGTERM\n", said + err
    assert len(started) >= 3, "two ranks and their launcher"
    assert not list((tmp_path / "run" / "storage").rglob("*.jacobi*"))
    runtime_kit.wait_until(lambda: not any(map(is_alive, started)), 10, f"the end of all of {started}")


def test_solvers_outlive_their_daemon(prefix, start_daemon, hocket_dir, tmp_path):
    """hocketd is killed while both write: both finish with right checkpoints, and each reports the loss once."""
    daemon, mpi = start_daemon("--policy", "fcfs"), Mpi("mpich")
    program, environment = mpi.app("jacobi", prefix), {**mpi.environment(), "HOCKET_PREFIX": str(prefix)}
    running = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        words = ["--system", tmp_path / f"{name}.jacobi", "--generate", 400, "--iterations", 400, "--tolerance", 0]
        words += ["--checkpoint-every", 2, "--checkpoint-dir", tmp_path / name, "--verify", "--iteration-time", 0.03]
        command = [sys.executable, "-m", "hocket.cli", "run", "--name", name, "--", *mpi.command(2, program, *words)]
        running.append(subprocess.Popen(command, env=environment, stdout=PIPE, stderr=PIPE, text=True))
    for process in running:  # both have written a checkpoint
        seen = next((line for line in process.stdout if line.startswith("checkpoint")), "ended before")
        assert seen.rstrip().endswith("verified"), seen
    daemon.kill()
    for process in running:
        out, err = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, err
        assert json.loads(out.splitlines()[-1])["verified"] == 200
        lost = "has gone; the application continues uncoordinated"
        assert [line for line in err.splitlines() if lost in line] == err.splitlines()
        assert err.count("hocket: ") == 1, err


def test_a_full_disk_ends_the_demo_in_one_line(prefix, tmp_path):
    """No file may grow beyond 16 KiB: the measurement of the storage is the first to fail."""
    limited = ["bash", "-c", 'ulimit -f 16; trap "" XFSZ; exec "$@"', "limited"]
    command = [*limited, sys.executable, DEMO, "--quick", "--run-dir", tmp_path / "run", "--out", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    one_line(Demo(done.returncode, done.stdout, done.stderr, tmp_path, tmp_path), "File too large")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def one_line(ended: Demo, words: str) -> None:
    assert ended.code == 1, ended.out
    assert len(ended.err.splitlines()) == 1 and ended.err.startswith("demo: ") and words in ended.err, ended.err


def test_a_checkpoint_that_differs_fails_the_demo(prefix, spoiling_storage, tmp_path):
    ended = run_demo(tmp_path, "--storage", "real", LD_PRELOAD=str(spoiling_storage))
    one_line(ended, "checkpoint-000012.jacobi differs")
    assert "alone" in ended.out and "together" not in ended.out


def test_a_missing_daemon_fails_the_demo(tmp_path):
    one_line(run_demo(tmp_path, HOCKET_PREFIX=str(tmp_path)), "bin/hocketd: run ./dev build first")


def test_a_storage_that_cannot_be_written_fails_the_demo(prefix, tmp_path):
    one_line(run_demo(tmp_path, "--directory", "/proc"), "cannot measure the storage in /proc")


def test_the_last_line_says_whether_the_default_helped(prefix, tmp_path):
    """The last line and the exit code agree with the traces of the pairs."""
    ended = run_demo(tmp_path, "--storage", "limited", "--policy", "interfere", pairs=2)
    made = [Pair(*(totals(ended, f"pair-{n}-{which}") for which in ("uncoordinated", "default"))) for n in (1, 2)]
    outcome = Outcome("interfere", made)
    assert set(made[0].default) == {"jacobi-a", "jacobi-b"}
    assert ended.out.splitlines()[-1] == outcome.sentence()
    assert outcome.sentence() in (ended.report_dir / "report.html").read_text()
    assert ended.err == (f"demo: {outcome.complaint()}\n" if outcome.complaint() else "")
    assert ended.code == (1 if outcome.complaint() else 0)


def totals(ended: Demo, trace: str) -> dict[str, float]:
    analysis = analyse(read_trace(ended.trace(trace)))
    return {one.name: one.total_s(analysis.now_ns) for one in analysis.applications}


def test_collective_accesses_can_be_hockets(prefix: Path, tmp_path: Path) -> None:
    ended = run_demo(tmp_path, "--io", "hocket", "--storage", "limited")
    assert ended.code == 0, f"{ended.err}\n{ended.out}"
    assert "collective accesses by hocket" in (ended.report_dir / "report.html").read_text()
