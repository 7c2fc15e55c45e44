"""The verbs of the hocket command: one module each, with `add(parsers)` that declares it."""

from __future__ import annotations

import argparse
import sys


def help_text(summary: str, examples: str) -> dict[str, object]:
    """What argparse shows for a verb: a line in the list of verbs, and its own page with examples."""
    return {
        "help": summary,
        "description": summary[0].upper() + summary[1:] + ".",
        "epilog": examples.strip("\n"),
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def tell(text: str) -> None:
    """Say something to the person at the terminal that is not the command's output."""
    print(f"hocket: {text}", file=sys.stderr, flush=True)


def print_json(value: object) -> None:
    import json

    print(json.dumps(value, indent=2))
