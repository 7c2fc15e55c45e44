"""Writes Darshan logs: counts accesses as Darshan's runtime does, and writes what it counted by libdarshan-util.

Debian and the Python index have no Darshan runtime. PyDarshan brings the library that reads logs, and also writes them.
"""

from __future__ import annotations

import functools
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ZLIB, POSIX, STDIO, DXT_POSIX = 0, 1, 9, 10
POSIX_VERSION, STDIO_VERSION = 4, 2
LARGEST = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30, 1 << 62)
CLASSES = ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS")
DEFINITIONS = """
void* darshan_log_create(const char *, int, int);
int darshan_log_put_job(void *, struct darshan_job *);
int darshan_log_put_exe(void *, char *);
int darshan_log_put_mounts(void *, struct darshan_mnt_info *, int);
int darshan_log_put_mod(void *, int, void *, int, int);
struct written_name { void *record; void *table, *before, *next, *hash_before, *hash_next, *key;
                      unsigned length, hash; };
int darshan_log_put_namehash(void *, struct written_name *);
"""


@dataclass(frozen=True)
class Made:
    """One access of a rank."""

    rank: int
    file: str
    writes: bool
    offset: int
    bytes: int
    seconds: float = 0.001


@functools.cache
def _library():
    import cffi
    import darshan
    from darshan.backend.api_def_c import load_darshan_header

    ffi = cffi.FFI()
    ffi.cdef(load_darshan_header() + DEFINITIONS)
    (path,) = (Path(darshan.__file__).parent.parent / "darshan.libs").glob("libdarshan-util*")
    return ffi, ffi.dlopen(str(path))


def write_log(
    path: Path,
    made: Iterable[Made],
    *,
    processes: int,
    seconds: int = 10,
    program: str = "/apps/app -x",
    began_s: int = 1_700_000_000,
    streams: Mapping[str, tuple[int, int]] | None = None,
    host_names: Iterable[str] = (),
) -> Path:
    """Write a log. `streams`: calls and bytes that rank 0 wrote by C's streams, by file."""
    ffi, library = _library()
    log = library.darshan_log_create(str(path).encode(), ZLIB, 0)
    assert log != ffi.NULL, path
    job = ffi.new("struct darshan_job *")
    job.uid, job.nprocs, job.jobid = 1000, processes, 7
    job.start_time_sec, job.end_time_sec = began_s, began_s + seconds
    job.metadata = b"lib_ver=3.4.4\n"
    made = list(made)
    files = {name: 1000 + at for at, name in enumerate(sorted({one.file for one in made} | set(streams or {})))}
    records = _posix(made, files, processes, library, ffi)
    assert library.darshan_log_put_job(log, job) == 0
    assert library.darshan_log_put_exe(log, ffi.new("char[]", program.encode())) == 0
    mounts = ffi.new("struct darshan_mnt_info[1]")
    mounts[0].mnt_type, mounts[0].mnt_path = b"lustre", b"/scratch"
    assert library.darshan_log_put_mounts(log, mounts, 1) == 0
    names = _names(files, ffi)
    assert library.darshan_log_put_namehash(log, names[0]) == 0
    if records:
        _put(library, ffi, log, POSIX, b"".join(records), POSIX_VERSION)
    if streams:
        _put(library, ffi, log, STDIO, b"".join(_streams(streams, files, library, ffi)), STDIO_VERSION)
    if host_names:
        _put(library, ffi, log, DXT_POSIX, b"".join(_hosts(host_names, ffi)), 1)
    library.darshan_log_close(log)
    return path


def _put(library, ffi, log, module: int, content: bytes, version: int) -> None:
    data = ffi.new("char[]", content)
    assert library.darshan_log_put_mod(log, module, data, len(content), version) == 0


def _names(files: Mapping[str, int], ffi) -> list:
    """Return the library's table of names, the first one first. The others are kept alive by the list."""
    kept: list = []
    entries = []
    for name, number in files.items():
        record = ffi.new("char[]", number.to_bytes(8, sys.byteorder) + os.fsencode(name) + b"\0" * 8)
        entry = ffi.new("struct written_name *")
        entry.record = record
        if entries:
            entries[-1].next = entry
        entries.append(entry)
        kept.append(record)
    return [*entries, *kept]


def _counters_of(kind: str, library, ffi) -> tuple[dict[str, int], dict[str, int]]:
    """Return the places of the counters of a module by name: whole numbers, and others."""
    sizes = {"posix": (69, 17), "stdio": (14, 15)}[kind]
    whole, real = getattr(library, f"{kind}_counter_names"), getattr(library, f"{kind}_f_counter_names")
    return tuple(
        {ffi.string(names[at]).decode(): at for at in range(size)}
        for names, size in zip((whole, real), sizes, strict=True)
    )


def _posix(made: list[Made], files: Mapping[str, int], processes: int, library, ffi) -> list[bytes]:
    by_file: dict[str, dict[int, list[Made]]] = defaultdict(lambda: defaultdict(list))
    for one in made:
        by_file[one.file][one.rank].append(one)
    records = []
    for file, by_rank in by_file.items():
        if len(by_rank) == processes > 1:  # Darshan reduces files that all ranks opened to one record
            records.append(_posix_record(files[file], -1, list(by_rank.values()), library, ffi))
        else:
            records += [_posix_record(files[file], rank, [of], library, ffi) for rank, of in by_rank.items()]
    return records


def _posix_record(file: int, rank: int, of_ranks: list[list[Made]], library, ffi) -> bytes:
    counted: Counter = Counter()
    times: Counter = Counter()
    sizes: Counter = Counter()
    for of_rank in of_ranks:
        last = {True: 0, False: 0}  # the last byte written and read, as Darshan keeps them
        for one in of_rank:
            kind, moved = ("WRITE", "WRITTEN") if one.writes else ("READ", "READ")
            counted[f"POSIX_{kind}S"] += 1
            counted[f"POSIX_BYTES_{moved}"] += one.bytes
            counted[f"POSIX_SEQ_{kind}S"] += one.offset > last[one.writes]
            counted[f"POSIX_CONSEC_{kind}S"] += one.offset == last[one.writes] + 1
            last[one.writes] = one.offset + one.bytes - 1
            which = next(at for at, most in enumerate(LARGEST) if one.bytes <= most)
            counted[f"POSIX_SIZE_{kind}_{CLASSES[which]}"] += 1
            sizes[one.bytes] += 1
            times[f"POSIX_F_{kind}_TIME"] += one.seconds
    for at, (size, count) in enumerate(sizes.most_common(4), 1):
        counted[f"POSIX_ACCESS{at}_ACCESS"], counted[f"POSIX_ACCESS{at}_COUNT"] = size, count
    if rank == -1:
        times["POSIX_F_SLOWEST_RANK_TIME"] = max(sum(one.seconds for one in of_rank) for of_rank in of_ranks)
    record = ffi.new("struct darshan_posix_file *")
    _fill(record, file, rank, counted, times, _counters_of("posix", library, ffi))
    return bytes(ffi.buffer(record))


def _streams(streams: Mapping[str, tuple[int, int]], files: Mapping[str, int], library, ffi) -> Iterable[bytes]:
    for file, (calls, moved) in streams.items():
        record = ffi.new("struct darshan_stdio_file *")
        counted = Counter({"STDIO_WRITES": calls, "STDIO_BYTES_WRITTEN": moved})
        _fill(record, files[file], 0, counted, Counter(), _counters_of("stdio", library, ffi))
        yield bytes(ffi.buffer(record))


def _hosts(host_names: Iterable[str], ffi) -> Iterable[bytes]:
    for at, name in enumerate(host_names):
        record = ffi.new("struct dxt_file_record *")
        record.base_rec.id, record.base_rec.rank, record.hostname = 1000, at, name.encode()
        yield bytes(ffi.buffer(record))


def _fill(record, file: int, rank: int, counted: Counter, times: Counter, places) -> None:
    record.base_rec.id, record.base_rec.rank = file, rank
    for name, value in counted.items():
        record.counters[places[0][name]] = value
    for name, value in times.items():
        record.fcounters[places[1][name]] = value
