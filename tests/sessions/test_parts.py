"""Programs that name parts of their storage: only those whose parts meet take turns (CALCioM, III-B), on each MPI."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon, hocketd
from story import Story

pytestmark = pytest.mark.timeout(120)

Start = Callable[..., subprocess.Popen]


@pytest.fixture
def daemon(start_daemon: Callable[..., Daemon]) -> Daemon:
    return start_daemon("--policy", "fcfs")


@pytest.fixture
def start(mpi: kit.Mpi, built: Callable[..., Path], prefix: Path) -> Start:
    """Return a function that starts `hocket run --name NAME -- mpiexec -n 2 PROGRAM…`."""
    script = built("script.c")

    def begin(name: str, *arguments: str | Path, program: Path = script) -> subprocess.Popen:
        mpiexec, environment = mpi.command(2, [program, *arguments], preload="", settings={})
        hocket_run = [sys.executable, "-m", "hocket.cli", "run", "--name", name, "--"]
        return kit.launch([*hocket_run, *mpiexec], environment | {"HOCKET_PREFIX": str(prefix)})

    return begin


def is_well(process: subprocess.Popen) -> None:
    run = kit.finish(process)
    assert (run.code, run.err) == (0, "")


def replays(daemon: Daemon, prefix: Path) -> None:
    """The trace of the daemon gives the same commands again."""
    assert daemon.stop() == 0
    done = hocketd(prefix, "--replay", str(daemon.trace))
    assert done.returncode == 0, done.stderr


def test_disjoint_parts_overlap_and_common_ones_wait(start: Start, daemon: Daemon, prefix: Path, tmp_path: Path):
    story = Story(daemon)
    go = tmp_path / "go"
    first = start(
        "first", "targets=ost1,ost2", f"open={tmp_path / 'a'}", "begin=1000", f"await={go}", "finish", "close"
    )
    assert story.awaits("START_IO", application="first")["parts"] == "ost1,ost2"
    story.awaits("GRANT_IO", application="first")

    is_well(start("apart", "targets=ost3", f"open={tmp_path / 'b'}", "write=1000", "close"))
    story.awaits("BYE", application="apart")
    assert not story.all("QUEUED_IO", application="apart")

    second = start("second", "targets=ost2,ost4", f"open={tmp_path / 'c'}", "write=1000", "close")
    assert story.awaits("QUEUED_IO", application="second")["behind"] == "first"
    whole = start("whole", f"open={tmp_path / 'd'}", "write=1000", "close")
    assert story.awaits("QUEUED_IO", application="whole")["behind"] == "first"
    wait = story.awaits("DECISION", decided_for="second", action="wait")["reason"]
    assert wait["parts"] == "ost2,ost4"

    listed = subprocess.run([sys.executable, "-m", "hocket.cli", "ls"], capture_output=True, text=True, check=True)
    assert "(ost2,ost4): another application would wait" in listed.stdout
    go.touch()
    for process in (first, second, whole):
        is_well(process)
    replays(daemon, prefix)


def test_independent_accesses_use_their_parts_too(start: Start, daemon: Daemon, tmp_path: Path):
    story = Story(daemon)
    go = tmp_path / "go"
    first = start("first", "targets=ost1", f"open={tmp_path / 'a'}", "begin=1000", f"await={go}", "finish", "close")
    story.awaits("GRANT_IO", application="first")
    is_well(start("apart", "targets=ost3", f"open={tmp_path / 'b'}", "alone=1000", "close"))
    story.awaits("BYE", application="apart")
    assert {line["parts"] for line in story.all("START_IO", application="apart")} == {"ost3"}
    assert not story.all("QUEUED_IO", application="apart")
    go.touch()
    is_well(first)


def test_all_ranks_learn_the_layout_that_one_asks_for(
    mpi: kit.Mpi, built: Callable[..., Path], daemon: Daemon, lustre_layout: Path, tmp_path: Path
):
    story = Story(daemon)
    log = tmp_path / "log"
    (tmp_path / "lustre").mkdir()
    files = [f"open={tmp_path / 'lustre' / 'a'}", "alone=1000", "write=1000", "close"]
    files += ["self", f"open={tmp_path / 'lustre' / 'own'}", "alone=1000", "close"]
    settings = kit.settings(daemon.socket) | {"LAYOUT_OST": "7", "LAYOUT_LOG": str(log)}
    done = mpi.run([built("script.c"), *files], settings, ranks=2, preload=f"{mpi.libhocket}:{lustre_layout}")
    assert (done.code, done.err) == (0, "")
    story.awaits("BYE", application="a")
    asked = story.all("START_IO", application="a")
    assert {line["parts"] for line in asked} == {"ost7"}
    assert len({line["member"] for line in asked}) == 2
    assert sorted(log.read_text().split()) == ["0", "0", "1"], "rank 0 asks for the common file, each for its own"


def test_posix_accesses_use_the_parts_of_their_files(
    mpi: kit.Mpi, built: Callable[..., Path], daemon: Daemon, lustre_layout: Path, tmp_path: Path
):
    """Each file is looked up once, when its first large access begins."""
    story = Story(daemon)
    log = tmp_path / "log"
    (tmp_path / "lustre").mkdir()
    settings = kit.settings(daemon.socket) | {"LAYOUT_OST": "7", "LAYOUT_LOG": str(log)}
    program = [
        built("posix_io.c"),
        tmp_path / "lustre" / "a",
        "loop=4:write=2000000",
        "pause=0.5",
        "loop=4:pwrite=2000000",
    ]
    done = mpi.run(program, settings, ranks=2, preload=f"{mpi.libhocket}:{lustre_layout}")
    assert (done.code, done.err) == (0, "")
    story.awaits("BYE", application="a")
    asked = story.all("START_IO", application="a")
    assert len(asked) >= 4 and {line["parts"] for line in asked} == {"ost7"}
    assert sorted(log.read_text().split()) == ["0", "1"], "each rank asks for its own file"


def spans(story: Story, name: str) -> list[tuple[int, int]]:
    """Return when the application had a grant, from GRANT_IO to the end of the operation."""
    begin = {line["request"]: line["time_ns"] for line in story.all("GRANT_IO", application=name)}
    end = {line["request"]: line["time_ns"] for line in story.all("FINISH_IO", application=name)}
    return [(begin[request], end[request]) for request in begin if request in end]


def meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


@pytest.mark.parametrize(("other_parts", "common"), [("ost3,ost4", False), ("ost2,ost3", True)])
def test_two_s_iors(
    mpi: kit.Mpi, start: Start, daemon: Daemon, prefix: Path, tmp_path: Path, other_parts: str, common: bool
):
    """Each writes for a while. With disjoint parts nobody is queued; with a common one they take turns."""
    story = Story(daemon)
    program = prefix / "lib" / "hocket" / "apps" / f"s_ior-{mpi.name}"
    how = ["-b", "4m", "-t", "1m", "-w", "-p", "25", "-d", "0.05"]

    def writer(name: str, parts: str) -> subprocess.Popen:
        return start(name, "-o", tmp_path / name, *how, "-H", f"hocket_targets={parts}", program=program)

    runs = [writer("one", "ost1,ost2"), writer("two", other_parts)]
    for process in runs:
        run = kit.finish(process)
        assert (run.code, run.err) == (0, ""), run.err
    for name in ("one", "two"):
        story.awaits("BYE", application=name)
    one, two = spans(story, "one"), spans(story, "two")
    assert one and two
    assert meet((one[0][0], one[-1][1]), (two[0][0], two[-1][1])), "they did not run at the same time"
    if common:
        assert not [pair for pair in ((a, b) for a in one for b in two) if meet(*pair)]
        assert story.all("QUEUED_IO")
    else:
        assert not story.all("QUEUED_IO")
    replays(daemon, prefix)


@pytest.mark.parametrize(
    ("targets", "error"),
    [
        ("ost1,,ost2", "a name is empty"),
        ("x" * 65, "a name has 65 bytes, more than 64"),
        (",".join(f"{i}" for i in range(65)), "it has more than 64 names"),
    ],
)
def test_unusable_names_are_the_whole_target(start: Start, daemon: Daemon, tmp_path: Path, targets: str, error: str):
    """One line names the hint, the value and the file; hocket explain shows it, and the program runs on."""
    story = Story(daemon)
    file = tmp_path / "a"
    run = kit.finish(start("a", f"targets={targets}", f"open={file}", "write=1000", "write=1000", "close"))
    target = story.awaits("START_IO")["target"]
    line = f"hocket: hocket_targets={targets} of {file} is ignored: {error}; its I/O uses all of {target}\n"
    assert (run.code, run.err) == (0, line)
    story.awaits("BYE", application="a")
    assert len(story.all("DECISION", decided_for="a", action="whole")) == 1
    explained = subprocess.run(
        [sys.executable, "-m", "hocket.cli", "explain"], capture_output=True, text=True, check=True
    )
    assert f"named the parts '{targets}' for {file}: {error}, so it uses all of" in explained.stdout
