"""The Jacobi solver alone, on each MPI: what it computes, what it writes, and how it fails."""

import itertools
import struct
from pathlib import Path

import numpy as np
import pytest
from apps_kit import runner
from mpi_launch import MPIS

HEADER = struct.Struct("<8sIIQQd24x")
LIMIT_S = 100
SPAWNING = {"MPIR_CVAR_CH4_NETMOD": "ofi", "OMPI_MCA_coll": "^han"}  # both MPIs need this to spawn: docs/malleable.md


class State:
    """A system or checkpoint file, read independently of the solver."""

    def __init__(self, path: Path):
        data = path.read_bytes()
        self.magic, self.version, _, self.n, self.iteration, self.residual = HEADER.unpack_from(data)
        records = np.frombuffer(data, dtype="<f8", offset=64).reshape(self.n, self.n + 2)
        self.x, self.b, self.a = records[:, 0], records[:, 1], records[:, 2:]


@pytest.fixture(params=MPIS)
def jacobi(request):
    return runner("jacobi", request.param, LIMIT_S)


@pytest.fixture
def jacobi_mpich():
    """Run jacobi under MPICH only, for refusals that come before the first MPI-IO."""
    return runner("jacobi", "mpich", LIMIT_S)


def test_help_is_printed_once(jacobi):
    assert jacobi(2, "--help").stdout.count("--checkpoint-every K") == 1


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
def test_converges_to_the_known_solution(jacobi, tmp_path, ranks):
    n = 37  # divisible by no number of ranks but 1
    system = tmp_path / "system.jacobi"
    done = jacobi(ranks, "--system", system, "--generate", n, "--checkpoint-every", 50, "--checkpoint-dir", tmp_path)
    state = State(sorted(tmp_path.glob("checkpoint-*"))[-1])
    assert done.summary["ranks"] == ranks
    assert done.summary["residual"] <= 1e-10 * done.summary["b_norm"]
    assert np.allclose(State(system).a @ (np.arange(1, n + 1) / n), state.b)
    assert np.allclose(np.linalg.solve(state.a, state.b), np.arange(1, n + 1) / n)
    assert np.allclose(state.x, np.arange(1, n + 1) / n, atol=1e-3)


def test_more_ranks_than_rows(jacobi, tmp_path):
    done = jacobi(
        5,
        "--system",
        tmp_path / "s",
        "--generate",
        3,
        "--checkpoint-every",
        4,
        "--checkpoint-dir",
        tmp_path,
        "--verify",
    )
    assert done.summary["verified"] == done.summary["checkpoints"] > 0


def test_the_system_does_not_depend_on_the_number_of_ranks(jacobi, tmp_path):
    for ranks in (1, 3):
        jacobi(ranks, "--system", tmp_path / f"{ranks}", "--generate", 20, "--seed", 7, "--iterations", 0)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "3").read_bytes()
    jacobi(1, "--system", tmp_path / "other", "--generate", 20, "--seed", 8, "--iterations", 0)
    assert (tmp_path / "1").read_bytes() != (tmp_path / "other").read_bytes()


def test_the_printed_residual_is_real_and_falls(jacobi, tmp_path):
    system = tmp_path / "system.jacobi"
    done = jacobi(2, "--system", system, "--generate", 30, "--iterations", 12, "--print-every", 1, "--tolerance", 0)
    printed = [float(line.split()[3]) for line in done.stdout.splitlines() if line.startswith("iteration")]
    state, x, expected = State(system), np.zeros(30), []
    for _ in range(12):
        r = state.b - state.a @ x
        expected.append(np.linalg.norm(r))
        x += r / np.diag(state.a)
    assert np.allclose(printed, expected)
    assert all(later < earlier for earlier, later in itertools.pairwise(printed))
    assert np.isclose(done.summary["residual"], np.linalg.norm(state.b - state.a @ x))


@pytest.mark.parametrize("chunk_bytes", [1, 1000, 1 << 30])
def test_checkpoint_holds_the_whole_state(jacobi, tmp_path, chunk_bytes):
    system = tmp_path / "system.jacobi"
    done = jacobi(
        3,
        "--system",
        system,
        "--generate",
        31,
        "--iterations",
        25,
        "--checkpoint-every",
        10,
        "--checkpoint-dir",
        tmp_path,
        "--verify",
        "--chunk-bytes",
        chunk_bytes,
        "--tolerance",
        0,
    )
    names = [path.name for path in sorted(tmp_path.glob("checkpoint-*"))]
    assert names == ["checkpoint-000010.jacobi", "checkpoint-000020.jacobi"]
    assert (done.summary["checkpoints"], done.summary["verified"]) == (2, 2)
    assert done.summary["checkpoint_bytes"] == 2 * (64 + 31 * 33 * 8)
    first, state = State(system), State(tmp_path / names[1])
    x = np.zeros(31)
    for _ in range(20):
        residual = np.linalg.norm(first.b - first.a @ x)
        x = x + (first.b - first.a @ x) / np.diag(first.a)
    assert (state.magic, state.version, state.iteration) == (b"JACOBI\r\n", 1, 20)
    assert np.array_equal(state.a, first.a) and np.array_equal(state.b, first.b)
    assert np.allclose(state.x, x, rtol=1e-12) and np.isclose(state.residual, residual)


def test_restart_goes_on_bit_for_bit(jacobi, tmp_path):
    through, again = tmp_path / "through", tmp_path / "again"
    through.mkdir()
    again.mkdir()
    common = ["--iterations", 40, "--checkpoint-every", 20, "--tolerance", 0, "--print-every", 5]
    done = jacobi(3, "--system", tmp_path / "s", "--generate", 50, "--checkpoint-dir", through, *common)
    restarted = jacobi(3, "--restart", through / "checkpoint-000020.jacobi", "--checkpoint-dir", again, *common)
    last = "checkpoint-000040.jacobi"
    assert (through / last).read_bytes() == (again / last).read_bytes()
    assert done.summary["residual"] == restarted.summary["residual"]
    later = [line for line in done.stdout.splitlines() if line.startswith("iteration") and int(line.split()[1]) > 20]
    assert later == [line for line in restarted.stdout.splitlines() if line.startswith("iteration")]


def test_grows_and_shrinks_with_the_same_numbers(jacobi, tmp_path):
    """Check that a resized run has the residuals, the solution, and the checkpoint of a run without resizes, bit for
    bit.
    """
    common = ["--system", tmp_path / "s", "--print-every", 1, "--iterations", 30, "--tolerance", 0]
    common += ["--checkpoint-every", 30, "--verify", "--checkpoint-dir"]
    runs = []
    for name, resizes in (("alone", ""), ("resized", "5:4,20:1")):
        (tmp_path / name).mkdir()
        made = ["--generate", 50] if name == "alone" else []
        done = jacobi(2, *common, tmp_path / name, *made, HOCKET_RESIZE=resizes, **SPAWNING)
        lines = [line for line in done.stdout.splitlines() if line.startswith("iteration")]
        runs.append((lines, done.summary["residual"], (tmp_path / name / "checkpoint-000030.jacobi").read_bytes()))
    assert done.summary["ranks"] == 1
    assert runs[0] == runs[1]


def test_iteration_time_is_kept_and_reported(jacobi, tmp_path):
    done = jacobi(
        2, "--system", tmp_path / "s", "--generate", 10, "--iterations", 10, "--iteration-time", 0.03, "--tolerance", 0
    )
    assert done.summary["seconds"] >= 0.3
    assert 0 < done.summary["padded_seconds"] <= 0.31
    assert done.summary["iteration_time_s"] == 0.03


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--system FILE or --restart FILE"),
        (["--system", "a", "--restart", "b"], "either --system"),
        (["--system", "a", "--frob"], "unknown option --frob"),
        (["--system"], "--system needs a value"),
        (["--system", "a", "b"], "unexpected argument b"),
        (["--system", "a", "--iterations", "many"], "--iterations many: give a whole number"),
        (["--system", "a", "--generate", "0"], "--generate 0: give a whole number from 1"),
        (["--system", "a", "--tolerance", "nan"], "--tolerance nan"),
        (["--system", "a", "--checkpoint-every", "3"], "--checkpoint-every needs --checkpoint-dir"),
        (["--restart", "a", "--generate", "3"], "--generate needs --system"),
        (["--system", "/nonesuch/a"], "cannot read /nonesuch/a: No such file"),
    ],
)
def test_bad_arguments_are_one_line_and_code_2(jacobi_mpich, arguments, words):
    done = jacobi_mpich(2, *arguments, code=2)
    assert len(done.complaints) == 1 and words in done.complaints[0], done.stderr


def system_of(a, b):
    """Return the bytes of a system file, made independently of the solver."""
    records = np.column_stack([np.zeros(len(b)), b, a]).astype("<f8")
    return HEADER.pack(b"JACOBI\r\n", 1, 0, len(b), 0, 0.0) + records.tobytes()


GOOD = system_of(8 * np.eye(6) - 1, np.ones(6))
DAMAGED = {
    "empty": (b"", "not a Jacobi state"),
    "header only": (GOOD[:64], "cut short"),
    "short": (GOOD[:-1], "cut short"),
    "long": (GOOD + b"\0", "cut short or damaged"),
    "magic": (b"X" + GOOD[1:], "not a Jacobi state"),
    "version": (GOOD[:8] + b"\2" + GOOD[9:], "version 2"),
    "no rows": (GOOD[:16] + bytes(8) + GOOD[24:], "n = 0"),
    "huge": (GOOD[:16] + b"\xff" * 8 + GOOD[24:], "damaged"),
    "not dominant": (GOOD[:-8] + struct.pack("<d", 4.5), "row 5 is not strictly diagonally dominant"),
    "not a number": (GOOD[:-8] + struct.pack("<d", float("nan")), "row 5 is not strictly diagonally dominant"),
}


def test_a_system_made_elsewhere_is_solved(jacobi, tmp_path):
    (tmp_path / "good").write_bytes(GOOD)
    done = jacobi(3, "--system", tmp_path / "good", "--checkpoint-every", 1, "--checkpoint-dir", tmp_path)
    assert np.allclose(State(sorted(tmp_path.glob("checkpoint-*"))[-1]).x, 0.5)
    assert done.summary["b_norm"] == pytest.approx(np.sqrt(6))


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_systems_are_refused(jacobi_mpich, tmp_path, name):
    damaged, words = DAMAGED[name]
    (tmp_path / "bad").write_bytes(damaged)
    done = jacobi_mpich(3, "--system", tmp_path / "bad", code=2)
    assert len(done.complaints) == 1 and words in done.complaints[0], done.stderr


def test_a_checkpoint_is_no_system(jacobi, tmp_path):
    jacobi(
        1,
        "--system",
        tmp_path / "s",
        "--generate",
        6,
        "--iterations",
        2,
        "--checkpoint-every",
        2,
        "--checkpoint-dir",
        tmp_path,
    )
    done = jacobi(2, "--system", tmp_path / "checkpoint-000002.jacobi", code=2)
    assert "use --restart" in done.complaints[0]


def test_verify_finds_one_wrong_byte(jacobi, spoiling_storage, tmp_path):
    arguments = ["--checkpoint-every", 5, "--checkpoint-dir", tmp_path, "--verify"]
    done = jacobi(2, "--system", tmp_path / "s", "--generate", 40, *arguments, code=1, LD_PRELOAD=str(spoiling_storage))
    assert len(done.complaints) == 1, done.stderr
    assert "checkpoint-000005.jacobi differs" in done.complaints[0]
    assert "offset 5000, expected 0x" in done.complaints[0] and "found 0x3f" in done.complaints[0]


@pytest.mark.parametrize("ranks", [1, 3])
def test_full_disk_is_an_error_not_a_hang(jacobi, tmp_path, small_disk, ranks):
    done = jacobi(
        ranks,
        "--system",
        tmp_path / "s",
        "--generate",
        600,
        "--checkpoint-every",
        2,
        "--checkpoint-dir",
        small_disk,
        code=1,
    )
    assert len(done.complaints) == 1 and "No space left on device" in done.complaints[0], done.stderr
    assert not list(small_disk.iterdir()), "a half-written checkpoint was left"


def test_missing_checkpoint_directory(jacobi, tmp_path):
    done = jacobi(
        2,
        "--system",
        tmp_path / "s",
        "--generate",
        6,
        "--checkpoint-every",
        1,
        "--checkpoint-dir",
        tmp_path / "none",
        code=1,
    )
    assert len(done.complaints) == 1 and "No such file or directory" in done.complaints[0]


# ---- emulated computing time ---------------------------------------------------------------------------------------

CURVE = "1:0.08,2:0.04,8:0.01"  # a straight line in logarithms: four times the processes, a quarter of the time


@pytest.mark.parametrize(("ranks", "expected_s"), [(1, 0.08), (2, 0.04), (4, 0.02)])
def test_emulated_time_of_an_iteration(jacobi_mpich, tmp_path, ranks, expected_s):
    made = ["--system", tmp_path / "s", "--generate", 10, "--iterations", 10, "--tolerance", 0]
    done = jacobi_mpich(ranks, *made, "--emulate", CURVE)
    assert done.summary["emulated"] is True
    assert done.summary["iteration_time_s"] == pytest.approx(expected_s, rel=1e-5)
    assert done.summary["seconds"] >= 10 * expected_s
    assert 0 < done.summary["padded_seconds"] <= 10 * expected_s


def test_emulated_time_beyond_the_curve(jacobi_mpich, tmp_path):
    """Above the last point the time stays; below the first it is that of evenly divided work."""
    made = ["--system", tmp_path / "s", "--generate", 10, "--iterations", 2]
    assert jacobi_mpich(3, *made, "--emulate", "1:0.02,2:0.01").summary["iteration_time_s"] == 0.01
    assert jacobi_mpich(1, *made, "--emulate", "4:0.01").summary["iteration_time_s"] == 0.04


def test_emulated_time_follows_a_resize(jacobi_mpich, tmp_path):
    made = ["--system", tmp_path / "s", "--generate", 10, "--iterations", 20, "--tolerance", 0]
    done = jacobi_mpich(1, *made, "--emulate", "1:0.1,2:0.01", HOCKET_RESIZE="5:2", **SPAWNING)
    assert done.summary["iteration_time_s"] == 0.01
    # Bounds: five iterations of the first size and fifteen of the second give 0.65 s of sleep at most.
    assert 0.25 <= done.summary["padded_seconds"] <= 0.65


@pytest.mark.parametrize(
    ("curve", "point"),
    [("", 1), ("1", 1), ("0:1", 1), ("1:0", 1), ("1:-1", 1), ("1:x", 1), ("1:nan", 1), ("1:1e9", 1), ("1:1,", 2),
     ("1:1;2:1", 1), ("2:1,2:1", 2), ("2:1,1:1", 2), (",".join(f"{n}:1" for n in range(1, 66)), 65)],
)  # fmt: skip
def test_wrong_curves(jacobi_mpich, tmp_path, curve, point):
    done = jacobi_mpich(1, "--system", tmp_path / "s", "--generate", 4, "--emulate", curve, code=2)
    assert done.complaints == [
        f"jacobi: --emulate {curve}: point {point} is wrong; give PROCESSES:SECONDS,… with at most 64 points, "
        "processes rising, and seconds above 0 and at most 3600"
    ]


def test_emulate_and_iteration_time_exclude_each_other(jacobi_mpich, tmp_path):
    made = ["--system", tmp_path / "s", "--generate", 4, "--iteration-time", 1]
    done = jacobi_mpich(1, *made, "--emulate", "1:1", code=2)
    assert done.complaints == ["jacobi: give either --emulate CURVE or --iteration-time S"]


def test_jitter_is_drawn_from_its_seed(jacobi_mpich, tmp_path):
    """Two seeds give different times with the same mean."""
    made = ["--system", tmp_path / "s", "--generate", 10, "--iterations", 40, "--tolerance", 0]
    slept = {}
    for ranks, seed in ((1, 1), (1, 2)):
        curve = f"{ranks}:0.02"
        done = jacobi_mpich(ranks, *made, "--emulate", curve, "--jitter", 1, "--jitter-seed", seed)
        slept[ranks, seed] = done.summary["padded_seconds"]
    assert 0.4 <= slept[1, 1] <= 1.2, "0.8 s on average"
    assert slept[1, 1] != pytest.approx(slept[1, 2], rel=1e-3)
    done = jacobi_mpich(1, *made, "--jitter", 0.5, code=2)
    assert done.complaints == ["jacobi: --jitter needs --emulate CURVE"]
