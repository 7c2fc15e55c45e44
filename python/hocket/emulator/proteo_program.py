"""Reads one of Proteo's files as one version understands it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hocket.emulator import proteo_methods
from hocket.emulator.keys import MOST_BYTES, MOST_FACTOR, MOST_ITERATIONS, MOST_PROCESSES
from hocket.emulator.proteo_file import ProteoFile, Section
from hocket.emulator.proteo_stages import Stage, implied_stages, stages
from hocket.emulator.proteo_values import Values
from hocket.emulator.proteo_versions import PLACEMENTS, Version
from hocket.errors import UsageError

MOST_PARTS = 10_000  # stages and phases
LEAST_FACTOR = 1e-9
CAPTURES = ("the maximum", "the mean", "the median")


@dataclass(frozen=True)
class Group:
    """Processes, and the methods of the reconfiguration that leads to them: key and word of our format."""

    processes: int
    iterations: int
    factor: float
    methods: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Phase:
    iterations: int
    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class Program:
    """What a file describes, without the names of its keys. Two versions that read the same program agree."""

    variable_bytes: int
    constant_bytes: int
    groups: tuple[Group, ...]
    phases: tuple[Phase, ...]


@dataclass(frozen=True)
class Reading:
    """A file as one version reads it. `notes`: lines for the user. `meanings`: line, key, and what it was taken for."""

    version: Version
    program: Program
    notes: tuple[str, ...]
    meanings: tuple[tuple[int, str, str], ...]


def read_as(file: ProteoFile, version: Version) -> Reading:
    """Return what the file says in this version. Raises UsageError, one line, for the first mistake."""
    values = Values(file, version)
    generals = file.of("general")
    if not generals:
        raise UsageError(f"{file.path}: there is no section [general]; this is no configuration of Proteo")
    reader = _ProgramReader(values, generals[0])
    return Reading(version, reader.program(), tuple(values.notes), tuple(values.meanings))


class _ProgramReader:
    def __init__(self, values: Values, general: Section) -> None:
        self.values, self.general = values, general
        self.variable_bytes, self.constant_bytes = self._data()

    def program(self) -> Program:
        count = self.values.whole(self.general, "resizes", most=MOST_PARTS) + 1
        sections = self.values.numbered("group", self.general, "resizes", count)
        groups = self._groups(sections)
        phases = self._phases(sum(one.iterations for one in groups))
        if self.values.version.phased:
            groups = self._with_the_rest(groups, sections, sum(one.iterations for one in phases))
        self._notes_of_general()
        return Program(self.variable_bytes, self.constant_bytes, groups, phases)

    def _data(self) -> tuple[int, int]:
        """Return the variable and the constant bytes of a reconfiguration."""
        values, general = self.values, self.general
        if "data" in values.version.general.values():
            bytes_ = int(values.number(general, "data", 0, MOST_BYTES))
            constant = round(bytes_ * values.number(general, "percent", 0, 100) / 100)
            return bytes_ - constant, constant
        element = values.whole(general, "element", least=1, most=MOST_BYTES, default=1)
        most = MOST_BYTES // element // 2
        variable = int(values.number(general, "variable", 0, most))
        constant = int(values.number(general, "constant", 0, most))
        if 0 < constant <= 100 < variable:
            values.tell(
                general, "constant", "is an amount, as Proteo reads it; only its script that expands files takes %"
            )
        return variable * element, constant * element

    def _groups(self, sections: list[Section]) -> tuple[Group, ...]:
        groups: list[Group] = []
        for section in sections:
            read = self._group(section)
            if not groups:
                self._notes_of_first(section)
            elif read.processes == groups[-1].processes:
                told = "is what the group before has; hocket makes no reconfiguration to the same number"
                raise self.values.mistake(section, "processes", told)
            else:
                read = replace(read, methods=self._methods(section))
            groups.append(read)
        return tuple(groups)

    def _group(self, section: Section) -> Group:
        return Group(
            self.values.whole(section, "processes", least=1, most=MOST_PROCESSES),
            self.values.whole(section, "iterations", least=1, most=MOST_ITERATIONS),
            float(self.values.number(section, "factor", LEAST_FACTOR, MOST_FACTOR)),
        )

    def _methods(self, section: Section) -> tuple[tuple[str, str], ...]:
        found = proteo_methods.methods(self.values, self.general, section, self.constant_bytes)
        return (*found.items(), ("placement", self._placement(section)))

    def _placement(self, section: Section) -> str:
        word = self.values.needed(section, "placement").value
        allowed = self.values.version.placements
        if word not in allowed:
            raise self.values.mistake(section, "placement", f"is unknown; use {' or '.join(allowed)}")
        return PLACEMENTS[str(word)]

    def _notes_of_first(self, section: Section) -> None:
        """Name what leads to the first group: mpiexec does, and no reconfiguration (section 4.4 of the paper)."""
        self._placement(section)
        entries = (self.values.entry(section, role) for role in ("placement", *proteo_methods.ROLES))
        found = sorted((one for one in entries if one is not None), key=lambda one: one.line)
        shown = ", ".join(one.shown for one in found)
        told = f"{shown} in [{section.label}] mean nothing here: no reconfiguration leads to the first group"
        self.values.notes.append(f"{self.values.file.path}, line {found[0].line}: {told}")

    def _phases(self, iterations: int) -> tuple[Phase, ...]:
        values, general = self.values, self.general
        if not values.version.kinds:
            return (Phase(iterations, implied_stages(values, general)),)
        if not values.version.phased:
            return (Phase(iterations, self._stages(general)),)
        count = values.whole(general, "phases", least=1, most=MOST_PARTS)
        return tuple(
            Phase(values.whole(section, "iterations", least=1, most=MOST_ITERATIONS), self._stages(section))
            for section in values.numbered("phase", general, "phases", count)
        )

    def _stages(self, of: Section) -> tuple[Stage, ...]:
        count = self.values.whole(of, "stages", least=1, most=MOST_PARTS)
        return stages(self.values, self.general, self.values.numbered("stage", of, "stages", count))

    def _with_the_rest(self, groups: tuple[Group, ...], sections: list[Section], iterations: int) -> tuple[Group, ...]:
        """Return the groups of a file with phases: the last one computes what is left of them, whatever its Iters."""
        left = iterations - sum(one.iterations for one in groups[:-1])
        if left < 1:
            told = f"leaves no iteration to the last group: the phases have {iterations} together"
            raise self.values.mistake(sections[-2], "iterations", told)
        if left != groups[-1].iterations:
            told = f"the last group computes what is left of the phases, {left} iterations"
            self.values.note(sections[-1], "iterations", told)
        return (*groups[:-1], replace(groups[-1], iterations=left))

    def _notes_of_general(self) -> None:
        if self.values.entry(self.general, "rigid") is not None:
            self.values.flag(self.general, "rigid")
            self.values.note(self.general, "rigid", "the record times each rank's stages without barriers")
        number = self.values.whole(self.general, "capture", most=len(CAPTURES) - 1, default=0)
        self.values.note(self.general, "capture", f"the record has each rank's times, not only {CAPTURES[number]}")
