"""The record of an emulated run: what the program has appended, and what it amounts to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from hocket.emulator.keys import INPUT_OUTPUT
from hocket.emulator.plan import stage_names
from hocket.errors import UsageError
from hocket.tables import columns

PARTS = ("spawn", "constant", "variable", "stopped", "total")  # of a resize, as people read it
Block = dict[str, Any]  # consecutive iterations of one phase with the same processes


@dataclass
class Record:
    """A run. What an interrupted run has not written is missing: the end, and about three seconds of iterations."""

    about: dict[str, Any] = field(default_factory=dict)  # the description's plan
    begin: dict[str, Any] = field(default_factory=dict)
    end: dict[str, Any] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    resizes: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)  # resizes that did not come

    @property
    def is_whole(self) -> bool:
        return bool(self.begin) and bool(self.end)

    @property
    def total_s(self) -> float | None:
        return self.end["unix_s"] - self.begin["unix_s"] if self.is_whole else None

    @property
    def iterating_s(self) -> float | None:
        """The time from the first iteration to the end. None if the run was interrupted, or had no iteration."""
        return self.end["unix_s"] - self.blocks[0]["unix_s"] if self.is_whole and self.blocks else None

    @property
    def iterations(self) -> int:
        return sum(len(one["mean_ns"]["iteration"]) for one in self.blocks)

    def sum_s(self, key: str) -> float:
        return sum(one[key] for one in self.blocks) / 1e9

    @property
    def access_s(self) -> float:
        """The mean time that a rank spent in stages which access files, waits for other applications included."""
        phases = self.about["phases"]
        return (
            sum(
                sum(times)
                for block in self.blocks
                for stage, times in zip(phases[block["phase"]]["stages"], block["mean_ns"]["stages"], strict=True)
                if stage["kind"] in INPUT_OUTPUT
            )
            / 1e9
        )

    def own_share(self) -> float:
        """Return the time outside of stages and control points, over that of the iterations."""
        spent_s = sum(sum(one["mean_ns"]["iteration"]) for one in self.blocks) / 1e9 + self.sum_s("own_ns")
        return self.sum_s("own_ns") / spent_s if spent_s else 0.0


def read_record(path: Path) -> Record:
    """Read a record. A last line that is cut off is left out. Raises UsageError if the file is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the record {path}: {error}") from error
    record = Record()
    for number, line in enumerate(lines, 1):
        try:
            ((kind, content),) = json.loads(line).items()
            _take(record, kind, content)
        except (ValueError, AttributeError, KeyError) as error:
            if number == len(lines) and not line.endswith("}"):
                break
            raise UsageError(f"{path}, line {number}: this is no line of a record of 'hocket emulate'") from error
    record.blocks.sort(key=lambda one: one["first"])  # groups may have appended at the same time
    return record


def _take(record: Record, kind: str, content: dict[str, Any]) -> None:
    if kind in ("about", "begin", "end"):
        setattr(record, kind, content)
    else:
        {"iterations": record.blocks, "resize": record.resizes, "missing": record.missing}[kind].append(content)


def by_group(record: Record) -> Iterator[tuple[int, int, list[Block]]]:
    """Return phase, number of processes, and blocks of iterations that follow one another with the same ones."""
    for at, block in enumerate(record.blocks):
        key = block["phase"], block["processes"]
        if at == 0 or key != (record.blocks[at - 1]["phase"], record.blocks[at - 1]["processes"]):
            run = [block]
            for other in record.blocks[at + 1 :]:
                if (other["phase"], other["processes"]) != key:
                    break
                run.append(other)
            yield (*key, run)


def summary(record: Record) -> dict[str, Any]:
    """Return the figures as --json prints them. Times of stages are medians over the iterations in which they ran."""
    groups = []
    for phase, processes, blocks in by_group(record):
        stages = {}
        for at, name in enumerate(stage_names(record.about, phase)):
            mean = _figures(blocks, "mean_ns", at)
            if mean:
                stages[name] = {"median_s": median(mean) / 1e9, "sum_s": sum(mean) / 1e9}
                stages[name]["most_s"] = median(_figures(blocks, "most_ns", at)) / 1e9
        iterations = [one for block in blocks for one in block["mean_ns"]["iteration"]]
        groups.append(
            {
                "phase": phase + 1,
                "processes": processes,
                "iterations": len(iterations),
                "iteration_median_s": median(iterations) / 1e9,
                "cpu_s": sum(block["cpu_ns"] for block in blocks) / 1e9,
                "stages": stages,
            }
        )
    return {
        "name": record.about.get("name", ""),
        "complete": record.is_whole,
        "total_s": record.total_s,
        "iterations": record.iterations,
        "cpu_s": record.sum_s("cpu_ns"),
        "control_points_s": record.sum_s("control_ns"),
        "own_share": record.own_share(),
        "groups": groups,
        "resizes": record.resizes,
        "missing_resizes": record.missing,
    }


def _figures(blocks: list[Block], key: str, stage: int) -> list[float]:
    return [one for block in blocks for one in block[key]["stages"][stage] if one > 0]


def _time(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds >= 0.9995 else f"{seconds * 1e3:.3g} ms"


def text(figures: dict[str, Any]) -> str:
    """Return the summary for people."""
    rows = []
    for group in figures["groups"]:
        place = [str(group["phase"]), str(group["processes"]), str(group["iterations"])]
        rows.append([*place, "iteration", _time(group["iteration_median_s"]), "", ""])
        for name, one in group["stages"].items():
            times = (_time(one[key]) for key in ("median_s", "most_s", "sum_s"))
            rows.append(["", "", "", name, *times])
    heading = ("phase", "processes", "iterations", "stage", "median", "slowest rank", "sum")
    lines = [columns(heading, rows, right=(0, 1, 2, 4, 5, 6))]
    for one in figures["resizes"]:
        parts = ", ".join(f"{part} {_time(one[f'{part}_s'])}" for part in PARTS)
        lines.append(f"resize {one['from']} → {one['to']} before iteration {one['iteration']}: {parts}")
    for one in figures["missing_resizes"]:
        lines.append(f"no resize {one['from']} → {one['to']} before iteration {one['iteration']}")
    total = "interrupted" if figures["total_s"] is None else _time(figures["total_s"])
    own = f"outside of stages {figures['own_share'] * 100:.2f} %"
    lines.append(f"{figures['name']}: {total}, {figures['iterations']} iterations, CPU {figures['cpu_s']:.2f} s, {own}")
    return "\n".join(lines)
