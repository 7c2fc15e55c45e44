"""The checks of words that `./dev lint` makes (lint/): they find what they are for, and pass what is right."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from checkout import REPO

sys.path.insert(0, str(REPO / "lint"))

import commits
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
