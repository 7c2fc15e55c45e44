"""A servers policy in Python that changes all it can at every event, and what puts it in force again and again.

A change of the policy takes its weights and settings back, and lets it set others at once. So tests see many maps in a
short time; the coordinator would hold the policy back by itself.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from pathlib import Path

from daemon_kit import Daemon
from hocket.bus import Bus, BusError

TEXT = """
NAME = "restless"
KIND = "servers"


def decide(view, event):
    turn = event.time_ns // 10**7
    methods = ("auto", "view", "list")
    weights = [{"weigh": s, "weight": 1 + turn * (3 + 2 * i) % 8} for i, s in enumerate(view.servers)]
    for a in view.applications:
        how = {"aggregators": 1 + turn % (a.processes or 1), "buffer_bytes": 4096 << turn % 12}
        weights.append({"tune": a, "method": methods[turn % 3], **how})
    return weights
"""


def start(start_daemon, directory: Path) -> Daemon:
    """Start a daemon that knows the policy; `set-aside` is in force."""
    path = directory / "restless.py"
    path.write_text(TEXT)
    daemon = start_daemon("--policy-file", path)
    daemon.policy_file = path
    with Bus.connect(daemon.socket) as bus:
        bus.send("SET_POLICY", policy="cost")
        bus.list()
    return daemon


class Restless:
    """Changes weights and settings as long as it is entered, and gives applications these servers in turn."""

    def __init__(self, daemon: Daemon, *assigned: str):
        self.daemon, self.assigned = daemon, assigned or ("all",)
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.change)

    def change(self) -> None:
        with Bus.connect(self.daemon.socket) as bus:
            for servers in itertools.cycle(self.assigned):
                for policy in ("cost+restless", "cost"):
                    bus.send("SET_POLICY", policy=policy)
                    if servers != "all":
                        self.assign(bus, servers)
                    if self.ends.wait(0.1):
                        return

    def assign(self, bus: Bus, servers: str) -> None:
        with contextlib.suppress(BusError):  # an application has ended since
            for one in bus.list().applications:
                bus.send("SET_SERVER", server=servers, action="assign", for_application=one["application"])

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.ends.set()
        self.thread.join()
