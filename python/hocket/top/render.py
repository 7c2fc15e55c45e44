"""Renders the live view as lines of text for a given width. Pure: the terminal and the tests show the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hocket.analysis import Application
from hocket.lanes import COMPUTING, IO, WAITING, Interval
from hocket.tables import printable, times, with_spread
from hocket.top.model import Forecast, TopModel

CELLS = {COMPUTING: "─", WAITING: "▒", IO: "█"}
PREDICTED, UNSURE, NOW = "░", "·", "│"
STATES = {COMPUTING: "computing", WAITING: "waiting", IO: "writing"}
NAME, STATE = 14, 10
MIN_WIDTH = 60
BELOW_LANES = 5  # minimum of lines: the key between two empty ones, a heading, a decision
SEPARATOR = " · "


@dataclass(frozen=True)
class Span:
    """Text of one style: "io", "waiting", "computing", "predicted", "heading", "soft", or "" (plain)."""

    text: str
    style: str = ""


Line = list[Span]


@dataclass(frozen=True)
class View:
    """The extent of the view: seconds behind and ahead of now, decisions, and lines in all (0: as many as needed)."""

    window_s: float = 30.0
    ahead_s: float = 10.0
    decisions: int = 6
    height: int = 0


def plain(lines: Iterable[Line]) -> str:
    """Return the lines without styles, and without spaces at their ends."""
    return "\n".join("".join(span.text for span in line).rstrip() for line in lines)


def render(model: TopModel, width: int, view: View | None = None) -> list[Line]:
    """Return the whole view, `width` columns wide (at least MIN_WIDTH)."""
    view, width = view or View(), max(width, MIN_WIDTH)
    past, ahead = _columns(width, view)
    applications = model.shown(view.window_s)
    running = sum(application.end_ns is None for application in applications)
    count = f"{running} application{'' if running == 1 else 's'}" if running else "no application runs"
    facts = [model.node, f"policy {model.analysis.policy}" if model.analysis.policy else "", count]
    lines = [[Span("hocket top", "heading"), Span("  " + SEPARATOR.join(fact for fact in facts if fact))], []]
    lines.append([Span(" " * (NAME + STATE) + _scale(past, ahead, view), "soft")])
    lanes = [
        [_lane(model, application, past, ahead, view), _below(model, application, width)]
        for application in applications
    ]
    lines += _fitting(lanes, view.height - len(lines) - BELOW_LANES if view.height else len(lanes) * 2)
    lines += [[], _key(width), []]
    room = view.height - len(lines) - 1 if view.height else view.decisions
    decisions = model.decisions(min(view.decisions, room)) if room > 0 else []
    lines.append([Span("last decisions" if decisions else "no decisions yet", "heading")])
    for decision in decisions:
        ago = f"{(model.now_ns - decision.time_ns) / 1e9:8.2f} s ago  "
        lines.append(
            [Span(ago, "soft"), Span(f"{_short(decision.application):<{NAME}}"), Span(printable(decision.text()))]
        )
    return lines


def _fitting(lanes: list[list[Line]], room: int) -> list[Line]:
    """Return the lanes in `room` lines: with the figures below each, else without them, else only the first lanes."""
    if len(lanes) * 2 <= room:
        return [line for lane in lanes for line in lane]
    if len(lanes) <= room:
        return [lane[0] for lane in lanes]
    left_out = f"… and {len(lanes) - max(0, room - 1)} more ('hocket ls' lists all)"
    return [*(lane[0] for lane in lanes[: max(0, room - 1)]), [Span(left_out, "soft")]]


def _short(name: str) -> str:
    name = printable(name)
    return name if len(name) < NAME else name[: NAME - 2] + "…"


def _columns(width: int, view: View) -> tuple[int, int]:
    """Return the columns of the past and of the future. A column is the same time in both."""
    free = width - NAME - STATE - 1
    past = round(free * view.window_s / (view.window_s + view.ahead_s))
    return past, free - past


def _scale(past: int, ahead: int, view: View) -> str:
    left, right = f"-{view.window_s:g} s", f"+{view.ahead_s:g} s"
    middle = f"-{view.window_s / 2:g} s"
    text = left.ljust(past // 2 - len(middle) // 2) + middle
    return text.ljust(past - 1) + "now" + right.rjust(ahead - 1)


def _lane(model: TopModel, application: Application, past: int, ahead: int, view: View) -> Line:
    state, forecast = model.state(application), model.forecast(application)
    style = state if state in CELLS else "soft"
    first = [
        Span(f"{_short(application.name):<{NAME}}", "heading"),
        Span(f"{STATES.get(state, state):<{STATE}}", style),
    ]
    zero = model.now_ns - int(view.window_s * 1e9)
    first += _past(model.lane(application, view.window_s), zero, view.window_s * 1e9 / past, past)
    first.append(Span(NOW, "soft"))
    if application.end_ns is None:
        first.append(Span(_future(forecast, model.now_ns, view.ahead_s * 1e9 / ahead, ahead), "predicted"))
    return first


def _past(lane: list[Interval], zero_ns: int, cell_ns: float, count: int) -> Line:
    """Return the cells of the past. A cell shows what filled most of it, but any I/O or waiting has precedence."""
    weight: list[dict[str, float]] = [{} for _ in range(count)]
    for part in lane:
        first = max(0, int((part.start_ns - zero_ns) / cell_ns))
        for cell in range(first, min(count, int((part.end_ns - zero_ns) / cell_ns) + 1)):
            begin = max(part.start_ns, zero_ns + cell * cell_ns)
            shared = min(part.end_ns, zero_ns + (cell + 1) * cell_ns) - begin
            if shared > 0:
                weight[cell][part.kind] = weight[cell].get(part.kind, 0.0) + shared
    spans: Line = []
    for cell in weight:
        busy = {kind: time for kind, time in cell.items() if kind != COMPUTING} or cell
        kind = max(busy, key=lambda kind: busy[kind]) if busy else ""
        text = CELLS.get(kind, " ")
        if spans and spans[-1].style == kind:
            spans[-1] = Span(spans[-1].text + text, kind)
        else:
            spans.append(Span(text, kind))
    return spans


def _future(forecast: Forecast, now_ns: int, cell_ns: float, count: int) -> str:
    """Return the predicted phases ahead. Dots show where a phase may begin or end, given the uncertainty."""
    cells = [" "] * count
    if not forecast.next_start_ns:
        return "".join(cells)
    start, horizon = forecast.next_start_ns, now_ns + cell_ns * count
    while start < horizon:
        end, unsure = start + max(forecast.duration_ns, cell_ns), forecast.next_uncertainty_ns
        _fill(cells, UNSURE, (start - unsure - now_ns) / cell_ns, (end + unsure - now_ns) / cell_ns)
        _fill(cells, PREDICTED, (start - now_ns) / cell_ns, (end - now_ns) / cell_ns)
        if forecast.period_ns <= 0:
            break
        start += forecast.period_ns
    return "".join(cells)


def _fill(cells: list[str], text: str, begin: float, end: float) -> None:
    for cell in range(max(0, round(begin)), min(len(cells), max(round(end), round(begin) + 1))):
        if cells[cell] != PREDICTED:
            cells[cell] = text


def _below(model: TopModel, application: Application, width: int) -> Line:
    """Return the figures below a lane. If they are too long for the width, the last ones are kept: they change most."""
    facts = _figures(model, application, model.forecast(application))
    while len(text := SEPARATOR.join(facts)) > width - NAME and len(facts) > 1:
        facts.pop(0)
    return [Span(" " * NAME + text[: width - NAME], "soft")]


def _figures(model: TopModel, application: Application, forecast: Forecast) -> list[str]:
    count = application.processes
    resizing_to = model.resizing_to(application)
    processes = f"{count} → {resizing_to} processes" if resizing_to else f"{count} process{'' if count == 1 else 'es'}"
    if expansion := model.expansion(application):
        back = f", back at iteration {expansion.return_at_iteration}" if expansion.return_at_iteration else ""
        processes += f" (expanded from {expansion.sources} by {expansion.policy}{back})"
    place = application.place.text(with_nodes=model.analysis.has_several_nodes)
    facts = [place] if place else []
    if count:
        facts.append(processes)
    if forecast.irregular:
        facts.append("no period")
    elif period := with_spread(forecast.period_ns, forecast.period_spread_ns):
        facts.append(f"period {period}")
    if (waited := model.waited_s(application)) >= 0.005:
        facts.append(f"waited {waited:.2f} s")
    if application.interruptions:
        facts.append(f"preempted {times(application.interruptions)}")
    if application.unstopped:
        facts.append(f"could not stop {times(len(application.unstopped))}")
    if forecast.next_start_ns > model.now_ns and application.end_ns is None and not forecast.irregular:
        ahead = (forecast.next_start_ns - model.now_ns) / 1e9
        facts.append(f"next in {ahead:.1f} ± {forecast.next_uncertainty_ns / 1e9:.1f} s")
    if application.lost:
        facts.append(f"lost: {application.lost}")
    return facts


def _key(width: int) -> Line:
    texts = ((IO, CELLS[IO], "I/O"), (WAITING, CELLS[WAITING], "waiting for a grant"))
    more = ((COMPUTING, CELLS[COMPUTING], "computing"), ("predicted", PREDICTED, "predicted"))
    spans: Line = []
    for style, text, meaning in (*texts, *more):
        spans += [Span("  " if spans else ""), Span(text * 2, style), Span(f" {meaning}", "soft")]
    length = sum(len(span.text) for span in spans)
    return [Span(" " * min(NAME, width - length)), *spans]
