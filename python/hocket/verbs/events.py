"""hocket events: prints events of the bus."""

from __future__ import annotations

import argparse
import json

from hocket.bus import Bus, ConnectionEndedError, Event
from hocket.errors import HocketError
from hocket.tables import printable
from hocket.verbs import help_text, tell

EXAMPLES = """
examples:
  hocket events --follow                                       # everything, until Ctrl-C
  hocket events --follow --filter "GRANT_IO waited_ns>1000000000" --json
  hocket events --filter "BYE application=jacobi-a" --timeout 60    # wait until it has ended

A filter is [TYPE] {KEY OP VALUE}, OP one of = != < <= > >= without spaces; --json prints one object a line.
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
            while (event := subscription.wait(arguments.timeout)) is not None:
                print(json.dumps(event.as_dict()) if arguments.json else line(event), flush=True)
                if not arguments.follow:
                    return 0
                if bus.events_lost > lost:
                    tell(f"{bus.events_lost - lost} events were left out: they came faster than they could be printed")
                    lost = bus.events_lost
        except ConnectionEndedError:
            tell("hocketd has ended")
            return 1
    raise HocketError(f"no event came within {arguments.timeout:g} s")


def line(event: Event) -> str:
    """Return an event as a line: seconds of the node's clock, application, type, and fields."""
    fields = " ".join(f"{key}={_value(value)}" for key, value in event.flat_fields().items())
    return f"{event.time_ns / 1e9:.6f}  {printable(event.application) or '-':<12}  {event.type:<13}  {fields}".rstrip()


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = printable(str(value))
    return f'"{text}"' if " " in text or not text else text
