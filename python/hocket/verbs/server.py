"""hocket server: starts and stops I/O servers."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from hocket import daemon, io_servers, paths
from hocket.bus import Bus
from hocket.errors import UsageError
from hocket.verbs import help_text, tell
from hocket.verbs.run import IDLE_S

EXAMPLES = """
examples:
  hocket server start -n 3 --dir /scratch              # s1, s2, s3: files below /scratch go through them
  hocket server start --dir /scratch --buffer 256m --write-behind
  hocket server start --dir /scratch --exchange 8g     # data sets hocket:/NAME have room for 8 GiB
  hocket server start --dir /scratch --tcp "$(hostname):0"    # for clients on other nodes, too
  hocket server start --on n1,n2 -n 2 --dir /scratch    # two on each of these nodes of a cluster
  hocket server stop s2                                # applications use the others from their next access on
  hocket server stop                                   # all

Applications under 'hocket run --io hocket' and programs under 'hocket forward' write and read files below the directory
through the servers. A hocketd is started if none runs. A server answers "written" when the data are in the file: they
survive its end. With --write-behind it answers when it has the data, and sync and close report whether they were
written. In a cluster of your own (docs/cluster.md), --on names nodes: the daemons there start the servers, which end
with these daemons.

'stop' takes servers out of the map, waits until no running application uses them, and lets them write out what they
hold. Logs: servers/NAME.log in the runtime directory. 'hocket servers' shows what they do.
"""
DRAIN_LIMIT_S = 60.0
LONGEST_TURN_WAIT_S = 3600
MOST = 256


def add(parsers: argparse._SubParsersAction) -> None:
    parser = parsers.add_parser("server", **help_text("start or stop I/O servers", EXAMPLES))
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    starting = actions.add_parser("start", help="start servers on this node, or on others")
    starting.add_argument("-n", type=int, default=1, metavar="N", help="how many (default: 1)")
    starting.add_argument(
        "--on", metavar="NODE,…", help="on these nodes of the cluster, N on each (default: on this one)"
    )
    starting.add_argument("--dir", required=True, metavar="DIR", help="the servers open only files below it")
    starting.add_argument("--buffer", metavar="BYTES", help="most data that each holds, e.g. 256m")
    starting.add_argument("--exchange", metavar="BYTES", help="memory for data sets (hocket:/NAME), e.g. 4g (1g)")
    starting.add_argument(
        "--tcp",
        metavar="HOST:PORT",
        help="also listen there, for clients on other nodes; port 0: any free one; none: nowhere (default: at the "
        "node's address in its cluster)",
    )
    starting.add_argument("--write-behind", action="store_true", help="answer before the data are in the file")
    starting.add_argument(
        "--scheduler",
        metavar="NAME",
        help=f"the order of accesses that wait, fifo without this option: {', '.join(io_servers.SCHEDULERS)}",
    )
    starting.add_argument(
        "--forward-threads", type=int, metavar="N", help="forwarded calls that a server carries out at a time (4)"
    )
    starting.add_argument(
        "--data-servers",
        type=int,
        metavar="N",
        help="for --scheduler twins: data servers of the file system (else as Lustre and BeeGFS say)",
    )
    starting.add_argument(
        "--stripe-bytes", metavar="BYTES", help="for --data-servers: bytes of a file on one of them, e.g. 4m (1m)"
    )
    starting.add_argument(
        "--forward-limit",
        metavar="BYTES",
        help="for measurements: bytes/s of all forwarded calls of a server, e.g. 60m",
    )
    longest = "seconds for which what nobody waits for is held until its application's turn (30); 0: stored at once"
    starting.add_argument("--longest-turn-wait", type=float, metavar="S", help=longest)
    starting.add_argument("--inject", metavar="TEXT", help='for measurements and tests, e.g. "delay=512us after=3"')
    starting.set_defaults(verb=_start)
    stopping = actions.add_parser("stop", help="end servers; all, if none is named")
    stopping.add_argument("names", nargs="*", metavar="NAME", help="as 'hocket servers' shows it")
    stopping.add_argument("--now", action="store_true", help="do not wait for applications that use them")
    how_long = f"how long to wait for applications (default: {DRAIN_LIMIT_S:g})"
    stopping.add_argument("--timeout", type=float, default=DRAIN_LIMIT_S, metavar="S", help=how_long)
    stopping.set_defaults(verb=_stop)


def _start(arguments: argparse.Namespace) -> int:
    directory = Path(arguments.dir).absolute()
    if not 1 <= arguments.n <= MOST:
        raise UsageError(f"-n {arguments.n}: give 1 to {MOST} servers")
    nodes = list(filter(None, (arguments.on or "").split(",")))
    if arguments.on is not None and not nodes:
        raise UsageError(f"--on {arguments.on!r}: name nodes, joined by commas")
    if nodes and arguments.tcp not in (None, "none"):
        raise UsageError(f"--tcp {arguments.tcp}: with --on, servers listen at the addresses of their nodes")
    if not nodes and not directory.is_dir():
        raise UsageError(f"--dir {arguments.dir}: there is no such directory")
    if arguments.buffer is not None and not re.fullmatch(r"0*[1-9]\d*[kmg]?", arguments.buffer, re.ASCII):
        raise UsageError(f"--buffer {arguments.buffer}: give more than 0 bytes, as a number with k, m, g or nothing")
    if arguments.exchange is not None and not re.fullmatch(r"\d+[kmg]?", arguments.exchange, re.ASCII):
        raise UsageError(f"--exchange {arguments.exchange}: give bytes, as a number with k, m, g or nothing; 0: none")
    if arguments.tcp not in (None, "none") and not re.fullmatch(r".+:\d+", arguments.tcp, re.ASCII):
        raise UsageError(f"--tcp {arguments.tcp}: give HOST:PORT, by which other nodes reach this one; port 0: any")
    limit = arguments.forward_limit
    if limit is not None and not re.fullmatch(r"0*[1-9]\d*[kmg]?", limit, re.ASCII):
        raise UsageError(f"--forward-limit {limit}: give more than 0 bytes/s, as a number with k, m, g or nothing")
    wait_s = arguments.longest_turn_wait
    if wait_s is not None and not 0 <= wait_s <= LONGEST_TURN_WAIT_S:
        raise UsageError(f"--longest-turn-wait {wait_s:g}: give 0 to {LONGEST_TURN_WAIT_S} seconds")
    options = ["--dir", str(directory)]
    options += ["--buffer", arguments.buffer] if arguments.buffer is not None else []
    options += ["--exchange", arguments.exchange] if arguments.exchange is not None else []
    options += ["--tcp", arguments.tcp] if arguments.tcp is not None else []
    options += ["--write-behind"] if arguments.write_behind else []
    options += ["--scheduler", arguments.scheduler] if arguments.scheduler is not None else []
    threads = arguments.forward_threads
    options += ["--forward-threads", str(threads)] if threads is not None else []
    options += ["--data-servers", str(arguments.data_servers)] if arguments.data_servers is not None else []
    options += ["--stripe-bytes", arguments.stripe_bytes] if arguments.stripe_bytes is not None else []
    options += ["--forward-limit", arguments.forward_limit] if arguments.forward_limit is not None else []
    options += ["--longest-turn-wait", f"{wait_s:g}"] if wait_s is not None else []
    options += ["--inject", arguments.inject] if arguments.inject is not None else []
    with daemon.connect_or_start(["--exit-when-idle", str(IDLE_S)], paths.server_socket_path())[0] as bus:
        if nodes:
            on = io_servers.start_on(bus, nodes, arguments.n, options)
            names = [f"{name} on {node}" for name, node in on.items()]
        else:
            names = io_servers.start(bus, arguments.n, options)
        epoch = bus.list().daemon["map_epoch"]
    tell(f"{', '.join(names)} serve{'' if len(names) > 1 else 's'} {directory}; the map has epoch {epoch}")
    return 0


def _stop(arguments: argparse.Namespace) -> int:
    with Bus.connect(paths.server_socket_path()) as bus:
        servers = io_servers.chosen(bus, arguments.names)
        if servers and not arguments.now:
            io_servers.drain(bus, servers, arguments.timeout)
        io_servers.stop(servers, bus)
    has = "has" if len(servers) == 1 else "have"
    tell(f"{', '.join(servers)} {has} ended" if servers else "no server runs")
    return 0
