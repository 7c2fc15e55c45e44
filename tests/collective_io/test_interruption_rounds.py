"""Requests to pause in the middle of a collective access that hocket does itself.

All aggregators stop after the same round, with nothing in flight at the storage. The access resumes with the next
grant. The storage is slow and keeps a log (tests/programs/timed_storage.c); a stand-in for hocketd sends PAUSE_IO.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import runtime_kit as kit
from hocket.process_group import signal_group
from stand_in_hocketd import StandIn

pytestmark = pytest.mark.timeout(180)
RANKS = 4
BLOCKS = 1536  # of 4 KiB, of each rank
WINDOW = 256 << 10
STORAGE_MS = 10  # least time of a round
HOLD_S = 0.15  # of a pause
STEP = 3  # accesses of a process, from the start or the end of a pause to the next pause
READ_S = 0.05  # no event shows that rank 0 has read PAUSE_IO; if it takes longer, one more round follows
SHARING = {"shared": "on", "messages": "off"}


@dataclass
class Done:
    """An action of one process at the storage."""

    what: str  # "begun", "write", "read" or "locked"
    begin: int  # ns
    end: int
    offset: int
    bytes: int
    pid: int


@dataclass
class Pause:
    asked: int  # in ns: time of the order to the stand-in for hocketd
    paused: int  # time of arrival of PAUSED_IO
    granted: int
    round: int
    bytes: int


class Job:
    """A program that makes one collective access, or writes before it reads.

    STORAGE_LIMIT stops each process at the storage after a number of accesses until PAUSE_IO is out. The delay of the
    test itself therefore does not matter.
    """

    def __init__(self, mpi: kit.Mpi, controller: StandIn, program: list[Any], log: Path, storage: Path, **how):
        self.controller, self.log, self.limit = controller, log, log.with_name("limit")
        self.kind = "read" if "read" in program else "write"
        self.ranks = how.get("ranks", RANKS)
        self.paused = self.answers = 0
        self.allow(how.get("allowed", STEP))
        settings = kit.settings(controller.socket, io="hocket", posix=0)  # the program reads its file past MPI, too
        settings |= {"STORAGE_MS": str(how.get("storage_ms", STORAGE_MS)), "STORAGE_SLOW": self.kind}
        settings |= {"STORAGE_LOG": str(log), "STORAGE_LIMIT": str(self.limit)}
        if "slow_rank" in how:
            settings["STORAGE_SLOW_RANK"] = str(how["slow_rank"])
        self.process = mpi.start(program, settings, ranks=self.ranks, preload=f"{mpi.libhocket}:{storage}")

    def storage(self, *what: str) -> list[Done]:
        """Return the actions at the storage so far, sorted by their ends."""
        found = []
        for log in self.log.parent.glob(self.log.name + ".*"):
            for line in log.read_text().splitlines():
                kind, *numbers = line.split()
                if not what or kind in what:
                    found.append(Done(kind, *map(int, numbers), int(log.suffix[1:])))
        return sorted(found, key=lambda done: done.end)

    def access(self) -> list[Done]:
        return self.storage(self.kind)

    def begun(self) -> Counter[int]:
        """Return the number of accesses that each process has begun."""
        return Counter(one.pid for one in self.storage("begun"))

    def allow(self, most: int) -> None:
        """From now on, allow each process so many accesses."""
        self.allowed = most
        new = self.limit.with_suffix(".new")
        new.write_text(str(most))
        new.rename(self.limit)

    def await_held(self, processes: int = 1) -> None:
        """Wait until `processes` processes have made all their allowed accesses and begun another."""

        def held() -> bool:
            return sum(count > self.allowed for count in self.begun().values()) >= processes

        kit.wait_until(lambda: held() or self.process.poll() is not None, 60, "rounds of the access")
        assert self.process.poll() is None, f"it ended too early: {self.process.communicate()}"
        self.started = self.controller.events("START_IO")[-1]

    def ask_to_pause(self) -> int:
        """Send PAUSE_IO to the held job. Until it answers, allow one more access at a time."""
        asked = time.monotonic_ns()
        self.controller.pause(self.started)

        def answered() -> bool:
            time.sleep(READ_S)
            answers = self.controller.events("PAUSED_IO", "FINISH_IO")[self.answers :]
            if self.process.poll() is not None or any(one["request"] == self.started["request"] for one in answers):
                self.answers += len(answers)
                return True
            self.allow(self.allowed + 1)
            return False

        kit.wait_until(answered, 60, "an answer to PAUSE_IO")
        self.limit.unlink()
        return asked

    def stop(self) -> tuple[int, dict[str, Any]]:
        """Pause the job; return the time of the request, and PAUSED_IO."""
        self.await_held()
        asked = self.ask_to_pause()
        self.paused += 1
        paused = self.controller.await_events("PAUSED_IO", self.paused)[-1]
        assert paused["request"] == self.started["request"]
        return asked, paused

    def pause(self) -> Pause:
        asked, paused = self.stop()
        time.sleep(HOLD_S)
        self.allow(max(self.begun().values()) + STEP)
        granted = time.monotonic_ns()
        self.controller.grant(self.started)
        return Pause(asked, paused["at_ns"], granted, paused["round"], paused["bytes"])

    def finish(self, warnings: int = 0) -> None:
        self.limit.unlink(missing_ok=True)
        done = kit.finish(self.process)
        assert (done.code, len(done.warnings)) == (0, warnings), f"{done.out}{done.err}"
        assert done.out.splitlines() == (["MPI_SUCCESS"] if self.kind == "read" else ["MPI_SUCCESS", "right"])


@pytest.fixture
def start(mpi: kit.Mpi, built, controller: StandIn, tmp_path: Path, timed_storage: Path):
    jobs = []

    def start(way: str, pattern: str, sharing: str = "shared", *hints: str, blocks: int = BLOCKS, **how) -> Job:
        program = [built("faulty_access.c"), tmp_path / "timed", way, pattern, blocks]
        program += [f"hocket_buffer_size={WINDOW}", f"hocket_shared_memory={SHARING[sharing]}", *hints]
        jobs.append(Job(mpi, controller, program, tmp_path / "log", timed_storage, **how))
        return jobs[-1]

    yield start
    for job in jobs:
        if job.process.poll() is None:
            signal_group(job.process, signal.SIGKILL)
            job.process.communicate()


def rounds_of(job: Job, domains: int) -> list[tuple[int, Done]]:
    """Return each access of the storage with its round; the file has `domains` file domains of equal size."""
    domain = job.ranks * BLOCKS * 4096 // domains
    assert domain % WINDOW == 0
    return [(done.offset % domain // WINDOW, done) for done in job.access()]


def check(job: Job, pauses: list[Pause], domains: int) -> None:
    """Check that all processes stopped after the same round, and that the storage was idle meanwhile."""
    for pause in pauses:
        meanwhile = [one for one in job.storage() if one.end > pause.paused and one.begin < pause.granted]
        assert not meanwhile, f"{pause}: {meanwhile}"
        rounds = rounds_of(job, domains)
        before = [(number, done) for number, done in rounds if done.end <= pause.paused]
        after = [number for number, done in rounds if done.end > pause.paused]
        assert all(number <= pause.round for number, _ in before), f"{pause}: {before}"
        assert all(number > pause.round for number in after), f"{pause}: {after}"
        assert pause.bytes == sum(done.bytes for _, done in before), f"{pause}: {before}"


@pytest.mark.parametrize("mpi", kit.WITH_TWO_NODES, indirect=True)
@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("way", ["write", "read"])
@pytest.mark.parametrize("pattern, domains", [("interleaved", 2), ("separate", RANKS)])
def test_all_stop_after_the_same_round_and_go_on(start, way: str, pattern: str, domains: int, sharing: str) -> None:
    """The access pauses twice."""
    job = start(way, pattern, sharing)
    pauses = [job.pause() for _ in range(2)]
    job.finish()
    check(job, pauses, domains)
    assert len(job.controller.events("PAUSED_IO")) == 2
    stood = sum(pause.granted - pause.paused for pause in pauses)
    assert job.controller.only("BYE")["wait_ns"] >= RANKS * stood, "no rank takes that for I/O, aggregator or not"


@pytest.mark.parametrize("mpi", kit.WITH_TWO_NODES, indirect=True)
@pytest.mark.parametrize("sharing", SHARING)
def test_so_it_is_with_lists_and_more_aggregators(start, sharing: str) -> None:
    job = start("write", "interleaved", sharing, "hocket_collective=list", "cb_nodes=4")
    pauses = [job.pause()]
    job.finish()
    check(job, pauses, 4)


@pytest.mark.parametrize("pattern", ["interleaved", "separate"])
def test_so_it_is_with_one_process(start, pattern: str) -> None:
    job = start("write", pattern, ranks=1)
    pauses = [job.pause() for _ in range(2)]
    job.finish()
    check(job, pauses, 1)


@pytest.mark.parametrize("sharing", SHARING)
def test_no_lock_is_held_meanwhile(start, sharing: str) -> None:
    """Blocks with holes between them are read, changed, and written under a lock."""
    job = start("write", "holes", sharing)
    pauses = [job.pause() for _ in range(3)]
    job.finish()
    assert job.storage("locked")
    for pause in pauses:
        assert not [one for one in job.storage() if one.end > pause.paused and one.begin < pause.granted]


@pytest.mark.parametrize("mpi", kit.WITH_TWO_NODES, indirect=True)
@pytest.mark.parametrize("sharing", SHARING)
def test_one_aggregator_is_asked_when_the_others_have_ended(start, sharing: str) -> None:
    """Rank 0, which asks the remaining aggregator, has ended its own rounds, too."""
    job = start("write", "separate", sharing, slow_rank=2)
    domain = BLOCKS * 4096
    ended = (RANKS - 1) * domain // WINDOW
    kit.wait_until(lambda: len(job.access()) >= ended + STEP, 60, "three ranks at their ends")
    pauses = [job.pause() for _ in range(2)]
    job.finish()
    for pause in pauses:
        slow = [done for done in job.access() if done.offset // domain == 2]
        assert [done.offset % domain // WINDOW for done in slow if done.end <= pause.paused][-1] == pause.round
        assert not [one for one in job.storage() if one.end > pause.paused and one.begin < pause.granted]
    assert len(pauses) == 2


@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("pattern", ["interleaved", "separate"])
def test_who_is_in_the_last_round_ends_instead(start, pattern: str, sharing: str) -> None:
    """The answer to PAUSE_IO is FINISH_IO."""
    blocks = WINDOW // 4096 // (2 if pattern == "interleaved" else 1)
    job = start("write", pattern, sharing, blocks=blocks, storage_ms=500, allowed=0)
    job.await_held(2 if pattern == "interleaved" else RANKS)
    job.ask_to_pause()
    job.finish()
    assert not job.controller.events("PAUSED_IO")
    assert len(job.controller.events("FINISH_IO")) == 1


@pytest.mark.parametrize("sharing", SHARING)
def test_it_goes_on_when_hocketd_ends_meanwhile(start, sharing: str) -> None:
    job = start("write", "interleaved", sharing)
    job.stop()
    job.controller.kill()
    job.finish(warnings=1)


@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("last", [False, True], ids=["rank-0", "last-rank"])
def test_nobody_is_left_when_a_rank_is_killed_meanwhile(start, sharing: str, last: bool) -> None:
    job = start("write", "separate", sharing)
    job.stop()
    first_offset = BLOCKS * 4096 * (RANKS - 1) if last else 0
    os.kill(next(done.pid for done in job.access() if done.offset == first_offset), signal.SIGKILL)
    assert kit.finish(job.process, 30).code != 0
