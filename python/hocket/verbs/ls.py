"""hocket ls: the applications that run."""

from __future__ import annotations

import argparse
from typing import Any

from hocket.bus import Bus
from hocket.tables import columns, duration, with_spread
from hocket.verbs import help_text, print_json

EXAMPLES = """
examples:
  hocket ls
  hocket ls --json | jq -r '.applications[] | select(.state == "waiting") | .application'

state: computing, waiting (for a grant), io. period: from the start of one I/O phase to that of the next, mean and
spread. next: when its next I/O phase is expected. --json gives all fields, times in nanoseconds of the node's
monotonic clock ("now_ns" of "daemon" is the present); docs/ls.schema.json documents them.
"""
HEADING = ("APPLICATION", "STATE", "PROCESSES", "PHASES", "PERIOD", "LAST I/O", "WAITED", "NEXT")


def add(parsers: argparse._SubParsersAction) -> None:
    parser = parsers.add_parser("ls", **help_text("list the applications that run", EXAMPLES))
    parser.add_argument("--json", action="store_true", help='as JSON: {"applications": […], "daemon": {…}}')
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    with Bus.connect() as bus:
        listing = bus.list()
    if arguments.json:
        named = [{"application": one["application"], **one} for one in listing.applications]
        print_json({"applications": named, "daemon": listing.daemon})
    elif listing.applications:
        now_ns = listing.daemon["now_ns"]
        print(columns(HEADING, [_row(application, now_ns) for application in listing.applications], right=(2, 3)))
    else:
        print("no application runs")
    return 0


def _row(application: dict[str, Any], now_ns: int) -> tuple[str, ...]:
    last = application["last_io_end_ns"]
    waited = application["wait_ns"]
    if application["state"] == "waiting":
        waited += now_ns - application["since_ns"]
    return (
        application["application"],
        application["state"],
        str(application["processes"]),
        str(application["phases"]),
        with_spread(application["period_ns"], application["period_spread_ns"]),
        f"{duration(now_ns - last)} ago" if last else "",
        duration(waited) if waited else "",
        next_phase(application, now_ns),
    )


def next_phase(application: dict[str, Any], now_ns: int) -> str:
    """When the next I/O phase is expected, "" where nothing is known or it has begun."""
    if application["state"] != "computing":
        return ""
    at = application["next_start_ns"]
    if not at:
        return ""
    spread = f"± {application['next_uncertainty_ns'] / 1e9:.2f} s"
    return f"in {(at - now_ns) / 1e9:.2f} {spread}" if at >= now_ns else f"{(now_ns - at) / 1e9:.2f} s late, {spread}"
