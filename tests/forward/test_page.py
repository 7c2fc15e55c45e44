"""The page of a run is written in Python and read in C."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from forward_kit import start_servers
from hocket import forward_page, forwarding, io_servers
from hocket.bus import Bus

CALLS = 20000
LIMIT_S = 120


def test_both_sides_agree_where_the_last_fields_are():
    assert (forward_page.FIRST_STATIC_AT, forward_page.DEVICE_AT, forward_page.PAGE_BYTES) == (20248, 20312, 20328)


def change_servers_for_ever(page: forward_page.ForwardPage, sockets: list[str]) -> None:
    for number in itertools.count():
        chosen = (sockets, sockets[:1], [], sockets[1:])[number % 4]
        page.set_servers(chosen, direct=not chosen)


@pytest.mark.timeout(2 * LIMIT_S)
def test_calls_find_their_servers_while_the_writer_is_stopped_anywhere(
    start_daemon, programs: Path, mount: Path, prefix: Path, tmp_path: Path, monkeypatch
):
    """The writer may get no processor in the middle of a change. Calls that then found no server failed."""
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))
    start_daemon()
    start_servers(2, mount, prefix)
    with Bus.connect() as bus:
        sockets = [forwarding.forward_socket(one["addresses"]) for one in io_servers.running(bus).values()]
    page = forward_page.ForwardPage(tmp_path / "page", str(mount), "app", 1, fails=True)
    page.set_servers(sockets)
    writer = multiprocessing.get_context("fork").Process(target=change_servers_for_ever, args=(page, sockets))
    writer.start()
    environment = os.environ | forwarding.preloading(page.path)
    program = subprocess.Popen([programs / "random_calls", "5", str(CALLS), mount], env=environment)
    choice = random.Random(5)
    try:
        deadline = time.monotonic() + LIMIT_S
        while program.poll() is None and time.monotonic() < deadline:
            for number in (signal.SIGSTOP, signal.SIGCONT):
                os.kill(writer.pid, number)
                time.sleep(choice.uniform(0, 0.02))
        assert program.returncode == 0, "random_calls did not end well"
        counts = page.counts()
        assert (counts["no_server"], counts["lost"]) == (0, 0)
        assert counts["calls"] > CALLS / 10 and counts["unserved"] > 0
    finally:
        program.kill()
        program.wait()
        writer.kill()
        writer.join()
