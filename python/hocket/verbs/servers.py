"""hocket servers: lists the I/O servers, changes the server map, the schedulers and weights, and assigns servers."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterable
from typing import Any

from hocket import io_servers, paths
from hocket.bus import Bus, BusError, Listing
from hocket.errors import HocketError, UsageError
from hocket.forwarded import ForwardedCalls, text_table
from hocket.tables import columns, duration, printable, quantity
from hocket.verbs import help_text, print_json, tell

EXAMPLES = f"""
examples:
  hocket servers                   # a line each
  hocket servers --json
  hocket servers drain s2          # applications use the others; returns when s2 can be stopped without a loss
  hocket servers add s2            # use it again
  hocket servers slow s2           # it is slow, as you or a monitor found: take it out, and try it again after a while
  hocket servers assign app s1,s3  # files of the application app use these servers only
  hocket servers assign app 4      # four servers, those which the fewest other applications have
  hocket servers assign app all    # no servers of its own any more
  hocket servers assign app 0      # none: a program under 'hocket forward' accesses its files directly
  hocket servers scheduler job-fair                # all servers order forwarded calls so, also those that wait
  hocket servers scheduler twins --server s1       # files' data servers are those that Lustre or BeeGFS names
  hocket servers scheduler twins --data-servers 4 --stripe-bytes 1m
  hocket servers scheduler default                 # as policy, hocket.toml, or the start of each server say
  hocket servers weight app 4                      # under wfq, app gets four times the bytes of one with weight 1
  hocket servers weight app default                # as policy or hocket.toml say, else 1

state: up (in the server map, so applications use it), drained (taken out by you), slow (taken out because it was
slower than its peers, or you said so; tried again after a while), hung (sends no heartbeat; hocketd kills it; the map
keeps it until it has ended), lost (its process has ended). load: the part of the last second in which it worked, all
its threads together; service: what one operation took; bandwidth: of the last second; held: data in its buffers;
epoch: the epoch of the map in which it was put in or taken out; weight: it gets a smaller share of the stripes of files
than others, as a policy decided. Applications adopt a new map at control points: the
last lines show the epoch that each of them uses, and the servers that are assigned to an application, with the
bandwidth that a policy expects of that. While there are any, but for programs under 'hocket forward', servers with
write-behind write through. An application whose servers are all gone uses all others.

A server that is lost or hung on a node that is cut off may still write. So the map waits until its end is known: the
agent there reports it when the node is back. 'hocket servers ended NAME' says that the node is surely off.

A drained server moves its data sets (hocket:/NAME) to the servers that stay, each as soon as no application has it
open. Readers and writers that come meanwhile find it. 'drain' waits for that, too, and says what is left if the time
is over; the server then continues, and 'drain' can be repeated. While it keeps some, the list shows 'keeps data sets'.

Calls of programs under 'hocket forward' have a table of their own: the scheduler that orders them; how many were
carried out; merged: how many of those in one system call with others; how many wait now, and how long one waited in the
mean; and the part of the bytes that each application has had, with its weight if that is not 1. What you choose goes
before what a policy chooses, and that before hocket.toml. The schedulers are
{", ".join(io_servers.SCHEDULERS)}.
"""
HEADING = ("SERVER", "NODE", "STATE", "DIRECTORY", "LOAD", "SERVICE", "BANDWIDTH", "QUEUE", "HELD", "EPOCH", "")
LIMIT_S = 60.0
ANSWER_S = 10.0
POLL_S = 0.1
APPLICATION_KEYS = (
    "application", "map_epoch", "servers", "assigned_servers", "given_servers", "expected_bytes_per_s", "weight",
    "weight_by",
)  # fmt: skip
NO_CHOICE = "default"  # as policy and configuration say
MOST_WEIGHT = 1000  # most_application_weight of src/core/event/command_events.hpp
FULL_WEIGHT = 8  # full_weight of src/core/event/server_map.hpp


def add(parsers: argparse._SubParsersAction) -> None:
    parser = parsers.add_parser("servers", **help_text("list the I/O servers, take one out or put it in", EXAMPLES))
    parser.add_argument(
        "--json", action="store_true", help='as JSON: {"epoch": N, "servers": […], "applications": […]}'
    )
    parser.set_defaults(verb=_list)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    draining = actions.add_parser("drain", help="take a server out of the map of running applications")
    draining.add_argument("name", metavar="NAME")
    how_long = f"how long to wait for applications that use it, and for its data sets (default: {LIMIT_S:g})"
    draining.add_argument("--timeout", type=float, default=LIMIT_S, metavar="S", help=how_long)
    draining.set_defaults(verb=_drain)
    adding = actions.add_parser("add", help="put a server back into the map")
    adding.add_argument("name", metavar="NAME")
    adding.set_defaults(verb=_add)
    ending = actions.add_parser("ended", help="report that a lost or hung server has surely ended: its node is off")
    ending.add_argument("name", metavar="NAME")
    ending.set_defaults(verb=_ended)
    slowing = actions.add_parser("slow", help="report that a server is slow: it leaves the map for a while")
    slowing.add_argument("name", metavar="NAME")
    slowing.set_defaults(verb=_slow)
    assigning = actions.add_parser("assign", help="have the files of an application use certain servers only")
    assigning.add_argument("application", metavar="APP")
    assigning.add_argument("servers", metavar="N|NAME,…|all", help="how many, which ones, or all again")
    assigning.set_defaults(verb=_assign)
    scheduling = actions.add_parser(
        "scheduler", help="order forwarded calls and collective accesses by another scheduler from now on"
    )
    names = f"one of {', '.join(io_servers.SCHEDULERS)}; or {NO_CHOICE}: as policy or hocket.toml say"
    scheduling.add_argument("scheduler", metavar="NAME", help=names)
    scheduling.add_argument("--server", metavar="S", help="of this server only (default: of all)")
    scheduling.add_argument(
        "--data-servers",
        type=int,
        metavar="N",
        help="for twins: data servers of the file system (as before, else as it says)",
    )
    scheduling.add_argument(
        "--stripe-bytes",
        metavar="BYTES",
        help="for --data-servers: bytes of a file on one of them, e.g. 4m (as before)",
    )
    scheduling.set_defaults(verb=_scheduler)
    weighing = actions.add_parser("weight", help="give an application another weight under the scheduler wfq")
    weighing.add_argument("application", metavar="APP")
    weighing.add_argument(
        "weight", metavar=f"N|{NO_CHOICE}", help=f"1 to {MOST_WEIGHT}, or as policy or hocket.toml say"
    )
    weighing.set_defaults(verb=_weight)


def _list(arguments: argparse.Namespace) -> int:
    with Bus.connect(paths.server_socket_path()) as bus:
        listing = bus.list()
    if arguments.json:
        users = [{key: one.get(key, "") for key in APPLICATION_KEYS} for one in listing.applications]
        print_json({"epoch": listing.daemon["map_epoch"], "servers": listing.servers, "applications": users})
    elif listing.servers:
        print(table(listing))
    else:
        print("no server runs; 'hocket server start --dir DIR' starts one")
    return 0


def table(listing: Listing) -> str:
    """Return the servers, a line each, and the map epoch that each application uses."""
    now_ns = listing.daemon["now_ns"]
    users = [f"{printable(one['application'])} {one['map_epoch']}" for one in listing.applications if one["map_epoch"]]
    rows = [_row(one, now_ns) for one in listing.servers]
    epochs = f"map: epoch {listing.daemon['map_epoch']}; used by: {', '.join(users) or 'no application'}"
    own = [
        f"{printable(one['application'])}: {io_servers.servers_text(one) or 'all servers'}{_out_of_map(one, listing)}"
        for one in listing.applications
        if io_servers.servers_text(one) or one.get("assigned_servers")
    ]
    forwarded = text_table(map(_forwarded, listing.servers))
    return "\n".join((columns(HEADING, rows, right=range(4, 10)), epochs, *own, *([forwarded] if forwarded else [])))


def _forwarded(one: dict[str, Any]) -> ForwardedCalls:
    counts = {key: one.get(key, 0) for key in ("forwarded", "merged", "system_calls", "forward_waited_ns")}
    texts = {key: one.get(key, "") for key in ("forward_shares", "forward_weights", "scheduler_by")}
    scheduler = one.get("scheduler", "") or "fifo"
    return ForwardedCalls(one["server"], [scheduler], forward_queue=one.get("forward_queue", 0), **counts, **texts)


def _row(one: dict[str, Any], now_ns: int) -> tuple[str, ...]:
    service = f"{one['last_service_ns'] / 1e6:.2f} ms" if one["last_service_ns"] else ""
    note = "write-behind" if one["write_behind"] else ""
    if one.get("weight", FULL_WEIGHT) != FULL_WEIGHT:
        note += f"{', ' if note else ''}weight {one['weight']} of {FULL_WEIGHT}"
    if one["state"] == "slow":
        note = f"tried again in {duration(max(0, one['back_ns'] - now_ns))}"
    elif one["state"] in ("lost", "hung"):
        note = f"{duration(now_ns - one['since_ns'])} ago"
    elif one.get("moves_data_sets"):
        note = "keeps data sets"
    return (
        one["server"],
        one.get("on_node", ""),
        one["state"],
        one["directory"],
        f"{one['busy_ns'] / 1e7:.0f} %",
        service,
        f"{quantity(one['bytes_per_s'])}/s",
        str(one["queue"]),
        quantity(one["held_bytes"]),
        str(one["epoch"]),
        note,
    )


def _out_of_map(application: dict[str, Any], listing: Listing) -> str:
    """Return which servers that are assigned to an application are not in the map; "" if all are."""
    used = [server["server"] for server in listing.servers if server["state"] == "up"]
    out = [name for name in application.get("assigned_servers", "").split(", ") if name and name not in used]
    if not out:
        return ""
    return f"; {', '.join(out)} {'is' if len(out) == 1 else 'are'} assigned, but not in the map"


def _drain(arguments: argparse.Namespace) -> int:
    if not arguments.timeout >= 0:
        raise UsageError(f"--timeout {arguments.timeout:g}: give 0 seconds or more")
    with Bus.connect(paths.server_socket_path()) as bus:
        io_servers.chosen(bus, [arguments.name])
        io_servers.drain(bus, [arguments.name], arguments.timeout)
    tell(f"{arguments.name} is out of the map; no application uses it, and it keeps no data sets")
    return 0


def _add(arguments: argparse.Namespace) -> int:
    with Bus.connect(paths.server_socket_path()) as bus:
        io_servers.chosen(bus, [arguments.name])
        bus.send("SET_SERVER", server=arguments.name, action="add")
        epoch = bus.list().daemon["map_epoch"]
    tell(f"{arguments.name} is in the map of epoch {epoch}; applications use it from their next collective access on")
    return 0


def _ended(arguments: argparse.Namespace) -> int:
    with Bus.connect(paths.server_socket_path()) as bus:
        bus.send("SET_SERVER", server=arguments.name, action="ended")
        try:
            epoch = bus.list().daemon["map_epoch"]  # a refusal arrives before this answer
        except BusError as error:
            raise UsageError(str(error)) from error
    tell(f"{arguments.name} counts as ended; the map has epoch {epoch}")
    return 0


def _slow(arguments: argparse.Namespace) -> int:
    with Bus.connect(paths.server_socket_path()) as bus:
        io_servers.chosen(bus, [arguments.name])
        bus.send("SLOW_IO_SERVER", server=arguments.name)
        found = next(one for one in bus.list().servers if one["server"] == arguments.name)
        again = duration(max(0, found["back_ns"] - bus.list().daemon["now_ns"]))
    if found["state"] == "slow":
        tell(f"{arguments.name} is out of the map, and is tried again in {again}")
    else:
        tell(f"{arguments.name} stays {found['state']}")
    return 0


def _assign(arguments: argparse.Namespace) -> int:
    name = arguments.application
    with Bus.connect(paths.server_socket_path()) as bus:
        bus.send("SET_SERVER", server=arguments.servers, action="assign", for_application=name)
        try:
            listing = bus.list()  # a refusal arrives before this answer
        except BusError as error:
            raise UsageError(str(error)) from error
    row = next((one for one in listing.applications if one["application"] == name), {})
    used = io_servers.servers_text(row) or "all servers"
    since = "call" if row.get("forwards") else "collective access"
    tell(f"{name} uses {used} from its next {since} on{_out_of_map(row, listing)}")
    return 0


def _scheduler(arguments: argparse.Namespace) -> int:
    if arguments.data_servers is not None and arguments.data_servers < 1:
        raise UsageError(f"--data-servers {arguments.data_servers}: give 1 or more")
    fields = {
        "scheduler": arguments.scheduler,
        "data_servers": arguments.data_servers or 0,
        "stripe_bytes": _bytes("--stripe-bytes", arguments.stripe_bytes),
    }
    with Bus.connect(paths.server_socket_path()) as bus:
        meant = list(io_servers.chosen(bus, [arguments.server] if arguments.server is not None else []))
        if not meant:
            raise HocketError("no server runs; 'hocket server start --dir DIR' starts one")
        answers = bus.subscribe("SCHEDULER_USED")
        bus.send("SET_SERVER", server=arguments.server or "all", action="scheduler", **fields)
        try:
            bus.list()  # a refusal arrives before this answer
        except BusError as error:
            raise UsageError(str(error)) from error
        used, waited = _await_scheduler(bus, answers, meant)
    moved = f"; {waited} {'access' if waited == 1 else 'accesses'} that waited moved to it" if waited else ""
    later = ", unless a policy chooses" if arguments.scheduler == NO_CHOICE else ""
    tell(f"{', '.join(meant)}: accesses are ordered by {', '.join(sorted(used))} from now on{later}{moved}")
    return 0


def _weight(arguments: argparse.Namespace) -> int:
    name, text = arguments.application, arguments.weight
    if text != NO_CHOICE and not (re.fullmatch(r"\d{1,9}", text, re.ASCII) and 1 <= int(text) <= MOST_WEIGHT):
        raise UsageError(f"invalid weight {text}: must be 1 to {MOST_WEIGHT}, or {NO_CHOICE}")
    with Bus.connect(paths.server_socket_path()) as bus:
        weight = 0 if text == NO_CHOICE else int(text)
        bus.send("SET_SERVER", action="weight", for_application=name, weight=weight)
        try:
            listing = bus.list()  # a refusal arrives before this answer
        except BusError as error:
            raise UsageError(str(error)) from error
    row = next((one for one in listing.applications if one["application"] == name), {"weight": 1})
    tell(f"{name} has weight {row['weight']} beside others in I/O servers from its next call on, under wfq")
    return 0


def _await_scheduler(bus: Bus, answers: Any, meant: Iterable[str]) -> tuple[set[str], int]:
    """Wait for the answer of each server. Return the schedulers in use, and how many accesses waited."""
    missing = set(meant)
    used: set[str] = set()
    waited = 0
    refusals = {}
    deadline = time.monotonic() + ANSWER_S
    while missing:
        answer = answers.wait(POLL_S)
        if answer is not None and answer["server"] in missing:
            missing.remove(answer["server"])
            used.add(answer["scheduler"])
            waited += answer["forward_queue"]
            if answer["error"]:
                refusals[answer["server"]] = answer["error"]
        elif gone := sorted(missing - set(io_servers.running(bus))):
            raise HocketError(f"{', '.join(gone)}: ended before it could change its scheduler")
        elif time.monotonic() > deadline:
            late = ", ".join(sorted(missing))
            raise HocketError(f"{late}: no answer within {ANSWER_S:g} s; 'hocket servers' shows the state")
    if refusals:
        raise UsageError(f"{', '.join(sorted(refusals))}: {min(refusals.values())}")
    return used, waited


def _bytes(option: str, text: str | None) -> int:
    """Return the bytes that a text like 4m stands for; 0 for none. Raises UsageError if it is no size."""
    if text is None:
        return 0
    found = re.fullmatch(r"0*([1-9]\d{0,11})([kmg]?)", text, re.ASCII)
    if found is None:
        raise UsageError(f"{option} {text}: give more than 0 bytes, as a number with k, m, g or nothing")
    return int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2]]
