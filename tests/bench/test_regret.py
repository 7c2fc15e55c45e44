"""The regret benchmark with made-up runs: its statistics, its bounds, and how it resumes an unfinished campaign."""

import itertools
import json
import math
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import geometric_mean
from types import SimpleNamespace

import pytest
from checkout import REPO
from hocket.errors import HocketError
from scipy import stats

sys.path.insert(0, str(REPO / "bench"))

import regret
import regret_bounds as bounds
import regret_programs as programs
import regret_results as results
import regret_twin
from regret_runs import Told
from regret_statistics import Ratio, holm, paired, together

# ---- statistics ------------------------------------------------------------------------------------------------------


def test_the_interval_is_that_of_a_paired_t_test_of_the_logarithms():
    values, references = [1.1, 2.3, 2.9, 4.4], [1.0, 2.0, 3.0, 4.0]
    ratio = paired(values, references)
    logs = [math.log(a / b) for a, b in zip(values, references, strict=True)]
    low, high = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    assert ratio.value == pytest.approx(geometric_mean([a / b for a, b in zip(values, references, strict=True)]))
    assert ratio.interval() == pytest.approx((math.exp(low), math.exp(high)))
    expected = stats.ttest_1samp(logs, math.log(1.02), alternative="greater").pvalue
    assert ratio.p_beyond(1.02) == pytest.approx(expected)


def test_an_interval_holds_the_true_ratio_as_often_as_it_says():
    rng = Random(1)
    hits = 0
    for _ in range(1000):
        references = [rng.uniform(1, 9) for _ in range(5)]
        low, high = paired([1.1 * one * math.exp(rng.gauss(0, 0.2)) for one in references], references).interval()
        hits += low <= 1.1 <= high
    assert 925 <= hits <= 975


def test_one_round_tells_no_interval_and_misses_nothing():
    ratio = paired([9.0], [1.0])
    assert ratio.interval() == (0.0, math.inf) and ratio.p_beyond(1.02) == 1.0


def test_equal_pairs_lie_beyond_what_they_are_above_and_nothing_else():
    ratio = paired([1.1, 2.2, 3.3], [1.0, 2.0, 3.0])
    assert ratio.p_beyond(1.05) == pytest.approx(0, abs=1e-9) and ratio.p_beyond(1.2) > 0.5


def test_the_mean_of_several_ratios_is_more_certain_than_each():
    rng = Random(2)
    each = []
    for _ in range(6):
        references = [rng.uniform(1, 9) for _ in range(5)]
        each.append(paired([0.9 * one * math.exp(rng.gauss(0, 0.1)) for one in references], references))
    mean = together(each)
    assert mean.value == pytest.approx(geometric_mean([one.value for one in each]))
    assert mean.error < min(one.error for one in each) and 4 <= mean.freedom <= 24
    assert together(each[:1]).error == pytest.approx(each[0].error)


def test_holm_is_statsmodels_holm():
    from statsmodels.stats.multitest import multipletests

    rng = Random(3)
    for _ in range(5):
        found = [rng.random() ** 4 for _ in range(rng.randint(1, 12))]
        expected = multipletests([min(1, 2 * p) for p in found], alpha=0.05, method="holm")[0]
        assert [verdict.missed for verdict in holm(found)] == list(expected), found


def test_the_corrected_interval_lies_beyond_the_bound_just_where_it_is_missed():
    rng = Random(4)
    missed = 0
    for _ in range(100):
        ratios = [Ratio(rng.gauss(0.1, 0.1), rng.uniform(0.005, 0.05), 4) for _ in range(8)]
        verdicts = holm([ratio.p_beyond(1.02) for ratio in ratios])
        for ratio, verdict in zip(ratios, verdicts, strict=True):
            assert not verdict.missed or ratio.interval(verdict.alpha)[0] > 1.02
            missed += verdict.missed
    assert missed > 0


# ---- programs --------------------------------------------------------------------------------------------------------


def test_there_are_enough_unlike_programs():
    sizes = [len(one.programs) for one in programs.SETS if one.bounded]
    assert sizes.count(2) >= 12 and sizes.count(3) >= 4 and len(programs.ELSEWHERE) == 4
    assert len(programs.kinds(programs.SETS) - {programs.FIO}) >= 8
    names = [one.name for one in programs.SETS]
    assert len(set(names)) == len(names)
    assert all(len({kind for kind, _ in one.programs}) == len(one.programs) for one in programs.SETS)


def test_rounds_differ_and_a_round_is_the_same_each_time():
    for wanted in programs.SETS:
        first, again, second = (programs.draw(wanted, number, 80e6) for number in (1, 1, 2))
        assert first == again and all(a != b for a, b in zip(first, second, strict=True))


def test_what_is_drawn_is_what_the_share_says():
    for wanted, number in itertools.product(programs.SETS, range(1, 20)):
        for (_, share), one in zip(wanted.programs, programs.draw(wanted, number, 80e6), strict=True):
            io_s, length_s = one.phases * one.phase_bytes / 80e6, one.phases * (one.compute_s + one.phase_bytes / 80e6)
            low, high = programs.SHARES[share]
            assert low - 0.01 <= io_s / length_s <= high + 0.01 and 6 < length_s < 9.5 and 1 <= one.ranks <= 3


def test_every_kind_has_a_command():
    places = programs.Places(lambda name: Path(f"/apps/{name}-mpich"), Path("/target"), Path("/systems"))
    for wanted in programs.SETS:
        for one in programs.draw(wanted, 1, 80e6):
            words = list(map(str, programs.program(one, places)))
            assert any("/target" in word for word in words), words


# ---- resumption ------------------------------------------------------------------------------------------------------

CASE = results.Case("jacobi-verify+s_ior", "limited", False)
OTHER = results.Case("vpic_io+numpy", "limited", True)
SLOWER = {"interfere": 1.0, "fcfs": 1.2, "interrupt": 1.1, "mine": 1.0}  # factors on the time of a run


class FakeRuns:
    """Runs with made-up figures; the run with the number `fails_at` fails."""

    def __init__(self, slower=SLOWER, fails_at=0, noise=0.0, without_io=""):
        self.made, self.fails_at, self.slower, self.without_io = [], fails_at, slower, without_io
        self.rng, self.noise = Random(7), noise

    def systems(self, _):
        return regret.nullcontext()

    def run(self, label, policy, which):
        self.made.append(label)
        if len(self.made) == self.fails_at:
            raise HocketError("it failed")
        factor = self.slower[policy] * (1.5 if len(which) > 1 else 1.0)

        def told(one):
            total_s = 8 * factor * math.exp(self.rng.gauss(0, self.noise))
            return Told(one.name, total_s, 0.0 if one.kind == self.without_io else 2 * factor, 0.0, 0, 100)

        return [told(one) for one in which if one.coordinated]


@pytest.fixture(autouse=True)
def no_busy_loops(monkeypatch):
    monkeypatch.setattr(regret, "busy_loops", lambda _: regret.nullcontext())


def campaign(**changed):
    return replace(regret.Campaign((CASE, OTHER), 3, "build-1", "mine", math.inf), **changed)


def measure(path, runs, **changed):
    return regret.measure(campaign(**changed), results.Results(path), lambda where: (runs, 80e6))


def test_a_round_has_every_arm_and_every_program_alone(tmp_path):
    path, runs = tmp_path / "results.jsonl", FakeRuns()
    assert measure(path, runs, cases=(CASE,), rounds=2)
    first, second = results.Results(path).rounds
    assert set(first.arms) == {*results.ARMS, results.ALONE}
    assert all(set(told) == {"jacobi-verify-1", "s_ior-2"} for told in first.arms.values())
    assert len(runs.made) == 2 * (5 + 2) and first.drawn != second.drawn
    order = [
        [label.partition("-limited-")[2].partition("-")[2] for label in part] for part in (runs.made[:7], runs.made[7:])
    ]
    assert order[0] != order[1] and set(order[0]) == set(order[1])


def test_what_failed_in_the_middle_goes_on_with_the_round_that_failed(tmp_path):
    path = tmp_path / "results.jsonl"
    with pytest.raises(HocketError, match="it failed"):
        measure(path, FakeRuns(fails_at=7 + 4))
    assert [(one.case, one.number) for one in results.Results(path).rounds] == [(CASE, 1)]
    runs = FakeRuns()
    assert measure(path, runs)
    assert len(runs.made) == 5 * 7, "the first round is not made again"
    found = results.Results(path).of("build-1", "mine")
    assert {(one.case, one.number) for one in found} == set(itertools.product((CASE, OTHER), (1, 2, 3)))
    runs = FakeRuns()
    assert measure(path, runs) and not runs.made


def test_rounds_of_another_build_or_default_are_left_out(tmp_path):
    path = tmp_path / "results.jsonl"
    assert measure(path, FakeRuns(), cases=(CASE,))
    for changed in ({"build": "build-2"}, {"policy": "fcfs"}):
        runs = FakeRuns()
        assert measure(path, runs, cases=(CASE,), **changed) and len(runs.made) == 3 * 7
    assert len(results.Results(path).rounds) == 9 and len(results.Results(path).of("build-2", "mine")) == 3
    assert {one.policy for one in results.Results(path).latest()} == {"fcfs"}


def test_no_round_begins_after_the_time_is_up(tmp_path, capsys):
    runs = FakeRuns()
    assert not measure(tmp_path / "results.jsonl", runs, stop_s=time.monotonic() - 1)
    assert not runs.made
    assert f"missing: {CASE}: 3 rounds; {OTHER}: 3 rounds" in capsys.readouterr().err


def test_a_line_that_was_being_written_is_dropped_and_any_other_is_told(tmp_path):
    path = tmp_path / "results.jsonl"
    assert measure(path, FakeRuns(), cases=(CASE,), rounds=2)
    whole = path.read_text()
    path.write_text(whole[:-100])
    assert [one.number for one in results.Results(path).rounds] == [1]
    assert measure(path, FakeRuns(), cases=(CASE,), rounds=2)
    assert [one.number for one in results.Results(path).rounds] == [1, 2]
    path.write_text("{}\n" + whole)
    with pytest.raises(HocketError, match="line 1: not a round of this bench"):
        results.Results(path)


# ---- bounds ----------------------------------------------------------------------------------------------------------


def figures_of(path, capsys, **fake):
    """Return the verdict of a report of made-up runs, and its figures by case."""
    runs = FakeRuns(**fake)
    assert measure(path, runs, rounds=5)
    rounds = results.Results(path).of("build-1", "mine")
    capsys.readouterr()
    sets = bounds.sets_of(rounds)
    good = all(
        [bounds.judge(bounds.totals(sets)), bounds.judge(bounds.sums(sets)), bounds.judge(bounds.besides_best(sets))]
    )
    return good, {one["case"]: one for one in map(json.loads, capsys.readouterr().out.splitlines())}


def test_a_default_that_makes_programs_slower_misses_its_bounds(tmp_path, capsys):
    good, found = figures_of(tmp_path / "r.jsonl", capsys, slower=SLOWER | {"mine": 1.1}, noise=0.003)
    total = found[f"{CASE}: total time of s_ior-2 beside uncoordinated"]
    assert not good and not total["ok"] and total["bound"] == 1.02 and total["corrected_interval"][0] > 1.02
    assert total["ratio"] == pytest.approx(1.1, rel=0.02) and total["fcfs"] == pytest.approx(1.2, rel=0.02)
    bounded = [one for one in found.values() if "corrected_interval" in one]
    assert all(one["interval"][0] >= one["corrected_interval"][0] for one in bounded)
    assert any(one["interval"][0] > one["corrected_interval"][0] for one in bounded)
    busy = found[f"{OTHER}: total time of numpy-2 beside uncoordinated"]
    assert busy["bound"] == 1.05 and not busy["ok"]
    best = found[f"{CASE}: I/O time with waits beside the best of all (uncoordinated)"]
    assert best["ratio"] == pytest.approx(1.1) and not best["ok"]


def test_a_default_that_gains_keeps_them(tmp_path, capsys):
    good, found = figures_of(tmp_path / "r.jsonl", capsys, slower=SLOWER | {"mine": 0.9}, noise=0.003)
    assert good, [one for one in found.values() if not one["ok"]]
    assert found["I/O time with waits, 2 sets with an interference factor of 1.3 or more"]["ratio"] == pytest.approx(
        0.9
    )
    assert found[f"{CASE}: I/O time with waits beside uncoordinated"]["interference"] == pytest.approx(1.5)


def test_too_little_gain_where_programs_interfere_is_missed(tmp_path, capsys):
    good, found = figures_of(tmp_path / "r.jsonl", capsys, slower=SLOWER | {"mine": 0.96})
    gain = found["I/O time with waits, 2 sets with an interference factor of 1.3 or more"]
    assert not good and not gain["ok"] and gain["bound"] == 0.92


def test_noise_alone_misses_nothing(tmp_path, capsys):
    good, _ = figures_of(tmp_path / "r.jsonl", capsys, slower=SLOWER | {"mine": 0.92}, noise=0.1)
    assert good


def test_a_program_without_io_that_is_seen_does_not_count_for_interference(tmp_path, capsys):
    case = results.Case("log+s_ior", "limited", False)
    assert measure(tmp_path / "r.jsonl", FakeRuns(without_io="log"), cases=(case,))
    (one,) = bounds.sets_of(results.Results(tmp_path / "r.jsonl").latest())
    assert one.interference == pytest.approx(1.5)


def test_the_gain_is_held_against_that_of_the_best_schedule(tmp_path, capsys):
    assert measure(tmp_path / "r.jsonl", FakeRuns(slower=SLOWER | {"mine": 0.9}))
    sets = bounds.sets_of(results.Results(tmp_path / "r.jsonl").latest())
    assert bounds.share_of_gain(sets, lambda _: 0.87)  # 0.1 of 0.13
    assert not bounds.share_of_gain(sets, lambda _: 0.8)  # 0.1 of 0.2
    assert bounds.share_of_gain(sets, lambda _: None)


def test_beside_a_load_that_is_not_coordinated_nothing_is_bounded(tmp_path, capsys):
    case = results.Case("jacobi-verify+s_ior+fio", "limited", False)
    assert measure(tmp_path / "r.jsonl", FakeRuns(slower=SLOWER | {"mine": 2.0}), cases=(case,))
    sets = bounds.sets_of(results.Results(tmp_path / "r.jsonl").latest())
    assert [one.bound for one in (*bounds.totals(sets), *bounds.sums(sets), *bounds.besides_best(sets))] == [None] * 4


# ---- the twin --------------------------------------------------------------------------------------------------------


def test_a_twin_can_be_simulated(tmp_path):
    """Check that a program alone in the simulator has the I/O time that it had alone in the measurement."""
    from hocket.sim.runs import Wanted, simulate

    case = results.Case("jacobi-verify+s_ior", "limited", False)
    drawn = [vars(one) for one in programs.draw(regret.wanted_of(case), 1, 80e6)]
    alone = {one["name"]: Told(one["name"], 9.0, 3.0, 0.0, 0, 120_000_000).as_json() for one in drawn}
    for name in alone:
        one = SimpleNamespace(case=case, bytes_per_s=80e6, drawn=drawn, arms={"alone": {name: alone[name]}})
        (tmp_path / f"{name}.toml").write_text(regret_twin.twin(one))
        (found,) = simulate([Wanted(tmp_path / f"{name}.toml", "interfere")])
        (told,) = found["applications"]
        assert told["io_s"] == pytest.approx(3.0, rel=0.01)
    assert len(alone) == 2
