"""Tables of the report that have a group of rows for each application, one row for each run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from hocket.comparison import Row


def grouped_table(kind: str, caption: str, head: str, rows: Sequence[Row], cells: Callable[[Row], str]) -> str:
    """Return the table as HTML; "" without rows.

    `kind` is its class. `caption` and `head` are HTML; `head` has the cells of the heading after those of application
    and run. `cells` returns the cells of a row after these two.
    """
    if not rows:
        return ""
    names = dict.fromkeys(row.application for row in rows)
    groups = "".join(_group(name, [row for row in rows if row.application == name], cells) for name in names)
    return (
        f'<table class="{kind}"><caption>{caption}</caption><thead><tr><th scope="col"></th>'
        f'<th scope="col" class="run">run</th>{head}</tr></thead>{groups}</table>'
    )


def _group(name: str, rows: Sequence[Row], cells: Callable[[Row], str]) -> str:
    lines = []
    for number, row in enumerate(rows):
        first = f'<th scope="rowgroup" rowspan="{len(rows)}">{escape(name)}</th>' if number == 0 else ""
        lines.append(f'<tr>{first}<td class="run">{escape(row.run)}</td>{cells(row)}</tr>')
    return f"<tbody>{''.join(lines)}</tbody>"
