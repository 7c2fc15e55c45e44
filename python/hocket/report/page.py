"""The report as one self-contained page without script or network access; for light and dark screens, and print."""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape

from hocket.comparison import Row, Run, cells
from hocket.flop import sources_text
from hocket.periods import irregular_text
from hocket.reconfigurations import PARTS
from hocket.report.decisions import decisions_table
from hocket.report.forwarded import forwarded_table
from hocket.report.panels import MARK_WORDS, PART_WORDS, Mark, Panel, doing
from hocket.report.resizes import resizes_table
from hocket.report.spent import spent_table
from hocket.report.style import CSS
from hocket.report.svg import mark_shape, svg
from hocket.report.unstopped import unstopped_table

NAMED_FACTORS = 4  # in the sentence at the top; of more, only the least and the greatest
COLUMNS = (
    ("", ""),
    ("run", "run"),
    ("I/O time,&nbsp;s", "in I/O operations, waits left out"),
    ("waited for a&nbsp;grant,&nbsp;s", ""),
    ("interference factor&nbsp;I", "I/O time together, uncoordinated / I/O time alone"),
    ("scheduling cost factor&nbsp;C", "(I/O time + wait) scheduled / I/O time alone"),
    ("total time,&nbsp;s", "from MPI_Init to MPI_Finalize"),
)


def page(
    title: str, notes: Sequence[str], runs: Sequence[Run], rows: Sequence[Row], panels: Sequence[Panel], length_s: float
) -> str:
    """Return the whole page as HTML."""
    figures = "".join(_figure(panel, length_s) for panel in panels)
    told = "".join(f'<p class="notes">{escape(note)}</p>' for note in notes[1:])  # notes[0] is in the table's heading
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{CSS}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
{_finding(rows)}
{told}
</header>
<main>
{_table(rows, notes)}
{_key(runs, panels)}
{figures}
{unstopped_table(rows)}
{spent_table(rows)}
{decisions_table(runs)}
{resizes_table(runs)}
{forwarded_table(runs)}
</main>
{_footer(runs)}
</body>
</html>
"""


def _finding(rows: Sequence[Row]) -> str:
    """Return the result in one or two sentences, if the runs have the roles for it."""
    together = [(row.interference, row.application) for row in rows if row.interference is not None]
    turns = [(row.cost, row.application) for row in rows if row.cost is not None]
    sentences = []
    if together:
        sentences.append(f"Uncoordinated, I/O took {_times(together)} as long as alone.")
    if turns:
        sentences.append(f"Taking turns, I/O and the wait for it took {_times(turns)} as long as I/O alone.")
    return f'<p class="finding">{" ".join(sentences)}</p>' if sentences else ""


def _times(factors: Sequence[tuple[float, str]]) -> str:
    if len(factors) > NAMED_FACTORS:
        least, most = min(factors), max(factors)
        return f"{least[0]:.2f} ({escape(least[1])}) to {most[0]:.2f} times ({escape(most[1])})"
    told = [f"{factor:.2f} times ({escape(name)})" for factor, name in factors]
    return told[0] if len(told) == 1 else ", ".join(told[:-1]) + " and " + told[-1]


def _table(rows: Sequence[Row], notes: Sequence[str]) -> str:
    head = "".join(
        f'<th scope="col"{" class=run" if name == "run" else ""}{f" title={chr(34)}{about}{chr(34)}" if about else ""}>'
        f"{name}</th>"
        for name, about in COLUMNS
    )
    names = list(dict.fromkeys(row.application for row in rows))
    groups = "".join(_group(name, [row for row in rows if row.application == name]) for name in names)
    target = f" <span>{escape(notes[0])}</span>" if notes else ""
    return f"<table><caption>I/O of each application{target}</caption><thead><tr>{head}</tr></thead>{groups}</table>"


def _group(name: str, rows: Sequence[Row]) -> str:
    lines = []
    for number, row in enumerate(rows):
        first = f'<th scope="rowgroup" rowspan="{len(rows)}">{escape(name)}</th>' if number == 0 else ""
        numbers = "".join(f"<td>{cell}</td>" if cell else '<td class="none">&ndash;</td>' for cell in cells(row)[2:])
        place = f"<small>{escape(row.place)}</small>" if row.place else ""
        lines.append(f'<tr>{first}<td class="run">{escape(row.run)}{place}</td>{numbers}</tr>')
    return f"<tbody>{''.join(lines)}</tbody>"


def _key(runs: Sequence[Run], panels: Sequence[Panel]) -> str:
    verb = doing(a for run in runs for analysis in run.analyses for a in analysis.applications)
    shapes = [("io", 22, verb), ("waiting", 12, "waits for a grant"), ("computing", 2, "computes")]
    if any(panel.both_s is not None for panel in panels):
        shapes.append(("both", 6, "two or more applications do I/O at once"))
    if any(lane.changes for panel in panels for lane in panel.lanes):
        shapes += [(kind, 22, PART_WORDS[kind]) for kind in PARTS]
        shapes.append(("spawning", 6, "low: the application computes meanwhile"))
    items = "".join(
        _key_item(f'<rect class="{kind}" width="30" height="{height}" y="{12 - height / 2:g}"/>', text)
        for kind, height, text in shapes
    )
    if any(step.expanded for panel in panels for lane in panel.lanes for step in lane.steps):
        items += _key_item('<rect class="size expanded" width="30" height="16" y="4"/>', "expanded by a policy")
    shown = {mark.kind for panel in panels for mark in panel.marks}
    for kind in (kind for kind in MARK_WORDS if kind in shown):
        items += _key_item(mark_shape(Mark(kind, 0, ""), 15, 12, 12), MARK_WORDS[kind])
    if any(panel.conflicts for panel in panels):
        items += _key_item('<rect class="conflict" width="28" height="16" x="1" y="4"/>', "predicted: I/O at once")
    return f'<ul class="key">{items}</ul>'


def _key_item(shape: str, text: str) -> str:
    return f'<li><svg width="30" height="24" aria-hidden="true">{shape}</svg>{escape(text)}</li>'


def _figure(panel: Panel, length_s: float) -> str:
    caption = f"<figcaption><h2>{escape(panel.label)}</h2><p>{escape(panel.caption)}</p></figcaption>"
    return f"<figure>{caption}{svg(panel, length_s)}</figure>"


def _footer(runs: Sequence[Run]) -> str:
    lines = [
        "I/O time is what the applications measured in their I/O operations, waits left out. "
        "I = T<sub>io</sub>(together, uncoordinated) / T<sub>io</sub>(alone); "
        "C = (T<sub>io</sub> + T<sub>wait</sub>)(scheduled) / T<sub>io</sub>(alone) (CLARISSE, section V-C). "
        "Point at a block for its figures."
    ]
    for run in runs:
        # Policies count the FLOP of the applications that they resize.
        malleable = {a.name: a.flop_source for analysis in run.analyses for a in analysis.applications if a.sizes}
        if words := sources_text(malleable):
            lines.append(f"{escape(run.label)}: {escape(words)}")
        if words := irregular_text(a.name for analysis in run.analyses for a in analysis.applications if a.irregular):
            lines.append(f"{escape(run.label)}: {escape(words)}")
        for trace in run.traces:
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(trace.start_unix_ns / 1e9))
            cut = "; its last line was cut short" if trace.cut_short else ""
            cut += f"; {trace.missing} records are missing" if trace.missing else ""
            where = f"{trace.path.name}, node {trace.node}, {when}, hocket {trace.version}{cut}"
            lines.append(f"{escape(run.label)}: {escape(where)}")
    return f"<footer>{''.join(f'<p>{line}</p>' for line in lines)}</footer>"
