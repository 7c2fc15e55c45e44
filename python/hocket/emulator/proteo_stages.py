"""The stages of one of Proteo's files, as one version numbers them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hocket.emulator.keys import COMPUTING, INPUT_OUTPUT, MOST_BYTES, MOST_PROCESSES, MOST_SECONDS, NON_BLOCKING, WAIT
from hocket.emulator.proteo_file import Section
from hocket.emulator.proteo_values import Values
from hocket.errors import UsageError

MOST_GRANULARITY = 1_000_000_000
MOST_IDENTIFIER = 1_000_000


@dataclass(frozen=True)
class Stage:
    """`time_s` is None if bytes say how long a message is. `involved`: processes that do I/O, 0: all."""

    kind: str
    time_s: float | None = None
    bytes: int = 0
    granularity: int = 0
    scaled: bool = False  # FactorS scales the time
    ends_by: str = "operations"
    identifier: int = -1
    involved: int = 0
    per_process: bool = False  # the bytes of a message depend on the number of processes
    label: str = field(default="", compare=False)


def implied_stages(values: Values, general: Section) -> tuple[Stage, ...]:
    """Return the stages of the oldest versions, which had no sections for them: a computation, later a broadcast."""
    granularity = values.whole(general, "granularity", least=1, most=MOST_GRANULARITY)
    ends_by = values.version.compute_ends_by
    kind = "memory" if ends_by == "time" else "compute"
    time_s = values.number(general, "time", 0, MOST_SECONDS)
    if not time_s:
        raise values.mistake(general, "time", "is too little: a computation needs a time above 0")
    computing = Stage(kind, time_s, granularity=granularity, scaled=True, ends_by=ends_by)
    if "bytes" not in values.version.general.values():
        return (computing,)
    bytes_ = values.whole(general, "bytes", most=MOST_BYTES)
    return (computing, Stage("broadcast", bytes=bytes_)) if bytes_ else (computing,)


def stages(values: Values, general: Section, sections: Sequence[Section]) -> tuple[Stage, ...]:
    """Return the stages of a phase. Each wait has its non-blocking stage before it, and the other way round."""
    reader = _StageReader(values, general)
    found = tuple(reader.stage(section) for section in sections)
    pending: dict[int, Section] = {}  # by position
    for at, (stage, section) in enumerate(zip(found, sections, strict=True)):
        if stage.kind in (NON_BLOCKING, WAIT) and values.version.identifiers and stage.identifier < 0:
            told = f"is {stage.kind} in version '{values.version.name}', and needs Stage_Identifier"
            raise values.mistake(section, "kind", told)
        if stage.kind == NON_BLOCKING:
            pending[at] = section
        if stage.kind == WAIT:
            waited = [one for one in pending if found[one].identifier == stage.identifier]
            if not waited:
                raise values.mistake(section, "kind", f"is a wait, and no {NON_BLOCKING} before it is left to wait for")
            for one in waited:
                del pending[one]
    for section in pending.values():
        raise values.mistake(section, "kind", f"is {NON_BLOCKING}, and no wait after it completes it")
    return found


class _StageReader:
    def __init__(self, values: Values, general: Section) -> None:
        self.values, self.general = values, general

    def stage(self, section: Section) -> Stage:
        values = self.values
        kind = values.version.kinds[values.whole(section, "kind", most=len(values.version.kinds) - 1)]
        values.means(section, "kind", kind)
        length = {"bytes": None, "time": None} if "bytes" not in values.version.optional else {"bytes": 0, "time": 0}
        read = Stage(
            kind,
            values.number(section, "time", 0, MOST_SECONDS, length["time"]),
            values.whole(section, "bytes", most=MOST_BYTES, default=length["bytes"]),
            identifier=values.whole(section, "identifier", least=-1, most=MOST_IDENTIFIER, default=-1),
            involved=values.whole(section, "involved", most=MOST_PROCESSES, default=0),
            label=section.label,
        )
        capped = values.flag(section, "capped")
        if kind not in (NON_BLOCKING, WAIT):
            values.note(section, "identifier", f"only {NON_BLOCKING} and {WAIT} have one")
            read = replace(read, identifier=-1)
        if kind not in INPUT_OUTPUT:
            values.note(section, "involved", "only I/O has it")
            read = replace(read, involved=0)
        if kind in COMPUTING:
            return self._computing(read, section, capped)
        return self._wait(read, section, capped) if kind == WAIT else self._message(read, section, capped)

    def _granularity(self, section: Section) -> int:
        where = section if "granularity" in self.values.version.stage.values() else self.general
        usual = self.values.version.usual_granularity
        return self.values.whole(where, "granularity", least=1, most=MOST_GRANULARITY, default=usual)

    def _computing(self, read: Stage, section: Section, capped: bool) -> Stage:
        if not read.time_s:
            raise self.values.mistake(section, "time", "is too little: a computation needs a time above 0")
        if read.bytes:
            self.values.note(section, "bytes", "a computation sends none")
        if capped:
            self.values.note(section, "capped", "Proteo's computations end by operations")
        return replace(read, bytes=0, granularity=self._granularity(section), scaled=True)

    def _wait(self, read: Stage, section: Section, capped: bool) -> Stage:
        if read.bytes:
            self.values.note(section, "bytes", "a wait sends none")
        if read.time_s:
            self.values.note(section, "time", "a wait lasts until its messages have arrived")
        if capped:
            self.values.note(section, "capped", "a wait completes all messages and cancels none")
        return replace(read, time_s=None, bytes=0)

    def _message(self, read: Stage, section: Section, capped: bool) -> Stage:
        """Return a communication or an access. Its bytes say how long it is, or its time."""
        if read.bytes and not capped:
            if read.time_s:
                self.values.note(section, "time", "the bytes say how long the stage is")
            return replace(read, time_s=None, per_process=self._is_per_process(read))
        if not read.time_s:
            raise self._too_short(section, capped)
        if read.kind == NON_BLOCKING:
            told = f"does not say how much is moved; a stage of kind '{read.kind}' needs bytes here"
            raise self.values.mistake(section, "time", told)
        if read.bytes:
            self.values.note(section, "bytes", "the time says how long the stage is")
        version = self.values.version
        bytes_ = self._granularity(section) if version.granularity_is_message else 0
        scaled = version.factor_scales_messages and not capped and read.kind not in INPUT_OUTPUT
        return replace(read, bytes=bytes_, scaled=scaled, ends_by="time")

    def _is_per_process(self, read: Stage) -> bool:
        return read.kind == "alltoall" or (read.kind == "sendrecv" and self.values.version.divides_messages)

    def _too_short(self, section: Section, capped: bool) -> UsageError:
        if capped:
            return self.values.mistake(section, "capped", "needs a time above 0")
        return self.values.mistake(section, "bytes", "is too little: give bytes or a time above 0")
