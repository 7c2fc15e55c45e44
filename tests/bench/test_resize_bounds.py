"""`./dev bench reconfigure` and `redistribute`: more than 1.1 times the bare MPI calls is shown as a miss."""

from __future__ import annotations

import json
import sys

import pytest
from checkout import REPO

sys.path.insert(0, str(REPO / "bench"))

import reconfigure
import redistribute


@pytest.mark.parametrize(("hocket_s", "held"), [(0.109, True), (0.112, False)])
def test_growing_takes_at_most_a_tenth_more_than_the_bare_calls(hocket_s: float, held: bool):
    samples = reconfigure.Samples()
    for sources, targets in reconfigure.GROWTHS:
        for kind, first, last in (("grow", sources, targets), ("shrink", targets, sources)):
            samples.of[f"{kind} {first} to {last}", "hocket"] += [hocket_s] * 3
            samples.of[f"{kind} {first} to {last}", "bare one"] += [0.1, 0.1, 5.0]
    told = {one["case"]: one for one in reconfigure.lines(samples, "grow")}
    for sources, targets in reconfigure.GROWTHS:
        grown, shrunk = told[f"grow {sources} to {targets}"], told[f"shrink {targets} to {sources}"]
        assert (grown["bound"], grown["ok"]) == (1.1, held), grown
        assert (shrunk["bound"], shrunk["ok"]) == (None, True), "the bare calls move no data"


@pytest.mark.parametrize(("moving_s", "held"), [(1.09, True), (1.12, False)])
def test_moving_takes_at_most_a_tenth_more_than_the_bare_call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, moving_s: float, held: bool
):
    lines = [("bare", 1.0), (redistribute.DEFAULT, moving_s), ("collective blocking", 9.0)]
    output = "".join(f"{variant}\t{seconds}\t1048576\n" for variant, seconds in lines * 3)
    monkeypatch.setattr(redistribute, "start", lambda worlds, processes, arguments: output)
    assert redistribute.speeds("one", 2, 4, "block", "all") == held
    told = {one["case"].partition(",")[0]: one for one in map(json.loads, capsys.readouterr().out.splitlines())}
    default = told[redistribute.DEFAULT]
    assert (default["bound"], default["ok"]) == (pytest.approx(1 / 1.1), held)
    assert told["collective blocking"]["ok"], "only the default has a bound"
