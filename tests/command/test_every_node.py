"""Jobs that may have several nodes ask each for libhocket before they start. A script stands for the launcher."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hocket import every_node, mpi, paths
from hocket.errors import HocketError
from runtime_kit import wait_until

APPLICATION = "/bin/true"
ANSWERS = 'for node in one two; do echo "[0] libhocket: same on $node"; done'
STARTS_NOTHING = "exit 1"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "libhocket.so"
    file.write_bytes(b"library")
    monkeypatch.setattr(paths, "libhocket", lambda _: file)
    monkeypatch.delenv(every_node.SLURM_NODES, raising=False)
    return file


@pytest.fixture
def launched(tmp_path: Path, library: Path):
    """Return a function that checks a job of these words, and returns what its launcher was started with."""
    launcher, started = tmp_path / "mpiexec", tmp_path / "started"

    def check(words: str, environment: dict[str, str] | None = None, script: str = ANSWERS) -> list[str]:
        record = f"for word; do printf '%s\\n' \"$word\" >> {started}; done"
        launcher.write_text(f"#!/bin/sh\n{record}\n{script}\n")
        launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
        command = [str(launcher), *words.split()]
        job = mpi.Job(command, launcher, mpi.MPICH, True, "app", APPLICATION, False, ())
        every_node.check(job, {"PATH": "/usr/bin:/bin", **(environment or {})})
        return started.read_text().splitlines() if started.exists() else []

    return check


@pytest.mark.parametrize(
    "words", ["", "-n 4", "-n 2 -host localhost", "-hosts=localhost,127.0.0.1 -n 2", "-bind-to core"]
)
def test_a_job_of_one_node_starts_nothing_more(launched, words: str):
    assert launched(f"{words} {APPLICATION} -host far") == []
    assert launched(f"{words} {APPLICATION}", {every_node.SLURM_NODES: "1"}) == []


@pytest.mark.parametrize(
    "words",
    [
        "-hosts one,two -n 2", "--host=one:2", "-H one -n 2", "-f hosts.txt", "--hostfile h -verbose",
        "-launcher ssh -hosts one,two", "-env MODE test -host one", "--mca plm_rsh_agent ssh -H one --map-by node",
    ],
)  # fmt: skip
@pytest.mark.parametrize("program", [APPLICATION, f"./wrapper {APPLICATION}", f"env A=b python3 {APPLICATION}"])
def test_a_shell_takes_the_place_of_each_rank(launched, library: Path, words: str, program: str):
    """Nothing of the user's is started, whatever stands before the application."""
    comparison = ["/bin/sh", "-c", every_node.COMPARE, every_node.checksum([library]), str(library)]
    assert launched(f"{words} {program} argument") == [*words.split(), *comparison]


@pytest.mark.parametrize("words", ["-configfile f", "-hosts one,two -new-option ./app", "-hosts one,two", "-hosts"])
def test_a_command_that_is_not_understood_starts_nothing(launched, words: str):
    assert launched(words, {"HYDRA_HOST_FILE": "f"}, script=STARTS_NOTHING) == []


@pytest.mark.parametrize("variable", [*every_node.VARIABLES, every_node.SLURM_NODES])
def test_hosts_that_the_environment_names_count(launched, variable: str):
    found = launched(f"-n 1 {APPLICATION} : -n 1 env A=b {APPLICATION} x", {variable: "2"})
    assert [word for word in found if word in ("-n", "1", ":", "env", "A=b", "/bin/sh", "x")] == [
        "-n", "1", "/bin/sh", ":", "-n", "1", "/bin/sh",
    ]  # fmt: skip


def test_files_of_output_are_not_written_over(launched):
    found = launched(f"-outfile-pattern out.%r -n 2 -errfile-pattern=err -f h {APPLICATION}")
    assert found[:5] == ["-n", "2", "-f", "h", "/bin/sh"]


def test_nodes_that_lack_it_are_named(launched, library: Path):
    script = 'echo "[0] libhocket: another on b"; echo "libhocket: another on a"; echo "libhocket: same on c"'
    with pytest.raises(HocketError, match=f"^a and 1 more: there is no {library}, or it is another version's$"):
        launched(f"-n 3 -f h {APPLICATION}", script=script)


@pytest.mark.parametrize(
    "script", [STARTS_NOTHING, "true", "printf 'J\\344\\366\\n'", 'echo "$@"; echo "libhocket: same on one"']
)
def test_silence_is_no_answer(launched, script: str):
    """Of two ranks, none or one answers; a launcher that shows what it starts has not started it."""
    with pytest.raises(HocketError, match=r"^not all nodes have said that they have libhocket$"):
        launched(f"-n 2 -f h {APPLICATION}", script=script)


@pytest.mark.parametrize("script", ["sleep 60", "setsid sleep 60 & sleep 60"])
def test_a_launcher_that_hangs_is_not_awaited_for_ever(launched, monkeypatch, script: str):
    """Also if it has started a process in a session of its own, which holds the output open."""
    monkeypatch.setattr(every_node, "LIMIT_S", 0.2)
    with pytest.raises(HocketError, match=r"not all nodes have said within 0\.2 s that they have libhocket"):
        launched(f"-f h {APPLICATION}", script=script)


def test_a_library_that_cannot_be_read_is_an_error_in_words(launched, library: Path):
    library.unlink()
    with pytest.raises(HocketError, match="cannot compare libhocket on all nodes"):
        launched(f"-f h {APPLICATION}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_the_check_leaves_nothing_behind(tmp_path: Path, number: signal.Signals):
    launcher, begun = tmp_path / "mpiexec", tmp_path / "begun"
    # A signal in the instant in which the launcher is started would still leave it behind.
    launcher.write_text(f"#!/bin/sh\nsleep 1\necho $$ > {begun}\nexec sleep 60\n")
    launcher.chmod(0o755)
    script = (
        "from pathlib import Path; from hocket import every_node, mpi, paths; "
        f"paths.libhocket = lambda _: Path({str(launcher)!r}); "
        f"every_node.check(mpi.Job([{str(launcher)!r}, '-f', 'h', {APPLICATION!r}], Path({str(launcher)!r}), "
        f"mpi.MPICH, True, 'app', {APPLICATION!r}, False, ()), {{}})"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        wait_until(lambda: begun.exists() and begun.read_text().endswith("\n"), 30, "the start of the launcher")
        os.kill(process.pid, number)
        assert process.wait(30) == 128 + number
    wait_until(lambda: not Path(f"/proc/{int(begun.read_text())}").exists(), 10, "the end of the launcher")


def test_the_comparison_finds_another_file_and_none(tmp_path: Path):
    same, other = tmp_path / "same", tmp_path / "other"
    same.write_bytes(b"library"), other.write_bytes(b"another")

    def said(*files: Path) -> str:
        words = ["/bin/sh", "-c", every_node.COMPARE, every_node.checksum([same]), *map(str, files)]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    node = os.uname().nodename
    assert said(same) == f"libhocket: same on {node}\n"
    for files in ([other], [tmp_path / "none"], [same, same]):
        assert every_node.ANSWER.findall(said(*files)) == [("another", node)]
    assert every_node.ANSWER.findall(every_node.COMPARE) == [], "a launcher that shows the script gives no answer"
