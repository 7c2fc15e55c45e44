"""Writes small scenarios for hocket-sim, runs them, and returns what the applications took."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hocket.sim import runs

Keys = Mapping[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A scenario as its tables; `about` are keys at the top of the file."""

    target: Keys
    applications: Sequence[Keys]
    about: Keys = field(default_factory=dict)
    coordinator: Keys = field(default_factory=dict)
    servers: Sequence[Keys] = ()
    load: Sequence[Keys] = ()

    def text(self) -> str:
        """Return the TOML text."""
        cores = sum(one["processes"] for one in self.applications)
        tables = [
            ("", {"name": "reproduce"} | dict(self.about)),
            ("[platform]", {"nodes": 1, "cores_per_node": cores}),
            ("[[targets]]", {"name": "target"} | dict(self.target)),
            *(("[[servers]]", one) for one in self.servers),
            *(("[[load]]", one) for one in self.load),
            *(("[[applications]]", one) for one in self.applications),
            ("[coordinator]", self.coordinator),
        ]
        return "\n\n".join("\n".join(filter(None, [head, *map(_line, keys.items())])) for head, keys in tables) + "\n"


def _line(pair: tuple[str, Any]) -> str:
    key, value = pair
    return f"{key} = {_toml(value)}"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(map(_line, value.items())) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)  # numbers, texts and truth values are written alike in TOML


def simulate(wanted: Sequence[tuple[Scenario, str]], traces: bool = False) -> list[tuple[runs.Result, list[dict]]]:
    """Run each scenario under its policy. Return the results, with the events of the trace if wanted."""
    with tempfile.TemporaryDirectory() as directory:
        planned = []
        for number, (scenario, policy) in enumerate(wanted):
            path = Path(directory) / f"{number}.toml"
            path.write_text(scenario.text(), encoding="utf-8")
            planned.append(runs.Wanted(path, policy, trace=path.with_suffix(".jsonl") if traces else None))
        results = runs.simulate(planned)
        return [(result, events(one.trace)) for result, one in zip(results, planned, strict=True)]


def events(trace: Path | None) -> list[dict]:
    """Return the events and commands of a trace; its first line is a head."""
    return [json.loads(line) for line in trace.read_text().splitlines()[1:]] if trace else []


def phases_of(told: Sequence[dict], application: str) -> list[dict]:
    """Return the I/O phases of an application, in their order."""
    return [event for event in told if event.get("in") == "IO_PHASE" and event["application"] == application]
