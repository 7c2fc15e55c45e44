"""CLARISSE's Figs. 10 and 15, live: the removal of a slow I/O server, and what an uncontended grant costs.

The programs are those of `./dev bench elastic` and `./dev bench grant`.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from hocket.errors import HocketError

from reproduce import plots
from reproduce.figure import AGREES, DIFFERS, Finding, Options, Results, Value, agreement

ATTEMPTS = 4
MOST_AFTER = 1.2  # of an operation before the load
OPERATION_S = 1.0  # shortest operation that the paper's bound of the overhead is for
MOST_OVERHEAD, MOST_CONTROL, LEAST_SPEEDUP = 0.0002, 0.003, 3.59


def make_elastic(_: Options) -> Results:
    import elastic

    for program in (elastic.PROBE, elastic.PREFIX / "bin" / "hocket-server"):
        if not program.exists():
            raise HocketError(f"no {program}: run ./dev build")
    for _attempt in range(ATTEMPTS):
        run = elastic.one_run()
        if run:
            return {"before": run.before, "slow": run.slow, "after": run.after, "computed_s": run.computed_s}
    raise HocketError(f"in {ATTEMPTS} runs the slow server was not the first one taken out: is the machine busy?")


def judge_elastic(results: Results) -> Finding:
    before, slow, after = (median(results[key]) for key in ("before", "slow", "after"))
    control = results["computed_s"] / before
    values = (
        Value("operation with the slow server / after its removal", "", "3.59 to 4.73 (Fig. 11)", slow / after),
        Value("operation after the removal / before the load", "", "about 1", after / before),
        Value("operations until the removal", "", 2, len(results["slow"])),
        Value("computing of the control plane / operation", "", "less than 0.003 (Fig. 11)", control),
    )
    checks = [slow / after >= LEAST_SPEEDUP, after / before <= MOST_AFTER, control <= MOST_CONTROL]
    verdict = (
        "The slow server is found and taken out. "
        + (
            "The following operations are as fast as before. "
            if after / before <= MOST_AFTER
            else "Other work on this machine hides the rest: operations after it are slower than before the load. "
        )
        + "How much a delay of 512 µs a request costs depends on how many requests an operation is for a server: there "
        "are few and large ones here, so the load costs much less than on Blue Gene/Q."
    )
    return Finding(values, agreement(checks), verdict)


def draw_elastic(results: Results, path: Path) -> None:
    with plots.picture(path, 1) as (axis,):
        at = 1
        for number, key in enumerate(("before", "slow", "after")):
            values = results[key]
            label = {"before": "before the load", "slow": "with the slow server", "after": "without it"}[key]
            axis.bar(
                range(at, at + len(values)), [one * 1e3 for one in values], color=plots.SERIES[number], label=label
            )
            at += len(values)
        plots.finish(axis, "collective writes, four ranks and four servers", "operation", "ms")


def make_grant(_: Options) -> Results:
    import run

    try:
        lines, _ended_well = run.run("grant", echo=False)
    except OSError as error:
        raise HocketError(f"cannot run bench grant: {error}; run ./dev build") from error
    if not lines:
        raise HocketError("bench grant printed nothing: run ./dev bench grant")
    return {line["case"]: {"value": line["value"], "unit": line["unit"]} for line in lines}


def seconds_of(one: Results) -> float:
    return one["value"] * {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9}[one["unit"]]


def judge_grant(results: Results) -> Finding:
    shares = {case: seconds_of(one) / OPERATION_S for case, one in results.items()}
    values = tuple(
        Value(f"{case}: grant / operation of 1 s", "", "less than 0.0002", share) for case, share in shares.items()
    )
    verdict = (
        "One grant for an operation of 1 s, through a real hocketd over a Unix socket. The paper's clients ask a "
        "controller over the network of a Blue Gene/Q, which is not in these figures."
    )
    return Finding(values, AGREES if max(shares.values()) <= MOST_OVERHEAD else DIFFERS, verdict)


def draw_grant(results: Results, path: Path) -> None:
    with plots.picture(path, 1) as (axis,):
        names = [case.replace(", ", "\n") for case in results]
        plots.bars(axis, names, {"hocket": [1e2 * seconds_of(one) / OPERATION_S for one in results.values()]})
        plots.paper_line(axis, 1e2 * MOST_OVERHEAD, "paper: less than 0.02 %")
        plots.finish(axis, "grant beside an operation of 1 s", "", "%")
