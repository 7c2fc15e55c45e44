"""The store of profiles: the SQLite file in which hocketd looks up new applications. One thread at a time may use it.

A program is identified by its name and the SHA-256 of its bytes, so that two programs of one name are kept apart.
Storing a profile replaces only points of the same program and size.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hocket.errors import HocketError
from hocket.profile.points import KEYS, Point, PointError, point_of

SCHEMA = 1
CREATE = """
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS point(
  program TEXT, fingerprint TEXT, mpi TEXT, processes INTEGER, iteration_s REAL, iteration_spread_s REAL, io_s REAL,
  io_spread_s REAL, samples INTEGER, flop_per_iteration REAL, measured_unix_s REAL, arguments TEXT,
  comm_s REAL DEFAULT -1, PRIMARY KEY(program, fingerprint, processes));
"""
COLUMNS = ("program", "fingerprint", "mpi", *KEYS, "arguments")
LOCK_LIMIT_S = 10
SHORT = 12  # digits of a fingerprint that are shown


class StoreError(HocketError):
    """The store cannot be used. The text names the file, and what to do."""


@dataclass(frozen=True)
class Profile:
    """All points of one program, by size."""

    program: str  # base name of the executable
    fingerprint: str  # SHA-256 of its bytes, hexadecimal
    mpi: str
    arguments: str  # with which it was measured
    points: tuple[Point, ...]

    @property
    def measured_unix_s(self) -> float:
        return max((point.measured_unix_s for point in self.points), default=0.0)


def default_path() -> Path:
    """Return the file that hocketd also uses, unless `profiles` in its hocket.toml names another."""
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "hocket" / "profiles.db"


def fingerprint_of(program: Path) -> str:
    try:
        with program.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise HocketError(f"cannot read {program}: {error.strerror}") from error


class Store:
    """A store of profiles. With `write`, it is created if it does not exist.

    Each of its functions raises StoreError.
    """

    def __init__(self, path: Path, write: bool = False) -> None:
        self.path = path
        with self._told():
            if write:
                path.parent.mkdir(parents=True, exist_ok=True)
                with closing(self._connect()) as database, database:
                    self._check(database)
                    database.executescript(CREATE)
                    if not _has_comm(database):
                        database.execute("ALTER TABLE point ADD COLUMN comm_s REAL DEFAULT -1")
                    database.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (str(SCHEMA),))
            elif path.exists():
                with closing(self._connect()) as database:
                    self._check(database)

    def profiles(self, program: str = "") -> list[Profile]:
        """Return the profiles of all programs, or of those with this name: by name, the latest measured first."""
        if not self.path.exists():
            return []
        with self._told(), closing(self._connect()) as database:
            selected = [name if name != "comm_s" or _has_comm(database) else "-1.0" for name in COLUMNS]
            query = f"SELECT {', '.join(selected)} FROM point ORDER BY program, fingerprint, processes"
            rows = [dict(zip(COLUMNS, row, strict=True)) for row in database.execute(query)]
        found: dict[tuple[str, str], list[dict]] = {}
        for row in rows:
            if program in ("", row["program"]):
                found.setdefault((row["program"], row["fingerprint"]), []).append(row)
        return sorted((self._profile(rows) for rows in found.values()), key=lambda p: (p.program, -p.measured_unix_s))

    def put(self, profile: Profile) -> None:
        """Store all points, or none if an error occurs."""
        marks = ", ".join("?" * len(COLUMNS))
        rows = []
        for point in profile.points:
            named = {key: getattr(point, key) for key in KEYS} | {"arguments": profile.arguments, "mpi": profile.mpi}
            named |= {"program": profile.program, "fingerprint": profile.fingerprint}
            rows.append([named[column] for column in COLUMNS])
        with self._told(), closing(self._connect()) as database, database:
            database.executemany(f"INSERT OR REPLACE INTO point({', '.join(COLUMNS)}) VALUES ({marks})", rows)

    def remove(self, profile: Profile) -> None:
        with self._told(), closing(self._connect()) as database, database:
            key = (profile.program, profile.fingerprint)
            database.execute("DELETE FROM point WHERE program = ? AND fingerprint = ?", key)

    def _profile(self, rows: Sequence[dict]) -> Profile:
        first, points = rows[0], []
        for row in rows:
            try:
                points.append(point_of({key: row[key] for key in KEYS}))
            except PointError as error:
                where = f"{self.path}: {first['program']}, {row['processes']} processes"
                raise StoreError(
                    f"{where}: {error}; 'hocket profile rm {first['program']}', and measure again"
                ) from None
        return Profile(first["program"], first["fingerprint"], first["mpi"], first["arguments"], tuple(points))

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=LOCK_LIMIT_S)

    def _check(self, database: sqlite3.Connection) -> None:
        """Raise StoreError unless the database is empty, or a store of this version."""
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            return
        if not {"meta", "point"} <= tables:
            raise StoreError(
                f"{self.path} is a database of something else (it has no tables meta and point); use another"
            )
        row = database.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        if row is None or row[0] != str(SCHEMA):
            told = "none" if row is None else row[0]
            raise StoreError(f"{self.path}: schema = {told}: this hocket reads {SCHEMA}; move the file away or update")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise StoreError(
                f"cannot use the store of profiles {self.path}: {why}; choose another with --store"
            ) from error


def _has_comm(database: sqlite3.Connection) -> bool:
    """Return True if the store has the column comm_s, which older stores lack."""
    return any(name == "comm_s" for _, name, *_ in database.execute("PRAGMA table_info(point)"))
