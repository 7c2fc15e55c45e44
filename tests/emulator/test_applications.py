"""The applications of scenarios/applications: the checker accepts each, and they do what their sources say."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkout import REPO
from hocket.emulator.description import Description, Stage, read_description

APPLICATIONS = sorted((REPO / "scenarios" / "applications").glob("*.toml"))


def read(name: str) -> Description:
    return read_description(Path(REPO) / "scenarios" / "applications" / f"{name}.toml")


def accesses(description: Description) -> list[tuple[Stage, int]]:
    """Return the stages that do I/O, each with its bytes in the run."""
    return [
        (stage, stage.bytes * stage.repeat * (phase.iterations // stage.every))
        for phase in description.phases
        for stage in phase.stages
        if stage.file is not None
    ]


@pytest.mark.parametrize("path", APPLICATIONS, ids=lambda path: path.stem)
def test_the_checker_accepts_each(path: Path) -> None:
    description = read_description(path)
    assert description.stages and path.read_text().startswith("# ")  # with its source


def test_the_conjugate_gradient_takes_the_seconds_of_the_authors_files() -> None:
    queen = read("cg-queen")
    (spmv, dots, vector) = queen.stages
    assert spmv.factors is not None and spmv.time_s is not None
    # Stage_Time * FactorS of each size
    seconds = {2: 0.6085314, 10: 0.1241820, 20: 0.0711090, 40: 0.0356126, 80: 0.0184974, 120: 0.0131120, 160: 0.0101088}
    assert {size: spmv.time_s * factor for size, factor in spmv.factors.items()} == pytest.approx(seconds, rel=1e-4)
    assert (dots.bytes, dots.repeat, vector.bytes) == (8, 2, 33_176_880)
    assert queen.data.constant_bytes == pytest.approx(3_813_655_464, abs=1)
    assert [(one.processes, one.iterations) for one in queen.groups] == [(20, 500), (160, 500)]
    audik = read("cg-audik")
    compute, _, gather = audik.stages
    for stage, times in ((compute, (0.06233490507, 0.005945100158)), (gather, (0.002300792203, 0.006053052042))):
        assert stage.factors is not None and stage.time_s is not None
        assert [stage.time_s * stage.factors[size] for size in (10, 160)] == pytest.approx(times, rel=1e-5)


def test_the_kernels_do_the_io_of_section_5_1() -> None:
    hacc = read("hacc-io")
    assert sum(bytes_ for _, bytes_ in accesses(hacc)) == hacc.groups[0].processes * (24_000_000 + 100_000 * 38)
    assert {stage.access for stage, _ in accesses(hacc)} == {"file-per-process"}
    s3d = [stage for stage, _ in accesses(read("s3d-io"))]
    assert len({stage.file for stage in s3d}) == len(s3d) == 5 and all(stage.sync for stage in s3d)
    mad = accesses(read("madbench2"))
    assert [(stage.kind, sum(share > 0 for share in stage.shares[32])) for stage, _ in mad] == [
        ("write", 8),
        ("read", 8),
        ("write", 4),
        ("read", 4),
    ]
    assert mad[0][1] == mad[1][1] > mad[2][1] == mad[3][1]
    assert len({stage.file for stage, _ in mad}) == 1
    ((results, _),) = accesses(read("s3asim"))
    assert (results.kind, results.access, results.append) == ("write", "posix", True)
