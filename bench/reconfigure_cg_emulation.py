"""The emulated side of bench/reconfigure_cg.py: CG as it was captured, resized by the same methods."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from captured import CAPTURES, Moved, Part, iterating, middle, resizable
from hocket import paths
from hocket.capture.stages import Run, run_of
from hocket.capture.watch import watch
from hocket.emulator.calibration import calibrated
from hocket.emulator.description import read_description
from hocket.emulator.plan import granularities, plan_of
from hocket.emulator.record import read_record
from hocket.errors import HocketError, UsageError
from hocket.reconfigure.runs import MPICH_SETTINGS, Program, launcher
from reconfigure_cg_plan import Problem

FILES = ("emulated.toml", "emulated-plan.json")
STATE = "state"  # directory of the calibration


@dataclass(frozen=True)
class Emulation:
    """The emulator with the plan of CG. Like CG it starts with one process, and the environment resizes it."""

    plan: Path
    record: Path  # of the run under way

    def fresh(self) -> Program:
        """Return the program of the next run, whose record does not exist yet."""
        self.record.unlink(missing_ok=True)
        words = [str(emulator()), str(self.plan), str(self.record.parent), str(self.record)]
        return Program("emulator", words, self._summary)

    def _summary(self, _: str) -> dict | None:
        """Return what CG's summary has, from the record: the emulator prints nothing."""
        try:
            record = read_record(self.record)
        except UsageError:
            return None
        if record.total_s is None or record.iterating_s is None:
            return None
        return {"seconds": record.total_s, "iterating_seconds": record.iterating_s}


def emulator() -> Path:
    program = paths.apps() / "emulator-mpich"
    if not program.exists():
        raise HocketError(f"no {program}: is hocket built and installed? (HOCKET_PREFIX says where)")
    return program


def forget(output: Path) -> None:
    """Remove the plan, so that CG is captured again: it was of another build or machine."""
    for name in FILES:
        (output / name).unlink(missing_ok=True)
    shutil.rmtree(output / STATE, ignore_errors=True)


def prepare(program: Program, problem: Problem, sizes: Iterable[int], iterations: int, output: Path, say) -> Path:
    """Return the plan of the emulation. If the output directory has none, capture the program with these sizes."""
    description, plan = (output / name for name in FILES)
    if plan.exists():
        return plan
    runs = {}
    for size in sorted(set(sizes)):
        say(f"capturing {CAPTURES} runs with {size} processes")
        runs[size] = iterating(middle([_captured(program, size) for _ in range(CAPTURES)]), iterations)
    moved = Moved(problem.bytes, problem.constant_share)
    description.write_text(resizable("cg", runs, [Part(1, iterations)], moved), encoding="utf-8")
    read = read_description(description)
    # Measured anew: the machine may have been busy when it was measured for others.
    os.environ["XDG_STATE_HOME"] = str(output / STATE)
    text = json.dumps(plan_of(read, calibrated(granularities(read), emulator())))
    unfinished = plan.with_suffix(".new")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(plan)
    return plan


def _captured(program: Program, processes: int) -> Run:
    os.environ.update(MPICH_SETTINGS)  # as in the runs of the campaign
    return run_of(watch([*launcher(processes), *program.command], quietly=True))
