"""Random accesses while components fail (bench/campaign.py): some schedules of the campaign, and that it finds
what is wrong.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from checkout import REPO

sys.path.insert(0, str(REPO / "bench"))

import campaign

SECONDS = 3
# The first ones are of each kind of fault. A seed that has failed once is added.
SEEDS = (1, 2, 3, 4, 6, 8, 12, 16)
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


def test_a_seed_is_one_schedule() -> None:
    assert campaign.draw_schedule(5, 6) == campaign.draw_schedule(5, 6)
    kinds = {fault.kind for seed in range(200) for fault in campaign.draw_schedule(seed, 6).faults}
    assert kinds == set(campaign.FAULTS)
