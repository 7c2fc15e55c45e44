"""hocket top: shows live how the applications take turns."""

from __future__ import annotations

import argparse
import shutil

from hocket.bus import Bus
from hocket.errors import HocketError, UsageError
from hocket.top.feed import LiveFeed, from_trace
from hocket.top.model import TopModel
from hocket.top.render import MIN_WIDTH, plain, render
from hocket.verbs import help_text, print_json

EXAMPLES = """
examples:
  hocket top                                     # q: quit, + and -: zoom in and out
  hocket top --once --width 100                  # print it once, without a terminal
  hocket top --from-trace run.jsonl --at 12.5    # as it was 12.5 s after the trace's start

A lane for each application: the past up to now, its expected I/O phases ahead of now (the daemon predicts them: not in
a recorded run). Below it stand its nodes, if the daemon knows of several, its job, if Slurm started it, and figures.
"""


def add(parsers: argparse._SubParsersAction) -> None:
    parser = parsers.add_parser("top", **help_text("watch the applications take turns", EXAMPLES))
    parser.add_argument("--once", action="store_true", help="print the view once and end")
    parser.add_argument("--from-trace", metavar="TRACE", help="print the view of a recorded run")
    parser.add_argument("--at", type=float, metavar="S", help="with --from-trace: seconds after its start")
    parser.add_argument("--width", type=int, help="columns of what is printed (default: the terminal's)")
    parser.add_argument("--json", action="store_true", help="print what the view shows, once, as JSON")
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.width is not None and arguments.width < MIN_WIDTH:
        raise UsageError(f"--width {arguments.width}: at least {MIN_WIDTH} columns are needed")
    if arguments.at is not None and not arguments.from_trace:
        raise UsageError("--at needs --from-trace")
    if arguments.from_trace:
        _print(from_trace(arguments.from_trace, arguments.at), arguments)
        return 0
    with Bus.connect() as bus:
        feed = LiveFeed(bus)
        if arguments.once or arguments.json:
            feed.update()
            _print(feed.model, arguments)
            return 0
        from hocket.top.screen import TopApp  # imported here: textual takes a while to load

        if reason := TopApp(feed).run():
            raise HocketError(reason)
    return 0


def _print(model: TopModel, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print_json(as_json(model))
    else:
        print(plain(render(model, arguments.width or shutil.get_terminal_size((100, 24)).columns)))


def as_json(model: TopModel) -> dict[str, object]:
    """Return what the view shows; times are nanoseconds of the node's clock."""
    applications = [
        {
            "application": application.name,
            "nodes": list(application.nodes),
            "job": application.place.job,
            "processes": application.processes,
            "resizing_to": model.resizing_to(application),
            "state": model.state(application),
            "waited_s": round(model.waited_s(application), 6),
            "flop_source": model.flop_source(application),
            "period_ns": model.forecast(application).period_ns,
            "next_start_ns": model.forecast(application).next_start_ns,
            "lane": [[part.kind, part.start_ns, part.end_ns] for part in model.lane(application, 30.0)],
        }
        for application in model.shown(30.0)
    ]
    decisions = [{"time_ns": d.time_ns, "application": d.application, "decision": d.text()} for d in model.decisions(6)]
    policy = model.analysis.policy
    return {"now_ns": model.now_ns, "policy": policy, "applications": applications, "decisions": decisions}
