"""The checks of words that `./dev lint` makes (lint/): they find what they are for, and pass what is right."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from checkout import REPO

sys.path.insert(0, str(REPO / "lint"))

import commits
import tidy_commands
import wording

CODE = """// {comment}
#pragma once
struct Plan {{
  int x;  // trailing comments are not counted as blocks
}};
"""


def block(tmp_path: Path, comment: str) -> wording.Block:
    file = tmp_path / "a.hpp"
    file.write_text(CODE.format(comment=comment))
    (found,) = wording.blocks(file)
    return found


@pytest.mark.parametrize(
    "comment",
    [
        "Returns the bytes that are left.",
        "Seconds between two looks.",
        "If the lease expires, the coordinator revokes the grant.",
        "After the last access, the target stays granted.",
    ],
)
def test_a_comment_with_a_subject_passes(tmp_path, comment):
    assert block(tmp_path, comment).has_subject


@pytest.mark.parametrize(
    "comment",
    [
        "Of callbacks that may come after this.",
        "Whether it is lost.",
        "Where those have gone for whom it was to stop.",
        "What was moved with another share, or alone.",
    ],
)
def test_a_comment_without_a_subject_is_found(tmp_path, comment):
    assert not block(tmp_path, comment).has_subject


def test_a_type_that_two_files_define_is_found(tmp_path):
    for name in ("a.hpp", "b.hpp"):
        (tmp_path / name).write_text(CODE.format(comment="Plans."))
    (tmp_path / "c.cpp").write_text(
        "struct stat status {};\nusing Plans = int;\nclass Other final : public Plan {\n};\n"
    )
    names = wording.type_names(wording.sources(tmp_path))
    assert {name: len(places) for name, places in names.items()} == {"Plan": 2, "Plans": 1, "Other": 1}


def test_tests_are_not_counted(tmp_path):
    for name in ("a.hpp", "a_test.cpp", "testing.hpp"):
        (tmp_path / name).write_text(CODE.format(comment="Plans."))
    assert [path.name for path in wording.sources(tmp_path)] == ["a.hpp"]


def test_the_share_of_comments_counts_whole_lines(tmp_path):
    (tmp_path / "a.hpp").write_text(CODE.format(comment="Plans."))
    assert wording.comment_share(wording.sources(tmp_path)) == pytest.approx(1 / 5)


def test_a_missed_limit_is_an_error(monkeypatch, capsys):
    monkeypatch.setitem(wording.LIMITS, "comment lines", (0.9, 1))
    assert wording.main([]) == 1
    assert "comment lines" in capsys.readouterr().out


@pytest.mark.parametrize("subject", ["pace: cap unused credit", "runtime/mpi, api: name the ranks that call"])
def test_a_subject_with_an_area_and_an_imperative_passes(subject):
    assert commits.fault(subject) == ""


@pytest.mark.parametrize(
    "subject",
    [
        "Owe nothing for what was moved",
        "pace: Cap unused credit",
        "pace: capped unused credit",
        "pace: cap unused credit.",
        "pace: " + "x" * 70,
    ],
)
def test_another_subject_is_refused(subject):
    assert commits.fault(subject) != ""


def test_clang_tidy_reads_each_batch_once_and_twice_where_it_distinguishes_the_mpis(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tidy_commands, "SOURCES", tmp_path / "src")
    texts = {"same.cpp": "int a;", "other.cpp": "int b;  // OPEN_MPI", "one_test.cpp": "int c;"}
    (tmp_path / "src").mkdir()
    for name, text in texts.items():
        (tmp_path / "src" / name).write_text(text)
    commands = []
    for mpi in ("mpich", "openmpi"):
        for number, name in enumerate(texts):
            batch = tmp_path / mpi / "Unity" / f"unity_{number}_cxx.cxx"
            batch.parent.mkdir(parents=True, exist_ok=True)
            batch.write_text(f'#include "{tmp_path / "src" / name}"\n')
            command = f"c++ -I/usr/{mpi}/include -Winvalid-pch -include /b/cmake_pch.hxx -c {batch}"
            commands.append({"directory": "/", "file": str(batch), "command": command})
    (tmp_path / "from").write_text(json.dumps(commands))
    tidy_commands.main(str(tmp_path / "from"), str(tmp_path / "to"))
    listed = [Path(line).relative_to(tmp_path).as_posix() for line in capsys.readouterr().out.splitlines()]
    assert listed == ["mpich/Unity/unity_0_cxx.cxx", "mpich/Unity/unity_1_cxx.cxx", "openmpi/Unity/unity_1_cxx.cxx"]
    written = {one["file"]: one["command"] for one in json.loads((tmp_path / "to").read_text())}
    assert all(str(tmp_path / file) in written for file in listed)
    assert not any("pch" in command for command in written.values())
