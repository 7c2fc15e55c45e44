"""The programs in docs/write-a-policy.md, which tests compile and run as they stand there."""

import re

from checkout import REPO

PAGE = REPO / "docs" / "write-a-policy.md"


def blocks(language: str) -> list[str]:
    """Return the programs of the page in that language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.S)


def block(language: str) -> str:
    """Return the first program of the page in that language."""
    found = blocks(language)
    assert found, f"{PAGE} has no {language}"
    return found[0]
