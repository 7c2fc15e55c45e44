"""Jobs that may have several nodes ask each for libhocket before they start. A script stands for the launcher."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest
from hocket import every_node, mpi, paths
from hocket.errors import HocketError

APPLICATION = "/bin/true"
LIBRARY = Path("/usr/lib/os-release")  # any file that can be read


@pytest.fixture
def launched(tmp_path, monkeypatch):
    """Return a function that checks a job of these words, and returns what its launcher was started with."""
    monkeypatch.setattr(paths, "libhocket", lambda _: LIBRARY)
    monkeypatch.delenv(every_node.SLURM_NODES, raising=False)
    launcher, started = tmp_path / "mpiexec", tmp_path / "started"

    def check(words: str, environment: dict[str, str] | None = None, script: str = "") -> list[str]:
        record = f"for word; do printf '%s\\n' \"$word\" >> {started}; done"
        launcher.write_text(f"#!/bin/sh\n{record}\n{script}\n")
        launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
        command = [str(launcher), *words.split()]
        job = mpi.Job(command, launcher, mpi.MPICH, True, "app", APPLICATION, False, ())
        every_node.check(job, {"PATH": "/usr/bin:/bin", **(environment or {})})
        return started.read_text().splitlines() if started.exists() else []

    return check


@pytest.mark.parametrize("words", ["-n 4", "-n 2 -host localhost", "-hosts=localhost,127.0.0.1 -n 2", "-bind-to core"])
def test_a_job_of_one_node_starts_nothing_more(launched, words):
    assert launched(f"{words} {APPLICATION} -host far") == []
    assert launched(f"{words} {APPLICATION}", {every_node.SLURM_NODES: "1"}) == []


@pytest.mark.parametrize(
    "words", ["-hosts one,two -n 2", "--host=one:2", "-H one -n 2", "-f hosts.txt", "--hostfile h"]
)
def test_a_shell_takes_the_place_of_each_rank(launched, words):
    expected = [*words.split(), "/bin/sh", "-c", every_node.COMPARE, every_node.checksum([LIBRARY]), str(LIBRARY)]
    # One of the script's words has line breaks in none of its arguments, so a line is a word.
    assert launched(f"{words} {APPLICATION} argument") == expected


@pytest.mark.parametrize("variable", [*every_node.VARIABLES, every_node.SLURM_NODES])
def test_hosts_that_the_environment_names_count(launched, variable):
    found = launched(f"-n 2 {APPLICATION} : -n 3 env A=b {APPLICATION} x", {variable: "2"})
    assert [word for word in found if word in ("-n", "2", "3", ":", "env", "A=b", "/bin/sh", "x")] == [
        "-n", "2", "/bin/sh", ":", "-n", "3", "env", "A=b", "/bin/sh",
    ]  # fmt: skip


def test_nodes_that_lack_it_are_named(launched):
    with pytest.raises(HocketError, match=f"^a and 1 more: there is no {LIBRARY}, or it is another version's$"):
        launched(f"-f h {APPLICATION}", script='echo "[0] libhocket differs on b"; echo "libhocket differs on a"')


def test_a_launcher_that_is_silent_is_not_awaited_for_ever(launched, monkeypatch):
    monkeypatch.setattr(every_node, "LIMIT_S", 0.2)
    with pytest.raises(HocketError, match=r"not all nodes have said within 0\.2 s that they have libhocket"):
        launched(f"-f h {APPLICATION}", script="sleep 60")


def test_a_launcher_that_fails_says_so_itself_when_it_starts_the_job(launched):
    assert launched(f"-f h {APPLICATION}", script="exit 3") != []


def test_the_comparison_finds_another_file_and_none(tmp_path):
    same, other = tmp_path / "same", tmp_path / "other"
    same.write_bytes(b"library"), other.write_bytes(b"another")

    def said(*files: Path) -> str:
        words = ["/bin/sh", "-c", every_node.COMPARE, every_node.checksum([same]), *map(str, files)]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    assert said(same) == ""
    for files in ([other], [tmp_path / "none"], [same, same]):
        assert every_node.DIFFERS.search(said(*files))
