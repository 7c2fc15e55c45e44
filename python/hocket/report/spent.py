"""The report's table of the computing and communication times of each application's processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hocket.comparison import Row
from hocket.report.grouped import grouped_table

COLUMNS = ("CPU time,&nbsp;s: mean", "largest", "communication,&nbsp;s: mean", "largest")


def spent_table(rows: Sequence[Row]) -> str:
    """Return the table as HTML; "" if nothing is known."""
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    caption = (
        "Computing and communication <span>of a process, over all processes of an "
        "application; CPU time is in neither I/O nor MPI</span>"
    )
    return grouped_table("spent", caption, head, [row for row in rows if row.cpu_s or row.comm_s], _row)


def _row(row: Row) -> str:
    return "".join((*_cells((row.cpu_s, row.cpu_most_s)), *_cells((row.comm_s, row.comm_most_s))))


def _cells(mean_and_most: tuple[float, float]) -> Iterable[str]:
    mean_s, most_s = mean_and_most
    yield f"<td>{mean_s:.2f}</td>"
    # The cell shows a dash if the trace does not report a largest value.
    yield f"<td>{most_s:.2f}</td>" if most_s or not mean_s else '<td class="none">&ndash;</td>'
