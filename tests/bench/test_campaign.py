"""Random accesses while components fail (bench/campaign.py): some schedules of the campaign, and that it finds
what is wrong.
"""

import dataclasses
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checkout import REPO

sys.path.insert(0, str(REPO / "bench"))

import campaign

SECONDS = 3
# The first ones are of each kind of fault, those above 10,000 of data sets and two nodes. A seed that has failed once
# is added.
SEEDS = (1, 2, 3, 4, 6, 8, 12, 16, 265, 269, 426, 10_006, 10_007, 10_008, 10_016, 10_028, 10_048)
pytestmark = pytest.mark.timeout(campaign.HANG_S + 120)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return campaign.compile_programs(tmp_path_factory.mktemp("campaign"))


@pytest.mark.parametrize("seed", SEEDS)
def test_acknowledged_bytes_survive(programs: dict[str, Path], seed: int) -> None:
    result = campaign.run(campaign.draw_schedule(seed, SECONDS), programs, SECONDS)
    assert result["ok"], result


def test_a_wrong_byte_is_found(programs: dict[str, Path], tmp_path: Path) -> None:
    schedule = campaign.Schedule(7, "mpich", 2, {"s1": ["--write-behind"]})
    site = campaign.Site(schedule, tmp_path)
    try:
        assert campaign.run_at(site, programs["mpich"], 1)["ok"]
        check = [programs["mpich"], "check", site.served / "f", tmp_path / "table", "7"]
        assert subprocess.run(check, timeout=60).returncode == 0
        with (site.served / "f").open("r+b") as file:
            written = bytearray(file.read())
            file.seek(0)
            file.write(bytes(byte ^ 0xFF for byte in written))
        found = subprocess.run(check, timeout=60, capture_output=True, text=True)
        assert (found.returncode, "of no version" in found.stderr) == (1, True)
    finally:
        site.close()


@pytest.mark.parametrize("loses_its_output", [False, True])
def test_a_wrong_byte_of_a_data_set_is_found(tmp_path: Path, loses_its_output: bool) -> None:
    right = "char* data = data_of(own, count, step);"
    text = campaign.SOURCE.read_text()
    assert text.count(right) == 1
    wrong = tmp_path / "wrong.c"
    close = " close(2);" if loses_its_output else ""  # launchers lose the last lines of a job that aborts, too
    wrong.write_text(text.replace(right, right + " data[count * block_bytes - 1] ^= 1;" + close))
    schedule = campaign.Schedule(7, "mpich", 2, {"s1": []}, sets=True)
    result = campaign.run(schedule, campaign.compile_programs(tmp_path, wrong), 1)
    assert not result["ok"] and "data set: byte" in result["said"], result
    shutil.rmtree(Path(result["log"]).parent)


def test_a_seed_is_one_schedule() -> None:
    assert campaign.draw_schedule(5, 6) == campaign.draw_schedule(5, 6)
    assert campaign.draw_schedule(10_005, 6) == campaign.draw_schedule(10_005, 6)
    kinds = {fault.kind for seed in range(200) for fault in campaign.draw_schedule(seed, 6).faults}
    assert kinds == set(campaign.FAULTS)


def test_new_kinds_leave_earlier_seeds_as_they_are() -> None:
    earlier = [campaign.draw_schedule(seed, 6) for seed in range(1, 200)]
    assert {(schedule.sets, schedule.nodes) for schedule in earlier} == {(False, 1)}
    first = campaign.draw_schedule(1, 6)
    more = [campaign.draw_schedule(seed, 6) for seed in range(10_001, 10_101)]
    assert {(schedule.sets, schedule.nodes) for schedule in more} == {(s, n) for s in (False, True) for n in (1, 2)}
    assert all(schedule.nodes == 1 for schedule in more if schedule.mpi == "openmpi")
    campaign.add_kinds(first)
    assert dataclasses.replace(first, sets=False, nodes=1) == campaign.draw_schedule(1, 6)


def test_a_job_is_killed_with_its_ranks_and_nothing_else(tmp_path: Path) -> None:
    site = campaign.Site(campaign.Schedule(1, "mpich", 1, {}), tmp_path)
    path = str(site.served / "f")
    rank = f"{sys.executable} -c 'import time; time.sleep(100)' {path}"
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)", path]) as other:
        site.job = subprocess.Popen(["sh", "-c", f"{rank} & wait; true", path])
        try:
            deadline = time.monotonic() + 20
            while len(campaign.descendants(site.job.pid)) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            campaign.kill_job(site)
            assert site.job.wait(20) == -signal.SIGKILL
            assert other.poll() is None
        finally:
            other.kill()
            site.close()
