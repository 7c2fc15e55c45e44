"""The store of curves: a file of jobs for `hocket arbitrate`, with what else is known of each application.

A change replaces the file as a whole, under a lock, so that readers see the old or the new one, and two writers lose
nothing. A file that hocket did not write, or that cannot be read, is left as it is.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hocket.arbitration.jobs import MB, MOST_MB_S, Job, Jobs, bandwidth_of, read_jobs
from hocket.curves.curve import DARSHAN, EXPLORED, SEEN, Curve, Measured
from hocket.errors import HocketError, UsageError

FIRST_LINE = "# Curves of applications, kept by hocket (docs/curves.md). Comments are lost at the next change."
LOCK_LIMIT_S = 10
MOST_NUMBER = 1e9  # of runs, weights, and seconds for each MB
SOURCES = (EXPLORED, DARSHAN, SEEN)


def default_path() -> Path:
    """Return the user's store. Raises HocketError if nothing says where the user's files are."""
    data = os.environ.get("XDG_DATA_HOME")
    try:
        return (Path(data) if data else Path.home() / ".local" / "share") / "hocket" / "curves.toml"
    except RuntimeError as error:
        raise HocketError("there is no home directory for the store of curves; set XDG_DATA_HOME") from error


def patterns_dir(store: Path) -> Path:
    """Return where the patterns are that were measured for the applications of this store."""
    return store.parent / "patterns"


def read(path: Path) -> dict[str, Curve]:
    """Return the curves by name; {} if there is no file. Raises UsageError with file, job, key and value."""
    try:
        is_there = path.exists()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; give another store of curves") from error
    return {job.name: _curve_of(job, path) for job in read_jobs(path).jobs} if is_there else {}


def is_writable_by_hocket(path: Path) -> bool:
    """Return True if there is no file, or hocket has written it: others are only read."""
    try:
        if not path.exists():
            return True
        if not path.is_file():  # a pipe would not end
            return False
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline(len(FIRST_LINE) + 1).rstrip("\n") == FIRST_LINE
    except OSError:
        return False


def check(path: Path) -> None:
    """Raise UsageError if the file cannot be changed: hocket has not written it, or it cannot be read."""
    if not is_writable_by_hocket(path):
        raise UsageError(f"{path} was not written by hocket, and is not changed; give another file (--curves)")
    read(path)


def change(path: Path, how: Callable[[dict[str, Curve]], Mapping[str, Curve]]) -> None:
    """Replace the curves of the file by what `how` returns for them. Raises HocketError; then nothing has changed."""
    path = Path(os.path.realpath(path))  # a link stays a link
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            check(path)
            about = read_jobs(path) if path.exists() else Jobs([], None, None, None)
            changed = how({job.name: _curve_of(job, path) for job in about.jobs})
            if changed:
                replace_file(path, _text(about, changed), _approve)
            else:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise HocketError(f"cannot write {path}: {error.strerror}; give another file (--curves)") from error


def _approve(written: Path) -> None:
    """Refuse what could not be read again: a name or a number that readers do not take."""
    try:
        read(written)
    except UsageError as error:
        raise HocketError(f"this curve cannot be kept: {str(error).removeprefix(f'{written}: ')}") from error


def find(path: Path, name: str, processes: int | None) -> Curve | None:
    """Return the curve of an application of this size; None: nobody knows it. Raises UsageError as `read`."""
    curve = read(path).get(name)
    if curve is None or not curve.rates or (processes is not None and not curve.is_of_size(processes)):
        return None
    return curve


def put(path: Path, curve: Curve) -> None:
    """Store the curve, in place of an earlier one of the application."""
    change(path, lambda curves: curves | {curve.name: curve})


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of the file. The file itself is replaced, so that the lock is one of its own."""
    with path.with_name(f".{path.name}.lock").open("a") as file:
        deadline_s = time.monotonic() + LOCK_LIMIT_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline_s:
                    raise HocketError(f"another command holds {path} for {LOCK_LIMIT_S} s; is it stopped?") from error
                time.sleep(0.01)
        yield


def replace_file(path: Path, text: str, approve: Callable[[Path], None] | None = None) -> None:
    """Write the file anew. Readers see the old content or the new one, also if this is interrupted.

    `approve` may refuse the new file by an exception.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), path.stat().st_mode & 0o777 if path.exists() else 0o644 & ~_umask())
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if approve:
            approve(Path(name))
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# ---- text ------------------------------------------------------------------------------------------------------------


def _text(about: Jobs, curves: Mapping[str, Curve]) -> str:
    lines = [FIRST_LINE]
    if about.servers is not None:
        lines.append(f"servers = {about.servers}")
    system = {"nodes": about.system_nodes, "servers": about.system_servers}
    if any(value is not None for value in system.values()):
        lines.append("[system]")
        lines += [f"{key} = {value}" for key, value in system.items() if value is not None]
    for curve in curves.values():
        lines += ["", *_lines_of(curve)]
    return "\n".join(lines) + "\n"


def _lines_of(curve: Curve) -> list[str]:
    lines = [
        "[[job]]",
        f"name = {quoted(curve.name)}",
        f"nodes = {curve.nodes}",
        f"processes = {curve.processes}",
        f"bandwidth_mb_s = {_table({number: rate / MB for number, rate in curve.bandwidth.items()})}",
        f"found = {quoted('+'.join(curve.found))}",
        f"runs = {curve.runs}",
        f"when = {curve.when.astimezone(UTC).isoformat(timespec='seconds').replace('+00:00', 'Z')}",
    ]
    if curve.pattern:
        lines.append(f"like = {quoted(curve.pattern)}")
    if curve.confidence is not None:
        lines.append(f"confidence = {curve.confidence:.3f}")
    if curve.shape:
        lines.append(f"shape_mb_s = {_table({number: rate / MB for number, rate in curve.shape.items()})}")
    if curve.other_s_per_byte > 0:
        lines.append(f"other_s_per_mb = {min(curve.other_s_per_byte * MB, MOST_NUMBER):.6g}")
    if curve.measured:
        lines.append(f"measured_mb_s = {_table({number: one.rate / MB for number, one in curve.measured.items()})}")
        lines.append(f"measured_weight = {_table({number: one.weight for number, one in curve.measured.items()})}")
    return lines


def quoted(text: str) -> str:
    """Return a basic string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table(values: Mapping[int, float]) -> str:
    """Return an inline table. Values are within the bounds that readers of the file ask for."""
    return (
        "{ " + ", ".join(f"{number} = {min(value, MOST_MB_S):.6g}" for number, value in sorted(values.items())) + " }"
    )


# ---- checks ----------------------------------------------------------------------------------------------------------


def _curve_of(job: Job, path: Path) -> Curve:
    """Return the curve of a job. One without the store's keys, as users write them, was explored."""
    stored, where = job.stored, f"{path}: job '{job.name}'"
    measured = {
        number: Measured(rate, _weight(stored, number, where))
        for number, rate in bandwidth_of(stored, "measured_mb_s", where).items()
    }
    shape = bandwidth_of(stored, "shape_mb_s", where)
    if not measured and not shape:
        measured = {number: Measured(rate, 1) for number, rate in job.bandwidth.items()}
    return Curve(
        name=job.name,
        nodes=job.nodes,
        processes=job.processes,
        found=_found(stored, where),
        when=_when(stored, where),
        runs=int(_number(stored, "runs", where, MOST_NUMBER, 0)),
        measured=measured,
        shape={number: float(rate) for number, rate in shape.items()},
        other_s_per_byte=_number(stored, "other_s_per_mb", where, MOST_NUMBER, 0) / MB,
        pattern=_pattern(stored, where),
        confidence=_number(stored, "confidence", where, 1, 0) if "confidence" in stored else None,
    )


def _weight(stored: Mapping[str, Any], number: int, where: str) -> float:
    weights = stored.get("measured_weight", {})
    if not isinstance(weights, dict):
        raise UsageError(f"{where}: measured_weight = {weights!r} must be a table: {{ 0 = 1, 1 = 2.5 }}")
    weight = _number(weights, str(number), f"{where}: measured_weight", MOST_NUMBER, 1)
    return weight if weight > 0 else 1e-6


def _found(stored: Mapping[str, Any], where: str) -> tuple[str, ...]:
    found = stored.get("found", EXPLORED)
    words = tuple(found.split("+")) if isinstance(found, str) else ()
    if not words or not set(words) <= set(SOURCES):
        raise UsageError(f"{where}: found = {found!r} must be of {', '.join(SOURCES)}, joined by +")
    return words


def _when(stored: Mapping[str, Any], where: str) -> datetime:
    when = stored.get("when", datetime.fromtimestamp(0, UTC))
    if not isinstance(when, datetime) or when.tzinfo is None or not 1970 <= when.year <= 9998:
        raise UsageError(f"{where}: when = {when} must be a time with its zone: 2026-01-31T12:00:00Z")
    return when


def _pattern(stored: Mapping[str, Any], where: str) -> str:
    pattern = stored.get("like", "")
    if not isinstance(pattern, str) or not pattern.isprintable():
        raise UsageError(f"{where}: like = {pattern!r} must be a text of printable letters")
    return pattern


def _number(table: Mapping[str, Any], key: str, where: str, most: float, missing: float) -> float:
    value = table.get(key, missing)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not 0 <= value <= most:
        raise UsageError(f"{where}: {key} = {value!r} must be a number from 0 to {most:g}")
    return float(value)
