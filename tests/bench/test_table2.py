"""Table 2 live: what is made of the scenario, what a trace says, and a small run with the real programs."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from checkout import REPO
from hocket.bus import make_event
from hocket.emulator.description import read_description
from hocket.errors import HocketError, UsageError
from hocket.toml_text import tables_text
from hocket.trace import Trace
from hocket.workload.simulated_cores import curve_of

sys.path.insert(0, str(REPO / "bench"))

import table2
import table2_figures as figures
import table2_live as live
import table2_scaled as scaled
from reproduce import flexmpi_live
from reproduce.figure import AGREES, DIFFERS

FASTER = 10.0
ORIGINAL = scaled.read(36)
SCENARIO = scaled.scaled(ORIGINAL, FASTER, 100.0)
PAIRS = list(zip(ORIGINAL["applications"], SCENARIO["applications"], strict=True))


def period_s(one: dict, at: int) -> float:
    return one["curve"][at][1] * one["iterations_per_phase"]


@pytest.mark.parametrize(("original", "made"), PAIRS, ids=[one["name"] for one, _ in PAIRS])
def test_times_are_divided_and_flop_rates_stay(original: dict, made: dict):
    for at in range(len(original["curve"])):
        assert period_s(made, at) * FASTER == pytest.approx(period_s(original, at))
        rates = [one["flop_per_iteration"] / one["curve"][at][1] for one in (original, made)]
        assert rates[0] == pytest.approx(rates[1])
    shares = [one["io_bytes"] / scaled.bandwidth_of(of) for one, of in ((original, ORIGINAL), (made, SCENARIO))]
    assert shares[1] * FASTER == pytest.approx(shares[0], rel=1e-5)
    assert made["jitter"] == original["jitter"] and made["processes"] == original["processes"]


@pytest.mark.parametrize("made", SCENARIO["applications"], ids=lambda one: one["name"])
def test_rates_of_processes_and_of_the_target_give_the_scenario_s_io_curve(made: dict):
    for size, seconds in made["io_curve"]:
        assert scaled.io_alone_s(made, size, scaled.bandwidth_of(SCENARIO)) == pytest.approx(seconds, rel=1e-3)


@pytest.mark.parametrize("made", SCENARIO["applications"], ids=lambda one: one["name"])
def test_the_description_sleeps_and_writes_as_the_scenario_says(made: dict, tmp_path: Path):
    path = tmp_path / "app.toml"
    path.write_text(scaled.description(made))
    described = read_description(path)
    assert described.name == made["name"] and described.groups[0].processes == made["processes"]
    compute, write = described.stages
    assert compute.kind == "sleep" and not any(stage.burns for stage in described.stages)
    assert (write.bytes, write.every) == (made["io_bytes"], made["iterations_per_phase"])
    sizes = [size for size, _ in made["curve"]]
    for (size, seconds), (_, expected) in zip(curve_of(described, sizes), made["curve"], strict=True):
        assert seconds == pytest.approx(expected), size
    points = scaled.profile(made, scaled.bandwidth_of(SCENARIO))
    assert [(one.processes, one.iteration_s) for one in points] == [tuple(each) for each in made["curve"]]


def test_the_simulator_gets_the_scaled_scenario():
    assert tomllib.loads(tables_text(SCENARIO)) == SCENARIO
    assert scaled.cores_of(SCENARIO) == 36 and SCENARIO["reconfiguration"]["fixed_s"] == pytest.approx(0.1)


def test_a_size_without_a_scenario_is_one_line():
    with pytest.raises(UsageError, match=r"table2-37\.toml: No such file"):
        scaled.read(37)


# ---- figures from a trace --------------------------------------------------------------------------------------------

SECOND = 1_000_000_000
TWO = {"applications": [{"name": "A1", "flop_per_iteration": 5e6}]}


def trace_of(*phases: tuple[float, float, int]) -> Trace:
    """Return a trace with an I/O phase for each (end, wait, iterations done). Its I/O takes 0.5 s."""
    hello = {"job": "j", "application_asked": "A1", "processes": 4}
    events = [("HELLO", 0, hello), ("WELCOME", 0, {"application_given": "A1", "app": 1})]
    for index, (end_s, wait_s, iteration) in enumerate(phases):
        end_ns = round(end_s * SECOND)
        told = {"index": index, "end_ns": end_ns, "io_ns": SECOND // 2, "wait_ns": round(wait_s * SECOND)}
        told |= {"start_ns": end_ns - told["io_ns"] - told["wait_ns"], "iteration": iteration, "processes": 4}
        events.append(("IO_PHASE", end_ns, told))
    made = [
        make_event(kind, {"time_ns": at_ns, "member": 2, "application": "A1", **told}) for kind, at_ns, told in events
    ]
    return Trace(Path("trace"), "n", "0", 0, 0, events=made)


def test_rates_are_those_between_the_first_and_the_last_phase_of_the_window():
    trace = trace_of((1, 0, 1), (10, 9, 8), (14, 0.5, 16), (20, 1.5, 24), (23, 0, 32), (31, 3, 40))
    found = figures.figures_of(trace, TWO, 9 * SECOND, 30 * SECOND).applications["A1"]
    assert found.flops == pytest.approx(24 * 5e6 / 13)
    assert (found.delay_s, found.io_s, found.periods) == (pytest.approx(2 / 3), pytest.approx(0.5), 3)
    assert found.period_s == pytest.approx(13 / 3)
    of_scenario = figures.medians([figures.figures_of(trace, TWO, 9 * SECOND, 30 * SECOND)], FASTER)["A1"]
    assert of_scenario["delay_s"] == pytest.approx(20 / 3) and of_scenario["flops"] == found.flops


def test_a_window_without_periods_and_an_application_that_never_came_are_named():
    with pytest.raises(HocketError, match="A1 has 1 whole periods in the 5 s that are measured, and needs 2"):
        figures.figures_of(trace_of((1, 0, 1), (2, 0, 2), (9, 0, 9)), TWO, 0, 5 * SECOND)
    with pytest.raises(HocketError, match="A2 is not there"):
        figures.figures_of(trace_of((1, 0, 1)), {"applications": [{"name": "A2"}]}, 0, SECOND)


# ---- what is said of them --------------------------------------------------------------------------------------------


def results(*flops: float) -> dict:
    """Return results of 36 cores; live FLOP rates are those of fair, speedup, and io-aware."""

    def of(rate: float) -> dict:
        each = {"processes": 8, "flops": rate / 2, "delay_s": 1.0, "io_s": 1.0, "period_s": 9.0, "period_spread_s": 0}
        return {"A1": each, "A2": each}

    about = {"simulated_spread": {"flops": [1, 2], "delay_s": [1, 2]}, "runs": 1, "late_resizes": [0]}
    about |= {"cpu_cores": [0.3], "load": [1.0]}
    policies = dict(zip(flexmpi_live.PAPER_ORDER, flops, strict=True))
    return {
        "sizes": {"36": {name: {"live": of(rate), "simulated": of(2e10), **about} for name, rate in policies.items()}}
    }


def test_the_paper_s_order_is_judged_by_live_rates():
    assert flexmpi_live.judge(results(1e10, 2e10, 3e10)).agreement == AGREES
    differs = flexmpi_live.judge(results(3e10, 2e10, 1e10))
    assert differs.agreement == DIFFERS and "0.50 to 1.50 times the simulator's" in differs.verdict


def test_the_table_and_the_lines_have_each_application(capsys: pytest.CaptureFixture):
    told = results(1e10, 2e10, 3e10)
    rows = table2.table(told).splitlines()[1:]
    assert len([row for row in rows if row.startswith("36")]) == 3 * 3
    assert "10" in next(row for row in rows if "fair" in row and "all" in row)
    table2.tell(told)
    assert len(capsys.readouterr().out.splitlines()) == 3 * 2 * 3


def test_the_picture_can_be_drawn(tmp_path: Path):
    flexmpi_live.draw(results(1e10, 2e10, 3e10), tmp_path / "table2.png")
    assert (tmp_path / "table2.png").stat().st_size > 1000


# ---- the runs --------------------------------------------------------------------------------------------------------


def test_a_campaign_resumes_with_the_runs_that_are_missing(tmp_path: Path, capsys: pytest.CaptureFixture):
    campaign = table2.Campaign(sizes=(36,), policies=("fair", "speedup"), repetitions=2)
    runs = campaign.runs_in(tmp_path)
    one = figures.Rates(8, 1e9, 0.1, 0.2, 2.0, 0.01, 40)
    for job in campaign.jobs()[:3]:
        runs.add(table2.Run(job, figures.Figures({"A1": one}, 0), 0.3, 1.0))
    again = campaign.runs_in(tmp_path)
    assert again.runs == runs.runs and campaign.left(again) == [table2.Job(36, "speedup", 1)]
    words = ["--cores", "36", "--policies", "fair,speedup", "--runs", "2", "--output", str(tmp_path)]
    assert table2.main([*words, "--plan"]) == 0
    assert "1 of 4 runs left, about 2 min 30 s: next 36 cores, speedup" in capsys.readouterr().out
    assert table2.main([*words, "--plan", "--faster", "20"]) == 1
    assert "runs of other table2 runs or settings" in capsys.readouterr().err


SMALL = {
    "platform": {"nodes": 1, "cores_per_node": 4},
    "targets": [{"name": "gpfs", "bandwidth_bytes_per_s": 20e6}],
    "coordinator": {"policy": "fcfs+fair", "linger_s": 0.01, "reconfiguration_s": 0.1},
    "applications": [
        {
            "name": name,
            "processes": 1,
            "iterations": 1_000_000,
            "iterations_per_phase": 4,
            "curve": [[1, 0.2], [2, 0.1]],
            "io_bytes": 400_000,
            "io_curve": [[1, 0.2], [2, 0.1]],
            "jitter": 0.02,
            "flop_per_iteration": 1e9,
        }
        for name in ("A1", "A2")
    ],
}


@pytest.mark.timeout(120)
def test_two_emulated_applications_share_four_cores(prefix: Path, tmp_path: Path):
    """Fair sharing doubles each of them, and the trace has their rates. FLOP/s at 2 processes: at most 10 GFLOP/s."""
    made = live.run(SMALL, "fair", live.Window(8, 10), tmp_path / "trace.jsonl")
    assert [one.processes for one in made.figures.applications.values()] == [2, 2]
    for one in made.figures.applications.values():
        assert 1e9 < one.flops < 8.01e9, one  # 4 iterations in 0.4 s of computing and 0.1 s of I/O
        assert one.io_s >= 0.08, one
    assert made.cpu_cores > 0
