"""The keys of a description, declared once: the reader, the schema, and --print-schema follow from this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hocket.errors import UsageError
from hocket.toml_checks import (
    MUST,
    Place,
    Table,
    is_number,
    is_whole,
    needed,
    number,
    only,
    shown,
    size,
    text,
    truth,
    whole,
    word,
)

COMPUTING = ("compute", "memory")
CPU_TIME = "cpu-time"
MESSAGES = ("sendrecv", "broadcast", "allgatherv", "reduce", "allreduce", "alltoall", "halo")
NON_BLOCKING = "isend-irecv"
WAIT = "wait"
INPUT_OUTPUT = ("write", "read")
STAGES = (*COMPUTING, "sleep", *MESSAGES, NON_BLOCKING, WAIT, *INPUT_OUTPUT)
# Stages whose processes may differ in the bytes that they send; the others have one size by definition.
UNEQUAL = ("sendrecv", "allgatherv", "alltoall", "halo", NON_BLOCKING, *INPUT_OUTPUT)
TIMED = (*COMPUTING, "sleep", *MESSAGES, *INPUT_OUTPUT)

MOST_PROCESSES = 65536
MOST_ITERATIONS = 1 << 40
MOST_BYTES = 1 << 50
MOST_MESSAGE = (1 << 31) - 1  # bytes; MPI counts with int
MOST_SECONDS = 86400.0
MOST_FACTOR = 1e6
SHARES_OFF = 1e-3  # the largest distance of a sum of shares from 1


@dataclass(frozen=True)
class Key:
    """A key of a table.

    `kind` is whole, number, truth, text, word, size, factors, or shares. `stages` are the kinds of stages that have it.
    """

    name: str
    kind: str
    meaning: str
    default: Any = MUST  # None: the reader derives it
    least: float = 0
    most: float = 0
    words: tuple[str, ...] = ()
    stages: tuple[str, ...] = STAGES
    example: str = ""

    def read(self, table: Table, place: Place) -> Any:
        """Return the value, or the default. Raises UsageError with file, line, key, and value."""
        if self.name not in table:
            if self.default is MUST:
                needed(table, self.name, place, self.example)
            return self.default
        if self.kind == "whole":
            return whole(table, self.name, place, least=int(self.least), most=int(self.most))
        if self.kind == "number":
            return number(table, self.name, place, least=self.least, most=self.most, default=0)
        if self.kind == "truth":
            return truth(table, self.name, place, default=False)
        if self.kind == "word":
            return word(table, self.name, place, self.words)
        if self.kind == "size":
            return size(table, self.name, place, most=int(self.most), default="1")
        if self.kind == "factors":
            return _factors(table[self.name], self, place)
        if self.kind == "shares":
            return _shares(table[self.name], self, place)
        return text(table, self.name, place)


def _sizes(value: Any, key: Key, place: Place) -> dict[int, Any]:
    """Return a table whose keys are numbers of processes."""
    if not isinstance(value, dict) or not value:
        raise UsageError(f"{place.of(key.name)}: {key.name} = {value!r} must be a table: {key.example}")
    for one in value:
        if not (one.isdecimal() and one.isascii() and is_whole(int(one), 1, MOST_PROCESSES)):
            told = f"key '{one}' of {key.name} must be a number of processes, from 1 to {MOST_PROCESSES}"
            raise UsageError(f"{place.of(key.name, one)}: {told}")
    return {int(one): value[one] for one in sorted(value, key=int)}


def _factors(value: Any, key: Key, place: Place) -> dict[int, float]:
    found = _sizes(value, key, place)
    for processes, factor in found.items():
        if not is_number(factor, 0, MOST_FACTOR) or factor == 0:
            where = place.of(key.name, str(processes))
            raise UsageError(f"{where}: {key.name}.{processes} = {factor!r} must be above 0, at most {MOST_FACTOR:g}")
    return {processes: float(factor) for processes, factor in found.items()}


def _shares(value: Any, key: Key, place: Place) -> dict[int, tuple[float, ...]]:
    found = _sizes(value, key, place)
    for processes, shares in found.items():
        where, name = place.of(key.name, str(processes)), f"{key.name}.{processes}"
        if not isinstance(shares, list) or not all(is_number(one, 0, 1) for one in shares):
            raise UsageError(f"{where}: {name} = {shares!r} must be a list of numbers from 0 to 1")
        if len(shares) != processes:
            told = f"{name} = {shown(shares)} has {len(shares)} shares"
            raise UsageError(f"{where}: {told}; give one to each of the {processes} processes")
        if abs(sum(shares) - 1) > SHARES_OFF:
            raise UsageError(f"{where}: {name} = {shares!r} has the sum {sum(shares):g}; it must be 1")
    return {processes: tuple(map(float, shares)) for processes, shares in found.items()}


TOP = (
    Key("name", "text", "name of the application in listings", example='name = "cg"'),
    Key(
        "resize_limit_s",
        "number",
        "the longest wait for processes that a group asks for; the group before then continues",
        60.0,
        least=0.001,
        most=MOST_SECONDS,
    ),
    Key("seed", "whole", "of jitter and of random distributions", 1, least=0, most=(1 << 53)),
    Key(
        "oversubscribe",
        "truth",
        "allow more processes than cores, although computing does not end by time",
        False,
    ),
)


def _sharing(of: str, stages: tuple[str, ...] = STAGES) -> tuple[Key, ...]:
    """Return the keys that distribute `of` over the ranks."""
    return (
        Key(
            "shares",
            "shares",
            f"each rank's share of the {of} by number of processes (default: equal)",
            None,
            stages=stages,
            example="{ 2 = [0.4, 0.6] }",
        ),
        Key(
            "imbalance",
            "number",
            "the largest share over the mean, instead of shares",
            None,
            least=1,
            most=MOST_PROCESSES,
            stages=stages,
        ),
        Key(
            "distribution",
            "word",
            "with imbalance: shares fall from rank 0 on; rank 0 alone has more; or they are drawn from the seed",
            None,
            words=("linear", "one", "random"),
            stages=stages,
        ),
    )


DATA = (
    Key("bytes", "size", "of which each process has a part; a reconfiguration redistributes them", 0, most=MOST_BYTES),
    Key("constant_percent", "number", "of the bytes: constant data; the rest are variable", 100.0, most=100),
    Key(
        "replicated_bytes",
        "size",
        "which each process has; a reconfiguration sends them to new ones",
        0,
        most=MOST_BYTES,
    ),
    Key("replicated_constant_percent", "number", "of the replicated bytes: constant data", 100.0, most=100),
    *_sharing("bytes"),
)
GROUP = (
    Key("processes", "whole", "of this group", least=1, most=MOST_PROCESSES, example="processes = 4"),
    Key(
        "iterations",
        "whole",
        "that this group computes before the next reconfiguration, or the end",
        least=1,
        most=MOST_ITERATIONS,
        example="iterations = 500",
    ),
    Key(
        "factor",
        "number",
        "FactorS: the time of a computing stage with this group, over that with one process (default: 1 / processes)",
        None,
        least=1e-9,
        most=MOST_FACTOR,
    ),
)
# Methods of the reconfiguration that leads into a group. None: those of the job (docs/malleable.md).
METHODS = (
    Key("spawn", "word", "which processes compute afterwards", None, words=("merge", "baseline")),
    Key(
        "spawn_strategy",
        "word",
        "which ranks start processes",
        None,
        words=("plain", "single", "parallel", "async", "single-async", "parallel-async", "join"),
    ),
    Key("worlds", "word", "which new processes can only leave together", None, words=("process", "node")),
    Key(
        "redistribution",
        "word",
        "functions that move the data",
        None,
        words=("p2p", "collective", "rma-lock", "rma-lockall"),
    ),
    Key(
        "redistribution_strategy",
        "word",
        "when constant data move",
        None,
        words=("blocking", "wait-sources", "wait-targets", "thread"),
    ),
    Key(
        "placement", "word", "few processes on each node, or as many as it has cores", None, words=("compact", "spread")
    ),
)
PHASE = (
    Key(
        "iterations",
        "whole",
        "of this phase; one phase may leave it out and gets the rest of those of the groups",
        None,
        least=1,
        most=MOST_ITERATIONS,
    ),
)
_SHARED = (*COMPUTING, "sleep", *UNEQUAL)
STAGE = (
    Key("kind", "word", "of the stage", words=STAGES, example='kind = "compute"'),
    Key("name", "text", "in the record, unique (default: the kind, with a number if there are several)", None),
    Key(
        "every",
        "whole",
        "the stage takes place in each iteration of this number: 10 means iterations 10, 20, …",
        1,
        least=1,
        most=MOST_ITERATIONS,
        stages=tuple(one for one in STAGES if one != WAIT),
    ),
    Key(
        "repeat",
        "whole",
        "times that it takes place then, e.g. accesses of one I/O phase",
        1,
        least=1,
        most=1_000_000,
        stages=tuple(one for one in STAGES if one not in (WAIT, NON_BLOCKING)),
    ),
    Key(
        "time_s",
        "number",
        "seconds with one process, times the factor: CPU time of a computing stage; elapsed time with ends_by = 'time'",
        None,
        most=MOST_SECONDS,
        stages=TIMED,
        example="time_s = 0.012",
    ),
    Key(
        "ends_by",
        "word",
        "what ends the stage: a number of operations, elapsed time, or the CPU time of a rank that computes (default: "
        "time for a message or an access with time_s; else operations)",
        None,
        words=("operations", "time", CPU_TIME),
        stages=TIMED,
    ),
    Key(
        "granularity",
        "whole",
        "size of an operation: random points (compute, default 10000), rows of the matrix (memory, default 1024)",
        None,
        least=1,
        most=1_000_000_000,
        stages=COMPUTING,
    ),
    Key(
        "factors",
        "factors",
        "scaling of time_s by number of processes (default: the groups' factors for computing, 1 for others)",
        None,
        stages=TIMED,
        example="{ 1 = 1.0, 2 = 0.55 }",
    ),
    *_sharing("time or bytes", _SHARED),
    Key(
        "jitter",
        "number",
        "relative standard deviation of the time, of each rank and iteration, from the seed",
        0.0,
        most=1,
        stages=(*COMPUTING, "sleep"),
    ),
    Key(
        "bytes",
        "size",
        "that a rank sends (sendrecv, isend-irecv; halo: to each neighbour; alltoall: to all), or of the result "
        "(broadcast, reduce, allreduce, allgatherv), or of one access of all ranks together",
        None,
        most=MOST_BYTES,
        stages=(*MESSAGES, NON_BLOCKING, *INPUT_OUTPUT),
        example="bytes = 8_000_000",
    ),
    Key("dimensions", "whole", "of the grid of ranks", 1, least=1, most=3, stages=("halo",)),
    Key("waits_for", "text", "name of the non-blocking stage (default: the one before)", None, stages=(WAIT,)),
    Key(
        "file", "text", "name of the file, in the directory of the run", stages=INPUT_OUTPUT, example='file = "out.dat"'
    ),
    Key(
        "access",
        "word",
        "functions: MPI-IO by all ranks together, MPI-IO by each, POSIX with a file for each rank, POSIX in one file",
        "collective",
        words=("collective", "independent", "file-per-process", "posix"),
        stages=INPUT_OUTPUT,
    ),
    Key(
        "request_bytes",
        "size",
        "of one call of a rank (default: all of a rank's bytes)",
        None,
        most=MOST_MESSAGE,
        stages=INPUT_OUTPUT,
    ),
    Key(
        "pattern",
        "word",
        "each rank has one extent of the file, or the ranks' requests alternate",
        "contiguous",
        words=("contiguous", "strided"),
        stages=INPUT_OUTPUT,
    ),
    Key("append", "truth", "each access writes behind the one before, not over it", False, stages=("write",)),
    Key("sync", "truth", "each access ends when the data are on the disk", False, stages=("write",)),
)
TABLES = {"data": DATA, "group": (*GROUP, *METHODS), "phase": PHASE, "stage": STAGE}


def read_keys(keys: tuple[Key, ...], table: Table, place: Place, *also: str) -> dict[str, Any]:
    """Return the values of all keys of a table. `also`: keys that have tables."""
    only(table, [*(key.name for key in keys), *also], place)
    return {key.name: key.read(table, place) for key in keys}


def read_stage(table: Table, place: Place) -> dict[str, Any]:
    """Return the values of a stage; of the keys that its kind does not have, the defaults."""
    only(table, [key.name for key in STAGE], place)
    kind = STAGE[0].read(table, place)
    for key in STAGE:
        if key.name in table and kind not in key.stages:
            allowed = ", ".join(one.name for one in STAGE if kind in one.stages)
            value = table[key.name]
            told = f"{key.name} = {value!r} means nothing in a stage of kind '{kind}'; it has {allowed}"
            raise UsageError(f"{place.of(key.name)}: {told}")
    return {key.name: key.read(table, place) for key in STAGE if kind in key.stages}
