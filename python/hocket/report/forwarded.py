"""The report's table of forwarded calls."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hocket.comparison import Run

COLUMNS = ("server", "run", "scheduler", "calls", "merged", "system calls", "mean wait", "bytes by application")


def forwarded_table(runs: Sequence[Run]) -> str:
    """Return a row for each server that has carried forwarded calls out; "" if none has."""
    rows = []
    for run in runs:
        for calls in (one for analysis in run.analyses for one in analysis.forwarded.servers if one.are_worth_a_line):
            server, scheduler, made, merged, system_calls, _, wait, shares = calls.cells()
            cells = (run.label, scheduler, made, merged, system_calls, wait, shares)
            texts = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            rows.append(f'<tr><th scope="row">{escape(server)}</th>{texts}</tr>')
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    body = f"<tbody>{''.join(rows)}</tbody>"
    return f"<table><caption>Forwarded calls of each I/O server</caption><thead><tr>{head}</tr></thead>{body}</table>"
