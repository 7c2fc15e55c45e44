"""The report's table of accesses that could not stop when a policy asked them to."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hocket.comparison import Row
from hocket.report.grouped import grouped_table
from hocket.unstopped import ADVICE

COLUMNS = (
    ("could not stop", "accesses of the MPI library that ended after the request to stop"),
    ("others waited,&nbsp;s", "from the request to stop to the end of the access"),
    ("waiting", "the applications for which they were to stop"),
)


def unstopped_table(rows: Sequence[Row]) -> str:
    """Return the table as HTML; "" if every access could stop."""
    head = "".join(f'<th scope="col" title="{about}">{name}</th>' for name, about in COLUMNS)
    caption = (
        "Accesses that could not stop <span>for another application, because the MPI "
        f"library does each in one piece; so that an application can stop, {escape(ADVICE)}</span>"
    )
    return grouped_table("unstopped", caption, head, [row for row in rows if row.unstopped], _cells)


def _cells(row: Row) -> str:
    cells = (f"{row.unstopped}", f"{row.unstopped_wait_s:.2f}", escape(", ".join(row.unstopped_for)))
    return "".join(f"<td>{cell}</td>" for cell in cells)
