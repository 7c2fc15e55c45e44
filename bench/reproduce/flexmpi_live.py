"""CLARISSE+FlexMPI's Table 2 live: FLOP rates and delays of emulated applications beside the simulator's.

The runs are those of `./dev bench table2`. If it was interrupted, it resumes with the runs that are missing.
"""

from __future__ import annotations

from pathlib import Path

from table2_figures import total

from reproduce import plots
from reproduce.figure import LIVE, Figure, Finding, Options, Results, Value, agreement
from reproduce.gekkofwd_live import kept_in

PAPER_ORDER = ("fair", "speedup", "io-aware")  # from the fewest FLOP/s to the most
PLACES = ("live", "simulated")
KEYS = {"flops": ("FLOP rate", "GFLOP/s", 1e9), "delay_s": ("delay in a period", "s", 1.0)}


def make(_: Options) -> Results:
    import table2

    return table2.measure(table2.Campaign(), kept_in("table2"))


def order(policies: Results, place: str) -> list[str]:
    """Return the paper's policies by FLOP rate, the best first."""
    return sorted(PAPER_ORDER, key=lambda policy: total(policies[policy][place], "flops"), reverse=True)


def judge(results: Results) -> Finding:
    values, good, ratios, same = [], [], [], []
    for cores, policies in results["sizes"].items():
        for place in PLACES:
            found = ", ".join(order(policies, place))
            values.append(Value(f"{cores} cores, {place}: best to worst", "", ", ".join(reversed(PAPER_ORDER)), found))
        good.append(order(policies, "live") == list(reversed(PAPER_ORDER)))
        for policy, one in policies.items():
            sizes = [", ".join(f"{each['processes']:g}" for each in one[place].values()) for place in PLACES]
            same.append(sizes[0] == sizes[1])
            values.append(Value(f"{cores} cores, {policy}: processes, live / simulated", "", None, " / ".join(sizes)))
            for key, (what, unit, scale) in KEYS.items():
                told = " / ".join(f"{total(one[place], key) / scale:.3g}" for place in PLACES)
                values.append(Value(f"{cores} cores, {policy}: {what}, live / simulated", unit, None, told))
            ratios.append(total(one["live"], "flops") / total(one["simulated"], "flops"))
    verdict = (
        f"Live FLOP rates are {min(ratios):.2f} to {max(ratios):.2f} times the simulator's, with ranks that sleep on "
        f"few cores. {sum(same)} of {len(same)} allocations are the same. The paper's order of the policies is judged "
        "here; where the simulator has another one, the assumptions of the scenarios decide it (flexmpi-19)."
    )
    return Finding(tuple(values), agreement(good), verdict)


def draw(results: Results, path: Path) -> None:
    """Draw the applications' parts of each policy's sum, simulated beside live."""
    sizes = results["sizes"]
    with plots.picture(path, 2, len(sizes)) as axes:
        for row, (cores, policies) in enumerate(sizes.items()):
            for column, (key, (what, unit, scale)) in enumerate(KEYS.items()):
                axis = axes[2 * row + column]
                _bars(axis, policies, key, scale)
                plots.finish(axis, f"{cores} cores: {what}", "left: simulated; right: live", unit, key=False)
                if row == column == 0:
                    axis.legend(frameon=False, fontsize=9, ncols=4, loc="upper left")


def _bars(axis: plots.Axes, policies: Results, key: str, scale: float) -> None:
    names = list(next(iter(policies.values()))["live"])
    for at, one in enumerate(policies.values()):
        for side, place in ((-0.2, "simulated"), (0.2, "live")):
            bottom = 0.0
            for number, name in enumerate(names):
                value = one[place][name][key] / scale
                faint = {"alpha": 0.55} if place == "simulated" else {}
                axis.bar(at + side, value, 0.36, bottom=bottom, color=plots.colour(number), **faint)
                bottom += value
            axis.text(at + side, bottom, f"{bottom:.3g}", ha="center", va="bottom", fontsize=8)
    for number, name in enumerate(names):
        axis.bar(0, 0, color=plots.colour(number), label=name)
    axis.set_xticks(range(len(policies)), list(policies))
    axis.margins(y=0.25)  # room for the key above the bars


FIGURES = (
    Figure(
        "flexmpi-19-live",
        "Figs. 18 and 19 live: Table 2 with timed ranks",
        LIVE,
        "emulated applications with 28 to 82 ranks on this machine (./dev bench table2), time divided by 5",
        make,
        judge,
        draw,
    ),
)
