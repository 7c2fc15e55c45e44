"""hocket servers: lists the I/O servers, takes one out of the server map or puts it back, and assigns servers."""

from __future__ import annotations

import argparse
from typing import Any

from hocket import io_servers
from hocket.bus import Bus, BusError, Listing
from hocket.errors import UsageError
from hocket.tables import columns, duration, printable, quantity
from hocket.verbs import help_text, print_json, tell

EXAMPLES = """
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

state: up (in the server map, so applications use it), drained (taken out by you), slow (taken out because it was
slower than its peers, or you said so; tried again after a while), hung (sends no heartbeat; hocketd kills it; the map
keeps it until it has ended), lost (its process has ended). load: the part of the last second in which it worked, all
its threads together; service: what one operation took; bandwidth: of the last second; held: data in its buffers;
epoch: the epoch of the map in which it was put in or taken out; weight: it gets a smaller share of the stripes of files
than others, as a policy decided. Applications adopt a new map at control points: the
last lines show the epoch that each of them uses, and the servers that are assigned to an application, with the
bandwidth that a policy expects of that. While there are any, but for programs under 'hocket forward', servers with
write-behind write through. An application whose servers are all gone uses all others.

A drained server moves its data sets (hocket:/NAME) to the servers that stay, each as soon as no application has it
open. Readers and writers that come meanwhile find it. 'drain' waits for that, too, and says what is left if the time
is over; the server goes on then, and 'drain' can be repeated. While it keeps some, the list shows 'keeps data sets'.
"""
HEADING = ("SERVER", "STATE", "DIRECTORY", "LOAD", "SERVICE", "BANDWIDTH", "QUEUE", "HELD", "EPOCH", "")
LIMIT_S = 60.0
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
    slowing = actions.add_parser("slow", help="report that a server is slow: it leaves the map for a while")
    slowing.add_argument("name", metavar="NAME")
    slowing.set_defaults(verb=_slow)
    assigning = actions.add_parser("assign", help="have the files of an application use certain servers only")
    assigning.add_argument("application", metavar="APP")
    assigning.add_argument("servers", metavar="N|NAME,…|all", help="how many, which ones, or all again")
    assigning.set_defaults(verb=_assign)


def _list(arguments: argparse.Namespace) -> int:
    with Bus.connect() as bus:
        listing = bus.list()
    if arguments.json:
        keys = ("application", "map_epoch", "servers", "assigned_servers", "given_servers", "expected_bytes_per_s")
        users = [{key: one.get(key, "") for key in keys} for one in listing.applications]
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
    return "\n".join((columns(HEADING, rows, right=range(3, 9)), epochs, *own))


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
    with Bus.connect() as bus:
        io_servers.chosen(bus, [arguments.name])
        io_servers.drain(bus, [arguments.name], arguments.timeout)
    tell(f"{arguments.name} is out of the map; no application uses it, and it keeps no data sets")
    return 0


def _add(arguments: argparse.Namespace) -> int:
    with Bus.connect() as bus:
        io_servers.chosen(bus, [arguments.name])
        bus.send("SET_SERVER", server=arguments.name, action="add")
        epoch = bus.list().daemon["map_epoch"]
    tell(f"{arguments.name} is in the map of epoch {epoch}; applications use it from their next collective access on")
    return 0


def _slow(arguments: argparse.Namespace) -> int:
    with Bus.connect() as bus:
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
    with Bus.connect() as bus:
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
