"""`hocket capture` and the log of calls, with real programs under both MPIs."""

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
from malleable_kit import OPENMPI

pytestmark = pytest.mark.timeout(120)
LIMIT_S = 60


def stages_of(path: Path) -> dict[str, dict]:
    """Return the stages of the longest phase, by kind; of several of a kind, the one with the most time.

    On a busy machine a rank may lose its core between two calls, which then looks like a little computing.
    """
    phases = tomllib.loads(path.read_text())["phase"]
    longest = max(phases, key=lambda phase: phase["iterations"])
    stages = sorted(longest["stage"], key=lambda stage: stage.get("time_s", 0.0))
    return {stage["kind"]: stage for stage in stages} | {"iterations": longest["iterations"]}


def test_the_stages_of_a_program_are_found(hocket, mpi, built, tmp_path) -> None:
    output = tmp_path / "app.toml"
    done = hocket("capture", "-o", output, "--", *mpi.mpiexec, "-n", "2", built("captured.c"), tmp_path)
    assert done.returncode == 0, done.stderr
    found = stages_of(output)
    assert found["iterations"] == 40
    assert "compute" in found, output.read_text()
    assert found["compute"]["shares"]["2"] == pytest.approx([0.25, 0.75], abs=0.1), output.read_text()
    assert found["allreduce"]["bytes"] == 8
    assert found["allgatherv"]["bytes"] == 3000
    assert found["allgatherv"]["shares"]["2"] == pytest.approx([1 / 3, 2 / 3], abs=1e-4)
    # With two ranks, both neighbours are one. A rank that loses its core before the wait makes it a stage of its own.
    messages = next(found[kind] for kind in ("sendrecv", "halo", "isend-irecv") if kind in found)
    assert messages["bytes"] == 512, output.read_text()


def test_its_accesses_have_their_period_and_kind(hocket, mpi, built, tmp_path) -> None:
    output = tmp_path / "app.toml"
    done = hocket("capture", "-o", output, "--", *mpi.mpiexec, "-n", "2", built("captured.c"), tmp_path)
    assert done.returncode == 0, done.stderr
    phases = tomllib.loads(output.read_text())["phase"]
    writes = {
        stage["access"]: stage
        for stage in max(phases, key=lambda phase: phase["iterations"])["stage"]
        if stage["kind"] == "write"
    }
    together = writes["collective"]
    assert (together["every"], together["repeat"], together["bytes"]) == (10, 2, 2 * 65536)
    own = writes["file-per-process"]
    assert (own["every"], own["bytes"], own["request_bytes"], own.get("append")) == (10, 8000, 1000, True)


def test_the_ranks_extents_and_what_is_appended_are_found(hocket, mpi, built, tmp_path) -> None:
    output = tmp_path / "app.toml"
    done = hocket("capture", "-o", output, "--", *mpi.mpiexec, "-n", "2", built("strided.c"), tmp_path)
    assert done.returncode == 0, done.stderr
    phases = tomllib.loads(output.read_text())["phase"]
    stages = max(phases, key=lambda phase: phase["iterations"])["stage"]
    writes = {stage["access"]: stage for stage in stages if stage["kind"] == "write"}
    together, alone, shared = writes["collective"], writes["independent"], writes["posix"]
    told = ("pattern", "append", "repeat", "request_bytes", "bytes", "every")
    assert [together.get(key) for key in told] == ["strided", True, None, 1000, 8000, 5]
    assert [alone.get(key) for key in told] == [None, None, None, 1000, 8000, 5]
    assert [shared.get(key) for key in told] == ["strided", True, None, 1000, 8000, 5]


def test_a_resize_is_captured_and_emulated(hocket, mpi, prefix, tmp_path) -> None:
    output = tmp_path / "cg.toml"
    program = prefix / "lib" / "hocket" / "apps" / f"cg-{mpi.name}"
    words = ("--stencil", "24", "--iterations", "80", "--tolerance", "0", "--print-every", "80")
    resizable = OPENMPI | {"HOCKET_RESIZE": "40:2:baseline/collective"}
    done = hocket("capture", "-o", output, "--", *mpi.mpiexec, "-n", "1", program, *words, **resizable)
    assert done.returncode == 0, done.stderr
    found = tomllib.loads(output.read_text())
    first, second = found["group"]
    assert (first["processes"], second["processes"]) == (1, 2)
    assert sum(phase["iterations"] for phase in found["phase"]) == first["iterations"] + second["iterations"]
    assert (first["iterations"], second["iterations"]) == (pytest.approx(41, abs=1), pytest.approx(41, abs=1))
    assert (second["spawn"], second["redistribution"], second["worlds"]) == ("baseline", "collective", "process")
    # A row of the stencil has 27 nonzeros of 12 bytes or more, but at the surface.
    assert 24**3 * 20 * 12 < found["data"]["bytes"] < 24**3 * 27 * 24
    assert 80 < found["data"]["constant_percent"] < 100
    record = tmp_path / "record"
    done = hocket("emulate", output, "--mpi", mpi.name, "--dir", tmp_path, "--record", record, "--json", **OPENMPI)
    assert done.returncode == 0, done.stderr
    (resize,) = json.loads(done.stdout)["resizes"]
    assert (resize["from"], resize["to"]) == (1, 2)
    assert resize["bytes_moved"] + resize["bytes_kept"] == pytest.approx(found["data"]["bytes"], rel=0.01)


def test_a_description_is_valid(hocket, mpi, built, tmp_path) -> None:
    output = tmp_path / "app.toml"
    done = hocket("capture", "-o", output, "--", *mpi.mpiexec, "-n", "2", built("captured.c"), tmp_path)
    assert done.returncode == 0, done.stderr
    checked = hocket("emulate", "--check", output)
    assert checked.returncode == 0, checked.stderr


def test_a_program_that_fails_is_not_described(hocket, mpi, built, tmp_path) -> None:
    output = tmp_path / "app.toml"
    missing = tmp_path / "none"
    done = hocket("capture", "-o", output, "--", *mpi.mpiexec, "-n", "2", built("captured.c"), missing)
    assert done.returncode == 1
    assert "nothing is captured" in done.stderr
    assert not output.exists()


def test_a_program_without_mpi_is_told(hocket, mpi, tmp_path) -> None:
    done = hocket("capture", "-o", tmp_path / "app.toml", "--", *mpi.mpiexec, "-n", "1", "/bin/true")
    assert done.returncode == 1
    assert "no log of calls" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "no command given"),
        (("--processes", "0", "--", "true"), "--processes 0"),
        (("--processes", "2", "--", "mpiexec", "true"), "{processes}"),
        (("-o", "/etc/passwd", "--", "mpiexec", "true"), "exists"),
        (("-o", "/nowhere/x.toml", "--", "mpiexec", "true"), "/nowhere"),
    ],
)
def test_mistakes_are_one_line(prefix, hocket_dir, words, told) -> None:
    command = [prefix / "bin" / "hocket", "capture", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
