"""hocket policy, with a stand-in for the daemon and with the real one."""

from __future__ import annotations

import json
import os

import pytest
from hocket.bus import VERSION, Bus
from hocket.cli import main
from hocket.mounts import target_of
from stand_in_hocketd import StandIn

pytestmark = pytest.mark.timeout(30)
POLICIES = "interfere\taccess\tnobody waits\nfair\tsharing\tidle cores in equal parts\n"


@pytest.fixture
def agent(hocket_dir):
    agent = StandIn(hocket_dir / "hocketd.sock")
    yield agent
    agent.kill()


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Return a function that makes a hocketd which prints a given text."""

    def make(text: str, code: int = 0) -> None:
        program = tmp_path / "bin" / "hocketd"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\ncat <<'.'\n{text}.\nexit {code}\n")
        program.chmod(0o755)
        monkeypatch.setenv("HOCKET_PREFIX", str(tmp_path))

    return make


def test_set_changes_and_tells(agent, capsys):
    assert main(["policy", "set", "fcfs+io-aware"]) == 0
    assert {"v": VERSION, "type": "SET_POLICY", "policy": "fcfs+io-aware"} in agent.received
    assert capsys.readouterr().err == (
        "hocket: the policy is fcfs+io-aware now, for all applications of this daemon; it was fcfs\n"
    )
    assert main(["policy", "show"]) == 0
    assert main(["policy", "show", "--json"]) == 0
    shown, as_json = capsys.readouterr().out.split("\n", 1)
    expected = {"policy": "fcfs+io-aware", "metric": "", "targets": {}, "applications": {}}
    assert (shown, json.loads(as_json)) == ("fcfs+io-aware", expected)


def test_show_says_which_policy_holds_for_whom(agent, capsys):
    agent.daemon["target_policies"] = "dev:8:1=fcfs\ndev:8:2=cost?"
    agent.applications = [
        {"app": 1, "application": "a", "policy": "fcfs"},
        {"app": 2, "application": "b", "policy": "interfere"},
    ]
    assert main(["policy", "show"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "fcfs",
        "target dev:8:1: fcfs, for all applications",
        "target dev:8:2: cost, unless an application switches",
        "application b: interfere",
    ]
    assert main(["policy", "show", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["targets"] == {
        "dev:8:1": {"policy": "fcfs", "allow": False},
        "dev:8:2": {"policy": "cost", "allow": True},
    }
    assert told["applications"] == {"a": "fcfs", "b": "interfere"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fcfs", "--allow"], "--allow needs --target"),
        (["--app", "a", "--metric", "io-time"], "--app and --target take the name of a policy"),
        (["fcfs", "--target", "t", "--metric", "io-time"], "--app and --target take the name of a policy"),
    ],
)
def test_what_holds_for_all_is_not_set_for_one(agent, capsys, words, told):
    assert main(["policy", "set", *words]) == 2
    assert told in capsys.readouterr().err
    assert not [event for event in agent.received if event["type"] == "SET_POLICY"]


def test_a_target_is_a_path_on_its_file_system(agent, capsys, tmp_path):
    name = target_of(tmp_path)
    agent.daemon["target_policies"] = f"{name}=fcfs\npool=fcfs"
    assert main(["policy", "set", "fcfs", "--target", str(tmp_path)]) == 0
    assert [one["target"] for one in agent.received if one["type"] == "SET_POLICY"] == [name]
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and f"({name}) is fcfs now, for all applications" in told
    assert main(["policy", "set", "fcfs", "--target", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == (
        f"hocket: target '{tmp_path}/none': No such file or directory; give a path on its file system, or its name\n"
    )
    agent.applications = [{"app": 1, "application": "a", "target": "pool"}]
    for target, unknown in (("pool", False), ("puddle", True)):
        agent.daemon["target_policies"] = f"{target}=fcfs"
        assert main(["policy", "set", "fcfs", "--target", target]) == 0
        assert (f"no application uses a target '{target}' now" in capsys.readouterr().err) == unknown


def test_a_metric_is_set_with_a_policy_or_alone(agent, capsys):
    agent.daemon["metric"] = "cpu-time"
    assert main(["policy", "set", "dynamic", "--metric", "io-time"]) == 0
    assert {"v": VERSION, "type": "SET_POLICY", "policy": "dynamic", "metric": "io-time"} in agent.received
    assert main(["policy", "set", "--metric", "max(end)"]) == 0
    assert {"v": VERSION, "type": "SET_POLICY", "policy": "", "metric": "max(end)"} in agent.received
    assert capsys.readouterr().err.splitlines() == [
        "hocket: the policy is dynamic now, for all applications of this daemon; it was fcfs",
        "hocket: the metric is io-time now, for all applications of this daemon; it was cpu-time",
        "hocket: the metric is max(end) now, for all applications of this daemon; it was io-time",
    ]
    assert main(["policy", "show"]) == 0
    assert capsys.readouterr().out == "dynamic\nmetric: max(end)\n"
    assert main(["policy", "set", "--metric", "BAD"]) == 2
    assert capsys.readouterr().err == "hocket: unknown metric 'BAD'\n"


def test_set_without_anything_is_a_wrong_call(agent, capsys):
    assert main(["policy", "set"]) == 2
    assert "give the names of policies, or --metric M" in capsys.readouterr().err


def test_set_to_what_it_is_says_nothing(agent, capsys):
    assert main(["policy", "set", "fcfs"]) == 0
    assert capsys.readouterr().err == ""
    assert "SET_POLICY" not in [keys["type"] for keys in agent.received]


def test_a_refusal_is_one_line_with_the_reason(agent, capsys):
    assert main(["policy", "set", "BAD"]) == 2
    assert capsys.readouterr().err == "hocket: unknown policy 'BAD'\n"


def test_ls_shows_what_hocketd_prints(stand_in, capsys):
    stand_in(POLICIES)
    assert main(["policy", "ls"]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["interfere", "access"],
        ["fair", "sharing"],
    ]
    assert main(["policy", "ls", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[1] == {
        "name": "fair",
        "kind": "sharing",
        "summary": "idle cores in equal parts",
    }


@pytest.mark.parametrize(("text", "code"), [("", 0), ("fcfs access\n", 0), (POLICIES, 2)])
def test_a_hocketd_that_does_not_list_them_is_one_line(stand_in, capsys, text, code):
    stand_in(text, code)
    assert main(["policy", "ls"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_installed_hocketd_lists_all_kinds(prefix, monkeypatch, capsys):
    monkeypatch.setenv("HOCKET_PREFIX", os.fspath(prefix))
    assert main(["policy", "ls", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {one["kind"] for one in told} == {"access", "interference", "sharing", "servers"}
    assert {"fcfs", "interfere", "phase-shift", "period-coupling", "fair", "speedup", "io-aware", "predictive"} <= {
        one["name"] for one in told
    }
    assert all(one["summary"] for one in told)


def test_the_daemon_takes_combinations_and_refuses_others(daemon, capsys):
    assert main(["policy", "set", "fcfs+predictive"]) == 0
    assert main(["policy", "show"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "fcfs+predictive"
    assert main(["policy", "set", "fair+predictive"]) == 2
    refused = capsys.readouterr().err
    assert len(refused.splitlines()) == 1
    assert "predictive" in refused
    assert main(["policy", "show"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "fcfs+predictive"


def test_the_daemon_takes_a_policy_for_one_application_or_target(daemon, capsys):
    with Bus.connect() as application:
        application.send("HELLO", job="job", application_asked="a", program="/bin/a", mpi="mpich", processes=2)
        application.list()
        assert main(["policy", "set", "--app", "a", "none"]) == 0
        assert main(["policy", "set", "--target", "dev:8:1", "fcfs"]) == 0
        assert capsys.readouterr().err.splitlines()[:2] == [
            "hocket: the policy for a is interfere now",
            "hocket: the policy for dev:8:1 is fcfs now, for all applications",
        ]
        assert main(["policy", "show", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["targets"] == {"dev:8:1": {"policy": "fcfs", "allow": False}}
        assert told["applications"] == {"a": "interfere"}
        assert main(["policy", "set", "--target", "dev:8:1", "default"]) == 0
        assert "the policy for dev:8:1 is cost now" in capsys.readouterr().err
        assert main(["policy", "set", "--app", "a", "phase-shift"]) == 2
        assert "decides about cores" in capsys.readouterr().err
        assert main(["policy", "set", "--app", "b", "none"]) == 2
        assert "no application 'b' is running" in capsys.readouterr().err
