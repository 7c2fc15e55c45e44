"""Forwarded calls of I/O servers: how many, merged, how long they waited, and which application had which part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hocket.tables import columns

if TYPE_CHECKING:
    from hocket.bus import Event

HEADING = ("FORWARDED", "SCHEDULER", "CALLS", "MERGED", "SYSTEM CALLS", "WAITING", "MEAN WAIT", "BYTES BY APPLICATION")
MOST_SHARES = 4  # applications that are named in a line
LONGEST_NUMBER = 19  # digits
CHOOSERS = {"policy": "policy", "configuration": "hocket.toml"}  # other than an operator: src/core/event/chooser.hpp
COUNTS = ("forwarded", "merged", "system_calls", "forward_waited_ns")


@dataclass
class ForwardedCalls:
    """Sums of one server."""

    server: str
    schedulers: list[str] = field(default_factory=list)  # in the order of their use
    scheduler_by: str = ""  # who chose the last one
    forwarded: int = 0
    merged: int = 0
    system_calls: int = 0
    forward_waited_ns: int = 0
    forward_queue: int = 0  # now
    forward_shares: str = ""  # a line for each application: REQUESTS BYTES WAITED_NS NAME
    forward_weights: str = ""  # a line for each application whose weight is not 1: WEIGHT NAME

    @property
    def are_worth_a_line(self) -> bool:
        return self.forwarded > 0 or any(name != "fifo" for name in self.schedulers)

    def cells(self) -> tuple[str, ...]:
        """Return the row under HEADING."""
        mean_wait = f"{self.forward_waited_ns / self.forwarded / 1e6:.2f} ms" if self.forwarded > 0 else ""
        counts = (str(one) for one in (self.forwarded, self.merged, self.system_calls, self.forward_queue))
        by = f" ({CHOOSERS[self.scheduler_by]})" if self.scheduler_by in CHOOSERS else ""
        shares = shares_text(self.forward_shares, self.forward_weights)
        return (self.server, " → ".join(self.schedulers) + by, *counts, mean_wait, shares)


def shares_text(shares: str, weights: str = "") -> str:
    """Return the part of each application's bytes, and its weight if not 1: "solver 75 % (weight 3), post 25 %"."""
    of_name = {name: weight for weight, _, name in (line.partition(" ") for line in weights.splitlines())}
    parts = []
    for line in shares.splitlines():
        words = line.split(" ", 3)
        if len(words) == 4 and words[1].isdecimal() and len(words[1]) <= LONGEST_NUMBER:
            parts.append((int(words[1]), words[3] or "(unknown)"))
    total = sum(moved for moved, _ in parts)
    if total == 0:
        return ""
    named = [
        f"{name} {100 * moved / total:.0f} %" + (f" (weight {of_name[name]})" if name in of_name else "")
        for moved, name in parts[:MOST_SHARES]
    ]
    rest = sum(moved for moved, _ in parts[MOST_SHARES:])
    return ", ".join(named + ([f"others {100 * rest / total:.0f} %"] if rest else []))


def text_table(servers: Iterable[ForwardedCalls]) -> str:
    """Return a line for each server that has forwarded anything, with a heading; "" if none has."""
    rows = [one.cells() for one in servers if one.are_worth_a_line]
    return columns(HEADING, rows, right=range(2, 7)) if rows else ""


class ForwardedOfServers:
    """The sums of all servers, from the events of a trace."""

    def __init__(self) -> None:
        self.servers: list[ForwardedCalls] = []
        self._of_member: dict[int, ForwardedCalls] = {}

    def feed(self, event: Event) -> None:
        """Add one event. Other types are ignored."""
        if event.type == "SERVER":
            name = event.get("scheduler", "") or "fifo"
            one = ForwardedCalls(event.get("server", ""), [name], event.get("scheduler_by", ""))
            self.servers.append(one)
            self._of_member[event.member] = one
        elif event.type in ("SERVER_LOAD", "SCHEDULER_USED") and (found := self._of_member.get(event.member)):
            _add(found, event)


def _add(calls: ForwardedCalls, event: Event) -> None:
    if event.type == "SCHEDULER_USED":
        name = event.get("scheduler", "")
        if event.get("error"):
            return
        calls.scheduler_by = event.get("scheduler_by", "")
        if calls.schedulers[-1] != name:
            calls.schedulers = [*calls.schedulers[-2:], name]  # the last three
        return
    for key in COUNTS:
        setattr(calls, key, getattr(calls, key) + event.get(key, 0))
    calls.forward_queue = event.get("forward_queue", 0)
    if shares := event.get("forward_shares", ""):
        calls.forward_shares, calls.forward_weights = shares, event.get("forward_weights", "")
