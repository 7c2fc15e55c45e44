"""Runs of malleable programs, cut at their resizes, and the description of them."""

from dataclasses import replace

import pytest
from capture_logs import Call, log_of
from hocket.capture.course import Group, Held, course_of, whole_run
from hocket.capture.describe import describe
from hocket.capture.log import CaptureError, RankLog
from hocket.capture.stages import Run
from hocket.emulator.description import Description, read_description

METHODS = ("merge", "single", "process", "anywhere", "p2p", "blocking")
WORK_S = 0.02  # CPU time of an iteration in all processes together


def point(rank: int, size: int, iteration: int, resizes: int, takes_s: float = 1e-4) -> Call:
    about = {"peer": rank, "processes": size, "offset": iteration}
    return Call("hocket_malleable_next", resizes, 0.0, takes_s, "control point", **about)


def arrays(size: int, resizes: int, share: float) -> list[Call]:
    """Return what is logged of the registered arrays, and of the methods of the last resize."""
    held = [("matrix", round(9_000_000 * share), 0, size), ("x", round(1_000_000 * share), 1, size), ("sums", 80, 1, 0)]
    logged = [Call(name, count, 0.0, 0.0, "data", peer=kind, processes=over) for name, count, kind, over in held]
    return logged + [Call(name, 0, 0.0, 0.0, "method") for name in METHODS if resizes]


def iterations(rank: int, size: int, first: int, last: int, resizes: int, share: float | None = None) -> list[Call]:
    """Return what a rank does in these iterations. The control point before the first one is not part of it."""
    share = 1 / size if share is None else share
    calls = []
    for iteration in range(first, last):
        calls.append(Call("MPI_Allgatherv", round(80_000 * share), WORK_S * share, processes=size))
        calls.append(Call("MPI_Allreduce", 8, 0.0, processes=size))
        if iteration + 1 < last:
            calls.append(point(rank, size, iteration + 1, resizes))
    return calls


def grown(share: float = 0.25) -> list[RankLog]:
    """Return the logs of a program that grows from 1 to 2 processes after 20 iterations, and ends after 50.

    `share`: of rank 0 afterwards.
    """
    first = [Call("MPI_Bcast", 100, 0.3), point(0, 1, 0, 0), *arrays(1, 0, 1.0), point(0, 1, 0, 0)]
    first += [*iterations(0, 1, 0, 20, 0), point(0, 2, 20, 1, takes_s=0.5), *arrays(2, 1, share)]
    first += [*iterations(0, 2, 20, 50, 1, share), point(0, 2, 50, 1)]
    second = [point(1, 2, 20, 1), *arrays(2, 1, 1 - share), point(1, 2, 20, 1)]
    second += [*iterations(1, 2, 20, 50, 1, 1 - share), point(1, 2, 50, 1)]
    return [log_of(0, 1, first), replace(log_of(0, 1, second), spawned=True)]


def described(course: list[Group], tmp_path) -> Description:
    text, notes = describe("app", {group.run.processes: group.run for group in course}, course)
    assert notes == []
    path = tmp_path / "app.toml"
    path.write_text(text)
    return read_description(path)


def test_each_number_of_processes_has_its_iterations_methods_and_data() -> None:
    before, after = course_of(grown())
    assert [(group.run.processes, group.iterations) for group in (before, after)] == [(1, 20), (2, 30)]
    assert (before.methods, after.methods) == ((), METHODS)
    assert before.data == Held(9_000_000, 1_000_000, 0, 80)
    assert [held.constant for held in after.held] == [2_250_000, 6_750_000]
    assert after.run.control_s == pytest.approx(30 * 1e-4, rel=0.1), "the resize belongs to neither"


def test_a_resize_is_described_with_its_data_and_methods(tmp_path) -> None:
    found = described(course_of(grown()), tmp_path)
    assert [group.processes for group in found.groups] == [1, 2]
    assert [group.iterations for group in found.groups] == [21, 30], "the phase before the iterations counts"
    assert found.groups[1].methods == "merge/single/process/p2p/blocking"
    assert (found.data.bytes, found.data.constant_bytes) == (10_000_000, 9_000_000)
    assert (found.data.replicated_bytes, found.data.replicated_constant_bytes) == (80, 0)
    assert found.data.shares == {2: (0.25, 0.75)}
    stage = max((one for one in found.phases[-1].stages if one.kind == "compute"), key=lambda one: one.time_s or 0)
    assert stage.time_s == pytest.approx(WORK_S, rel=0.05)
    assert stage.factors == {1: pytest.approx(1.0), 2: pytest.approx(0.5, rel=0.05)}
    assert stage.shares[2] == pytest.approx((0.25, 0.75), abs=0.01)


def test_a_process_that_leaves_and_returns_is_in_the_groups_in_which_it_computed(tmp_path) -> None:
    def script(rank: int) -> list[Call]:
        begins = [point(rank, 2, 0, 0), *arrays(2, 0, 0.5), *iterations(rank, 2, 0, 10, 0)]
        alone = [point(0, 1, 10, 1), *arrays(1, 1, 1.0), *iterations(0, 1, 10, 20, 1)]
        away = [] if rank else alone
        waits_s = 5.0 if rank else 0.001
        again = [point(rank, 2, 20, 2, waits_s), *arrays(2, 2, 0.5), *iterations(rank, 2, 20, 40, 2)]
        return [*begins, *away, *again, point(rank, 2, 40, 2)]

    course = course_of([log_of(rank, 2, script(rank)) for rank in range(2)])
    assert [(group.run.processes, group.iterations) for group in course] == [(2, 10), (1, 10), (2, 20)]
    assert course[0].run.elapsed_s < 1, "the time asleep belongs to no group"
    found = described(course, tmp_path)
    assert [group.processes for group in found.groups] == [2, 1, 2]


def test_a_process_without_a_log_is_told() -> None:
    with pytest.raises(CaptureError, match=r"ranks \[1\] of 2 are missing"):
        course_of(grown()[:1])


def test_the_whole_run_has_the_resizes_among_its_control_points() -> None:
    whole = whole_run(grown(0.5))
    assert whole.processes == 1
    assert whole.control_s == pytest.approx(0.5 + 50 * 1e-4, rel=0.05)
    assert whole.elapsed_s > whole.computing_s + whole.communication_s


def test_a_program_that_is_not_malleable_is_one_group(tmp_path) -> None:
    script = [Call("MPI_Allreduce", 8, 0.01)] * 30
    course = course_of([log_of(rank, 2, script) for rank in range(2)])
    assert [(group.iterations, group.held) for group in course] == [(30, ())]
    assert described(course, tmp_path).data.bytes == 0


def test_control_points_are_no_computing() -> None:
    script = [*iterations(0, 2, 0, 40, 0)]
    slow = [replace(call, takes_s=0.01) if call.kind == "control point" else call for call in script]

    def computing(calls: list[Call]) -> Run:
        (group,) = course_of([log_of(rank, 2, [point(rank, 2, 0, 0), *calls]) for rank in range(2)])
        return group.run

    assert computing(slow).computing_s == pytest.approx(computing(script).computing_s, rel=0.01)
