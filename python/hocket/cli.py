"""The hocket command."""

from __future__ import annotations

import argparse
import os
import sys

from hocket import __version__
from hocket.errors import HocketError, UsageError
from hocket.verbs import (
    bench,
    daemon,
    delta,
    events,
    explain,
    ls,
    policy,
    profile,
    publish,
    report,
    resize,
    run,
    server,
    servers,
    sim,
    tell,
    top,
    trace,
)

VERBS = (
    run, resize, policy, explain, profile, daemon, server, servers, ls, top, events, publish, report, trace, delta, sim,
    bench
)  # fmt: skip
EPILOG = """
start here:
  hocket run -- mpiexec -n 4 ./app      # the application takes turns with others at the file system
  hocket top                            # watch them
  hocket VERB --help                    # more, with examples
"""


class Parser(argparse.ArgumentParser):
    """Tells a usage error in one line."""

    def error(self, message: str) -> None:
        raise UsageError(f"{message}; see '{self.prog} --help'")


def main(arguments: list[str] | None = None) -> int:
    """The command. Exit codes: 0; 1 for what failed; 2 for a wrong call; 127 for a program that is not there."""
    try:
        parsed = _parser().parse_args(arguments)
        return parsed.verb(parsed)
    except HocketError as error:
        tell(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read our output has enough, as in `hocket events --follow | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="hocket",
        description="MPI applications that share storage take turns at it.",
        epilog=EPILOG.strip("\n"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"hocket {__version__}")
    parsers = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in VERBS:
        verb.add(parsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
