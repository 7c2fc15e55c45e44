"""The record of an emulated run, the store of calibrations, and the checks of the launcher."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from hocket.emulator import calibration, run
from hocket.emulator.description import read_description
from hocket.emulator.record import read_record, summary, text
from hocket.errors import HocketError, UsageError

PLAN = {"name": "a", "phases": [{"stages": [{"name": "compute"}, {"name": "allreduce"}]}]}


def block(first: int, processes: int, times: list[tuple[int, int]]) -> dict:
    """Return the line of iterations with these times of two stages, in ns."""
    table = {"iteration": [sum(one) for one in times], "stages": [list(one) for one in zip(*times, strict=True)]}
    told = {"first": first, "unix_s": 100.25 + first, "phase": 0, "processes": processes, "ranks": processes}
    totals = {"cpu_ns": 5, "control_ns": 7, "own_ns": 1000}
    return {"iterations": {**told, **totals, "mean_ns": table, "most_ns": table}}


LINES = [
    {"about": PLAN},
    {"begin": {"processes": 2, "unix_s": 100.0}},
    block(3, 4, [(1000, 0), (3000, 9000)]),
    block(0, 2, [(4000, 1000), (4000, 3000)]),
    block(2, 2, [(6000, 3000)]),
    {"resize": {"iteration": 3, "from": 2, "to": 4, **{f"{one}_s": 0.5 for one in (
        "spawn", "constant", "variable", "stopped", "total")}}},
    {"missing": {"iteration": 5, "from": 4, "to": 8}},
    {"end": {"unix_s": 101.5}},
]  # fmt: skip


def written(path: Path, lines: list[dict], cut: str = "") -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines) + cut)
    return path


def test_a_record_is_summed_up(tmp_path: Path):
    record = read_record(written(tmp_path / "r", LINES))
    assert record.iterating_s == pytest.approx(1.25), "from the first iteration, not from the start"
    figures = summary(record)
    assert (figures["complete"], figures["total_s"], figures["iterations"]) == (True, 1.5, 5)
    assert figures["cpu_s"] == pytest.approx(15e-9)
    assert figures["own_share"] == pytest.approx(3000 / (34000 + 3000))
    two, four = figures["groups"]
    assert (two["processes"], two["iterations"], two["iteration_median_s"]) == (2, 3, 7e-6)
    assert two["stages"]["compute"]["median_s"] == 4e-6 and two["stages"]["allreduce"]["sum_s"] == 7e-6
    assert four["stages"]["allreduce"]["median_s"] == 9e-6, "iterations without the stage do not count"
    shown = text(figures)
    assert "resize 2 → 4 before iteration 3: spawn 500 ms" in shown and "no resize 4 → 8 before iteration 5" in shown
    assert "a: 1.500 s, 5 iterations" in shown


def test_the_time_of_accesses_is_that_of_stages_which_access_files(tmp_path: Path):
    kinds = [{"name": "compute", "kind": "compute"}, {"name": "write", "kind": "write"}]
    lines = [{"about": {"name": "a", "phases": [{"stages": kinds}]}}, *LINES[1:]]
    assert read_record(written(tmp_path / "r", lines)).access_s == pytest.approx((9000 + 4000 + 3000) * 1e-9)


def test_an_interrupted_run_leaves_a_usable_record(tmp_path: Path):
    read = read_record(written(tmp_path / "r", LINES[:4], cut='{"iterations": {"first": 4, "pha'))
    figures = summary(read)
    assert (figures["complete"], figures["total_s"], figures["iterations"]) == (False, None, 4)
    assert "a: interrupted, 4 iterations" in text(figures)


def test_another_file_is_no_record(tmp_path: Path):
    with pytest.raises(UsageError, match="line 2: this is no line of a record"):
        read_record(written(tmp_path / "r", [LINES[0], {"other": 1}, LINES[1]]))
    with pytest.raises(UsageError, match="cannot read the record"):
        read_record(tmp_path / "nowhere")


def stand_in(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_operations_are_calibrated_once_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    log = tmp_path / "log"
    program = stand_in(tmp_path / "program", f'echo "$@" >> {log}; shift 2; for one in "$@"; do echo $one 0.5; done')
    wanted = [("compute", 10), ("memory", 20)]
    assert calibration.calibrated(wanted, program) == {("compute", 10): 0.5, ("memory", 20): 0.5}
    assert calibration.calibrated(wanted, program) == {("compute", 10): 0.5, ("memory", 20): 0.5}
    calibration.calibrated([*wanted, ("compute", 11)], program)
    assert log.read_text().splitlines() == ["--calibrate 3.0 compute:10 memory:20", "--calibrate 3.0 compute:11"]
    calibration.store().write_text("{")
    assert calibration.calibrated(wanted[:1], program) == {("compute", 10): 0.5}, "a damaged file is measured again"


@pytest.mark.parametrize("words", ["exit 1", "echo compute:10", "echo compute:10 0", "echo other:10 1"])
def test_a_calibration_that_fails_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with pytest.raises(HocketError) as caught:
        calibration.calibrated([("compute", 10)], stand_in(tmp_path / "program", words))
    assert "calibrat" in str(caught.value) and "\n" not in str(caught.value)
    assert not calibration.store().exists()


def test_a_store_that_cannot_be_written_costs_a_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "program"))
    program = stand_in(tmp_path / "program", "echo compute:10 0.5")
    assert calibration.calibrated([("compute", 10)], program) == {("compute", 10): 0.5}


def test_settings_of_the_user_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "app.toml"
    path.write_text(
        'name = "m"\n[[group]]\nprocesses = 4096\niterations = 1\n[[group]]\nprocesses = 2\niterations = 1\n'
        '[[phase]]\n[[phase.stage]]\nkind = "sleep"\ntime_s = 1\n'
    )
    launcher = run.Launcher("mpich", tmp_path / "bin" / "mpiexec", tmp_path / "emulator")
    monkeypatch.setenv("MPIR_CVAR_CH4_NETMOD", "mine")
    told = run.settings_of(read_description(path), launcher)
    assert "MPIR_CVAR_CH4_NETMOD" not in told and told["MPIR_CVAR_ENABLE_HEAVY_YIELD"] == "1"
    assert told["PATH"].startswith(f"{tmp_path / 'bin'}:")
