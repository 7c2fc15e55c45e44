"""Targets named by their mount point."""

from __future__ import annotations

import os
import socket

import pytest
from hocket.bus import Event
from hocket.decisions import collect
from hocket.mounts import is_mounted, mount_points, target_of, with_mount_points

pytestmark = pytest.mark.timeout(60)
NODE = "8c3871fd2d164c03"
TARGETS = f"""dev:254:0@{NODE}\t254:0\t/
dev:8:17@{NODE}\t8:17\t/scratch
nfs:nas:7b1b\t0:40\t/home
zfs:tank@{NODE}\t0:51\t/tank/long/path
zfs:tank@{NODE}\t0:52\t/tank/b
big\t0:53\t/lustre
"""


@pytest.fixture
def mounted(monkeypatch):
    monkeypatch.setattr("hocket.mounts._mount_points", lambda: mount_points(TARGETS))


def test_the_shortest_path_is_chosen():
    assert mount_points(TARGETS)[f"zfs:tank@{NODE}"] == "/tank/b"
    assert mount_points(TARGETS)["dev:0:51"] == "/tank/long/path"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            f"'b' waits for 'a' on dev:8:17@{NODE}; not on dev:8:1@{NODE}",
            f"'b' waits for 'a' on /scratch; not on dev:8:1@{NODE}",
        ),
        ("nfs:nas:7b1b: 5.0 MB/s with 1 server", "/home: 5.0 MB/s with 1 server"),
        ("on nfs:nas:7b1b.", "on /home."),
        ("on nfs:nas:7b1b2, nfs:nas:7b1b:1 and xnfs:nas:7b1b", "on nfs:nas:7b1b2, nfs:nas:7b1b:1 and xnfs:nas:7b1b"),
        ("a big file: it is on 'big'", "a big file: it is on 'big'"),
    ],
)
def test_mounted_targets_are_shown_by_path(mounted, text, shown):
    assert with_mount_points(text) == shown
    assert with_mount_points(text, "another-node") == shown


def test_device_numbers_of_old_traces_are_those_of_their_node(mounted):
    text = "'b' waits for 'a' on dev:8:17; not on dev:8:1 or dev:8:171"
    assert with_mount_points(text) == "'b' waits for 'a' on /scratch; not on dev:8:1 or dev:8:171"
    assert with_mount_points(text, socket.gethostname()) == with_mount_points(text)
    assert with_mount_points(text, "another-node") == text


def test_hocketd_names_targets(tmp_path, monkeypatch):
    device = tmp_path.stat().st_dev
    name = target_of(str(tmp_path))
    assert name == target_of(f"dev:{os.major(device)}:{os.minor(device)}") and is_mounted(name)
    monkeypatch.chdir(tmp_path)
    assert target_of(".") == name
    assert target_of("pool") == "pool"
    assert target_of("nfs:nas:/home") == "nfs:nas:/home", "a name, although it has slashes"
    assert with_mount_points(target_of("/")) == "/"


def test_names_of_the_operator_come_first(tmp_path, monkeypatch):
    where = next(str(path) for path in (tmp_path, *tmp_path.parents) if path.is_mount())
    monkeypatch.setenv("HOCKET_DIR", str(tmp_path))
    (tmp_path / "target-names").write_text(f"{where}=big")
    monkeypatch.delenv("HOCKET_SOCKET", raising=False)
    assert target_of(str(tmp_path)) == "big"
    monkeypatch.setenv("HOCKET_TARGET_NAMES", f"{where}=bigger")
    assert target_of(str(tmp_path)) == "bigger"


@pytest.mark.parametrize(("node", "shown"), [(socket.gethostname(), "/scratch"), ("another-node", "dev:8:17")])
def test_decisions_show_it_and_keep_the_number(mounted, node, shown):
    waits = {"number": 1, "action": "wait", "decided_for": "b", "because_of": "a", "text": "'b' waits on dev:8:17"}
    (decision,) = collect([Event("HELLO", {}, 1, node), Event("DECISION", waits, 2)]).all
    assert dict(decision.sentences()) == {"in its words": f"'b' waits on {shown}"}
    assert decision.text == "'b' waits on dev:8:17"
