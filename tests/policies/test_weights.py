"""Servers policies that weigh servers and tune collective I/O: with real servers and MPI programs."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
import restless_policy
import runtime_kit as kit
from daemon_kit import Daemon
from hocket.bus import Bus
from policy_page import blocks
from put_get_kit import MIB, noise
from story import Story

pytestmark = pytest.mark.timeout(180)
LIMIT_S = 40
BLOCK = 100_000  # bytes of a rank in each write of script.c's `writing`
FULL = 8  # the weight of a server that is not loaded
HEAD = 'NAME = "mine"\nKIND = "servers"\n\n\ndef decide(view, event):\n'


@pytest.fixture
def daemon(start_daemon, tmp_path: Path, request: pytest.FixtureRequest) -> Daemon:
    """A daemon with the policy `weigh`, or with a policy file of the text that a test gives, or the restless one."""
    wanted = getattr(request, "param", None)
    if wanted is None:
        return start_daemon("--policy", "cost+weigh")
    if wanted == "restless":
        return restless_policy.start(start_daemon, tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(wanted)
    started = start_daemon("--policy-file", path)
    started.policy_file = path
    return started


@pytest.fixture
def settings(daemon: Daemon) -> dict[str, str]:
    return kit.settings(daemon.socket) | {"HOCKET_IO": "hocket"}


def explained() -> str:
    command = [sys.executable, "-m", "hocket.cli", "explain"]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout


def moved(story: Story, since: int) -> dict[str, int]:
    """Return the bytes that each server has moved since that line."""
    names = {line["member"]: line["server"] for line in story.all("SERVER")}
    sums = dict.fromkeys(names.values(), 0)
    for line in story.all("SERVER_LOAD", since):
        sums[names[line["member"]]] += line["bytes"]
    return sums


def holds_the_blocks(path: Path, ranks: int) -> bool:
    row = b"".join(bytes([ord("A") + rank]) * BLOCK for rank in range(ranks))
    with path.open("rb") as file:
        while data := file.read(len(row)):
            if data != row:
                return False
    return True


def shares_in(server_map: str) -> dict[str, int]:
    """Return the weight of each server; the map names those that are not full."""
    rows = [line.split() for line in server_map.splitlines()]
    return {row[0]: next((int(word[7:]) for word in row if word.startswith("weight:")), FULL) for row in rows}


@pytest.mark.parametrize("behind", [False, True], ids=["through", "behind"])
@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
def test_a_loaded_server_gets_fewer_bytes(
    mpi: kit.Mpi, built, start_server, story: Story, settings, served_directory: Path, tmp_path: Path, behind: bool
) -> None:
    how = ["--write-behind"] if behind else []
    start_server("s1", *how), start_server("s2", *how), start_server("s3", *how, "--inject", "delay=20ms")
    path, end = served_directory / "f", tmp_path / "end"
    job = mpi.start([built("script.c"), f"open={path}", f"writing={end}", "close"], settings, ranks=3)
    told = story.awaits("DECISION", action="weigh", decided_for="s3")
    epoch = told["reason"]["epoch"]
    story.until(lambda: [one for one in story.all("MAP_ADOPTED") if one["epoch"] >= epoch], "the new shares are used")
    since = len(story.read())
    story.until(lambda: sum(moved(story, since).values()) > 64 * MIB, "64 MiB by the new shares")
    after = moved(story, since)
    end.touch()
    assert kit.finish(job).code == 0
    print(f"bytes of each server: {after}")
    assert 0 < after["s3"] * 3 < min(after["s1"], after["s2"]), after
    assert holds_the_blocks(path, 3)
    shares = shares_in(next(line["text"] for line in story.all("SERVER_MAP") if line["epoch"] >= epoch))
    assert shares["s3"] < min(shares["s1"], shares["s2"]), shares
    assert "s3 gets another share of the stripes" in explained()


@pytest.mark.parametrize("daemon", ["restless"], indirect=True)
@pytest.mark.parametrize("behind", [False, True], ids=["through", "behind"])
def test_what_was_put_is_got_while_weights_change(
    daemon: Daemon, program, start_server, story: Story, served_directory: Path, behind: bool
) -> None:
    """Programs that put and get ask for a map only now and then, so they use different ones."""
    how = ["--write-behind"] if behind else []
    for name, delay in (("s1", "0ms"), ("s2", "20ms"), ("s3", "5ms")):
        start_server(name, *how, "--inject", f"delay={delay}")
    draw, model = random.Random(7), bytearray()
    programs = [program() for _ in range(3)]
    for one in programs:
        one.must("open", served_directory / "f", "rwc")
    with restless_policy.Restless(daemon):
        for number in range(150):
            one = draw.choice(programs)
            first, length = draw.randrange(8 * MIB), draw.randrange(1, 3 * MIB)
            if draw.random() < 0.5:
                data = noise(length, number)
                one.put(first, data)
                model.extend(bytes(max(first + length - len(model), 0)))
                model[first : first + length] = data
            else:
                assert one.get("get", first, length) == model[first : first + length], f"round {number}"
    for one in programs:
        one.must("close")
    assert (served_directory / "f").read_bytes() == model
    if behind:  # servers that write through are sent no map, and nobody else is here
        assert len({line["text"] for line in story.all("SERVER_MAP") if " weight:" in line["text"]}) > 2


TUNES = HEAD + '    return [{"tune": a, "aggregators": 1, "method": "list"} for a in view.applications]\n'


@pytest.mark.parametrize("daemon", [TUNES], indirect=True)
def test_an_application_reports_what_it_uses_of_a_policys_settings(
    daemon: Daemon, mpi: kit.Mpi, built, story: Story, settings, tmp_path: Path, prefix: Path
) -> None:
    """There is no server. The program sets a hint after its first write, which goes first from then on."""
    script = ["open=" + str(tmp_path / "f"), "write=300000", "collective=view", "write=300000", "close"]
    run = mpi.run([built("script.c"), *script], settings, ranks=3)
    assert run.code == 0, run.err
    story.awaits("BYE", application="a")
    told = [{key: line.get(key) for key in ("aggregators", "method", "hinted")} for line in story.all("MAP_ADOPTED")]
    assert told == [
        {"aggregators": 1, "method": "list", "hinted": ""},
        {"aggregators": 1, "method": "view", "hinted": "method"},
    ]
    shown = explained()
    assert "collective I/O from epoch 1 on: 1 aggregator, method 'list'" in shown
    assert "go first: method" in shown
    assert (tmp_path / "f").read_bytes() == b"".join(bytes([c]) * 300_000 for c in b"ABCABC")
    assert daemon.stop() == 0
    replay = [prefix / "bin" / "hocketd", "--replay", daemon.trace, "--policy-file", daemon.policy_file]
    done = subprocess.run(list(map(str, replay)), capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("daemon", [TUNES], indirect=True)
@pytest.mark.parametrize(("hints", "travels"), [((), "listed"), (("hocket_collective=view",), "viewed")])
def test_the_method_of_a_policy_is_used_through_servers_unless_a_hint_names_one(
    mpi: kit.Mpi, built, start_server, settings, served_directory: Path, hints: tuple[str, ...], travels: str
) -> None:
    servers = [start_server(name) for name in ("s1", "s2")]
    program = [built("faulty_access.c"), served_directory / "f", "write", "interleaved", 512, *hints]
    run = mpi.run(program, settings, ranks=3)
    assert (run.code, run.out) == (0, "MPI_SUCCESS\nright\n"), f"{mpi.name}: {run.out}{run.err}"
    for state in (server.client().state() for server in servers):
        requests = {way: int(state[f"{way}_requests"]) for way in ("listed", "viewed")}
        assert requests.pop(travels) > 0, state
        assert set(requests.values()) == {0}, state


WRONG = (
    HEAD
    + """    weights = [{"weigh": s, "weight": w} for s in ("s1", "s2", "s9") for w in (0, -5, 9, 10**30)]
    wrong = [{"aggregators": 0}, {"aggregators": 10**6}, {"aggregators": -(10**30)}, {"buffer_bytes": 0},
             {"buffer_bytes": 2**40}, {"method": "x" * 10000}]
    return weights + [{"tune": a, **one} for a in view.applications for one in wrong]
"""
)


@pytest.mark.parametrize("daemon", [WRONG], indirect=True)
@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)
def test_what_cannot_be_is_a_line_each_and_changes_nothing(
    daemon: Daemon, mpi: kit.Mpi, built, start_server, story: Story, settings, served_directory: Path
) -> None:
    start_server("s1", "--write-behind"), start_server("s2")
    path = served_directory / "f"
    run = mpi.run([built("script.c"), f"open={path}", *[f"write={BLOCK}"] * 30, "close"], settings, ranks=3)
    assert (run.code, run.err) == (0, "")
    assert path.stat().st_size == 90 * BLOCK and holds_the_blocks(path, 3)
    story.awaits("BYE", application="a")
    told = story.all("DECISION", policy="mine")
    assert {one["action"] for one in told} == {"leave"}
    kinds = sorted((one["decided_for"], one["obstacle"].get("what", "gone")) for one in told)
    wrong = [("a", "aggregators"), ("a", "buffer_bytes"), ("a", "method")]
    assert [one for one in kinds if one[1] != "gone"] == [*wrong, ("s1", "weight"), ("s2", "weight")], (
        "each is said once"
    )
    assert len(kinds) == 6, "names of servers that do not run share a line"
    assert all(len(json.dumps(one)) < 1000 for one in told)
    maps = {line["text"] for line in story.all("SERVER_MAP")}
    assert not [text for text in maps if "weight" in text]
    shown = explained()
    assert "must be 1 to 8" in shown and "must be 'auto', 'view' or 'list'" in shown


def test_the_policy_of_the_page_weighs_servers(start_daemon, tmp_path: Path) -> None:
    from stand_in_server import report, say_hello

    path = tmp_path / "by_queue.py"
    path.write_text(next(text for text in blocks("python") if '"weigh"' in text))
    start_daemon("--policy-file", path)
    with Bus.connect() as first, Bus.connect() as second, Bus.connect() as app:
        say_hello(first, "s1", "/scratch"), say_hello(second, "s2", "/scratch")
        app.send("HELLO", job="a", application_asked="a", program="/x", mpi="mpich", version="t", pid=1, processes=4)
        assert app.answer(10).type == "WELCOME"
        assert app.answer(10).type == "SERVER_MAP"
        report(first, 8, 8 << 20, 8 * 10**6, queue=30)
        changed = app.answer(10)
        assert changed.type == "SERVER_MAP"
        weights = [line.partition(" weight:")[2] for line in changed["text"].splitlines()]
        assert weights[1] == "" and 1 <= int(weights[0]) < 8, changed["text"]
        assert {one["server"]: one["weight"] for one in app.list().servers}["s2"] == 8
