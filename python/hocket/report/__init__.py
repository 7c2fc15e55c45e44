"""Writes the report of one or several runs: one self-contained page, and its pictures as PNG.

from hocket.report import Run, write_report

write_report([Run("alone", ["a.jsonl", "b.jsonl"], role="alone"),
              Run("together, uncoordinated", ["u.jsonl"], role="uncoordinated"),
              Run("together, fcfs", ["f.jsonl"], role="scheduled")],
             "demo-report", title="Two solvers share a file system", notes=["target limited to 24 MB/s"])
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hocket.comparison import Row, Run, compare, text_table
from hocket.errors import HocketError
from hocket.report.page import page
from hocket.report.panels import axis_length_s, doing, panels_of

__all__ = ["Report", "Row", "Run", "compare", "text_table", "write_report"]


@dataclass(frozen=True)
class Report:
    """The files of a report, and the rows of its table.

    `pngs`: the picture of all runs, then one for each of several runs.
    """

    html: Path
    pngs: list[Path]
    rows: list[Row]


def write_report(
    runs: Sequence[Run],
    out_dir: Path | str,
    title: str,
    notes: Sequence[str] = (),
    io_alone_s: Mapping[str, float] | None = None,
    most_lanes: int = 0,
) -> Report:
    """Write report.html, timeline.png, and, for several runs, timeline-<run>.png to `out_dir`.

    `out_dir` is created if needed. `title` names what ran. `notes` state what a reader must know, above all the target
    ("storage target limited to 24 MB/s"). The first note stands in the heading of the table and in the pictures, the
    others under the title. `io_alone_s` is that of compare(). With `most_lanes` the pictures show only the applications
    with most I/O (0: all). Raises HocketError if no application is in the traces, or if the folder cannot be written.
    """
    from hocket.report.png import write_png  # imported here: matplotlib takes a second to load

    length_s = axis_length_s(runs)
    panels = panels_of(runs, length_s, most_lanes)
    if not any(panel.lanes for panel in panels):
        raise HocketError("no application in " + ", ".join(str(t.path) for run in runs for t in run.traces))
    verb = doing(a for run in runs for analysis in run.analyses for a in analysis.applications)
    out = Path(out_dir)
    report = Report(out / "report.html", [out / "timeline.png"], compare(runs, io_alone_s))
    try:
        out.mkdir(parents=True, exist_ok=True)
        report.html.write_text(page(title, notes, runs, report.rows, panels, length_s), encoding="utf-8")
        note = notes[0] if notes else ""  # a picture has no room for more
        write_png(panels, length_s, title, note, verb, report.pngs[0])
        for panel in panels if len(panels) > 1 else []:
            path = out / f"timeline-{re.sub(r'[^a-z0-9]+', '-', panel.label.lower()).strip('-')}.png"
            write_png([panel], length_s, title, note, verb, path)
            report.pngs.append(path)
    except OSError as error:
        raise HocketError(f"cannot write the report to {out}: {error.strerror}; choose another with -o") from error
    return report
