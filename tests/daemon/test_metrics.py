"""/metrics of hocketd: each figure agrees with the trace, and no client of it disturbs anything else."""

from __future__ import annotations

import json
import random
import re
import socket
import stat
import time
from pathlib import Path

import pytest
from checkout import REPO
from daemon_kit import LIMIT_S, hello, hocketd, one_line, start_io
from hocket.bus import Bus
from metrics_kit import CONTENT_TYPE, OTHERS, TARGETS_WITH_SERIES, Endpoint, parse, sums
from runtime_kit import wait_until

POLICIES = ("fcfs", "interfere", "interrupt", "set-10", "cost")


@pytest.fixture
def daemon(start_daemon, hocket_dir):
    config = hocket_dir / "hocket.toml"
    config.write_text(
        '[daemon]\nmetrics = "127.0.0.1:0"\n\n'
        '[coordinator]\npolicy = "fcfs"\nlease_s = 0.3\nkeep_alive_s = 0.05\nlinger_s = 0.01\n'
    )
    return start_daemon("--config", config)


@pytest.fixture
def endpoint(daemon) -> Endpoint:
    return Endpoint(daemon)


def traced(daemon) -> list[dict]:
    with Bus.connect() as bus:
        bus.list()  # the daemon writes everything before to the trace
    return [json.loads(line) for line in daemon.trace.read_text().splitlines()[1:]]


# ---- the figures -----------------------------------------------------------------------------------------------------


def test_waiting_and_granted_requests_are_those_of_now(endpoint):
    with Bus.connect() as one, Bus.connect() as two, Bus.connect():
        hello(one, "a")
        hello(two, "b")
        assert (start_io(one, 1), start_io(two, 1)) == ("GRANT_IO", "QUEUED_IO")
        now = endpoint.metrics()
        assert now["hocket_waiting_requests"].by_label() == {"dev:8:1": 1}
        assert now["hocket_granted_requests"].by_label() == {"dev:8:1": 1}
        assert [now[f"hocket_{name}"].value() for name in ("applications", "members", "connections")] == [2, 2, 3]
        one.send("FINISH_IO", request=1, phase_over=True)
        assert two.answer(LIMIT_S).type == "GRANT_IO"
        assert endpoint.metrics()["hocket_waiting_requests"].by_label() == {"dev:8:1": 0}
    assert endpoint.metrics()["hocket_grants_total"].by_label() == {"dev:8:1": 2}


def random_step(rng: random.Random, members: list[Bus]) -> None:
    """Do one random thing that a member or a tool may do, sensible or not."""
    kind = rng.randrange(22)
    if kind < 2 or not members:
        members.append(Bus.connect())
        members[-1].send("HELLO", job=f"j{rng.randrange(8)}", application_asked=rng.choice("ab"), processes=1)
        return
    bus = rng.choice(members)
    target = rng.choice("tuv")
    if kind < 8:
        bus.asked = getattr(bus, "asked", 0) + 1
        bus.send("START_IO", request=bus.asked, target=target, bytes=rng.choice([0, 10**6]))
    elif kind < 13:
        bus.send("FINISH_IO", request=max(1, getattr(bus, "asked", 0) - rng.randrange(3)), io_ns=rng.randrange(10**7))
    elif kind < 15:
        bus.send("PAUSED_IO", request=getattr(bus, "asked", 1))
    elif kind < 18:
        now = time.monotonic_ns()
        times = {key: rng.choice([-1, rng.randrange(10**7), 10**18]) for key in ("io_ns", "wait_ns")}
        phase = {"start_ns": now - rng.randrange(10**7), "end_ns": now + rng.choice([0, 10**15]), **times}
        bus.phases = getattr(bus, "phases", -1) + 1
        bus.send("IO_PHASE", index=bus.phases, target=target, **phase)
    elif kind == 18:
        bus.send("SET_POLICY", policy=rng.choice([*POLICIES, "none such"]))
    elif kind == 19:
        bus.publish(rng.choice(["NOTE", "in", '"']), {"in": 1})
    elif kind == 20:
        bus.send("BYE")
    else:
        members.remove(bus)
        bus.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_counters_are_the_sums_of_the_trace(daemon, endpoint, seed):
    """Members join, leave and die; leases expire; accesses are preempted; bandwidth shares and policies change."""
    rng = random.Random(seed)
    members: list[Bus] = []
    with Bus.connect() as tool:
        for step in range(3000):
            random_step(rng, members)
            if step % 50 == 0:
                tool.list()
            if step % 500 == 499:
                time.sleep(0.4)  # leases end
        tool.send("SET_POLICY", policy="cost")  # it estimates what it saved when an application leaves
        for bus in members:
            bus.close()
        wait_until(lambda: tool.list().daemon["applications"] == 0, LIMIT_S, "all applications have left")
    expected = sums(traced(daemon))
    shown = endpoint.metrics()
    assert shown["hocket_events_total"].by_label() == {
        kind: count for kind, count in expected["events"].items() if kind.isupper() and kind != "NOTE"
    } | {"USER": sum(count for kind, count in expected["events"].items() if kind in ("NOTE", "in", '"'))}
    for name, key in (("grants", "grants"), ("io_seconds", "io_s"), ("wait_seconds", "wait_s")):
        of_target = {target: value for target, value in shown[f"hocket_{name}_total"].by_label().items() if value}
        assert of_target == pytest.approx({target: value for target, value in expected[key].items() if value})
    for name in ("lease_ends", "pauses", "refused"):
        assert shown[f"hocket_{name}_total"].value() == expected[name], name
    assert expected["lease_ends"] > 0 and expected["refused"] > 0
    waits = shown["hocket_grant_wait_seconds"].samples
    assert waits["hocket_grant_wait_seconds_count", ()] == len(expected["waits"]) > 100
    assert waits["hocket_grant_wait_seconds_sum", ()] == pytest.approx(sum(expected["waits"]))
    for (_, labels), value in waits.items():
        if labels:
            assert value == sum(wait <= float(labels[0][1]) for wait in expected["waits"]), labels
    assert shown["hocket_decisions_total"].by_label() == expected["decisions"]
    assert not shown["hocket_outcomes_total"].samples and not expected["outcomes"], "no application was resized"
    estimates = expected["estimates"]
    assert estimates, "no application has left under cost"
    assert shown["hocket_estimates_total"].value() == len(estimates)
    assert shown["hocket_saved_seconds_total"].value() == pytest.approx(-sum(s for s in estimates if s < 0))
    assert shown["hocket_lost_seconds_total"].value() == pytest.approx(sum(s for s in estimates if s > 0))


def test_time_that_coordination_saves_is_that_of_the_decisions(start_daemon):
    """Two applications write alone, then together, as cost wants to see; the trace has an estimate when each leaves."""
    daemon = start_daemon("--metrics", "127.0.0.1:0")
    with Bus.connect() as one, Bus.connect() as two:
        buses = [one, two]
        for name, bus in zip("ab", buses, strict=True):
            hello(bus, name)
        for index in range(6):
            together = index >= 2
            for bus in buses:
                bus.begun_ns = time.monotonic_ns()
                bus.send("START_IO", request=index + 1, target="t", operation="MPI_File_write_all", bytes=10**8)
                if not together:
                    write(bus, index)
            for bus in buses if together else ():
                write(bus, index)
        for bus in buses:
            bus.send("BYE")
    estimates = sums(traced(daemon))["estimates"]
    shown = Endpoint(daemon).metrics()
    assert shown["hocket_estimates_total"].value() == len(estimates) == 2
    difference = shown["hocket_saved_seconds_total"].value() - shown["hocket_lost_seconds_total"].value()
    assert difference == pytest.approx(-sum(estimates))


def write(bus: Bus, index: int) -> None:
    """Wait for the grant, write for 50 ms, and report the phase."""
    while bus.answer(LIMIT_S).type != "GRANT_IO":
        pass
    granted_ns = time.monotonic_ns()
    time.sleep(0.05)
    now = time.monotonic_ns()
    bus.send("FINISH_IO", request=index + 1, io_ns=now - granted_ns, bytes=10**8, phase_over=True)
    times = {"start_ns": bus.begun_ns, "end_ns": now, "io_ns": now - granted_ns, "wait_ns": granted_ns - bus.begun_ns}
    bus.send("IO_PHASE", index=index, target="t", operations=1, bytes_written=10**8, **times)


def test_the_trace_that_breaks_is_told(start_daemon, hocket_dir):
    daemon = start_daemon("--metrics", "127.0.0.1:0", "--trace", "/dev/full")
    with Bus.connect() as bus:
        hello(bus, "a")
        assert bus.list().daemon["trace_error"]
    assert Endpoint(daemon).metrics()["hocket_trace_broken"].value() == 1


def test_the_loop_is_measured(endpoint):
    first, second = endpoint.metrics(), endpoint.metrics()
    passes = [page["hocket_loop_seconds"].samples["hocket_loop_seconds_count", ()] for page in (first, second)]
    assert passes[0] < passes[1]
    longest = second["hocket_loop_longest_seconds"].value()
    assert 0 < longest <= second["hocket_loop_seconds"].samples["hocket_loop_seconds_sum", ()]
    assert abs(second["hocket_start_time_seconds"].value() - time.time()) < 2 * LIMIT_S


# ---- names from applications -----------------------------------------------------------------------------------------


def test_a_target_cannot_forge_a_series(endpoint):
    names = ['a"} 7\nhocket_forged 1\n#', "b\\", 'c\\"', "", "\x1b[2J", "é€😀"]
    with Bus.connect() as bus:
        hello(bus, "a")
        for number, target in enumerate(names, 1):
            bus.send("START_IO", request=number, target=target)
            assert bus.answer(LIMIT_S).type == "GRANT_IO"
        page = endpoint.request().body
    shown = {name.replace("\n", "\\x0a").replace("\x1b", "\\x1b") for name in names}
    assert parse(page)["hocket_granted_requests"].by_label() == dict.fromkeys(shown, 1)
    assert "\x1b" not in page


def test_many_targets_share_a_series(endpoint):
    with Bus.connect() as bus:
        hello(bus, "a")
        for number in range(1, 201):
            bus.send("START_IO", request=number, target=f"t{number}" if number < 200 else "x" * 8000)
            assert bus.answer(LIMIT_S).type == "GRANT_IO"
        shown = endpoint.metrics()
        for name in ("hocket_grants_total", "hocket_granted_requests"):
            of_target = shown[name].by_label()
            assert len(of_target) == TARGETS_WITH_SERIES + 1
            assert of_target[OTHERS] == 200 - TARGETS_WITH_SERIES
        assert len(endpoint.request().body) < 100_000


# ---- requests --------------------------------------------------------------------------------------------------------


def test_it_is_off_by_default(start_daemon):
    daemon = start_daemon()
    listening = Path("/proc/net/tcp").read_text().splitlines()
    sockets = {path.readlink().name for path in Path(f"/proc/{daemon.pid}/fd").iterdir() if path.is_symlink()}
    assert not any(f"socket:[{line.split()[9]}]" in sockets for line in listening[1:])
    assert "/metrics" not in daemon.log.read_text()


def test_other_requests_get_an_error(endpoint):
    assert endpoint.request("HEAD").status == 200
    assert endpoint.request("HEAD").body == ""
    assert int(endpoint.request("HEAD").headers["Content-Length"]) > 1000
    assert endpoint.request(path="/").status == 404
    assert endpoint.request("POST", body="x" * 10_000).status == 405
    assert endpoint.request(headers={"X": "x" * 5000}).status == 431
    assert endpoint.request(headers={"Accept": "application/openmetrics-text"}).headers["Content-Type"] == CONTENT_TYPE


def test_connections_that_ask_nothing_disturb_nobody(daemon, endpoint):
    idle = [socket.create_connection((endpoint.host, endpoint.port), LIMIT_S) for _ in range(50)]
    with Bus.connect() as bus:
        hello(bus, "a")
        assert start_io(bus, 1) == "GRANT_IO"
    answers = [one.recv(1000) for one in idle[:8]]  # after the time limit
    assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in answers)
    assert idle[-1].recv(1000) == b"", "beyond the limit of connections"
    for one in idle:
        one.close()
    assert endpoint.request().status == 200
    assert daemon.stop() == 0


def test_random_bytes_leave_the_daemon_up(daemon, endpoint):
    rng = random.Random(7)
    for _ in range(200):
        with socket.create_connection((endpoint.host, endpoint.port), LIMIT_S) as one:
            one.sendall(rng.choice([b"", b"GET /metrics HTTP/1.1\r\n"]) + rng.randbytes(rng.randrange(6000)))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, rng.choice([b"\0" * 8, b"\1\0\0\0\0\0\0\0"]))
    assert endpoint.request().status == 200
    assert daemon.stop() == 0


# ---- addresses -------------------------------------------------------------------------------------------------------


def test_a_unix_socket_is_private_and_goes_with_the_daemon(start_daemon, hocket_dir):
    path = hocket_dir / "metrics.sock"
    daemon = start_daemon("--metrics", f"unix:{path}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(LIMIT_S)
        one.connect(str(path))
        one.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        page = one.makefile("rb").read().decode()
    assert parse(page.split("\r\n\r\n", 1)[1])["hocket_applications"].value() == 0
    daemon.kill()
    daemon = start_daemon("--metrics", f"unix:{path}")  # the socket of a killed daemon is replaced
    assert daemon.stop() == 0
    assert not path.exists()


def test_an_address_that_others_reach_is_a_warning(start_daemon):
    daemon = start_daemon("--metrics", "0.0.0.0:0")
    assert re.search(r"warning: anyone who reaches 0.0.0.0:\d+ can read /metrics", daemon.log.read_text())
    assert "warning" not in start_and_read_log(start_daemon, daemon)


def start_and_read_log(start_daemon, before) -> str:
    before.stop()
    before.log.unlink()
    return start_daemon("--metrics", "[::1]:0").log.read_text()


def test_an_address_that_cannot_be_used_is_an_error(hocket_dir, prefix):
    wrong = hocketd(prefix, "--dir", hocket_dir, "--metrics", "cpu-time")
    assert wrong.returncode == 2
    assert "--metrics: daemon.metrics: 'cpu-time' is no address: it has no port" in one_line(wrong.stderr)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = hocketd(prefix, "--dir", hocket_dir, "--metrics", address)
    assert refused.returncode == 1
    assert one_line(refused.stderr) == f"hocketd: cannot serve metrics at {address}: Address already in use\n"


# ---- the page for operators ------------------------------------------------------------------------------------------


def test_the_table_of_the_page_for_operators_has_each_metric(endpoint):
    page = (REPO / "docs/operate.md").read_text()
    rows = re.findall(r"^\| `(hocket_\w+)(?:\{([\w,]+)\})?` \| (\w+) \|", page, re.M)
    with Bus.connect() as bus:
        hello(bus, "a")
        bus.send("START_IO", request=1, target="t")
        assert bus.answer(LIMIT_S).type == "GRANT_IO"
        bus.send("SET_POLICY", policy="none such")
    shown = endpoint.metrics()
    assert {name: kind for name, _, kind in rows} == {name: metric.type for name, metric in shown.items()}
    for name, words, _ in rows:
        labels = {label for _, labels in shown[name].samples for label, _ in labels} - {"le"}
        assert labels <= set(words.split(",")), name
