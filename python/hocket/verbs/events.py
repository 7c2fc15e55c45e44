"""hocket events: prints events of the bus."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping

from hocket.bus import Bus, ConnectionEndedError, Event
from hocket.errors import HocketError
from hocket.places import Place, nodes_of_listing
from hocket.tables import printable
from hocket.verbs import help_text, tell

EXAMPLES = """
examples:
  hocket events --follow                                       # everything, until Ctrl-C
  hocket events --follow --filter "GRANT_IO waited_ns>1000000000" --json
  hocket events --filter "BYE application=jacobi-a" --timeout 60    # wait until it has ended

A filter is [TYPE] {KEY OP VALUE}, OP one of = != < <= > >= without spaces; --json prints one object a line.
If the daemon knows of several nodes, node= says which one an event is from; if Slurm's srun has started the
application, job= has job and step.
"""
HEAD = ("type", "time_ns", "node", "application", "member")


def add(parsers: argparse._SubParsersAction) -> None:
    parser = parsers.add_parser("events", **help_text("print the events that pass; the first, or all", EXAMPLES))
    parser.add_argument("--follow", action="store_true", help="continue after the first event")
    parser.add_argument("--filter", default="", metavar="F", help="only events that match")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--timeout", type=float, metavar="S", help="exit with code 1 if no event comes for S seconds")
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    with Bus.connect() as bus:
        subscription = bus.subscribe(arguments.filter)
        lost = 0
        try:
            places = None if arguments.json else Places(bus)
            while (event := subscription.wait(arguments.timeout)) is not None:
                print(line(event, places.known_of(event)) if places else json.dumps(event.as_dict()), flush=True)
                if not arguments.follow:
                    return 0
                if bus.events_lost > lost:
                    tell(f"{bus.events_lost - lost} events were left out: they came faster than they could be printed")
                    lost = bus.events_lost
        except ConnectionEndedError:
            tell("hocketd has ended")
            return 1
    raise HocketError(f"no event came within {arguments.timeout:g} s")


class Places:
    """The nodes and jobs of the applications of events, as hocketd lists them."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._nodes: set[str] = set()
        self._of: dict[str, Place] = {}
        self._left: set[str] = set()  # a member has left: the name may belong to another application since
        self._ask()

    def known_of(self, event: Event) -> dict[str, str]:
        """Return what is to be shown of an event: "node", if there are several, "job", and "user" of others."""
        if event.node:
            self._nodes.add(event.node)
        name = event.application
        leaves = event.type in ("BYE", "LOST")
        if name and (name not in self._of or (name in self._left and not leaves)):
            self._ask()
            self._of.setdefault(name, Place())  # it has ended already
            self._left.discard(name)
        if name and leaves:
            self._left.add(name)
        place = self._of[name] if name else Place()
        return {"node": event.node if len(self._nodes) > 1 else "", "job": place.job, "user": place.user}

    def _ask(self) -> None:
        listing = self._bus.list()
        self._nodes |= nodes_of_listing(listing.applications, listing.nodes, listing.daemon)
        self._of |= {str(one["application"]): Place.of_row(one) for one in listing.applications}


def line(event: Event, place: Mapping[str, str] | None = None) -> str:
    """Return an event as a line: seconds of the node's clock, application, type, and fields.

    `place`: "node", "job" and "user", which precede the event's own fields; "": not to be shown.
    """
    told = {key: value for key, value in (place or {}).items() if value} | event.flat_fields()
    fields = " ".join(f"{key}={_value(value)}" for key, value in told.items())
    return f"{event.time_ns / 1e9:.6f}  {printable(event.application) or '-':<12}  {event.type:<13}  {fields}".rstrip()


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = printable(str(value))
    return f'"{text}"' if " " in text or not text else text
