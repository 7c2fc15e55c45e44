"""hocket arbitrate: how many I/O servers each of several jobs should have."""

from __future__ import annotations

import argparse
from pathlib import Path

from hocket.arbitration import text
from hocket.arbitration.allocate import POLICIES, Rules, allocate
from hocket.arbitration.jobs import MOST, read_jobs
from hocket.errors import UsageError
from hocket.verbs import help_text, print_json, tell

EXAMPLES = """
examples:
  hocket arbitrate jobs.toml --servers 12
  hocket arbitrate jobs.toml --policy static,mckp --plot arbitration.png
  hocket arbitrate jobs.toml --most-loss 0.2             # no job loses more than 20 % of what static gives it
  hocket arbitrate jobs.toml --no-direct --shared-server # each job uses servers; one may be shared

The file has a pool, the machine, and the jobs, each with its bandwidth by number of servers:
  servers = 12                     # to give out, unless --servers says so
  [system]                         # for 'static'; default: the nodes of the jobs, and the pool
  nodes = 384
  servers = 12
  [[job]]
  name = "IOR-MPI"
  nodes = 16
  processes = 128                  # default: nodes
  bandwidth_mb_s = { 0 = 110, 1 = 268.4, 2 = 700, 4 = 2100, 8 = 5089.9 }   # 0: without servers
A job without bandwidth_mb_s gets the number of 'static'. A file for 'hocket workload' is read as well.

policies (GekkoFWD, section 3):
  zero, one   no server, or one, for each job
  static      nodes of the job / nodes for each server of the machine, rounded up
  size        the pool divided by nodes, rounded; process: by processes
  mckp        the largest bandwidth in all (multiple-choice knapsack), exact, with the fewest servers that give it
  oracle      each job's best number, whatever the pool has: an upper bound
A number that a job was not measured with becomes the next lower one that it was, or its lowest. If a rule gives out
more servers than there are, jobs share them, and their bandwidth is divided.
"""


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("show how many I/O servers each of several jobs should have", EXAMPLES)
    parser = parsers.add_parser("arbitrate", usage="hocket arbitrate JOBS.toml [--servers N] [options]", **words)
    parser.add_argument("jobs", type=Path, metavar="JOBS.toml", help="the jobs and their bandwidth")
    parser.add_argument("--servers", type=int, metavar="N", help="I/O servers to give out")
    parser.add_argument("--policy", default=",".join(POLICIES), metavar="P,P,…", help="default: all")
    parser.add_argument("--no-direct", action="store_true", help="every job uses servers")
    parser.add_argument("--divide-evenly", action="store_true", help="servers of a job divide its nodes")
    parser.add_argument(
        "--most-loss", type=float, metavar="PART", help="under mckp, no job loses more of its bandwidth under static"
    )
    parser.add_argument("--shared-server", action="store_true", help="mckp may let jobs share one server")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="file for the plot")
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    """Return 0; 1 if a policy that was asked for by name has no allocation."""
    described = read_jobs(arguments.jobs)
    servers = described.servers if arguments.servers is None else arguments.servers
    if servers is None:
        raise UsageError(f"neither --servers nor {arguments.jobs} says how many I/O servers there are to give out")
    if not 0 <= servers <= MOST:
        raise UsageError(f"--servers {servers} must be from 0 to {MOST}")
    system = (
        described.system_nodes or sum(job.nodes for job in described.jobs),
        described.system_servers or max(servers, 1),
    )
    policies = list(dict.fromkeys(one.strip().lower() for one in arguments.policy.split(",")))
    for one in policies:
        if one not in POLICIES:
            raise UsageError(f"--policy: '{one}' is unknown; use {', '.join(POLICIES)}")
    if arguments.most_loss is not None and not 0 <= arguments.most_loss <= 1:
        raise UsageError(f"--most-loss {arguments.most_loss} must be from 0 to 1; 0.2 means 20 %")
    rules = Rules(not arguments.no_direct, arguments.divide_evenly, arguments.most_loss, arguments.shared_server)
    allocations = allocate(described.jobs, servers, system, policies, rules)
    if arguments.json:
        print_json(text.json_of(described.jobs, allocations, servers))
    else:
        print(text.table_of(described.jobs, allocations, servers))
    if arguments.plot and all(one.error for one in allocations):
        tell(f"{arguments.plot} is not written, because no policy has an allocation")
    elif arguments.plot:
        from hocket.arbitration.plot import write_plot  # imported here: matplotlib takes a second to load

        write_plot(described.jobs, allocations, servers, arguments.plot)
    return 1 if any(one.error for one in allocations) else 0
