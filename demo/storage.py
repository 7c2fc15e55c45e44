"""The demo's storage: the real one if two writers visibly disturb each other on it, else a limited storage target.

A limited target says in its statement that its bandwidth is limited.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import probe
from errors import DemoError
from solvers import MAX_CHECKPOINT_BYTES

LIMIT_BYTES_PER_S = 100_000_000
REAL_MAX_BYTES_PER_S = MAX_CHECKPOINT_BYTES / 1.5  # the longest wanted phase takes 1.5 s


@dataclass(frozen=True)
class Storage:
    """The storage to write to. `statement` is one sentence for users, which is in the table's heading."""

    directory: Path
    bytes_per_s: float  # bandwidth of one application alone
    statement: str
    environment: dict[str, str]  # of the applications that write there


def choose(directory: Path, wish: str, library: Path, pairs: int) -> Storage:
    """Measure the real storage and choose one. Raises DemoError.

    `wish` is "auto", "real" or "limited"; `library` is liblimited_target.so.
    """
    try:
        measured = probe.measure(directory, pairs)
    except probe.ProbeError as error:
        raise DemoError(f"{error}; choose another directory with --directory") from error
    why = _why_limited(measured)
    if wish == "real" or (wish == "auto" and not why):
        return Storage(directory, measured.bytes_per_s, f"real storage, measured before: {measured}", {})
    limit = round(min(LIMIT_BYTES_PER_S, measured.bytes_per_s / 3))
    return limited(directory, limit, library, why or "as requested")


def limited(directory: Path, limit: int, library: Path, why: str) -> Storage:
    """Return a storage target of `limit` bytes/s for all writers together. Raises DemoError."""
    if not library.exists():
        raise DemoError(f"no {library}: ./dev build installs it")
    return Storage(
        directory,
        limit,
        f"storage target limited to {limit / 1e6:.0f} MB/s for all writers together: {why}",
        {
            "LD_PRELOAD": str(library),
            "HOCKET_LIMIT_DIR": str(directory),
            "HOCKET_LIMIT_BYTES_PER_S": str(limit),
        },
    )


def _why_limited(measured: probe.Probe) -> str:
    """Return why the real storage is unsuitable, or "" if it is suitable."""
    if measured.ratio < probe.CLEAR_RATIO:
        return f"two writers slow each other down too little on the real storage ({measured})"
    if not measured.interferes_clearly:
        return f"the real storage is too noisy ({measured})"
    if measured.bytes_per_s > REAL_MAX_BYTES_PER_S:
        took = f"{MAX_CHECKPOINT_BYTES / 1e6:.0f} MB in {MAX_CHECKPOINT_BYTES / measured.bytes_per_s:.1f} s"
        return f"the real storage is too fast for the demo, {took} ({measured})"
    return ""
