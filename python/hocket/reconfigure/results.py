"""Summarises the runs of `hocket bench reconfigure`: the plan of the runs, JSON, Markdown. Pure."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hocket.reconfigure.methods import Method
from hocket.reconfigure.runs import Outcome
from hocket.reconfigure.statistics import ALPHA, P_ADJUST, Pair, Verdict, judge, settle, shapiro_p, spread

# The compared measures, and their names for people. The first is that of Proteo's Figs. 9 to 12, the last that of 14.
RECONFIGURATION, STOPPED, EXECUTION = "reconfiguration", "stopped", "execution"
MEASURES = {
    RECONFIGURATION: "reconfiguration time",
    STOPPED: "time the application was stopped",
    EXECUTION: "execution time",
}
Thing = TypeVar("Thing")
SAME = 1e-9  # relative; results that differ by more are wrong


@dataclass(frozen=True)
class Planned:
    """A run of the plan. `repeat` 0 is the warm-up, which does not count."""

    sources: int
    targets: int
    method: Method
    repeat: int

    @property
    def pair(self) -> Pair:
        return self.sources, self.targets


def plan(sizes: Sequence[int], methods: Sequence[Method], repeat: int, seed: int) -> list[Planned]:
    """Return every pair of different sizes with every method: a warm-up, and `repeat` runs.

    Each round has its own random order, so that changes on the machine affect all methods alike.
    """
    cells = [(pair, method) for pair in pairs_of(sizes) for method in methods]
    return [Planned(*pair, method, number) for number, (pair, method) in rounds(cells, range(repeat + 1), seed)]


def pairs_of(sizes: Sequence[int]) -> list[Pair]:
    return [(sources, targets) for sources in sizes for targets in sizes if sources != targets]


def rounds(things: Sequence[Thing], numbers: Iterable[int], seed: int) -> list[tuple[int, Thing]]:
    """Return all things once for each number, each time in a random order of its own."""
    rng = random.Random(seed)
    found = []
    for number in numbers:
        of_round = list(things)
        rng.shuffle(of_round)
        found += [(number, thing) for thing in of_round]
    return found


@dataclass
class Results:
    """The runs, their samples, and the verdicts.

    `done`: the runs in their order. `about`: what a reader must know about how they were made. `same`: the relative
    difference of two results from which one of them is wrong.
    """

    sizes: Sequence[int]
    methods: Sequence[Method]
    done: list[tuple[Planned, Outcome]]
    about: Mapping[str, object]
    same: float = SAME

    def __post_init__(self) -> None:
        self.done = _checked(self.done, self.same)
        self.verdicts = {measure: self._verdicts(measure) for measure in MEASURES}
        self.shown = {measure: settle(verdicts) for measure, verdicts in self.verdicts.items()}

    @property
    def pairs(self) -> list[Pair]:
        return pairs_of(self.sizes)

    @property
    def names(self) -> list[str]:
        return [method.name for method in self.methods]

    @property
    def failed(self) -> list[tuple[Planned, Outcome]]:
        """Return the failed runs, warm-ups included."""
        return [(run, outcome) for run, outcome in self.done if outcome.reason]

    def samples(self, measure: str, pair: Pair, name: str) -> list[float]:
        """Return the samples in seconds, of the runs that count and succeeded."""
        return [
            _value(outcome, measure)
            for run, outcome in self.done
            if run.pair == pair and run.method.name == name and run.repeat and not outcome.reason
        ]

    def _verdicts(self, measure: str) -> dict[Pair, Verdict]:
        return {pair: judge({name: self.samples(measure, pair, name) for name in self.names}) for pair in self.pairs}

    def normality(self, measure: str) -> tuple[int, int]:
        """Return how many samples Shapiro-Wilk rejects as not normal, and how many could be tested."""
        found = [shapiro_p(self.samples(measure, pair, name)) for pair in self.pairs for name in self.names]
        tested = [p for p in found if p is not None]
        return sum(p < ALPHA for p in tested), len(tested)

    def as_json(self) -> dict[str, object]:
        """Return all runs and figures; times are seconds."""
        cells = [self._cell_json(measure, pair) for measure in MEASURES for pair in self.pairs]
        return {
            "bench": "reconfigure",
            **self.about,
            "sizes": list(self.sizes),
            "methods": self.names,
            "tests": {"normality": "Shapiro-Wilk", "medians": "Kruskal-Wallis", "post hoc": "Conover"}
            | {"p_adjust": P_ADJUST, "alpha": ALPHA},
            "runs": [_run_json(run, outcome) for run, outcome in self.done],
            "cells": cells,
        }

    def _cell_json(self, measure: str, pair: Pair) -> dict[str, object]:
        verdict = self.verdicts[measure][pair]
        methods = {}
        for name in self.names:
            values = self.samples(measure, pair, name)
            told: dict[str, object] = {"samples": values, "failed": self._failures(pair, name)}
            if values:
                told |= dataclasses.asdict(spread(values)) | {"samples": values, "shapiro_p": shapiro_p(values)}
            methods[name] = told | {"conover_p": verdict.p_of.get(name)}
        return {
            "measure": measure,
            "sources": pair[0],
            "targets": pair[1],
            "kruskal_p": verdict.kruskal_p,
            "best": list(verdict.best),
            "shown": self.shown[measure].get(pair),
            "methods": methods,
        }

    def _failures(self, pair: Pair, name: str) -> int:
        return sum(run.pair == pair and run.method.name == name for run, _ in self.failed)

    def markdown(self) -> str:
        """Return tables of winners and medians, and the failed runs."""
        parts = [f"# Reconfiguration of {self.about['app']}", _about(self.about, len(self.done), len(self.failed))]
        parts.append("| | method |\n|---|---|\n" + _lines([[str(n), name] for n, name in enumerate(self.names, 1)]))
        for measure, words in MEASURES.items():
            parts += [f"## {words[0].upper()}{words[1:]}", self._tests(measure), self._winners(measure)]
            parts.append(self._medians(measure))
        if self.failed:
            rows = [[f"{r.sources} → {r.targets}", r.method.name, str(r.repeat), o.reason] for r, o in self.failed]
            parts.append(
                "## Runs that failed\n\n| | method | repeat (0: warm-up) | reason |\n|---|---|---|---|\n" + _lines(rows)
            )
        return "\n\n".join(parts) + "\n"

    def _tests(self, measure: str) -> str:
        rejected, tested = self.normality(measure)
        return (
            f"Shapiro-Wilk rejects normality in {rejected} of {tested} samples. Best: the method with the least median "
            f"and those that Conover's test ({P_ADJUST}, {ALPHA:g}) does not distinguish from it, if Kruskal-Wallis "
            "rejects that all are the same; else all of them. Shown in the picture: of several, the one that is best "
            "most often in the nearest cells."
        )

    def _winners(self, measure: str) -> str:
        number = {name: str(at) for at, name in enumerate(self.names, 1)}
        rows = []
        for pair in self.pairs:
            verdict, shown = self.verdicts[measure][pair], self.shown[measure].get(pair)
            middle = f"{spread(self.samples(measure, pair, shown)).median:.4f}" if shown else ""
            p = "not tested" if verdict.kruskal_p is None else f"{verdict.kruskal_p:.2g}"
            best = ", ".join(number[name] for name in verdict.best)
            rows.append([f"{pair[0]} → {pair[1]}", number[shown] if shown else "none", middle, best, p])
        return "| | shown | its median, s | best | Kruskal-Wallis p |\n|---|---|---|---|---|\n" + _lines(rows)

    def _medians(self, measure: str) -> str:
        head = "| median, s [least to most] | " + " | ".join(f"{a} → {b}" for a, b in self.pairs) + " |\n"
        rows = [
            [name, *(_told(self.samples(measure, pair, name), self._failures(pair, name)) for pair in self.pairs)]
            for name in self.names
        ]
        return head + "|---" * (len(self.pairs) + 1) + "|\n" + _lines(rows)


def _checked(done: Sequence[tuple[Planned, Outcome]], same: float) -> list[tuple[Planned, Outcome]]:
    """Return the runs. A run counts as failed if its result differs from the median result."""
    checks = sorted(outcome.check for _, outcome in done if not outcome.reason and outcome.check is not None)
    right = checks[len(checks) // 2] if checks else 0.0

    def judged(outcome: Outcome) -> Outcome:
        wrong = outcome.check is not None and abs(outcome.check - right) > same * abs(right)
        reason = f"wrong result: residual {outcome.check!r}, most runs have {right!r}"
        return dataclasses.replace(outcome, reason=reason) if wrong and not outcome.reason else outcome

    return [(run, judged(outcome)) for run, outcome in done]


def _value(outcome: Outcome, measure: str) -> float:
    if measure == EXECUTION:
        return outcome.execution_s
    record = outcome.record
    assert record is not None  # set, because the run succeeded
    if measure == STOPPED:
        return record.stopped_ns / 1e9
    # It lasts from the start of the spawn until the data are received, with the iterations in between.
    return (record.end_ns - record.begin_ns - record.resuming_ns) / 1e9


def _run_json(run: Planned, outcome: Outcome) -> dict[str, object]:
    record = outcome.record
    return {
        "sources": run.sources,
        "targets": run.targets,
        "method": run.method.name,
        "repeat": run.repeat,
        "failed": outcome.reason,
        "execution_s": outcome.execution_s if not outcome.reason else None,
        "residual": outcome.check,
        "record": record.as_json(record.begin_ns) if record else None,
    }


def _about(about: Mapping[str, object], runs: int, failed: int) -> str:
    told = ", ".join(f"{key} {value}" for key, value in about.items() if key != "command")
    return f"`{about['command']}`\n\n{told}; {runs} runs, {failed} failed."


def _told(values: Sequence[float], failed: int) -> str:
    lost = f"{failed} failed" if failed else ""
    if not values:
        return lost
    one = spread(values)
    return f"{one.median:.4f} [{one.least:.4f} to {one.most:.4f}]" + (f", {lost}" if lost else "")


def _lines(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows
    )
