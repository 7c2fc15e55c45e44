"""The report's table of accesses that could not stop when a policy asked them to."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hocket.comparison import Row
from hocket.unstopped import ADVICE

COLUMNS = (
    ("could not stop", "accesses of the MPI library that ended after the request to stop"),
    ("others waited,&nbsp;s", "from the request to stop to the end of the access"),
    ("waiting", "the applications for which they were to stop"),
)


def unstopped_table(rows: Sequence[Row]) -> str:
    """Return the table as HTML; "" if every access could stop."""
    found = [row for row in rows if row.unstopped]
    if not found:
        return ""
    head = "".join(f'<th scope="col" title="{about}">{name}</th>' for name, about in COLUMNS)
    names = dict.fromkeys(row.application for row in found)
    groups = "".join(_group(name, [row for row in found if row.application == name]) for name in names)
    return (
        '<table class="unstopped"><caption>Accesses that could not stop <span>for another application, because the MPI '
        f"library does each in one piece; so that an application can stop, {escape(ADVICE)}</span></caption>"
        f'<thead><tr><th scope="col"></th><th scope="col" class="run">run</th>{head}</tr></thead>{groups}</table>'
    )


def _group(name: str, rows: Sequence[Row]) -> str:
    lines = []
    for number, row in enumerate(rows):
        first = f'<th scope="rowgroup" rowspan="{len(rows)}">{escape(name)}</th>' if number == 0 else ""
        cells = (f"{row.unstopped}", f"{row.unstopped_wait_s:.2f}", escape(", ".join(row.unstopped_for)))
        numbers = "".join(f"<td>{cell}</td>" for cell in cells)
        lines.append(f'<tr>{first}<td class="run">{escape(row.run)}</td>{numbers}</tr>')
    return f"<tbody>{''.join(lines)}</tbody>"
