"""libhocket in programs of several processes: what it sees, counts, requests, and reports, on each MPI."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import runtime_kit as kit
from stand_in_hocketd import StandIn

pytestmark = pytest.mark.timeout(180)

WRAPPERS = (
    kit.REPO / "src" / "libhocket" / "intercept" / "posix_wrappers.c"
)  # the functions of libc that libhocket wraps


def test_exports_nothing_but_the_wrappers_and_the_api(library: Path) -> None:
    by_kind = (
        r"^(?:BLOCK|PARTS|STREAM|FORGETTING|SHOWING|SHOWING_\w+)\([\w*]+, (\w+)"
        r"|^(?:SYNC|COPY|OPENING|MAPPING|LISTED)\((\w+)|^EXPORT void (\w+)"
    )
    libc = sorted("".join(names) for names in re.findall(by_kind, WRAPPERS.read_text(), re.M))
    assert "write" in libc and "fsync" in libc and "close" in libc
    for name in ("mpich", "openmpi"):
        shared = library / f"libhocket-{name}.so"
        out = subprocess.run(["nm", "-D", "--defined-only", shared], capture_output=True, text=True, check=True).stdout
        symbols = [line.split()[-1] for line in out.splitlines()]
        assert "MPI_File_write_at_all" in symbols
        assert [s for s in symbols if not re.match(r"P?MPI_|hocket_", s)] == libc


def test_brings_no_library_but_libc(library: Path) -> None:
    for name in ("libhocket-mpich.so", "libhocket-openmpi.so", "hocket-preload"):
        out = subprocess.run(["ldd", library / name], capture_output=True, text=True, check=True).stdout
        needed = {Path(line.split()[0]).name for line in out.splitlines()}
        assert needed <= {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}, f"{name} needs {needed}"


def test_is_harmless_in_a_program_without_mpi(library: Path) -> None:
    for name in ("mpich", "openmpi"):
        run = subprocess.run(
            ["sh", "-c", "echo out; exit 3"],
            env={"LD_PRELOAD": str(library / f"libhocket-{name}.so"), "HOCKET_SOCKET": "/nowhere"},
            capture_output=True,
            text=True,
        )
        assert (run.returncode, run.stdout, run.stderr) == (3, "out\n", "")


def declared_data_access(mpi: kit.Mpi) -> set[str]:
    """Return the data-access routines (MPI 4.1, table 14.1) that this MPI's mpi.h declares."""
    source = kit.PROGRAMS / "tool.c"
    preprocessed = subprocess.run(
        [*mpi.compilers[".c"], "-E", source], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    return set(re.findall(r"\bMPI_File_i?(?:read|write)\w*", preprocessed))


def test_the_table_has_every_data_access_routine(mpi: kit.Mpi) -> None:
    table = (kit.REPO / "src" / "libhocket" / "intercept" / "mpi_routines.txt").read_text()
    wrapped = {f"MPI_{name}{end}" for name in re.findall(r"^\w+", table, re.M) for end in ("", "_c")}
    declared = declared_data_access(mpi)
    assert len(declared) >= 30
    assert declared <= wrapped, f"mpi_routines.txt misses {sorted(declared - wrapped)}"
    exported = subprocess.run(["nm", "-D", mpi.libhocket], capture_output=True, text=True, check=True).stdout
    assert declared <= set(re.findall(r" T (\w+)", exported))
    program = set(re.findall(r"MPI_File_\w+", (kit.PROGRAMS / "io_routines.c").read_text()))
    assert declared <= program, f"tests/programs/io_routines.c does not call {sorted(declared - program)}"


@pytest.mark.parametrize("mpi", kit.WITH_TWO_NODES, indirect=True)
def test_counts_every_io_routine_once_and_its_bytes_exactly(
    mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path
) -> None:
    run = mpi.run([built("io_routines.c"), tmp_path / "f"], kit.settings(controller.socket))
    assert (run.code, run.warnings) == (0, []), run.err
    calls, read, written = map(int, re.fullmatch(r"calls (\d+) read (\d+) written (\d+)\n", run.out).groups())
    bye = controller.bye()
    assert bye["io_calls"] == 2 * calls
    assert bye["bytes_read"] == 2 * read
    assert bye["bytes_written"] == 2 * written
    assert bye["io_ns"] > 0
    started, finished = controller.events("START_IO"), controller.events("FINISH_IO")
    asked = {e["operation"].removesuffix("_c") for e in started}
    assert {"MPI_File_write_at_all", "MPI_File_iread_all", "MPI_File_read_ordered_begin", "MPI_File_sync"} <= asked
    requests = [(e["member"], e["request"]) for e in started]
    assert len(requests) == len(set(requests)), "one START_IO a request"
    assert sorted((e["member"], e["request"]) for e in finished) == sorted(requests)


def test_reports_phases_and_their_parts(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path) -> None:
    burst = ["write=1000", "sync", "split=500", "start=500", "alone=100"]
    run = mpi.run(
        [
            built("script.c"),
            f"open={tmp_path / 'f'}",
            *burst,
            "pause=0.8",
            "allreduce=5",
            *burst,
            "close",
            "allreduce=3",
        ],
        kit.settings(controller.socket, phase_gap_s=0.5),
    )
    assert (run.code, run.err) == (0, "")
    first, second = controller.of_first("IO_PHASE")
    for index, phase in enumerate((first, second)):
        assert phase["index"] == index
        assert phase["operations"] == 5
        assert (phase["bytes_read"], phase["bytes_written"]) == (0, 2100)
        assert phase["start_ns"] <= phase["end_ns"]
        assert 0 < phase["io_ns"] + phase["wait_ns"] <= phase["end_ns"] - phase["start_ns"] + phase["io_ns"]
    assert second["start_ns"] - first["end_ns"] >= 790e6
    assert second["cpu_ns"] >= 790e6, "the pause is computing"
    assert re.fullmatch(r"dev:\d+:\d+@[0-9a-f]{16}", first["target"])
    types = [e["type"] for e in controller.events()]
    assert types.index("IO_PHASE") < types.index("START_IO", types.index("IO_PHASE")), (
        "reported when the gap had passed"
    )
    bye = controller.bye()
    assert bye["comm_calls"] >= 2 * 8
    assert (bye["io_calls"], bye["bytes_written"]) == (20, 8400)
    assert controller.events("LOST") and types[-1] == "LOST"


@pytest.mark.parametrize("mpi", kit.WITH_TWO_NODES, indirect=True)
def test_rank_0_tells_what_all_computed_and_communicated(
    mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path
) -> None:
    uneven = ["half", "pause=0.5", "all", "allreduce=1"]  # the lower ranks wait for the upper ones
    actions = [*uneven, "write=1000", "pause=0.8", *uneven, "split=1000", "close"]
    settings = kit.settings(controller.socket, phase_gap_s=0.3)
    run = mpi.run([built("script.c"), f"open={tmp_path / 'f'}", *actions], settings, ranks=4)
    assert (run.code, run.err) == (0, "")
    first, second = controller.events("IO_PHASE")
    bye = controller.bye()
    assert [phase["told_processes"] for phase in (first, second)] == [4, 4]
    assert first["all_cpu_ns"] >= 2 * 0.5e9, "of the two that paused"
    assert second["all_cpu_ns"] - first["all_cpu_ns"] >= 2 * 0.5e9 + 4 * 0.8e9
    assert second["cpu_most_ns"] >= 1.8e9
    for kind in ("cpu", "comm"):
        least, most = (phase[f"{kind}_most_ns"] for phase in (first, second))
        assert 0 < least <= most <= bye[f"{kind}_most_ns"]
        assert most <= second[f"all_{kind}_ns"] <= 4 * most
        assert second[f"all_{kind}_ns"] <= bye[f"{kind}_ns"]


@pytest.mark.parametrize("touch", [["open=other"], ["collective=mpi"], ["close", "open=again"]])
def test_computing_before_a_file_is_touched_is_in_no_phase(
    mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path, touch: list[str]
) -> None:
    touch = [action.replace("open=", f"open={tmp_path}/") for action in touch]
    run = mpi.run(
        [built("script.c"), f"open={tmp_path / 'f'}", "write=1000", "pause=0.8", *touch, "write=1000", "close"],
        kit.settings(controller.socket, phase_gap_s=0.5),
    )
    assert run.code == 0, run.err
    first, second = controller.events("IO_PHASE")
    assert [phase["bytes_written"] for phase in (first, second)] == [1000, 1000]
    assert second["start_ns"] - first["end_ns"] >= 790e6
    assert second["cpu_ns"] >= 790e6


def test_says_how_much_an_access_is_about(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path) -> None:
    actions = ["write=1000", "split=500", "start=300", "sync", "alone=70", "close"]
    run = mpi.run([built("script.c"), f"open={tmp_path / 'f'}", *actions], kit.settings(controller.socket))
    assert (run.code, run.err) == (0, "")
    told = [(e["operation"].removesuffix("_c"), e["bytes"]) for e in controller.events("START_IO")]
    assert sorted(told) == [
        ("MPI_File_iwrite_at_all", 600),
        ("MPI_File_sync", 0),
        ("MPI_File_write_at", 70),  # each rank for itself
        ("MPI_File_write_at", 70),
        ("MPI_File_write_at_all", 2000),
        ("MPI_File_write_at_all_begin", 1000),
    ]


@pytest.mark.parametrize("mpi", ["mpich_on_two_nodes"], indirect=True)
@pytest.mark.parametrize("ranks", [3, 5])
def test_rank_0_hears_of_every_end_from_other_nodes(
    mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path, ranks: int
) -> None:
    """MPICH loses messages between nodes if their receive names no sender."""
    actions = ["write=65536"] * 160
    settings = kit.settings(controller.socket)
    run = mpi.run([built("script.c"), f"open={tmp_path / 'f'}", *actions, "close"], settings, ranks=ranks)
    assert (run.code, run.err) == (0, "")
    assert len(controller.events("FINISH_IO")) == len(actions)


def test_says_who_it_is(mpi: kit.Mpi, built, controller: StandIn) -> None:
    program = built("script.c")
    assert mpi.run([program, "allreduce=3"], kit.settings(controller.socket), ranks=3).code == 0
    hello = controller.only("HELLO")
    assert hello["job"] == "job-1"
    assert hello["application_asked"] == "a"
    assert hello["program"] == str(program)
    assert hello["mpi"] == mpi.name
    assert hello["processes"] == 3
    assert [e["type"] for e in controller.events()] == ["HELLO", "BYE", "LOST"], "no I/O: nothing else is said"


def test_without_a_socket_it_tells_nobody(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path) -> None:
    run = mpi.run([built("script.c"), f"open={tmp_path / 'f'}", "write=100", "sync", "close"], {})
    assert (run.code, run.err) == (0, "")
    assert controller.events() == []


def test_told_not_to_coordinate_it_is_watched(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path) -> None:
    burst = ["write=100", "split=100", "start=100", "sync", "alone=10"]
    run = mpi.run(
        [built("script.c"), f"open={tmp_path / 'f'}", *burst, "pause=0.8", *burst, "close", "allreduce=3"],
        kit.settings(controller.socket, coordinate=0, phase_gap_s=0.5),
    )
    assert (run.code, run.err) == (0, "")
    # The other rank connects, too, at its first independent access: the operator may hold the target.
    of_rank_0 = [e["type"] for e in controller.of_first()]
    assert of_rank_0 == ["HELLO", "IO_PHASE", "IO_PHASE", "BYE", "LOST"]
    assert {e["type"] for e in controller.events()} == set(of_rank_0)
    assert [(e["operations"], e["bytes_written"], e["wait_ns"]) for e in controller.of_first("IO_PHASE")] == [
        (5, 310, 0),
        (5, 310, 0),
    ]
    bye = controller.bye()
    assert (bye["io_calls"], bye["bytes_written"], bye["wait_ns"]) == (20, 1240, 0)


def test_a_hint_names_the_target(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path) -> None:
    run = mpi.run(
        [built("script.c"), "target=scratch", f"open={tmp_path / 'f'}", "write=9", "close"],
        kit.settings(controller.socket),
    )
    assert (run.code, run.err) == (0, "")
    assert controller.only("START_IO")["target"] == "scratch"
    assert controller.only("IO_PHASE")["target"] == "scratch"


@pytest.mark.parametrize("mpi", kit.WITH_TWO_NODES, indirect=True)
def test_a_file_of_some_ranks_is_asked_for_by_their_first(
    mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path
) -> None:
    run = mpi.run(
        [built("script.c"), "half", f"open={tmp_path / 'f'}", "write=10", "write=10", "close", "all", "allreduce=1"],
        kit.settings(controller.socket),
        ranks=4,
    )
    assert (run.code, run.err) == (0, "")
    assert (tmp_path / "f").read_bytes() == b"C" * 10 + b"D" * 10 + b"C" * 10 + b"D" * 10
    world, further = controller.events("HELLO")
    assert (world["processes"], further["processes"]) == (4, 0)
    assert (world["job"], world["mpi"]) == (further["job"], further["mpi"])
    assert {e["member"] for e in controller.events("START_IO", "FINISH_IO", "IO_PHASE")} == {further["member"]}
    assert len(controller.events("START_IO")) == 2


def test_each_rank_asks_for_files_of_its_own(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path) -> None:
    run = mpi.run(
        [built("script.c"), "self", f"open={tmp_path / 'f'}", "write=10", "close"], kit.settings(controller.socket)
    )
    assert (run.code, run.err) == (0, "")
    assert sorted(e["member"] for e in controller.events("START_IO")) == [1, 2]
    assert sorted(e["member"] for e in controller.events("FINISH_IO")) == [1, 2]
    phases = controller.events("IO_PHASE")
    assert sorted(e["member"] for e in phases) == [1, 2], "each tells when it was in I/O"
    assert [e["bytes_written"] for e in phases] == [10, 10]
    assert all(e["of_one_process"] == (e["member"] != controller.first()) for e in phases), "rank 0 speaks for all"
    assert controller.bye()["bytes_written"] == 20


def test_independent_accesses_beside_collective_ones_are_told_apart(
    mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path
) -> None:
    actions = ["write=1000", "alone=100", "pause=0.8", "write=1000", "pause=0.8", "alone=70", "close"]
    settings = kit.settings(controller.socket, phase_gap_s=0.3)
    run = mpi.run([built("script.c"), f"open={tmp_path / 'f'}", *actions], settings, ranks=3)
    assert (run.code, run.err) == (0, "")
    assert [e["bytes_written"] for e in controller.of_first("IO_PHASE")] == [1100, 1000, 70]
    others = [e for e in controller.events("IO_PHASE") if e["member"] != controller.first()]
    assert sorted(e["bytes_written"] for e in others) == [70, 70, 100, 100], "not the accesses that rank 0 asked for"
    assert all(e["of_one_process"] for e in others)


def test_a_program_of_one_process_asks(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path) -> None:
    run = mpi.run(
        [built("script.c"), f"open={tmp_path / 'f'}", "write=10", "close"], kit.settings(controller.socket), ranks=1
    )
    assert (run.code, run.err) == (0, "")
    assert controller.only("FINISH_IO")["bytes"] == 10


def test_an_open_that_fails_leaves_nothing(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path) -> None:
    # A failed open must free its communicator: MPICH has 2048, so a leak would end in an error.
    failing = [f"open={tmp_path / 'none' / 'f'}"] * 2100 if mpi.name == "mpich" else [f"open={tmp_path / 'none' / 'f'}"]
    run = mpi.run(
        [built("script.c"), *failing, f"open={tmp_path / 'f'}", "write=10", "close"],
        kit.settings(controller.socket),
        limit_s=150,
    )
    assert run.code == 0
    assert "open failed" in run.err
    assert run.warnings == []
    assert len(controller.events("START_IO")) == 1


def test_spawned_processes_are_a_world_of_the_same_job(
    mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path
) -> None:
    run = mpi.run(
        [built("script.c"), "spawn=2", f"open={tmp_path / 'f'}", "write=10", "close"], kit.settings(controller.socket)
    )
    assert run.code == 0, run.err
    assert run.warnings == []
    hellos = controller.events("HELLO")
    assert [(e["job"], e["processes"]) for e in hellos] == [("job-1", 2), ("job-1", 2)]
    assert {e["member"] for e in controller.events("START_IO")} == {hellos[1]["member"]}
    assert len(controller.events("BYE")) == 2
    assert (tmp_path / "f").read_bytes() == b"A" * 10 + b"B" * 10


def test_the_end_by_abort_is_a_lost_connection(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path) -> None:
    run = mpi.run([built("script.c"), f"open={tmp_path / 'f'}", "write=10", "abort"], kit.settings(controller.socket))
    assert run.code != 0  # 7; Open MPI's prterun sometimes crashes itself at this
    assert run.warnings == []
    controller.await_events("LOST", 1)
    assert controller.events("BYE") == []


def test_a_forked_child_is_no_part_of_it(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path) -> None:
    run = mpi.run(
        [built("script.c"), f"open={tmp_path / 'f'}", "write=10", "fork", "write=10", "close"],
        kit.settings(controller.socket),
    )
    assert run.code == 0, run.err
    assert run.warnings == []
    assert len(controller.events("GRANT_IO", "START_IO")) == 2
    assert controller.bye()["bytes_written"] == 40


def test_threads_write_and_communicate_at_once(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path) -> None:
    # On MPICH, collective calls of several threads between two ranks hang here, also without libhocket.
    ranks = 1 if mpi.name == "mpich" else 2
    run = mpi.run([built("threads.c"), tmp_path / "f"], kit.settings(controller.socket), ranks=ranks, limit_s=120)
    assert (run.code, run.warnings) == (0, []), run.err
    bye = controller.bye()
    assert bye["io_calls"] == ranks * 4 * 10
    assert bye["bytes_written"] == ranks * 4 * 10 * 512
    assert bye["comm_calls"] == ranks * 4 * (10 + 2)  # reductions; the dup and free of each thread's communicator
    asked = [e["request"] for e in controller.events("START_IO")]
    assert sorted(asked) == list(range(1, 41))
    assert sorted(e["request"] for e in controller.events("FINISH_IO")) == sorted(asked)


TOOL_PLACES = ["above", "below"]


@pytest.mark.parametrize("place", TOOL_PLACES)
@pytest.mark.parametrize("by", ["next", "pmpi"])
def test_other_tools_stack_above_and_below(
    mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path, place: str, by: str
) -> None:
    flags = ["-shared", "-fPIC", *(["-DTOOL_NEXT"] if by == "next" else [])]
    tool = mpi.compile("tool.c", tmp_path / "tool.so", *flags)
    preload = ":".join(map(str, [tool, mpi.libhocket] if place == "above" else [mpi.libhocket, tool]))
    run = mpi.run(
        [built("script.c"), f"open={tmp_path / 'f'}", "write=10", "write=10", "close", "allreduce=7"],
        {**kit.settings(controller.socket), "TOOL_LOG": str(tmp_path / "log")},
        preload=preload,
    )
    assert (run.code, run.err) == (0, "")
    logs = [log.read_text() for log in tmp_path.glob("log.*")]
    assert logs == ["tool init 1 allreduce 7 write 2\n"] * 2
    bye = controller.bye()
    assert (bye["io_calls"], bye["bytes_written"], bye["comm_calls"]) == (4, 40, 14)


@pytest.mark.parametrize("binding", ["MPIF", "MPI", "F08"])
def test_fortran_programs_are_seen(fortran: kit.Mpi, controller: StandIn, tmp_path: Path, binding: str) -> None:
    program = fortran.compile("checkpoint.F90", tmp_path / "checkpoint", f"-DBINDING_{binding}")
    run = fortran.run([program, tmp_path / "f"], kit.settings(controller.socket))
    assert run.code == 0, run.err
    assert run.warnings == []
    assert controller.only("HELLO")["processes"] == 2
    assert [e["operation"] for e in controller.events("START_IO")] == ["MPI_File_write_at_all"] * 3
    bye = controller.bye()
    assert (bye["io_calls"], bye["bytes_written"], bye["comm_calls"]) == (6, 96, 4)
    assert (tmp_path / "f").stat().st_size == 96


def test_mpi4py_programs_are_seen(mpi: kit.Mpi, controller: StandIn, tmp_path: Path) -> None:
    if mpi.name == "openmpi":
        mpi.environment |= {"MPI4PY_MPIABI": "openmpi", "LD_LIBRARY_PATH": str(kit.OPENMPI / "lib")}
    python = kit.REPO / ".venv" / "bin" / "python"
    # posix=0: the interpreter reads its modules, too.
    run = mpi.run([python, kit.PROGRAMS / "checkpoint.py", tmp_path / "f"], kit.settings(controller.socket, posix=0))
    assert (run.code, run.warnings) == (0, []), run.err
    assert len(controller.events("START_IO")) == 3
    bye = controller.bye()
    assert (bye["io_calls"], bye["bytes_written"]) == (6, 96)
    assert bye["comm_calls"] >= 4
    assert (tmp_path / "f").read_bytes() == (b"A" * 16 + b"B" * 16) * 3


def test_debians_open_mpi_takes_the_same_library(library: Path, controller: StandIn, tmp_path: Path) -> None:
    mpi = kit.debian_openmpi(library)
    program = mpi.compile("script.c", tmp_path / "script")
    run = mpi.run([program, f"open={tmp_path / 'f'}", "write=10", "close"], kit.settings(controller.socket))
    assert run.code == 0, run.err
    assert len(controller.events("START_IO")) == 1
    assert controller.bye()["bytes_written"] == 20
