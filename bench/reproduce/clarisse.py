"""CLARISSE: elastic collective I/O, and first-come-first-served scheduling of two applications.

The figures of both are made in the simulator at the paper's scale (clarisse_elastic.py, clarisse_pairs.py), and live,
much smaller, where the machine can (clarisse_live.py).
"""

from __future__ import annotations

from reproduce import clarisse_elastic, clarisse_live, clarisse_pairs
from reproduce.clarisse_scale import STRONG_BYTES
from reproduce.figure import LIVE, SIMULATOR, Figure, drawing

SERVERS = "simulated servers; requests of at most 16 KiB, whose time at a server is calibrated at 1,920 clients"
PARALLEL = "an assumed jitter of 1 %; simulated servers as in clarisse-8, which both applications share"


def _elastic(number: int, kernel: str, title: str) -> Figure:
    return Figure(
        f"clarisse-{number}",
        f"Elastic collective I/O: {title}",
        SIMULATOR,
        SERVERS,
        lambda _: clarisse_elastic.make_elastic(kernel),
        lambda results: clarisse_elastic.judge_elastic(results, kernel),
        lambda results, path: clarisse_elastic.draw_elastic(results, kernel, path),
    )


def _kernels(number: int, title: str, first_kernel: str, second_kernel: str) -> Figure:
    first, second = STRONG_BYTES[first_kernel], STRONG_BYTES[second_kernel]
    return Figure(
        f"clarisse-{number}",
        f"fcfs scheduling: {title}",
        SIMULATOR,
        PARALLEL + "; the ratio of I/O to computing at each size is VPIC's beside VORPAL",
        lambda _: clarisse_pairs.make_kernels(first, second),
        lambda results: clarisse_pairs.judge_kernels(results, first != second),
        clarisse_pairs.draw_kernels,
    )


FIGURES = (
    drawing("clarisse-1", "Mapping of the I/O software stack", "docs/data-plane.md"),
    drawing("clarisse-2", "Data path of two applications", "docs/data-plane.md"),
    drawing("clarisse-3", "Data, control and policy", "ARCHITECTURE.md"),
    drawing("clarisse-4", "Control backplane", "docs/design/bus.md"),
    drawing("clarisse-5", "View-based and list-based collective I/O", "docs/design/collective-io.md"),
    drawing("clarisse-6", "Elastic collective I/O protocol", "docs/design/io-servers.md"),
    drawing("clarisse-7", "FCFS parallel I/O scheduling", "docs/design/arbitration.md"),
    drawing("clarisse-table1", "Published information", "docs/design/bus.md"),
    drawing("clarisse-table2", "Benchmark parameters", "bench/reproduce/clarisse_scale.py"),
    Figure(
        "clarisse-8",
        "Server load injection, 0 to 512 µs",
        SIMULATOR,
        SERVERS,
        clarisse_elastic.make_load,
        clarisse_elastic.judge_load,
        clarisse_elastic.draw_load,
    ),
    Figure(
        "clarisse-9",
        "Throughput by number of removed servers",
        SIMULATOR,
        SERVERS,
        clarisse_elastic.make_removed,
        clarisse_elastic.judge_removed,
        clarisse_elastic.draw_removed,
    ),
    Figure(
        "clarisse-10",
        "Removal of a slow server while an application writes",
        SIMULATOR,
        SERVERS,
        clarisse_elastic.make_timeline,
        clarisse_elastic.judge_timeline,
        clarisse_elastic.draw_timeline,
    ),
    _elastic(11, "S-IOR", "S-IOR at four sizes"),
    _elastic(12, "VPIC", "VPIC"),
    _elastic(13, "VORPAL", "VORPAL"),
    *clarisse_live.FIGURES,
    Figure(
        "clarisse-14",
        "fcfs scheduling: two S-IOR",
        SIMULATOR,
        PARALLEL,
        clarisse_pairs.make_sior,
        clarisse_pairs.judge_sior,
        clarisse_pairs.draw_sior,
    ),
    Figure(
        "clarisse-15",
        "Overhead of an uncontended grant",
        LIVE,
        "./dev bench grant, on this machine",
        clarisse_live.make_grant,
        clarisse_live.judge_grant,
        clarisse_live.draw_grant,
    ),
    Figure(
        "clarisse-16",
        "Timeline of two S-IOR without and with fcfs",
        SIMULATOR,
        PARALLEL,
        clarisse_pairs.make_timeline,
        clarisse_pairs.judge_timeline,
        clarisse_pairs.draw_timeline,
    ),
    _kernels(17, "two VPIC", "VPIC", "VPIC"),
    _kernels(18, "two VORPAL", "VORPAL", "VORPAL"),
    _kernels(19, "VPIC with VORPAL", "VPIC", "VORPAL"),
)
