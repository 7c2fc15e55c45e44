"""The measured patterns in the output of `hocket explore`: patterns.toml describes them, curves.toml has the curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from hocket.arbitration.jobs import read_jobs
from hocket.curves.match import CONTIGUOUS, STRIDED, MeasuredPattern
from hocket.curves.store import quoted, replace_file
from hocket.errors import HocketError, UsageError
from hocket.exploration.patterns import Pattern, read_patterns

DESCRIBED, CURVES = "patterns.toml", "curves.toml"
EXPLORE = "measure some with 'hocket explore PATTERNS.toml'"


def read(directory: Path) -> list[MeasuredPattern]:
    """Return the patterns that have a curve of I/O alone. Raises UsageError."""
    if not (directory / DESCRIBED).exists():
        raise UsageError(f"{directory}: there are no measured patterns (no {DESCRIBED}); {EXPLORE}")
    curves = {job.name: job.bandwidth for job in read_jobs(directory / CURVES).jobs}
    described = read_patterns(directory / DESCRIBED).patterns
    found = [_measured(one, curves[one.name]) for one in described if curves.get(one.name) and not _pauses(one)]
    if not found:
        raise UsageError(f"{directory}: no pattern of {DESCRIBED} has a curve in {CURVES}; {EXPLORE}")
    return found


def _pauses(one: Pattern) -> bool:
    """Return True if its curve is not that of I/O alone."""
    return any(phase.pause_s > 0 or phase.request_pause_s > 0 for phase in one.phases)


def _measured(one: Pattern, rates: Mapping[int, int]) -> MeasuredPattern:
    (phase,) = one.phases  # a file of patterns has no others
    return MeasuredPattern(
        name=one.name,
        nodes=one.nodes,
        processes=one.processes,
        shared=phase.layout != "own",
        spatiality=STRIDED if phase.layout == "strided" else CONTIGUOUS,
        operation=phase.operation,
        request_bytes=phase.request_bytes,
        direct=phase.direct,
        rates=rates,
    )


def text_of(patterns: Iterable[Pattern]) -> str:
    """Return a file of patterns that describes these."""
    return "\n".join(_table_of(one) for one in patterns)


def _table_of(one: Pattern) -> str:
    (phase,) = one.phases
    active = "" if phase.active_processes is None else f"active_processes = {phase.active_processes}\n"
    return (
        f"[[pattern]]\nname = {quoted(one.name)}\nnodes = {one.nodes}\nprocesses_per_node = {one.group}\n"
        f'layout = "{phase.layout}"\nrequest = {phase.request_bytes}\noperation = "{phase.operation}"\n'
        f"direct = {str(phase.direct).lower()}\ntotal = {phase.total_bytes}\nseconds = {phase.seconds:g}\n{active}"
        f"rounds = {phase.rounds}\npause_s = {phase.pause_s:g}\nrequest_pause_s = {phase.request_pause_s:g}\n"
        f"new_file = {str(phase.new_file).lower()}\n"
    )


def keep(results: Path, directory: Path) -> None:
    """Copy the patterns of an exploration to where the store's are, in place of earlier ones."""
    if results.resolve() == directory.resolve():
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in (CURVES, DESCRIBED):
            replace_file(directory / name, (results / name).read_text(encoding="utf-8"))
    except OSError as error:
        raise HocketError(f"cannot write {directory}: {error.strerror}; give another file (--curves)") from error
