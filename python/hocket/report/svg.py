"""A panel as inline SVG. Colours are CSS classes, so that the page decides on light, dark and print."""

from __future__ import annotations

from html import escape

from hocket.lanes import COMPUTING, IO
from hocket.report.panels import Bar, Lane, Panel, opacity, ticks

WIDTH = 1160
LEFT = 184  # of the plot: names stand before it
RIGHT = 140  # figures stand after it
PLOT = WIDTH - LEFT - RIGHT
LANE = 44
HEIGHTS = {"io": 28, "waiting": 14, "computing": 2}  # shape tells as much as colour: grey print, colour-blind readers
NAME_CHARACTERS = 15


def svg(panel: Panel, length_s: float) -> str:
    """The panel, `WIDTH` wide; `length_s` is the length of the axis."""
    lanes_end = 6 + LANE * len(panel.lanes)
    axis = lanes_end + (26 if panel.both_s is not None else 4)
    parts = [_axis(axis, length_s)]
    for number, lane in enumerate(panel.lanes):
        parts.append(_lane(lane, 6 + LANE * number + LANE // 2, length_s))
    if panel.both_s is not None:
        parts.append(_both(panel, lanes_end + 12, length_s))
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


def _lane(lane: Lane, middle: float, length_s: float) -> str:
    name = lane.name if len(lane.name) <= NAME_CHARACTERS else lane.name[: NAME_CHARACTERS - 1] + "…"
    label = _text(LEFT - 14, middle + (0 if lane.about else 4), name, "name", "end")
    about = _text(LEFT - 14, middle + 15, lane.about, "about", "end") if lane.about else ""
    bars = "".join(_bar(bar, middle, length_s) for bar in lane.bars)
    end = _x(lane.end_s, length_s)
    lost = _text(end + 2, middle + 5, "✕", "lost") if lane.lost else ""
    notes = [*lane.notes, *(["lost"] if lane.lost else [])]
    first = middle + 4 - 8 * (len(notes) - 1)
    figures = "".join(_text(LEFT + PLOT + 20, first + 16 * row, note, "figure") for row, note in enumerate(notes))
    heading = f"<title>{escape(lane.name)}{escape(lane.lost and f': lost, {lane.lost}')}</title>"
    return f'<g class="lane" data-application="{escape(lane.name)}">{heading}{label}{about}{bars}{lost}{figures}</g>'


def _bar(bar: Bar, middle: float, length_s: float) -> str:
    x, height = _x(bar.start_s, length_s), HEIGHTS[bar.kind]
    least = 0 if bar.kind == COMPUTING else 1.0 if bar.kind == IO else 0.8
    width = max(_x(bar.end_s, length_s) - x, least)
    box = f'x="{x:.2f}" y="{middle - height / 2:.1f}" width="{width:.2f}" height="{height}"'
    paler = f' fill-opacity="{opacity(bar):.2f}"' if bar.share < 1 else ""
    return f'<rect class="{bar.kind}" {box}{paler}><title>{escape(bar.text)}</title></rect>'


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
