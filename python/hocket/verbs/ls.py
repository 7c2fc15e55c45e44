"""hocket ls: lists the applications that run."""

from __future__ import annotations

import argparse
from typing import Any

from hocket.bus import Bus
from hocket.io_servers import servers_text
from hocket.mounts import with_mount_points
from hocket.periods import IRREGULAR
from hocket.places import Place, nodes_of_listing
from hocket.tables import columns, duration, printable, with_spread
from hocket.verbs import help_text, print_json

EXAMPLES = """
examples:
  hocket ls
  hocket ls --json | jq -r '.applications[] | select(.state == "waiting") | .application'

state: computing, waiting (for a grant), io. period: from the start of one I/O phase to the start of the next, mean and
spread. If phases of several kinds alternate, it is the period of the whole cycle, with its number of phases;
"irregular": the phases fit no period. next: the expected start of the next I/O phase. If an application is malleable
('hocket resize'), two more columns show how many of its processes sleep, and how often it was resized; "2 → 4"
processes: a resize is under way. Lines of their own say on which nodes a malleable application has its processes, if
there are several ("node1=2 node2=1"), and name the I/O servers that are assigned to it ('hocket servers assign'). USER:
of applications that are not yours. JOB: job and step, if Slurm runs an application (docs/slurm.md). NODE: where it
reports, if the daemon knows of several nodes; of a malleable application, where it computes. The last lines say how
long another application would wait at each target in use, or at the parts of it in use, by the policy in force and what
is known of the applications. --json gives all fields, times in nanoseconds of the node's monotonic clock ("now_ns" of
"daemon" is the present); docs/ls.schema.json documents them.
"""
HEADING = ("APPLICATION", "STATE", "PROCESSES", "PHASES", "PERIOD", "LAST I/O", "WAITED", "NEXT")
KEYS_OF_TARGET = ("target", "parts", "wait_ns", "uncertainty_ns", "ahead")
OF_MALLEABLE = ("SLEEPING", "RESIZED")  # columns after PROCESSES, if an application is malleable


def add(parsers: argparse._SubParsersAction) -> None:
    parser = parsers.add_parser("ls", **help_text("list the running applications", EXAMPLES))
    parser.add_argument(
        "--json",
        action="store_true",
        help='as JSON: {"applications": […], "targets": […], "nodes": […], "daemon": {…}}',
    )
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    with Bus.connect() as bus:
        listing = bus.list()
        names = sorted({(str(one["target"]), str(one["parts"])) for one in listing.applications if one["target"]})
        waits = [{**bus.expected_wait(name, parts=parts), "parts": parts} for name, parts in names]
    if arguments.json:
        named = [{"application": one["application"], **one} for one in listing.applications]
        targets = [{key: one[key] for key in KEYS_OF_TARGET} for one in waits]
        print_json({"applications": named, "targets": targets, "nodes": listing.nodes, "daemon": listing.daemon})
    elif listing.applications:
        nodes = nodes_of_listing(listing.applications, listing.nodes, listing.daemon)
        print(table(listing.applications, listing.daemon["now_ns"], with_nodes=len(nodes) > 1))
        for one in listing.applications:
            if " " in one.get("nodes", ""):
                print(f"{printable(one['application'])} runs on {printable(one['nodes'])}")
            if words := servers_text(one):
                kind = "" if one.get("forwards") else "the I/O servers "
                print(f"{printable(one['application'])}: its files use {kind}{words}")
        for one in waits:
            if one["ahead"]:
                print(wait_text(one))
    else:
        print("no application runs")
    return 0


def wait_text(wait: dict[str, Any]) -> str:
    """Return what another application would meet at a target that is in use now."""
    off = wait["uncertainty_ns"]
    spread = f"± {off / 1e9:.2f} s" if off >= 0 else "or more: not all of them are known"
    where = with_mount_points(str(wait["target"]))
    if wait["parts"]:
        where += f" ({wait['parts']})"
    return f"{where}: another application would wait {wait['wait_ns'] / 1e9:.2f} {spread}, behind {wait['ahead']}"


def table(applications: list[dict[str, Any]], now_ns: int, with_nodes: bool = False) -> str:
    """Return the list for a terminal. `with_nodes`: there are several nodes."""
    any_malleable = any(application.get("malleable") for application in applications)
    more = OF_MALLEABLE if any_malleable else ()
    places = [Place.of_row(application) for application in applications]
    known = {
        "USER": [place.user for place in places],
        "JOB": [place.job for place in places],
        "NODE": [place.nodes_text() if with_nodes else "" for place in places],
    }
    where = {name: cells for name, cells in known.items() if any(cells)}
    heading = (HEADING[0], *where, *HEADING[1:3], *more, *HEADING[3:])
    rows = []
    for number, application in enumerate(applications):
        row = _row(application, now_ns)
        ids = [cells[number] for cells in where.values()]
        rows.append((row[0], *ids, *row[1:3], *(_malleable(application) if any_malleable else ()), *row[3:]))
    return columns(heading, rows, right=range(2 + len(where), 4 + len(where) + len(more)))


def _malleable(application: dict[str, Any]) -> tuple[str, str]:
    if not application.get("malleable"):
        return "", ""
    return str(application["sleeping"] or ""), f"{application['reconfigurations']}x"


def _processes(application: dict[str, Any]) -> str:
    resizing_to = application.get("resizing_to", 0)
    return f"{application['processes']} → {resizing_to}" if resizing_to else str(application["processes"])


def _row(application: dict[str, Any], now_ns: int) -> tuple[str, ...]:
    last = application["last_io_end_ns"]
    waited = application["wait_ns"]
    return (
        application["application"],
        application["state"],
        _processes(application),
        str(application["phases"]),
        period_text(application),
        f"{duration(now_ns - last)} ago" if last else "",
        duration(waited) if waited else "",
        next_phase(application, now_ns),
    )


def period_text(application: dict[str, Any]) -> str:
    """Return its I/O period; "" if none is known yet."""
    if application.get("model") == IRREGULAR:
        return IRREGULAR
    phases = application.get("phases_in_period", 0)
    period = with_spread(application["period_ns"], application["period_spread_ns"])
    return f"{period}, {phases} phases" if period and phases > 1 else period


def next_phase(application: dict[str, Any], now_ns: int) -> str:
    """Return when the next I/O phase is expected.

    "" if nothing is known, if no period fits the phases, or if the application does not compute.
    """
    if application["state"] != "computing" or application.get("model") == IRREGULAR:
        return ""
    at = application["next_start_ns"]
    if not at:
        return ""
    spread = f"± {application['next_uncertainty_ns'] / 1e9:.2f} s"
    return f"in {(at - now_ns) / 1e9:.2f} {spread}" if at >= now_ns else f"{(now_ns - at) / 1e9:.2f} s late, {spread}"
