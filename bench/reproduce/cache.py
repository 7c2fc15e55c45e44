"""Keeps the results of figures as JSON by commit, so that a page can be made again and an interrupted run resumed.

The key of a tree with changes that are not committed has a digest of them, so results never outlive their source.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from reproduce.figure import Figure, Options, Results


@dataclass(frozen=True)
class Cache:
    """The results of one state of the sources: a file for each figure."""

    directory: Path

    def path(self, figure: Figure) -> Path:
        return self.directory / f"{figure.identity}.json"

    def load(self, figure: Figure, options: Options) -> Results | None:
        """Return the results, or None if there are none that were made with these options."""
        try:
            kept = json.loads(self.path(figure).read_text())
            return kept["results"] if kept["options"] == options.as_json() else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, figure: Figure, options: Options, results: Results) -> None:
        """Write the results at once or not at all."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.path(figure)
        unfinished = path.with_suffix(f".{os.getpid()}")
        kept = {"figure": figure.identity, "options": options.as_json(), "results": results}
        unfinished.write_text(json.dumps(kept, indent=1) + "\n")
        unfinished.replace(path)


def state_of(repo: Path) -> str:
    """Return the commit, with a digest of what is not committed; "unknown" where there is no git."""

    def git(*words: str) -> bytes:
        return subprocess.run(["git", "-C", str(repo), *words], capture_output=True, check=True).stdout

    try:
        commit = git("rev-parse", "--short=12", "HEAD").decode().strip()
        changed = git("diff", "HEAD")
        for name in sorted(git("ls-files", "--others", "--exclude-standard", "-z").split(b"\0")):
            path = repo / os.fsdecode(name)
            if name and path.is_file():
                changed += name + path.read_bytes()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}-{hashlib.sha256(changed).hexdigest()[:8]}" if changed else commit
