"""The matrices of bench/emulator.py: generated ones, and the real ones in build/matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hocket.errors import UsageError

STENCILS = (40, 60)
SHIFT = 1e-3  # of the diagonal: positive definite, and far from solved after all iterations
BAND, ROWS, DENSE_ROWS, BANDWIDTH, DENSE_BANDWIDTH = "band", 60_000, 15_000, 8, 40


@dataclass(frozen=True, eq=False)
class Matrix:
    """A system for apps/cg: its name, the words that select it, and the number of nonzeros of each row."""

    name: str
    words: tuple[str, ...]
    row_nonzeros: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.row_nonzeros)

    @property
    def nonzeros(self) -> int:
        return int(self.row_nonzeros.sum())

    def imbalance(self, ranks: int) -> float:
        """Return the largest number of nonzeros of a rank over the mean, if each has as many rows."""
        parts = [int(part.sum()) for part in np.array_split(self.row_nonzeros, ranks)]
        return max(parts) * ranks / sum(parts)


def matrices(real: Path, made: Path) -> list[Matrix]:
    """Return the generated matrices, and those of the files in `real`. Files for apps/cg are written to `made`."""
    found = [*map(_stencil, STENCILS), _band(made / f"{BAND}.mtx")]
    for path in sorted(real.glob("*.graph")):
        found.append(_of_graph(path, made / f"{path.stem}.mtx"))
    return found + [_of_market(path) for path in sorted(real.glob("*.mtx"))]


def _stencil(points: int) -> Matrix:
    """Return the 27-point stencil on a cube: a row has the neighbours that lie in it."""
    along = np.full(points, 3)
    along[[0, -1]] -= 1
    counts = along[:, None, None] * along[None, :, None] * along[None, None, :]
    return Matrix(f"stencil-{points}", ("--stencil", str(points)), counts.ravel())


def _band(path: Path) -> Matrix:
    """Write a band matrix whose first rows have five times as many nonzeros as the others."""
    widths = [min(DENSE_BANDWIDTH if row < DENSE_ROWS else BANDWIDTH, row) for row in range(ROWS)]
    return _written(BAND, path, [range(row - width, row) for row, width in enumerate(widths)])


def _of_graph(path: Path, to: Path) -> Matrix:
    """Write the matrix of a graph in METIS's format: an entry for each edge. Raises UsageError if it has weights."""
    lines = [line for line in path.read_text(encoding="ascii").splitlines() if not line.startswith("%")]
    head = lines[0].split()
    if len(head) > 2 and int(head[2]):
        raise UsageError(f"{path}: it has weights (format {head[2]}); give a graph without them")
    below = [[int(word) - 1 for word in line.split() if int(word) - 1 < row] for row, line in enumerate(lines[1:])]
    return _written(path.stem, to, below[: int(head[0])])


def _written(name: str, path: Path, below: Sequence[Sequence[int]]) -> Matrix:
    """Write the Laplacian matrix of a graph, with a small shift, by the columns below the diagonal in each row."""
    counts = np.ones(len(below), dtype=np.int64)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new")
    with unfinished.open("w", encoding="ascii") as file:
        file.write("%%MatrixMarket matrix coordinate real symmetric\n")
        file.write(f"{len(below)} {len(below)} {len(below) + sum(map(len, below))}\n")
        for row, columns in enumerate(below):
            file.writelines(f"{row + 1} {column + 1} -1\n" for column in columns)
            counts[row] += len(columns)
            for column in columns:
                counts[column] += 1
        for row, count in enumerate(counts, 1):
            file.write(f"{row} {row} {count - 1 + SHIFT}\n")
    unfinished.replace(path)
    return Matrix(name, ("--matrix", str(path)), counts)


def _of_market(path: Path) -> Matrix:
    """Return the matrix of a file, which is made positive definite as it is read."""
    from scipy.io import mmread
    from scipy.sparse import identity

    found = abs(mmread(path)).tocsr()
    whole = found + found.T + identity(found.shape[0])  # apps/cg takes the symmetric part, with a diagonal
    counts = np.diff(whole.tocsr().indptr)
    return Matrix(path.stem, ("--matrix", str(path), "--dominant"), counts.astype(np.int64))
