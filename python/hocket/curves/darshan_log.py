"""Access patterns from Darshan logs, by PyDarshan.

A process of its own reads logs (`python -m hocket.curves.darshan_log LOG…`), because they come from others, and a wrong
one can end the library that reads it, or let it hang.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import resource
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hocket.curves.match import CONTIGUOUS, RANDOM, STRIDED, Access
from hocket.errors import HocketError, UsageError
from hocket.tables import printable

LIMIT_S = 120
MOST_MEMORY = 8 << 30
MISSING = "PyDarshan, which reads Darshan logs, is not installed: run './dev setup', or 'pip install darshan'"
STREAM_BYTES = 4096  # libc moves at least so much at a time for C's streams
# The largest access of each class of Darshan's histograms of sizes.
LARGEST = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30)
CLASSES = ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS")
OPERATIONS = {"write": ("WRITE", "WRITTEN"), "read": ("READ", "READ")}  # as names of counters have them


@dataclass(frozen=True)
class Record:
    """What Darshan counted for one file: of one process, or, with rank -1, of all together."""

    file: int
    rank: int
    counters: Mapping[str, float]


@dataclass(frozen=True)
class Log:
    """A run of a program, as its log has it."""

    program: str  # "": the log does not say
    processes: int
    nodes: int | None  # None: the log does not say
    began_s: float  # since 1970
    seconds: float
    io_s: float  # of the process with the most
    accesses: list[Access]

    @property
    def bytes(self) -> float:
        return sum(one.bytes for one in self.accesses)


def read_logs(paths: Sequence[Path]) -> Iterator[tuple[Path, Log | HocketError]]:
    """Read the logs; an error stands for one that cannot be read. Raises UsageError if PyDarshan is missing.

    A log that ends the process that reads, or on which it hangs, is left out, and another process reads the others.
    """
    if importlib.util.find_spec("darshan") is None:
        raise UsageError(MISSING)
    left = list(paths)
    while left:
        lines, why = _lines_of_process(left)
        for path, line in zip(left, lines, strict=False):
            yield path, _log_of(path, line)
        left = left[len(lines) :]
        if left:
            yield left[0], HocketError(f"{left[0]} cannot be read as a Darshan log: {why}")
            left = left[1:]


def _lines_of_process(paths: Sequence[Path]) -> tuple[list[str], str]:
    """Return what a process tells of the logs, a line each, and why it tells nothing of the next one."""
    command = [sys.executable, "-P", "-m", "hocket.curves.darshan_log", *map(str, paths)]
    limit_s = LIMIT_S + len(paths)
    try:
        done = subprocess.run(command, capture_output=True, timeout=limit_s, check=False)
        out, why = done.stdout, f"its reader ended with {done.returncode}"
    except subprocess.TimeoutExpired as error:
        out, why = error.stdout or b"", f"reading it takes more than {limit_s} s"
    except OSError as error:  # too many paths
        raise HocketError(f"cannot start the reader of logs: {error.strerror}; give fewer logs at a time") from error
    return [line.decode() for line in out.split(b"\n")[:-1]], why


def _log_of(path: Path, line: str) -> Log | HocketError:
    told = json.loads(line)
    if "error" in told:
        return HocketError(f"{path} cannot be read as a Darshan log: {printable(told['error'])}")
    return Log(**told | {"accesses": [Access(**one) for one in told["accesses"]]})


# ---- what records tell -----------------------------------------------------------------------------------------------


def accesses_of(posix: Iterable[Record], streams: Iterable[Record], processes: int) -> list[Access]:
    """Return the kinds of access in the records of Darshan's modules POSIX and STDIO, without those of no bytes."""
    posix, streams = list(posix), list(streams)
    shared = _shared_files([*posix, *streams], processes)
    found: dict[tuple, float] = {}
    for one in posix:
        for operation in OPERATIONS:
            spatiality = _spatiality(one, operation, processes)
            for request, moved in _requests(one, operation):
                _add(found, (one.file in shared, spatiality, operation, request), moved)
    for one in streams:
        for operation, (calls, moved_name) in OPERATIONS.items():
            moved, number = one.counters[f"STDIO_BYTES_{moved_name}"], one.counters[f"STDIO_{calls}S"]
            if moved > 0:
                request = max(moved / max(number, 1), STREAM_BYTES)
                _add(found, (one.file in shared, CONTIGUOUS, operation, request), moved)
    return [Access(*key, moved) for key, moved in found.items()]


def _add(found: dict[tuple, float], key: tuple, moved: float) -> None:
    """Add bytes to those of one kind. Sizes of requests that differ by less than 20 % are one kind."""
    *kind, request = key
    step = round(math.log2(max(request, 1)) * 4) / 4
    found[(*kind, 2.0**step)] = found.get((*kind, 2.0**step), 0.0) + moved


def _shared_files(records: list[Record], processes: int) -> set[int]:
    """Return the files that several processes accessed."""
    ranks: dict[int, set[int]] = {}
    for one in records:
        ranks.setdefault(one.file, set()).add(one.rank)
    return {file for file, of in ranks.items() if processes > 1 and (len(of) > 1 or -1 in of)}


def _spatiality(one: Record, operation: str, processes: int) -> str:
    """Return how the accesses of one process follow each other: at once, at a distance, or in no order.

    The first access of a process follows none, so it is not counted.
    """
    name = OPERATIONS[operation][0]
    following = one.counters[f"POSIX_{name}S"] - (processes if one.rank == -1 else 1)
    if following <= 0 or one.counters[f"POSIX_CONSEC_{name}S"] >= following / 2:
        return CONTIGUOUS
    return STRIDED if one.counters[f"POSIX_SEQ_{name}S"] >= following / 2 else RANDOM


def _requests(one: Record, operation: str) -> list[tuple[float, float]]:
    """Return the sizes of requests, each with the bytes moved by it.

    Darshan has histograms of sizes for reads and writes, and the four most common sizes of both together.
    """
    name, moved_name = OPERATIONS[operation]
    moved, number = one.counters[f"POSIX_BYTES_{moved_name}"], one.counters[f"POSIX_{name}S"]
    if moved <= 0 or number <= 0:
        return []
    counts = [one.counters[f"POSIX_SIZE_{name}_{one_class}"] for one_class in CLASSES]
    used = [at for at, count in enumerate(counts) if count > 0]
    if len(used) <= 1:
        return [(moved / number, moved)]
    sizes = {at: _size_in(at, one) for at in used}
    total = sum(counts[at] * sizes[at] for at in used)
    return [(sizes[at], moved * counts[at] * sizes[at] / total) for at in used]


def _size_in(at: int, one: Record) -> float:
    """Return the most common size of a class, else its geometric mean."""
    least, most = (LARGEST[at - 1] + 1 if at else 1), (LARGEST[at] if at < len(LARGEST) else 4 << 30)
    common = [(one.counters[f"POSIX_ACCESS{n}_COUNT"], one.counters[f"POSIX_ACCESS{n}_ACCESS"]) for n in range(1, 5)]
    inside = [(count, size) for count, size in common if count > 0 and least <= size <= most]
    return max(inside)[1] if inside else math.sqrt(least * most)


def io_seconds(posix: Iterable[Record], streams: Iterable[Record]) -> float:
    """Return the I/O time of the process with the most: its own files, and what the slowest needed for shared ones."""
    own: dict[int, float] = {}
    shared = 0.0
    for module, records in (("POSIX", posix), ("STDIO", streams)):
        for one in records:
            if one.rank == -1:
                shared += one.counters[f"{module}_F_SLOWEST_RANK_TIME"]
            else:
                times = (one.counters[f"{module}_F_{kind}_TIME"] for kind in ("READ", "WRITE", "META"))
                own[one.rank] = own.get(one.rank, 0.0) + sum(times)
    return shared + max(own.values(), default=0.0)


# ---- the process that reads a log ------------------------------------------------------------------------------------


def _read(path: str) -> Log:
    import darshan
    from darshan.backend import cffi_backend

    if not Path(path).is_file():
        raise ValueError("there is no such file")
    report = darshan.DarshanReport(path, read_all=False)
    job = report.metadata["job"]
    posix, streams = _records(report, "POSIX"), _records(report, "STDIO")
    if not posix and not streams:
        raise ValueError("it has no records of POSIX calls or C's streams")
    hosts = set()
    if "DXT_POSIX" in report.modules:
        while (one := cffi_backend.log_get_dxt_record(report.log, "DXT_POSIX", reads=False, writes=False)) is not None:
            hosts.add(one["hostname"])
    processes = int(job["nprocs"])
    if not 1 <= processes <= 1 << 24:
        raise ValueError(f"it has {processes} processes")
    words = str(report.metadata["exe"]).split()
    return Log(
        program=Path(words[0]).name if words else "",
        processes=processes,
        nodes=len(hosts) or None,
        began_s=float(job["start_time_sec"]) + float(job["start_time_nsec"]) / 1e9,
        seconds=float(job["run_time"]),
        io_s=io_seconds(posix, streams),
        accesses=accesses_of(posix, streams, processes),
    )


def _records(report: Any, module: str) -> list[Record]:
    from darshan.backend import cffi_backend

    if module not in report.modules:
        return []
    try:
        names = cffi_backend.log_get_name_records(report.log)
    except UnicodeDecodeError:
        names = {}  # nobody asks for more of them than to know streams
    found = []
    while (one := cffi_backend.log_get_generic_record(report.log, module, dtype="dict")) is not None:
        if names.get(one["id"], "").startswith("<"):  # <STDOUT> and its like are no files
            continue
        counters = {key: float(value) for key, value in (one["counters"] | one["fcounters"]).items()}
        if not all(math.isfinite(value) for value in counters.values()):
            raise ValueError("it has counters that are no numbers")
        found.append(Record(int(one["id"]), int(one["rank"]), counters))
    return found


def _main(paths: Sequence[str]) -> int:
    """Print a line for each log, as soon as it is read."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the library warns there
    for path in paths:
        try:
            told = asdict(_read(path))
        except Exception as error:  # whatever a wrong log leads to
            told = {"error": (str(error) or type(error).__name__).splitlines()[0]}
        print(json.dumps(told), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
