"""Reads the logs of calls that libhocket writes, one for each process (src/libhocket/process/call_log.hpp)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hocket.errors import HocketError

COMMUNICATION, COMPLETION, READ, WRITE, FILE = 1, 2, 3, 4, 5  # CallKind
CONTROL_POINT, DATA, METHOD = 6, 7, 8  # of malleable programs (src/libhocket/malleable/job_log.hpp)
MAGIC = b"hkcalls2"
HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("rank", "<i4"),
        ("processes", "<i4"),
        ("spawned", "<i4"),
        ("pid", "<i4"),
        ("started_ns", "<i8"),
        ("elapsed_ns", "<i8"),
        ("cpu_ns", "<i8"),
        ("calls", "<u8"),
        ("dropped", "<u8"),
    ]
)
CALL = np.dtype(
    [
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        ("cpu_ns", "<i8"),
        ("cpu_end_ns", "<i8"),
        ("bytes", "<i8"),
        ("offset", "<i8"),
        ("sleeps", "<u4"),
        ("sleeps_end", "<u4"),
        ("processes", "<i4"),
        ("peer", "<i4"),
        ("file", "<u4"),
        ("kind", "u1"),
        ("routine", "S27"),
    ]
)


class CaptureError(HocketError):
    exit_code = 1


@dataclass(frozen=True)
class RankLog:
    """The calls of one process, in the order in which they returned. Times count from the end of MPI_Init."""

    rank: int
    processes: int
    spawned: bool
    started_ns: int  # CLOCK_MONOTONIC
    elapsed_ns: int
    cpu_ns: int
    dropped: int
    calls: np.ndarray[Any, np.dtype[Any]]  # of dtype CALL

    def of_kinds(self, *kinds: int) -> np.ndarray[Any, np.dtype[Any]]:
        return self.calls[np.isin(self.calls["kind"], kinds)]

    def seconds_in(self, *kinds: int) -> float:
        calls = self.of_kinds(*kinds)
        return float((calls["end_ns"] - calls["start_ns"]).sum()) / 1e9


def read_log(path: Path) -> RankLog:
    data = path.read_bytes()
    if len(data) < HEADER.itemsize or data[: len(MAGIC)] != MAGIC:
        raise CaptureError(f"{path}: this is no log of calls; capture again with this version of hocket")
    header = np.frombuffer(data, HEADER, 1)[0]
    whole = (len(data) - HEADER.itemsize) // CALL.itemsize
    if whole < header["calls"]:
        raise CaptureError(f"{path}: it has {whole} of {header['calls']} calls; is the disk full? capture again")
    calls = np.frombuffer(data, CALL, int(header["calls"]), HEADER.itemsize)
    return RankLog(
        int(header["rank"]),
        int(header["processes"]),
        bool(header["spawned"]),
        int(header["started_ns"]),
        int(header["elapsed_ns"]),
        int(header["cpu_ns"]),
        int(header["dropped"]),
        calls,
    )


def read_logs(directory: Path) -> list[RankLog]:
    """Return the logs of the processes that the launcher started, by rank, and behind them those that joined later.

    Raises CaptureError if one of the first is missing.
    """
    logs = sorted((read_log(path) for path in directory.glob("*.calls")), key=lambda log: (log.spawned, log.rank))
    first = [log for log in logs if not log.spawned]
    if not first:
        raise CaptureError(
            "the application left no log of calls: it called no MPI_Init, or ended before MPI_Finalize; "
            "run it to its end"
        )
    ranks = [log.rank for log in first]
    if ranks != list(range(first[0].processes)):
        missing = sorted(set(range(first[0].processes)) - set(ranks))
        raise CaptureError(
            f"the logs of ranks {missing} are missing: they ended before MPI_Finalize; run the application to its end"
        )
    return first + [log for log in logs if log.spawned and len(log.of_kinds(CONTROL_POINT))]
