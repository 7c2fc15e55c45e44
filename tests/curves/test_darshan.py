"""`hocket curves from-darshan`: logs of known accesses are matched to the patterns that make such accesses."""

from __future__ import annotations

import importlib.util
import json
import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from darshan_kit import Made, write_log
from hocket import cli
from hocket.arbitration.jobs import read_jobs
from hocket.curves import darshan_log, store
from hocket.curves.darshan_log import Log, read_logs
from hocket.exploration.results import jobs_text

pytestmark = pytest.mark.timeout(180)

MIB = 1 << 20
RATES = {0: 100.0, 1: 50.0, 2: 80.0, 4: 200.0}
PATTERNS = """
[[pattern]]
name = "p"
nodes = 2
processes_per_node = 2
layout = ["own", "contiguous", "strided"]
operation = ["write", "read"]
request = ["64k", "1m"]
"""


@pytest.fixture
def patterns(tmp_path: Path) -> Path:
    """Measured patterns: each has RATES times its place in the list."""
    directory = tmp_path / "explored"
    directory.mkdir()
    (directory / "patterns.toml").write_text(PATTERNS)
    names = [
        f"p-{layout}-{operation}-{request}"
        for layout in ("own", "contiguous", "strided")
        for operation in ("write", "read")
        for request in ("64k", "1m")
    ]
    curves = ((name, 2, 4, {number: rate * at for number, rate in RATES.items()}) for at, name in enumerate(names, 1))
    (directory / "curves.toml").write_text(jobs_text(curves))
    return directory


def read_log(path: Path) -> Log:
    ((_, log),) = read_logs([path])
    assert isinstance(log, Log), log
    return log


def accesses(layout: str, *, writes: bool, request: int, processes: int = 4, count: int = 32) -> Iterable[Made]:
    """Make the accesses that hocket-replay makes for a pattern (offset_of in src/tools/replay/main.c)."""
    for rank in range(processes):
        for i in range(count):
            at = {"own": i, "contiguous": rank * count + i, "strided": i * processes + rank}[layout]
            file = f"/scratch/{layout}-{rank if layout == 'own' else 0}"
            yield Made(rank, file, writes, at * request, request, seconds=0.125)


@pytest.fixture
def run(tmp_path: Path, patterns: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict, str]]:
    """Return a function that runs from-darshan, and returns its exit code, JSON, and errors."""

    def runs(*words: object) -> tuple[int, dict, str]:
        known = ["--curves", tmp_path / "curves.toml", "--patterns", patterns, "--json"]
        code = cli.main(["curves", "from-darshan", *map(str, known), *map(str, words)])
        told = capsys.readouterr()
        return code, json.loads(told.out or "{}"), told.err

    return runs


@pytest.mark.parametrize("layout", ["own", "contiguous", "strided"])
@pytest.mark.parametrize("writes", [True, False], ids=["write", "read"])
@pytest.mark.parametrize(("request_bytes", "word"), [(64 << 10, "64k"), (MIB, "1m")])
def test_the_accesses_of_a_pattern_are_that_pattern(layout, writes, request_bytes, word, run, tmp_path):
    made = accesses(layout, writes=writes, request=request_bytes)
    log = write_log(tmp_path / "log", made, processes=4, seconds=10, host_names=["n1", "n2"])
    code, told, err = run(log)
    assert (code, err) == (0, "")
    (part,) = told["app"]["parts"]
    assert part["pattern"] == f"p-{layout}-{'write' if writes else 'read'}-{word}" and part["distance"] == 0
    assert told["app"]["confidence"] == 1 and told["app"]["nodes"] == 2 and told["app"]["processes"] == 4


def test_the_curve_is_of_all_time_of_the_run(run, tmp_path: Path):
    """32 requests of 0.125 s take 4 of 10 s, so 6 s are outside of I/O, whatever the number of servers."""
    log = write_log(tmp_path / "log", accesses("own", writes=True, request=MIB), processes=4, seconds=10)
    run(log, "--processes-per-node", 2)
    (job,) = read_jobs(tmp_path / "curves.toml").jobs
    moved = 4 * 32 * MIB
    wanted = {number: moved / (6 + moved / (2 * rate * 1e6)) for number, rate in RATES.items()}
    assert job.bandwidth == pytest.approx(wanted, rel=1e-4)
    curve = store.read(tmp_path / "curves.toml")["app"]
    assert (curve.found, curve.runs, curve.confidence, curve.pattern) == (("darshan",), 1, 1, "p-own-write-1m")


def test_a_mixture_has_parts_by_their_bytes(run, tmp_path: Path):
    made = [
        *accesses("own", writes=True, request=MIB, count=30),
        *accesses("strided", writes=False, request=64 << 10, count=160),
    ]
    log = write_log(tmp_path / "log", made, processes=4, host_names=["n1", "n2"], streams={"/scratch/log": (900, 9000)})
    _, told, _ = run(log)
    parts = told["app"]["parts"]
    assert [(one["pattern"], round(one["share"], 2)) for one in parts[:2]] == [
        ("p-own-write-1m", 0.75),
        ("p-strided-read-64k", 0.25),
    ]
    assert told["app"]["confidence"] > 0.99
    each = {"p-own-write-1m": 2, "p-strided-read-64k": 11}
    rate = 1 / (0.75 / (100 * each["p-own-write-1m"]) + 0.25 / (100 * each["p-strided-read-64k"]))
    assert told["app"]["io_mb_s"]["0"] == pytest.approx(rate, rel=0.01)


def test_the_terminal_is_no_file(tmp_path: Path):
    log = write_log(tmp_path / "log", [], processes=1, streams={"<STDOUT>": (9, 90), "/scratch/f": (1000, 50_000)})
    (one,) = read_log(log).accesses
    assert (one.bytes, one.request_bytes, one.shared) == (50_000, 4096, False)


def test_requests_in_no_order_are_random(tmp_path: Path):
    offsets = list(range(64))
    random.Random(1).shuffle(offsets)
    made = [Made(rank, "/scratch/f", False, at * MIB, MIB) for rank in range(2) for at in offsets]
    (one,) = read_log(write_log(tmp_path / "log", made, processes=2)).accesses
    assert (one.shared, one.spatiality, one.operation) == (True, "random", "read")


def test_a_file_of_some_ranks_is_shared_and_one_of_each_is_not(tmp_path: Path):
    made = [Made(rank, "/scratch/some", True, (rank * 9 + i) * MIB, MIB) for rank in range(2) for i in range(9)]
    made += [Made(3, "/scratch/alone", True, i * MIB, MIB) for i in range(9)]
    found = {one.shared: one.bytes for one in read_log(write_log(tmp_path / "log", made, processes=4)).accesses}
    assert found == {True: 18 * MIB, False: 9 * MIB}


def test_unlike_requests_have_their_own_sizes(tmp_path: Path):
    made, at = [], 0
    for size in [512] * 100 + [3 << 20] * 10:
        made.append(Made(0, "/scratch/f", True, at, size))
        at += size
    found = {one.request_bytes: one.bytes for one in read_log(write_log(tmp_path / "log", made, processes=1)).accesses}
    assert sorted(found) == pytest.approx([512, 3 << 20], rel=0.2)
    assert sum(found.values()) == pytest.approx(at)
    assert found[512] == pytest.approx(512 * 100)


def test_logs_of_one_program_are_joined_and_the_last_size_counts(run, tmp_path: Path):
    for at, processes in enumerate((8, 4, 4)):
        made = accesses("own", writes=True, request=MIB, processes=processes)
        write_log(tmp_path / f"log{at}", made, processes=processes, began_s=1_700_000_000 + at)
    code, told, _ = run(tmp_path / "log2", tmp_path / "log0", tmp_path / "log1", "--processes-per-node", 2)
    assert code == 0 and told["app"]["logs"] == 2 and told["app"]["bytes"] == 2 * 4 * 32 * MIB


def test_programs_are_kept_apart_and_may_be_named(run, tmp_path: Path):
    for name in ("a", "b"):
        made = accesses("own", writes=True, request=MIB)
        write_log(tmp_path / name, made, processes=4, host_names=["n1", "n2"], program=f"/bin/{name} 1 2")
    assert set(run(tmp_path / "a", tmp_path / "b")[1]) == {"a", "b"}
    assert run(tmp_path / "a", tmp_path / "b", "--name", "both")[1]["both"]["logs"] == 2
    assert set(store.read(tmp_path / "curves.toml")) == {"a", "b", "both"}


def test_nothing_near_is_a_low_confidence_and_no_curve(run, tmp_path: Path):
    made = accesses("own", writes=True, request=100, processes=64, count=9)
    code, told, err = run(write_log(tmp_path / "log", made, processes=64), "--processes-per-node", 1)
    assert (code, err) == (0, "") and told["app"]["confidence"] < 0.1 and told["app"]["stored"] is False
    assert not (tmp_path / "curves.toml").exists()


def test_what_was_measured_stays_and_the_shape_is_new(run, tmp_path: Path):
    path = tmp_path / "curves.toml"
    path.write_text(
        f'{store.FIRST_LINE}\n[[job]]\nname = "app"\nnodes = 2\nprocesses = 4\nbandwidth_mb_s = {{ 1 = 10 }}\n'
        'found = "seen"\nruns = 3\nmeasured_mb_s = { 1 = 10 }\nmeasured_weight = { 1 = 3 }\n'
    )
    log = write_log(tmp_path / "log", accesses("own", writes=True, request=MIB), processes=4, host_names=["a", "b"])
    assert run(log)[0] == 0
    curve = store.read(path)["app"]
    assert curve.found == ("seen", "darshan") and curve.runs == 3 and curve.measured[1].rate == 10e6
    assert curve.bandwidth == pytest.approx({0: 20e6, 1: 10e6, 2: 16e6, 4: 40e6})
    large = write_log(tmp_path / "large", accesses("own", writes=True, request=MIB, processes=8), processes=8)
    code, _, err = run(large, "--processes-per-node", 4)
    assert code == 1 and "app: the store has measurements of 4 processes, and the logs are of 8" in err
    assert store.read(path)["app"] == curve


# ---- what is wrong ---------------------------------------------------------------------------------------------------


def test_a_log_without_nodes_or_name_says_what_to_give(run, tmp_path: Path):
    made = list(accesses("own", writes=True, request=MIB))
    log = write_log(tmp_path / "log", made, processes=4)
    assert run(log)[::2] == (1, f"hocket: {log} does not say how many nodes there were; give --processes-per-node N\n")
    log = write_log(tmp_path / "nameless", made, processes=4, program="", host_names=["a"])
    assert run(log)[::2] == (1, f"hocket: {log} does not say which program it is of; give --name NAME\n")
    assert run(log, "--name", "x")[0] == 0
    assert "--processes-per-node 0: give 1 to" in run(log, "--processes-per-node", 0)[2]
    assert "--name '\\x1b': give a text" in run(log, "--name", "\x1b")[2]


def test_hostile_logs_are_one_line_each_and_good_ones_count(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(darshan_log, "LIMIT_S", 20)  # some damage may make the library loop
    good = write_log(tmp_path / "good", accesses("own", writes=True, request=MIB), processes=4, host_names=["a", "b"])
    content = good.read_bytes()
    generator = random.Random(11)
    bad = {"empty": b"", "text": b"no log\n" * 100, "head": content[:360], "half": content[: len(content) // 2]}
    for at in range(8):
        damaged = bytearray(content)
        for _ in range(20):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        bad[f"damaged{at}"] = bytes(damaged)
    for name, one in bad.items():
        (tmp_path / name).write_bytes(one)
    os.mkfifo(tmp_path / "fifo")
    names = [*bad, "fifo", "absent"]
    _, told, err = run(good, *(tmp_path / name for name in names), "--processes-per-node", 2)
    assert told["app"]["stored"] and told["app"]["logs"] >= 1
    lines = err.splitlines()
    assert all(line.startswith(f"hocket: {tmp_path}/") for line in lines), err
    for name in ("empty", "text", "head", "half", "fifo", "absent"):
        assert sum(line.startswith(f"hocket: {tmp_path / name}") for line in lines) == 1, err


def test_a_name_that_is_no_utf_8_does_not_matter(tmp_path: Path):
    log = write_log(tmp_path / "log", [Made(0, "/scratch/\udcff", True, 0, MIB)], processes=1)
    assert read_log(log).bytes == MIB


def test_without_patterns_it_says_how_to_get_some(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["curves", "from-darshan", "--curves", str(tmp_path / "c.toml"), str(tmp_path / "log")]
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"hocket: {tmp_path / 'patterns'}: there are no measured patterns") and said.count("\n") == 1
    assert "'hocket explore PATTERNS.toml'" in said


def test_without_pydarshan_it_says_how_to_get_it(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    code, _, err = run(tmp_path / "log")
    assert (code, err) == (2, f"hocket: {darshan_log.MISSING}\n")
