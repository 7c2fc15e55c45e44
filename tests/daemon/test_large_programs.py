"""hocketd reads whole programs, for their profiles. Others do not wait for that."""

from __future__ import annotations

import os

import pytest
from daemon_kit import LIMIT_S
from hocket.bus import Bus
from hocket.profile.points import Point
from hocket.profile.store import Profile, Store, fingerprint_of

PROGRAM_BYTES = 1 << 30


@pytest.mark.timeout(120)
def test_nobody_waits_while_a_large_program_is_looked_up(start_daemon, hocket_dir, tmp_path):
    program, profiles, config = tmp_path / "solver", hocket_dir / "profiles.db", hocket_dir / "hocket.toml"
    program.touch()
    os.truncate(program, PROGRAM_BYTES)
    known = Profile("solver", fingerprint_of(program), "mpich", "", (Point(2, 1.0),))
    Store(profiles, write=True).put(known)
    config.write_text(f'[coordinator]\nprofiles = "{profiles}"\n')
    daemon = start_daemon("--config", config)
    with Bus.connect() as tool, Bus.connect() as member:
        found = tool.subscribe("PROFILE")
        member.send(
            "HELLO", job="j", application_asked="solver", mpi="mpich", processes=2, program=str(program), pid=daemon.pid
        )
        assert member.answer(LIMIT_S).type == "WELCOME"
        assert [one["application"] for one in tool.list().applications] == ["solver"]
        assert found.test() is None, "hocketd answered LIST after it had read the program"
        point = found.wait(60)
        assert point is not None and (point["processes"], point["iteration_s"]) == (2, 1.0)
