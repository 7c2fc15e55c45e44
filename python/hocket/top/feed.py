"""Feeds the live view from the daemon, or from a trace up to a given time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from hocket.bus import Bus, Listing
from hocket.errors import UsageError
from hocket.top.model import TopModel
from hocket.trace import consistent, last_events, read_trace


def from_trace(path: str, at_s: float | None) -> TopModel:
    """Return the view `at_s` seconds after the trace's start; None: at its end."""
    trace = read_trace(path)
    until_ns = trace.end_ns if at_s is None else trace.start_ns + int(at_s * 1e9)
    if at_s is not None and at_s < 0:
        raise UsageError(f"--at {at_s:g}: seconds after the trace's start, not before it")
    model = TopModel()
    model.analysis.policy = str(trace.settings.get("policy", ""))
    with consistent(trace):
        for event in trace.events:
            if event.time_ns > until_ns:
                break
            model.feed(event)
        model.advance(until_ns)
    model.node = trace.node
    model.analysis.nodes |= {trace.node} - {""}
    return model


class LiveFeed:
    """A model that follows the daemon. Call `update` whenever events may have arrived."""

    def __init__(self, bus: Bus) -> None:
        self.model = TopModel()
        self._bus = bus
        self._events = bus.subscribe("")
        listing = bus.list()
        self._history(listing)
        self._told = self.model.now_ns
        self._ahead_ns = _ahead_ns(listing.daemon)
        self._rows: list[dict[str, Any]] = []  # rows of an answer to LIST whose end has not arrived
        self.model.feed_listing(listing)
        self.model.node = str(listing.daemon.get("on_node", ""))

    def ask(self) -> None:
        """Request new forecasts. `update` receives the answer."""
        self._bus.send("LIST")

    def update(self) -> None:
        """Take in the events that arrived, and the time that has passed. Raises BusError if the daemon has ended."""
        while (event := self._events.test()) is not None:
            if event.time_ns > self._told:
                self.model.feed(event)
        while (answer := self._bus.answer(0)) is not None:
            if answer.type == "APPLICATION":
                self._rows.append(dict(answer.fields))
            elif answer.type == "DAEMON":
                self.model.feed_listing(Listing(self._rows, dict(answer.fields), []))
                self._rows = []
        self.model.advance(time.monotonic_ns() + self._ahead_ns)
        self.model.forget()

    def _history(self, listing: Listing) -> None:
        """Feed the last part of the daemon's trace, as far as it can be read, so that the view opens with its past.

        The daemon has written all that happened before it answered LIST.
        """
        for event in last_events(str(listing.daemon.get("trace", ""))):
            self.model.feed(event)


def _ahead_ns(daemon: Mapping[str, Any]) -> int:
    """Return what the clock of the daemon shows more than this one's; the daemon may be on another node."""
    return int(daemon.get("now_ns", time.monotonic_ns())) - time.monotonic_ns()
