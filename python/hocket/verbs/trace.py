"""hocket trace: sums up a trace, or converts it for other tools."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

from hocket.comparison import Run, compare, text_table
from hocket.errors import HocketError
from hocket.forwarded import text_table as forwarded_table
from hocket.perfetto import chrome_trace
from hocket.reconfigurations import text_table as reconfigurations_table
from hocket.trace import read_trace
from hocket.unstopped import sentence
from hocket.verbs import help_text, print_json, tell

EXAMPLES = """
examples:
  hocket trace summary run.jsonl
  hocket trace summary run.jsonl --json
  hocket trace export --format perfetto run.jsonl -o run.json    # open it at https://ui.perfetto.dev
"""


def add(parsers: argparse._SubParsersAction) -> None:
    parser = parsers.add_parser("trace", **help_text("summarise a trace, or convert it for other tools", EXAMPLES))
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    summing = actions.add_parser("summary", help="the figures of each application")
    summing.add_argument("trace", metavar="TRACE")
    summing.add_argument("--json", action="store_true", help="as JSON, times in seconds")
    summing.set_defaults(verb=_summary)
    exporting = actions.add_parser("export", help="convert it")
    exporting.add_argument("--format", choices=("perfetto",), default="perfetto", help="default: perfetto")
    exporting.add_argument("trace", metavar="TRACE")
    exporting.add_argument("-o", "--output", metavar="FILE", help="default: standard output")
    exporting.set_defaults(verb=_export)


def _summary(arguments: argparse.Namespace) -> int:
    trace = read_trace(arguments.trace)
    if trace.cut_short:
        tell(f"{trace.path}: its last line was cut short and is left out")
    if trace.missing:
        tell(f"{trace.path}: {trace.missing} records are missing, because hocketd's disk was slower than they came")
    run = Run(Path(arguments.trace).stem, [trace])
    rows = compare([run])
    found = [one for application in run.analyses[0].applications for one in application.reconfigurations]
    zero_ns = run.analyses[0].start_ns
    found.sort(key=lambda one: one.time_ns)
    if arguments.json:
        shown = [{k: v for k, v in dataclasses.asdict(row).items() if v is not None} for row in rows]
        told = {"trace": str(trace.path), "cut_short": trace.cut_short, "missing": trace.missing, "applications": shown}
        print_json(told | {"reconfigurations": [one.as_json(zero_ns) for one in found]})
    else:
        print(text_table(rows))
        for row in rows:
            if row.unstopped:
                print(sentence(row))
        if found:
            print(f"\n{reconfigurations_table(found, zero_ns)}")
        if forwarded := forwarded_table(run.analyses[0].forwarded.servers):
            print(f"\n{forwarded}")
    return 0


def _export(arguments: argparse.Namespace) -> int:
    text = json.dumps(chrome_trace(read_trace(arguments.trace)))
    if not arguments.output:
        print(text)
        return 0
    try:
        Path(arguments.output).write_text(text + "\n")
    except OSError as error:
        raise HocketError(f"cannot write {arguments.output}: {error.strerror}") from error
    return 0
