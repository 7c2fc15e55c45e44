"""Turns the program of one of Proteo's files into a description in our format (docs/emulate.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hocket.emulator.description import Description, description_of
from hocket.emulator.keys import COMPUTING, INPUT_OUTPUT, NON_BLOCKING, WAIT
from hocket.emulator.proteo import Imported
from hocket.emulator.proteo_program import Group, Phase, Program
from hocket.emulator.proteo_stages import Stage
from hocket.errors import UsageError
from hocket.toml_checks import Place, Table
from hocket.toml_text import tables_text

MOST_REQUEST = 1 << 20  # bytes that Proteo writes or reads in one call


def described(imported: Imported, processes: int | None = None) -> Description:
    """Return the description to run. `processes`: at the start, instead of the first group's."""
    return description_of(_Writer(imported).table(), Place(imported.path, {}), imported.path, processes)


def text_of(imported: Imported) -> str:
    """Return the description as a TOML file, which the checker accepts."""
    table = _Writer(imported).table()
    description_of(table, Place(imported.path, {}), imported.path)
    return f"# {imported.path.name}, a file of Proteo's version '{imported.version}'.\n" + tables_text(table)


class _Writer:
    def __init__(self, imported: Imported) -> None:
        self.path = imported.path
        self.program: Program = imported.program
        self.sizes = sorted({one.processes for one in self.program.groups})
        self.files: dict[str, str] = {}  # by the section of the stage
        self.sends = 0

    def table(self) -> Table:
        table: Table = {"name": self.path.stem or "proteo"}
        bytes_ = self.program.variable_bytes + self.program.constant_bytes
        if bytes_:
            table["data"] = {"bytes": bytes_, "constant_percent": 100 * self.program.constant_bytes / bytes_}
        table["group"] = [
            {
                "processes": one.processes,
                "iterations": one.iterations,
                "factor": one.factor,
                **dict(one.methods),
            }
            for one in self.program.groups
        ]
        table["phase"] = [
            {"iterations": phase.iterations, "stage": list(self._stages(phase, group))}
            for phase, group in self._phases()
        ]
        return table

    def _phases(self) -> Iterator[tuple[Phase, Group]]:
        """Yield phases, each with a group that computes it.

        Bytes of each process and not of all make a stage differ between groups. Its phase is split where they change.
        """
        start = 0
        for phase in self.program.phases:
            parts = list(_parts(self.program.groups, start, phase.iterations))
            start += phase.iterations
            if any(_depends_on_group(one) for one in phase.stages) and len({one.processes for one, _ in parts}) > 1:
                yield from ((replace(phase, iterations=count), group) for group, count in parts)
            else:
                yield phase, parts[0][0]

    def _stages(self, phase: Phase, group: Group) -> Iterator[Table]:
        pending: list[tuple[Stage, str]] = []
        for stage in phase.stages:
            if stage.kind == NON_BLOCKING:
                self.sends += 1
                name = f"{NON_BLOCKING}-{self.sends}"
                pending.append((stage, name))
                yield {"kind": stage.kind, "name": name, "bytes": stage.bytes}
            elif stage.kind == WAIT:
                waited = [one for one in pending if one[0].identifier == stage.identifier]
                pending = [one for one in pending if one not in waited]
                yield from ({"kind": stage.kind, "waits_for": name} for _, name in waited)
            elif stage.kind in INPUT_OUTPUT:
                yield self._access(stage, group)
            else:
                yield self._timed(stage, group)

    def _timed(self, stage: Stage, group: Group) -> Table:
        """Return a computation, or a communication that all processes take part in at once."""
        table: Table = {"kind": stage.kind}
        if stage.time_s is not None:
            table |= {"time_s": float(stage.time_s), "ends_by": stage.ends_by}
        if stage.kind in COMPUTING:
            return table | {"granularity": stage.granularity}
        if stage.scaled and any(one.factor != 1 for one in self.program.groups):
            table["factors"] = self._factors(stage)
        if stage.bytes:
            table["bytes"] = _sent(stage, group.processes)
        return table

    def _factors(self, stage: Stage) -> dict[str, float]:
        """Return how the time of a message scales: as the groups do."""
        factors: dict[str, float] = {}
        for group in self.program.groups:
            if factors.setdefault(str(group.processes), group.factor) != group.factor:
                told = f"[{stage.label}] lasts a time, and two groups of {group.processes} processes differ in FactorS"
                raise UsageError(f"{self.path}: {told}; give both the same, or Stage_Bytes")
        return dict(sorted(factors.items(), key=lambda one: int(one[0])))

    def _access(self, stage: Stage, group: Group) -> Table:
        """Return I/O: each process that takes part has a file of its own to write, or reads the one file, by POSIX."""
        file = self.files.setdefault(stage.label, f"{stage.kind}-{len(self.files) + 1}.dat")
        access = "file-per-process" if stage.kind == "write" else "posix"
        involved = stage.involved or group.processes
        table: Table = {
            "kind": stage.kind,
            "file": file,
            "access": access,
            "bytes": stage.bytes * min(involved, group.processes),
        }
        if stage.ends_by == "time":
            table |= {"time_s": float(stage.time_s or 0), "ends_by": "time"}
        if stage.bytes > MOST_REQUEST:
            table["request_bytes"] = MOST_REQUEST
        shares = {
            str(size): [1 / involved if rank < involved else 0.0 for rank in range(size)]
            for size in self.sizes
            if stage.involved and involved < size
        }
        return table | ({"shares": shares} if shares else {}) | ({"append": True} if stage.kind == "write" else {})


def _depends_on_group(stage: Stage) -> bool:
    return stage.per_process or stage.kind in INPUT_OUTPUT


def _sent(stage: Stage, processes: int) -> int:
    """Return the bytes of a message as our format counts them."""
    if not stage.per_process:
        return stage.bytes
    # Alltoall: Proteo counts bytes to each process, we those to all. Else Proteo divides its bytes by the processes.
    return stage.bytes * processes if stage.kind == "alltoall" else -(-stage.bytes // processes)


def _parts(groups: Sequence[Group], start: int, count: int) -> Iterator[tuple[Group, int]]:
    """Yield the groups that compute iterations from `start` on, each with the number of them."""
    first = 0
    for group in groups:
        within = min(start + count, first + group.iterations) - max(start, first)
        if within > 0:
            yield group, within
        first += group.iterations
