"""Counts the words of the sources: what `./dev lint` limits so that comments stay readable and names clear.

    lint/wording.py [--list comments|types] [PATH]

It counts comment blocks that begin without a subject, the share of comment lines, and type names that several files
define. `--list` names each place. Without PATH the limits in LIMITS hold for src/, and a missed one is exit code 1.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src"
# Least and most of each share.
LIMITS = {"comments without a subject": (0, 0.05), "comment lines": (0.10, 0.15), "shared type names": (0, 0.03)}

# A comment that opens with one of these words has no subject.
RELATIVE = "what who whoever whose whom which whether how that of and or but nor so as than else then not nothing"
# One that opens with these has a subject only if a main clause follows a comma.
OPENERS = (
    "if when while where before after until since because in on at with without during under for to by from between "
    "beside besides among over through beyond within up unless once although though except"
)
NO_COMMENT = re.compile(r"-{4}|NOLINT|clang-format")  # separators, and directives for tools
DEFINITION = re.compile(
    r"^\s*(?:class|struct|enum(?: class)?)\s+(?:alignas\(\w+\)\s+)?(?:\w+::)*(\w+)(?: final)?(?:\s*:[^;{]*)?\s*\{", re.M
)
ALIAS = re.compile(r"^\s*using\s+(\w+)\s*=", re.M)


@dataclass(frozen=True)
class Block:
    """Whole-line comments that follow each other."""

    file: Path
    line: int
    text: str

    @property
    def has_subject(self) -> bool:
        relative, openers = set(RELATIVE.split()), set(OPENERS.split())
        sentence = re.split(r"(?<=[.:;!?])\s", self.text, maxsplit=1)[0].lower()
        words = re.findall(r"\w+", sentence)
        if not words or words[0] in relative:
            return not words
        return words[0] not in openers or any(
            word not in relative | openers for word in re.findall(r",\s+(\w+)", sentence)
        )


def sources(root: Path) -> list[Path]:
    """The C and C++ files below a folder, without tests; or the one file."""
    if root.is_file():
        return [root]
    found = (path for path in sorted(root.rglob("*")) if path.suffix in {".hpp", ".cpp", ".h", ".c"})
    return [path for path in found if not path.stem.endswith(("_test", "testing"))]


def blocks(file: Path) -> Iterator[Block]:
    lines = file.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        begin = at
        while at < len(lines) and lines[at].lstrip().startswith("//"):
            at += 1
        text = " ".join(line.lstrip().lstrip("/").strip() for line in lines[begin:at]).strip()
        if text and not NO_COMMENT.match(text):
            yield Block(file, begin + 1, text)
        at += at == begin


def comment_share(files: Sequence[Path]) -> float:
    """The share of lines that are comment and nothing else."""
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return sum(line.lstrip().startswith("//") for line in lines) / max(1, len(lines))


def type_names(files: Sequence[Path]) -> dict[str, set[Path]]:
    """The files that define each class, struct, enumeration or alias."""
    found: dict[str, set[Path]] = defaultdict(set)
    for file in files:
        text = re.sub(r"//.*", "", file.read_text(encoding="utf-8"))
        for name in [*DEFINITION.findall(text), *ALIAS.findall(text)]:
            found[name].add(file)
    return found


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", choices=("comments", "types"))
    parser.add_argument("path", nargs="?", type=Path)
    arguments = parser.parse_args(words)
    files = sources(arguments.path or SRC)
    every = [block for file in files for block in blocks(file)]
    without = [block for block in every if not block.has_subject]
    names = type_names(files)
    shared = {name: places for name, places in names.items() if len(places) > 1}
    if arguments.list == "comments":
        for block in without:
            print(f"{block.file}:{block.line}: {block.text[:100]}")
    if arguments.list == "types":
        for name, places in sorted(shared.items(), key=lambda item: -len(item[1])):
            print(f"{name}: {', '.join(map(str, sorted(places)))}")
    shares = {
        "comments without a subject": len(without) / max(1, len(every)),
        "comment lines": comment_share(files),
        "shared type names": len(shared) / max(1, len(names)),
    }
    missed = False
    for name, share in shares.items():
        least, most = LIMITS[name]
        is_missed = not arguments.path and not least <= share <= most
        missed |= is_missed
        limit = f"; it must be {least:.1%} to {most:.1%} (lint/wording.py --list)" if is_missed else ""
        print(f"wording: {name}: {share:.1%}{limit}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
