"""The verbs of the hocket command: one module for each, whose `add(parsers)` declares it."""

from __future__ import annotations

import argparse
import sys


def help_text(summary: str, examples: str) -> dict[str, object]:
    """Return argparse's texts for a verb: its line in the list of verbs, and its own page with examples."""
    return {
        "help": summary,
        "description": summary[0].upper() + summary[1:] + ".",
        "epilog": examples.strip("\n"),
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def tell(text: str) -> None:
    """Print a message for the user that is not part of the command's output."""
    print(f"hocket: {text}", file=sys.stderr, flush=True)


def print_json(value: object) -> None:
    import json

    print(json.dumps(value, indent=2))
