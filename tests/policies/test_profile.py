"""hocket profile: points from the events of runs, refusals, the store, and real programs at several sizes."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from apps_kit import PREFIX
from hocket.analysis import Application, Iterations, Phase
from hocket.cli import main
from hocket.errors import UsageError
from hocket.mpi import MPICH, Job
from hocket.profile import exchange
from hocket.profile.measure import count_of, with_count, without_count
from hocket.profile.points import Point, points_from, rises
from hocket.profile.store import Profile, Store, fingerprint_of
from hocket.reconfigurations import Reconfiguration
from hocket.verbs.profile import sizes_of
from mpi_launch import Mpi
from PIL import Image

S = 1_000_000_000
LIMIT_S = 150
BYTES = "ab" * 32
POINTS = (Point(1, 4.0, 0.1, 2.0, 0.2, 5, 1e9, 1000.0), Point(2, 2.2, 0.1, 1.5, 0.2, 5, 1e9, 1001.0))
JACOBI = Profile("jacobi", BYTES, "mpich", "--system a.bin", POINTS)


@pytest.fixture(autouse=True)
def data_home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def stored(data_home) -> Store:
    store = Store(data_home / "hocket" / "profiles.db", write=True)
    store.put(JACOBI)
    return store


def complaint(capsys, *words: str, code: int = 1) -> str:
    """Return the one line that a wrong call or a wrong file produces."""
    assert main(["profile", *words]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1), captured
    return captured.err.removeprefix("hocket: ").rstrip("\n")


# ---- points from runs ---------------------------------------------------------------------------------------------


def phase(index: int, *, member: int = 1, processes: int = 0, compute_s: float, comm_s=0.0, io_s=0.5, **more) -> Phase:
    start = (10 + index * 10) * S
    figures = {
        "cpu_ns": round((compute_s - comm_s) * S),
        "comm_ns": round(comm_s * S),
        "io_ns": round(io_s * S),
        "wait_ns": 0,
    }
    figures |= {"operations": 1, "bytes_read": 0, "bytes_written": 1, "target": "t"}
    return Phase(
        member=member, index=index, start_ns=start, end_ns=start + 2 * S, processes=processes, **figures, **more
    )


def test_iterations_between_two_phases_divide_the_period():
    phases = [phase(at, compute_s=8.0, iteration=100 + 4 * at, processes=2, flop=40.0) for at in range(4)]
    (point,) = points_from([Application("a", phases=phases)], 7.0)
    assert point == Point(2, 2.0, 0.0, 0.5, 0.0, 2, 10.0, 7.0, 0.0)  # the first period of a size does not count


def test_communication_is_apart_from_computing():
    phases = [phase(at, compute_s=8.0, comm_s=2.0, iteration=100 + 4 * at, processes=2) for at in range(4)]
    (point,) = points_from([Application("a", phases=phases)])
    assert (point.iteration_s, point.comm_s, point.cpu_s) == (2.0, 0.5, 1.5)
    assert Point(2, 2.0).cpu_s is None


def test_where_all_processes_told_it_a_profile_has_their_mean():
    def told(at: int) -> dict[str, int]:
        return {"told_processes": 2, "all_cpu_ns": 2 * 3 * at * S, "all_comm_ns": 2 * 5 * at * S}

    phases = [phase(at, compute_s=8.0, comm_s=2.0, iteration=4 * at, processes=2, **told(at)) for at in range(4)]
    (point,) = points_from([Application("a", phases=phases)])
    assert (point.iteration_s, point.comm_s, point.cpu_s) == (2.0, 1.25, 0.75)
    beside = [phase(at, compute_s=8.0, comm_s=2.0, iteration=4 * at, processes=4, **told(at)) for at in range(4)]
    (point,) = points_from([Application("a", phases=beside)])
    assert (point.iteration_s, point.comm_s) == (2.0, 0.5), "not all told it"


def test_phases_with_no_iteration_between_them_are_the_io_of_one_period():
    phases = []
    for at in range(4):
        phases.append(phase(3 * at, compute_s=8.0, iteration=100 + 4 * at, processes=2))
        phases.append(phase(3 * at + 1, compute_s=0.0, io_s=0.25, iteration=100 + 4 * at, processes=2))
    (point,) = points_from([Application("a", phases=phases)])
    assert (point.iteration_s, point.io_s, point.samples) == (2.0, 0.75, 2)


def test_where_there_is_no_io_the_reports_of_iterations_count():
    reports = [Iterations(at * S, 2, 10, round(seconds * 10 * S)) for at, seconds in enumerate((9.0, 0.2, 0.4))]
    reports += [Iterations((4 + at) * S, 4, 20, 3 * S) for at in range(3)]
    two, four = points_from([Application("a", iterations=reports, flop_per_iteration=3.0)], 7.0)
    assert (two.processes, two.iteration_s, two.io_s, two.samples) == (2, pytest.approx(0.3), 0.0, 2)
    assert four == Point(4, 0.15, 0.0, 0.0, 0.0, 2, 3.0, 7.0, 0.0)
    phases = [phase(at, compute_s=8.0, iteration=100 + 4 * at, processes=2) for at in range(4)]
    assert points_from([Application("a", phases=phases, iterations=reports)])[0].iteration_s == 2.0


def test_what_was_counted_goes_before_what_was_declared():
    for flop, expected in ((40.0, 10.0), (0.0, 3.0)):
        phases = [phase(at, compute_s=8.0, iteration=100 + 4 * at, processes=2, flop=flop) for at in range(4)]
        (point,) = points_from([Application("a", phases=phases, flop_per_iteration=3.0)])
        assert point.flop_per_iteration == expected


def test_without_control_points_a_period_is_an_iteration():
    phases = [phase(at, compute_s=seconds) for at, seconds in enumerate((99, 99, 3.0, 5.0))]
    (point,) = points_from([Application("a", processes=4, phases=phases)])
    assert (point.processes, point.iteration_s, point.samples) == (4, 4.0, 2)
    assert point.iteration_spread_s == pytest.approx(2**0.5)


def test_periods_with_a_reconfiguration_and_the_first_ones_after_it_are_left_out():
    seconds = [50, 50, 4, 4, 77, 66, 1, 1]
    phases = [phase(at, compute_s=one, iteration=at, processes=1 if at < 4 else 2) for at, one in enumerate(seconds)]
    resize = Reconfiguration("a", phases[3].end_ns + S, done=True, sources=1, targets=2)
    found = points_from([Application("a", phases=phases, reconfigurations=[resize])])
    assert [(point.processes, point.iteration_s, point.samples) for point in found] == [(1, 4.0, 2), (2, 1.0, 2)]


def test_members_without_control_points_do_not_spoil_those_that_have_them():
    told = [phase(at, compute_s=6.0, iteration=3 * at, processes=2) for at in range(5)]
    others = [phase(at, compute_s=6.0, member=2, processes=2) for at in range(5)]
    again = [phase(at, compute_s=6.0, member=3, processes=2, iteration=3 * at) for at in range(4)]
    own = [phase(at, compute_s=1.0, member=4, processes=2, iteration=3 * at, of_one_process=True) for at in range(9)]
    (point,) = points_from([Application("a", phases=[*others, *told, *again, *own])])
    assert (point.iteration_s, point.samples) == (2.0, 3)


def test_too_few_phases_make_no_point():
    assert points_from([Application("a", processes=1, phases=[phase(at, compute_s=1.0) for at in range(3)])]) == []


def test_mean_and_spread_come_back_from_drawn_periods():
    rng = random.Random(4)
    phases = [phase(at, compute_s=rng.gauss(3.0, 0.3), io_s=rng.gauss(1.0, 0.1), processes=1) for at in range(402)]
    (point,) = points_from([Application("a", phases=phases)])
    assert point.iteration_s == pytest.approx(3.0, rel=0.02)
    assert point.iteration_spread_s == pytest.approx(0.3, rel=0.15)
    assert (point.io_s, point.samples) == (pytest.approx(1.0, rel=0.02), 400)


def test_a_time_that_rises_with_processes_is_worth_a_word_beyond_its_spread():
    assert list(rises([Point(1, 2.0), Point(2, 2.1), Point(4, 2.6)])) == [
        "iteration_s = 2.6 of 4 processes is above the 2.1 of 2"
    ]
    assert list(rises([Point(1, 2.0, 0.2), Point(2, 2.5, 0.2)])) == []


# ---- sizes and commands -------------------------------------------------------------------------------------------


def test_sizes_are_powers_of_two_up_to_what_is_started():
    assert (sizes_of(None, 8), sizes_of(None, 6), sizes_of(None, 1)) == ([1, 2, 4, 8], [1, 2, 4, 6], [1])
    assert sizes_of("4,1,4", 8) == [1, 4]
    for wrong in ("0,2", "two", "", ",".join(map(str, range(1, 90)))):
        with pytest.raises(UsageError, match="--sizes"):
            sizes_of(wrong, 8)


def job(*command: str) -> Job:
    return Job(list(command), Path("/bin/true"), MPICH, True, "app", "sh")


def test_the_count_of_the_launcher_is_replaced_and_not_the_programs():
    given = job("mpiexec", "-genv", "A", "1", "-n", "8", "sh", "-n", "3")
    assert count_of(given) == 8
    assert with_count(given, 2).command == ["mpiexec", "-genv", "A", "1", "-n", "2", "sh", "-n", "3"]
    assert without_count(given).command == ["mpiexec", "-genv", "A", "1", "sh", "-n", "3"]
    bare = job("mpiexec", "sh", "-n", "3")
    assert (count_of(bare), with_count(bare, 2).command) == (None, ["mpiexec", "-n", "2", "sh", "-n", "3"])
    with pytest.raises(UsageError, match="several programs"):
        with_count(job("mpiexec", "-n", "1", "sh", ":", "-n", "1", "sh"), 2)
    with pytest.raises(UsageError, match="no number of processes"):
        count_of(job("mpiexec", "-n", "x", "sh"))


@pytest.mark.parametrize("words", [[], ["--"], ["shwo"], ["show"], ["show", "a", "b"], ["ls", "--colour"], ["rm"]])
def test_a_wrong_call_is_exit_code_2(capsys, words):
    complaint(capsys, *words, code=2)


# ---- the store ----------------------------------------------------------------------------------------------------


def test_the_store_has_the_schema_that_hocketd_reads(stored):
    with sqlite3.connect(stored.path) as database:
        assert database.execute("SELECT value FROM meta WHERE key = 'schema'").fetchall() == [("1",)]
        row = database.execute("SELECT * FROM point ORDER BY processes").fetchone()
    assert row == ("jacobi", BYTES, "mpich", 1, 4.0, 0.1, 2.0, 0.2, 5, 1e9, 1000.0, "--system a.bin", -1.0)


def test_a_store_without_communication_is_read_and_extended(stored, data_home):
    with sqlite3.connect(stored.path) as database:
        database.execute("ALTER TABLE point DROP COLUMN comm_s")
    assert Store(stored.path).profiles() == [JACOBI]
    store = Store(stored.path, write=True)
    told = Profile("cg", BYTES, "mpich", "", (Point(1, 4.0, comm_s=1.0),))
    store.put(told)
    assert store.profiles() == [told, JACOBI]


def test_ls_show_and_rm(stored, capsys, tmp_path):
    assert main(["profile", "ls"]) == 0
    row = capsys.readouterr().out.splitlines()[1]
    assert row.split()[:3] == ["jacobi", BYTES[:12], "mpich"]
    assert "1, 2" in row
    assert main(["profile", "ls", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["processes"] == [1, 2]
    picture = tmp_path / "curve.png"
    assert main(["profile", "show", "jacobi", "--plot", str(picture)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split() == ["2", "2.2", "±", "0.1", *["not", "known"] * 2, "1.82", "1.5", "±", "0.2", "5", "1e+09"]
    assert Image.open(picture).size[0] > 1000
    assert main(["profile", "rm", "jacobi"]) == 0
    assert stored.profiles() == []
    capsys.readouterr()
    assert "no profile of 'jacobi'" in complaint(capsys, "show", "jacobi")


def test_no_store_is_an_empty_one(capsys, data_home):
    assert main(["profile", "ls"]) == 0
    assert capsys.readouterr().out == f"no profile in {data_home}/hocket/profiles.db\n"
    assert not data_home.exists()


def test_another_program_of_the_same_name_is_kept_beside_it(stored, capsys, tmp_path):
    other = Profile("jacobi", "cd" * 32, "mpich", "", (Point(1, 9.0),))
    (tmp_path / "p.json").write_text(exchange.text_of([other]))
    assert main(["profile", "import", str(tmp_path / "p.json")]) == 0
    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith(
        f"hocket: {tmp_path}/p.json: profiles[0]: program = 'jacobi' is stored with another content too (fingerprint "
        "abab"
    )
    assert len(stored.profiles("jacobi")) == 2
    assert "name one of jacobi@" in complaint(capsys, "rm", "jacobi", code=2)
    assert main(["profile", "rm", "jacobi@cd"]) == 0
    assert [one.fingerprint for one in stored.profiles()] == [BYTES]


def test_what_is_no_store_is_named_and_not_touched(data_home, capsys, tmp_path):
    path = data_home / "hocket" / "profiles.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database, but somebody's" * 50)
    assert str(path) in complaint(capsys, "ls")
    assert path.read_bytes().startswith(b"not a database")
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE mine(a)")
    assert "is a database of something else" in complaint(capsys, "ls")
    (tmp_path / "p.json").write_text(exchange.text_of([JACOBI]))
    assert "is a database of something else" in complaint(capsys, "import", str(tmp_path / "p.json"))


def test_a_store_of_another_version_is_left_alone(stored, capsys):
    with sqlite3.connect(stored.path) as database:
        database.execute("UPDATE meta SET value = '2'")
    assert f"{stored.path}: schema = 2: this hocket reads 1" in complaint(capsys, "ls")


def test_a_spoilt_value_in_the_store_is_named(stored, capsys):
    with sqlite3.connect(stored.path) as database:
        database.execute("UPDATE point SET iteration_s = -1 WHERE processes = 2")
    assert f"{stored.path}: jacobi, 2 processes: iteration_s = -1" in complaint(capsys, "show", "jacobi")


# ---- export and import --------------------------------------------------------------------------------------------


def test_what_is_exported_can_be_imported_elsewhere(stored, capsys, tmp_path):
    file, elsewhere = tmp_path / "all.json", tmp_path / "other" / "profiles.db"
    assert main(["profile", "export", str(file)]) == 0
    assert main(["profile", "--store", str(elsewhere), "import", str(file)]) == 0
    assert Store(elsewhere).profiles() == [JACOBI]
    assert main(["profile", "--store", str(elsewhere), "import", str(file)]) == 0  # a repetition changes nothing
    assert Store(elsewhere).profiles() == [JACOBI]


def test_an_older_point_does_not_replace_a_later_one(stored, capsys, tmp_path):
    points = (Point(1, 8.0, measured_unix_s=999.0), Point(2, 3.0, measured_unix_s=2000.0), Point(4, 1.0))
    (tmp_path / "p.json").write_text(exchange.text_of([Profile("jacobi", BYTES, "mpich", "", points)]))
    assert main(["profile", "import", str(tmp_path / "p.json")]) == 0
    assert "processes = 1: iteration_s = 8 is older than the store's 4, which is kept" in capsys.readouterr().err
    (profile,) = stored.profiles()
    assert [(point.processes, point.iteration_s) for point in profile.points] == [(1, 4.0), (2, 3.0), (4, 1.0)]


def spoilt(change) -> str:
    told = json.loads(exchange.text_of([JACOBI]))
    change(told)
    return json.dumps(told)


def setting(key: str, value: object, at: int = 1):
    return spoilt(lambda told: told["profiles"][0]["points"][at].__setitem__(key, value))


def of_profile(key: str, value: object):
    return spoilt(lambda told: told["profiles"][0].__setitem__(key, value))


WRONG = {
    "no JSON": ("{", "no JSON"),
    "no profile": ("[]", "hocket_profile is missing"),
    "another version": ('{"hocket_profile": 2}', "hocket_profile = 2: this hocket reads version 1"),
    "nothing in it": ('{"hocket_profile": 1, "profiles": []}', "profiles = []"),
    "missing": (
        spoilt(lambda told: told["profiles"][0]["points"][1].pop("iteration_s")),
        "points[1]: iteration_s is missing",
    ),
    "negative": (setting("io_s", -1.5), "(jacobi): points[1]: io_s = -1.5: give a value from 0 to 1e+07"),
    "no time at all": (setting("iteration_s", 0), "points[1]: iteration_s = 0: an iteration takes more than 0"),
    "absurd": (setting("iteration_s", 1e9), "points[1]: iteration_s = 1e+09: give a value from 0"),
    "absurdly many": (setting("processes", 2**40), "points[1]: processes = 1.09951e+12"),
    "no process": (setting("processes", 0), "points[1]: processes = 0"),
    "half a process": (setting("processes", 1.5), "points[1]: processes = 1.5: give a whole number"),
    "not falling": (setting("processes", 1), "points[1]: processes = 1 after 1: sizes must rise"),
    "not a number": (setting("iteration_s", "fast"), "points[1]: iteration_s = 'fast'"),
    "infinite": (setting("iteration_s", float("inf")), "points[1]: iteration_s = inf"),
    "true": (setting("samples", True), "points[1]: samples = True"),
    "unknown": (setting("iteration_ms", 4), "points[1]: iteration_ms: unknown; there are: processes"),
    "a path": (of_profile("program", "/x/jacobi"), "program = '/x/jacobi'"),
    "no fingerprint": (of_profile("fingerprint", "12"), "fingerprint = '12'"),
    "no points": (of_profile("points", []), "points = []"),
    "a list": (spoilt(lambda told: told["profiles"].__setitem__(0, 5)), "profiles[0]: 5 is no profile"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_are_one_line_and_change_nothing(stored, capsys, tmp_path, name):
    text, words = WRONG[name]
    (tmp_path / "p.json").write_text(text)
    told = complaint(capsys, "import", str(tmp_path / "p.json"))
    assert told.startswith(f"{tmp_path}/p.json: ")
    assert words in told
    assert stored.profiles() == [JACOBI]


# ---- real programs ------------------------------------------------------------------------------------------------


def profile(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hocket.cli", "profile", *map(str, words)],
        env={**Mpi("mpich").environment(), "HOCKET_PREFIX": str(PREFIX), **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


@pytest.mark.timeout(LIMIT_S + 30)
def test_a_malleable_program_is_resized_through_the_sizes(tmp_path, data_home):
    program, mpiexec = Mpi("mpich").app("jacobi", PREFIX), Mpi("mpich").bin / "mpiexec"
    system = tmp_path / "system.bin"
    made = [mpiexec, "-n", "1", program, "--generate", "300", "--system", system, "--iterations", "0"]
    subprocess.run(made, env=Mpi("mpich").environment(), check=True, capture_output=True, timeout=LIMIT_S)
    steps = ["--iterations", 10**6, "--tolerance", 0, "--iteration-time", 0.02, "--print-every", 10**6]
    steps += ["--checkpoint-every", 20, "--checkpoint-dir", tmp_path]
    done = profile("--phases", 2, "--", mpiexec, "-n", 2, program, "--system", system, *steps)
    assert done.returncode == 0, done.stderr
    assert "one run, resized" in done.stderr
    (found,) = Store(data_home / "hocket" / "profiles.db").profiles()
    assert (found.program, found.mpi, found.fingerprint) == ("jacobi-mpich", "mpich", fingerprint_of(program))
    assert found.arguments.startswith("--system ")
    assert [point.processes for point in found.points] == [1, 2]
    written_s = sorted(file.stat().st_mtime for file in tmp_path.glob("checkpoint-*"))
    period_s = (written_s[-1] - written_s[0]) / (len(written_s) - 1)
    for point in found.points:
        assert 0.02 <= point.iteration_s < period_s / 4  # the time of one iteration, not of the period of 20
        assert point.samples >= 2
        assert point.io_s > 0


@pytest.mark.timeout(LIMIT_S + 30)
def test_a_malleable_program_that_only_computes_is_profiled(tmp_path, data_home):
    program, mpiexec = Mpi("mpich").app("jacobi", PREFIX), Mpi("mpich").bin / "mpiexec"
    system = tmp_path / "system.bin"
    made = [mpiexec, "-n", "1", program, "--generate", "100", "--system", system, "--iterations", "0"]
    subprocess.run(made, env=Mpi("mpich").environment(), check=True, capture_output=True, timeout=LIMIT_S)
    steps = ["--iterations", 10**6, "--tolerance", 0, "--emulate", "1:0.04,2:0.02", "--print-every", 10**6]
    done = profile("--phases", 2, "--", mpiexec, "-n", 2, program, "--system", system, *steps)
    assert done.returncode == 0, done.stderr
    (found,) = Store(data_home / "hocket" / "profiles.db").profiles()
    assert [point.processes for point in found.points] == [1, 2]
    assert [point.io_s for point in found.points] == [0, 0]
    for point, least_s in zip(found.points, (0.04, 0.02), strict=True):
        assert least_s <= point.iteration_s < 20 * least_s
        assert point.samples >= 2


@pytest.mark.timeout(LIMIT_S + 30)
def test_any_other_program_runs_once_for_each_size(tmp_path, data_home):
    source = tmp_path / "writer.c"
    source.write_text(WRITER)
    writer, mpiexec = tmp_path / "writer", Mpi("mpich").bin / "mpiexec"
    subprocess.run([Mpi("mpich").bin / "mpicc", source, "-o", writer], check=True, timeout=LIMIT_S)
    done = profile("--phases", 2, "--sizes", "1,2", "--", mpiexec, "-n", 1, writer, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "a run for each size" in done.stderr
    (found,) = Store(data_home / "hocket" / "profiles.db").profiles()
    assert [point.processes for point in found.points] == [1, 2]
    assert all(0.15 <= point.iteration_s < 10 for point in found.points)  # a period of 0.2 s each


@pytest.mark.timeout(LIMIT_S + 30)
def test_a_program_without_io_is_one_line_and_nothing_is_stored(tmp_path, data_home):
    source = tmp_path / "idle.c"
    source.write_text("#include <mpi.h>\nint main(int c, char** v) { MPI_Init(&c, &v); return MPI_Finalize(); }\n")
    idle, mpiexec = tmp_path / "idle", Mpi("mpich").bin / "mpiexec"
    subprocess.run([Mpi("mpich").bin / "mpicc", source, "-o", idle], check=True, timeout=LIMIT_S)
    done = profile("--sizes", "1", "--", mpiexec, idle)
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing was measured: the program ended after 0 I/O phases at 1 processes" in done.stderr.splitlines()[-1]
    assert Store(data_home / "hocket" / "profiles.db").profiles() == []


WRITER = """
#include <mpi.h>
#include <unistd.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  for (int phase = 0; phase < 1000; ++phase) {
    usleep(200000);
    MPI_File_write_at_all(file, 0, &phase, sizeof phase, MPI_BYTE, MPI_STATUS_IGNORE);
  }
  MPI_File_close(&file);
  return MPI_Finalize();
}
"""
