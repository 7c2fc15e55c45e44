"""Grants over the live socket: leases, keep-alives, policies, and the replay of their traces."""

import json
import random
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgpack
import pytest
from daemon_kit import LIMIT_S, hello, hocketd, one_line, start_io
from hocket.bus import VERSION, Bus, BusError

RECORDED_LEASE_S = 0.8


@pytest.fixture
def daemon(start_daemon):
    """A daemon under which applications always exclude each other, whatever their costs."""
    return start_daemon("--policy", "fcfs")


@pytest.fixture
def short_times(hocket_dir: Path) -> Callable[[float], Path]:
    """Return a function that writes a configuration with the given lease in seconds and a short keep-alive."""

    def make(lease_s: float) -> Path:
        config = hocket_dir / "hocket.toml"
        config.write_text(
            f'[coordinator]\npolicy = "fcfs"\nlease_s = {lease_s}\nkeep_alive_s = 0.05\nlinger_s = 0.01\n'
        )
        return config

    return make


def test_applications_take_turns(daemon):
    with Bus.connect() as one, Bus.connect() as two:
        hello(one, "a", job="1")
        hello(two, "a", job="2")  # the same name, made unique
        assert start_io(one, 1) == "GRANT_IO"
        assert start_io(two, 1) == "QUEUED_IO"
        one.send("FINISH_IO", request=1, phase_over=True)
        granted = two.answer(LIMIT_S)
        assert (granted.type, granted["request"], granted["waited_ns"] > 0) == ("GRANT_IO", 1, True)
        assert len({row["application"] for row in two.list().applications}) == 2


def test_application_that_died_gives_its_grant_back_at_once(daemon):
    with Bus.connect() as two:
        with Bus.connect() as one:
            hello(one, "a")
            hello(two, "b")
            assert start_io(one, 1) == "GRANT_IO"
            assert start_io(two, 1) == "QUEUED_IO"
        granted = two.answer(LIMIT_S)
        assert granted.type == "GRANT_IO"
        assert granted["waited_ns"] < 5e9  # not the lease of 10 s


def test_lease_of_a_silent_holder_ends(start_daemon, short_times):
    start_daemon("--config", short_times(2))
    with Bus.connect() as silent, Bus.connect() as other:
        hello(silent, "silent")
        hello(other, "other")
        assert start_io(silent, 1) == "GRANT_IO"
        assert start_io(other, 1) == "QUEUED_IO"
        while (answer := other.answer(LIMIT_S)).type == "QUEUED_IO":
            assert answer["behind"] == "silent"
        assert answer.type == "GRANT_IO"
        assert answer["waited_ns"] >= 1e9
        expired = silent.answer(LIMIT_S)
        assert (expired.type, expired["holder"]) == ("LEASE_EXPIRED", "silent")


def test_who_waits_is_told_so_again(start_daemon, short_times):
    start_daemon("--config", short_times(4))
    with Bus.connect() as holder, Bus.connect() as waiting:
        hello(holder, "a")
        hello(waiting, "b")
        assert start_io(holder, 1) == "GRANT_IO"
        assert start_io(waiting, 1) == "QUEUED_IO"
        for _ in range(100):  # 5 s in all, beyond the lease: the holder lives
            holder.send("RENEW_IO", request=1)
            assert waiting.answer(LIMIT_S).type == "QUEUED_IO"
        holder.send("FINISH_IO", request=1, phase_over=True)
        while (answer := waiting.answer(LIMIT_S)).type == "QUEUED_IO":
            pass
        assert answer.type == "GRANT_IO"


def test_policy_can_be_changed_while_it_runs(daemon):
    with Bus.connect() as one, Bus.connect() as two, Bus.connect() as operator:
        hello(one, "a")
        hello(two, "b")
        assert start_io(one, 1) == "GRANT_IO"
        assert start_io(two, 1) == "QUEUED_IO"
        operator.send("SET_POLICY", policy="fastest")
        with pytest.raises(BusError, match="unknown policy 'fastest'"):
            operator.answer(LIMIT_S)
        operator.send("SET_POLICY", policy="interfere")
        assert two.answer(LIMIT_S).type == "GRANT_IO"
        assert operator.list().daemon["policy"] == "interfere"


def test_subscribers_see_events_and_commands_in_order(daemon):
    with Bus.connect() as watcher, Bus.connect() as member:
        seen = watcher.subscribe("application=a")
        hello(member, "a")
        assert start_io(member, 1) == "GRANT_IO"
        member.send("BYE")
        events = [seen.wait(LIMIT_S) for _ in range(4)]
        assert [event.type for event in events] == ["WELCOME", "START_IO", "GRANT_IO", "BYE"]
        assert len({event.member for event in events}) == 1


# ---- replay --------------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(start_daemon, short_times) -> Path:
    """Return a trace of three applications that take turns; one dies and one lets its lease expire."""
    daemon = start_daemon("--config", short_times(RECORDED_LEASE_S))
    with Bus.connect() as silent, Bus.connect() as steady:
        hello(silent, "silent")
        hello(steady, "steady")
        with Bus.connect() as mortal:
            hello(mortal, "mortal")
            assert start_io(mortal, 1) == "GRANT_IO"
            assert start_io(silent, 1) == "QUEUED_IO"
        steady.publish("NOTE", text='"quoted" \n ü', load=0.5)
        steady.send("START_IO", request=1, target="dev:8:1")
        while steady.answer(LIMIT_S).type != "GRANT_IO":
            pass
        steady.send("FINISH_IO", request=1)
        steady.send("BYE")
        steady.list()  # the daemon has processed everything before
    daemon.stop()
    return daemon.trace


def test_replay_of_a_recorded_run_agrees(recorded, prefix):
    types = [json.loads(line).get("out") for line in recorded.read_text().splitlines()]
    assert {"WELCOME", "QUEUED_IO", "GRANT_IO", "LEASE_EXPIRED"} <= set(types)
    replay = hocketd(prefix, "--replay", recorded)
    assert (replay.returncode, replay.stderr) == (0, "")
    events = sum(t is None for t in types) - 1
    assert replay.stdout == f"{recorded}: {events} events and {len(types) - events - 1} commands agree\n"


def frame_of_bytes(type_name: str, **fields: int | bytes) -> bytes:
    """Return a frame whose texts hold the bytes unchanged, valid UTF-8 or not."""
    payload = msgpack.packb({"v": VERSION, "type": type_name.encode(), **fields}, use_bin_type=False)
    return struct.pack("<I", len(payload)) + payload


def test_texts_that_are_no_utf8_disturb_neither_tools_nor_replay(daemon, prefix):
    with Bus.connect() as watcher:
        seen = watcher.subscribe("START_IO")
        for byte in (b"\xff", b"\xfe"):
            with Bus.connect() as bus:
                bus._socket.sendall(
                    frame_of_bytes("HELLO", job=b"job" + byte, application_asked=byte, mpi=b"mpich", processes=1)
                )
                assert bus.answer(LIMIT_S)["application_given"] == f"\\x{byte.hex()}"
                bus._socket.sendall(frame_of_bytes("START_IO", request=1, target=b"t", file=b"/gr\xfc" + byte))
                assert bus.answer(LIMIT_S).type == "GRANT_IO"
                assert seen.wait(LIMIT_S)["file"] == f"/gr\\xfc\\x{byte.hex()}"
                bus._socket.sendall(frame_of_bytes("SET_POLICY", policy=byte * 4 + b"fcfs"))
                with pytest.raises(BusError, match="unknown policy"):
                    bus.answer(LIMIT_S)
    daemon.stop()
    assert hocketd(prefix, "--replay", daemon.trace).returncode == 0


def test_long_names_of_one_application_do_not_silence_others(daemon):
    with Bus.connect() as long, Bus.connect() as other:
        longest = "x" * 8192
        long.send("HELLO", job=longest, application_asked=longest, program=longest, mpi=longest, processes=1)
        assert long.answer(LIMIT_S).type == "WELCOME"
        long.send("START_IO", request=1, target=longest, file=longest, operation=longest)
        assert long.answer(LIMIT_S).type == "GRANT_IO"
        hello(other, "other")
        other.send("START_IO", request=1, target=longest)
        assert other.answer(LIMIT_S)["behind"] == longest
        assert [row["application"] for row in other.list().applications] == [longest, "other"]
        other.send("START_IO", request=2, target=longest + "x")
        with pytest.raises(BusError, match="'target' of START_IO is too long"):
            other.answer(LIMIT_S)


def random_step(rng: random.Random, members: list[Bus], directory: Path) -> None:
    """Do one random thing that a member or a tool may do, sensible or not."""
    kind = rng.randrange(20)
    if kind < 2 or not members:
        members.append(Bus.connect(directory / "hocketd.sock"))
        members[-1].send(
            "HELLO",
            job=f"j{rng.randrange(8)}",
            application_asked=rng.choice(["a", "a-2", ""]),
            processes=rng.randrange(3),
        )
        return
    bus = rng.choice(members)
    if kind < 8:
        bus.asked = getattr(bus, "asked", 0) + 1
        bus.send("START_IO", request=bus.asked, target=rng.choice("tuv"))
    elif kind < 13:
        bus.send("FINISH_IO", request=rng.randrange(1, 30), phase_over=rng.random() < 0.3)
    elif kind < 15:
        bus.send("RENEW_IO", request=rng.randrange(1, 30))
    elif kind == 15:
        now = time.monotonic_ns()
        bus.send("IO_PHASE", index=rng.randrange(100), start_ns=now - rng.randrange(10**7), end_ns=now, io_ns=-1)
    elif kind == 16:
        bus.send("SET_POLICY", policy=rng.choice(["fcfs", "interfere", 'x"\n\0']))
    elif kind == 17:
        bus.publish(rng.choice(["NOTE", "in", '"']), {"in": 1, 'a"\n': float("nan"), "": True})
    elif kind == 18:
        bus.send("BYE")
    else:
        members.remove(bus)
        bus.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_replay_of_a_random_run_agrees(start_daemon, short_times, prefix, seed):
    """Members join, leave, die, and become others; leases expire; the policy changes; foreign events pass."""
    daemon = start_daemon("--config", short_times(0.3))
    rng = random.Random(seed)
    members: list[Bus] = []
    with Bus.connect() as watcher:
        watcher.subscribe("")
        for step in range(3000):
            random_step(rng, members, daemon.directory)
            if step % 50 == 0:
                watcher.list()
    for bus in members:
        bus.close()
    assert daemon.stop() == 0
    replay = hocketd(prefix, "--replay", daemon.trace)
    assert (replay.returncode, replay.stderr) == (0, "")
    assert int(replay.stdout.split(" and ")[-1].split()[0]) > 1000, replay.stdout  # commands


def changed(line: str, **keys) -> str:
    return json.dumps(json.loads(line) | keys)


TAMPERED = {
    "another_grant": lambda line: changed(line, waited_ns=1),
    "another_member": lambda line: changed(line, member=99),
    "another_application": lambda line: changed(line, application="other"),
    "another_command": lambda line: line.replace("GRANT_IO", "QUEUED_IO"),
    "a_command_less": lambda line: None,
    "a_command_more": lambda line: f"{line}\n{line}",
    "no_json": lambda line: line[:-1],
}


@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED.keys())
def test_replay_of_a_tampered_run_names_the_line(recorded, prefix, tamper):
    lines = recorded.read_text().splitlines()
    grant = max(i for i, line in enumerate(lines) if line.startswith('{"out": "GRANT_IO"'))
    result = tamper(lines[grant])
    lines[grant : grant + 1] = [] if result is None else result.split("\n")
    recorded.write_text("\n".join(lines) + "\n")
    replay = hocketd(prefix, "--replay", recorded)
    assert (replay.returncode, replay.stdout) == (1, "")
    where = grant + 2 if result is not None and "\n" in result else grant + 1
    assert f"{recorded}, line {where}: " in one_line(replay.stderr)


def test_replay_with_other_settings_differs(recorded, prefix):
    header, *rest = recorded.read_text().splitlines()
    lease = f'"lease_s": {RECORDED_LEASE_S}'
    assert lease in header
    recorded.write_text("\n".join([header.replace(lease, '"lease_s": 30.0'), *rest]) + "\n")
    replay = hocketd(prefix, "--replay", recorded)
    assert replay.returncode == 1
    assert f'"lease_ns": {RECORDED_LEASE_S * 1e9:.0f}' in one_line(replay.stderr)
    assert '"lease_ns": 30000000000' in replay.stderr


def test_replay_of_a_run_that_was_cut_short_agrees(recorded, prefix):
    text = recorded.read_text()
    recorded.write_text(text[: len(text) - 20])
    replay = hocketd(prefix, "--replay", recorded)
    assert replay.returncode == 0
    assert "the last line was cut short" in replay.stdout


def test_replay_of_what_is_no_trace(hocket_dir, prefix):
    file = hocket_dir / "file"
    file.write_text('{"hocket_trace": 3}\n')
    replay = hocketd(prefix, "--replay", file)
    assert (replay.returncode, "version 3; this hocket reads versions 1 to 2" in one_line(replay.stderr)) == (1, True)
    file.write_text('{"hocket_trace": 1, "settings": {"policy": 3}}\n')
    assert "it is a directory" in one_line(hocketd(prefix, "--replay", hocket_dir).stderr)
    assert "line 1: the header's settings cannot be used" in one_line(hocketd(prefix, "--replay", file).stderr)


def test_replay_takes_for_a_setting_that_came_later_what_was_done_before(recorded, prefix):
    """Replay a trace of version 1 with few settings, and without waits among its decisions."""
    header, *rest = recorded.read_text().splitlines()
    whole = json.loads(header)
    few = {key: whole["settings"][key] for key in ("policy", "lease_s", "linger_s", "keep_alive_s")}
    assert any('"DECISION"' in line for line in rest)
    rest = [line for line in rest if '"DECISION"' not in line]
    recorded.write_text("\n".join([json.dumps(whole | {"hocket_trace": 1, "settings": few}), *rest]) + "\n")
    replay = hocketd(prefix, "--replay", recorded)
    assert (replay.returncode, replay.stderr) == (0, "")
    assert replay.stdout.endswith(" commands agree\n"), replay.stdout


def test_trace_of_a_killed_daemon_is_whole_up_to_a_moment(start_daemon, prefix):
    daemon = start_daemon("--policy", "fcfs")
    with Bus.connect() as bus, Bus.connect() as watcher:
        hello(bus, "a")
        for request in range(1, 2000):
            bus.send("START_IO", request=request, target="t")
            assert bus.answer(LIMIT_S).type == "GRANT_IO"
            bus.send("FINISH_IO", request=request)
        assert watcher.list().daemon["events"] >= 3999 - 1
        daemon.kill()
    replay = hocketd(prefix, "--replay", daemon.trace)
    assert replay.returncode == 0, replay.stderr
    assert int(replay.stdout.split(": ")[1].split()[0]) > 1000


def test_help_and_version(prefix):
    assert hocketd(prefix, "--version").stdout.startswith("hocketd ")
    done = subprocess.run([prefix / "bin" / "hocketd", "--help"], capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, "--replay" in done.stdout) == (0, True)
