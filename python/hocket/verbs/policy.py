"""hocket policy: shows and lists policies, and puts others in force."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Mapping

from hocket import paths
from hocket.bus import Bus, BusError
from hocket.errors import HocketError, UsageError
from hocket.mounts import is_mounted, target_of, with_mount_points
from hocket.tables import columns
from hocket.verbs import help_text, print_json, tell

EXAMPLES = """
examples:
  hocket policy ls                        # all policies, a line each
  hocket policy show                      # those in force
  hocket policy set phase-shift           # keep I/O phases apart; includes fcfs
  hocket policy set fcfs+io-aware         # take turns, and share out idle cores
  hocket policy set none                  # no application waits or is resized
  hocket policy set dynamic --metric interference               # wait, preempt or continue: the cheapest
  hocket policy set --metric "max(io_time/alone)"               # the same policies, another metric
  hocket policy set --app jacobi none     # jacobi never waits; others wait for it
  hocket policy set --app jacobi default  # jacobi takes turns again
  hocket policy set --target /scratch fcfs # for the operator: turns there, whatever applications switch to
  hocket policy set --target dev:8:1 fcfs --allow               # applications may switch there

A policy is one name, or several of different kinds joined by '+': one for access to targets, one against interference,
one that shares out cores, one for I/O servers. The text replaces all kinds, but one for I/O servers alone leaves the
others as they are. It holds for all applications of the daemon, from now on. With --app or --target it is one policy
for access, for that application or target only; 'default' takes it back. A target is a path on its file system, the
name that 'hocket events' shows (lustre:scratch), a device of this node (dev:8:1), or a name that applications give
(hocket_target). target_policies in hocket.toml sets it from the daemon's start on.

A metric, which 'cost' and 'dynamic' minimise, is cpu-time (process seconds in I/O, waits included; the default),
io-time, interference (the sum of interference factors), makespan, or a formula of processes, io_time, alone, end, flops
(FLOP/s) and run_time of each application, with + - * / ^, parentheses, sum(), mean(), max() and min().
"""
LIMIT_S = 20


def add(parsers: argparse._SubParsersAction) -> None:
    parser = parsers.add_parser("policy", **help_text("choose the daemon's policies, or list all", EXAMPLES))
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    setting = actions.add_parser("set", help="put other policies in force")
    setting.add_argument(
        "policy", metavar="TEXT", nargs="?", default="", help="names joined by '+', e.g. fcfs+io-aware"
    )
    setting.add_argument("--metric", default="", metavar="M", help="what the policy minimises: a name, or a formula")
    only = setting.add_mutually_exclusive_group()
    only.add_argument("--app", default="", metavar="APP", help="for this application only")
    only.add_argument("--target", default="", metavar="TARGET", help="for this target only: a path on it, or its name")
    setting.add_argument("--allow", action="store_true", help="with --target: applications may switch there")
    setting.set_defaults(verb=_set)
    showing = actions.add_parser("show", help="print the policies in force")
    showing.add_argument("--json", action="store_true", help="as JSON")
    showing.set_defaults(verb=_show)
    listing = actions.add_parser("ls", help="list all policies")
    listing.add_argument("--json", action="store_true", help="as JSON: [{name, kind, summary}, …]")
    listing.set_defaults(verb=_ls)


def change_policy(bus: Bus, policy: str, metric: str = "") -> None:
    """Put `policy` and `metric` in force ("": unchanged), and report changes to the user.

    Raises UsageError with the daemon's reason.
    """
    before = _in_force(bus)
    wanted = {name: value for name, value in (("policy", policy), ("metric", metric)) if value}
    if all(before[name] == value for name, value in wanted.items()):
        return
    bus.send("SET_POLICY", **{"policy": "", **wanted})
    try:
        after = _in_force(bus)  # a refusal arrives before this answer
    except BusError as error:
        raise UsageError(str(error)) from error
    for name, value in after.items():
        if value != before[name]:
            tell(f"the {name} is {value} now, for all applications of this daemon; it was {before[name]}")


def _in_force(bus: Bus) -> dict[str, str]:
    daemon = bus.list().daemon
    return {name: str(daemon.get(name, "")) for name in ("policy", "metric")}


def _set(arguments: argparse.Namespace) -> int:
    if not arguments.policy and not arguments.metric:
        raise UsageError("policy set: give the names of policies, or --metric M, or both")
    if arguments.allow and not arguments.target:
        raise UsageError("policy set: --allow needs --target TARGET")
    with Bus.connect() as bus:
        if not arguments.app and not arguments.target:
            change_policy(bus, arguments.policy, arguments.metric)
        elif not arguments.policy or arguments.metric:
            raise UsageError("policy set: --app and --target take the name of a policy, and no --metric")
        else:
            _change_for(bus, arguments)
    return 0


def _change_for(bus: Bus, arguments: argparse.Namespace) -> None:
    """Put a policy in force for one application or one target, and say what holds there now.

    Raises UsageError with the daemon's reason.
    """
    target = target_of(arguments.target)
    wanted = {"for_application": arguments.app, "target": target, "allow": arguments.allow}
    bus.send("SET_POLICY", policy=arguments.policy, **wanted)
    try:
        found = bus.list()  # a refusal arrives before this answer
    except BusError as error:
        raise UsageError(str(error)) from error
    targets = _targets_of(found.daemon)
    if target:
        policy, allows = targets.get(target, (str(found.daemon["policy"]).split("+")[0], True))
        known = with_mount_points(target)
        shown = target if known == target else f"{known} ({target})"
        tell(f"the policy for {shown} is {policy} now" + (", for all applications" * (not allows)))
        used = any(row.get("target") == target for row in found.applications)
        if target in targets and not used and not is_mounted(target):
            tell(f"no application uses a target '{target}' now, and no file system here has that name: check it")
        return
    for row in found.applications:
        if row["application"] != arguments.app:
            continue
        told = f"the policy for {arguments.app} is {row.get('policy', '')} now"
        fixed = row.get("target", "") in targets and not targets[row["target"]][1]
        tell(told + f" on {with_mount_points(row['target'])}, where the operator set it for all applications" * fixed)


def _targets_of(daemon: Mapping[str, object]) -> dict[str, tuple[str, bool]]:
    """Return the policy of each target that has one of its own, and whether applications may switch there."""
    parts = [one.rpartition("=") for one in str(daemon.get("target_policies", "")).splitlines()]
    return {target: (policy.rstrip("?"), policy.endswith("?")) for target, _, policy in parts}


def _show(arguments: argparse.Namespace) -> int:
    with Bus.connect() as bus:
        told = bus.list()
    found = {name: str(told.daemon.get(name, "")) for name in ("policy", "metric")}
    targets = _targets_of(told.daemon)
    applications = {str(row["application"]): str(row.get("policy", "")) for row in told.applications}
    if arguments.json:
        of_targets = {name: {"policy": policy, "allow": allows} for name, (policy, allows) in targets.items()}
        print_json({**found, "targets": of_targets, "applications": applications})
        return 0
    print(found["policy"])
    if found["metric"]:
        print(f"metric: {found['metric']}")
    for name, (policy, allows) in targets.items():
        print(
            f"target {with_mount_points(name)}: {policy}, "
            + ("unless an application switches" if allows else "for all applications")
        )
    access = found["policy"].split("+")[0]
    for name, policy in applications.items():
        if policy and policy != {"none": "interfere"}.get(access, access):
            print(f"application {name}: {policy}")
    return 0


def _ls(arguments: argparse.Namespace) -> int:
    known = _known()
    if arguments.json:
        print_json([dict(zip(("name", "kind", "summary"), one, strict=True)) for one in known])
    else:
        print(columns(("POLICY", "KIND", ""), known))
    return 0


def _known() -> list[list[str]]:
    """Return name, kind, and summary of each policy, as the installed hocketd prints them."""
    program = paths.hocketd()
    try:
        told = subprocess.run([program, "--print-policies"], capture_output=True, text=True, timeout=LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HocketError(f"cannot run {program} ({error}); is hocket built and installed?") from error
    lines = [line.split("\t") for line in told.stdout.splitlines()]
    if told.returncode != 0 or not lines or any(len(line) != 3 for line in lines):
        raise HocketError(f"{program} does not list its policies: {told.stderr.strip() or 'is it another version?'}")
    return lines
