"""The conjugate gradient program on each MPI: its results beside those of a reference, and its failures."""

import gzip

import numpy as np
import pytest
from apps_kit import runner
from mpi_launch import MPIS

LIMIT_S = 60
SPAWNING = {"MPIR_CVAR_CH4_NETMOD": "ofi", "OMPI_MCA_coll": "^han"}  # both MPIs need this to spawn: docs/malleable.md


@pytest.fixture(params=MPIS)
def cg(request):
    return runner("cg", request.param, LIMIT_S)


@pytest.fixture
def cg_mpich():
    """Run cg under MPICH only, for code that is the same on both MPIs."""
    return runner("cg", "mpich", LIMIT_S)


# ---- matrices, and a reference -------------------------------------------------------------------------------------


def random_symmetric(n=40, seed=1):
    """Return a sparse, symmetric, positive definite matrix whose rows hold from few to many nonzeros."""
    rng = np.random.default_rng(seed)
    a = np.where(rng.random((n, n)) < np.linspace(0.02, 0.3, n)[:, None], rng.normal(size=(n, n)), 0)
    a = a + a.T
    return a + np.diag(np.abs(a).sum(1) + 1)


def write_matrix(path, a, field="real", symmetry="general", shuffled=False):
    """Write the nonzeros of the array as a Matrix Market file; of a symmetric array, the lower triangle."""
    places = [(i, j) for j, i in zip(*np.nonzero(a.T), strict=True) if symmetry == "general" or i >= j]
    if shuffled:
        np.random.default_rng(2).shuffle(places)
    value = {"real": lambda v: f" {v:.17g}", "integer": lambda v: f" {int(v)}", "pattern": lambda v: ""}[field]
    lines = [
        f"%%MatrixMarket matrix coordinate {field} {symmetry}",
        "% a comment",
        "",
        f"{len(a)} {len(a)} {len(places)}",
    ]
    text = "\n".join(lines + [f"{i + 1} {j + 1}{value(a[i, j])}" for i, j in places]) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def reference(a, tolerance=1e-10):
    """Return iterations and x of a plain conjugate gradient for b = A (1, …, 1)."""
    b = a @ np.ones(len(a))
    x, r = np.zeros(len(a)), b.copy()
    p, rho, iterations = r.copy(), r @ r, 0
    while np.sqrt(rho) > tolerance * np.linalg.norm(b):
        q = a @ p
        alpha = rho / (p @ q)
        x, r, before = x + alpha * p, r - alpha * q, rho
        rho = r @ r
        p = r + rho / before * p
        iterations += 1
    return iterations, x


def stencil(points, reach=1):
    """Return the 27-point stencil of HPCG, or a wider one, built from distances in the grid."""
    grid = np.array(list(np.ndindex(points, points, points)))
    near = np.abs(grid[:, None, :] - grid[None, :, :]).max(axis=2)
    return np.where(near == 0, (2.0 * reach + 1) ** 3 - 1, np.where(near <= reach, -1.0, 0.0))


def same_numbers(summary):
    return [summary[key] for key in ("n", "nonzeros", "iterations", "residual", "b_norm", "error", "x_norm")]


def check(done, a, x_file):
    iterations, x = reference(a)
    summary = done.summary
    assert (summary["n"], summary["nonzeros"]) == (len(a), np.count_nonzero(a))
    assert abs(summary["iterations"] - iterations) <= 1
    assert np.isclose(summary["b_norm"], np.linalg.norm(a @ np.ones(len(a))), rtol=1e-14)
    got = np.loadtxt(x_file, ndmin=1)
    assert np.allclose(got, x, rtol=0, atol=1e-8) and np.allclose(got, 1, rtol=0, atol=1e-8)
    assert np.isclose(summary["error"], np.abs(got - 1).max(), rtol=1e-6, atol=1e-15)
    residual = np.linalg.norm(a @ np.ones(len(a)) - a @ got)
    assert summary["residual"] == pytest.approx(residual, rel=1e-3, abs=1e-13)
    assert residual <= 1.01e-10 * summary["b_norm"]


# ---- what it computes ----------------------------------------------------------------------------------------------


def test_help_is_printed_once(cg):
    assert cg(2, "--help").stdout.count("--stencil N") == 2


@pytest.mark.parametrize("rows", ["number", "nonzeros"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_solves_a_file(cg, tmp_path, ranks, rows):
    a = random_symmetric()
    matrix = write_matrix(tmp_path / "a.mtx", a, symmetry="symmetric")
    done = cg(ranks, "--matrix", matrix, "--rows", rows, "--write-x", tmp_path / "x")
    assert done.summary["ranks"] == ranks
    check(done, a, tmp_path / "x")


def laplacian(n=30):
    """Return a matrix that is symmetric and positive definite, with integer values."""
    return 3.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
@pytest.mark.parametrize(("field", "symmetry"), [(f, s) for f in ("real", "integer") for s in ("symmetric", "general")])
def test_kinds_of_files(cg_mpich, tmp_path, field, symmetry, suffix):
    a = laplacian() if field == "integer" else random_symmetric()
    matrix = write_matrix(tmp_path / f"a{suffix}", a, field, symmetry, shuffled=True)
    check(cg_mpich(3, "--matrix", matrix, "--write-x", tmp_path / "x"), a, tmp_path / "x")


@pytest.mark.parametrize("symmetry", ["symmetric", "general"])
def test_a_pattern_made_dominant(cg_mpich, tmp_path, symmetry):
    ones = (random_symmetric() != 0).astype(float)
    matrix = write_matrix(tmp_path / "a.mtx", ones, "pattern", symmetry)
    others = ones - np.eye(len(ones))
    a = others + np.diag(others.sum(1) + 1)
    check(cg_mpich(2, "--matrix", matrix, "--dominant", "--write-x", tmp_path / "x"), a, tmp_path / "x")


def test_shift_makes_a_diagonal_where_there_is_none(cg_mpich, tmp_path):
    a = np.eye(20, k=1) + np.eye(20, k=-1)
    matrix = write_matrix(tmp_path / "a.mtx", a, symmetry="symmetric")
    shifted = a + 2.5 * np.eye(20)
    check(cg_mpich(3, "--matrix", matrix, "--shift", 2.5, "--write-x", tmp_path / "x"), shifted, tmp_path / "x")


def test_of_a_general_matrix_the_symmetric_part_is_taken(cg_mpich, tmp_path):
    a = random_symmetric() + 0.1 * np.triu(random_symmetric(seed=3), 1)
    matrix = write_matrix(tmp_path / "a.mtx", a)
    check(cg_mpich(2, "--matrix", matrix, "--write-x", tmp_path / "x"), (a + a.T) / 2, tmp_path / "x")


def test_entries_given_twice_are_added_up(cg_mpich, tmp_path):
    (tmp_path / "a.mtx").write_text(
        "%%MatrixMarket matrix coordinate real symmetric\n2 2 4\n1 1 1\n2 1 1\n1 1 2\n2 2 4\n"
    )
    done = cg_mpich(1, "--matrix", tmp_path / "a.mtx", "--write-x", tmp_path / "x")
    check(done, np.array([[3.0, 1], [1, 4]]), tmp_path / "x")


@pytest.mark.parametrize("points", [1, 4, 7])
def test_stencil(cg, tmp_path, points):
    a = stencil(points)
    check(cg(3, "--stencil", points, "--write-x", tmp_path / "x"), a, tmp_path / "x")


@pytest.mark.parametrize(("points", "reach"), [(2, 3), (6, 2), (7, 3)])
def test_wider_stencils(cg_mpich, tmp_path, points, reach):
    a = stencil(points, reach)
    check(cg_mpich(3, "--stencil", points, "--reach", reach, "--write-x", tmp_path / "x"), a, tmp_path / "x")


@pytest.mark.parametrize("ranks", [1, 3])
def test_plain_sums_solve_the_same_system(cg, tmp_path, ranks):
    a = random_symmetric()
    matrix = write_matrix(tmp_path / "a.mtx", a, symmetry="symmetric")
    done = cg(ranks, "--matrix", matrix, "--sums", "plain", "--write-x", tmp_path / "x")
    assert done.summary["sums"] == "plain"
    check(done, a, tmp_path / "x")


def test_numbers_do_not_depend_on_processes_or_mpi(tmp_path):
    matrix = write_matrix(tmp_path / "a.mtx", random_symmetric(60), symmetry="symmetric")
    runs = [
        runner("cg", name, LIMIT_S)(ranks, "--matrix", matrix, "--rows", rows).summary
        for name, ranks, rows in [("mpich", 1, "number"), ("mpich", 4, "nonzeros"), ("openmpi", 3, "number")]
    ]
    assert same_numbers(runs[0]) == same_numbers(runs[1]) == same_numbers(runs[2])


def test_more_ranks_than_rows(cg, tmp_path):
    a = np.array([[4.0, 1], [1, 3]])
    matrix = write_matrix(tmp_path / "a.mtx", a)
    for rows in ("number", "nonzeros"):
        check(cg(4, "--matrix", matrix, "--rows", rows, "--write-x", tmp_path / "x"), a, tmp_path / "x")


def test_stops_at_the_iteration_and_prints_what_was_asked(cg_mpich):
    done = cg_mpich(2, "--stencil", 6, "--iterations", 7, "--tolerance", 0, "--print-every", 3)
    printed = [line.split() for line in done.stdout.splitlines() if line.startswith("iteration")]
    assert [int(words[1]) for words in printed] == [3, 6, 7]
    assert done.summary["iterations"] == 7
    assert float(printed[-1][3]) == pytest.approx(done.summary["residual"], rel=1e-6)


def test_the_time_of_the_iterations_is_without_the_start(cg_mpich):
    done = cg_mpich(2, "--stencil", 3, "--iterations", 4, "--iteration-time", 0.02, "--tolerance", 0)
    assert 0.08 <= done.summary["iterating_seconds"] <= done.summary["seconds"]
    assert cg_mpich(1, "--stencil", 3, "--iterations", 0).summary["iterating_seconds"] == 0


def test_iteration_time_is_kept_and_reported(cg_mpich):
    done = cg_mpich(2, "--stencil", 3, "--iterations", 10, "--iteration-time", 0.03, "--tolerance", 0)
    assert done.summary["seconds"] >= 0.03 * done.summary["iterations"]
    assert 0 < done.summary["padded_seconds"] <= 0.03 * done.summary["iterations"] + 0.01


# ---- resizes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ["number", "nonzeros"])
def test_grows_and_shrinks_with_the_same_numbers(cg, rows):
    arguments = ["--stencil", 10, "--rows", rows, "--print-every", 1]
    alone = cg(2, *arguments)
    resized = cg(2, *arguments, HOCKET_RESIZE="5:4,12:1", **SPAWNING)
    assert resized.summary["ranks"] == 1
    assert same_numbers(resized.summary) == same_numbers(alone.summary)
    assert resized.stdout.splitlines()[:-1] == alone.stdout.splitlines()[:-1]


@pytest.mark.parametrize("method", ["merge/plain/p2p/blocking", "baseline/plain/collective/wait-sources"])
def test_plain_sums_survive_a_resize(cg, method):
    """The sums of other processes differ in the last digits, so the numbers are alike and not the same."""
    names = ("SPAWN", "SPAWN_STRATEGY", "REDISTRIBUTION", "REDISTRIBUTION_STRATEGY")
    chosen = {f"HOCKET_{name}": word for name, word in zip(names, method.split("/"), strict=True)}
    arguments = ["--stencil", 8, "--sums", "plain", "--iterations", 12, "--tolerance", 0]
    exact = cg(2, "--stencil", 8, "--iterations", 12, "--tolerance", 0)
    resized = cg(2, *arguments, HOCKET_RESIZE="6:3", HOCKET_RESIZE_WAIT_S="30", **chosen, **SPAWNING)
    assert resized.summary["ranks"] == 3 and resized.summary["iterations"] == 12
    assert resized.summary["residual"] == pytest.approx(exact.summary["residual"], rel=1e-6)
    assert resized.summary["x_norm"] == pytest.approx(exact.summary["x_norm"], rel=1e-12)


# ---- how it fails --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give either --matrix FILE or --stencil N"),
        (["--matrix", "a", "--stencil", "3"], "give either --matrix FILE or --stencil N"),
        (["--stencil", "0"], "--stencil 0: give a whole number from 1"),
        (["--stencil", "2000"], "--stencil 2000: give a whole number from 1 to 1023"),
        (["--stencil", "3", "--reach", "4"], "--reach 4: give a whole number from 1 to 3"),
        (["--matrix", "a", "--reach", "2"], "--reach needs --stencil"),
        (["--stencil", "3", "--sums", "fast"], "--sums fast: give exact or plain"),
        (["--stencil", "3", "--rows", "columns"], "--rows columns: give number or nonzeros"),
        (["--stencil", "3", "--shift", "much"], "--shift much: give a number"),
        (["--stencil", "3", "--frob"], "unknown option --frob"),
        (["--stencil"], "--stencil needs a value"),
        (["--stencil", "3", "more"], "unexpected argument more"),
        (["--matrix", "/nonesuch/a"], "cannot read /nonesuch/a: No such file"),
    ],
)
def test_bad_arguments_are_one_line_and_code_2(cg_mpich, arguments, words):
    done = cg_mpich(2, *arguments, code=2)
    assert len(done.complaints) == 1 and words in done.complaints[0], done.stderr


REAL = "%%MatrixMarket matrix coordinate real symmetric\n"
MALFORMED = {
    "empty": ("", "line 1: the file is empty"),
    "no header": ("3 3 1\n1 1 1\n", "line 1: no Matrix Market file"),
    "header cut": ("%%MatrixMarket matrix coordinate\n", "line 1: the header has 3 of 5 words"),
    "dense": ("%%MatrixMarket matrix array real general\n", "line 1: 'matrix array' is not supported"),
    "complex": ("%%MatrixMarket matrix coordinate complex general\n", "line 1: field 'complex' is not supported"),
    "skew": (
        "%%MatrixMarket matrix coordinate real skew-symmetric\n",
        "line 1: symmetry 'skew-symmetric' is not supported",
    ),
    "no sizes": (REAL + "% only a comment\n", "line 3: the file ends before the line with its sizes"),
    "two sizes": (REAL + "3 3\n", "line 2: sizes expected"),
    "sizes of words": (REAL + "3 three 4\n", "line 2: sizes expected"),
    "not square": (REAL + "3 4 1\n1 1 1\n", "line 2: 3 rows and 4 columns: CG needs a square matrix"),
    "no rows": (REAL + "0 0 0\n", "line 2: 0 rows"),
    "too many rows": (REAL + "2000000000 2000000000 0\n", "line 2: 2000000000 rows: this program takes"),
    "negative entries": (REAL + "3 3 -1\n", "line 2: -1 entries"),
    "row outside": (REAL + "3 3 1\n4 1 1\n", "line 3: entry (4, 1) is outside 1 … 3"),
    "column outside": (REAL + "3 3 1\n3 0 1\n", "line 3: entry (3, 0) is outside 1 … 3"),
    "upper triangle": (REAL + "3 3 1\n1 2 1\n", "line 3: entry (1, 2) is above the diagonal"),
    "no value": (REAL + "3 3 1\n1 1\n", "line 3: entry (1, 1) has no finite value"),
    "not finite": (REAL + "3 3 1\n1 1 nan\n", "line 3: entry (1, 1) has no finite value"),
    "no column": (REAL + "3 3 1\n1\n", "line 3: entry expected: ROW COLUMN VALUE"),
    "words": (REAL + "3 3 2\n1 1 1\none 1 1\n", "line 4: entry expected: ROW COLUMN VALUE"),
    "too much in a line": (REAL + "3 3 1\n1 1 1 0\n", "line 3: more than ROW COLUMN VALUE in a line"),
    "values in a pattern": (
        "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 1 1\n",
        "line 3: more than ROW COLUMN in a line",
    ),
    "too few": (REAL + "3 3 2\n1 1 1\n", "the file ends after 1 of 2 entries"),
    "too many": (REAL + "3 3 1\n1 1 1\n2 2 1\n", "line 4: more than the 1 entries"),
    "long line": (REAL + "3 3 1\n" + " " * 5000 + "1 1 1\n", "line 3: longer than"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files_are_refused(cg_mpich, tmp_path, name):
    text, words = MALFORMED[name]
    (tmp_path / "bad.mtx").write_text(text)
    done = cg_mpich(2, "--matrix", tmp_path / "bad.mtx", code=2)
    assert len(done.complaints) == 1 and words in done.complaints[0], done.stderr
    assert f"{tmp_path / 'bad.mtx'} line " in done.complaints[0]


@pytest.mark.parametrize("damage", ["cut", "spoiled"])
def test_a_damaged_compressed_file_is_refused(cg_mpich, tmp_path, damage):
    whole = bytearray(write_matrix(tmp_path / "a.mtx.gz", random_symmetric(), symmetry="symmetric").read_bytes())
    if damage == "spoiled":
        whole[len(whole) // 2] ^= 0xFF
    (tmp_path / "bad.mtx.gz").write_bytes(whole[: len(whole) // 2] if damage == "cut" else whole)
    done = cg_mpich(2, "--matrix", tmp_path / "bad.mtx.gz", code=2)
    assert len(done.complaints) == 1 and "bad.mtx.gz line " in done.complaints[0], done.stderr


def test_a_matrix_that_is_not_positive_definite(cg, tmp_path):
    matrix = write_matrix(tmp_path / "a.mtx", np.array([[1.0, 2], [2, -1]]))
    done = cg(2, "--matrix", matrix, code=1)
    assert len(done.complaints) == 1 and "not positive definite" in done.complaints[0]
    assert "--dominant" in done.complaints[0] and done.summary is None


def test_x_that_cannot_be_written(cg_mpich, tmp_path):
    done = cg_mpich(2, "--stencil", 3, "--write-x", tmp_path / "none" / "x", code=1)
    assert len(done.complaints) == 1 and "No such file or directory" in done.complaints[0]
