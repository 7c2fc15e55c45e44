"""Shows where applications run: their nodes, and the job of Slurm, as far as events say.

On one node without Slurm this says nothing new, so it is left out there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from hocket.tables import printable

NAMED = 2  # number of nodes that are named; of more, only the first


@dataclass(frozen=True)
class Place:
    """The nodes and the job of one application."""

    nodes: tuple[str, ...] = ()
    job: str = ""  # number and step of Slurm's job, "1234.0"; "1234": the step is not known; "": no job is known

    @classmethod
    def of_row(cls, application: Mapping[str, Any]) -> Place:
        """Return the place of an application that LIST describes."""
        nodes = nodes_in(str(application.get("nodes", ""))) or (str(application.get("on_node", "")),)
        return cls(tuple(filter(None, nodes)), slurm_job(str(application.get("job", ""))))

    def nodes_text(self) -> str:
        """Return "n1", "n1 n2", or "n1 and 3 more"; "": not known."""
        return " ".join(self.nodes) if len(self.nodes) <= NAMED else f"{self.nodes[0]} and {len(self.nodes) - 1} more"

    def text(self, with_nodes: bool) -> str:
        """Return "on n1, job 1234.0", or the part of it that is known. `with_nodes`: there are several nodes."""
        told = [f"on {self.nodes_text()}"] if with_nodes and self.nodes else []
        return printable(", ".join([*told, f"job {self.job}"] if self.job else told))


def slurm_job(job: str) -> str:
    """Return job and step of an application that srun has started (src/tools/spank); "" for others.

    `job`: the unique name of the run, "slurm:CLUSTER:1234.0".
    """
    parts = without_user(job).split(":")
    return parts[2] if parts[0] == "slurm" and len(parts) > 2 else ""


def without_user(name: str) -> str:
    """Return the name of a job or allocation as its user gave it. A daemon of all users puts "user N: " before it."""
    return re.sub(r"^user \d+: ", "", name)


def nodes_in(text: str) -> tuple[str, ...]:
    """Return the names in "n1=2 n2=1"."""
    return tuple(one.rpartition("=")[0] or one for one in text.split())


def nodes_of_listing(
    applications: Collection[Mapping[str, Any]], nodes: Collection[Mapping[str, Any]], daemon: Mapping[str, Any]
) -> set[str]:
    """Return the nodes that an answer to LIST names."""
    named = {str(one.get("on_node", "")) for one in (daemon, *nodes)}
    return (named | {node for one in applications for node in Place.of_row(one).nodes}) - {""}


def places_text(places: Mapping[str, Place], with_nodes: bool) -> str:
    """Return "where they run: a (on n1, job 1234.0), b (on n2)" for applications and their places; "" for none."""
    told = [f"{name} ({words})" for name, place in places.items() if (words := place.text(with_nodes))]
    return f"where they run: {', '.join(told)}" if told else ""
