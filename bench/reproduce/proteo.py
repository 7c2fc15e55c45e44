"""Proteo: applications beside their emulations, and methods of resizing.

Figs. 7 and 8 and both tables are made from the record of bench/emulator.py (proteo_emulator.py), Figs. 9 to 14 from
that of bench/reconfigure_cg.py --emulated (proteo_reconfigurations.py).
"""

from __future__ import annotations

from reproduce import proteo_emulator as emulator
from reproduce import proteo_reconfigurations as resizes
from reproduce.figure import RECORD, Figure, drawing

SOLVER = "a record of ./dev bench emulator: CG of apps/cg on this machine, up to four ranks"
GATHERS = "a record of ./dev bench emulator: two ranks"
CAMPAIGN = "a record of bench/reconfigure_cg.py: 1 to 8 processes on this machine"
BOTH = "a record of bench/reconfigure_cg.py --emulated: 1 to 8 processes on this machine"

FIGURES = (
    drawing("proteo-1", "Architecture", "ARCHITECTURE.md, docs/emulate.md and docs/malleable.md"),
    drawing("proteo-2", "Methods and strategies of process management", "docs/malleable.md, Which method"),
    drawing("proteo-3", "Reconfigurations from sources to targets", "docs/design/malleability.md"),
    drawing("proteo-4", "Methods and strategies of data redistribution", "docs/malleable.md, Which method"),
    drawing("proteo-5", "Flowchart", "docs/emulate.md, Reconfigurations"),
    drawing("proteo-6", "An emulation that grows from 2 to 4 processes", "hocket emulate, and hocket trace export"),
    Figure(
        "proteo-7",
        "Computing time of the emulation over CG's",
        RECORD,
        SOLVER,
        emulator.make,
        emulator.judge_computing,
        emulator.draw_computing,
    ),
    Figure(
        "proteo-table1",
        "MPI_Allgatherv: mean and deviation by size",
        RECORD,
        GATHERS,
        emulator.make,
        emulator.judge_times,
        emulator.draw_times,
    ),
    Figure(
        "proteo-table2",
        "MPI_Allgatherv: emulation beside Table 1",
        RECORD,
        GATHERS,
        emulator.make,
        emulator.judge_quotients,
        emulator.draw_quotients,
    ),
    Figure(
        "proteo-8",
        "Execution time of the emulation over CG's",
        RECORD,
        SOLVER,
        emulator.make,
        emulator.judge_total,
        emulator.draw_total,
    ),
    Figure(
        "proteo-9",
        "Reconfiguration times of synchronous methods",
        RECORD,
        CAMPAIGN,
        resizes.make,
        resizes.judge_synchronous,
        resizes.draw_synchronous,
    ),
    Figure(
        "proteo-10",
        "Reconfiguration times of CG",
        RECORD,
        CAMPAIGN,
        resizes.make,
        resizes.judge_times,
        resizes.draw_times,
    ),
    Figure(
        "proteo-11",
        "Reconfiguration times of the emulation over CG's",
        RECORD,
        BOTH,
        resizes.make,
        resizes.judge_reconfiguration_quotients,
        resizes.draw_reconfiguration_quotients,
    ),
    Figure(
        "proteo-12",
        "Speedup of CG over Baseline-COLS",
        RECORD,
        CAMPAIGN,
        resizes.make,
        resizes.judge_speedups,
        resizes.draw_speedups,
    ),
    Figure(
        "proteo-13",
        "Execution times of the emulation with a resize over CG's",
        RECORD,
        BOTH,
        resizes.make,
        resizes.judge_execution_quotients,
        resizes.draw_execution_quotients,
    ),
    Figure(
        "proteo-13-matrices",
        "Execution time with a resize of the emulation over CG's, on several matrices",
        RECORD,
        SOLVER,
        emulator.make,
        emulator.judge_resized,
        emulator.draw_resized,
    ),
    Figure(
        "proteo-14",
        "Best methods of CG, and of its emulation",
        RECORD,
        BOTH,
        resizes.make,
        resizes.judge_best,
        resizes.draw_best,
    ),
)
