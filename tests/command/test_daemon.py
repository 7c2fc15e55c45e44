"""The command and the Python bus with a real hocketd: start, stop, status, listings, events."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from checkout import REPO
from hocket import daemon as daemon_module
from hocket.bus import Bus, BusError, NoDaemonError
from hocket.verbs.ls import next_phase

pytestmark = pytest.mark.timeout(60)
HOCKET = (sys.executable, "-m", "hocket.cli")
LIMIT_S = 40


@pytest.fixture(autouse=True)
def of_this_prefix(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))


def hocket(*arguments: str, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*HOCKET, *arguments], capture_output=True, text=True, timeout=LIMIT_S, **more)


def application(bus: Bus, name: str = "a", job: str = "j") -> Bus:
    """Register a stand-in for rank 0 of an application; the daemon knows it when this returns."""
    bus.send("HELLO", job=job, application_asked=name, program="/x", mpi="mpich", version="t", pid=1, processes=4)
    assert bus.answer(10).type == "WELCOME"
    return bus


@pytest.fixture
def patient_daemon(start_daemon, tmp_path: Path):
    """A daemon whose leases outlast a test, because a stand-in for an application renews none."""
    (tmp_path / "hocket.toml").write_text("[coordinator]\nlease_s = 120\n")
    return start_daemon("--config", tmp_path / "hocket.toml")


# A hocketd that names another process as its own, as one in another PID namespace does.
LIAR = """
import sys
from pathlib import Path
from stand_in_hocketd import StandIn

daemon = {"pid": int(sys.argv[2]), "on_node": "n", "version": "t", "policy": "cost", "trace": "", "now_ns": 1}
StandIn(Path(sys.argv[1])).daemon = daemon
print("listens", flush=True)
sys.stdin.read()
"""


def test_stop_signals_the_process_that_listens_and_no_other(hocket_dir):
    with subprocess.Popen(["sleep", "60"]) as bystander:
        command = [sys.executable, "-c", LIAR, hocket_dir / "hocketd.sock", str(bystander.pid)]
        path = os.pathsep.join([str(REPO / "tests" / "kit"), os.environ.get("PYTHONPATH", "")])
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": path}
        ) as liar:
            try:
                assert liar.stdout.readline() == b"listens\n"
                done = hocket("daemon", "stop")
                assert bystander.poll() is None, "a process that is not the daemon was killed"
                assert done.stderr == f"hocket: hocketd {liar.pid} has ended\n"
                assert liar.wait(LIMIT_S) == -signal.SIGTERM
            finally:
                liar.kill()
                bystander.kill()


def test_stop_leaves_a_daemon_in_another_pid_namespace(start_daemon):
    daemon = start_daemon()
    apart = ["unshare", "--pid", "--fork", *([] if os.getuid() == 0 else ["--map-root-user"])]
    done = subprocess.run([*apart, *HOCKET, "daemon", "stop"], capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "hocket: hocketd runs in another PID namespace; run 'hocket daemon stop' there\n"
    assert daemon.process.poll() is None


def test_start_status_stop(hocket_dir):
    started = hocket("daemon", "start", "--policy", "interfere")
    assert (started.returncode, started.stdout) == (0, ""), started.stderr
    assert "policy interfere" in started.stderr
    status = json.loads(hocket("daemon", "status", "--json").stdout)
    assert (status["running"], status["policy"], status["applications"]) == (True, "interfere", 0)
    assert Path(status["trace"]).parent == hocket_dir / "traces"
    assert f"hocketd {status['pid']} on " in hocket("daemon", "status").stdout
    again = hocket("daemon", "start")
    assert (again.returncode, again.stderr) == (
        1,
        f"hocket: a hocketd runs already (pid {status['pid']}); 'hocket daemon stop' ends it\n",
    )
    assert hocket("daemon", "stop").stderr == f"hocket: hocketd {status['pid']} has ended\n"
    gone = hocket("daemon", "status", "--json")
    assert (gone.returncode, json.loads(gone.stdout)["running"]) == (1, False)
    assert hocket("daemon", "stop").returncode == 0


def test_start_with_a_metric(hocket_dir):
    started = hocket("daemon", "start", "--policy", "dynamic", "--metric", "io-time")
    assert started.returncode == 0, started.stderr
    try:
        status = json.loads(hocket("daemon", "status", "--json").stdout)
        assert (status["policy"], status["metric"]) == ("dynamic", "io-time")
        assert "metric        io-time" in hocket("daemon", "status").stdout.splitlines()
        assert hocket("policy", "set", "--metric", "max(io_time/alone)").returncode == 0
        assert hocket("policy", "show").stdout == "dynamic\nmetric: max(io_time/alone)\n"
        refused = hocket("policy", "set", "fcfs", "--metric", "sum(cores)")
        assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
        assert "cores" in refused.stderr
        assert hocket("policy", "show").stdout == "dynamic\nmetric: max(io_time/alone)\n"
    finally:
        assert hocket("daemon", "stop").returncode == 0
    wrong = hocket("daemon", "start", "--metric", "cpu_time")
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (1, 1), wrong
    assert "cpu_time" in wrong.stderr


def test_start_with_metrics(hocket_dir):
    started = hocket("daemon", "start", "--metrics", "127.0.0.1:0")
    assert started.returncode == 0, started.stderr
    try:
        assert "/metrics is served at 127.0.0.1:" in (hocket_dir / "hocketd.log").read_text()
    finally:
        assert hocket("daemon", "stop").returncode == 0
    wrong = hocket("daemon", "start", "--metrics", "localhost")
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (1, 1), wrong
    assert "'localhost' is no address" in wrong.stderr


def test_start_with_a_wrong_setting_is_one_line(hocket_dir, tmp_path):
    (tmp_path / "hocket.toml").write_text("[coordinator]\nleas_s = 3\n")
    started = hocket("daemon", "start", "--config", "hocket.toml", cwd=tmp_path)
    assert started.returncode == 1
    assert len(started.stderr.splitlines()) == 1
    assert "leas_s" in started.stderr
    assert "coordinator.lease_s" in started.stderr


def test_two_starts_at_once_give_one_daemon(hocket_dir):
    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(lambda _: hocket("daemon", "start"), range(4)))
    assert sorted(one.returncode for one in ended)[0] == 0, [one.stderr for one in ended]
    pid = json.loads(hocket("daemon", "status", "--json").stdout)["pid"]
    told = [one.stderr for one in ended]
    assert all(f"{pid} " in text or f"{pid})" in text for text in told), told
    assert hocket("daemon", "stop").returncode == 0


def test_a_stale_socket_does_not_hinder(start_daemon):
    first = start_daemon()
    first.kill()
    assert first.socket.exists()
    bus, started = daemon_module.connect_or_start()
    with bus:
        assert started
        assert bus.list().daemon["pid"] != first.pid
    daemon_module.stop()


def test_a_directory_open_to_others_is_refused(hocket_dir):
    hocket_dir.chmod(0o755)
    started = hocket("daemon", "start")
    assert (started.returncode, len(started.stderr.splitlines())) == (1, 1)
    assert "is open to other users (mode 0755)" in started.stderr


def test_foreground_ends_with_the_signal(hocket_dir):
    process = subprocess.Popen([*HOCKET, "daemon", "start", "--foreground"], stdout=subprocess.PIPE, text=True)
    assert "listens on" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    process.stdout.close()


def test_ls_lists_applications(patient_daemon):
    assert hocket("ls").stdout == "no application runs\n"
    with application(Bus.connect(), "jacobi-a"), application(Bus.connect(), "jacobi-b", "k") as second:
        second.send("START_IO", request=1, target="dev:1", file="/f", operation="MPI_File_write_all", bytes=5)
        assert second.answer(10).type == "GRANT_IO"
        told = json.loads(hocket("ls", "--json").stdout)
        assert [(a["application"], a["state"], a["processes"]) for a in told["applications"]] == [
            ("jacobi-a", "computing", 4),
            ("jacobi-b", "io", 4),
        ]
        assert told["daemon"]["applications"] == 2
        table = hocket("ls").stdout.splitlines()
    assert table[0].split()[:3] == ["APPLICATION", "STATE", "PROCESSES"]
    assert [line.split()[:2] for line in table[1:]] == [["jacobi-a", "computing"], ["jacobi-b", "io"]]


@pytest.mark.parametrize(
    ("state", "at_s", "told"),
    [
        ("computing", 12, "in 2.00 ± 0.50 s"),
        ("computing", 9, "1.00 s late, ± 0.50 s"),
        ("computing", 0, ""),
        ("io", 9, ""),
        ("waiting", 12, ""),
    ],
)
def test_ls_tells_the_next_phase_until_it_begins(state, at_s, told):
    application = {"state": state, "next_start_ns": at_s * 10**9, "next_uncertainty_ns": 5 * 10**8}
    assert next_phase(application, 10 * 10**9) == told


def test_ls_json_follows_its_schema(daemon):
    schema = json.loads((REPO / "docs/ls.schema.json").read_text())
    with application(Bus.connect()):
        told = json.loads(hocket("ls", "--json").stdout)
    assert len(told["applications"]) == 1
    assert violations(told, schema) == []
    told["applications"][0]["state"] = "asleep"
    told["daemon"]["pid"] = "1"
    assert len(violations(told, schema)) == 2


def violations(value, schema: dict, where: str = "$") -> list[str]:
    """Return the violations by the part of JSON Schema that the schema uses. A key without a definition is one, too."""
    types = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
    if not isinstance(value, types[schema["type"]]):
        return [f"{where} is no {schema['type']}"]
    if value not in schema.get("enum", [value]):
        return [f"{where} is {value!r}"]
    found = [f"{where}.{key} is missing" for key in schema.get("required", []) if key not in value]
    for key, part in value.items() if isinstance(value, dict) else []:
        known = schema["properties"].get(key)
        found += violations(part, known, f"{where}.{key}") if known else [f"{where}.{key} is not documented"]
    for number, part in enumerate(value if isinstance(value, list) else []):
        found += violations(part, schema["items"], f"{where}[{number}]")
    return found


def test_events_and_publish(daemon):
    follow = subprocess.Popen(
        [*HOCKET, "events", "--follow", "--json", "--filter", "SERVER_BUSY load>0.5"],
        stdout=subprocess.PIPE,
        text=True,
    )
    with Bus.connect() as bus:
        ready = bus.subscribe("READY")
        while not select.select([follow.stdout], [], [], 1)[0]:  # an event shows that it has subscribed
            bus.publish("SERVER_BUSY", server="early", load=0.8)
        assert hocket("publish", "SERVER_BUSY", "server=s0", "load=0.1").returncode == 0
        assert hocket("publish", "SERVER_BUSY", "server=s1", "load=0.9", "full=true").returncode == 0
        assert hocket("publish", "READY").returncode == 0
        assert ready.wait(10).type == "READY"
    followed = (json.loads(line) for line in follow.stdout)
    first = next(event for event in followed if event["server"] != "early")
    assert {key: first[key] for key in ("type", "server", "load", "full")} == {
        "type": "SERVER_BUSY",
        "server": "s1",
        "load": 0.9,
        "full": True,
    }
    follow.send_signal(signal.SIGINT)
    assert follow.wait(20) == 130
    follow.stdout.close()


def test_events_without_follow_waits_for_one_or_gives_up(daemon):
    silent = hocket("events", "--filter", "NOTHING", "--timeout", "0.2")
    assert (silent.returncode, silent.stdout, silent.stderr) == (1, "", "hocket: no event came within 0.2 s\n")
    wrong = hocket("events", "--filter", "START_IO bytes>many")
    assert wrong.returncode == 1
    assert "'bytes>many'" in wrong.stderr


def test_publish_refuses_hockets_own_types_and_malformed_properties(daemon):
    for name in ("START_IO", "SET_POLICY"):
        with Bus.connect() as bus, pytest.raises(BusError):
            bus.publish(name, request=1)
            bus.list()
    wrong = hocket("publish", "X", "load")
    assert (wrong.returncode, wrong.stderr) == (2, "hocket: 'load' is no property; write KEY=VALUE\n")


def test_subscribers_see_what_passes_and_what_was_decided(daemon):
    with Bus.connect() as watcher:
        seen = watcher.subscribe("application=a")
        with application(Bus.connect()) as app:
            app.send("START_IO", request=1, target="dev:1", file="/f", operation="x", bytes=5)
            app.send("FINISH_IO", request=1, io_ns=7, bytes=5, phase_over=True)
            app.send("BYE")
            types = []
            while not types or types[-1] != "BYE":
                event = seen.wait(10)
                assert event is not None, f"nothing followed {types}"
                types.append(event.type)
        assert types == ["WELCOME", "START_IO", "GRANT_IO", "FINISH_IO", "BYE"]


def test_top_once_shows_what_happened_before_it_came(patient_daemon):
    with application(Bus.connect(), "jacobi-a") as app:
        app.send("START_IO", request=1, target="dev:1", file="/f", operation="x", bytes=5)
        assert app.answer(10).type == "GRANT_IO"
        shown = hocket("top", "--once", "--width", "90")
        assert shown.returncode == 0, shown.stderr
        lane = next(line for line in shown.stdout.splitlines() if "│" in line)
        assert lane.split()[:2] == ["jacobi-a", "writing"]
        told = json.loads(hocket("top", "--json").stdout)
    assert told["applications"][0]["state"] == "io"


def test_ls_without_a_daemon_is_one_line(hocket_dir):
    told = hocket("ls")
    assert (told.returncode, told.stdout) == (1, "")
    assert (
        told.stderr
        == f"hocket: no hocketd listens at {hocket_dir}/hocketd.sock; start one with 'hocket daemon start'\n"
    )


def test_connecting_after_the_daemon_has_gone(daemon):
    bus = Bus.connect()
    daemon.stop()
    with pytest.raises(BusError):
        bus.list()
    with pytest.raises(NoDaemonError):
        Bus.connect()
