"""Targets named by their mount point."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hocket.bus import Event
from hocket.decisions import collect
from hocket.mounts import mount_points, with_mount_points

pytestmark = pytest.mark.timeout(60)
MOUNTINFO = r"""
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 254:0 /srv /srv/data rw,relatime - ext4 /dev/vda rw
41 27 8:17 / /mnt/long/path rw - xfs /dev/sdb1 rw
42 27 8:17 / /scratch rw - xfs /dev/sdb1 rw
43 27 8:33 /export /with\040space rw - xfs /dev/sdc1 rw
broken line
"""


def test_the_root_of_a_device_and_the_shortest_path_are_chosen():
    assert mount_points(MOUNTINFO) == {"254:0": "/", "8:17": "/scratch", "8:33": "/with space"}


def test_devices_of_this_node_are_named_and_others_keep_their_number(monkeypatch):
    monkeypatch.setattr("hocket.mounts._mount_points", lambda: mount_points(MOUNTINFO))
    text = "'b' waits for 'a' on dev:8:17; not on dev:8:1 or dev:8:171"
    assert with_mount_points(text) == "'b' waits for 'a' on /scratch; not on dev:8:1 or dev:8:171"
    assert with_mount_points(text, socket.gethostname()) == with_mount_points(text)
    assert with_mount_points(text, "another-node") == text


def test_this_file_is_on_a_known_device():
    device = Path("/").stat().st_dev
    assert with_mount_points(f"dev:{os.major(device)}:{os.minor(device)}") == "/"


@pytest.mark.parametrize(("node", "shown"), [(socket.gethostname(), "/scratch"), ("another-node", "dev:8:17")])
def test_decisions_show_it_and_keep_the_number(monkeypatch, node, shown):
    monkeypatch.setattr("hocket.mounts._mount_points", lambda: mount_points(MOUNTINFO))
    waits = {"number": 1, "action": "wait", "decided_for": "b", "because_of": "a", "text": "'b' waits on dev:8:17"}
    (decision,) = collect([Event("HELLO", {}, 1, node), Event("DECISION", waits, 2)]).all
    assert dict(decision.sentences()) == {"in its words": f"'b' waits on {shown}"}
    assert decision.text == "'b' waits on dev:8:17"
