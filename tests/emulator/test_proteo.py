"""Proteo's configuration files: each version is recognised, means what its numbers say, and becomes TOML."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hocket.cli import main
from hocket.emulator.description import read_description
from hocket.emulator.proteo import import_file
from hocket.emulator.proteo_description import text_of
from hocket.errors import UsageError
from proteo_samples import JSON, SAMPLES

KINDS = {  # of the samples; all begin with a computation of 0.2 s and granularity 500
    "matrix": ["memory"],
    "broadcast": ["compute", "broadcast"],
    "stages-alltoall": ["memory", "alltoall", "memory", "alltoall"],
    "stages": ["memory", "allreduce", "sendrecv", "memory", "allreduce", "sendrecv"],
    "short": ["compute", "reduce"],
    "general-methods": ["compute", "broadcast"],
    "asynch-type": ["compute", "allgatherv"],
    "products": ["compute", "broadcast", "allgatherv"],
    "products-isend": ["compute", "isend-irecv", "wait"],
    "indices": ["compute", "allreduce"],
    "phases": ["compute", "reduce"],
    "data-size": ["compute", "write", "compute", "write", "read"],
    "paper": ["compute", "isend-irecv", "broadcast", "wait"],
}
METHODS = {  # spawn, its strategy, redistribution, its strategy
    "matrix": "baseline/plain/collective/wait-targets",
    "broadcast": "merge/single-async/p2p/wait-sources",
    "stages-alltoall": "baseline/async/collective/thread",
    "stages": "merge/single/collective/wait-sources",
    "short": "merge/single/collective/wait-sources",
    "general-methods": "baseline/async/collective/wait-targets",
    "asynch-type": "merge/single-async/collective/thread",
    "products": "baseline/single/p2p/thread",
    "products-isend": "merge/single-async/collective/wait-targets",
    "indices": "merge/single-async/rma-lockall/wait-targets",
    "phases": "merge/plain/collective/wait-sources",
    "data-size": "merge/single-async/p2p/wait-targets",
    "paper": "merge/single-async/collective/thread",
}
# The numbers of stages in each version, from the paper and the published sources.
SEVEN = ["compute", "memory", "sendrecv", "broadcast", "allgatherv", "reduce", "allreduce"]
NINE = ["compute", "memory", "sendrecv", "isend-irecv", "wait", "broadcast", "allgatherv", "reduce", "allreduce"]
NUMBERS = {
    "stages-alltoall": [*SEVEN[:4], "alltoall", "reduce"],
    "stages": SEVEN,
    "short": SEVEN,
    "general-methods": SEVEN,
    "asynch-type": SEVEN,
    "products": SEVEN,
    "products-isend": NINE,
    "indices": NINE,
    "phases": NINE,
    "data-size": [*NINE, "write", "read"],
    "paper": [*SEVEN, "isend-irecv", "wait"],
}


def written(tmp_path: Path, text: str, name: str = "") -> Path:
    path = tmp_path / (name or ("test.json" if text.startswith("{") else "test.ini"))
    path.write_text(text)
    return path


def toml_of(path: Path, version: str | None = None) -> dict[str, Any]:
    """Import a file, and read the TOML that comes out, which the checker must accept."""
    text = text_of(import_file(path, version))
    out = path.with_suffix(".toml")
    out.write_text(text)
    read_description(out)
    return tomllib.loads(text)


def stages(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for phase in table["phase"] for one in phase["stage"]]


@pytest.mark.parametrize("version", SAMPLES)
def test_each_version_is_recognised_and_becomes_toml(tmp_path: Path, version: str) -> None:
    path = written(tmp_path, SAMPLES[version])
    given = version if version == "stages-alltoall" else None  # its keys are also those of 'stages'
    # Two versions may read the same program; then either is right.
    assert import_file(path, given).program == import_file(path, version).program
    table = toml_of(path, given)
    assert [one["kind"] for one in stages(table)] == KINDS[version]
    first = stages(table)[0]
    assert (first["time_s"], first["granularity"]) == (0.2, 500)
    assert first["ends_by"] == ("time" if version == "matrix" else "operations")
    assert table["data"] == {"bytes": 4000, "constant_percent": 75.0}
    groups = table["group"]
    assert [(one["processes"], one["iterations"], one["factor"]) for one in groups] == [(1, 6, 1.0), (2, 4, 0.6)]
    keys = ("spawn", "spawn_strategy", "redistribution", "redistribution_strategy")
    assert "/".join(groups[1][key] for key in keys) == METHODS[version]
    assert groups[1]["placement"] == "spread"


def test_methods_of_the_first_group_are_named_and_dropped(tmp_path: Path) -> None:
    for version, sample in SAMPLES.items():
        path = written(tmp_path, sample)
        assert set(toml_of(path, version)["group"][0]) == {"processes", "iterations", "factor"}
        (note,) = [one for one in import_file(path, version).notes if "leads to the first group" in one]
        assert "ist = " in note  # Dist or physical_dist
        if "Spawn_Method" in sample and version != "general-methods":
            assert "Spawn_Method = 0" in note and "Spawn_Strategy = " in note


def test_each_number_of_a_stage_has_the_kind_of_its_version(tmp_path: Path) -> None:
    pair = ("isend-irecv", "wait")
    for version, kinds in NUMBERS.items():
        for kind in kinds:
            numbers = [kinds.index(one) for one in (pair if kind in pair else (kind,))]
            table = toml_of(written(tmp_path, file_of(version, numbers)), version)
            found = [one["kind"] for one in table["phase"][0]["stage"]]
            assert found == [kinds[one] for one in numbers], f"{version}: {numbers}"


def test_a_file_is_read_as_its_version_or_refused(tmp_path: Path) -> None:
    """Random stages in the keys of each version: what comes out is what that version means, or nothing."""
    random = Random(26)
    refused = 0
    for _ in range(150):
        version = random.choice(list(NUMBERS))
        kinds = NUMBERS[version]
        numbers = [one for one in random.choices(range(len(kinds)), k=4) if kinds[one] not in ("isend-irecv", "wait")]
        path = written(tmp_path, file_of(version, numbers or [0]))
        meant = import_file(path, version)
        assert [kinds[one] for one in numbers or [0]] == [one.kind for one in meant.program.phases[0].stages]
        try:
            assert import_file(path).program == meant.program
        except UsageError as error:
            refused += 1
            assert "say --version" in str(error) and version in str(error)
    assert 0 < refused < 75


def file_of(version: str, numbers: list[int]) -> str:
    """Return the sample of a version, with stages of these numbers alone."""
    if version == "data-size":
        content = json.loads(JSON)
        content["general"]["Total_Phases"] = 1
        content["phases"] = [{"Total_Iters": 10, "Total_Stages": len(numbers), "stages": []}]
        for number in numbers:
            computes = NUMBERS[version][number] in ("compute", "memory")
            length = {"Stage_Bytes": 0, "Stage_Time": 0.1} if computes else {"Stage_Bytes": 64, "Stage_Time": 0}
            one = {"Stage_Type": number, "Granularity": 9, "Stage_Identifier": 1, "Stage_Involved_Procs": 0} | length
            content["phases"][0]["stages"].append(one)
        return json.dumps(content, indent=1)
    sample = SAMPLES[version]
    names = ("PT", "bytes", "t_stage") if "PT=" in sample else ("Stage_Type", "Stage_Bytes", "Stage_Time")
    names = ("Stage_Type", "Stage_bytes", "Stage_time") if version == "general-methods" else names
    begin = sample.index("[stage0]") if "[stage0]" in sample else sample.index("[phase0]")
    head, tail = sample[:begin], sample[sample.index("[resize0]") :]
    for total in ("iter_stages=", "Total_Stages=", "\nS="):
        if total in head:
            at = head.index(total) + len(total)
            head = f"{head[:at]}{len(numbers)}{head[head.index(chr(10), at) :]}"
    prefix = "phase0.stage" if version == "phases" else "stage"
    if version == "phases":
        head = head.replace("Total_Phases=2", "Total_Phases=1")
        head += f"[phase0]\nTotal_Iters=10\nTotal_Stages={len(numbers)}\n"
    for at, number in enumerate(numbers):
        computes = NUMBERS[version][number] in ("compute", "memory")
        length = (0, 0.1) if computes else (64, 0)
        head += f"[{prefix}{at}]\n{names[0]}={number}\n{names[1]}={length[0]}\n{names[2]}={length[1]}\n"
        if NUMBERS[version] is NINE or version == "phases":
            head += "Stage_Identifier=1\n"
        if version == "phases":
            head += "Granularity=9\n"
    return head + tail


METHOD_NUMBERS = [  # version, key, and the words of its numbers
    ("products", "Spawn_Strategy", {1: "plain", 2: "async", 3: "single", 6: "single-async"}),
    ("indices", "Spawn_Strategy", {0: "plain", 1: "async", 2: "single", 3: "plain", 4: "plain", 5: "parallel"}),
    ("indices", "Spawn_Method", {0: "baseline", 1: "merge"}),
    ("products", "Redistribution_Method", {0: "collective", 1: "p2p", 2: "rma-lock", 3: "rma-lockall"}),
    ("paper", "Redistribution_Method", {0: "collective", 1: "p2p"}),
    ("products", "Redistribution_Strategy", {1: "wait-sources", 2: "thread", 3: "wait-targets"}),
    ("phases", "Redistribution_Strategy", {0: "wait-sources", 1: "thread", 2: "wait-sources", 3: "wait-targets"}),
    ("paper", "Redistribution_Strategy", {1: "blocking", 2: "wait-sources", 3: "wait-targets", 5: "thread"}),
    (
        "asynch-type",
        "Asynch_Redistribution_Type",
        dict(enumerate(("wait-sources", "wait-targets", "wait-sources", "thread"))),
    ),
]


def test_each_number_of_a_method_has_the_word_of_its_version(tmp_path: Path) -> None:
    for version, key, words in METHOD_NUMBERS:
        head, second = SAMPLES[version].split("[resize1]")
        name = {"Spawn_Method": "spawn", "Asynch_Redistribution_Type": "redistribution_strategy"}.get(key, key.lower())
        name = name.removesuffix("_method")
        for number, word in words.items():
            text = f"{head}[resize1]{re.sub(f'{key}=.*', f'{key}={number}', second)}"
            group = toml_of(written(tmp_path, text), version)["group"][1]
            assert group[name] == word, f"{version}: {key} = {number}"


AMBIGUOUS = {
    # 5 and 6 are Reduce and Allreduce in the older, Bcast and Allgatherv in the newer.
    "stages": SAMPLES["products"].replace("Stage_Type=3", "Stage_Type=5").replace("Stage_Type=4", "Stage_Type=6"),
    # A strategy 2 is a thread in the older, and source ranks that wait in the newer.
    "strategies": SAMPLES["products-isend"].replace("Strategy=3", "Strategy=2").replace("Strategy=6", "Strategy=1"),
    "alltoall": SAMPLES["stages-alltoall"],
}


@pytest.mark.parametrize(
    ("case", "line", "told"),
    [
        (
            "stages",
            13,
            "Stage_Type = 5 in [stage1] is reduce in version 'products'; broadcast in version 'products-isend'",
        ),
        ("strategies", 38, "strategy 'thread' in version 'products-isend'; redistribution strategy 'wait-sources' in"),
        ("alltoall", 15, "PT = 4 in [stage1] is alltoall in version 'stages-alltoall'; allgatherv in version 'stages'"),
    ],
)
def test_what_two_versions_read_differently_is_refused(tmp_path: Path, case: str, line: int, told: str) -> None:
    path = written(tmp_path, AMBIGUOUS[case])
    with pytest.raises(UsageError) as error:
        import_file(path)
    text = str(error.value)
    assert text.startswith(f"{path}, line {line}: ") and told in text and "say --version" in text and "\n" not in text
    names = [one for one in SAMPLES if f"'{one}'" in text]
    programs = [import_file(path, one).program for one in names]
    assert len(names) > 1 and any(one != programs[0] for one in programs)


def test_a_number_that_only_one_version_has_decides(tmp_path: Path) -> None:
    unclear = AMBIGUOUS["stages"]
    # No product of 2 and 3 is 0, so this is a list of indices.
    clear = unclear.replace("Spawn_Strategy=3", "Spawn_Strategy=0")
    assert import_file(written(tmp_path, clear)).version == "indices"
    # A wait needs an identifier, so 4 without one is Allgatherv.
    older = unclear.replace("Stage_Type=6", "Stage_Type=4")
    assert import_file(written(tmp_path, older)).version == "products"


def test_the_version_and_what_means_nothing_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, SAMPLES["data-size"])
    notes = import_file(path).notes
    assert notes[0].startswith(f"{path}: read as Proteo's version 'data-size'")
    told = "\n".join(notes)
    assert f"{path}, line 3: Rigid = 1 in [general] means nothing here: " in told
    assert f"{path}, line 3: Capture_Method = 2 in [general] means nothing here: " in told
    assert (
        f"{path}, line 14: Iters = 99 in [groups[1]] means nothing here: the last group computes what is left" in told
    )


def test_keys_of_a_stage_that_mean_nothing_are_told(tmp_path: Path) -> None:
    text = SAMPLES["products"].replace("Stage_Bytes=64\nStage_Time=0\n", "Stage_Bytes=64\nStage_Time=0.04\n")
    text = text.replace("Stage_Bytes=0\nStage_Time=0.2", "Stage_Time_Capped=1\nStage_Bytes=7\nStage_Time=0.2")
    told = "\n".join(
        import_file(written(tmp_path, text + "[resize2]\nIters=5\nProcs=4\nFactorS=1\nDist=spread\n" + METHODS_5)).notes
    )
    assert "Stage_Time = 0.04 in [stage1] means nothing here: the bytes say how long the stage is" in told
    assert "Stage_Bytes = 7 in [stage0] means nothing here: a computation sends none" in told
    assert "Stage_Time_Capped = 1 in [stage0] means nothing here" in told
    assert "[resize2] means nothing here: Total_Resizes = 1 in [general] counts fewer" in told


METHODS_5 = "Redistribution_Method=0\nRedistribution_Strategy=1\nSpawn_Method=0\nSpawn_Strategy=1\n"


def test_an_amount_that_looks_like_a_percentage_is_told(tmp_path: Path) -> None:
    imported = import_file(written(tmp_path, SAMPLES["products"].replace("ADR=3000.0", "ADR=75")))
    assert imported.program.constant_bytes == 75
    assert any("line 6: ADR = 75 in [general] is an amount" in one for one in imported.notes)


def test_a_message_with_a_time(tmp_path: Path) -> None:
    capped = stages(toml_of(written(tmp_path, SAMPLES["asynch-type"])))[1]
    assert capped == {"kind": "allgatherv", "time_s": 0.01, "ends_by": "time", "bytes": 500}
    counted = stages(toml_of(written(tmp_path, SAMPLES["products"])))[2]
    assert counted == capped | {"factors": {"1": 1.0, "2": 0.6}}


def test_an_access_with_a_time_is_repeated_and_no_group_scales_it(tmp_path: Path) -> None:
    """Codes/test.json has one without Granularity: then Proteo reads 600 bytes in a call, else what it says."""
    sample = SAMPLES["data-size"]
    counted = '"Stage_Bytes": 512, "Stage_Time": 0'
    assert counted in sample
    for change, bytes_ in (
        ('"Stage_Bytes": 0, "Stage_Time": 4.0', 600),
        ('"Stage_Bytes": 7, "Granularity": 4096, "Stage_Time_Capped": 1, "Stage_Time": 4.0', 4096),
    ):
        table = toml_of(written(tmp_path, sample.replace(counted, change)))
        first, wider = (phase["stage"][1] for phase in table["phase"][:2])
        told = {"kind": "write", "access": "file-per-process", "time_s": 4.0, "ends_by": "time", "append": True}
        assert first == told | {"file": "write-1.dat", "bytes": bytes_}
        assert wider == first | {"bytes": 2 * bytes_}
    large = toml_of(written(tmp_path, sample.replace(counted, '"Stage_Bytes": 10485760, "Stage_Time": 0')))
    assert large["phase"][0]["stage"][1]["request_bytes"] == 1 << 20, "Proteo's largest call"


def test_bytes_of_each_process_split_a_phase_where_the_group_changes(tmp_path: Path) -> None:
    table = toml_of(written(tmp_path, SAMPLES["data-size"]))
    # Seven iterations write 512 bytes a process, one of them in the second group. One process of two reads.
    assert [phase["iterations"] for phase in table["phase"]] == [6, 1, 3]
    written_, wider, read = (phase["stage"][-1] for phase in table["phase"])
    assert (written_["bytes"], wider["bytes"]) == (512, 1024)
    assert written_["access"] == wider["access"] == "file-per-process" and written_["file"] == wider["file"]
    assert read == {
        "kind": "read",
        "file": "read-2.dat",
        "access": "posix",
        "bytes": 64,
        "shares": {"2": [1.0, 0.0]},
    }
    alltoall = toml_of(written(tmp_path, SAMPLES["stages-alltoall"]), "stages-alltoall")
    assert [phase["stage"][1]["bytes"] for phase in alltoall["phase"]] == [64, 128]
    divided = toml_of(written(tmp_path, SAMPLES["stages"]), "stages")
    assert [phase["stage"][2]["bytes"] for phase in divided["phase"]] == [65, 33]


def test_one_wait_completes_all_messages_of_its_identifier(tmp_path: Path) -> None:
    text = SAMPLES["paper"].replace("Stage_Type=3\nStage_Time=0.01", "Stage_Type=7\nStage_Bytes=32")
    found = [one for one in stages(toml_of(written(tmp_path, text))) if one["kind"] in ("isend-irecv", "wait")]
    assert [one["kind"] for one in found] == ["isend-irecv", "isend-irecv", "wait", "wait"]
    assert [one["waits_for"] for one in found[2:]] == [one["name"] for one in found[:2]]


@pytest.mark.parametrize(
    ("strategy", "method", "expected", "note"),
    [
        ("5", 1, "parallel", "here several source ranks spawn a part each"),
        ("1,5", 1, "parallel-async", "here several source ranks spawn a part each"),
        ("4", 0, "plain", "here each node has an MPI world"),
        ("3", 0, "plain", "data move in one communicator"),
        ("3", 1, "plain", "merge has no inter-communicator"),
    ],
)
def test_strategies_that_hocket_has_otherwise_are_told(
    tmp_path: Path, strategy: str, method: int, expected: str, note: str
) -> None:
    text = SAMPLES["indices"].replace(
        "Spawn_Method=1\nSpawn_Strategy=1,2", f"Spawn_Method={method}\nSpawn_Strategy={strategy}"
    )
    path = written(tmp_path, text)
    group = toml_of(path)["group"][1]
    assert (group["spawn_strategy"], group["worlds"]) == (expected, "node")
    assert any(note in one for one in import_file(path).notes)


def test_the_command_imports_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, SAMPLES["products"])
    assert main(["emulate", str(path), "--import"]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith(f"hocket: {path}: read as Proteo's version 'products'")
    toml = tmp_path / "out.toml"
    toml.write_text(printed.out)
    assert main(["emulate", str(toml), "--check"]) == 0
    assert main(["emulate", str(path), "--check"]) == 0
    unclear = written(tmp_path, AMBIGUOUS["alltoall"], "unclear.ini")
    assert main(["emulate", str(unclear), "--check"]) == 2
    assert main(["emulate", str(unclear), "--check", "--version", "stages"]) == 0
    assert main(["emulate", str(unclear), "--check", "--version", "first"]) == 2
    assert "use matrix, broadcast, " in capsys.readouterr().err
    assert main(["emulate", str(toml), "--check", "--version", "stages"]) == 2
    assert main(["emulate", str(toml), "--import"]) == 2
