"""hocket report: writes a page and pictures of who wrote and who waited."""

from __future__ import annotations

import argparse
from pathlib import Path

from hocket.comparison import ALONE, OTHER, SCHEDULED, UNCOORDINATED, Run
from hocket.errors import UsageError
from hocket.trace import read_trace
from hocket.unstopped import sentence
from hocket.verbs import help_text, tell

EXAMPLES = """
examples:
  hocket report ~/traces/run.jsonl -o report
  hocket report --alone a.jsonl --alone b.jsonl --uncoordinated u.jsonl --scheduled f.jsonl \\
      --title "Two solvers" --note "storage target limited to 24 MB/s"

Writes report.html (one page that needs nothing else) and PNG pictures, and prints the page's path. With --alone,
--uncoordinated and --scheduled the table holds the interference factor I and the scheduling cost factor C.
'hocket daemon status' names the trace of a running daemon.
"""


def add(parsers: argparse._SubParsersAction) -> None:
    parser = parsers.add_parser("report", **help_text("write a page that shows who wrote and who waited", EXAMPLES))
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="a run that is only shown")
    parser.add_argument("--alone", action="append", default=[], metavar="TRACE", help="a run of one application alone")
    parser.add_argument(
        "--uncoordinated", action="append", default=[], metavar="TRACE", help="a run of all, uncoordinated"
    )
    parser.add_argument(
        "--scheduled", action="append", default=[], metavar="TRACE", help="a run of all, under a policy"
    )
    parser.add_argument("-o", "--output", default="hocket-report", metavar="DIR", help="default: hocket-report")
    parser.add_argument("--title", help="what ran (default: the applications' names)")
    parser.add_argument("--note", action="append", default=[], help="a note for the reader, e.g. about the target")
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    from hocket.report import write_report

    runs = [Run("alone", arguments.alone, ALONE)] if arguments.alone else []
    runs += [_run("together, uncoordinated", trace, UNCOORDINATED) for trace in arguments.uncoordinated]
    runs += [_run("together", trace, SCHEDULED) for trace in arguments.scheduled]
    runs += [Run(Path(trace).stem, [trace], OTHER) for trace in arguments.traces]
    if not runs:
        raise UsageError("no trace given; write 'hocket report TRACE'")
    names = dict.fromkeys(a.name for one in runs for analysis in one.analyses for a in analysis.applications)
    title = arguments.title or "I/O of " + (", ".join(names) if len(names) <= 4 else f"{len(names)} applications")
    report = write_report(runs, arguments.output, title, arguments.note)
    print(report.html)
    for row in report.rows:
        if row.unstopped:
            tell(sentence(row))
    return 0


def _run(label: str, path: str, role: str) -> Run:
    """Return a run. If it is scheduled and its trace names a policy, its label names the policy."""
    trace = read_trace(path)
    one = Run(label, [trace], role)
    policy = one.analyses[0].policy
    return Run(f"together, {policy}", [trace], role) if role == SCHEDULED and policy else one
