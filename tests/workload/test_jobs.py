"""Reading, drawing, and writing files of `hocket workload`."""

from __future__ import annotations

import json
import math
import random
import tomllib
from pathlib import Path

import pytest
from checkout import REPO
from hocket.arbitration.jobs import read_jobs
from hocket.errors import UsageError
from hocket.exploration.measure import Program, command_of
from hocket.exploration.patterns import Pattern
from hocket.workload.generate import drawn
from hocket.workload.jobs import Load, SizeLimits, read_workload, text_of, with_curves
from hocket.workload.subjects import Emulated

PAPER = REPO / "scenarios" / "workloads" / "gekkofwd-queue.toml"
DESCRIBED = PAPER.with_name("gekkofwd-queue-emulated.toml")
FILE = """
servers = 4
limit = "10m"
time_limit_s = 20
queue = ["a", "b", "a"]
[system]
nodes = 8
servers = 4
[[job]]
name = "a"
nodes = 2
processes = 4
bandwidth_mb_s = { 1 = 10, 2 = 20.5 }
pattern = { request = "64k", total = "1m" }
[[job]]
name = "b"
nodes = 4
time_limit_s = 5
command = ["dd", "of={dir}/x", "count={processes}"]
bytes = "2m"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "jobs.toml"
    path.write_text(text)
    return path


def test_the_papers_queue():
    """The order of section 5.3; nodes and operations of Table 3."""
    read = read_workload(PAPER)
    order = "HACC IOR-MPI SIM IOR-MPI IOR-MPI POSIX-S POSIX-L BT-C MAD MAD S3D HACC HACC BT-D"
    assert " ".join(one.kind.name for one in read.queue) == order
    assert (read.servers, read.system_nodes, read.system_servers, read.direct) == (12, 96, 12, False)
    nodes = {"BT-C": 32, "BT-D": 64, "HACC": 8, "IOR-MPI": 16, "POSIX-S": 16, "POSIX-L": 64, "MAD": 32, "SIM": 16}
    assert {one.name: one.job.nodes for one in read.jobs} == nodes | {"S3D": 64}
    patterns = {one.name: one.subject for one in read.jobs if isinstance(one.subject, Pattern)}
    assert patterns.keys() == {"HACC", "SIM", "MAD", "S3D"}
    for name, subject in patterns.items():
        written_ = sum(phase.operation == "write" for phase in subject.phases)
        assert 0 < written_ <= len(subject.phases)
        assert (written_ == len(subject.phases)) == (name != "MAD")
    for one in read.jobs:
        # A server that a job can get has a rank to use it.
        assert max(one.job.bandwidth) <= one.job.processes


def test_the_papers_queue_runs_the_installed_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """BT-IO and IOR are MPI programs. Their bytes are what their arguments say, written and read."""
    monkeypatch.setenv("HOCKET_PREFIX", str(tmp_path))
    launcher = tmp_path / "bin" / "mpiexec"
    launcher.parent.mkdir()
    launcher.touch()
    programs = {}
    for one in read_workload(PAPER).jobs:
        if isinstance(one.subject, Program):
            words = command_of(one.subject, Path("/x"))
            assert words[0] == str(launcher) and not any("{" in word for word in words)
            programs[one.name] = words[words.index("-n") + 2]
            assert words[words.index("--file") + 1] == "/x/file"
            assert one.bytes == 2 * _bytes_of(words), one.name
    bt, ior = (str(tmp_path / "lib" / "hocket" / "apps" / f"{name}-mpich") for name in ("bt_io", "s_ior"))
    assert programs == {"BT-C": bt, "BT-D": bt, "IOR-MPI": ior, "POSIX-S": ior, "POSIX-L": ior}


def test_the_papers_queue_with_described_kernels_differs_in_these_alone():
    replayed, described = read_workload(PAPER), read_workload(DESCRIBED)
    assert [one.name for one in described.queue] == [one.name for one in replayed.queue]
    assert [one.job.nodes for one in described.jobs] == [one.job.nodes for one in replayed.jobs]
    kernels = {one.name: one for one in described.jobs if isinstance(one.subject, Emulated)}
    assert kernels.keys() == {one.name for one in replayed.jobs if isinstance(one.subject, Pattern)}
    assert [one for one in described.jobs if one.name not in kernels] == [
        one for one in replayed.jobs if one.name not in kernels
    ]
    by_name = {one.name: one for one in replayed.jobs}
    for name in ("MAD", "SIM", "S3D"):
        assert kernels[name].bytes == by_name[name].bytes, "the same accesses"
    assert kernels["HACC"].bytes == 8 * (24_000_000 + 100_000 * 38)
    for one in described.jobs:
        assert max(one.job.bandwidth) <= one.job.processes


def _bytes_of(words: list[str]) -> int:
    """Return what bt_io or s_ior writes with these words."""

    def number(option: str, default: str) -> int:
        text = words[words.index(option) + 1] if option in words else default
        return int(text.rstrip("km")) << {"k": 10, "m": 20}.get(text[-1], 0)

    of_a_rank = number("--block", "1m") * number("--segments", "1")
    of_a_phase = number("--grid", "64") ** 3 * 40 if "--grid" in words else of_a_rank * number("-n", "1")
    return of_a_phase * number("--phases", "10")


def test_a_file_is_read(tmp_path: Path):
    read = read_workload(written(tmp_path, FILE))
    assert [(one.name, one.kind.name, one.nodes) for one in read.queue] == [
        ("a", "a", 2),
        ("b", "b", 4),
        ("a.2", "a", 2),
    ]
    a, b = read.jobs
    assert (a.bytes, a.subject.group, a.time_limit_s, a.job.bandwidth) == (1 << 20, 2, 20, {1: 10**7, 2: 20_500_000})
    assert (b.bytes, b.time_limit_s, read.limit, read.direct) == (2 << 20, 5, 10 << 20, None)
    assert isinstance(b.subject, Program)
    assert command_of(b.subject, Path("/x")) == ["dd", "of=/x/x", "count=4"]


def test_without_a_queue_each_job_appears_as_often_as_it_says(tmp_path: Path):
    text = FILE.replace('queue = ["a", "b", "a"]\n', "").replace('"b"', '"b"\narrival_s = 1.5\nrepeat = 2')
    read = read_workload(written(tmp_path, text))
    assert [(one.name, one.arrival_s) for one in read.queue] == [("a", 0), ("b", 1.5), ("b.2", 1.5)]


def test_arbitrate_reads_the_same_file():
    assert [one.name for one in read_jobs(PAPER).jobs] == [one.name for one in read_workload(PAPER).jobs]


WRONG = [
    (('queue = ["a", "b", "a"]', "queue = []"), "queue = [] must be a list of names of jobs"),
    (('queue = ["a", "b", "a"]', 'queue = ["c"]'), "queue: no [[job]] has the name 'c'; use a, b"),
    (('queue = ["a", "b", "a"]', "queues = 3"), "key 'queues' = 3 is unknown; use servers, system, job, limit"),
    (("nodes = 4\n", "nodes = 4\nrepeat = 2\n"), "job 2 'b': repeat = 2 means nothing beside 'queue'"),
    (("nodes = 4\n", "nodes = 4\narrival_s = 2\n"), "job 2 'b': arrival_s = 2 means nothing beside 'queue'"),
    (("nodes = 4\n", "nodes = 9\n"), "job 2 'b': nodes = 9 must be at most 8, the nodes of [system]"),
    (("nodes = 4\n", "nodes = 4\npatern = 1\n"), "job 2: key 'patern' = 1 is unknown; use name, nodes"),
    (("servers = 4\nlimit", "servers = 0\nlimit"), "servers = 0 must be a whole number from 1 to 64"),
    (("servers = 4\nlimit", "limit"), "servers = None must be a whole number from 1 to 64"),
    (('"10m"', '"10q"'), "limit = '10q' must be bytes"),
    (("time_limit_s = 20", "time_limit_s = -1"), "time_limit_s = -1 must be from 0 to 86400"),
    (("time_limit_s = 5", "time_limit_s = nan"), "job 2 'b': time_limit_s = nan must be from 0 to 86400"),
    (("limit =", "direct = 1\nlimit ="), "direct = 1 must be true or false"),
    (("command =", "commands ="), "job 2: key 'commands' = "),
    (
        ('command = ["dd", "of={dir}/x", "count={processes}"]', ""),
        "job 2 'b': it has neither command nor pattern nor emulate",
    ),
    (('command = ["dd"', 'pattern = {}\ncommand = ["dd"'), "job 2 'b': it has both command and pattern; give one"),
    (('["dd", "of={dir}/x", "count={processes}"]', '"dd"'), "job 2 'b': command = 'dd' must be a list of texts"),
    (('["dd", "of={dir}/x", "count={processes}"]', "[]"), "job 2 'b': command = [] must be a list of texts"),
    (('"2m"', '"x"'), "job 2 'b': bytes = 'x' must be bytes"),
    (("pattern =", "bytes = 3\npattern ="), "job 1 'a': bytes = 3 is for jobs with a command"),
    (('{ request = "64k", total = "1m" }', "[]"), "job 1 'a': pattern = [] must be a table, or a list of 1 to 64"),
    (('{ request = "64k", total = "1m" }', "3"), "job 1 'a': pattern = 3 must be a table"),
    (('"64k"', '"64x"'), "job 1 'a': pattern: request = '64x' must be bytes"),
    (('request = "64k"', "seconds = 1"), "job 1 'a': pattern: key 'seconds' = 1 is unknown; use layout"),
    (('request = "64k"', "active_processes = 5"), "pattern: active_processes = 5 must be a whole number from 1 to 4"),
    (('request = "64k"', "rounds = 0"), "job 1 'a': pattern: rounds = 0 must be a whole number"),
    (('request = "64k"', "pause_s = -1"), "job 1 'a': pattern: pause_s = -1 must be from 0 to 86400"),
    (('request = "64k"', 'operation = "read", new_file = true'), "pattern: new_file = True must be false"),
    (('{ request = "64k", total = "1m" }', '[{}, { total = "0" }]'), "job 1 'a': pattern 2: total = '0' must be bytes"),
    (("processes = 4", "processes = 5000"), "job 1 'a': processes = 5000 must be at most 4096"),
    (('name = "b"', 'name = "a"'), "job 2: name = 'a' is that of an earlier job"),
    (('name = "b"', 'name = "a.2"'), "no [[job]] has the name 'b'"),
    (("[[job]]", "[job]"), ".toml: "),
    (("servers = 4\nlimit", "servers = \nlimit"), "line 2"),
]


CORES = """
servers = 2
[system]
cores = 4
[coordinator]
policy = "speedup"
[[load]]
delay_s = 0.01
after = 3
[[job]]
name = "a"
processes = 2
malleable = true
processes_min = 1
processes_max = 3
emulate = "cg.toml"
[[job]]
name = "b"
processes = 4
command = ["mpiexec", "-n", "{processes}", "x"]
"""


DESCRIPTION = """
name = "cg"
[[group]]
processes = 2
iterations = 10
[[phase]]
[[phase.stage]]
kind = "sleep"
time_s = 1
"""


@pytest.fixture
def description(tmp_path: Path) -> Path:
    path = tmp_path / "cg.toml"
    path.write_text(DESCRIPTION)
    return path


def test_a_file_that_shares_cores_is_read(tmp_path: Path, description: Path):
    read = read_workload(written(tmp_path, CORES))
    a, b = read.jobs
    assert (read.cores, read.servers, a.limits, b.limits) == (4, 2, SizeLimits(1, 3), None)
    assert isinstance(a.subject, Emulated) and a.subject.description == description
    assert (read.coordinator, read.loads) == ({"policy": "speedup"}, (Load(0.01, 3),))
    before = read.about()
    description.write_text(DESCRIPTION.replace("time_s = 1", "time_s = 2"))
    assert read.about() != before, "runs of another description are not resumed"
    again = read_workload(written(tmp_path, text_of(read)))
    assert again.jobs == read.jobs and again.about() == read.about()
    assert [one.name for one in read_jobs(tmp_path / "jobs.toml").jobs] == ["a", "b"], "explore reads it, too"


def test_a_mistake_in_a_description_is_named_before_anything_runs(tmp_path: Path, description: Path):
    description.write_text(DESCRIPTION.replace('"sleep"', '"slep"'))
    with pytest.raises(UsageError, match=rf"{description}, line 8: .*'slep'"):
        read_workload(written(tmp_path, CORES))
    description.write_text(DESCRIPTION.replace("iterations = 10", "iterations = 10\nfactor = 0.5"))
    with pytest.raises(UsageError, match=r"factor = 0\.5 is that of 2 processes; it says nothing of -n 1"):
        read_workload(written(tmp_path, CORES))


def test_sizes_are_at_least_those_of_the_rigid_run_and_at_most_the_cores(tmp_path: Path, description: Path):
    text = CORES.replace("processes_min = 1\nprocesses_max = 3\n", "")
    assert read_workload(written(tmp_path, text)).jobs[0].limits == SizeLimits(2, 4)


WRONG_CORES = [
    (("processes = 4", "processes = 5"), "job 2 'b': processes = 5 must be at most 4, the cores of [system]"),
    (("processes_min = 1", "processes_min = 3"), "job 1 'a': processes_min = 3 must be a whole number from 1 to 2"),
    (("processes_max = 3", "processes_max = 1"), "job 1 'a': processes_max = 1 must be a whole number from 2 to 4"),
    (("processes_max = 3", "processes_max = 5"), "job 1 'a': processes_max = 5 must be a whole number from 2 to 4"),
    (("malleable = true\n", ""), "job 1 'a': processes_min = 1 means nothing without malleable = true"),
    (("malleable = true", "malleable = 1"), "job 1 'a': malleable = 1 must be true or false"),
    (("cores = 4", ""), "job 1 'a': nodes = None must be a whole number"),
    (("cores = 4", "cores = 0"), "[system]: cores = 0 must be a whole number from 1"),
    (('"cg.toml"', '"cg.toml"\nbytes = 3'), "job 1 'a': bytes = 3 is for jobs with a command; a description says what"),
    (('"cg.toml"', '"none.toml"'), "job 1 'a': emulate = 'none.toml': there is no file"),
    (('emulate = "cg.toml"', 'emulate = "cg.toml"\ncommand = ["x"]'), "it has both command and emulate; give one"),
    (('emulate = "cg.toml"', 'command = ["mpiexec", "x"]'), "malleable = True: command has no -n {processes}; write"),
    (('emulate = "cg.toml"', "pattern = {}"), "malleable = True: a pattern is not"),
    (('name = "a"', 'name = "a b"'), "name = 'a b' has a space; hocketd's limits of cores need a name without one"),
    (("delay_s = 0.01", "delay_s = -1"), "load 1: delay_s = -1 must be from 0"),
    (("delay_s = 0.01", ""), "load 1: delay_s is missing"),
    (("after = 3", "behind = 3"), "load 1: key 'behind' = 3 is unknown; use delay_s, after"),
    (("servers = 2", ""), "1 [[load]] are more than servers = 0; each is of one server"),
]


@pytest.mark.parametrize(("change", "said"), WRONG_CORES)
def test_a_mistake_about_cores_is_one_line(tmp_path: Path, description: Path, change: tuple[str, str], said: str):
    assert change[0] in CORES
    path = written(tmp_path, CORES.replace(*change, 1))
    with pytest.raises(UsageError) as refused:
        read_workload(path)
    assert said in str(refused.value) and str(path) in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(("change", "said"), WRONG)
def test_a_mistake_is_one_line_with_file_job_key_and_value(tmp_path: Path, change: tuple[str, str], said: str):
    assert change[0] in FILE
    path = written(tmp_path, FILE.replace(*change, 1))
    with pytest.raises(UsageError) as refused:
        read_workload(path)
    assert said in str(refused.value) and str(path) in str(refused.value) and "\n" not in str(refused.value)


def test_two_jobs_of_the_queue_may_not_have_one_name(tmp_path: Path):
    text = FILE.replace('name = "b"', 'name = "a.2"').replace('"a", "b", "a"', '"a", "a.2", "a"')
    with pytest.raises(UsageError, match=r"two jobs of the queue are called 'a\.2'"):
        read_workload(written(tmp_path, text))


def test_curves_replace_the_bandwidths(tmp_path: Path):
    read = read_workload(written(tmp_path, FILE))
    curves = tmp_path / "curves.toml"
    curves.write_text('[[job]]\nname = "b"\nnodes = 4\nbandwidth_mb_s = { 1 = 3, 4 = 7.5 }\n')
    merged = with_curves(read, curves)
    assert [one.job.bandwidth for one in merged.jobs] == [{1: 10**7, 2: 20_500_000}, {1: 3 * 10**6, 4: 7_500_000}]
    assert merged.queue[1].job.bandwidth == {1: 3 * 10**6, 4: 7_500_000}
    for text, said in (
        ('[[job]]\nname = "b"\nnodes = 3\n', "'b' was measured with 3 nodes; it has 4"),
        ('[[job]]\nname = "c"\nnodes = 3\n', "it has no job of"),
    ):
        curves.write_text(text)
        with pytest.raises(UsageError, match=said):
            with_curves(read, curves)


def test_a_random_queue_has_every_job_and_depends_on_its_seed_only():
    read = read_workload(PAPER)
    queues = [[one.kind.name for one in drawn(read, 30, seed).queue] for seed in (1, 1, 2)]
    assert queues[0] == queues[1] != queues[2]
    assert all(len(one) == 30 and set(one) == {kind.name for kind in read.jobs} for one in queues)
    few = [one.kind.name for one in drawn(read, 5, 3).queue]
    assert len(set(few)) == len(few) == 5


@pytest.mark.parametrize("path", [PAPER, FILE])
def test_a_written_file_reads_back(tmp_path: Path, path: Path | str):
    read = drawn(read_workload(path if isinstance(path, Path) else written(tmp_path, path)), 20, 7)
    again = read_workload(written(tmp_path, text_of(read)))
    assert again.jobs == read.jobs
    assert [one.name for one in again.queue] == [one.name for one in read.queue]
    assert (again.servers, again.limit, again.direct) == (read.servers, read.limit, read.direct)


def test_a_queue_without_arrivals_is_drawn_from_jobs_that_arrive(tmp_path: Path):
    text = FILE.replace('queue = ["a", "b", "a"]\n', "").replace('"b"', '"b"\narrival_s = 1.5\nrepeat = 2')
    read = drawn(read_workload(written(tmp_path, text)), 6, 1)
    assert {one.arrival_s for one in read.queue} == {0}
    assert [one.name for one in read_workload(written(tmp_path, text_of(read))).queue] == [o.name for o in read.queue]


ODD = [True, -1, 0, 3, 10**30, 1.5, math.nan, math.inf, "", "x", "\u001b", "1g", [], [1], ["a"], {}, {"a": 1}, [{}]]


@pytest.mark.parametrize("seed", range(300))
def test_whatever_a_file_has_it_is_read_and_written_or_refused_in_one_line(tmp_path: Path, seed: int):
    draw = random.Random(seed)
    content = tomllib.loads(FILE)
    for _ in range(draw.randint(1, 2)):
        table = draw.choice([content, content["system"], *content["job"], content["job"][0]["pattern"]])
        table[draw.choice([*table, "direct", "repeat", "arrival_s"])] = draw.choice(ODD)
        if not isinstance(content.get("system"), dict) or not isinstance(content.get("job"), list):
            break
        if not all(isinstance(one, dict) for one in content["job"]) or len(content["job"]) < 2:
            break
        if not isinstance(content["job"][0].get("pattern"), dict):
            break
    path = tmp_path / "jobs.toml"
    path.write_text(_toml(content))
    try:
        read = read_workload(path)
    except UsageError as error:
        assert str(path) in str(error) and "\n" not in str(error)
    else:
        again = read_workload(written(tmp_path, text_of(read)))
        assert [one.name for one in again.queue] == [one.name for one in read.queue]


def _toml(content: dict) -> str:
    """Return a file with this content, in inline tables."""

    def value(one) -> str:
        if isinstance(one, dict):
            return "{ " + ", ".join(f"{json.dumps(key)} = {value(part)}" for key, part in one.items()) + " }"
        if isinstance(one, list):
            return "[" + ", ".join(value(part) for part in one) + "]"
        return str(one) if isinstance(one, float) else json.dumps(one)

    return "".join(f"{key} = {value(one)}\n" for key, one in content.items())
