"""Compares runs of the same applications: what sharing a target costs, and what taking turns costs.

interference factor I     = T_io(together, uncoordinated) / T_io(alone)
scheduling cost factor C  = (T_io + T_wait)(together, scheduled) / T_io(alone)          (CLARISSE, section V-C)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from hocket.analysis import Analysis, analyse
from hocket.errors import UsageError
from hocket.trace import Trace, read_trace
from hocket.unstopped import waited_s, waiting_for

ALONE, UNCOORDINATED, SCHEDULED, OTHER = "alone", "uncoordinated", "scheduled", ""
ROLES = (ALONE, UNCOORDINATED, SCHEDULED, OTHER)


@dataclass
class Run:
    """Applications that ran together. With role ALONE: each by itself, with one trace each.

    `traces`: paths, or traces that were read already. `role` says how the run enters the factors; OTHER is only shown.
    """

    label: str
    traces: Sequence[Path | str | Trace]
    role: str = OTHER
    analyses: list[Analysis] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise UsageError(f"run '{self.label}': role '{self.role}' is none of alone, uncoordinated, scheduled")
        self.traces = [trace if isinstance(trace, Trace) else read_trace(trace) for trace in self.traces]
        self.analyses = [analyse(trace) for trace in self.traces]


@dataclass(frozen=True)
class Row:
    """The figures of one application in one run. A factor is None if the run has another role."""

    application: str
    run: str
    role: str
    processes: int
    io_s: float
    wait_s: float
    total_s: float
    phases: int
    bytes_read: int
    bytes_written: int
    interference: float | None = None
    cost: float | None = None
    interruptions: int = 0
    # Accesses that were to be preempted and could not stop, and what others waited for their ends (hocket.unstopped).
    unstopped: int = 0
    unstopped_wait_s: float = 0.0
    unstopped_for: tuple[str, ...] = ()
    # Mean and largest value over the processes, in seconds; a largest value of 0 is not known.
    cpu_s: float = 0.0
    comm_s: float = 0.0
    cpu_most_s: float = 0.0
    comm_most_s: float = 0.0
    place: str = ""  # its nodes, if the run had several, and its job


def compare(runs: Sequence[Run], io_alone_s: Mapping[str, float] | None = None) -> list[Row]:
    """Return a row for each application and run, by application, in the order of the runs.

    `io_alone_s`: T_io(alone) by application, if it is known without a run of role ALONE.
    """
    alone = {**(io_alone_s or {}), **_io_alone(run for run in runs if run.role == ALONE)}
    rows = [row for run in runs for row in _rows(run, alone)]
    names = list(dict.fromkeys(row.application for row in rows))
    return sorted(rows, key=lambda row: names.index(row.application))


def _io_alone(runs: Iterable[Run]) -> dict[str, float]:
    """Return T_io(alone) of each application: the median if it ran alone several times."""
    times: dict[str, list[float]] = {}
    for analysis in (analysis for run in runs for analysis in run.analyses):
        for application in analysis.applications:
            times.setdefault(application.name, []).append(application.io_s(analysis.now_ns))
    return {name: median(values) for name, values in times.items()}


def _rows(run: Run, alone: dict[str, float]) -> Iterable[Row]:
    for analysis in run.analyses:
        for application in analysis.applications:
            times, spent = application.times(analysis.now_ns), application.spent()
            io_s, wait_s = times.io_ns / 1e9, times.wait_ns / 1e9
            reference = alone.get(application.name, 0.0)
            yield Row(
                application=application.name,
                run=run.label,
                role=run.role,
                processes=application.processes,
                io_s=io_s,
                wait_s=wait_s,
                total_s=application.total_s(analysis.now_ns),
                phases=len(application.io_phases),
                bytes_read=application.bytes("read"),
                bytes_written=application.bytes("written"),
                interference=io_s / reference if reference and run.role == UNCOORDINATED else None,
                cost=(io_s + wait_s) / reference if reference and run.role == SCHEDULED else None,
                interruptions=application.interruptions,
                unstopped=len(application.unstopped),
                unstopped_wait_s=waited_s(application.unstopped),
                unstopped_for=waiting_for(application.unstopped),
                cpu_s=spent.cpu_s,
                comm_s=spent.comm_s,
                cpu_most_s=spent.cpu_most_s,
                comm_most_s=spent.comm_most_s,
                place=application.place.text(with_nodes=analysis.has_several_nodes),
            )


HEADINGS = ("application", "run", "I/O s", "waited s", "I", "C", "total s")


def cells(row: Row) -> tuple[str, ...]:
    """Return a row as text, in the order of HEADINGS."""
    factors = ["" if factor is None else f"{factor:.2f}" for factor in (row.interference, row.cost)]
    return (row.application, row.run, f"{row.io_s:.2f}", f"{row.wait_s:.2f}", *factors, f"{row.total_s:.2f}")


def text_table(rows: Sequence[Row]) -> str:
    """Return the table for a terminal. The name of an application stands only in its first row."""
    lines = [HEADINGS, *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    text, previous = [], ""
    for line in lines:
        name = "" if line[0] == previous else line[0]
        previous = line[0]
        numbers = "  ".join(cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True))
        text.append(f"{name.ljust(widths[0])}  {line[1].ljust(widths[1])}  {numbers}")
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join([text[0], rule, *text[1:]])
