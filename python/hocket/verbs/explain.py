"""hocket explain: shows the last decisions about access and cores, and what came of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from hocket.analysis import Analysis, analyse
from hocket.bus import Bus, BusError, Event
from hocket.decisions import Decisions, PolicyDecision, accuracies, tell
from hocket.errors import HocketError, UsageError
from hocket.flop import sources_text
from hocket.periods import IRREGULAR, irregular_text
from hocket.places import Place, nodes_of_listing, places_text
from hocket.tables import duration, printable
from hocket.trace import last_events, read_trace
from hocket.verbs import help_text, print_json

EXAMPLES = """
examples:
  hocket explain                          # the last decisions of the running daemon
  hocket explain jacobi -n 3              # the last three that concern jacobi
  hocket explain --trace run.jsonl        # of a recorded or simulated run
  hocket explain --json                   # all fields, times in nanoseconds

Access to a target: which application waits for another, preempts it, or continues; if a policy compared costs, the
costs. Targets are named by their mount point on this node. Cores: what was predicted, what was chosen, what it cost,
and what resulted. At the end: the errors of the predictions; the source of each application's FLOP (hardware counters,
a declaration, a profile, or none: then policies count iterations); and the applications whose I/O phases fit no period.
If there are several nodes, or jobs of Slurm, a line says where the applications of these decisions run, or ran.
Times are seconds since the daemon, or the recorded run, began.
"""
LAST = 10


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("show the last decisions, their reasons and their results", EXAMPLES)
    parser = parsers.add_parser("explain", **words)
    parser.add_argument(
        "application", nargs="?", default="", metavar="APP", help="only decisions that concern this application"
    )
    parser.add_argument("-n", type=int, default=LAST, dest="last", metavar="N", help=f"the last N (default: {LAST})")
    parser.add_argument("--trace", metavar="TRACE", help="of a recorded run, not of the daemon")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(verb=run)


@dataclass(frozen=True)
class Told:
    """The decisions of a daemon or a trace, and what is known of its applications, by their names."""

    decisions: Decisions
    flop: dict[str, str]  # sources of the FLOP of malleable applications
    irregular: list[str]
    places: dict[str, Place]
    has_several_nodes: bool
    zero_ns: int
    now_ns: int

    def about(self, name: str) -> Told:
        """Return the same, with the sources and periods of this application only."""
        flop = {one: source for one, source in self.flop.items() if one == name}
        return replace(self, flop=flop, irregular=[one for one in self.irregular if one == name])

    def places_of(self, shown: Sequence[PolicyDecision]) -> dict[str, Place]:
        """Return the places of the applications of these decisions."""
        names = dict.fromkeys(name for one in shown for name in (one.decided_for, one.because_of))
        return {name: self.places[name] for name in names if name in self.places}


def run(arguments: argparse.Namespace) -> int:
    if arguments.last < 1:
        raise UsageError(f"-n {arguments.last}: give 1 or more")
    told = _read(arguments) if arguments.trace else _ask(arguments)
    shown = told.decisions.of(arguments.application, arguments.last)
    if arguments.application:
        told = told.about(arguments.application)
    if arguments.json:
        _print_json(told, shown)
        return 0
    if told.decisions.leader_place > 1:
        print(later_leader_text(told.decisions.leader_place))
    print(text_of(shown, told.zero_ns, told.now_ns))
    where = places_text(told.places_of(shown), told.has_several_nodes)
    for words in (where, sources_text(told.flop), irregular_text(told.irregular)):
        if words:
            print(printable(words))
    return 0


def _print_json(told: Told, shown: Sequence[PolicyDecision]) -> None:
    tell(shown)
    decisions = [{**asdict(one), "from": one.sources, "to": one.targets, "text": one.sentence()} for one in shown]
    for one in decisions:
        del one["sources"], one["targets"], one["node"]
    accuracy = [asdict(one) for one in accuracies(shown)]
    print_json(
        {"now_ns": told.now_ns, "decisions": decisions, "accuracy": accuracy, "flop": told.flop}
        | {"irregular": told.irregular, "leader_place": told.decisions.leader_place}
        | {"places": {name: asdict(place) for name, place in told.places_of(shown).items()}}
    )


def _read(arguments: argparse.Namespace) -> Told:
    """Return what the trace tells."""
    trace = read_trace(arguments.trace)
    analysis = analyse(trace)
    applications, found = analysis.applications, analysis.about_cores
    known = {name for one in found.all for name in (one.decided_for, one.because_of)}
    known |= {event.application for event in trace.events}
    if arguments.application and arguments.application not in known:
        raise HocketError(f"no application '{printable(arguments.application)}' in {trace.path}")
    return Told(
        found,
        {one.name: one.flop_source for one in applications if one.sizes},
        [one.name for one in applications if one.irregular],
        {one.name: one.place for one in applications},
        analysis.has_several_nodes,
        trace.start_ns,
        trace.end_ns,
    )


def _ask(arguments: argparse.Namespace) -> Told:
    """Return what the daemon tells. Times, costs, and places of the past are from its trace, if it can be read."""
    found, analysis = Decisions(), Analysis()
    with Bus.connect() as bus:
        listing = bus.list()
        found.node = str(listing.daemon.get("on_node", ""))
        found.leader_place = int(listing.daemon.get("leader_place", 1))
        flop = {one["application"]: one.get("flop_source", "") for one in listing.applications if one.get("malleable")}
        irregular = [one["application"] for one in listing.applications if one.get("model") == IRREGULAR]
        bus.send("EXPLAIN", count=arguments.last, application_asked=arguments.application)
        while (answer := bus.answer(5.0)) is not None and answer.type != "DAEMON":
            found.feed(answer)
    if answer is None:
        raise BusError("hocketd did not answer within 5 s; is it stopped? see 'hocket daemon status'")
    for event in last_events(str(answer.get("trace", ""))):
        analysis.feed(event)
    found.learn_from(analysis.about_cores)
    for one in listing.applications:
        analysis.feed(Event("APPLICATION", one))
    places = {one.name: one.place for one in analysis.applications}
    nodes = analysis.nodes | nodes_of_listing(listing.applications, listing.nodes, listing.daemon)
    times = int(answer.get("started_ns", 0)), int(answer.get("now_ns", 0))
    return Told(found, flop, irregular, places, len(nodes) > 1, *times)


def later_leader_text(place: int) -> str:
    return f"this leader is at place {place} of the list of leaders: it gives out no cores and changes no server maps"


def text_of(shown: Sequence[PolicyDecision], zero_ns: int, now_ns: int) -> str:
    """Return the decisions, the oldest first, and the accuracy of their predictions."""
    if not shown:
        return "nothing was decided so far"
    tell(shown, zero_ns)
    lines = []
    for one in shown:
        when = f", {duration(now_ns - one.time_ns)} ago" if one.time_ns else ""
        at = f" at {(one.time_ns - zero_ns) / 1e9:.2f} s{when}" if one.time_ns else ""
        lines.append(f"decision {one.number}, {printable(one.policy)}{at}: {printable(one.heading())}")
        lines += [f"  {about:<12}  {printable(words)}" for about, words in one.sentences(zero_ns)]
    if all(one.is_about_access for one in shown):
        return "\n".join(lines)
    found = accuracies(shown)
    lines += ["", "predictions held against what happened" if found else "no prediction has come to its test so far"]
    lines += [f"  {one.sentence()}" for one in found]
    return "\n".join(lines)
