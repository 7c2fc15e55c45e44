"""The methods of a reconfiguration in one of Proteo's files: numbers become the words of docs/malleable.md."""

from __future__ import annotations

from hocket.emulator.proteo_file import Section
from hocket.emulator.proteo_values import Values
from hocket.emulator.proteo_versions import (
    ASYNCHRONOUS,
    REDISTRIBUTIONS,
    SPAWN_INDICES,
    SPAWN_PRODUCTS,
    SPAWN_TYPES,
    SPAWNS,
)

ROLES = (
    "asynchronous",
    "spawn",
    "spawn_strategy",
    "spawn_type",
    "spawn_single",
    "redistribution",
    "redistribution_strategy",
)
# Our word for each set of spawn strategies.
STRATEGIES = {
    frozenset(): "plain",
    frozenset({"async"}): "async",
    frozenset({"single"}): "single",
    frozenset({"async", "single"}): "single-async",
    frozenset({"parallel"}): "parallel",
    frozenset({"async", "parallel"}): "parallel-async",
}


def methods(values: Values, general: Section, group: Section, constant_bytes: int) -> dict[str, str]:
    """Return the methods of the reconfiguration that leads to a group, by the keys of our format."""
    where = {role: section for section in (general, group) for role in values.version.keys_of(section.kind).values()}
    spawn, strategies = _spawn(values, where)
    redistribution, strategy = _redistribution(values, where, constant_bytes)
    # Proteo spawns all new processes of a reconfiguration in one MPI world; a world for each node is nearest to that.
    return {
        "spawn": spawn,
        "spawn_strategy": STRATEGIES[strategies],
        "worlds": "node",
        "redistribution": redistribution,
        "redistribution_strategy": strategy,
    }


def _spawn(values: Values, where: dict[str, Section]) -> tuple[str, frozenset[str]]:
    if "spawn_type" in where:
        return _spawn_type(values, where["spawn_type"])
    if "spawn" not in where:
        return "baseline", frozenset()
    spawn = SPAWNS[values.whole(where["spawn"], "spawn", most=len(SPAWNS) - 1)]
    section = where["spawn_strategy"]
    if values.version.spawn_strategies == "indices":
        strategies = _indexed(values, section, spawn)
    else:
        number = values.whole(section, "spawn_strategy", most=6)
        if number not in SPAWN_PRODUCTS:
            raise values.mistake(section, "spawn_strategy", f"is unknown; use one of {_listed(SPAWN_PRODUCTS)}")
        strategies = SPAWN_PRODUCTS[number]
    values.means(section, "spawn_strategy", f"spawn strategy '{STRATEGIES[strategies]}'")
    return spawn, strategies


def _spawn_type(values: Values, section: Section) -> tuple[str, frozenset[str]]:
    """Return what CST and CSS say. Proteo without them spawned plainly."""
    number = values.whole(section, "spawn_type", most=len(SPAWN_TYPES) - 1, default=0)
    spawn, strategies = SPAWN_TYPES[number]
    single = {"single"} if values.flag(section, "spawn_single") else set()
    return spawn, frozenset(strategies | single)


def _indexed(values: Values, section: Section, spawn: str) -> frozenset[str]:
    """Return the strategies of a list of indices, without those that hocket has no word for; they are named."""
    given = set()
    for number in values.wholes(section, "spawn_strategy"):
        if number >= len(SPAWN_INDICES):
            told = f"is unknown; use 0 to {len(SPAWN_INDICES) - 1}"
            raise values.mistake(section, "spawn_strategy", told)
        given.add(SPAWN_INDICES[number])
    if "parallel" in given and given & {"single", "multiple"}:
        raise values.mistake(section, "spawn_strategy", "contradicts itself: 5 (parallel) excludes 2 and 4")
    if "intercomm" in given:
        why = (
            "merge has no inter-communicator" if spawn == "merge" else "data move in one communicator of all processes"
        )
        values.tell(section, "spawn_strategy", f"has 3 (inter-communicator), which means nothing here: {why}")
    if "multiple" in given:
        values.tell(section, "spawn_strategy", "has 4 (a spawn for each node): here each node has an MPI world")
    if "parallel" in given:
        told = "has 5 (new processes spawn further ones): here several source ranks spawn a part each"
        values.tell(section, "spawn_strategy", told)
    return frozenset(given & {"async", "single", "parallel"})


def _redistribution(values: Values, where: dict[str, Section], constant_bytes: int) -> tuple[str, str]:
    if "asynchronous" in where:
        number = values.whole(where["asynchronous"], "asynchronous", most=len(ASYNCHRONOUS) - 1, default=0)
        found = ASYNCHRONOUS[number] if constant_bytes else ("collective", "blocking")
        values.means(where["asynchronous"], "asynchronous", "/".join(found))
        return found
    if "redistribution" not in where:
        return "collective", "wait-sources"
    section = where["redistribution"]
    number = values.whole(section, "redistribution", most=values.version.redistributions - 1)
    strategy = _strategy(values, where["redistribution_strategy"])
    if number == len(REDISTRIBUTIONS):
        return "collective", "wait-targets"
    redistribution = REDISTRIBUTIONS[number]
    if values.version.spawn_strategies == "indices" and number >= 2 and strategy == "wait-sources":
        strategy = "wait-targets"  # Proteo's library adds it to one-sided redistribution by itself
    return redistribution, strategy


def _strategy(values: Values, section: Section) -> str:
    known = values.version.redistribution_strategies
    role = "redistribution_strategy"
    numbers = values.wholes(section, role)
    if len(numbers) > 1:
        raise values.mistake(section, role, "must be one number")
    if numbers[0] not in known:
        raise values.mistake(section, role, f"is unknown; use one of {_listed(known)}")
    values.means(section, role, f"redistribution strategy '{known[numbers[0]]}'")
    return known[numbers[0]]


def _listed(numbers: object) -> str:
    return ", ".join(map(str, numbers))  # type: ignore[call-overload]
