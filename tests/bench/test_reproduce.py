"""`./dev reproduce`: selection, the cache, the page, and what is said of results."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest
from checkout import REPO
from hocket.errors import UsageError

sys.path.insert(0, str(REPO / "bench"))

from hocket.sim.swf import Job
from reproduce import (
    calciom,
    calciom_cache,
    calciom_jobs,
    calciom_rounds,
    clarisse_elastic,
    clarisse_live,
    clarisse_pairs,
    clarisse_scale,
    flexmpi_sharing,
    page,
)
from reproduce.cache import Cache, state_of
from reproduce.figure import AGREES, DIFFERS, PARTLY, Figure, Finding, Options, Value, agreement, drawing, missing, near
from reproduce.registry import FIGURES, PAPERS, select
from reproduce.scenarios import Scenario

MADE = Figure(
    "calciom-1", "a <title>", "simulator", "nothing", lambda _: {}, lambda _: Finding((), AGREES, ""), lambda *_: None
)
SOME = (MADE, drawing("calciom-5", "a drawing", "docs"), missing("clarisse-8", "absent", "a model"))


def test_each_figure_is_listed_once_and_is_whole():
    names = [one.identity for one in FIGURES]
    assert len(names) == len(set(names))
    assert {one.paper for one in FIGURES} <= set(PAPERS)
    for one in FIGURES:
        assert one.title and one.needs
        assert (one.make is None) == (one.judge is None) == (one.draw is None)
        assert one.can_be_made == (one.how not in ("drawing", "missing")), one.identity


def test_a_paper_or_all_selects_what_can_be_made():
    assert select(["all"], SOME) == select(["calciom"], SOME) == select(["calciom-1", "all"], SOME) == [MADE]
    assert select(["clarisse"], SOME) == []


@pytest.mark.parametrize(
    ("name", "told"),
    [("calcium-1", "did you mean 'calciom-1'"), ("nonsense", "lists what there is"), ("clarisse-8", "a model")],
)
def test_what_cannot_be_selected_is_refused_with_a_hint(name, told):
    with pytest.raises(UsageError, match=told):
        select([name], SOME)


def test_results_are_kept_for_the_same_options_only(tmp_path):
    cache, other = Cache(tmp_path / "new"), Options(swf=tmp_path / "log.swf")
    assert cache.load(MADE, Options()) is None
    cache.save(MADE, Options(), {"x": 1})
    assert cache.load(MADE, Options()) == {"x": 1}
    assert cache.load(MADE, other) is None
    cache.path(MADE).write_text('{"results"')
    assert cache.load(MADE, Options()) is None


def test_the_state_of_the_sources_changes_with_each_file(tmp_path):
    def git(*words: str) -> None:
        who = ("-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", tmp_path, *who, *words], check=True, capture_output=True)

    assert state_of(tmp_path / "absent") == "unknown"
    git("init")
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-m", "first")
    states = [state_of(tmp_path)]
    (tmp_path / "a").write_text("2")
    states.append(state_of(tmp_path))
    (tmp_path / "b").write_text("3")
    states.append(state_of(tmp_path))
    assert len(set(states)) == 3
    assert all(one.startswith(states[0]) for one in states)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "\N{EN DASH}"), ("low", "low"), (0.054321, "0.05432"), (1234.5, "1,234"), (14.0, "14")],
)
def test_numbers_have_the_digits_that_matter(value, text):
    assert page.number(value) == text


def test_the_page_has_paper_and_own_values_and_is_self_contained():
    finding = Finding((Value("factor", "x", 14.0, 13.9, calibrated=True), Value("b", "", None, 2.0)), DIFFERS, "a & b")
    text = page.page([page.Shown(MADE, finding, b"png")], SOME, PAPERS, "abc123")
    assert "<td>14</td><td>13.9</td><td>x</td><td>calibrated</td>" in text
    assert "a &lt;title&gt;" in text and "a &amp; b" in text and "1 differ." in text and "abc123" in text
    assert "data:image/png;base64,cG5n" in text
    assert "http" not in text
    for one in SOME:
        assert one.identity in text


def test_a_scenario_is_valid_toml():
    scenario = Scenario({"bandwidth_bytes_per_s": 1e9}, [calciom_rounds.application("A", 3.0)], {"seed": 2})
    read = tomllib.loads(scenario.text())
    assert read["seed"] == 2 and read["platform"]["cores_per_node"] == calciom_rounds.PROCESSES
    assert read["applications"][0]["phases"][0]["operations"] == calciom_rounds.BLOCKS


def test_shares_of_jobs_by_count_and_by_time():
    jobs = [Job(1, 0, 30, 100), Job(2, 0, 10, 2048), Job(3, 5, 60, 4096)]
    assert calciom_jobs.share_up_to(jobs, 2048, by_time=False) == pytest.approx(2 / 3)
    assert calciom_jobs.share_up_to(jobs, 2048, by_time=True) == pytest.approx(0.4)
    found = calciom_jobs.sizes(jobs)
    assert [size for size, _, _ in found] == [128, 2048, 4096]
    assert sum(of_time for _, _, of_time in found) == pytest.approx(1)


def test_the_paper_s_64_percent_are_20_jobs():
    assert calciom_jobs.jobs_needed(0.64, 0.05) == pytest.approx(19.9, abs=0.1)


def test_a_slow_write_loses_a_fifth():
    assert calciom_cache.slow([10, 7.9, 8.1, 2], [10, 10, 10, 10]) == [2, 4]


def test_the_limit_of_a_process_gives_the_calibrated_factor():
    share = calciom.PROCESS_SHARE * calciom.SMALL  # of the target, alone
    beside = calciom.SMALL / calciom.CORES
    assert share / beside == pytest.approx(calciom.PAPER_FACTOR)


def points(*rows: tuple[float, float, float, int]) -> dict:
    keys = ("dt_s", "a_s", "b_s", "stops")
    return [dict(zip(keys, row, strict=True)) | {"a": row[1] / 4, "b": row[2]} for row in rows]


@pytest.mark.parametrize(("last", "agreement"), [(3.0, AGREES), (2.0, DIFFERS)])
def test_the_dynamic_choice_must_change_where_the_paper_says(last, agreement):
    dynamic = points(*((dt, 5.0, 1.0, int(dt <= last)) for dt in (0.0, 1.0, 2.0, 3.0, 3.5)))
    interfere = points(*((dt, 5.0, 2.0, 0) for dt in (0.0, 1.0, 2.0, 3.0, 3.5)))
    made = {"alone_s": [4.0, 1.0], "points": {"dynamic": dynamic, "interfere": interfere}}
    assert calciom.judge_choice({"graph": made}).agreement == agreement


def test_the_saw_has_a_tooth_for_each_jump():
    made = {
        "alone_s": [4.0, 1.0],
        "points": {"interrupt": points(*((dt / 4, 5.0, 2 - dt % 4 / 4, 1) for dt in range(16)))},
    }
    assert calciom.teeth(made) == 3


def test_a_delay_that_never_pays_is_said():
    rows = points(*((dt / 10, 6.0 - dt / 20, 6.0 - dt / 20, 0) for dt in range(11)))
    finding = calciom.judge_delays({"graph": {"alone_s": [4.0, 4.0], "points": {"interfere": rows}}})
    assert finding.agreement == PARTLY
    assert finding.values[0].ours == 0


def test_agreement_is_all_some_or_none():
    assert [agreement(checks) for checks in ([True, True], [True, False], [False])] == [AGREES, PARTLY, DIFFERS]
    assert near(-0.44, -0.49, 0.11) and not near(-0.44, -0.49)


def test_the_one_that_grows_is_named():
    assert flexmpi_sharing.winners([14, 8, 8, 6]) == {"A1"}


@pytest.mark.parametrize("cores", flexmpi_sharing.SIZES)
def test_an_assumption_of_table_2_changes_alone(cores):
    text = (flexmpi_sharing.SCENARIOS / f"table2-{cores}.toml").read_text()
    original = tomllib.loads(text)
    changed = {name: tomllib.loads(change(text)) for name, change in flexmpi_sharing.VARIANTS.items()}
    for one, *others in zip(
        original["applications"], *(each["applications"] for each in changed.values()), strict=True
    ):
        flat, steep, ideal, both, *jitters = others
        assert flat["io_curve"] == one["io_curve"][:1]
        assert all(size * s == pytest.approx(one["processes"] * one["io_curve"][0][1]) for size, s in steep["io_curve"])
        assert [each["jitter"] for each in jitters] == [0, 0.2]
        first, first_s = one["curve"][0]
        assert all(size * s == pytest.approx(first * first_s) for size, s in ideal["curve"])
        assert (both["curve"], both["io_curve"]) == (ideal["curve"], flat["io_curve"])
        for key in set(one) - {"io_curve", "curve", "jitter"}:
            assert all(other[key] == one[key] for other in others), key


def test_seconds_of_a_benchmark_line_have_its_unit():
    assert clarisse_live.seconds_of({"value": 52.0, "unit": "µs"}) == pytest.approx(52e-6)


def test_a_busy_machine_is_said():
    quiet = {"before": [1.0], "slow": [4.0, 4.0], "after": [1.0], "control_s": 0.001}
    assert clarisse_live.judge_elastic(quiet).agreement == AGREES
    busy = clarisse_live.judge_elastic(quiet | {"slow": [6.0], "after": [1.5]})
    assert busy.agreement == PARTLY and "Other work" in busy.verdict


def of_runs(median: float) -> dict:
    return {"median": median, "least": median, "most": median}


def test_a_load_that_costs_too_little_is_said_to_be_of_a_busy_machine():
    def sweep(slowest: float) -> dict:
        factors = {"0": 1.0, "32": 1.1, "128": 1.5, "512": slowest}
        return {delay: {"before": of_runs(0.01), "stays": of_runs(0.01 * one)} for delay, one in factors.items()}

    assert clarisse_live.judge_load(sweep(3.5)).agreement == AGREES
    busy = clarisse_live.judge_load(sweep(1.6))
    assert busy.agreement == PARTLY and "Other work" in busy.verdict


@pytest.mark.parametrize(("of_four", "agreement"), [(1.1, AGREES), (2.0, DIFFERS)])
def test_fewer_servers_that_cost_more_than_a_fifth_are_said(of_four, agreement):
    made = {"1": of_runs(0.9 if agreement == AGREES else 3.0), "4": of_runs(of_four), "6": of_runs(1.0)}
    finding = clarisse_live.judge_counts(made)
    assert finding.agreement == agreement
    assert ("unlike" in finding.verdict) == (agreement == DIFFERS)


@pytest.mark.parametrize(("share", "operation_s", "agreement"), [(0.001, 1.2, AGREES), (0.004, 1.2, DIFFERS)])
def test_the_cost_of_control_has_the_paper_s_bound(share, operation_s, agreement):
    made = {"operation": of_runs(operation_s), "control": of_runs(share * operation_s), "share": of_runs(share)}
    assert clarisse_live.judge_cost(made).agreement == agreement


def test_a_cost_beside_an_operation_that_is_too_short_does_not_agree():
    made = {"operation": of_runs(0.5), "control": of_runs(0.0001), "share": of_runs(0.0002)}
    assert clarisse_live.judge_cost(made).agreement == PARTLY


def test_bytes_are_the_paper_s():
    assert clarisse_scale.SIOR_BYTES / 2**30 == 30
    totals = [10 * one / 2**30 for one in clarisse_scale.STRONG_BYTES.values()]
    totals += [10 * 15360 * one / 2**30 for one in clarisse_scale.WEAK_BYTES.values()]
    assert totals == pytest.approx([150, 112.5, 75, 257], rel=0.01)


def test_table_2_has_fifteen_clients_for_a_server():
    assert all(clients == 15 * servers for clients, servers in clarisse_scale.SERVERS.items())


def test_a_server_of_the_unloaded_machine_is_as_fast_as_the_disks_at_the_calibrated_delay():
    requests = clarisse_scale.requests(clarisse_scale.SIOR_BYTES, 1920, 128)
    assert requests == 1920 * 8  # 128 KiB of each client
    disks_s = clarisse_scale.SIOR_BYTES / clarisse_scale.DISKS_BYTES_PER_S
    link_s = clarisse_scale.SIOR_BYTES / 128 / clarisse_scale.LINK_BYTES_PER_S
    with_load_s = requests * (clarisse_scale.HANDLING_S + clarisse_scale.NOTICED_S) + link_s
    assert with_load_s == pytest.approx(disks_s)


def test_a_scenario_with_servers_is_valid_toml():
    load = [{"server": clarisse_elastic.LOADED, "from_s": 6.0, "delay_s": 512e-6}]
    read = tomllib.loads(clarisse_elastic.elastic("VPIC", 15360, load, clarisse_elastic.WITH).text())
    assert read["servers"][0]["count"] == 1024 and read["load"] == load
    [application] = read["applications"]
    assert application["io_bytes"] * 10 / 2**30 == pytest.approx(75, rel=0.01)
    assert application["request_bytes"] == clarisse_scale.REQUEST_BYTES


def test_the_gain_of_a_removal_is_that_of_operations_after_it():
    one = {"without": [1.0, 1.0] + [4.0] * 8, "with": [1.0, 1.0, 4.0] + [1.0] * 7, "found_in": 3}
    operation, whole, later = clarisse_elastic.gains(one)
    assert operation == pytest.approx(4)
    assert whole == pytest.approx(34 / 13)
    assert later == pytest.approx(34 / 16)


def test_an_elastic_figure_that_misses_the_paper_s_range_does_not_agree():
    def made(slow: float, found_in: int) -> dict:
        one = {
            "without": [1.0, 1.0] + [slow] * 8,
            "with": [1.0] * 2 + [slow] * (found_in - 2) + [1.0] * (10 - found_in),
            "found_in": found_in,
        }
        sizes = {str(clients): one for clients in clarisse_scale.SERVERS}
        return {"by request": sizes, "by bytes": sizes}

    assert clarisse_elastic.judge_elastic(made(4.0, 4), "S-IOR").agreement == AGREES
    assert clarisse_elastic.judge_elastic(made(1.2, 4), "S-IOR").agreement == DIFFERS
    assert clarisse_elastic.judge_elastic(made(4.0, 3), "VPIC").agreement == PARTLY
    assert clarisse_elastic.judge_elastic(made(10.0, 3), "VPIC").agreement == AGREES


def test_mixed_kernels_agree_only_where_scheduling_gains_nothing_at_three_sizes():
    def one(speedup: float) -> dict:
        return {"write_speedup": speedup, "speedup": 1.0, "interference": speedup, "cost": 1.0}

    ratios = {str(ratio): one(1.05) for ratio in clarisse_pairs.RATIOS}
    flat = {str(clients): one(1.02) for clients in (960, 1920, 3840)}
    agrees = clarisse_pairs.judge_kernels({"ratios": ratios, "sizes": flat | {"7680": one(1.4)}}, mixed=True)
    assert agrees.agreement == AGREES
    gains = clarisse_pairs.judge_kernels({"ratios": ratios, "sizes": flat | {"960": one(1.3), "7680": one(1.4)}}, True)
    assert gains.agreement == PARTLY


# The four servers are simulated by the installed hocket-sim.
def test_a_loaded_server_is_removed_in_the_simulator(monkeypatch):
    monkeypatch.setitem(clarisse_elastic.SERVERS, 60, 4)
    monkeypatch.setitem(clarisse_elastic.WEAK_BYTES, "VPIC", 4e6)
    [one] = clarisse_elastic.runs("VPIC", (60,)).values()
    assert one["found_in"] == 3
    assert one["with"][3:] == pytest.approx([one["healthy"]] * 7, rel=0.5)
    assert one["without"][9] > 2 * one["healthy"]


def test_an_expensive_grant_is_said():
    lines = {"alone": {"value": 300.0, "unit": "µs"}}
    assert clarisse_live.judge_grant(lines).agreement == DIFFERS
    assert clarisse_live.judge_grant({"alone": {"value": 52.0, "unit": "µs"}}).agreement == AGREES


def test_the_order_of_the_policies_is_io_aware_first():
    rates = {"fair": {"flops": 1.0}, "speedup": {"flops": 1.1}, "io-aware": {"flops": 1.2}}
    assert flexmpi_sharing.order_holds(rates)
    assert not flexmpi_sharing.order_holds(rates | {"io-aware": {"flops": 1.05}})
