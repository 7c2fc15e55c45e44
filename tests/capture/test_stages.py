"""Stages that are found in the logs of calls, beside the scripts that made these logs."""

import random
from dataclasses import replace

import pytest
from capture_logs import Call, log_of
from hocket.capture.describe import describe
from hocket.capture.stages import Run, Stage, run_of
from hocket.emulator.description import Description, read_description


def cg_iteration(share: float) -> list[Call]:
    return [
        Call("MPI_Allgatherv", round(80_000 * share), 0.0001),
        Call("MPI_Allreduce", 8, 0.02 * share),
        Call("MPI_Allreduce", 8, 0.004 * share),
    ]


def run(*scripts: list[Call], tail_s: float = 0.0) -> Run:
    return run_of([log_of(rank, len(scripts), script, tail_s) for rank, script in enumerate(scripts)])


def stages_of(found: Run) -> list[Stage]:
    return list(max(found.phases, key=lambda phase: phase.iterations).stages)


def read(text: str, tmp_path) -> Description:
    path = tmp_path / "app.toml"
    path.write_text(text)
    return read_description(path)


def test_an_unbalanced_solver_has_its_stages_and_shares(tmp_path) -> None:
    found = run(*([*cg_iteration(share) * 50] for share in (0.25, 0.75)))
    stages = stages_of(found)
    messages = [stage.kind for stage in stages if stage.kind != "compute"]
    assert messages == ["allgatherv", "allreduce", "allreduce"]
    longest = max((stage for stage in stages if stage.kind == "compute"), key=lambda stage: stage.cpu_s[1])
    assert longest.cpu_s == pytest.approx((0.005, 0.015), rel=0.05)
    text, notes = describe("cg", {2: found})
    assert notes == []
    described = read(text, tmp_path)
    gathered = next(stage for stage in described.stages if stage.kind == "allgatherv")
    assert gathered.bytes == 80_000
    assert gathered.shares[2] == pytest.approx((0.25, 0.75))
    computing = sum((one.time_s or 0) for phase in described.phases for one in phase.stages if one.kind == "compute")
    assert computing == pytest.approx(0.0241, rel=0.05)  # of both ranks together
    assert described.iterations == pytest.approx(50, abs=2)


def test_computing_that_one_size_lacks_is_part_of_the_next_in_all(tmp_path) -> None:
    """On crowded cores an iteration waits, and what is short beside it is no stage any more."""
    crowded = [replace(one, takes_s=0.02) for one in cg_iteration(0.25)]
    runs = {2: run(*[cg_iteration(0.5) * 20] * 2), 4: run(*[crowded * 20] * 4)}
    kinds = {size: [stage.kind for stage in stages_of(one)].count("compute") for size, one in runs.items()}
    assert kinds[2] > kinds[4], kinds
    text, notes = describe("cg", runs)
    assert notes == []
    computing = [stage for stage in read(text, tmp_path).stages if stage.kind == "compute"]
    assert len(computing) == kinds[4]
    assert all(stage.factors and set(stage.factors) == {2, 4} for stage in computing)
    of_two = sum((stage.time_s or 0) * (stage.factors or {})[2] for stage in computing)
    assert of_two == pytest.approx(0.0121, rel=0.02)  # of a rank of two: nothing is lost


@pytest.mark.parametrize("ranks", [2, 4])
def test_computing_that_varies_by_itself_has_its_jitter(ranks, tmp_path) -> None:
    """Ranks wait for the slowest, in each iteration another one; so does the emulation (`jitter` of a stage)."""
    draw = random.Random(1)
    share, deviation = [0.5, 1.5, 1.0, 1.0], 0.04

    def script(rank: int) -> list[Call]:
        one, two, three = cg_iteration(0.5 * share[rank])
        vary = [draw.gauss(1, deviation) for _ in range(400)]
        return [call for by in vary for call in (one, replace(two, computes_s=two.computes_s * by), three)]

    found = run(*(script(rank) for rank in range(ranks)))
    longest = max((stage for stage in stages_of(found) if stage.kind == "compute"), key=lambda stage: stage.cpu_s[0])
    assert longest.jitter == pytest.approx(deviation, rel=0.1)
    others = [stage.jitter for stage in stages_of(found) if stage.kind == "compute" and stage is not longest]
    assert others and max(others) < 0.001
    described = [stage for stage in read(describe("cg", {ranks: found})[0], tmp_path).stages if stage.jitter > 0]
    assert len(described) == 1 and described[0].jitter == pytest.approx(deviation, rel=0.1)
    assert not any(stage.jitter for stage in stages_of(run(script(0))))  # a rank alone waits for nobody


@pytest.mark.parametrize("counted", ["computes_s", "starved_s"])
def test_one_pause_of_the_machine_is_no_computing(counted: str) -> None:
    """A kernel that knows nothing of the pause counts it as CPU time of the rank that had the core."""
    bodies = [[Call("MPI_Allreduce", 8, share)] * 40 for share in (0.001, 0.003)]
    plain = stages_of(run(*bodies))
    paused = replace(bodies[0][20], **{counted: getattr(bodies[0][20], counted) + 0.1})
    bodies[0] = [*bodies[0][:20], paused, *bodies[0][21:]]
    stages = stages_of(run(*bodies))
    assert [stage.kind for stage in stages] == ["compute", "allreduce"]
    assert stages[0].cpu_s == pytest.approx(plain[0].cpu_s)
    assert stages[0].elapsed_s == pytest.approx(plain[0].elapsed_s)
    assert stages[0].jitter == pytest.approx(0, abs=1e-6)


def test_one_long_iteration_is_the_programs_own() -> None:
    body = [Call("MPI_Allreduce", 8, 0.1)] * 24
    found = stages_of(run([*body, Call("MPI_Allreduce", 8, 5.0), *body], [*body, body[0], *body]))
    assert found[0].cpu_s == pytest.approx([(47 * 0.1 + 5.0) / 48, 0.1])


def test_more_ranks_than_cores_may_share_them_again(tmp_path) -> None:
    found = {2: run(*[cg_iteration(0.5) * 20] * 2)}
    assert not read(describe("cg", found, cores=2)[0], tmp_path).oversubscribe
    assert read(describe("cg", found, cores=1)[0], tmp_path).oversubscribe


def test_several_sizes_give_the_scaling(tmp_path) -> None:
    text, notes = describe("cg", {2: run(*[cg_iteration(0.5) * 20] * 2), 4: run(*[cg_iteration(0.3) * 20] * 4)})
    assert notes == []
    stage = max((one for one in read(text, tmp_path).stages if one.kind == "compute"), key=lambda one: one.time_s or 0)
    assert stage.factors is not None
    assert stage.factors[4] / stage.factors[2] == pytest.approx(0.6, rel=0.05)


def test_messages_with_neighbours_are_a_halo_exchange(tmp_path) -> None:
    def rank(left: int, right: int) -> list[Call]:
        peers = [one for one in (left, right) if one >= 0]
        starts = [Call("MPI_Isend", 4096, 0.0, peer=one, together=False) for one in peers]
        starts += [Call("MPI_Irecv", 4096, 0.0, peer=one, together=False) for one in peers]
        waits = [Call("MPI_Waitall", kind="complete")]
        return [Call("MPI_Allreduce", 8, 0.01), *starts, *waits] * 30

    stages = stages_of(run(rank(-1, 1), rank(0, 2), rank(1, -1)))
    halo = next(stage for stage in stages if stage.kind == "halo")
    assert (halo.bytes, halo.dimensions) == ((4096, 4096, 4096), 1)


def test_messages_that_computing_overlaps_have_their_wait(tmp_path) -> None:
    def rank(peer: int) -> list[Call]:
        return [
            Call("MPI_Isend", 1000, 0.001, peer=peer, together=False),
            Call("MPI_Irecv", 1000, 0.0, peer=peer, together=False),
            Call("MPI_Waitall", 0, 0.005, kind="complete"),
            Call("MPI_Allreduce", 8, 0.001),
        ] * 30

    found = run(rank(1), rank(0))
    kinds = [stage.kind for stage in stages_of(found)]
    assert kinds == ["compute", "isend-irecv", "compute", "wait", "compute", "allreduce"]
    assert read(describe("app", {2: found})[0], tmp_path).iterations == 30


def starts(*gaps_s: float) -> list[Call]:
    return [Call("MPI_Isend", 512, gap_s, peer=0, together=False) for gap_s in gaps_s]


def test_one_exchange_is_one_stage_whatever_lies_between_its_starts() -> None:
    script = [Call("MPI_Allreduce", 8, 0.001), *starts(1e-5, 1e-5, 1e-5), Call("MPI_Waitall", kind="complete")] * 30
    kinds = [stage.kind for stage in stages_of(run(script, script)) if stage.kind != "compute"]
    assert kinds == ["sendrecv", "allreduce"]


@pytest.mark.parametrize(
    "body",
    [
        [*starts(1e-3), Call("MPI_Allreduce", 8, 1e-3), *starts(1e-3), Call("MPI_Waitall", kind="complete")],
        [*starts(1e-3), Call("MPI_Allreduce", 8, 1e-3)],
        [Call("MPI_Waitall", 0, 1e-3, kind="complete"), Call("MPI_Allreduce", 8, 1e-3)],
    ],
)
def test_a_description_has_a_wait_for_each_start(body: list[Call], tmp_path) -> None:
    assert read(describe("app", {2: run(body * 30, body * 30)})[0], tmp_path).iterations > 0


def test_io_has_its_period_and_number_of_accesses(tmp_path) -> None:
    def rank() -> list[Call]:
        script = []
        for iteration in range(1, 41):
            script.append(Call("MPI_Allreduce", 8, 0.01))
            if iteration % 10 == 0:
                script += [Call("MPI_File_write_at_all", 1 << 20, 0.0, 0.02, "write", file=7)] * 3
        return script

    found = run(rank(), rank())
    write = next(stage for stage in stages_of(found) if stage.kind == "write")
    assert (write.every, write.repeat, write.access) == (10, 3, "collective")
    described = read(describe("app", {2: found})[0], tmp_path)
    stage = next(one for one in described.stages if one.kind == "write")
    assert (stage.every, stage.repeat, stage.bytes) == (10, 3, 2 << 20)
    assert described.accessed_bytes == 4 * 3 * (2 << 20), "no access is described twice"
    compute = next(one for one in described.stages if one.kind == "compute")
    assert compute.time_s == pytest.approx(0.02, rel=0.01)  # without the time of the accesses


@pytest.mark.parametrize("last", [False, True])
def test_accesses_before_a_message_or_after_the_last_one_count_once(last: bool, tmp_path) -> None:
    access = [Call("MPI_File_write_at_all", 1000, 0.0, 0.001, "write", file=7)]
    message = [Call("MPI_Allreduce", 8, 0.01)]
    found = run(*[(message + access if last else access + message) * 30] * 2)
    assert read(describe("app", {2: found})[0], tmp_path).accessed_bytes == 30 * 2000


def test_an_access_after_the_iterations_is_kept(tmp_path) -> None:
    script = [Call("MPI_Allreduce", 8, 0.01)] * 30 + [Call("MPI_File_write_at_all", 500, 0.0, 0.01, "write", file=3)]
    assert read(describe("app", {2: run(script, script)})[0], tmp_path).accessed_bytes == 1000


def writer(routine: str, offset_of, calls: int = 4) -> list[Call]:
    """Return a rank that writes 1000 bytes so often in each fifth iteration. `offset_of` gets the time and the call."""
    script = []
    for iteration in range(1, 41):
        script.append(Call("MPI_Allreduce", 8, 0.01))
        if iteration % 5 == 0:
            places = [offset_of(iteration // 5 - 1, call) for call in range(calls)]
            script += [Call(routine, 1000, 0.0, 0.001, "write", file=7, offset=place) for place in places]
    return script


@pytest.mark.parametrize("routine", ["MPI_File_write_at_all", "MPI_File_write_at"])
@pytest.mark.parametrize(
    ("placed", "strided", "append"),
    [
        (lambda rank: lambda time, call: 3000 * call + 1000 * rank, True, False),
        (lambda rank: lambda time, call: 12_000 * time + 3000 * call + 1000 * rank, True, True),
        (lambda rank: lambda time, call: 4000 * rank + 1000 * call, False, False),
        (lambda rank: lambda time, call: 12_000 * time + 4000 * rank + 1000 * call, False, True),
    ],
)
def test_offsets_tell_how_the_ranks_share_a_file(routine: str, placed, strided: bool, append: bool, tmp_path) -> None:
    found = run(*(writer(routine, placed(rank)) for rank in range(3)))
    stage = next(one for one in stages_of(found) if one.kind == "write")
    assert (stage.strided, stage.append, stage.repeat, stage.request_bytes) == (strided, append, 1, 1000)
    described = next(one for one in read(describe("app", {3: found})[0], tmp_path).stages if one.kind == "write")
    assert (described.pattern, described.append, described.bytes, described.every) == (
        "strided" if strided else "contiguous",
        append,
        12_000,
        5,
    )


def test_a_collective_access_that_is_repeated_at_its_place_stays_one(tmp_path) -> None:
    found = run(*(writer("MPI_File_write_at_all", lambda time, call, rank=rank: 1000 * rank, 2) for rank in range(2)))
    stage = next(one for one in stages_of(found) if one.kind == "write")
    assert (stage.strided, stage.append, stage.repeat, stage.request_bytes) == (False, False, 2, 0)


def test_files_of_their_own_and_requests_are_told_from_a_shared_file() -> None:
    def rank(file: int) -> list[Call]:
        script = []
        for iteration in range(1, 21):
            script.append(Call("MPI_Allreduce", 8, 0.01))
            if iteration % 5 == 0:
                script += [Call("write", 65536, 0.0, 0.001, "write", file=file)] * 4
                script += [Call("fsync", 0, 0.0, 0.001, "write", file=file)]
        return script

    own = next(stage for stage in stages_of(run(rank(3), rank(4))) if stage.kind == "write")
    assert (own.access, own.request_bytes, own.bytes, own.sync) == ("file-per-process", 65536, (262144, 262144), True)
    shared = next(stage for stage in stages_of(run(rank(3), rank(3))) if stage.kind == "write")
    assert shared.access == "posix"


def test_what_precedes_and_follows_the_iterations_is_kept() -> None:
    begin = [Call("MPI_Bcast", 100, 0.5), Call("read", 1 << 20, 0.0, 0.1, "read", file=1)]
    found = run(*[begin + cg_iteration(0.5) * 50] * 2, tail_s=0.3)
    assert [phase.iterations for phase in found.phases if phase.iterations == 1] == [1, 1]
    first, last = found.phases[0], found.phases[-1]
    assert {stage.kind for stage in first.stages} == {"compute", "read"}
    assert sum(stage.cpu_s[0] for stage in first.stages if stage.cpu_s) == pytest.approx(0.5, rel=0.05)
    assert last.stages[0].cpu_s[0] == pytest.approx(0.3, rel=0.05)


def test_a_first_iteration_that_is_shorter_than_the_others_hides_nothing_before_it() -> None:
    begin = [Call("read", 1 << 20, 0.0, 0.01, "read", file=1), Call("MPI_Bcast", 100, 0.01)]
    first = [Call("MPI_Allgatherv", 800, 0.001), Call("MPI_Allreduce", 8, 0.0)]
    later = [Call("MPI_Allgatherv", 800, 0.1), Call("MPI_Allreduce", 8, 0.0)]
    found = run(*[begin + first + later * 5] * 2)
    assert [stage.kind for stage in found.before[0].stages] == ["compute", "read"]


def test_a_program_without_iterations_is_one_phase() -> None:
    found = run([Call("MPI_Bcast", 100, 0.5), Call("MPI_Reduce", 8, 0.2)])
    assert len(found.phases) == 1
    assert found.phases[0].stages[0].cpu_s[0] == pytest.approx(0.7, rel=0.05)


def test_a_rank_that_waits_for_a_core_does_not_sleep() -> None:
    sleeping = [Call("MPI_Allreduce", 8, 1e-4, sleeps_s=0.01)] * 30
    starved = [Call("MPI_Allreduce", 8, 1e-4, starved_s=0.01)] * 30
    assert [stage.kind for stage in stages_of(run(sleeping, sleeping))] == ["sleep", "allreduce"]
    assert [stage.kind for stage in stages_of(run(starved, starved))] == ["compute", "allreduce"]
