"""The report of bench/reconfigure_cg.py: tables of all methods, bare MPI calls beside them, and the picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from hocket.reconfigure.heatmap import write_heatmap
from hocket.reconfigure.results import RECONFIGURATION, Results
from hocket.reconfigure.statistics import Pair, spread
from reconfigure_cg_plan import DEFAULT, REFERENCES, Job
from reconfigure_cg_record import Run

# The methods that do what a reference does: first with the same collective call and the same worlds, then without.
BESIDE = {
    "bare/merge": (
        "merge/plain/collective/blocking/node",
        "merge/plain/collective/blocking",
        "merge/plain/p2p/blocking",
        DEFAULT,
    ),
    "bare/baseline": ("baseline/plain/collective/blocking", "baseline/plain/p2p/blocking"),
}


def write_report(results: Results, runs: Sequence[Run], out: Path) -> None:
    """Write results.json, results.md and winners.png. `runs`: those that may be references."""
    out.mkdir(parents=True, exist_ok=True)
    told = {**results.as_json(), "references": [_reference_json(run) for run in _references(runs)]}
    (out / "results.json").write_text(json.dumps(told, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    bare = "\n" + references(results, runs) if _references(runs) else ""
    (out / "results.md").write_text(results.markdown() + bare, encoding="utf-8")
    write_heatmap(results, out / "winners.png")


def references(results: Results, runs: Sequence[Run]) -> str:
    """Return the table of bare MPI calls, with the methods that do the same beside them."""
    cells = sorted({run.job.pair for run in runs})
    rows = []
    for reference in REFERENCES:
        bare = {cell: _samples(runs, reference, cell) for cell in cells}
        rows.append([reference, *(_told(bare[cell], None) for cell in cells)])
        for name in BESIDE[reference]:
            values = {cell: results.samples(RECONFIGURATION, cell, name) for cell in cells}
            if any(values.values()):
                rows.append([name, *(_told(values[cell], bare[cell]) for cell in cells)])
    failed = [run for run in _references(runs) if run.outcome.reason]
    lines = [f"{_cell(run.job)} {run.job.method}, repeat {run.job.repeat}: {run.outcome.reason}" for run in failed]
    head = "| reconfiguration time, median, s (times the bare calls) | "
    return (
        "## Bare MPI calls\n\nThey move as many bytes by one blocking MPI_Alltoallv, after one MPI_Comm_spawn of all "
        "new processes, which then share a world. `bare/baseline` moves them over the intercommunicator.\n\n"
        + head
        + " | ".join(f"{a} → {b}" for a, b in cells)
        + " |\n"
        + "|---" * (len(cells) + 1)
        + "|\n"
        + "".join("| " + " | ".join(row) + " |\n" for row in rows)
        + "".join(f"\nFailed: {line}\n" for line in lines)
    )


def _references(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.job.method in REFERENCES]


def _samples(runs: Sequence[Run], reference: str, cell: Pair) -> list[float]:
    of_cell = [run for run in runs if run.job.method == reference and run.job.pair == cell]
    return [run.spawn_s + run.data_s for run in of_cell if not run.outcome.reason]


def _told(values: Sequence[float], beside: Sequence[float] | None) -> str:
    if not values:
        return ""
    middle = spread(values).median
    return f"{middle:.3f}" + (f" ({middle / spread(beside).median:.2f})" if beside else "")


def _cell(job: Job) -> str:
    return f"{job.sources} → {job.targets}"


def _reference_json(run: Run) -> dict[str, object]:
    job = {"sources": run.job.sources, "targets": run.job.targets, "method": run.job.method, "repeat": run.job.repeat}
    return {**job, "failed": run.outcome.reason, "spawn_s": run.spawn_s, "data_s": run.data_s}
