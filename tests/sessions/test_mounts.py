"""Programs that see one file system at different places use one target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from hocket.mounts import target_of
from mount_kit import NAMESPACE, needs_mounts
from stand_in_hocketd import StandIn

pytestmark = pytest.mark.timeout(120)
MIB = 1 << 20


@needs_mounts
def test_programs_on_two_mounts_of_one_file_system_use_one_target(
    mpi: kit.Mpi, built: Callable[..., Path], controller: StandIn, tmp_path: Path
) -> None:
    (tmp_path / "mount").mkdir()
    (tmp_path / "shared").mkdir()
    for place, mounts in (("shared", "true"), ("mount", f"mount --bind {tmp_path}/shared {tmp_path}/mount")):
        program = [*NAMESPACE, mounts, built("posix_io.c"), tmp_path / place / "f", f"write={2 * MIB}"]
        run = mpi.run(program, kit.settings(controller.socket))
        assert (run.code, run.err) == (0, "")
    started = controller.events("START_IO")
    assert {Path(one["file"]).parent.name for one in started} == {"shared", "mount"}
    assert {one["target"] for one in started} == {target_of(tmp_path)}
