"""Proteo's figures in `./dev reproduce`: what is said of records, and that nothing is invented without them."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from capture_logs import Call, log_of
from checkout import REPO
from hocket.capture.stages import run_of
from hocket.reconfigurations import Reconfiguration
from hocket.reconfigure.runs import Outcome

sys.path.insert(0, str(REPO / "bench"))

from emulator_cases import CAPTURE, EMULATED, GATHERED, REAL, Gather, Job, Solve
from emulator_record import COMMUNICATING, COMPUTING, RESIZING, TOTAL, Ran
from reconfigure_cg_plan import REFERENCES, SIZES
from reconfigure_cg_plan import Job as Resize
from reconfigure_cg_record import Run
from reproduce import __main__, proteo, proteo_emulator, proteo_reconfigurations
from reproduce.cache import Cache
from reproduce.figure import AGREES, DIFFERS, PARTLY, RECORD, UNMEASURED, Options
from reproduce.page import Shown, page
from reproduce.proteo_reconfigurations import PAPER_NAMES
from reproduce.registry import PAPERS

pytestmark = pytest.mark.timeout(120)
PNG = b"\x89PNG"
MADE = [one for one in proteo.FIGURES if one.can_be_made]
NOTHING = {"cases": {}, "imbalance": {}, "load": None, "samples": {}, "bare": {}, "verdicts": {}, "command": ""}


def values_of(finding) -> dict[str, object]:
    return {value.what: value.ours for value in finding.values}


@pytest.mark.parametrize("figure", MADE, ids=[one.identity for one in MADE])
def test_without_a_record_a_figure_says_that_it_is_not_measured(figure, tmp_path: Path):
    assert figure.how == RECORD
    finding = figure.judge(NOTHING)
    assert finding.agreement == UNMEASURED and "measures it" in finding.verdict
    assert "not measured" in [value.ours for value in finding.values]
    assert not [value for value in finding.values if isinstance(value.ours, float)], "no number is invented"
    figure.draw(NOTHING, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(PNG)
    text = page([Shown(figure, finding, b"png")], MADE, PAPERS, "abc")
    assert "1 not measured." in text and '<b class="unmeasured">Not measured.</b>' in text


def test_results_of_a_record_are_never_kept(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(proteo_emulator, "RECORDS", (tmp_path / "absent",))
    figure = next(one for one in MADE if one.identity == "proteo-7")
    cache = Cache(tmp_path / "kept")
    assert __main__.results_of(figure, Options(), cache, again=False)["cases"] == {}
    assert not cache.path(figure).exists()


# ---- the emulator ----------------------------------------------------------------------------------------------------


def emulator_runs(quotient: float, ranks: int = 2) -> list[Ran]:
    """Return a record of a solver without and with a resize, and of two of the three sizes of MPI_Allgatherv."""
    script = [Call("MPI_Allgatherv", 800, 0.001), Call("MPI_Allreduce", 8, 0.01)] * 20
    slow = [Call("MPI_Allgatherv", 800, 0.001), Call("MPI_Allreduce", 8, 0.03)] * 20
    runs = []
    for matrix, scripts in (("even", (script, script)), ("odd", (slow, script))):
        captured = run_of([log_of(rank, 2, one) for rank, one in enumerate(scripts)])
        runs.append(Ran(Job(f"cg/{matrix}/{ranks}", CAPTURE, 1), 1.0, 0.5, captured=captured))
    cases = [Solve("even", 2).name, Solve("odd", 2).name, Solve("even", 1, 2).name]
    cases += [Gather(*one).name for one in GATHERED[:2]]
    for case in cases:
        for number in range(1, 6):
            for kind, factor in ((REAL, 1.0), (EMULATED, quotient)):
                second = factor * (1 + number / 1000)
                times = {TOTAL: second}
                if case.startswith("cg"):
                    times |= {COMPUTING: 0.8 * second, COMMUNICATING: 0.2 * second}
                if ":" in case:
                    times[RESIZING] = 0.1
                runs.append(Ran(Job(case, kind, number), 1.0, 0.5, times=times))
    return runs


@pytest.mark.parametrize(("quotient", "agreement"), [(1.02, AGREES), (1.07, PARTLY), (1.3, DIFFERS)])
def test_the_bounds_of_an_uneven_matrix_are_wider(quotient: float, agreement: str):
    results = proteo_emulator.results_of(emulator_runs(quotient))
    assert results["imbalance"]["cg/odd/2"] == pytest.approx(31 / 21, rel=0.05)
    for judge in (proteo_emulator.judge_computing, proteo_emulator.judge_total):
        finding = judge(results)
        assert finding.agreement == agreement
        assert any(value.ours == pytest.approx(quotient) for value in finding.values)
    assert "even, 1 → 2 ranks: resize" in values_of(proteo_emulator.judge_resized(results))


def test_a_size_that_is_missing_is_told_beside_those_that_are_measured():
    results = proteo_emulator.results_of(emulator_runs(1.02))
    times, quotients = proteo_emulator.judge_times(results), proteo_emulator.judge_quotients(results)
    assert values_of(times)["100KB, 1000 times: mean"] == pytest.approx(1.003)
    assert values_of(times)["1GB, 20 times: mean"] == "not measured"
    assert values_of(quotients)["100KB, 1000 times: emulated"] == pytest.approx(102)
    assert values_of(quotients)["10MB, 1000 times: STDQ"] == pytest.approx(0, abs=1e-9)
    assert times.agreement == PARTLY
    assert "Not measured: 1GB, 20 times." in quotients.verdict and quotients.agreement == AGREES
    off = proteo_emulator.judge_quotients(proteo_emulator.results_of(emulator_runs(1.04)))
    assert off.agreement == DIFFERS


def test_runs_that_failed_are_no_figures():
    runs = emulator_runs(1.02)
    broken = [Ran(one.job, 1.0, 0.5, failed="exit code 1") if one.job.kind == EMULATED else one for one in runs]
    assert proteo_emulator.results_of(broken)["cases"] == {}


# ---- resizes ---------------------------------------------------------------------------------------------------------


def resize_runs(
    emulated: bool = True,
    merge_s: float = 0.1,
    quotient: float = 1.05,
    cells: Sequence[tuple[int, int]] = ((1, 2), (2, 1), (2, 4), (4, 2)),
) -> list[Run]:
    """Return a record in which Merge takes `merge_s` and Baseline 0.4 s, and the emulation a quotient of both."""
    runs = []
    for cell in cells:
        for side in (False, True) if emulated else (False,):
            for at, method in enumerate(PAPER_NAMES):
                for repeat in range(1, 6):
                    job = Resize(*cell, method, repeat, side)
                    # Each method has a time of its own, so that the tests can tell them apart.
                    seconds = (merge_s if method.startswith("merge") else 0.4) * (1 + at / 20)
                    seconds *= random.Random(str(job)).uniform(0.999, 1.001) * (quotient if side else 1)
                    times = {"start_ns": 10**9, "spawning_ns": int(seconds * 1e9), "stopped_ns": int(seconds * 1e9)}
                    told = Reconfiguration("run", 5 * 10**9, done=True, sources=cell[0], targets=cell[1], **times)
                    runs.append(Run(job, 3.0, Outcome("", 2 + seconds, None, told)))
        for reference, seconds in zip(REFERENCES, (0.05, 0.2), strict=True):
            runs.append(Run(Resize(*cell, reference, 1), 1.0, Outcome(""), seconds / 2, seconds / 2))
    return runs


def figure(identity: str):
    return next(one for one in MADE if one.identity == identity)


@pytest.fixture(scope="module")
def both() -> dict:
    return proteo_reconfigurations.figures_of(resize_runs(), "cg")


def test_merge_before_baseline_agrees(both: dict):
    for identity in ("proteo-9", "proteo-10", "proteo-12", "proteo-13"):
        assert figure(identity).judge(both).agreement == AGREES, identity
    synchronous = values_of(figure("proteo-9").judge(both))
    assert synchronous["cells in which both Merge methods beat both Baselines"] == "4 of 4"
    assert synchronous["bare calls: Baseline by MPI_Alltoallv / Merge, median of cells"] == pytest.approx(4)
    slow = proteo_reconfigurations.figures_of(resize_runs(merge_s=0.6), "cg")
    assert figure("proteo-9").judge(slow).agreement == DIFFERS


def test_quotients_are_of_the_same_cell_and_method(both: dict):
    found = values_of(figure("proteo-11").judge(both))
    assert found["quotients within 0.75 to 1.25"] == "48 of 48"
    values = proteo_reconfigurations.quotients(both, "execution")
    assert set(values) == {"1 → 2", "2 → 1", "2 → 4", "4 → 2"}
    assert values["1 → 2"]["baseline/plain/p2p/thread"] == pytest.approx(1.0, abs=0.05)


def test_winners_count_only_where_methods_can_be_told_apart(both: dict):
    inside, cells = proteo_reconfigurations.winners_found(both, "real", "emulated")
    assert 8 < inside == cells <= 12, "four cells, each by three measures"
    finding = figure("proteo-14").judge(both)
    assert finding.agreement == DIFFERS, "four cells by three measures are too few, however good"
    assert "3 measures (reconfiguration time, time the application was stopped, execution time)" in finding.verdict
    assert values_of(finding)["winner of the real one in the best set of the emulated one"] == f"{inside} of {cells}"


@pytest.mark.timeout(300)
def test_seven_cells_by_three_measures_are_enough():
    """A campaign has twelve. Two measures of seven would be 14, of the 20 that are wanted."""
    cells = [(sources, targets) for sources in SIZES for targets in SIZES if sources != targets][:7]
    seven = proteo_reconfigurations.figures_of(resize_runs(cells=cells), "cg")
    for side, other in (("real", "emulated"), ("emulated", "real")):
        inside, told_apart = proteo_reconfigurations.winners_found(seven, side, other)
        assert inside == told_apart == 21, f"{side}: {inside} of {told_apart}"
    assert figure("proteo-14").judge(seven).agreement == AGREES


@pytest.mark.parametrize("measure", ["reconfiguration", "stopped", "execution"])
def test_a_winner_that_the_other_side_lacks_counts_against_it_in_each_measure(both: dict, measure: str):
    verdicts = both["verdicts"]
    slow = {cell: {**one, "best": ["baseline/plain/p2p/thread"]} for cell, one in verdicts["emulated"][measure].items()}
    other = {**both, "verdicts": {**verdicts, "emulated": {**verdicts["emulated"], measure: slow}}}
    inside, cells = proteo_reconfigurations.winners_found(other, "real", "emulated")
    told = [one for one in verdicts["real"][measure].values() if one["p"] is not None and one["p"] < 0.05]
    assert inside == cells - len(told) and told


def test_a_record_of_cg_alone_has_no_quotients_and_half_of_the_winners():
    alone = proteo_reconfigurations.figures_of(resize_runs(emulated=False), "cg")
    assert figure("proteo-10").judge(alone).agreement == AGREES
    for identity in ("proteo-11", "proteo-13", "proteo-14"):
        assert figure(identity).judge(alone).agreement == UNMEASURED, identity
    best = values_of(figure("proteo-14").judge(alone))
    assert best["emulated: method that is best most often, execution time"] == "not measured"
    assert best["real: method that is best most often, execution time"] != "not measured"


def test_each_figure_is_drawn(both: dict, tmp_path: Path):
    results = {**NOTHING, **proteo_emulator.results_of(emulator_runs(1.02)), **both}
    for one in MADE:
        path = tmp_path / f"{one.identity}.png"
        one.draw(results, path)
        assert path.read_bytes().startswith(PNG) and path.stat().st_size > 8000, one.identity
