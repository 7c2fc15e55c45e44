"""A large collective access that a policy asks to stop: the MPI library cannot, hocket can. The report says so."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from hocket.cli import main
from story import Story

pytestmark = pytest.mark.timeout(180)
BYTES_PER_S = 2_000_000  # of the target
BLOCKS = 1500  # of 4 KiB, of each of two ranks: the access takes six seconds
BUFFER = 256 << 10
ADVICE = "make accesses smaller, or use the steps of hocket/io.h"


class Preempted:
    """An unmodified program in one large access, and a small one for which `interrupt` asks it to stop."""

    def __init__(self, mpi: kit.Mpi, built: Callable[..., Path], daemon: Daemon, prefix: Path, tmp_path: Path, io: str):
        self.story, self.daemon = Story(daemon), daemon
        directory = tmp_path / "limited"
        directory.mkdir()
        up, go, written = tmp_path / "up", tmp_path / "go", directory / "large"
        script = [f"mark={up}", f"await={go}", f"open={directory / 'small'}", "write=1000", "close"]
        small = mpi.start([built("script.c"), *script], kit.settings(daemon.socket, name="small", job="small"))
        kit.wait_until(up.exists, 30, "the small one has started")
        how = kit.settings(daemon.socket, name="large", job="large", io=io, posix=0)
        how |= {"HOCKET_LIMIT_DIR": str(directory), "HOCKET_LIMIT_BYTES_PER_S": str(BYTES_PER_S)}
        program = [built("faulty_access.c"), written, "write", "separate", BLOCKS, f"hocket_buffer_size={BUFFER}"]
        storage = prefix / "lib" / "hocket" / "liblimited_target.so"
        large = mpi.start(program, how, preload=f"{mpi.libhocket}:{storage}")
        kit.wait_until(lambda: written.exists() and written.stat().st_size > 0, 60, "it writes")
        go.touch()
        self.story.awaits("PAUSE_IO", application="large")
        self.small, self.large = kit.finish(small), kit.finish(large)
        assert (self.small.code, self.small.err) == (0, "")
        assert (self.large.code, self.large.out) == (0, "MPI_SUCCESS\nright\n"), self.large.err
        assert daemon.stop() == 0


@pytest.fixture
def preempt(
    mpi: kit.Mpi, built: Callable[..., Path], start_daemon: Callable[..., Daemon], prefix: Path, tmp_path: Path
) -> Callable[[str], Preempted]:
    return lambda io: Preempted(mpi, built, start_daemon("--policy", "interrupt"), prefix, tmp_path, io)


def test_the_report_says_what_an_access_that_could_not_stop_cost(
    preempt: Callable[[str], Preempted], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = preempt("mpi")
    assert run.story.all("PAUSED_IO") == []
    assert [line["unstopped"] for line in run.story.all("FINISH_IO", application="large")] == [True]
    asked, ended = (run.story.all(kind, application="large")[0]["time_ns"] for kind in ("PAUSE_IO", "FINISH_IO"))
    waited_s = (ended - asked) / 1e9
    (line,) = run.large.warnings  # the last one that the user of `hocket run` sees
    told = re.fullmatch(
        r"hocket: 1 access of the MPI library could not stop for other applications, which waited (\S+) s for the end: "
        rf"run it with --io hocket, {ADVICE}",
        line,
    )
    assert told and abs(float(told[1]) - waited_s) < 2, (line, waited_s)

    trace = str(run.daemon.trace)
    assert main(["trace", "summary", "--json", trace]) == 0
    large, small = sorted(json.loads(capsys.readouterr().out)["applications"], key=lambda row: row["application"])
    assert (large["unstopped"], large["unstopped_for"], small["unstopped"]) == (1, ["small"], 0)
    assert large["unstopped_wait_s"] == pytest.approx(waited_s)
    assert main(["report", trace, "-o", str(tmp_path / "report")]) == 0
    said = (
        f"large could not stop once when it was asked to, and small waited {waited_s:.2f} s for the end of its access"
    )
    assert said in capsys.readouterr().err
    assert "<caption>Accesses that could not stop" in (tmp_path / "report" / "report.html").read_text()


def test_an_access_by_hocket_stops_and_is_not_reported(
    preempt: Callable[[str], Preempted], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = preempt("hocket")
    assert run.large.err == ""
    assert len(run.story.all("PAUSED_IO", application="large")) == 1
    assert run.story.all("FINISH_IO", unstopped=True) == []
    assert main(["trace", "summary", "--json", str(run.daemon.trace)]) == 0
    assert all(row["unstopped"] == 0 for row in json.loads(capsys.readouterr().out)["applications"])
    assert main(["report", str(run.daemon.trace), "-o", str(tmp_path / "report")]) == 0
    assert "could not stop" not in capsys.readouterr().err + (tmp_path / "report" / "report.html").read_text()
