"""Reports of a malleable program to hocketd beside its I/O: its progress, its number of processes, and its FLOP."""

from __future__ import annotations

import subprocess

import pytest
import runtime_kit
from apps_kit import PREFIX, runner
from mpi_launch import Mpi

pytestmark = pytest.mark.timeout(150)
LIMIT_S = 120
EVERY = 4  # iterations between two checkpoints
# A blocked machine may delay a checkpoint by less than the gap: it stays one phase. The computation between two
# checkpoints is longer than the gap.
ITERATION_S, PHASE_GAP_S = 0.25, 0.8
UNKNOWNS = 64
SPAWNING = {"MPIR_CVAR_CH4_NETMOD": "ofi"}


@pytest.mark.parametrize("spawn", ["merge", "baseline"])
def test_phases_tell_the_last_control_point(controller, tmp_path, spawn):
    """The leading process reports each phase once, however many worlds there are."""
    job = runtime_kit.settings(controller.socket, phase_gap_s=PHASE_GAP_S, spawn=spawn, resize="6:3,10:2")
    done = runner("jacobi", "mpich", LIMIT_S)(
        *(2, "--system", tmp_path / "s", "--generate", UNKNOWNS, "--iterations", 14, "--tolerance", 0),
        *("--checkpoint-every", EVERY, "--checkpoint-dir", tmp_path, "--iteration-time", ITERATION_S),
        **SPAWNING,
        **job,
    )
    assert done.summary["ranks"] == 2
    phases = sorted(controller.events("IO_PHASE"), key=lambda phase: phase["start_ns"])
    told = [(phase["iteration"], phase["processes"], phase["control_every"]) for phase in phases]
    # Checkpoints are before the control point of their iteration; the first phase wrote the system.
    assert told == [(-1, 0, 0), (3, 2, 1), (7, 3, 1), (11, 2, 1)]
    leaders = {phase["member"] for phase in phases}
    assert len(leaders) == {"merge": 1, "baseline": 3}[spawn]
    assert all(phase["flop"] == 0 for phase in phases), "nothing was counted"


@pytest.mark.parametrize("spawn", ["merge", "baseline"])
def test_jacobi_declares_its_flop(controller, tmp_path, spawn):
    job = runtime_kit.settings(controller.socket, spawn=spawn, resize="2:2")
    runner("jacobi", "mpich", LIMIT_S)(
        *(1, "--system", tmp_path / "s", "--generate", UNKNOWNS, "--iterations", 4, "--tolerance", 0),
        **SPAWNING,
        **job,
    )
    told = controller.events("MALLEABLE")
    assert [(one["processes"], one["flop_per_iteration"]) for one in told] == [
        (1, 2 * UNKNOWNS**2 + 4 * UNKNOWNS),
        (2, 2 * UNKNOWNS**2 + 4 * UNKNOWNS),
    ]


@pytest.mark.parametrize("spawn", ["merge", "baseline"])
def test_cg_declares_its_flop_once_the_matrix_is_there(controller, spawn):
    points = 4
    nonzeros = (3 * points - 2) ** 3
    job = runtime_kit.settings(controller.socket, spawn=spawn, resize="2:3")
    runner("cg", "mpich", LIMIT_S)(
        *(2, "--stencil", points, "--iterations", 6, "--tolerance", 0),
        **SPAWNING,
        **job,
    )
    last = {one["processes"]: one["flop_per_iteration"] for one in controller.events("MALLEABLE")}
    assert last == dict.fromkeys((2, 3), 2 * nonzeros + 10 * points**3)


def arguments(tmp_path, iterations: int) -> list:
    """Return the arguments of a jacobi with a checkpoint every EVERY iterations."""
    system = ("--system", tmp_path / "s", "--generate", UNKNOWNS, "--iterations", iterations, "--tolerance", 0)
    return [*system, "--checkpoint-every", EVERY, "--checkpoint-dir", tmp_path, "--iteration-time", ITERATION_S]


def counting(controller, events: str, **settings: str) -> dict[str, str]:
    """Return the environment of a job whose processes count `events` as their floating-point operations."""
    return SPAWNING | runtime_kit.settings(controller.socket, phase_gap_s=PHASE_GAP_S, flop_counters=events, **settings)


def jacobi_that_counts(controller, tmp_path, events: str, iterations: int = 14, **settings: str) -> list[dict]:
    """Run jacobi and return its I/O phases in order."""
    run = runner("jacobi", "mpich", LIMIT_S)
    run(2, *arguments(tmp_path, iterations), **counting(controller, events, **settings))
    return sorted(controller.events("IO_PHASE"), key=lambda phase: phase["start_ns"])


def test_phases_tell_what_all_processes_counted(controller, tmp_path):
    """The counter is computing time, which every machine counts, in place of operations."""
    _, first, second, third = jacobi_that_counts(controller, tmp_path, "task-clock")
    for before, phase in ((first, second), (second, third)):
        period_ns = phase["start_ns"] - before["start_ns"]
        assert 0 < phase["flop"] <= 2.2 * period_ns, "of two processes"


def test_phases_tell_no_count_where_a_process_has_none(controller, tmp_path):
    """Rank 1 counts nothing, as on a machine where some nodes forbid counters."""
    mpi = Mpi("mpich")
    as_rank_1 = '[ "$PMI_RANK" = 1 ] && export HOCKET_FLOP_COUNTERS=none; exec "$@"'
    done = subprocess.run(
        mpi.command(2, "sh", "-c", as_rank_1, "sh", mpi.app("jacobi", PREFIX), *arguments(tmp_path, 14)),
        env={**mpi.environment(), **counting(controller, "task-clock")},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    phases = controller.events("IO_PHASE")
    assert len(phases) >= 3
    assert all(phase["flop"] == 0 for phase in phases)


def test_a_period_with_other_processes_tells_no_count(controller, tmp_path):
    phases = jacobi_that_counts(controller, tmp_path, "task-clock", 18, spawn="merge", resize="6:3")
    told = {phase["iteration"]: phase["flop"] > 0 for phase in phases}
    assert told == {-1: False, 3: told[3], 7: False, 11: True, 15: True}


def test_counters_can_be_left_to_others(controller, tmp_path):
    assert all(phase["flop"] == 0 for phase in jacobi_that_counts(controller, tmp_path, "none", 6))
