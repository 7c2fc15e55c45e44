"""Shows where applications run, and whose they are: nodes, the job of Slurm, the user, as far as events say.

On one node without Slurm, and of the own user's applications, this says nothing new, so it is left out there.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from hocket.tables import printable

NAMED = 2  # number of nodes that are named; of more, only the first


@dataclass(frozen=True)
class Place:
    """The nodes, the job and the user of one application."""

    nodes: tuple[str, ...] = ()
    job: str = ""  # number and step of Slurm's job, "1234.0"; "1234": the step is not known; "": no job is known
    user: str = ""  # "": the one of this process, or not known

    @classmethod
    def of_row(cls, application: Mapping[str, Any]) -> Place:
        """Return the place of an application that LIST describes."""
        return cls(_nodes_of_row(application), slurm_job(application), other_user(int(application.get("user", -1))))

    def nodes_text(self) -> str:
        """Return "n1", "n1 n2", or "n1 and 3 more"; "": not known."""
        return " ".join(self.nodes) if len(self.nodes) <= NAMED else f"{self.nodes[0]} and {len(self.nodes) - 1} more"

    def text(self, with_nodes: bool) -> str:
        """Return "on n1, job 1234.0, of ada", or what is known of it. `with_nodes`: there are several nodes."""
        known = (
            f"on {self.nodes_text()}" if with_nodes and self.nodes else "",
            f"job {self.job}" if self.job else "",
            f"of {self.user}" if self.user else "",
        )
        return printable(", ".join(filter(None, known)))


def slurm_job(fields: Mapping[str, Any]) -> str:
    """Return job and step of an application, by the fields of its HELLO or of a row of LIST; "": none is known.

    The kernel knows it where Slurm uses control groups. Else the unique name of the run tells it, if srun has started
    the application (src/tools/spank): "slurm:CLUSTER:1234.0".
    """
    if step := str(fields.get("slurm_step", "")):
        return step
    parts = without_user(str(fields.get("job", ""))).split(":")
    return parts[2] if parts[0] == "slurm" and len(parts) > 2 else ""


@functools.cache  # a directory of users may take its time, and `hocket top` asks at each frame
def other_user(number: int) -> str:
    """Return the name of a user by its number; "" for the one of this process, and for -1."""
    import pwd  # late: most programs have the own user's applications only

    if number in (-1, os.getuid()):
        return ""
    try:
        return pwd.getpwuid(number).pw_name
    except (KeyError, OverflowError):
        return str(number)


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
    return (named | {node for one in applications for node in _nodes_of_row(one)}) - {""}


def _nodes_of_row(application: Mapping[str, Any]) -> tuple[str, ...]:
    return nodes_in(str(application.get("nodes", ""))) or nodes_in(str(application.get("on_node", "")))


def places_text(places: Mapping[str, Place], with_nodes: bool) -> str:
    """Return "where they run: a (on n1, job 1234.0), b (on n2, of ada)" for the places of applications; "" for none."""
    told = [f"{name} ({words})" for name, place in places.items() if (words := place.text(with_nodes))]
    return f"where they run: {', '.join(told)}" if told else ""
