"""Shows the live view in the terminal (textual)."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from hocket.bus import BusError
from hocket.top.feed import LiveFeed
from hocket.top.render import Line, Span, View, render

FRAME_S, ASK_S = 0.2, 1.0
KEY_LINES: list[Line] = [[], [Span("q quit   + zoom in   - zoom out", "soft")]]
STYLES = {
    "io": "#56b4e9",
    "waiting": "#e69f00",
    "computing": "grey50",
    "predicted": "#56b4e9 dim",
    "heading": "bold",
    "soft": "grey62",
    "": "",
}


def text_of(lines: list[Line]) -> Text:
    text = Text(no_wrap=True, overflow="crop")
    for number, line in enumerate(lines):
        text.append("\n" if number else "")
        for span in line:
            text.append(span.text, STYLES.get(span.style, ""))
    return text


class TopApp(App[str]):
    """The terminal application. It returns the reason of its end; "" if the user quit."""

    CSS = "Screen { padding: 0 1; overflow: hidden; } #view { text-wrap: nowrap; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("q", "leave", "Quit"),
        ("plus,equals_sign", "zoom(0.5)", "Closer"),
        ("minus", "zoom(2)", "Further"),
    ]

    def __init__(self, feed: LiveFeed) -> None:
        super().__init__()
        self._feed = feed
        self._window_s = 30.0

    def compose(self) -> ComposeResult:
        yield Static(id="view")

    def on_mount(self) -> None:
        self.set_interval(FRAME_S, self._draw)
        self.set_interval(ASK_S, self._feed.ask)
        self._draw()

    def action_leave(self) -> None:
        self.exit("")

    def action_zoom(self, factor: float) -> None:
        self._window_s = min(120.0, max(7.5, self._window_s * factor))
        self._draw()

    def _draw(self) -> None:
        try:
            self._feed.update()
        except BusError as error:
            self.exit(str(error))
            return
        height = max(1, self.size.height - len(KEY_LINES))
        view = View(window_s=self._window_s, ahead_s=self._window_s / 3, height=height)
        lines = render(self._feed.model, self.size.width - 2, view)[:height] + KEY_LINES
        self.query_one("#view", Static).update(text_of(lines))
