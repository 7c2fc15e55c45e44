"""Replays compare facts: those of kept traces, one of each version, and of traces that the test changes."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from pathlib import Path

import pytest
from checkout import DATA
from daemon_kit import hello
from hocket.bus import Bus
from hocket.cli import main
from hocket.trace import VERSIONS, TraceError, read_trace
from runtime_kit import wait_until

KEPT = {version: DATA / f"version-{version}.jsonl" for version in VERSIONS}
LATEST = KEPT[VERSIONS[-1]]
LIMIT_S = 60
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def replay(prefix):
    def run(trace: Path) -> subprocess.CompletedProcess[str]:
        command = [prefix / "bin" / "hocketd", "--replay", trace]
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)

    return run


def changed(trace: Path, out: Path, change) -> Path:
    """Write a copy of the trace, with `change` applied to each line, the header included."""
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    for line in lines:
        change(line)
    out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return out


def first(trace: Path, command: str, kind: str = "") -> tuple[int, dict]:
    """Return number and content of the first line with such a command, with a reason of that kind."""
    lines = enumerate(map(json.loads, trace.read_text().splitlines()), start=1)
    found = ((number, line) for number, line in lines if line.get("out") == command)
    return next((number, line) for number, line in found if kind in ("", line.get("reason", {}).get("kind")))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_trace_of_each_version_runs_through(replay, version):
    assert json.loads(KEPT[version].read_text().partition("\n")[0])["hocket_trace"] == version
    done = replay(KEPT[version])
    assert (done.returncode, done.stderr) == (0, "")


def test_a_replay_ends_at_a_gap_and_says_so(replay, tmp_path, capsys):
    """hocketd leaves out events with their commands when its disk is slower than they come."""
    lines = LATEST.read_text().splitlines(keepends=True)
    at = next(number for number in range(100, 200) if '"in"' in lines[number])
    end = next(number for number in range(200, 300) if '"in"' in lines[number])
    gap = {"out": "EVENTS_LOST", "time_ns": json.loads(lines[at - 1])["time_ns"], "application": "", "member": 0}
    trace = tmp_path / "t.jsonl"
    trace.write_text("".join([*lines[:at], json.dumps(gap | {"events": end - at}) + "\n", *lines[end:]]))
    done = replay(trace)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"commands agree; {end - at} records are missing at line {at + 1} of {trace}" in done.stdout
    assert read_trace(trace).missing == end - at
    assert main(["trace", "summary", str(trace)]) == 0
    assert f"{end - at} records are missing" in capsys.readouterr().err


def test_a_trace_of_the_same_version_gives_the_same_facts(replay):
    done = replay(LATEST)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"{re.escape(str(LATEST))}: \d+ events and \d+ commands agree\n", done.stdout)
    kinds = {json.loads(line)["reason"]["kind"] for line in LATEST.read_text().splitlines() if '"DECISION"' in line}
    assert {"access", "shift", "conflict", "estimate"} <= kinds


def test_the_words_of_a_command_are_no_facts(replay, tmp_path):
    def reword(line: dict) -> None:
        if line.get("out") in ("DECISION", "OUTCOME", "REFUSED"):
            line["text"] = "in other words"

    done = replay(changed(LATEST, tmp_path / "t.jsonl", reword))
    assert (done.returncode, done.stderr) == (0, "")


def test_what_a_reason_says_is_a_fact(replay, tmp_path):
    number, decision = first(LATEST, "DECISION", "access")

    def rename(line: dict) -> None:
        if line == decision:
            line["reason"]["target"] = "another"

    done = replay(changed(LATEST, tmp_path / "t.jsonl", rename))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"t.jsonl, line {number}: the trace has " in done.stderr
    assert '"target": "another"' in done.stderr


def test_of_an_older_version_the_decisions_that_differ_are_listed(replay, tmp_path):
    number, grant = first(KEPT[1], "GRANT_IO")

    def delay(line: dict) -> None:
        if line == grant:
            line["waited_ns"] += 7

    agreed = replay(KEPT[1])
    done = replay(changed(KEPT[1], tmp_path / "t.jsonl", delay))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n  then ") == agreed.stdout.count("\n  then ") + 1
    head, *listed = done.stdout.splitlines()
    assert " events lead to other commands now" in head
    at = next(at for at, line in enumerate(listed) if f'"waited_ns": {grant["waited_ns"] + 7}' in line)
    assert listed[at].startswith('  then {"out": "GRANT_IO", ')
    assert re.fullmatch(rf".*t\.jsonl, line {number - 1}, START_IO of '{grant['application']}'", listed[at - 1])
    assert listed[at + 1].startswith('  now  {"out": "GRANT_IO", ')


def test_another_version_of_hocket_is_an_older_version_too(replay, tmp_path):
    _, grant = first(LATEST, "GRANT_IO")

    def renew(line: dict) -> None:
        if "hocket_trace" in line:
            line["version"] = "0.0.9"
        if line == grant:
            line["waited_ns"] += 7

    done = replay(changed(LATEST, tmp_path / "t.jsonl", renew))
    assert (done.returncode, done.stderr) == (0, "")
    assert "; 1 of " in done.stdout


def test_a_trace_from_before_most_settings_runs_through(replay):
    """Replay a trace with only a policy among its settings. No coordinator made it, so many decisions differ."""
    done = replay(DATA / "steered.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert " events lead to other commands now\n" in done.stdout


def test_old_and_new_traces_are_explained(capsys):
    for version in (1, 2):
        assert main(["explain", "--trace", str(KEPT[version]), "-n", "1000"]) == 0
        told = capsys.readouterr().out
        assert "  in its words  the I/O phase of " in told
        assert "  came of it    start of the next I/O phase: predicted " in told


def in_parts(trace: Path, directory: Path) -> list[Path]:
    """Write the trace in three parts, as hocketd does: each begins with an event and names its neighbours."""
    head, *lines = trace.read_text().splitlines()
    events = [number for number, line in enumerate(lines) if line.startswith('{"in"')]
    cuts = [0, events[len(events) // 3], events[len(events) // 2], len(lines)]
    names = ["t.jsonl", "t.1.jsonl", "t.2.jsonl"]
    for at, name in enumerate(names):
        header = json.loads(head) | ({"continues": names[at - 1]} if at else {})
        last = [json.dumps({"continued_by": names[at + 1]})] if at < 2 else []
        text = "\n".join([json.dumps(header), *lines[cuts[at] : cuts[at + 1]], *last])
        (directory / name).write_text(text + "\n")
    return [directory / name for name in names]


def test_the_parts_of_a_trace_are_one_trace(replay, tmp_path):
    whole = read_trace(LATEST)
    for part in in_parts(LATEST, tmp_path):
        done = replay(part)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.partition(": ")[2].startswith(replay(LATEST).stdout.partition(": ")[2].strip())
        read = read_trace(part)
        assert (read.events, read.settings, read.start_ns) == (whole.events, whole.settings, whole.start_ns)


@pytest.mark.parametrize("compressed", [(0,), (1,), (0, 1), (0, 1, 2)])
def test_parts_that_are_compressed_are_read_as_before(replay, tmp_path, compressed):
    whole = read_trace(LATEST)
    parts = in_parts(LATEST, tmp_path)
    for part in (parts[number] for number in compressed):
        part.with_name(part.name + ".gz").write_bytes(gzip.compress(part.read_bytes()))
        part.unlink()
    for part in parts:  # by the name that it had, too
        done = replay(part)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.partition(": ")[2].startswith(replay(LATEST).stdout.partition(": ")[2].strip())
        assert read_trace(part).events == whole.events


@pytest.mark.parametrize("size", [1, 30, -1])
def test_a_compressed_part_that_is_damaged_is_named(replay, tmp_path, size):
    first, second, _ = in_parts(LATEST, tmp_path)
    damaged = first.with_name("t.jsonl.gz")
    damaged.write_bytes(gzip.compress(first.read_bytes())[:size])
    first.unlink()
    done = replay(second)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert str(damaged) in done.stderr
    with pytest.raises(TraceError, match=re.escape(str(damaged))):
        read_trace(second)


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_part_that_is_missing_is_named(replay, tmp_path, missing):
    parts = in_parts(LATEST, tmp_path)
    parts[missing].unlink()
    for part in (one for one in parts if one != parts[missing]):
        done = replay(part)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert str(parts[missing]) in done.stderr
        with pytest.raises(TraceError, match=re.escape(str(parts[missing]))):
            read_trace(part)


def test_a_daemon_compresses_its_trace_and_it_replays(start_daemon, hocket_dir, replay):
    config = hocket_dir / "hocket.toml"
    config.write_text("[daemon]\ntrace_part_mib = 1\ntrace_compress = true\n")
    daemon = start_daemon("--config", config, "--policy", "fcfs")
    begun = daemon.trace
    with Bus.connect() as bus:
        hello(bus, "a")
        for request in range(1, 6000):
            bus.send("START_IO", request=request, target="t", file="f" * 300)
            assert bus.answer(LIMIT_S).type == "GRANT_IO"
            bus.send("FINISH_IO", request=request)
    compressed = begun.with_name(begun.name + ".gz")
    wait_until(compressed.exists, LIMIT_S, "the first part is compressed")
    assert daemon.stop() == 0
    assert compressed.stat().st_size < 200_000
    assert not begun.exists()
    done = replay(begun)
    assert (done.returncode, done.stderr) == (0, "")
    assert sum(event.type == "START_IO" for event in read_trace(begun).events) == 5999
