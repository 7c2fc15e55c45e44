"""Mistakes in Proteo's configuration files: each is one line with file, line, key, and value."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hocket.emulator.proteo import import_file
from hocket.emulator.proteo_description import text_of
from hocket.errors import UsageError
from proteo_samples import SAMPLES

# Version, what is replaced by what, the line, and what the message has.
MISTAKES = [
    # missing
    ("products", "Procs=2\n", "", 30, "[resize1] has no Procs; version 'products' needs it"),
    ("products", "Granularity=500\n", "", 1, "[general] has no Granularity"),
    ("products", "[stage2]", "[stage4]", 3, "Total_Stages = 3 in [general] needs [stage2], which is missing"),
    ("products", "Total_Resizes=1", "Total_Resizes=2", 2, "Total_Resizes = 2 in [general] needs [resize2]"),
    ("data-size", '"Stage_Time": 0.2, ', "", 6, "[phases[0].stages[0]] has no Stage_Time"),
    ("data-size", '"Total_Phases": 2', '"Total_Phases": 3', 2, "Total_Phases = 3 in [general] needs phases[2]"),
    ("data-size", '"Total_Stages": 2', '"Total_Stages": 1', 5, "counts fewer than there are: phases[0].stages[1]"),
    ("phases", "[phase1]", "[phase2]", 3, "Total_Phases = 2 in [general] needs [phase1], which is missing"),
    # negative, or out of range
    ("products", "Procs=2", "Procs=-2", 32, "Procs = -2 in [resize1] must be from 1 to 65536"),
    ("products", "Iters=4", "Iters=0", 31, "Iters = 0 in [resize1] must be from 1"),
    ("products", "SDR=1000", "SDR=-1", 5, "SDR = -1 in [general] must be from 0"),
    ("products", "FactorS=0.6", "FactorS=-0.6", 33, "FactorS = -0.6 in [resize1] must be from 1e-09"),
    ("products", "Stage_Type=4", "Stage_Type=7", 17, "Stage_Type = 7 in [stage2] must be from 0 to 6"),
    ("paper", "Redistribution=75", "Redistribution=101", 6, "Asynch_Percentage_Redistribution = 101 in [general]"),
    ("data-size", '"Stage_Time": 0.2', '"Stage_Time": -0.2', 6, "Stage_Time = -0.2 in [phases[0].stages[0]] must be"),
    # of the wrong type
    ("products", "Procs=2", "Procs=two", 32, "Procs = two in [resize1] is no number"),
    ("products", "Procs=2", "Procs=2.5", 32, "Procs = 2.5 in [resize1] must be a whole number"),
    ("products", "Procs=2", "Procs=2:4", 32, "Procs = 2:4 in [resize1] has several values"),
    ("products", "ADR=3000.0", "ADR=nan", 6, "ADR = nan in [general] is no number"),
    ("indices", "Strategy=1,2", "Strategy=1,x", 35, "Spawn_Strategy = 1,x in [resize1] must be whole numbers"),
    ("data-size", '"Rigid": 1', '"Rigid": true', 3, "Rigid = true in [general] is no number"),
    ("data-size", '"Iters": 6', '"Iters": {}', 12, "Iters must be a number or a text, not an object"),
    ("data-size", '"Spawn_Strategy": [1, 2]', '"Spawn_Strategy": []', 15, "Spawn_Strategy = [] in [groups[1]] must be"),
    # unknown
    ("products", "Rigid=1", "Rigit=1", 7, "Rigit = 1 in [general]: the key is unknown in version 'products'"),
    ("products", "Dist=spread", "Dist=spraed", 34, "Dist = spraed in [resize1] is unknown; use compact or spread"),
    ("products", "[stage1]", "[stge1]", 12, "[stge1] is no section of Proteo"),
    ("products", "Spawn_Strategy=3", "Spawn_Strategy=5", 38, "Spawn_Strategy = 5 in [resize1] is unknown; use one of"),
    ("paper", "Redistribution_Strategy=5", "Redistribution_Strategy=4", 34, "is unknown; use one of 1, 2, 3, 5"),
    ("data-size", '"groups"', '"group"', 11, "'group' is unknown; use general, phases, groups"),
    (
        "data-size",
        '"Datasize"',
        '"DataSize"',
        2,
        "DataSize = 4 in [general]: the key is unknown in version 'data-size'",
    ),
    # contradictory
    ("products", "Iters=4", "Iters=4\nIters=5", 32, "Iters = 5 in [resize1]: the key is on line 31, too"),
    ("products", "[resize1]", "[group0]", 30, "[group0] is also on line 21; give it once"),
    ("products", "[stage2]", "[stage1]", 16, "[stage1] is also on line 12; give it once"),
    ("products", "Procs=2", "Procs=1", 32, "Procs = 1 in [resize1] is what the group before has"),
    ("products", "Stage_Time=0.2", "Stage_Time=0", 11, "Stage_Time = 0 in [stage0] is too little: a computation"),
    ("products", "Stage_Time=0.01", "Stage_Time=0", 18, "Stage_Bytes = 0 in [stage2] is too little: give bytes or"),
    ("asynch-type", "Stage_Time=0.01", "Stage_Time=0", 14, "Stage_Time_Capped = 1 in [stage1] needs a time above 0"),
    (
        "paper",
        "Stage_Type=8",
        "Stage_Type=3\nStage_Bytes=1",
        11,
        "Stage_Type = 7 in [stage1] is isend-irecv, and no",
    ),
    ("paper", "Stage_Type=7", "Stage_Type=6", 17, "Stage_Type = 8 in [stage3] is a wait, and no isend-irecv before it"),
    (
        "products-isend",
        "Stage_Type=4\nStage_Bytes=0",
        "Stage_Type=5\nStage_Bytes=1",
        13,
        "Stage_Type = 3 in [stage1] is isend-irecv, and no wait",
    ),
    ("indices", "Strategy=1,2", "Strategy=2,5", 35, "Spawn_Strategy = 2,5 in [resize1] contradicts itself"),
    (
        "indices",
        "Redistribution_Strategy=0\nSpawn_Method=1",
        "Redistribution_Strategy=1,2\nSpawn_Method=1",
        33,
        "one number",
    ),
    ("phases", "Iters=6", "Iters=60", 25, "Iters = 60 in [resize0] leaves no iteration to the last group"),
    (
        "data-size",
        '"Stage_Bytes": 512, "Stage_Time": 0',
        '"Stage_Bytes": 0, "Stage_Time": 0',
        7,
        "is too little: give bytes or a time above 0",
    ),
]


def test_each_mistake_is_one_line_with_file_line_key_and_value(tmp_path: Path) -> None:
    for version, old, new, line, told in MISTAKES:
        sample = SAMPLES[version]
        at = sample.rindex(old) if old != "[stage1]" else sample.index(old)
        text = sample[:at] + new + sample[at + len(old) :]
        path = tmp_path / ("a.json" if text.startswith("{") else "a.ini")
        path.write_text(text)
        with pytest.raises(UsageError) as error:
            import_file(path, version)
        assert str(error.value).startswith(f"{path}, line {line}: ") and told in str(error.value), error.value
        assert "\n" not in str(error.value)
        with pytest.raises(UsageError) as error:
            import_file(path)
        # Where several versions have the keys, each finds its own mistake, and the message names the others.
        found = f", line {line}: " in str(error.value) or (
            "say --version" in str(error.value) and version in str(error.value)
        )
        assert found and "\n" not in str(error.value), error.value


def test_what_is_no_file_of_proteo(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text, told in (
        ("{", "a.json, line 1: no JSON: "),
        ("[]", "line 1: the file must be an object"),
        ('{"general": {}}', "needs it"),
        ('{"phases": []}', "there is no section [general]"),
        ('{"general": {"SDR": NaN}}', "NaN is no number"),
        ('{"phases": {}}', "phases must be a list"),
        ('{"phases": [],\n "phases": []}', "line 2: 'phases' in the file is on line 1, too"),
        ("[" * 100_000, "no JSON of Proteo: "),
        ("\0", "is no configuration of Proteo"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError) as error:
            import_file(path)
        assert told in str(error.value) and "\n" not in str(error.value), error.value
    with pytest.raises(UsageError, match="cannot read"):
        import_file(tmp_path / "none.ini")


def test_a_damaged_file_is_refused_in_one_line_or_read(tmp_path: Path) -> None:
    random = Random(4)
    refused = 0
    for _ in range(200):
        sample = random.choice(list(SAMPLES.values()))
        path = tmp_path / ("a.json" if sample.startswith("{") else "a.ini")
        letters = list(sample)
        for _ in range(random.randint(1, 4)):
            at = random.randrange(len(letters))
            letters[at] = random.choice(
                ["", "0", "9", "-", "=", "\n", "[", "]", "}", ",", '"', ".", "x", "e9", letters[at] * 2]
            )
        path.write_text("".join(letters))
        try:
            text_of(import_file(path))
        except UsageError as error:
            refused += 1
            assert str(error).count("\n") == 0 and str(path) in str(error)
    assert 50 < refused < 200
