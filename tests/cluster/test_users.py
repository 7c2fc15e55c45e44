"""One daemon serves the programs of several users. Each steers and watches its own, and cannot act for another."""

from __future__ import annotations

import grp
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from cluster_kit import granted
from daemon_kit import Daemon, hello, start_io
from hocket.bus import Bus, BusError
from story import Story
from users_kit import FIRST, OPERATORS, SECOND, become, go_through

LIMIT_S = 20
pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for several users"),
]


def begin_as(user: int, act: Callable[[], None], groups: tuple[int, ...] = ()) -> int:
    """Run the function in a process of that user. Return the process."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(list(groups))
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def ends_well(child: int, user: int) -> None:
    """Wait for the end of such a process, and fail as it does."""
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, f"the process of user {user} failed"


def as_user(user: int, act: Callable[[], None], groups: tuple[int, ...] = ()) -> None:
    """Run the function in a process of that user, and fail as it does."""
    ends_well(begin_as(user, act, groups), user)


@pytest.fixture
def shared(start_daemon: Callable[..., Daemon], hocket_dir: Path) -> Daemon:
    hocket_dir.chmod(0o755)
    return start_daemon("--users", "all", "--policy", "fcfs")


def refused(bus: Bus, type_name: str, **fields: object) -> str:
    bus.send(type_name, **fields)
    with pytest.raises(BusError) as raised:
        bus.list()
    return str(raised.value)


def test_programs_of_two_users_take_turns(
    mpi: kit.Mpi, built: Callable[..., Path], shared: Daemon, prefix: Path, tmp_path: Path
):
    story, script, go = Story(shared), built("script.c"), tmp_path / "go"
    go_through(tmp_path), go_through(script)

    def job(user: int, *actions: str):
        home = tmp_path / str(user)
        home.mkdir()
        os.chown(home, user, user)
        words, environment = mpi.command(2, [script, f"open={home / 'f'}", *actions, "close"], preload="", settings={})
        run = [sys.executable, "-m", "hocket.cli", "run", "--name", f"of{user}", "--"]
        own = {"HOCKET_PREFIX": str(prefix), "HOME": str(home), "TMPDIR": str(home), "XDG_DATA_HOME": str(home)}
        return kit.launch([*become(user), *run, *words], environment | own)

    first = job(FIRST, "begin=1000", f"await={go}", "finish")
    story.awaits("GRANT_IO", application=f"of{FIRST}")
    second = job(SECOND, "write=1000")
    assert story.awaits("QUEUED_IO", application=f"of{SECOND}")["behind"] == f"of{FIRST}"
    go.touch()
    for process in (first, second):
        run = kit.finish(process)
        assert (run.code, run.out, run.err) == (0, "", "")
    story.awaits("FINISH_IO", application=f"of{SECOND}")
    assert [kind for kind, _ in granted(story, f"of{FIRST}", f"of{SECOND}")] == 2 * ["GRANT_IO", "FINISH_IO"]


def test_a_daemon_of_one_user_refuses_others(daemon: Daemon, hocket_dir: Path):
    hocket_dir.chmod(0o755)
    daemon.socket.chmod(0o666)

    def act() -> None:
        with Bus.connect(daemon.socket) as bus, pytest.raises(BusError):
            bus.list()

    as_user(FIRST, act)


def test_a_user_cannot_steer_what_is_not_its_own(shared: Daemon):
    with Bus.connect(shared.socket) as roots:
        hello(roots, "solver")

        def act() -> None:
            with Bus.connect(shared.socket) as bus:
                for kind, fields in (
                    ("SET_POLICY", {"policy": "cost"}),
                    ("SET_SERVER", {"server": "s1", "action": "drain"}),
                    ("RESIZE", {"application_asked": "solver", "processes": 4}),
                    ("SERVER", {"server": "s1", "directory": "/tmp", "addresses": "unix:/tmp/s"}),
                    ("SLOW_IO_SERVER", {"server": "s1"}),
                ):
                    assert "is for operators" in refused(bus, kind, **fields), kind
                hello(bus, "mine")
                bus.send("RESIZE", application_asked="mine", processes=4)
                bus.list()  # raises if that was refused

        as_user(FIRST, act)
        assert roots.list().daemon["policy"] == "fcfs"


def test_an_operator_steers_all(start_daemon: Callable[..., Daemon], hocket_dir: Path, tmp_path: Path):
    """A member of the group. The kernel says who is in it, when the connection is made."""
    hocket_dir.chmod(0o755)
    name = next(group.gr_name for group in grp.getgrall() if group.gr_gid > 0)
    config = tmp_path / "hocket.toml"
    config.write_text(f'[daemon]\nusers = "all"\noperators = "{name}"\n')
    daemon = start_daemon("--config", config)

    def act() -> None:
        with Bus.connect(daemon.socket) as bus:
            bus.send("SET_POLICY", policy="fcfs")
            assert bus.list().daemon["policy"] == "fcfs"

    as_user(FIRST, act, (OPERATORS, grp.getgrnam(name).gr_gid))


def test_a_name_that_is_free_again_gives_no_rights(shared: Daemon):
    """Whoever had the name before its present owner does not act for it."""
    had, taken = os.pipe(), os.pipe()

    def act() -> None:
        with Bus.connect(shared.socket) as bus:
            hello(bus, "solver")
            bus.send("BYE")
            bus.list()
            os.write(had[1], b"x")
            os.read(taken[0], 1)  # another user has the name now
            assert "is for operators" in refused(bus, "RESIZE", application_asked="solver", processes=4)

    child = begin_as(FIRST, act)
    os.read(had[0], 1)
    with Bus.connect(shared.socket) as roots:
        hello(roots, "solver")
        assert [one["application"] for one in roots.list().applications] == ["solver"]
        os.write(taken[1], b"x")
        ends_well(child, FIRST)


def test_nobody_joins_a_job_of_another_user(shared: Daemon):
    with Bus.connect(shared.socket) as roots:
        hello(roots, "solver", job="the-job")

        def act() -> None:
            with Bus.connect(shared.socket) as bus:
                bus.send("HELLO", job="the-job", application_asked="solver", mpi="mpich", processes=2)
                welcome = bus.answer(LIMIT_S)
                assert welcome is not None and welcome["application_given"] != "solver"
                assert start_io(bus, 1) == "GRANT_IO"

        as_user(FIRST, act)
        assert len(roots.list().applications) == 1


def test_a_user_watches_its_own_programs(shared: Daemon):
    """Events have names of files."""
    subscribed, asked = (os.pipe() for _ in range(2))

    def act() -> None:
        with Bus.connect(shared.socket) as watching, Bus.connect(shared.socket) as member:
            seen, ticks = watching.subscribe("START_IO"), watching.subscribe("tick")
            os.write(subscribed[1], b"x")
            os.read(asked[0], 1)  # another user has asked for a grant
            hello(member, "mine")
            assert start_io(member, 1) == "QUEUED_IO"
            member.publish("tick", number=1)
            event = seen.wait(LIMIT_S)
            assert event is not None and event.application == "mine", event
            assert ticks.wait(LIMIT_S) is not None and seen.test() is None

    with Bus.connect(shared.socket) as roots:
        hello(roots, "solver")
        child = begin_as(FIRST, act)
        os.read(subscribed[0], 1)
        everything = roots.subscribe("START_IO")
        assert start_io(roots, 1) == "GRANT_IO"
        os.write(asked[1], b"x")
        ends_well(child, FIRST)
        applications = [everything.wait(LIMIT_S).application for _ in range(2)]
        assert applications == ["solver", "mine"], "an operator watches all"
