"""The entry point of the hocket command."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from hocket import __version__
from hocket.errors import HocketError, UsageError
from hocket.verbs import tell

# Modules of hocket.verbs, in the order of the listing. Only the requested one is imported: importing all of them takes
# longer than many applications run.
VERBS = (
    "run", "resize", "policy", "explain", "profile", "daemon", "server", "servers", "ls", "top", "events", "publish",
    "report", "trace", "delta", "arbitrate", "forward", "explore", "curves", "workload", "emulate", "capture",
    "compare", "sim", "bench"
)  # fmt: skip
EPILOG = """
start here:
  hocket run -- mpiexec -n 4 ./app      # the application takes turns with others at the file system
  hocket top                            # watch them
  hocket VERB --help                    # more, with examples
"""


class Parser(argparse.ArgumentParser):
    """An argument parser that reports a usage error in one line."""

    def error(self, message: str) -> None:
        raise UsageError(f"{message}; see '{self.prog} --help'")


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Return 0; 1 if it failed; 2 for a wrong call; 127 if a program does not exist; 130 after Ctrl-C.
    """
    words = sys.argv[1:] if arguments is None else arguments
    try:
        parsed = _parser(words).parse_args(words)
        code = parsed.verb(parsed)
        if sys.stdout is not None:  # it was closed when this process began
            sys.stdout.flush()
        return code
    except HocketError as error:
        tell(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has closed our output, as in `hocket events --follow | head`
        _drop_output()
        return 0
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        _drop_output()
        tell(f"cannot write the output: {error.strerror}")
        return 1


def _drop_output() -> None:
    """Send what is still to be written nowhere, so that Python does not fail again at its end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = Parser(
        prog="hocket",
        description="MPI applications that share storage take turns at it.",
        epilog=EPILOG.strip("\n"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"hocket {__version__}")
    parsers = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    asked = words[0] if words else ""
    for verb in (asked,) if asked in VERBS else VERBS:
        import_module(f"hocket.verbs.{verb}").add(parsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
