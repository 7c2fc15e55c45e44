"""Reads the description of an application, checks it, and completes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hocket.emulator import checks
from hocket.emulator.keys import (
    COMPUTING,
    CPU_TIME,
    DATA,
    GROUP,
    INPUT_OUTPUT,
    MESSAGES,
    METHODS,
    PHASE,
    TIMED,
    TOP,
    WAIT,
    read_keys,
    read_stage,
)
from hocket.errors import UsageError
from hocket.toml_checks import Place, Table, read_with_lines, subtable, tables

GRANULARITY = {"compute": 10_000, "memory": 1024}
BACKGROUND = ("async", "single-async", "parallel-async", "join", "wait-sources", "wait-targets", "thread")
TIMED_MESSAGE_BYTES = 8  # of a message that is repeated until its time is over, without bytes of its own


@dataclass(frozen=True)
class Data:
    """What a reconfiguration redistributes, and how it is distributed over the ranks."""

    bytes: int = 0
    constant_bytes: int = 0
    replicated_bytes: int = 0  # in each process
    replicated_constant_bytes: int = 0
    shares: dict[int, tuple[float, ...]] = field(default_factory=dict)
    imbalance: float = 1.0
    distribution: str = "linear"


@dataclass(frozen=True)
class Group:
    """The processes between two reconfigurations, and how the application comes to them. None: the job's method."""

    processes: int
    iterations: int
    factor: float  # FactorS
    spawn: str | None = None
    spawn_strategy: str | None = None
    worlds: str | None = None
    redistribution: str | None = None
    redistribution_strategy: str | None = None
    placement: str | None = None

    @property
    def methods(self) -> str:
        """The names of the methods, as hocket_malleable_request has them."""
        names = [getattr(self, key.name) for key in METHODS]
        return "/".join(name for name in names if name is not None)

    @property
    def in_background(self) -> bool:
        """True if the group before computes while the processes start, or while constant data move."""
        return self.spawn_strategy in BACKGROUND or self.redistribution_strategy in BACKGROUND


@dataclass(frozen=True)
class Stage:
    """A stage of an iteration. Keys that its kind does not have hold their defaults (keys.py)."""

    kind: str
    name: str
    every: int = 1
    repeat: int = 1
    time_s: float | None = None
    ends_by: str | None = None  # None: neither applies
    granularity: int | None = None
    factors: dict[int, float] | None = None  # None: the groups' factors
    shares: dict[int, tuple[float, ...]] = field(default_factory=dict)
    imbalance: float = 1.0
    distribution: str = "linear"
    jitter: float = 0.0
    bytes: int = 0
    dimensions: int = 1
    waits_for: int = -1  # position in the phase of the stage that a wait completes
    file: str | None = None
    access: str = "collective"
    request_bytes: int = 0  # 0: all of a rank's bytes
    pattern: str = "contiguous"
    append: bool = False
    sync: bool = False
    place: Place | str = field(default="", compare=False, repr=False)

    @property
    def burns(self) -> bool:
        """True if its length depends on the core that the rank has: on a crowded one it lasts longer."""
        return self.kind in COMPUTING and self.ends_by in ("operations", CPU_TIME)

    @property
    def is_timed_access(self) -> bool:
        """True if it accesses a file again and again until its time is over."""
        return self.kind in INPUT_OUTPUT and self.ends_by == "time"


@dataclass(frozen=True)
class Phase:
    """Stages that are repeated."""

    iterations: int
    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class Description:
    """An application: groups of processes, and the phases that they compute one after the other."""

    path: Path
    name: str
    seed: int
    oversubscribe: bool
    resize_limit_s: float
    data: Data
    groups: tuple[Group, ...]
    phases: tuple[Phase, ...]
    place: Place = field(compare=False, repr=False)

    @property
    def iterations(self) -> int:
        return sum(one.iterations for one in self.groups)

    @property
    def accessed_bytes(self) -> int | None:
        """What all processes together write to and read from files; None if the time of an access decides that."""
        if any(stage.is_timed_access for stage in self.stages):
            return None
        return sum(
            stage.bytes * stage.repeat * (phase.iterations // stage.every)
            for phase in self.phases
            for stage in phase.stages
            if stage.kind in INPUT_OUTPUT
        )

    @property
    def stages(self) -> list[Stage]:
        return [stage for phase in self.phases for stage in phase.stages]


def read_description(path: Path, processes: int | None = None) -> Description:
    """Read a file. `processes`: at the start, instead of the first group's. Raises UsageError with file, line, and key.

    What the machine does not allow is checked by `machine.check`.
    """
    content, place = read_with_lines(path, "emulate")
    return description_of(content, place, path, processes)


def description_of(content: Table, place: Place, path: Path, processes: int | None = None) -> Description:
    """Return the description that a table holds. Its mistakes name `place`."""
    top = read_keys(TOP, content, place, "data", "group", "phase")
    groups = _groups(content, place, processes)
    return Description(
        path,
        top["name"],
        top["seed"],
        top["oversubscribe"],
        top["resize_limit_s"],
        _data(content, place),
        groups,
        _phases(content, place, sum(one.iterations for one in groups)),
        place,
    )


def _data(content: Table, place: Place) -> Data:
    if "data" not in content:
        return Data()
    table = subtable(content, "data", place, "[data]")
    where = place.below("data", name="data")
    read = read_keys(DATA, table, where)
    checks.shares(read, where)
    checks.data_given(table, read, where)
    for kind in ("", "replicated_"):
        constant_percent = read.pop(f"{kind}constant_percent")
        read[f"{kind}constant_bytes"] = round(read[f"{kind}bytes"] * constant_percent / 100)
    return Data(**{key: value for key, value in read.items() if value is not None})


def _groups(content: Table, place: Place, processes: int | None) -> tuple[Group, ...]:
    groups: list[Group] = []
    for at, table in enumerate(tables(content, "group", place)):
        where = place.below("group", at, name=f"group {at + 1}")
        read = read_keys((*GROUP, *METHODS), table, where)
        if at == 0:
            _check_first(table, where, processes)
            read["processes"] = processes or read["processes"]
        elif read["processes"] == groups[-1].processes:
            told = (
                f"processes = {read['processes']} is what the group before has; a reconfiguration would change nothing"
            )
            raise UsageError(f"{where.of('processes')}: {told}")
        factor = read.pop("factor") or 1 / read["processes"]
        groups.append(Group(factor=factor, **read))
    return tuple(groups)


def _check_first(table: Table, where: Place, processes: int | None) -> None:
    for key in METHODS:
        if key.name in table:
            told = f"{key.name} = {table[key.name]!r} means nothing in the first group: no reconfiguration leads to it"
            raise UsageError(f"{where.of(key.name)}: {told}; remove it")
    if processes is not None and "factor" in table and processes != table["processes"]:
        told = (
            f"factor = {table['factor']!r} is that of {table['processes']} processes; it says nothing of -n {processes}"
        )
        raise UsageError(f"{where.of('factor')}: {told}")


def _phases(content: Table, place: Place, iterations: int) -> tuple[Phase, ...]:
    read: list[tuple[int | None, tuple[Stage, ...], Place]] = []
    names: set[str] = set()
    for at, table in enumerate(tables(content, "phase", place)):
        where = place.below("phase", at, name=f"phase {at + 1}")
        count = read_keys(PHASE, table, where, "stage")["iterations"]
        stages: list[Stage] = []
        for number, one in enumerate(tables(table, "stage", where)):
            below = where.below("stage", number, name=f"phase {at + 1}, stage {number + 1}")
            stages.append(_stage(one, below, names, stages))
        checks.all_waited_for(stages)
        read.append((count, tuple(stages), where))
    counts = _counts([(count, where) for count, _, where in read], iterations)
    for count, (_, stages_, _) in zip(counts, read, strict=True):
        checks.take_place(stages_, count)
    return tuple(Phase(count, stages_) for count, (_, stages_, _) in zip(counts, read, strict=True))


def _counts(read: list[tuple[int | None, Place]], iterations: int) -> list[int]:
    """Return the iterations of each phase. Together they are those of the groups."""
    given = sum(count or 0 for count, _ in read)
    unknown = [where for count, where in read if count is None]
    if len(unknown) > 1:
        raise UsageError(f"{unknown[1]}: key 'iterations' is missing here and in a phase before; one may leave it out")
    if given >= iterations if unknown else given != iterations:
        where = unknown[0] if unknown else read[-1][1]
        told = f"the phases have {given} iterations{' before this one' if unknown else ''}, the groups {iterations}"
        raise UsageError(f"{where.of('iterations')}: {told}; they must be equal together")
    return [iterations - given if count is None else count for count, _ in read]


def _stage(table: Table, place: Place, names: set[str], before: list[Stage]) -> Stage:
    """Return a stage. `names`: of the stages before; `before`: those of this phase."""
    read = read_stage(table, place)
    read["name"] = _named(read, names, place)
    if read["kind"] in TIMED:
        checks.ends(read, place)
        read["ends_by"] = read["ends_by"] or checks.usual_end(read)
    checks.shares(read, place)
    checks.bytes_given(read, place)
    if read["kind"] in COMPUTING:
        read["granularity"] = read["granularity"] or GRANULARITY[read["kind"]]
    if read["kind"] in MESSAGES and read["bytes"] is None:
        read["bytes"] = TIMED_MESSAGE_BYTES
    if read["kind"] == WAIT:
        read["waits_for"] = checks.waited_for(read["waits_for"], before, place)
        read["every"] = before[read["waits_for"]].every
    return Stage(place=place, **{key: value for key, value in read.items() if value is not None})


def _named(read: dict[str, Any], names: set[str], place: Place) -> str:
    name = read["name"]
    if name in names:
        raise UsageError(f"{place.of('name')}: name = '{name}' is that of an earlier stage; give another")
    number = 1
    while name is None or name in names:
        usual = read["kind"] if number == 1 else f"{read['kind']}-{number}"
        name = None if usual in names else usual
        number += 1
    names.add(name)
    return str(name)
