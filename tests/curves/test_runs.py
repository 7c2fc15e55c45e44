"""What runs under `hocket forward` and `hocket explore` add to the store of curves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hocket import mpi
from hocket.arbitration.jobs import read_jobs
from hocket.curves import seen, store
from hocket.curves.seen import Application, refine
from hocket.exploration.results import jobs_text
from hocket.forward_page import Seen

pytestmark = pytest.mark.timeout(240)

MIB = 1 << 20
APPLICATION = Application("app", 2, 4)
PATTERN = """
[[pattern]]
name = "own"
nodes = 1
processes_per_node = 1
request = "64k"
"""


def wrote(bytes_: int = 8 * MIB, busy_s: float = 0.5, calls: int = 128) -> Seen:
    return Seen(calls=calls, read_bytes=0, written_bytes=bytes_, busy_s=busy_s)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "curves.toml"


def keep_pattern(path: Path, rates: dict[int, float]) -> None:
    """Keep a measured pattern beside the store."""
    directory = store.patterns_dir(path)
    directory.mkdir(parents=True)
    (directory / "patterns.toml").write_text(PATTERN)
    (directory / "curves.toml").write_text(jobs_text([("own", 1, 1, rates)]))


def test_the_first_run_of_an_unknown_application_is_a_point(path: Path):
    assert refine(path, APPLICATION, {2: wrote(busy_s=1.0)}, 4.0) == ""
    assert store.read(path)["app"].rates == {2: pytest.approx(2 * MIB, rel=1e-5)}
    curve = store.read(path)["app"]
    assert (curve.nodes, curve.processes, curve.found, curve.runs) == (2, 4, ("seen",), 1)


def test_with_a_pattern_that_is_near_other_numbers_follow(path: Path):
    """1 s of the 4 s is I/O, through a server that has 100 MB/s; with 200 MB/s it would be half a second."""
    keep_pattern(path, {0: 400, 1: 100, 2: 200})
    assert refine(path, Application("app", 1, 1), {1: wrote(busy_s=1.0)}, 4.0) == ""
    curve = store.read(path)["app"]
    assert curve.bandwidth == pytest.approx({0: 8 * MIB / 3.25, 1: 2 * MIB, 2: 8 * MIB / 3.5}, rel=1e-4)
    assert curve.pattern == "own" and curve.confidence == 0.5  # nobody knows the layout
    far = Application("far", 64, 4096)
    assert refine(path, far, {1: wrote()}, 4.0) == "" and set(store.read(path)["far"].bandwidth) == {1}


def test_runs_that_show_nothing_change_nothing(path: Path, tmp_path: Path):
    for moved in ({}, {1: wrote(1000)}, {1: wrote(busy_s=0.0)}):
        assert refine(path, APPLICATION, moved, 4.0) == ""
    assert refine(path, Application("a\x1b", 1, 1), {1: wrote()}, 4.0) == ""
    assert not path.exists()
    (tmp_path / "jobs.toml").write_text('[[job]]\nname = "app"\nnodes = 1\n')
    assert refine(tmp_path / "jobs.toml", APPLICATION, {1: wrote()}, 4.0) == ""
    assert (tmp_path / "jobs.toml").read_text() == '[[job]]\nname = "app"\nnodes = 1\n'


def test_runs_of_another_size_begin_anew_unless_more_is_known(path: Path):
    refine(path, APPLICATION, {1: wrote()}, 4.0)
    assert refine(path, Application("app", 4, 16), {2: wrote()}, 2.0) == ""
    curve = store.read(path)["app"]
    assert (curve.nodes, curve.processes, set(curve.bandwidth), curve.runs) == (4, 16, {2}, 1)
    path.write_text(path.read_text().replace('"seen"', '"explored"'))
    before = path.read_text()
    why = refine(path, APPLICATION, {1: wrote()}, 4.0)
    assert why == (
        "the curve of 'app' is of 16 processes, so this run of 4 does not refine it; "
        "give runs of another size another --name"
    )
    assert path.read_text() == before


def test_a_store_that_is_no_file_is_left_alone(tmp_path: Path):
    os.mkfifo(tmp_path / "fifo")
    for one in (tmp_path / "fifo", tmp_path, Path("/dev/null")):
        assert refine(one, APPLICATION, {1: wrote()}, 4.0) == ""


def test_damaged_patterns_are_as_none(path: Path):
    keep_pattern(path, {0: 400, 1: 100})
    (store.patterns_dir(path) / "patterns.toml").write_text("[[pattern")
    assert refine(path, Application("app", 1, 1), {1: wrote()}, 4.0) == ""
    assert set(store.read(path)["app"].bandwidth) == {1}


@pytest.mark.parametrize(
    ("command", "name", "processes"),
    [
        ("mpiexec -n 4 cat x", "cat", 4),
        ("mpirun --np=7 nice -n 3 cat", "cat", 7),
        ("mpiexec -np 2 cat : -n 3 dd", "cat", 5),
        ("mpiexec cat", "cat", None),
        ("mpiexec -n x cat", "cat", None),
        ("cat -n 4", "cat", None),
        ("env A=1 dd if=x", "dd", None),
        ("python3 -u run.py -n 4", "run", None),
        ("hocket run -- mpiexec -n 3 cat", "cat", 3),
        ("hocket run --io hocket mpiexec -n 2 cat -- x", "cat", 2),
        ("hocket run --", "hocket", None),
        ("hocket ls", "hocket", None),
    ],
)
def test_an_application_is_called_as_its_program_and_as_large_as_its_launcher_says(command, name, processes):
    assert (mpi.name_of(command.split()), mpi.processes_of(command.split())) == (name, processes)


# ---- real runs -------------------------------------------------------------------------------------------------------


@pytest.fixture
def hocket(prefix: Path, hocket_dir: Path) -> Callable[..., subprocess.CompletedProcess]:
    def run(*words: object, code: int = 0) -> subprocess.CompletedProcess:
        environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
        done = subprocess.run(
            [sys.executable, "-m", "hocket.cli", *map(str, words)],
            capture_output=True,
            text=True,
            timeout=200,
            env=environment | {"HOCKET_PREFIX": str(prefix)},
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done

    return run


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    directory = tmp_path / "mount"
    directory.mkdir()
    return directory


def dd(mount: Path, count: int = 64) -> list[str]:
    return ["dd", "if=/dev/zero", f"of={mount}/o", "bs=64k", f"count={count}", "status=none"]


def test_a_run_is_counted_by_the_number_of_its_servers(hocket, mount: Path, path: Path, tmp_path: Path):
    counts = tmp_path / "counts"
    done = hocket("forward", "--mount", mount, "--servers", 2, "--counts", counts, "--curves", path, "--", *dd(mount))
    assert done.stderr == ""
    told = json.loads(counts.read_text())
    (number,) = told["by_servers"]
    one = told["by_servers"][number]
    assert (number, one["calls"], one["read_bytes"], one["written_bytes"]) == ("2", 64, 0, 4 * MIB)
    assert 0 < one["busy_s"] < told["seconds"] < 100
    (job,) = read_jobs(path).jobs
    assert job.name == "dd" and job.bandwidth == {2: pytest.approx(4 * MIB / told["seconds"], rel=0.01)}


def test_the_time_of_processes_at_once_counts_once(hocket, mount: Path, tmp_path: Path):
    """A server of 10 MB/s needs 1.6 s for 16 MiB, in which four processes wait: 6.4 s in all. A fifth one is killed."""
    counts = tmp_path / "counts"
    shell = f"cd {mount}; for i in 1 2 3 4; do dd if=/dev/zero of=o$i bs=64k count=64 status=none & done; wait; "
    shell += "timeout -s KILL 0.3 dd if=/dev/zero of=o5 bs=64k count=999 status=none; true"
    hocket("daemon", "start")
    try:
        hocket("server", "start", "-n", 1, "--dir", mount, "--forward-limit", "10m")
        how = ("--mount", mount, "--counts", counts, "--curves", tmp_path / "c")
        hocket("forward", *how, "--", "sh", "-c", shell)
    finally:
        hocket("server", "stop", "--now")
        hocket("daemon", "stop")
    told = json.loads(counts.read_text())
    one = told["by_servers"]["1"]
    assert one["calls"] >= 256 and one["written_bytes"] >= 16 * MIB
    assert 1.5 < one["busy_s"] <= told["seconds"]


def test_runs_that_fail_or_move_nothing_are_not_kept(hocket, mount: Path, path: Path):
    how = ("forward", "--mount", mount, "--curves", path, "--")
    hocket(*how, "sh", "-c", " ".join(dd(mount)) + "; exit 3", code=3)
    hocket(*how, "true")
    hocket(*how, *dd(mount, count=1))
    assert not path.exists()


def test_a_store_that_is_damaged_meanwhile_is_one_line_and_the_run_counts(hocket, mount: Path, tmp_path: Path):
    path = tmp_path / "curves.toml"
    content = store.FIRST_LINE + "\n[[job\n"
    damages = f"{' '.join(dd(mount))}; printf '%s\\n' '{store.FIRST_LINE}' '[[job' > {path}"
    done = hocket("forward", "--mount", mount, "--curves", path, "--name", "x", "--", "sh", "-c", damages)
    assert done.stderr.startswith(f"hocket: what was seen of this run is not kept: {path}: ")
    assert done.stderr.count("\n") == 1 and path.read_text() == content
    assert (mount / "o").stat().st_size == 4 * MIB
    again = hocket("forward", "--mount", mount, "--curves", path, "--", *dd(mount), code=2)
    assert again.stderr.startswith(f"hocket: {path}: ") and again.stderr.count("\n") == 1


def test_an_explored_program_is_kept_and_a_run_refines_it(hocket, mount: Path, path: Path, tmp_path: Path):
    explore = ("explore", "--dir", mount, "--servers", "0,1", "--repeat", 2, "--output", tmp_path / "out")
    done = hocket(*explore, "--curves", path, "--", *dd(mount))
    assert f"the curve of 'dd' is kept in {path}" in done.stderr
    curve = store.read(path)["dd"]
    assert (curve.found, curve.runs, curve.processes) == (("explored",), 4, 1)
    assert {number: one.weight for number, one in curve.measured.items()} == {0: 2, 1: 2}
    hocket("forward", "--mount", mount, "--servers", 1, "--curves", path, "--", *dd(mount))
    refined = store.read(path)["dd"]
    assert refined.found == ("explored", "seen") and refined.runs == 5
    assert refined.measured[1].weight == 3 and refined.measured[0] == curve.measured[0]


def test_a_store_that_cannot_take_the_curve_is_told_before_measuring(hocket, mount: Path, tmp_path: Path):
    jobs = tmp_path / "jobs.toml"
    jobs.write_text('[[job]]\nname = "a"\nnodes = 1\n')
    words = ("explore", "--dir", mount, "--output", tmp_path / "out", "--curves", jobs, "--", *dd(mount))
    assert "jobs.toml was not written by hocket, and is not changed" in hocket(*words, code=2).stderr
    assert not (mount / "o").exists()
    assert "--name '': give a text" in hocket(*words[:5], "--name", "", *words[5:], code=2).stderr


def test_explored_patterns_are_kept_beside_the_store_but_not_with_a_limit(
    hocket, mount: Path, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    toml = tmp_path / "p.toml"
    toml.write_text(PATTERN + 'layout = ["own", "strided"]\ntotal = "1m"\n')
    words = ("explore", toml, "--dir", mount, "--servers", "0", "--repeat", 1)
    hocket(*words, "--output", tmp_path / "a", "--limit", "50m")
    assert not store.patterns_dir(store.default_path()).exists()
    hocket(*words, "--output", tmp_path / "b", "--curves", path)
    found = seen.patterns.read(store.patterns_dir(path))
    assert [(one.name, one.shared) for one in found] == [("own-own", False), ("own-strided", True)]


@pytest.fixture
def arbitrating(hocket, mount: Path) -> Iterator[None]:
    """A daemon that gives out four servers by mckp, on a machine with a server for two nodes."""
    hocket("daemon", "start", "--policy", "mckp", "--system-nodes", 8, "--system-servers", 4)
    try:
        hocket("server", "start", "-n", 4, "--dir", mount)
        yield
    finally:
        hocket("server", "stop", "--now")
        hocket("daemon", "stop")


def mckp_of(hocket, path: Path) -> int:
    """Return what `hocket arbitrate` gives the only job of a file."""
    done = hocket("arbitrate", path, "--servers", 4, "--policy", "mckp", "--json")
    return json.loads(done.stdout)["policies"][0]["jobs"][0]["servers"]


def test_the_second_run_of_an_unknown_application_gets_what_its_curve_says(
    hocket, arbitrating, mount: Path, path: Path, tmp_path: Path
):
    """The pattern that is near says that two servers are better than one, and better than none."""
    keep_pattern(path, {0: 20, 1: 100, 2: 5000})
    counts, unknown = tmp_path / "counts", tmp_path / "unknown.toml"
    unknown.write_text('[system]\nnodes = 8\nservers = 4\n[[job]]\nname = "new"\nnodes = 1\n')
    forward = ("forward", "--mount", mount, "--counts", counts, "--curves", path, "--name", "new", "--", *dd(mount))
    assert mckp_of(hocket, unknown) == 1
    hocket(*forward)
    assert set(json.loads(counts.read_text())["by_servers"]) == {"1"}
    assert mckp_of(hocket, path) == 2
    hocket(*forward)
    assert set(json.loads(counts.read_text())["by_servers"]) == {"2"}
    curve = store.read(path)["new"]
    assert curve.runs == 2 and set(curve.measured) == {1, 2}


def test_direct_calls_of_an_application_without_servers_are_counted(
    hocket, arbitrating, mount: Path, path: Path, tmp_path: Path
):
    counts = tmp_path / "counts"
    path.parent.mkdir()
    job = '[[job]]\nname = "dd"\nnodes = 1\nbandwidth_mb_s = { 0 = 90, 1 = 10 }\nfound = "explored"\n'
    path.write_text(f"{store.FIRST_LINE}\n{job}")
    hocket("forward", "--mount", mount, "--counts", counts, "--curves", path, "--", *dd(mount))
    told = json.loads(counts.read_text())
    assert told["by_servers"]["0"]["written_bytes"] == 4 * MIB and told["unserved"] >= 64
    curve = store.read(path)["dd"]
    assert curve.found == ("explored", "seen") and curve.measured[0].weight == 2 and curve.measured[1].weight == 1


def test_another_size_and_a_wrong_store_get_the_default_number(
    hocket, arbitrating, mount: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    counts, jobs = tmp_path / "counts", tmp_path / "jobs.toml"
    jobs.write_text('[[job]]\nname = "dd"\nnodes = 1\nbandwidth_mb_s = { 1 = 10, 4 = 90 }\n')
    forward = ("forward", "--mount", mount, "--counts", counts)

    def servers(*words: object) -> set[str]:
        hocket(*forward, *words, "--", *dd(mount))
        return set(json.loads(counts.read_text())["by_servers"])

    assert servers("--curves", jobs) == {"4"}
    assert servers("--curves", jobs, "--processes", 2, "--nodes", 1) == {"1"}
    assert servers("--curves", jobs, "--name", "other", "--nodes", 3) == {"2"}
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "data" / "hocket").mkdir(parents=True)
    (tmp_path / "data" / "hocket" / "curves.toml").write_text("[[job")
    done = hocket(*forward, "--", *dd(mount))
    assert "curves.toml: " in done.stderr and "'dd' gets the default number of servers" in done.stderr
    assert set(json.loads(counts.read_text())["by_servers"]) == {"1"}


def test_the_name_and_the_processes_are_those_behind_the_launcher(hocket, mount: Path, path: Path, prefix: Path):
    """One of two ranks moves data, and the application has two processes."""
    hocket("forward", "--mount", mount, "--curves", path, "--", "env", "A=1", *dd(mount))
    s_ior = [prefix / "lib" / "hocket" / "apps" / "s_ior-mpich", "-o", mount / "f", "-b", "1m", "-p", "2"]
    hocket("forward", "--mount", mount, "--curves", path, "--", "mpiexec", "-n", "2", *s_ior)
    found = store.read(path)
    assert {name: one.processes for name, one in found.items()} == {"dd": 1, "s_ior-mpich": 2}
