"""Processes end together with what they have started, and who ends them may come too late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from hocket import process_group
from hocket.process_group import end_group, run_limited


def shell(script: str) -> subprocess.Popen:
    return subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True)


def test_what_a_process_has_started_ends_with_it(monkeypatch):
    monkeypatch.setattr(process_group, "STOP_LIMIT_S", 0.5)
    process = shell("trap '' TERM; (trap '' TERM; while :; do sleep 0.1; done) & echo started; wait; exit 3")
    assert process.stdout.readline() == "started\n"
    process.terminate()
    end_group(process)
    assert process.stdout.read() == ""  # nobody holds the other end
    process.stdout.close()


def test_ending_a_process_that_has_ended_does_nothing():
    process = shell("exit 0")
    process.wait()
    end_group(process)
    assert process.returncode == 0
    process.stdout.close()


def test_an_interruption_after_the_end_of_a_command_is_told_as_an_interruption(monkeypatch):
    def end_and_interrupt(self: subprocess.Popen, input: None = None, timeout: float | None = None) -> None:
        monkeypatch.undo()
        self.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", end_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_limited([sys.executable, "-c", "pass"], dict(os.environ), 10)


def test_a_command_that_exceeds_its_time_limit_has_no_exit_code():
    assert run_limited(["sleep", "60"], dict(os.environ), 0.1) == (None, "", "")
    assert run_limited(["sh", "-c", f"kill -{signal.SIGTERM} $$"], dict(os.environ), 10)[0] == -signal.SIGTERM
