"""The figures of all papers, in the order of the papers, and their selection by name."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from hocket.errors import UsageError

from reproduce import calciom, clarisse, flexmpi, flexmpi_live, gekkofwd, proteo
from reproduce.figure import Figure

PAPERS = {
    "calciom": "CALCioM",
    "clarisse": "CLARISSE",
    "flexmpi": "CLARISSE+FlexMPI",
    "gekkofwd": "GekkoFWD",
    "proteo": "Proteo",
}
FIGURES: tuple[Figure, ...] = (
    *calciom.FIGURES,
    *clarisse.FIGURES,
    *flexmpi.FIGURES,
    *flexmpi_live.FIGURES,
    *gekkofwd.FIGURES,
    *proteo.FIGURES,
)
ALL = "all"


def select(names: Sequence[str], figures: Sequence[Figure] = FIGURES) -> list[Figure]:
    """Return the figures of these names, each once, in the order of the registry.

    A name is a figure's, a paper's, or "all". The last two leave out what cannot be made. Raises UsageError for an
    unknown name, and for a figure that cannot be made.
    """
    known = {one.identity: one for one in figures}
    papers = {one.paper for one in figures}
    chosen = set()
    for name in names:
        if name == ALL or name in papers:
            chosen |= {one.identity for one in figures if one.can_be_made and name in (ALL, one.paper)}
        elif name not in known:
            near = get_close_matches(name, [*known, *papers], n=1)
            hint = f"did you mean '{near[0]}'?" if near else "./dev reproduce lists what there is"
            raise UsageError(f"there is no figure '{name}': {hint}")
        elif not known[name].can_be_made:
            raise UsageError(f"{name} cannot be made: {known[name].needs}")
        else:
            chosen.add(name)
    return [one for one in figures if one.identity in chosen]
