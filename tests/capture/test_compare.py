"""`hocket compare`: a short program and its emulation, run by turns, under both MPIs."""

import json
from pathlib import Path

import pytest
from hocket.capture.beside import HEADINGS, NAMES

pytestmark = pytest.mark.timeout(240)
mpich = pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
COMPUTED_S = 40 * 0.002  # CPU time of captured.c, mean over its ranks


@pytest.fixture
def described(hocket, mpi, built, tmp_path) -> tuple[Path, list]:
    """Return the description that was captured from a program, and the command of the program."""
    output = tmp_path / "app.toml"
    command = [*mpi.mpiexec, "-n", "2", built("captured.c"), tmp_path]
    done = hocket("capture", "-o", output, "--", *command)
    assert done.returncode == 0, done.stderr
    return output, command


def test_a_program_and_its_emulation_are_compared(hocket, described) -> None:
    output, command = described
    done = hocket("compare", "--json", "--repeat", "2", output, "--", *command)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["processes"] == 2
    found = {one["name"]: one for one in told["measures"]}
    assert list(found) == list(NAMES.values())
    for one in found.values():
        assert (one["real"]["samples"], one["emulated"]["samples"]) == (2, 2), one
        if one["ratio"] is not None:
            assert one["ratio"] == pytest.approx(one["emulated"]["median"] / one["real"]["median"]), one
    for name in ("elapsed", "computing", "CPU"):
        assert found[name]["real"]["median"] >= COMPUTED_S, found[name]
        assert found[name]["emulated"]["median"] >= COMPUTED_S / 2, f"it computes as the program does: {found[name]}"
    for name in ("communication", "I/O"):
        assert found[name]["real"]["median"] > 0 and found[name]["emulated"]["median"] > 0, found[name]
    assert found["control points"]["ratio"] is None, "the program is not malleable"


@mpich
def test_the_comparison_is_a_table(hocket, described) -> None:
    output, command = described
    done = hocket("compare", "--repeat", "1", output, "--", *command)
    assert done.returncode == 0, done.stderr
    heading, *rows = done.stdout.splitlines()
    assert all(one in heading for one in HEADINGS), done.stdout
    assert len(rows) == len(NAMES)
    for row, name in zip(rows, NAMES.values(), strict=True):
        assert row.startswith(name) and row.removeprefix(name).split()[0] == "1", row


@mpich
def test_a_program_that_fails_is_not_compared(hocket, mpi, described, tmp_path) -> None:
    output, command = described
    done = hocket("compare", "--repeat", "1", output, "--", *command[:-1], tmp_path / "none")
    assert done.returncode == 1 and done.stdout == ""
    (told,) = [line for line in done.stderr.splitlines() if "nothing is captured" in line]
    assert "hocket: exit code " in told and "captured-mpich" in told


@mpich
def test_mistakes_are_told_before_the_program_runs(hocket, mpi, built, tmp_path) -> None:
    command = [*mpi.mpiexec, "-n", "1", built("captured.c"), tmp_path]
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('name = "a"\nseed = "x"\n')
    for words, told in (
        ((wrong, "--", *command), f"hocket: {wrong}, line 2: seed = 'x' must be a whole number"),
        ((tmp_path / "none.toml", "--", *command), "hocket: cannot read "),
        (("--repeat", "0", wrong, "--", *command), "hocket: --repeat 0: give 1 to 1000 runs"),
        ((wrong, *command), f"hocket: '{command[0]}' follows the description"),
        ((wrong,), "hocket: no command given"),
    ):
        done = hocket("compare", *words)
        assert done.returncode == 2 and done.stderr.startswith(told), done.stderr
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "shared").exists(), "the program ran"
