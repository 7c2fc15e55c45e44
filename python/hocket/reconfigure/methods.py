"""The methods of a reconfiguration: how processes start, and how data move (docs/design/environment.md).

The name of a method is SPAWN/STRATEGY/REDISTRIBUTION/STRATEGY, e.g. merge/single/collective/blocking.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hocket.errors import UsageError

SPAWNS = ("merge", "baseline")
SPAWN_STRATEGIES = ("plain", "single", "parallel", "async", "single-async", "parallel-async", "join")
REDISTRIBUTIONS = ("collective", "p2p", "rma-lock", "rma-lockall")
REDISTRIBUTION_STRATEGIES = ("blocking", "wait-sources", "wait-targets", "thread")

# The twelve methods of Proteo, section 5.4 (Baseline and Merge; COL and P2P; S, A and T), and four that it lacks.
USUAL = (
    *(f"{spawn}/plain/{data}" for spawn in SPAWNS for data in ("collective/blocking", "p2p/blocking")),
    *(f"{spawn}/plain/{data}" for spawn in SPAWNS for data in ("collective/wait-sources", "p2p/wait-sources")),
    *(f"{spawn}/plain/{data}" for spawn in SPAWNS for data in ("collective/thread", "p2p/thread")),
    "merge/parallel/collective/blocking",
    "merge/plain/rma-lockall/blocking",
    "merge/join/collective/blocking",
    "merge/join/collective/wait-sources",
)
QUICK = (
    "merge/plain/collective/blocking",
    "merge/plain/p2p/blocking",
    "baseline/plain/collective/blocking",
    "merge/join/collective/wait-sources",
)


@dataclass(frozen=True, order=True)
class Method:
    spawn: str
    spawn_strategy: str
    redistribution: str
    redistribution_strategy: str

    @property
    def name(self) -> str:
        return f"{self.spawn}/{self.spawn_strategy}/{self.redistribution}/{self.redistribution_strategy}"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOCKET_SPAWN": self.spawn,
            "HOCKET_SPAWN_STRATEGY": self.spawn_strategy,
            "HOCKET_REDISTRIBUTION": self.redistribution,
            "HOCKET_REDISTRIBUTION_STRATEGY": self.redistribution_strategy,
        }


ALL = tuple(
    Method(*words) for words in itertools.product(SPAWNS, SPAWN_STRATEGIES, REDISTRIBUTIONS, REDISTRIBUTION_STRATEGIES)
)


def choose(patterns: Sequence[str]) -> list[Method]:
    """Return the methods that match a pattern (`*` matches any text), in the order of the patterns.

    Raises UsageError if a pattern matches none.
    """
    found: dict[Method, None] = {}
    for pattern in patterns:
        matching = [method for method in ALL if fnmatchcase(method.name, pattern)]
        if not matching:
            raise UsageError(f"--methods: '{pattern}' is no method; {_grammar()}")
        found |= dict.fromkeys(matching)
    return list(found)


def _grammar() -> str:
    groups = (SPAWNS, SPAWN_STRATEGIES, REDISTRIBUTIONS, REDISTRIBUTION_STRATEGIES)
    return "a method is one of each: " + " / ".join("|".join(group) for group in groups)
