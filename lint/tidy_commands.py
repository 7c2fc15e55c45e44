"""Writes the compile commands that clang-tidy reads, and lists their files, tests aside.

    lint/tidy_commands.py FROM TO

Sources of a room are compiled in batches, so a file may be a batch, of which clang-tidy reads the headers once. It
reads a file once for each command, and most files that are built twice, for both MPIs or for tests, are the same code.
Sources that distinguish the MPIs keep one command for each. The commands lose the precompiled headers: clang-tidy
cannot read those of g++, and says so if a file lacks an include.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

PRECOMPILED = re.compile(r" -Winvalid-pch -include \S+/cmake_pch\.hxx")
INCLUDED = re.compile(r'^#include "(.*)"$', re.MULTILINE)
SOURCES = Path(__file__).resolve().parent.parent / "src"


def sources_of(file: Path) -> tuple[Path, ...]:
    """Return the sources that are compiled with this file: those of a batch, or itself."""
    if file.parent.name != "Unity":
        return (file,)
    return tuple(Path(one) for one in INCLUDED.findall(file.read_text()))


def chosen(commands: list[dict]) -> dict[tuple, dict]:
    """Return one command for each set of sources, and two where they distinguish the MPIs."""
    kept: dict[tuple, dict] = {}
    for command in commands:
        file = Path(command["file"])
        if not file.exists():
            continue
        sources = sources_of(file)
        distinguishes = any("OPEN_MPI" in source.read_text() for source in sources)
        key = (sources, distinguishes and "/openmpi/include" in command["command"])
        kept.setdefault(key, command | {"command": PRECOMPILED.sub("", command["command"])})
    return kept


def is_checked(source: Path) -> bool:
    return source.suffix == ".cpp" and SOURCES in source.parents and not source.name.endswith("_test.cpp")


def main(read: str, written: str) -> None:
    kept = chosen(json.loads(Path(read).read_text()))
    Path(written).write_text(json.dumps(list(kept.values())))
    for (sources, _), command in kept.items():
        if any(map(is_checked, sources)):
            print(command["file"])


if __name__ == "__main__":
    main(*sys.argv[1:])
