"""hocket daemon: starts and stops this user's hocketd, and shows its state."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from hocket import daemon, paths
from hocket.bus import Bus, BusError, NoDaemonError
from hocket.errors import HocketError
from hocket.tables import duration, printable
from hocket.verbs import help_text, print_json, tell

EXAMPLES = """
examples:
  hocket daemon start --policy fcfs      # stays until it is stopped, unlike the one that 'hocket run' starts
  hocket daemon start --policy dynamic --metric interference
  hocket daemon start --config hocket.toml --foreground
  hocket daemon start --leader --listen adm1:7117 --key cluster.key     # decides for several nodes
  hocket daemon start --agent --leaders adm1:7117 --key cluster.key     # on each of the others
  hocket daemon status --json
  hocket daemon stop

Runtime directory: $HOCKET_DIR, else $XDG_RUNTIME_DIR/hocket, else /tmp/hocket-<uid>; in a Slurm job, where no daemon
runs there, /tmp/hocket-<uid>-job<number>.
"""


def add(parsers: argparse._SubParsersAction) -> None:
    parser = parsers.add_parser("daemon", **help_text("start, stop or look at the daemon that coordinates", EXAMPLES))
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    starting = actions.add_parser("start", help="start it, if none runs")
    starting.add_argument("--policy", help="names joined by '+'; 'hocket policy ls' lists them")
    starting.add_argument("--metric", help="what the policy minimises; see 'hocket policy --help'")
    rules = starting.add_argument_group("policies that give out I/O servers, as 'hocket arbitrate' shows them")
    rules.add_argument("--no-direct", action="store_true", help="each application uses servers")
    rules.add_argument("--divide-evenly", action="store_true", help="servers of an application divide its nodes")
    loss_help = "under mckp, no application loses more of its bandwidth under static"
    rules.add_argument("--most-loss", metavar="PART", help=loss_help)
    rules.add_argument("--shared-server", action="store_true", help="mckp may let applications share one server")
    rules.add_argument("--system-nodes", metavar="N", help="nodes of the whole machine, for static")
    rules.add_argument("--system-servers", metavar="N", help="I/O servers of the whole machine, for static")
    metrics_help = "serve /metrics for Prometheus there: 127.0.0.1:9321, or unix:/PATH"
    starting.add_argument("--metrics", metavar="ADDRESS", help=metrics_help)
    cluster = starting.add_argument_group("several nodes")
    role = cluster.add_mutually_exclusive_group()
    role.add_argument("--leader", action="store_true", help="decide for all nodes whose agents join")
    role.add_argument("--agent", action="store_true", help="carry what this node's programs say to a leader")
    cluster.add_argument("--listen", metavar="HOST:PORT", help="where the leader takes agents")
    cluster.add_argument("--leaders", metavar="HOST:PORT", nargs="+", help="the agent uses the first one that answers")
    reached = "by which other nodes reach the I/O servers of this one (default: the address of its link)"
    cluster.add_argument("--address", metavar="HOST", help=reached)
    trust = cluster.add_mutually_exclusive_group()
    trust.add_argument("--key", metavar="FILE", help="the same key on all nodes; 'hocketd --make-key FILE' makes one")
    trust.add_argument("--munge", action="store_true", help="in place of a key, where MUNGE runs on all nodes")
    starting.add_argument("--config", metavar="FILE", help="hocket.toml; hocketd --print-config prints every key")
    starting.add_argument("--foreground", action="store_true", help="stay in this terminal")
    starting.set_defaults(verb=_start)
    actions.add_parser("stop", help="stop it; applications continue uncoordinated").set_defaults(verb=_stop)
    looking = actions.add_parser("status", help="report whether it runs; exit code 1 if not")
    looking.add_argument("--json", action="store_true", help="as JSON")
    looking.set_defaults(verb=_status)


def _start(arguments: argparse.Namespace) -> int:
    options = []
    for option in ("policy", "metric", "metrics", "most-loss", "system-nodes", "system-servers", "listen", "address"):
        if (value := getattr(arguments, option.replace("-", "_"))) is not None:
            options += [f"--{option}", value]
    for switch in ("no-direct", "divide-evenly", "shared-server", "leader", "agent", "munge"):
        if getattr(arguments, switch.replace("-", "_")):
            options.append(f"--{switch}")
    if arguments.leaders:
        options += ["--leaders", " ".join(arguments.leaders)]
    if arguments.key:
        options += ["--key", str(Path(arguments.key).absolute())]
    if arguments.config:
        options += ["--config", str(Path(arguments.config).absolute())]
    if arguments.foreground:
        return _foreground(options)
    bus, started = daemon.connect_or_start(options, paths.own_socket_path())
    if started and arguments.agent:
        return _tell_agent(bus)
    with bus:
        pid, running = bus.daemon_process(), bus.list().daemon
    if not started:
        raise HocketError(f"a hocketd runs already (pid {pid}); 'hocket daemon stop' ends it")
    tell(f"hocketd {running['pid']} runs in {paths.runtime_dir()}, policy {running['policy']}")
    return 0


def _tell_agent(bus: Bus) -> int:
    with bus:
        agent = bus.daemon_process()
        try:
            leader = bus.list().daemon["on_node"]
        except BusError as error:
            tell(f"the agent {agent} runs in {paths.runtime_dir()}: {error}")
        else:
            tell(f"the agent {agent} runs in {paths.runtime_dir()}; its leader runs on {leader}")
    return 0


def _foreground(options: list[str]) -> int:
    program, directory = paths.hocketd(), paths.make_runtime_dir()
    try:
        os.execv(program, [str(program), "--dir", str(directory), *options])
    except OSError as error:
        raise HocketError(f"{program}: {error.strerror}; is hocket built and installed?") from error


def _stop(_: argparse.Namespace) -> int:
    pid = daemon.stop()
    tell(f"hocketd {pid} has ended" if pid else f"no hocketd runs in {paths.runtime_dir()}")
    return 0


def cores_text(node: dict[str, Any]) -> str:
    """Return how many cores the node has, and how many of them applications have."""
    return f"{node['taken']} of {node['cores']} taken" if node["cores"] else f"gone, {node['taken']} taken"


def _status(arguments: argparse.Namespace) -> int:
    try:
        with Bus.connect() as bus:
            listing = bus.list()
            running, nodes = listing.daemon, listing.nodes
    except NoDaemonError:
        running, nodes = {}, []
    if arguments.json:
        print_json({"running": bool(running), "socket": str(paths.socket_path()), **running, "nodes": nodes})
    elif not running:
        print(f"no hocketd runs in {paths.socket_path().parent}")
    else:
        since = duration(running["now_ns"] - running["started_ns"])
        print(f"hocketd {running['pid']} on {running['on_node']}, version {running['version']}, for {since}")
        print(f"policy        {running['policy']}")
        print(f"metric        {running.get('metric') or 'none'}")
        if running.get("agents"):
            print(f"agents        {running['agents']}")
        for one in nodes:
            print(f"cores         {printable(one['on_node'])}: {cores_text(one)}")
        if (place := running.get("leader_place", 1)) > 1:
            print(f"leader        at place {place} of the list of leaders: it only grants turns")
        print(f"applications  {running['applications']}")
        print(f"events        {running['events']}")
        print(f"trace         {running['trace'] or 'none'}")
        if running.get("trace_error"):
            print(f"              broken: {running['trace_error']}")
        print(f"socket        {paths.socket_path()}")
    return 0 if running else 1
