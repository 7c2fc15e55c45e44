"""GekkoFWD: how many I/O servers each application should have.

Figs. 2 and 3 are made from made-up curves (gekkofwd_curves.py, gekkofwd_sets.py), Table 4 and what Figs. 6 and 8 have
from it with the paper's numbers (gekkofwd_table4.py). Figs. 1 and 5 to 9 are live and small (gekkofwd_live.py,
gekkofwd_applications.py, gekkofwd_queue.py), Fig. 9 is also simulated at the paper's size.
"""

from __future__ import annotations

from reproduce import gekkofwd_applications, gekkofwd_live, gekkofwd_queue, gekkofwd_sets, gekkofwd_table4
from reproduce.figure import FORMULA, LIVE, SIMULATOR, Figure, drawing

MADE_UP = "189 made-up curves (bench/reproduce/gekkofwd_curves.py), chosen by hand to come near the text's values"
NUMBERS = "the numbers of Tables 3 and 4, and `hocket arbitrate`'s own policies"
HERE = gekkofwd_applications.HERE

FIGURES = (
    drawing("gekkofwd-table1", "Machines with I/O forwarding", "nothing: it lists machines of others"),
    Figure(
        "gekkofwd-1",
        "Bandwidth of eight access patterns by number of I/O servers",
        LIVE,
        "the patterns of Table 2 with one process for a node, on this machine's disk, with O_DIRECT",
        gekkofwd_live.make_patterns,
        gekkofwd_live.judge_patterns,
        gekkofwd_live.draw_patterns,
    ),
    drawing("gekkofwd-table2", "Access patterns of Fig. 1", "scenarios/patterns/gekkofwd-table2.toml"),
    Figure(
        "gekkofwd-2",
        "Median bandwidth of 10,000 sets of 16 applications, by policy",
        FORMULA,
        MADE_UP,
        gekkofwd_sets.make,
        gekkofwd_sets.judge_median,
        gekkofwd_sets.draw_median,
    ),
    Figure(
        "gekkofwd-3",
        "Improvement of MCKP over STATIC",
        FORMULA,
        MADE_UP,
        gekkofwd_sets.make,
        gekkofwd_sets.judge_gain,
        gekkofwd_sets.draw_gain,
    ),
    drawing("gekkofwd-4", "Deployment of the forwarding layer", "docs/design/forwarding.md"),
    drawing("gekkofwd-table3", "Setup and I/O of the applications", "scenarios/workloads/gekkofwd-queue.toml"),
    Figure(
        "gekkofwd-5",
        "Bandwidth of each application by number of I/O servers",
        LIVE,
        HERE,
        gekkofwd_applications.make_curves,
        gekkofwd_applications.judge_curves,
        gekkofwd_applications.draw_curves,
    ),
    Figure(
        "gekkofwd-6",
        "Bandwidth of six applications under each policy, 12 I/O servers",
        FORMULA,
        NUMBERS,
        gekkofwd_table4.make,
        gekkofwd_table4.judge_sums,
        gekkofwd_table4.draw_sums,
    ),
    Figure(
        "gekkofwd-6-live",
        "Six applications under each policy by number of I/O servers, with the curves of gekkofwd-5",
        LIVE,
        HERE,
        gekkofwd_applications.make_pools,
        gekkofwd_applications.judge_sums,
        gekkofwd_applications.draw_sums,
    ),
    Figure(
        "gekkofwd-7",
        "Each application under MCKP beside its best alone, with the curves of gekkofwd-5",
        LIVE,
        HERE,
        gekkofwd_applications.make_pools,
        gekkofwd_applications.judge_alone,
        gekkofwd_applications.draw_alone,
    ),
    Figure(
        "gekkofwd-8",
        "STATIC and MCKP for each application, 12 I/O servers",
        FORMULA,
        NUMBERS,
        gekkofwd_table4.make,
        gekkofwd_table4.judge_differences,
        gekkofwd_table4.draw_differences,
    ),
    Figure(
        "gekkofwd-8-live",
        "STATIC and MCKP by number of I/O servers, with the curves of gekkofwd-5",
        LIVE,
        HERE,
        gekkofwd_applications.make_pools,
        gekkofwd_applications.judge_differences,
        gekkofwd_applications.draw_differences,
    ),
    Figure(
        "gekkofwd-table4",
        "Servers and bandwidth of six applications",
        FORMULA,
        NUMBERS,
        gekkofwd_table4.make,
        gekkofwd_table4.judge_table,
        gekkofwd_table4.draw_differences,
    ),
    Figure(
        "gekkofwd-9",
        "Queue of 14 jobs under ONE, STATIC, SIZE and MCKP",
        SIMULATOR,
        "scenarios/workloads/gekkofwd-paper-size.toml; 24 of 36 points of the curves are assumed",
        gekkofwd_queue.make_simulated,
        gekkofwd_queue.judge_simulated,
        gekkofwd_queue.draw,
    ),
    Figure(
        "gekkofwd-9-live",
        "Queue of 14 jobs, live and small, with the curves of gekkofwd-5",
        LIVE,
        HERE,
        gekkofwd_queue.make_live,
        gekkofwd_queue.judge_live,
        gekkofwd_queue.draw,
    ),
)
