"""The report's table of reconfigurations."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hocket.comparison import Run
from hocket.reconfigurations import OVERLAP_NS, PARTS, Reconfiguration
from hocket.tables import quantity

MOST_ROWS = 60  # for one application in one run; the trace holds all
COLUMNS = (
    ("at,&nbsp;s", "the control point at which it began"),
    ("processes", "before → after"),
    ("method", "how processes came and how the data moved"),
    ("waited,&nbsp;s", "from the request to the control point"),
    ("spawning,&nbsp;s", "until all new processes are in one communicator with the old ones"),
    ("constant data,&nbsp;s", "redistribution of constant data"),
    ("variable data,&nbsp;s", "redistribution of variable data"),
    ("resuming,&nbsp;s", "new communicators, arrays in place"),
    ("stopped,&nbsp;s", "the whole time for which the application did not compute"),
    ("data moved / kept", "from one process to another / in their process"),
)


def resizes_table(runs: Sequence[Run]) -> str:
    """Return the table as HTML; "" if no application was resized."""
    groups = "".join(
        _group(application.name, run.label if len(runs) > 1 else "", application.reconfigurations, analysis.start_ns)
        for run in runs
        for analysis in run.analyses
        for application in analysis.applications
        if application.reconfigurations
    )
    if not groups:
        return ""
    head = "".join(
        f'<th scope="col"{" class=words" if name == "method" else ""} title="{about}">{name}</th>'
        for name, about in COLUMNS
    )
    return (
        '<table class="resizes"><caption>Reconfigurations <span>times since the first application began; '
        f"overlapped: it computed meanwhile</span></caption><thead><tr>{head}</tr></thead>{groups}</table>"
    )


def _group(name: str, run: str, found: Sequence[Reconfiguration], zero_ns: int) -> str:
    label = escape(name) + (f" <small>{escape(run)}</small>" if run else "")
    lines = [f'<tr><th scope="rowgroup" colspan="{len(COLUMNS)}">{label}</th></tr>']
    lines += [f"<tr>{_cells(one, zero_ns)}</tr>" for one in found[:MOST_ROWS]]
    if more := len(found[MOST_ROWS:]):
        words = f"{more} more; 'hocket trace summary' lists all of them"
        lines.append(f'<tr><td class="words" colspan="{len(COLUMNS)}">{words}</td></tr>')
    return f"<tbody>{''.join(lines)}</tbody>"


def _cells(one: Reconfiguration, zero_ns: int) -> str:
    at = f"<td>{(one.begin_ns - zero_ns) / 1e9:.2f}</td><td>{one.sizes}</td>"
    if not one.done:
        reason = escape(one.reason or "no reason was given")
        return f'{at}<td class="reason" colspan="{len(COLUMNS) - 2}">given up: {reason}</td>'
    lengths = [_length(getattr(one, f"{kind}_ns"), getattr(one, f"{kind}_stopped_ns", None)) for kind in PARTS]
    figures = "".join(f"<td>{text}</td>" for text in (_length(one.wait_ns), *lengths, _length(one.stopped_ns)))
    data = f"{quantity(one.bytes_moved)}<small>{quantity(one.bytes_kept)} kept</small>"
    return f'{at}<td class="words">{escape(one.method).replace(", ", ",<br>")}</td>{figures}<td>{data}</td>'


def _length(length_ns: int, stopped_ns: int | None = None) -> str:
    overlapped_ns = 0 if stopped_ns is None else length_ns - stopped_ns
    overlapped = f"<small>{overlapped_ns / 1e9:.3f} overlapped</small>" if overlapped_ns >= OVERLAP_NS else ""
    return f"{length_ns / 1e9:.3f}{overlapped}"
