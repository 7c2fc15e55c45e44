"""The page: each figure's values beside the paper's, its picture, and the verdict. Self-contained; pure."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from hocket.report.style import CSS

from reproduce.figure import AGREES, DIFFERS, PARTLY, UNMEASURED, Figure, Finding, Number, Value

OWN_CSS = """
section { margin-top: 44px; break-inside: avoid; }
section h2 { margin-bottom: 2px; }
section img { display: block; width: 100%; height: auto; background: #fff; margin: 10px 0; }
section td:first-child { text-align: left; padding-left: 0; }
.paper { font-size: 22px; margin-top: 52px; }
.agrees { color: var(--constant); } .partly { color: var(--waiting); } .differs { color: var(--both); }
.unmeasured { color: var(--soft); }
.verdict b { font-weight: 600; }
table.all td, table.all th { text-align: left; font-size: 15px; vertical-align: top; }
table.all td:first-child { white-space: nowrap; }
a { color: inherit; }
"""
WORDS = {AGREES: "agree", PARTLY: "agree in part", DIFFERS: "differ", UNMEASURED: "not measured"}  # of several
CLASSES = {AGREES: "agrees", PARTLY: "partly", DIFFERS: "differs", UNMEASURED: "unmeasured"}


@dataclass(frozen=True)
class Shown:
    """A figure that was made."""

    figure: Figure
    finding: Finding
    png: bytes


def number(value: Number) -> str:
    """Return a number with at most four digits, thousands whole; a dash where there is none."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def page(shown: Sequence[Shown], figures: Sequence[Figure], papers: dict[str, str], state: str) -> str:
    """Return the page. `figures` are all that exist, for the list at its end."""
    counts = {one: sum(each.finding.agreement == one for each in shown) for one in CLASSES}
    told = ", ".join(f"{count} {WORDS[agreement]}" for agreement, count in counts.items() if count)
    body = []
    for paper, name in papers.items():
        sections = [_section(one) for one in shown if one.figure.paper == paper]
        body += [f'<h2 class="paper">{escape(name)}</h2>', *sections] if sections else []
    made = {one.figure.identity for one in shown}
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The papers' figures, made again</title>
<link rel="icon" href="data:,">
<style>{CSS}{OWN_CSS}</style>
</head>
<body>
<header>
<h1>The papers' figures, made again</h1>
<p class="finding">{len(shown)} figures: {told or "none"}.</p>
<p class="notes">Each table has the paper's value beside hocket's. A dash: the text of the paper has no number.
“Calibrated”: a parameter was chosen so that the value comes near the paper's, so it proves nothing.
Scenarios and modules say what else they assume.</p>
</header>
<main>
{"".join(body)}
{_list(figures, papers, made)}
</main>
<footer><p>hocket at {escape(state)}. Simulated figures come from hocket-sim, which runs hocketd's own coordinator and
policies on simulated applications and storage.</p></footer>
</body>
</html>
"""


def _section(one: Shown) -> str:
    picture = base64.b64encode(one.png).decode()
    rows = "".join(_row(value) for value in one.finding.values)
    kind = CLASSES[one.finding.agreement]
    return f"""<section id="{one.figure.identity}">
<h2>{escape(one.figure.title)}</h2>
<p class="notes">{escape(one.figure.identity)} · {escape(one.figure.how)}: {escape(one.figure.needs)}</p>
<img alt="{escape(one.figure.title)}" src="data:image/png;base64,{picture}">
<table><thead><tr><th scope="col"></th><th scope="col">paper</th><th scope="col">hocket</th><th scope="col">unit</th>
<th scope="col"></th></tr></thead><tbody>{rows}</tbody></table>
<p class="verdict"><b class="{kind}">{escape(one.finding.agreement.capitalize())}.</b> {escape(one.finding.verdict)}</p>
</section>
"""


def _row(value: Value) -> str:
    note = "calibrated" if value.calibrated else ""
    cells = (value.what, number(value.paper), number(value.ours), value.unit, note)
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _list(figures: Sequence[Figure], papers: dict[str, str], made: set[str]) -> str:
    rows = []
    for one in figures:
        name = f'<a href="#{one.identity}">{one.identity}</a>' if one.identity in made else one.identity
        cells = (papers[one.paper], one.title, one.how, one.needs)
        rows.append(f"<tr><td>{name}</td>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f'<th scope="col">{word}</th>' for word in ("figure", "paper", "title", "made by", "needs"))
    caption = "<caption>All figures and tables of the five papers</caption>"
    table = f"{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<section><table class="all">{table}</table></section>'
