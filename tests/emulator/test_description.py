"""Reading a description: what it means, and the line of each mistake."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest
from checkout import REPO
from hocket.cli import main
from hocket.emulator import machine
from hocket.emulator.description import read_description
from hocket.emulator.keys import STAGE, STAGES
from hocket.emulator.plan import granularities, plan_of
from hocket.emulator.schema import schema
from hocket.errors import UsageError
from hocket.toml_lines import lines_of

FILE = """name = "cg"
seed = 7
[data]
bytes = "4m"
constant_percent = 75
[[group]]
processes = 1
iterations = 6
[[group]]
processes = 2
iterations = 4
factor = 0.6
spawn = "baseline"
[[phase]]
iterations = 4
[[phase.stage]]
kind = "compute"
time_s = 0.5
shares = { 2 = [0.25, 0.75] }
[[phase.stage]]
kind = "isend-irecv"
bytes = "64k"
every = 2
[[phase.stage]]
kind = "wait"
[[phase]]
[[phase.stage]]
kind = "compute"
time_s = 0.25
factors = { 1 = 1, 4 = 0.3 }
[[phase.stage]]
kind = "write"
file = "out"
bytes = 8_000
append = true
every = 3
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "app.toml"
    path.write_text(text)
    return path


def test_a_file_is_read_and_completed(tmp_path: Path):
    read = read_description(written(tmp_path, FILE))
    assert (read.name, read.seed, read.iterations) == ("cg", 7, 10)
    assert (read.data.bytes, read.data.constant_bytes) == (4 << 20, 3 << 20)
    assert [(one.processes, one.factor, one.spawn) for one in read.groups] == [(1, 1.0, None), (2, 0.6, "baseline")]
    assert [one.iterations for one in read.phases] == [4, 6]
    assert [one.name for one in read.stages] == ["compute", "isend-irecv", "wait", "compute-2", "write"]
    compute, send, wait, second, write = read.stages
    assert (compute.ends_by, compute.granularity, compute.shares) == ("operations", 10_000, {2: (0.25, 0.75)})
    assert (wait.waits_for, wait.every, send.bytes) == (1, 2, 64 << 10)
    assert (second.factors, write.append, write.bytes) == ({1: 1.0, 4: 0.3}, True, 8000)
    assert machine.file_sizes(read)["out"][0] == 8000 * 2


def test_an_access_may_end_by_time(tmp_path: Path):
    timed = FILE.replace('file = "out"', 'file = "out"\ntime_s = 0.5')
    read = read_description(written(tmp_path, timed))
    write = read.stages[-1]
    assert (write.ends_by, write.time_s, write.is_timed_access, read.accessed_bytes) == ("time", 0.5, True, None)
    (planned,) = [one for one in plan_of(read, {})["phases"][1]["stages"] if one["kind"] == "write"]
    assert (planned["ends_by"], planned["time_s"], planned["factors"]) == ("time", 0.5, [[1, 1.0]])
    counted = read_description(written(tmp_path, FILE))
    assert (counted.stages[-1].ends_by, counted.accessed_bytes) == ("operations", 16_000)


def test_the_plan_has_what_the_program_needs(tmp_path: Path):
    read = read_description(written(tmp_path, FILE))
    assert granularities(read) == [("compute", 10_000)]
    plan = json.loads(json.dumps(plan_of(read, {("compute", 10_000): 1e-4})))
    first, second = plan["phases"]
    assert first["stages"][0]["operation_s"] == 1e-4
    assert (first["stages"][0]["factors"], second["stages"][0]["factors"]) == ([], [[1, 1.0], [4, 0.3]])
    assert first["stages"][1]["factors"] == [[1, 1.0]]
    assert [(one["methods"], one["in_background"]) for one in plan["groups"]] == [("", False), ("baseline", False)]


def test_the_data_may_be_distributed_unequally(tmp_path: Path):
    shared = FILE.replace("constant_percent = 75", "constant_percent = 75\nshares = { 2 = [0.25, 0.75] }")
    read = read_description(written(tmp_path, shared))
    assert (read.data.shares, read.data.imbalance) == ({2: (0.25, 0.75)}, 1.0)
    data = plan_of(read, {("compute", 10_000): 1e-4})["data"]
    assert (data["constant_bytes"], data["shares"], data["distribution"]) == (3 << 20, [[0.25, 0.75]], "linear")
    drawn = FILE.replace("constant_percent = 75", 'imbalance = 3\ndistribution = "random"')
    read = read_description(written(tmp_path, drawn))
    assert (read.data.constant_bytes, read.data.imbalance, read.data.distribution) == (4 << 20, 3.0, "random")


def test_n_replaces_the_processes_at_the_start(tmp_path: Path):
    read = read_description(written(tmp_path, FILE), 4)
    assert [(one.processes, one.factor) for one in read.groups] == [(4, 0.25), (2, 0.6)]
    with pytest.raises(UsageError, match=r"app.toml, line 10: group 2: processes = 2 is what the group before has"):
        read_description(tmp_path / "app.toml", 2)


MISTAKES = [
    # what is replaced, by what, the line, and the words
    ('bytes = "4m"\nconstant_percent = 75', "", ", line 3: data", "neither bytes nor replicated_bytes is given"),
    (
        'bytes = "4m"',
        'replicated_bytes = "4m"',
        ", line 5: data",
        "constant_percent means nothing without bytes; remove it",
    ),
    (
        "constant_percent = 75",
        "replicated_constant_percent = 75",
        ", line 5: data",
        "means nothing without replicated_bytes",
    ),
    ('name = "cg"\n', "", "", "key 'name' is missing; write e.g. name = \"cg\""),
    ("seed = 7", "seed = -1", ", line 2", "seed = -1 must be a whole number from 0 to"),
    ("seed = 7", "speed = 7", ", line 2", "key 'speed' = 7 is unknown"),
    ('bytes = "4m"', 'bytes = "4x"', ", line 4: data", "bytes = '4x' must be bytes"),
    (
        "constant_percent = 75",
        "constant_percent = 101",
        ", line 5: data",
        "constant_percent = 101 must be from 0 to 100",
    ),
    ("constant_percent = 75", "imbalance = 3", ", line 5: data", "imbalance = 3 must be at most 2 if shares fall"),
    ("constant_percent = 75", "shares = { 2 = [1] }", ", line 5: data", "shares.2 = [1] has 1 shares; give one"),
    ("processes = 1", "processes = 0", ", line 7: group 1", "processes = 0 must be a whole number from 1"),
    ("processes = 1", 'processes = "1"', ", line 7: group 1", "processes = '1' must be a whole number from 1"),
    ("processes = 2\n", "", ", line 9: group 2", "key 'processes' is missing; write e.g. processes = 4"),
    (
        'file = "out"',
        'file = "out"\ntime_s = 1\nends_by = "operations"',
        ", line 34: phase 2, stage 2",
        "time_s = 1 contradicts ends_by = 'operations': the stage has its bytes, or lasts this time",
    ),
    ('file = "out"', 'file = "out"\nends_by = "time"', ", line 34", "ends_by = 'time' needs time_s; give it"),
    ('file = "out"', 'file = "out"\nfactors = { 1 = 1 }', ", line 34", "factors scale time_s, which is missing"),
    ("bytes = 8_000\n", "time_s = 1\n", ", line 31", "key 'bytes' is missing"),
    ("processes = 1\n", 'processes = 1\nspawn = "merge"\n', ", line 8: group 1", "means nothing in the first group"),
    ("processes = 2", "processes = 1", ", line 10: group 2", "processes = 1 is what the group before has"),
    ("factor = 0.6", "factor = -0.6", ", line 12: group 2", "factor = -0.6 must be from 1e-09"),
    ('"baseline"', '"based"', ", line 13: group 2", "spawn = 'based' is unknown; use merge, baseline"),
    (
        "[[phase]]\niterations = 4",
        "[[phase]]\niterations = 10",
        ", line 26: phase 2",
        "the phases have 10 iterations before this one, the groups 10",
    ),
    (
        "[[phase]]\niterations = 4",
        "[[phase]]",
        ", line 25: phase 2",
        "'iterations' is missing here and in a phase before",
    ),
    (
        'kind = "compute"\ntime_s = 0.5',
        'kind = "computing"\ntime_s = 0.5',
        ", line 17",
        "kind = 'computing' is unknown",
    ),
    ("time_s = 0.5\n", "", ", line 16: phase 1, stage 1", "key 'time_s' is missing; write e.g. time_s = 0.012"),
    ("time_s = 0.5", "time_s = nan", ", line 18: phase 1, stage 1", "time_s = nan must be from 0"),
    ("[0.25, 0.75]", "[0.25, 0.7]", ", line 19", "shares.2 = [0.25, 0.7] has the sum 0.95; it must be 1"),
    ("[0.25, 0.75]", "[0.25, 0.25, 0.5]", ", line 19", "shares.2 = [0.25, 0.25, 0.5] has 3 shares"),
    ("[0.25, 0.75]", "0.5", ", line 19", "shares.2 = 0.5 must be a list"),
    ("{ 2 = [0.25, 0.75] }", "{ a = [1] }", ", line 19", "key 'a' of shares must be a number of processes"),
    ("{ 2 = [0.25, 0.75] }", "{}", ", line 19", "shares = {} must be a table"),
    ("{ 2 = [0.25, 0.75] }", "{ 1 = [1] }\nimbalance = 1.5", ", line 20", "imbalance = 1.5 contradicts shares"),
    ("shares = { 2 = [0.25, 0.75] }", "imbalance = 3", ", line 19", "imbalance = 3 must be at most 2 if shares fall"),
    ("shares = { 2 = [0.25, 0.75] }", 'distribution = "one"', ", line 19", "means nothing without imbalance"),
    ('bytes = "64k"', "", ", line 20: phase 1, stage 2", "key 'bytes' is missing"),
    ('bytes = "64k"', 'bytes = "2g"', ", line 22: phase 1, stage 2", "must be at most 2147483647 in one message"),
    (
        'bytes = "64k"',
        'bytes = "64k"\ntime_s = 1',
        ", line 23",
        "time_s = 1 means nothing in a stage of kind 'isend-irecv'",
    ),
    (
        'kind = "isend-irecv"',
        'kind = "sendrecv"',
        ", line 24: phase 1, stage 3",
        "no stage of kind 'isend-irecv' before",
    ),
    (
        '[[phase.stage]]\nkind = "wait"\n',
        "",
        ", line 20: phase 1, stage 2",
        "no stage of kind 'wait' in the phase completes",
    ),
    (
        'kind = "wait"',
        'kind = "wait"\nwaits_for = "x"',
        ", line 26: phase 1, stage 3",
        "waits_for = 'x' is no stage of kind",
    ),
    (
        'kind = "wait"',
        'kind = "wait"\nevery = 2',
        ", line 26: phase 1, stage 3",
        "every = 2 means nothing in a stage of kind",
    ),
    ("{ 1 = 1, 4 = 0.3 }", "{ 1 = 1, 4 = 0 }", ", line 30", "factors.4 = 0 must be above 0"),
    ("every = 3", "every = 7", ", line 36: phase 2, stage 2", "every = 7 exceeds the 6 iterations of the phase"),
    ("append = true", 'append = "yes"', ", line 35: phase 2, stage 2", "append = 'yes' must be true or false"),
    ('file = "out"', 'file = "out"\nname = "compute"', ", line 34", "name = 'compute' is that of an earlier stage"),
    (
        'file = "out"',
        'file = "out"\naccess = "file-per-process"\npattern = "strided"',
        ", line 35: phase 2, stage 2",
        "pattern = 'strided' contradicts access = 'file-per-process'",
    ),
    ("seed = 7", "seed = 7 7", "", "(at line 2, column"),
]


@pytest.mark.parametrize(("old", "new", "line", "words"), MISTAKES)
def test_each_mistake_is_named_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture, old: str, new: str, line: str, words: str
):
    assert old in FILE
    path = written(tmp_path, FILE.replace(old, new, 1))
    assert main(["emulate", str(path), "--check"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"hocket: {path}{line}") and words in told and told.count("\n") == 1


MESSAGE = 'name = "m"\n[[group]]\nprocesses = 2\niterations = 1\n[[phase]]\n[[phase.stage]]\nkind = "{}"\n{}\n'


@pytest.mark.parametrize(
    ("kind", "keys", "words"),
    [
        ("reduce", "", "line 6: phase 1, stage 1: neither bytes nor time_s is given"),
        (
            "reduce",
            "bytes = 8\nfactors = { 1 = 1 }",
            "line 9: phase 1, stage 1: factors scale time_s, which is missing",
        ),
        ("reduce", 'bytes = 8\nends_by = "time"', "line 9: phase 1, stage 1: ends_by = 'time' needs time_s"),
        ("reduce", 'time_s = 1\nends_by = "operations"', "line 8: phase 1, stage 1: time_s = 1 contradicts ends_by"),
        (
            "alltoall",
            'bytes = "1g"\nshares = { 4 = [0.7, 0.1, 0.1, 0.1] }',
            "line 8: phase 1, stage 1: bytes = 1073741824 must be at most 2147483647 in one message of a rank",
        ),
        ("reduce", "bytes = 8\nshares = { 2 = [0, 1] }", "line 9: phase 1, stage 1: shares = "),
        (
            "sleep",
            'time_s = 1\nends_by = "operations"',
            "line 9: phase 1, stage 1: ends_by = 'operations': a stage that",
        ),
        (
            "reduce",
            'time_s = 1\nends_by = "cpu-time"',
            "line 9: phase 1, stage 1: ends_by = 'cpu-time' means nothing in a stage of kind 'reduce'",
        ),
    ],
)
def test_mistakes_of_messages(tmp_path: Path, kind: str, keys: str, words: str):
    with pytest.raises(UsageError) as caught:
        read_description(written(tmp_path, MESSAGE.format(kind, keys)))
    assert words in str(caught.value)


def test_a_message_may_be_given_by_time_alone(tmp_path: Path):
    (stage,) = read_description(written(tmp_path, MESSAGE.format("allgatherv", "time_s = 0.1"))).stages
    assert (stage.ends_by, stage.bytes, stage.time_s) == ("time", 8, 0.1)


def test_cpu_time_needs_no_calibration_but_a_core(tmp_path: Path):
    text = MESSAGE.format("compute", 'time_s = 1\nends_by = "cpu-time"')
    read = read_description(written(tmp_path, text))
    assert granularities(read) == [] and plan_of(read, {})["phases"][0]["stages"][0]["ends_by"] == "cpu-time"
    with pytest.raises(UsageError, match="exceeds the 1 cores"):
        machine.check_cores(read, 1)


def test_processes_and_cores(tmp_path: Path):
    text = MESSAGE.replace("processes = 2", "processes = 9")
    burning = read_description(written(tmp_path, text.format("compute", "time_s = 1")))
    machine.check_cores(burning, 9)
    with pytest.raises(UsageError) as caught:
        machine.check_cores(burning, 8)
    told = "line 3: group 1: processes = 9 exceeds the 8 cores of this machine, and 'compute' computes on a core"
    assert told in str(caught.value)
    for allowed in (
        text.format("compute", 'time_s = 1\nends_by = "time"'),
        text.format("sleep", "time_s = 1"),
        "oversubscribe = true\n" + text.format("compute", "time_s = 1"),
    ):
        machine.check_cores(read_description(written(tmp_path, allowed)), 8)


def test_files_must_have_room(tmp_path: Path):
    text = MESSAGE.format("write", 'file = "out"\nbytes = 1_000_000_000_000_000')
    with pytest.raises(UsageError) as caught:
        machine.check_room(read_description(written(tmp_path, text)), tmp_path)
    assert "line 9: phase 1, stage 1: bytes = 1000000000000000 make 'out' 1000.0 TB long;" in str(caught.value)
    with pytest.raises(UsageError, match="give another --dir"):
        machine.check_room(read_description(tmp_path / "app.toml"), tmp_path / "nowhere")


def test_the_command_checks_cores_and_room(tmp_path: Path, capsys: pytest.CaptureFixture):
    cores = len(os.sched_getaffinity(0))
    text = MESSAGE.replace("processes = 2", f"processes = {cores + 1}").format("memory", "time_s = 1")
    path = written(tmp_path, text)
    command = ["emulate", str(path), "--check", "--dir", str(tmp_path)]
    assert main(command) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"hocket: {path}, line 3: group 1: processes = {cores + 1} exceeds the {cores} cores of")
    assert told.count("\n") == 1
    written(tmp_path, "oversubscribe = true\n" + text)
    assert main(command) == 0
    written(tmp_path, MESSAGE.format("write", 'file = "out"\nbytes = 1_000_000_000_000_000'))
    assert main(command) == 2
    told = capsys.readouterr().err
    words = "line 9: phase 1, stage 1: bytes = 1000000000000000 make 'out' 1000.0 TB long; "
    assert told.startswith(f"hocket: {path}, {words}{tmp_path} has room for ") and told.count("\n") == 1


def test_the_schema_follows_from_the_keys(capsys: pytest.CaptureFixture):
    assert main(["emulate", "--print-schema"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == schema()
    stage = printed["properties"]["phase"]["items"]["properties"]["stage"]["items"]
    assert sorted(stage["properties"]) == sorted(key.name for key in STAGE)
    rules = {one["if"]["properties"]["kind"]["const"]: one["then"] for one in stage["allOf"]}
    assert sorted(rules) == sorted(STAGES)
    assert rules["sleep"]["properties"]["bytes"] is False and rules["write"]["required"] == ["kind", "file"]


def test_the_manual_names_every_key():
    page = (REPO / "docs" / "emulate.md").read_text()
    assert [one.name for one in STAGE if f"`{one.name}`" not in page] == []
    assert [kind for kind in STAGES if f"`{kind}`" not in page] == []


def test_the_example_of_the_manual_is_right(tmp_path: Path):
    page = (REPO / "docs" / "emulate.md").read_text()
    example = page.split("```toml\n")[1].split("```")[0]
    read = read_description(written(tmp_path, example))
    assert [one.processes for one in read.groups] == [2, 4] and len(read.stages) == 4


TRICKY = r"""
# [not.a.table]
"a.b" = 1            # "c" = 2
text = '''
[no] = 1
'''
quoted = "x = \" [y]"
more = QQQ
[no] \
QQQ"
list = [ 1, # ]
  { in = { deep = "}" } },
  [ "]" ],
]
a.b."c d".e = 1979-05-27T07:32:00Z
[t . "u.v"]
k = {}
[[t.w]]
x = 1
[[t.w]]
  [t.w.sub]
  y = 0x1F
  [[t.w.deep]]
  z = [
    1,
    2,
  ]
""".replace("QQQ", '"""')


@pytest.mark.parametrize("text", [FILE, TRICKY, TRICKY.replace("\n", "\r\n"), ""])
def test_each_key_is_found_on_its_line(text: str):
    lines = lines_of(text.replace("\r\n", "\n"))
    shown = text.split("\n")

    def look(value: object, path: tuple) -> None:
        if path:
            assert path in lines, path
            if isinstance(path[-1], str):
                assert path[-1] in shown[lines[path] - 1], (path, lines[path])
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, below in items:
            look(below, (*path, key))

    look(tomllib.loads(text), ())
