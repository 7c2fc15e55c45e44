"""The report's table of the computing and communication times of each application's processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from hocket.comparison import Row

COLUMNS = ("CPU time,&nbsp;s: mean", "largest", "communication,&nbsp;s: mean", "largest")


def spent_table(rows: Sequence[Row]) -> str:
    """Return the table as HTML; "" if nothing is known."""
    told = [row for row in rows if row.cpu_s or row.comm_s]
    if not told:
        return ""
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    names = dict.fromkeys(row.application for row in told)
    groups = "".join(_group(name, [row for row in told if row.application == name]) for name in names)
    return (
        '<table class="spent"><caption>Computing and communication <span>of a process, over all processes of an '
        f'application; CPU time is in neither I/O nor MPI</span></caption><thead><tr><th scope="col"></th>'
        f'<th scope="col" class="run">run</th>{head}</tr></thead>{groups}</table>'
    )


def _group(name: str, rows: Sequence[Row]) -> str:
    lines = []
    for number, row in enumerate(rows):
        first = f'<th scope="rowgroup" rowspan="{len(rows)}">{escape(name)}</th>' if number == 0 else ""
        cells = "".join(_cells((row.cpu_s, row.cpu_most_s))) + "".join(_cells((row.comm_s, row.comm_most_s)))
        lines.append(f'<tr>{first}<td class="run">{escape(row.run)}</td>{cells}</tr>')
    return f"<tbody>{''.join(lines)}</tbody>"


def _cells(mean_and_most: tuple[float, float]) -> Iterable[str]:
    mean_s, most_s = mean_and_most
    yield f"<td>{mean_s:.2f}</td>"
    # The cell shows a dash if the trace does not report a largest value.
    yield f"<td>{most_s:.2f}</td>" if most_s or not mean_s else '<td class="none">&ndash;</td>'
