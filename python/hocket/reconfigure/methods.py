"""The methods of a reconfiguration: how processes start, and how data move (docs/design/environment.md).

The name of a method is SPAWN/STRATEGY/REDISTRIBUTION/STRATEGY, e.g. merge/single/collective/blocking. A fifth part,
/node, puts the new processes of a node into one MPI world. Without it, each has a world of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from hocket.errors import UsageError

SPAWNS = ("merge", "baseline")
SPAWN_STRATEGIES = ("plain", "single", "parallel", "async", "single-async", "parallel-async", "join")
REDISTRIBUTIONS = ("collective", "p2p", "rma-lock", "rma-lockall")
REDISTRIBUTION_STRATEGIES = ("blocking", "wait-sources", "wait-targets", "thread")
WORLDS = ("process", "node")
PLACEMENTS = ("anywhere", "compact", "spread")

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
    worlds: str = "process"

    @property
    def name(self) -> str:
        parts = [self.spawn, self.spawn_strategy, self.redistribution, self.redistribution_strategy]
        return "/".join(parts if self.worlds == "process" else [*parts, self.worlds])

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOCKET_SPAWN": self.spawn,
            "HOCKET_SPAWN_STRATEGY": self.spawn_strategy,
            "HOCKET_REDISTRIBUTION": self.redistribution,
            "HOCKET_REDISTRIBUTION_STRATEGY": self.redistribution_strategy,
            "HOCKET_WORLDS": self.worlds,
        }


ALL = tuple(
    Method(*words) for words in itertools.product(SPAWNS, SPAWN_STRATEGIES, REDISTRIBUTIONS, REDISTRIBUTION_STRATEGIES)
)
OF_NODES = tuple(replace(method, worlds="node") for method in ALL)


def choose(patterns: Sequence[str]) -> list[Method]:
    """Return the methods that match a pattern (`*` matches any text), in the order of the patterns.

    Those with worlds of a node need a pattern of five parts. Raises UsageError if a pattern matches none.
    """
    found: dict[Method, None] = {}
    for pattern in patterns:
        known = OF_NODES if pattern.count("/") == 4 else ALL
        matching = [method for method in known if fnmatchcase(method.name, pattern)]
        if not matching:
            raise UsageError(f"--methods: '{pattern}' is no method; {_grammar()}")
        found |= dict.fromkeys(matching)
    return list(found)


def check_names(text: str) -> None:
    """Check names that choose methods for one resize, joined by '/' in any order. Raises UsageError.

    libhocket takes the same ones (src/libhocket/malleable/methods.cpp).
    """
    groups = (SPAWNS, SPAWN_STRATEGIES, REDISTRIBUTIONS, REDISTRIBUTION_STRATEGIES, WORLDS, PLACEMENTS)
    used: dict[tuple[str, ...], str] = {}
    for name in text.split("/"):
        group = next((one for one in groups if name in one), None)
        if group is None:
            known = ", ".join(itertools.chain(*groups))
            raise UsageError(f"--methods {text}: '{name}' is no method; there are {known}")
        if group in used:
            raise UsageError(f"--methods {text}: '{used[group]}' and '{name}' exclude each other; give one")
        used[group] = name


def _grammar() -> str:
    groups = (SPAWNS, SPAWN_STRATEGIES, REDISTRIBUTIONS, REDISTRIBUTION_STRATEGIES)
    return "a method is one of each: " + " / ".join("|".join(group) for group in groups) + ", and perhaps /node"
