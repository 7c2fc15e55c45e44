"""hocket publish: publishes an event of your own."""

from __future__ import annotations

import argparse

from hocket.bus import SLOW_IO_SERVER, Bus, Value
from hocket.errors import UsageError
from hocket.verbs import help_text

EXAMPLES = """
examples:
  hocket publish SERVER_BUSY server=s1 load=0.9
  hocket publish MAINTENANCE begins=soon degraded=true
  hocket publish SLOW_IO_SERVER server=s1    # a monitor's finding: s1 leaves the server map for a while

A value is a whole number, a number, true or false, or else text.
"""


def add(parsers: argparse._SubParsersAction) -> None:
    parser = parsers.add_parser("publish", **help_text("publish an event of your own on the bus", EXAMPLES))
    parser.add_argument("type", metavar="TYPE", help="any name that hocket does not use itself, or SLOW_IO_SERVER")
    parser.add_argument("properties", nargs="*", metavar="KEY=VALUE")
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    properties = dict(_property(word) for word in arguments.properties)
    if arguments.type == SLOW_IO_SERVER:  # a server may be called "1"
        properties = dict(word.split("=", 1) for word in arguments.properties)
    with Bus.connect() as bus:
        bus.publish(arguments.type, properties)
        bus.list()  # a refusal arrives before this answer
    return 0


def _property(word: str) -> tuple[str, Value]:
    key, separator, text = word.partition("=")
    if not separator or not key:
        raise UsageError(f"'{word}' is no property; write KEY=VALUE")
    if text in ("true", "false"):
        return key, text == "true"
    for kind in (int, float):
        try:
            return key, kind(text)
        except ValueError:
            continue
    return key, text
