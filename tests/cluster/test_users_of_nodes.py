"""Users on several nodes, whose daemons serve all of them: agents say whose a program is, and the leader acts on it."""

from __future__ import annotations

import grp
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import hosts
import pytest
import runtime_kit as kit
from cluster_kit import granted
from daemon_kit import START_LIMIT_S
from host_cluster import LIMIT_S, RUNTIME, HostCluster, TraceOnHost, variables
from hosts import SHARED, Host
from users_kit import FIRST, OPERATORS, OWNER, SECOND, become, go_through

pytestmark = pytest.mark.timeout(180)
OPERATOR = 54324
HOCKET = [sys.executable, "-m", "hocket.cli"]
# It prints the applications whose ends of accesses this user is sent, once the event "over" has come.
WATCH = """
from hocket.bus import Bus
with Bus.connect() as bus:
    seen, over = (bus.subscribe(filter) for filter in ("FINISH_IO", "over"))
    print("ready", flush=True)
    over.wait()
    names = set()
    while (event := seen.test()) is not None:
        names.add(event.application)
    print(*sorted(names))
"""


def own(user: int) -> dict[str, str]:
    """Return the variables of a user who has no files. HOCKET_DIR is left to hocket, which finds the operator's."""
    return {"HOME": str(SHARED / f"of-{user}"), "XDG_DATA_HOME": str(SHARED / f"of-{user}")}


class Users:
    """Users on the hosts of a cluster. Leader and agents run as OWNER, who is none of them."""

    def __init__(self, cluster: HostCluster) -> None:
        self.cluster = cluster
        self.operators = next(group for group in grp.getgrall() if group.gr_gid > 0)
        settings = f'[daemon]\ntarget_names = "{SHARED}=shared"\noperators = "{self.operators.gr_name}"\n'
        for host in cluster.hosts:
            host.write(Path("/run/hocket.toml"), settings.encode())
            place = f"install -d -o {OWNER} -g {OWNER} -m 755 {RUNTIME} && chown {OWNER} /run/key && chmod 755 /run"
            assert host.run(["sh", "-c", place]).code == 0
        for user in (FIRST, SECOND):
            home = cluster.hosts.store / f"of-{user}"
            home.mkdir()
            home.chmod(0o777)

    def make_file(self, user: int) -> Path:
        """Make the file that a user writes, since the hosts' client of the shared directory makes files as root.

        Return its path below that directory.
        """
        path = Path(f"of-{user}") / "f"
        written = self.cluster.hosts.store / path
        written.touch()
        written.chmod(0o666)
        return path

    def words(self, user: int, words: list[str]) -> list[str]:
        groups = (OPERATORS, self.operators.gr_gid) if user == OPERATOR else ()
        return [*become(user, *groups), "env", "-u", "HOCKET_DIR", *map(str, words)]

    def hocket(self, host: Host, user: int, *words: str) -> kit.Run:
        return host.run(self.words(user, [*HOCKET, *words]), own(user), limit_s=LIMIT_S)

    def job(self, host: Host, user: int, mpi: kit.Mpi, *program: str | Path) -> subprocess.Popen:
        """Start a program of two ranks that is called of-USER."""
        mpiexec, environment = mpi.command(2, list(program), preload="", settings={})
        run = [*HOCKET, "run", "--name", f"of-{user}", "--", *mpiexec]
        return host.start(self.words(user, run), variables(environment) | own(user))

    def watch(self, host: Host, user: int) -> subprocess.Popen:
        one = host.start(self.words(user, [sys.executable, "-c", WATCH]), own(user))
        self.cluster.started.append(one)
        assert hosts.first_line(one, START_LIMIT_S) == "ready\n"
        return one


@pytest.fixture
def users(start_cluster: Callable[..., HostCluster]) -> Users:
    """A leader on `adm`, and agents on `one` and `two`, for all users."""
    cluster = start_cluster("adm", "one", "two")
    adm, *others = cluster.hosts
    users, within = Users(cluster), tuple(become(OWNER))
    leader = ("--leader", "--key", "/run/key", "--users", "all", "--policy", "fcfs")
    cluster.daemon(adm, *leader, within=within)
    for host in others:
        cluster.join(host, within, "--users", "all")
    return users


def check_that_a_user_steers_its_own(users: Users, host: Host, user: int, other: int) -> None:
    """Its program is on another node than the user is now. A list shows the programs of all."""
    listed = users.hocket(host, user, "ls").out
    assert f"of-{FIRST}" in listed and f"of-{SECOND}" in listed, listed
    refused = users.hocket(host, user, "resize", f"of-{other}", "4")
    assert refused.code != 0 and "is for operators" in refused.err, refused
    allowed = users.hocket(host, user, "resize", f"of-{user}", "4")
    assert allowed.code != 0 and "is not malleable" in allowed.err, allowed
    policy = users.hocket(host, user, "policy", "set", "cost")
    assert policy.code != 0 and "is for operators" in policy.err, policy


def check_that_an_operator_steers_all(users: Users, host: Host) -> None:
    for name in (f"of-{FIRST}", f"of-{SECOND}"):
        asked = users.hocket(host, OPERATOR, "resize", name, "4")
        assert asked.code != 0 and "is not malleable" in asked.err, asked
    chosen = users.hocket(host, OPERATOR, "policy", "set", "fcfs")  # another one could grant the second at once
    assert chosen.code == 0, chosen


def check_who_reads_why_the_second_waits(users: Users, host: Host) -> None:
    told = {user: users.hocket(host, user, "explain").out for user in (FIRST, SECOND, OPERATOR)}
    wait = f"of-{SECOND} waits for of-{FIRST}"
    assert {user: wait in text for user, text in told.items()} == {FIRST: False, SECOND: True, OPERATOR: True}, told


def test_two_users_on_two_nodes_take_turns_and_steer_their_own(
    mpi: kit.Mpi, built: Callable[..., Path], users: Users
) -> None:
    """A user is the same one on each node: each watches and steers from the node where its program does not run."""
    script = built("script.c")
    go_through(script)
    adm, one, two = users.cluster.hosts
    store, story = users.cluster.hosts.store, TraceOnHost(adm)
    names = [f"of-{user}" for user in (FIRST, SECOND)]
    files = [users.make_file(user) for user in (FIRST, SECOND)]
    watching = [users.watch(two, FIRST), users.watch(one, SECOND), users.watch(two, OPERATOR)]
    hold = ("begin=1000", f"await={SHARED / 'go'}", "finish", "close")
    first = users.job(one, FIRST, mpi, script, f"open={SHARED / files[0]}", *hold)
    story.awaits("GRANT_IO", application=names[0])
    second = users.job(two, SECOND, mpi, script, f"open={SHARED / files[1]}", "write=1000", "close")
    assert story.awaits("QUEUED_IO", application=names[1])["behind"] == names[0]
    check_that_a_user_steers_its_own(users, two, FIRST, SECOND)
    check_that_a_user_steers_its_own(users, one, SECOND, FIRST)
    check_who_reads_why_the_second_waits(users, one)
    check_that_an_operator_steers_all(users, two)
    (store / "go").touch()
    for job in (first, second):
        run = hosts.finish(job, LIMIT_S)
        assert (run.code, run.out, run.err) == (0, "", "")
    story.awaits("BYE", application=names[1])
    turns = [(kind, name) for name in names for kind in ("GRANT_IO", "FINISH_IO")]
    assert granted(story, *names) == turns
    for user in (FIRST, SECOND):  # whose events only itself and operators are sent
        assert users.hocket(adm, user, "publish", "over").code == 0
    assert [hosts.finish(one, LIMIT_S).out.split() for one in watching] == [names[:1], names[1:], names]
    assert all((store / written).read_bytes() == 1000 * b"A" + 1000 * b"B" for written in files)
