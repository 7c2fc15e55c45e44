"""The report's table of decisions: prediction, choice, cost, and outcome."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hocket.comparison import Run
from hocket.decisions import Outcome, PolicyDecision, accuracies, tell

MOST_ROWS = 60  # for one run; the trace holds all
COLUMNS = ("decision", "at,&nbsp;s", "what", "predicted, chosen, cost", "what came of it")


def decisions_table(runs: Sequence[Run]) -> str:
    """Return the table as HTML; "" if nothing was decided."""
    groups = "".join(
        _group(run.label if len(runs) > 1 else "", found, analysis.start_ns)
        for run in runs
        for analysis in run.analyses
        if (found := [one for one in analysis.about_cores.all if not one.is_plain_wait])  # the lanes show plain waits
    )
    if not groups:
        return ""
    head = "".join(f'<th scope="col" class="words">{name}</th>' for name in COLUMNS)
    return (
        '<table class="resizes decisions"><caption>Decisions <span>times since the first application began'
        f"</span></caption><thead><tr>{head}</tr></thead>{groups}</table>"
    )


def _group(run: str, found: Sequence[PolicyDecision], zero_ns: int) -> str:
    tell(found[:MOST_ROWS], zero_ns)
    lines = [f'<tr><th scope="rowgroup" colspan="{len(COLUMNS)}">{escape(run)}</th></tr>'] if run else []
    lines += [f"<tr>{_cells(one, zero_ns)}</tr>" for one in found[:MOST_ROWS]]
    if more := len(found[MOST_ROWS:]):
        lines.append(f"<tr><td colspan=\"{len(COLUMNS)}\">{more} more; 'hocket explain --trace' tells them</td></tr>")
    told = "<br>".join(escape(one.sentence()) for one in accuracies(found))
    if told:
        lines.append(f'<tr><td colspan="{len(COLUMNS)}">predictions held against what happened:<br>{told}</td></tr>')
    return f"<tbody>{''.join(lines)}</tbody>"


def _cells(one: PolicyDecision, zero_ns: int) -> str:
    said = [f"<small>{escape(about)}</small>{escape(words)}" for about, words in _said(one, zero_ns)]
    came = [f'<span class="{_class(outcome)}">{escape(outcome.sentence())}</span>' for outcome in one.outcomes]
    cells = [f"{one.number}, {escape(one.policy)}", f"{(one.time_ns - zero_ns) / 1e9:.2f}", escape(one.heading())]
    return "".join(f"<td>{cell}</td>" for cell in [*cells, "".join(said), "<br>".join(came)])


def _class(outcome: Outcome) -> str:
    return "" if not outcome.is_prediction else "met" if outcome.met else "off"


def _said(one: PolicyDecision, zero_ns: int) -> list[tuple[str, str]]:
    return [(about, words) for about, words in one.sentences(zero_ns) if about != "came of it"]
