"""Checks the subjects of all commits after a recorded one: `area: imperative`, at most 72 characters.

    lint/commits.py [BASE]

Of a clone that does not reach back to BASE, it checks the commits that are there.
"""

from __future__ import annotations

import re
import subprocess
import sys

BASE = "d115ac9fba62fa9a5ab8a5f03ae433cf881cabd1"  # commits up to this one were made before the rule
MOST = 72
# The area names rooms or folders; the verb begins in lower case, and is none of the forms that tell what was done.
SUBJECT = re.compile(r"[a-z0-9_./-]+(?:, [a-z0-9_./-]+)*: (?!\w+(?:ed|ing) )[a-z].*[^.]")


def git(*words: str) -> str | None:
    """What git prints; None if it fails."""
    done = subprocess.run(["git", *words], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def subjects(base: str) -> list[tuple[str, str]]:
    """(commit, subject) of each commit after `base`."""
    reached = git("merge-base", "--is-ancestor", base, "HEAD") is not None
    log = git("log", "--no-merges", "--format=%h %s", f"{base}..HEAD" if reached else "HEAD") or ""
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in log.splitlines()]


def fault(subject: str) -> str:
    """What is wrong with a subject; "" for nothing."""
    if len(subject) > MOST:
        return f"it has {len(subject)} characters, and {MOST} are the most"
    if not SUBJECT.fullmatch(subject):
        return "it is not of the form 'area: imperative', as in 'pace: cap unused credit'"
    return ""


def main() -> int:
    wrong = [(commit, subject, fault(subject)) for commit, subject in subjects(*(sys.argv[1:] or [BASE]))]
    wrong = [one for one in wrong if one[2]]
    for commit, subject, why in wrong:
        print(f"commits: the subject of {commit}, '{subject}', is wrong: {why}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
