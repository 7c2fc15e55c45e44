"""Draws a panel as inline SVG. Colours are CSS classes, so that the page decides about light, dark, and print.

The lane of a malleable application has a second row, with its number of processes as steps. A band over both rows shows
each reconfiguration. Its parts are tall where the application stood still, and low where it computed.
"""

from __future__ import annotations

from html import escape

from hocket.lanes import COMPUTING, IO
from hocket.report.panels import EXPANDS, LEAVES, MET, SHRINKS, Bar, Change, Lane, Mark, Panel, Step, opacity, ticks

WIDTH = 1160
LEFT = 184  # left edge of the plot; names stand before it
RIGHT = 140  # space for figures after the plot
PLOT = WIDTH - LEFT - RIGHT
LANE = 44
HEIGHTS = {"io": 28, "waiting": 14, "computing": 2}  # shapes differ too, for grey print and colour-blind readers
NAME_CHARACTERS = 15
STEPS = 34  # height of the row of the number of processes
STEP_HEIGHTS = (5, 26)  # heights for no process, and for the most
DIGIT = 9.5  # width of a digit, on a small screen too
PART_HEIGHT, OVERLAPPED_HEIGHT = 36, 10
LEAST_BAND = 3
MARKS = 40  # height of the rows of decisions and outcomes
MARK_SIZE = 5


def svg(panel: Panel, length_s: float) -> str:
    """Return the panel as SVG, `WIDTH` wide. `length_s` is the length of the axis."""
    tops = [6.0]
    for lane in panel.lanes:
        tops.append(tops[-1] + LANE + (STEPS if lane.steps else 0))
    lanes_end = tops[-1]
    marks_at = lanes_end + (24 if panel.both_s is not None else 2)
    axis = marks_at + (MARKS if panel.marks else 2)
    parts = [_axis(axis, length_s)]
    for lane, top in zip(panel.lanes, tops, strict=False):
        parts.append(_lane(lane, top, panel.most_processes, length_s))
    if panel.both_s is not None:
        parts.append(_both(panel, lanes_end + 12, length_s))
    if panel.marks:
        parts.append(_marks(panel, marks_at, length_s))
    title = f"{panel.label}: {panel.caption}"
    return (
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {axis + 38}" role="img" aria-label="{escape(title)}">'
        + "".join(parts)
        + "</svg>"
    )


def _x(seconds: float, length_s: float) -> float:
    return LEFT + PLOT * seconds / length_s


def _text(x: float, y: float, text: str, style: str, anchor: str = "start") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _axis(y: float, length_s: float) -> str:
    marks = []
    for tick in ticks(length_s):
        x = _x(tick, length_s)
        marks.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{y}"/>')
        marks.append(_text(x, y + 16, f"{tick:g}", "tick", "middle"))
    marks.append(f'<line class="axis" x1="{LEFT}" x2="{LEFT + PLOT}" y1="{y}" y2="{y}"/>')
    marks.append(_text(LEFT + PLOT, y + 32, "seconds since the first application began", "tick", "end"))
    return "".join(marks)


def _lane(lane: Lane, top: float, most_processes: int, length_s: float) -> str:
    middle = top + LANE / 2
    name = lane.name if len(lane.name) <= NAME_CHARACTERS else lane.name[: NAME_CHARACTERS - 1] + "…"
    below = lane.about and not lane.steps
    label = _text(LEFT - 14, middle + (0 if below else 4), name, "name", "end")
    about_at = top + LANE + STEPS - 8 if lane.steps else middle + 15
    about = _text(LEFT - 14, about_at, lane.about, "about", "end") if lane.about else ""
    bars = "".join(_bar(bar, middle, length_s) for bar in lane.bars)
    steps = "".join(_step(step, top + LANE + STEPS - 4, most_processes, length_s) for step in lane.steps)
    changes = "".join(_change(change, top, length_s) for change in lane.changes)
    end = _x(lane.end_s, length_s)
    lost = _text(end + 2, middle + 5, "✕", "lost") if lane.lost else ""
    notes = [*lane.notes, *(["lost"] if lane.lost else [])]
    first = middle + 4 + (STEPS / 2 if lane.steps else 0) - 8 * (len(notes) - 1)
    figures = "".join(_text(LEFT + PLOT + 20, first + 16 * row, note, "figure") for row, note in enumerate(notes))
    heading = f"<title>{escape(lane.name)}{escape(lane.lost and f': lost, {lane.lost}')}</title>"
    drawn = label + about + bars + steps + changes + lost + figures
    return f'<g class="lane" data-application="{escape(lane.name)}">{heading}{drawn}</g>'


def _step(step: Step, bottom: float, most_processes: int, length_s: float) -> str:
    """Return a step, as high as the number of processes, which is written in it if there is room."""
    x, end = _x(step.start_s, length_s), _x(step.end_s, length_s)
    low, high = STEP_HEIGHTS
    height = low + (high - low) * step.processes / max(most_processes, 1)
    box = f'x="{x:.2f}" y="{bottom - height:.1f}" width="{max(end - x, 0.5):.2f}" height="{height:.1f}"'
    count = str(step.processes)
    text = f"{count} process{'' if step.processes == 1 else 'es'} from {step.start_s:.2f} to {step.end_s:.2f} s"
    room = end - x > DIGIT * len(count) + 6
    number = _text((x + end) / 2, bottom - 3, count, "count", "middle") if room else ""
    kind, text = ("size expanded", f"{text}: expanded by a policy") if step.expanded else ("size", text)
    return f'<rect class="{kind}" {box}><title>{escape(text)}</title></rect>{number}'


def _change(change: Change, top: float, length_s: float) -> str:
    x = _x(change.start_s, length_s)
    width = max(_x(change.end_s, length_s) - x, LEAST_BAND)
    box = f'x="{x:.2f}" y="{top + 2:.1f}" width="{width:.2f}" height="{LANE + STEPS - 6}"'
    kind = "change" if change.done else "change given-up"
    band = f'<rect class="{kind}" {box}><title>{escape(change.text)}</title></rect>'
    middle = x + width / 2
    if change.done:
        mark = f'<path class="mark" d="M{middle - 4.5:.2f} {top - 4:.1f}h9l-4.5 6z"/>'
    else:
        mark = f'<path class="mark given-up" d="M{middle - 4:.2f} {top - 4:.1f}l8 8m0 -8l-8 8"/>'
    return band + "".join(_part(part, top + LANE / 2, length_s) for part in change.parts) + mark


def _part(part: Bar, middle: float, length_s: float) -> str:
    """Return a part: first low, while the application computed, then tall, while it stood still."""
    x, end = _x(part.start_s, length_s), _x(part.end_s, length_s)
    stopped = (end - x) * part.share
    boxes = []
    for left, width, height in ((x, end - x - stopped, OVERLAPPED_HEIGHT), (end - stopped, stopped, PART_HEIGHT)):
        if width > 0:
            box = f'x="{left:.2f}" y="{middle - height / 2:.1f}" width="{max(width, 0.6):.2f}" height="{height}"'
            boxes.append(f'<rect class="{part.kind}" {box}><title>{escape(part.text)}</title></rect>')
    return "".join(boxes)


def _bar(bar: Bar, middle: float, length_s: float) -> str:
    x, height = _x(bar.start_s, length_s), HEIGHTS[bar.kind]
    least = 0 if bar.kind == COMPUTING else 1.0 if bar.kind == IO else 0.8
    width = max(_x(bar.end_s, length_s) - x, least)
    box = f'x="{x:.2f}" y="{middle - height / 2:.1f}" width="{width:.2f}" height="{height}"'
    paler = f' fill-opacity="{opacity(bar):.2f}"' if bar.share < 1 else ""
    return f'<rect class="{bar.kind}" {box}{paler}><title>{escape(bar.text)}</title></rect>'


def _marks(panel: Panel, top: float, length_s: float) -> str:
    """Return predicted overlaps as empty boxes, the decisions on them, and the outcomes below."""
    decided, came = top + 12, top + 29
    parts = [_text(LEFT - 14, decided + 4, "decisions", "about", "end")]
    if any(mark.kind not in (EXPANDS, SHRINKS, LEAVES) for mark in panel.marks):
        parts.append(_text(LEFT - 14, came + 4, "predictions", "about", "end"))
    for bar in panel.conflicts:
        x, end = _x(bar.start_s, length_s), _x(bar.end_s, length_s)
        box = f'x="{x:.2f}" y="{decided - 8:.1f}" width="{max(end - x, 1.5):.2f}" height="16"'
        parts.append(f'<rect class="conflict" {box}><title>{escape(bar.text)}</title></rect>')
    parts += [mark_shape(mark, _x(mark.at_s, length_s), decided, came) for mark in panel.marks]
    if panel.more_marks:
        parts.append(_text(LEFT + PLOT + 20, decided + 4, f"{panel.more_marks} more", "figure"))
    return f'<g class="decisions">{"".join(parts)}</g>'


def mark_shape(mark: Mark, x: float, decided: float, came: float) -> str:
    """Return the shape of a mark.

    Up: expand. Down: shrink. Ring: left alone. Dot: the prediction held. Cross: it was off.
    """
    size, y = MARK_SIZE, decided if mark.kind in (EXPANDS, SHRINKS, LEAVES) else came
    shape = {
        EXPANDS: f'<path d="M{x - size:.2f} {y + size - 1:.1f}h{2 * size}l-{size} -{2 * size - 1}z"',
        SHRINKS: f'<path d="M{x - size:.2f} {y - size + 1:.1f}h{2 * size}l-{size} {2 * size - 1}z"',
        LEAVES: f'<circle cx="{x:.2f}" cy="{y:.1f}" r="{size - 1}"',
        MET: f'<circle cx="{x:.2f}" cy="{y:.1f}" r="{size - 0.5}"',
    }.get(mark.kind, f'<path d="M{x - size + 1:.2f} {y - size + 1:.1f}l8 8m0 -8l-8 8"')
    end = "</path>" if shape.startswith("<path") else "</circle>"
    return f'{shape} class="decided {mark.kind}"><title>{escape(mark.text)}</title>{end}'


def _both(panel: Panel, middle: float, length_s: float) -> str:
    label = _text(LEFT - 14, middle + 4, "two or more at once", "about", "end")
    boxes = []
    for start_s, end_s in panel.both:
        x = _x(start_s, length_s)
        width = max(_x(end_s, length_s) - x, 0.8)
        text = f"two or more do I/O at once: {end_s - start_s:.2f} s, from {start_s:.2f} to {end_s:.2f} s"
        box = f'x="{x:.2f}" y="{middle - 3}" width="{width:.2f}" height="6"'
        boxes.append(f'<rect class="both" {box}><title>{escape(text)}</title></rect>')
    figure = _text(LEFT + PLOT + 20, middle + 4, f"{panel.both_s or 0:.2f} s", "figure")
    return f'<g class="collisions">{label}{"".join(boxes)}{figure}</g>'
