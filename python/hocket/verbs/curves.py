"""hocket curves: the bandwidth of applications by number of I/O servers, kept for arbitration."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from hocket.arbitration.jobs import MB, MOST
from hocket.curves import darshan_log, from_darshan, patterns, store
from hocket.curves.curve import Curve
from hocket.curves.match import LEAST_CONFIDENCE, Access, Match, grade
from hocket.errors import HocketError, UsageError
from hocket.tables import columns, printable, quantity
from hocket.verbs import help_text, print_json, tell

EXAMPLES = """
examples:
  hocket curves                                  # the applications, and what is known of each
  hocket curves show ior
  hocket curves remove ior                       # its next run is that of an unknown application
  hocket curves from-darshan --processes-per-node 48 /darshan-logs/2026/*ior*.darshan
  hocket arbitrate ~/.local/share/hocket/curves.toml --servers 12

A curve is the bandwidth of an application by number of I/O servers: its bytes over its run time. It comes from
  explored   'hocket explore -- PROGRAM' has measured it
  darshan    its Darshan logs show patterns that 'hocket explore PATTERNS.toml' has measured
  seen       runs under 'hocket forward' refine it; the first run of an unknown application gets the default number
The store is a file of jobs for 'hocket arbitrate'. docs/curves.md says how a curve is estimated.
"""


def add(parsers: argparse._SubParsersAction) -> None:
    words = help_text("list, remove, and estimate the bandwidth of applications by number of I/O servers", EXAMPLES)
    parser = parsers.add_parser("curves", **words)
    _add_common(parser)
    parser.set_defaults(verb=_list)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    _add_common(actions.add_parser("list", help="list them, as without an action")).set_defaults(verb=_list)
    showing = _add_common(actions.add_parser("show", help="show all that is known of an application"))
    showing.add_argument("name", metavar="APP")
    showing.set_defaults(verb=_show)
    removing = _add_common(actions.add_parser("remove", help="remove curves"), json=False)
    removing.add_argument("names", nargs="+", metavar="APP")
    removing.set_defaults(verb=_remove)
    estimating = _add_common(actions.add_parser("from-darshan", help="estimate curves from Darshan logs"))
    estimating.add_argument("logs", nargs="+", type=Path, metavar="LOG")
    measured = "output of 'hocket explore PATTERNS.toml' (default: the last that was kept beside the store)"
    estimating.add_argument("--patterns", type=Path, metavar="RESULTS", help=measured)
    nodes = "from which nodes follow; needed where logs lack DXT records, which have names of nodes"
    estimating.add_argument("--processes-per-node", type=int, metavar="N", help=nodes)
    estimating.add_argument("--name", help="the application of all these logs (default: the program of each)")
    estimating.set_defaults(verb=_from_darshan)


def _add_common(parser: argparse.ArgumentParser, json: bool = True) -> argparse.ArgumentParser:
    # An action's parser would overwrite what was given before the action.
    missing = argparse.SUPPRESS if " " in parser.prog.removeprefix("hocket ") else None
    where = "the store (default: $XDG_DATA_HOME/hocket/curves.toml, else ~/.local/share/hocket/curves.toml)"
    parser.add_argument("--curves", type=Path, metavar="FILE", default=missing, help=where)
    if json:
        parser.add_argument("--json", action="store_true", default=missing or False, help="print JSON")
    return parser


def _store_of(arguments: argparse.Namespace) -> Path:
    return arguments.curves or store.default_path()


# ---- the store -------------------------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> int:
    path = _store_of(arguments)
    curves = store.read(path)
    if arguments.json:
        print_json({name: _json_of(one) for name, one in curves.items()})
    elif curves:
        heading = ("APPLICATION", "NODES", "PROCESSES", "FROM", "RUNS", "CONFIDENCE", "LAST", "MB/S BY SERVERS")
        print(columns(heading, [_row(one) for one in curves.values()], right=(1, 2, 4)))
    else:
        print(f"no application has a curve in {path}; 'hocket explore -- PROGRAM' measures one")
    return 0


def _row(curve: Curve) -> list[str]:
    sure = "" if curve.confidence is None else f"{curve.confidence:.2f} {grade(curve.confidence)}"
    rates = "  ".join(f"{number}: {rate / MB:.1f}" for number, rate in curve.bandwidth.items())
    size = (str(curve.nodes), str(curve.processes))
    return [curve.name, *size, "+".join(curve.found), str(curve.runs), sure, f"{curve.when:%Y-%m-%d}", rates]


def _show(arguments: argparse.Namespace) -> int:
    curve = _curve(store.read(_store_of(arguments)), arguments.name, _store_of(arguments))
    if arguments.json:
        print_json(_json_of(curve))
        return 0
    came = f"from {'+'.join(curve.found)}, {curve.runs} {'run' if curve.runs == 1 else 'runs'}"
    print(f"{printable(curve.name)}: {_size(curve.nodes, curve.processes)}, {came}")
    print(f"last: {curve.when:%Y-%m-%d %H:%M} UTC; outside of I/O: {curve.other_s_per_byte * MB:.6f} s for each MB")
    if curve.pattern and curve.confidence is not None:
        sure = f"confidence {curve.confidence:.2f} ({grade(curve.confidence)})"
        print(f"like {printable(curve.pattern)}, {sure}")
    rows = [
        (
            str(number),
            f"{rate / MB:.1f}",
            f"{curve.measured[number].weight:.1f}" if number in curve.measured else "",
            f"{curve.shape[number] / MB:.1f}" if number in curve.shape else "",
        )
        for number, rate in curve.bandwidth.items()
    ]
    print(columns(("SERVERS", "MB/S", "RUNS MEASURED", "PATTERN'S MB/S"), rows, right=(0, 1, 2, 3)))
    return 0


def _json_of(curve: Curve) -> dict:
    return {
        "nodes": curve.nodes,
        "processes": curve.processes,
        "found": list(curve.found),
        "runs": curve.runs,
        "when": curve.when.isoformat(),
        "pattern": curve.pattern,
        "confidence": curve.confidence,
        "other_s_per_mb": curve.other_s_per_byte * MB,
        "bandwidth_mb_s": {str(number): rate / MB for number, rate in curve.bandwidth.items()},
        "measured": {
            str(number): {"mb_s": one.rate / MB, "weight": one.weight} for number, one in curve.measured.items()
        },
        "shape_mb_s": {str(number): rate / MB for number, rate in curve.shape.items()},
    }


def _curve(curves: Mapping[str, Curve], name: str, path: Path) -> Curve:
    if name not in curves:
        raise HocketError(f"'{name}' has no curve in {path}; 'hocket curves' lists those that have")
    return curves[name]


def _remove(arguments: argparse.Namespace) -> int:
    path = _store_of(arguments)

    def without(curves: dict[str, Curve]) -> dict[str, Curve]:
        for name in arguments.names:
            _curve(curves, name, path)
        return {name: one for name, one in curves.items() if name not in arguments.names}

    store.change(path, without)
    return 0


# ---- Darshan logs ----------------------------------------------------------------------------------------------------


def _from_darshan(arguments: argparse.Namespace) -> int:
    """Return 0; 1 if a log could not be used. The others are used all the same."""
    per_node = arguments.processes_per_node
    if per_node is not None and not 1 <= per_node <= MOST:
        raise UsageError(f"--processes-per-node {per_node}: give 1 to {MOST}")
    if arguments.name is not None and not (arguments.name and arguments.name.isprintable()):
        raise UsageError(f"--name {arguments.name!r}: give a text of printable letters")
    path = _store_of(arguments)
    measured = patterns.read(arguments.patterns or store.patterns_dir(path))
    logs, failed = _read_logs(arguments.logs, arguments.name)
    told = {}
    for name, of in logs.items():
        try:
            application = from_darshan.observed(name, of, per_node)
            found = from_darshan.matched(application, measured)
            near = from_darshan.is_near(found)
            if near:
                store.change(path, lambda curves, a=application, f=found: _with(curves, a, f))
        except UsageError:
            raise
        except HocketError as error:
            tell(str(error))
            failed = True
            continue
        told[name] = _json_of_match(application, found, near)
        if not arguments.json:
            print("\n".join(_sentences(application, found, near)), flush=True)
    if arguments.json:
        print_json(told)
    return 1 if failed else 0


def _read_logs(paths: Sequence[Path], name: str | None) -> tuple[dict[str, list[tuple[Path, darshan_log.Log]]], bool]:
    """Return the logs by application, and if one could not be used."""
    found: dict[str, list[tuple[Path, darshan_log.Log]]] = {}
    failed = False
    for path, log in darshan_log.read_logs(list(dict.fromkeys(paths))):
        try:
            if isinstance(log, HocketError):
                raise log
            found.setdefault(from_darshan.name_of(path, log, name), []).append((path, log))
        except HocketError as error:
            tell(str(error))
            failed = True
    return found, failed


def _with(curves: dict[str, Curve], application: from_darshan.Observed, found: Match) -> dict[str, Curve]:
    curve = from_darshan.curve_of(application, found, curves.get(application.name))
    return curves | {application.name: curve}


def _size(nodes: int, processes: int) -> str:
    return f"{processes} process{'' if processes == 1 else 'es'} on {nodes} node{'' if nodes == 1 else 's'}"


MOST_PARTS = 6


def _sentences(application: from_darshan.Observed, found: Match | None, near: bool) -> list[str]:
    size = _size(application.nodes, application.processes)
    logs = f"{application.logs} log{'' if application.logs == 1 else 's'}"
    lines = [f"{printable(application.name)}: {size}, {quantity(application.bytes)} in {logs}"]
    if application.other_logs:
        lines.append(f"  {application.other_logs} logs of other sizes are left out; give them another --name")
    if found is None:
        return [*lines, "  it moved no data, so it has no curve"]
    rows = [
        (f"{100 * part.share:.0f} %", access_text(part.access), part.pattern.name, f"{part.distance:.2f}")
        for part in found.parts[:MOST_PARTS]
    ]
    table = columns(("BYTES", "ACCESSES", "NEAREST PATTERN", "DISTANCE"), rows, right=(0, 3))
    lines += [f"  {line}" for line in table.splitlines()]
    if len(found.parts) > MOST_PARTS:
        rest = sum(part.share for part in found.parts[MOST_PARTS:])
        lines.append(f"  and {len(found.parts) - MOST_PARTS} kinds of access with {100 * rest:.1f} % of the bytes")
    sure = f"  confidence {found.confidence:.2f} ({grade(found.confidence)})"
    if near:
        return [*lines, sure]
    reason = "no number of servers was measured for all of these patterns"
    if found.confidence < LEAST_CONFIDENCE:
        reason = "no measured pattern is near"
    return [*lines, f"{sure}: {reason}, so it has no curve, and gets the default number"]


def access_text(access: Access) -> str:
    files = "one file" if access.shared else "a file for each process"
    return f"{access.operation}s of {quantity(access.request_bytes)}, {access.spatiality}, {files}"


def _json_of_match(application: from_darshan.Observed, found: Match | None, near: bool) -> dict:
    parts: Sequence = found.parts if found else ()
    return {
        "nodes": application.nodes,
        "processes": application.processes,
        "logs": application.logs,
        "bytes": application.bytes,
        "confidence": found.confidence if found else None,
        "stored": near,
        "parts": [
            {
                "share": part.share,
                "operation": part.access.operation,
                "request_bytes": part.access.request_bytes,
                "shared": part.access.shared,
                "spatiality": part.access.spatiality,
                "pattern": part.pattern.name,
                "distance": part.distance,
            }
            for part in parts
        ],
        "io_mb_s": {str(number): rate / MB for number, rate in found.rates.items()} if found else {},
    }
