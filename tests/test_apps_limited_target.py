"""The storage target of stated bandwidth: what it limits, how it is shared, and what it leaves alone."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mpi_launch import REPO

PREFIX = Path(os.environ.get("HOCKET_PREFIX", REPO / ".venv")).resolve()
LIBRARY = PREFIX / "lib" / "hocket" / "liblimited_target.so"
BANDWIDTH = 40_000_000
MIB = 1 << 20
LIMIT_S = 40
TRIES = 5

# Says "ready", starts at a line on stdin, writes MIB megabytes with the call named, and prints the seconds it took.
WRITER = """
import os, sys, time
path, call, mib = sys.argv[1], sys.argv[2], int(sys.argv[3])
data = bytes(range(256)) * 4096 * mib
fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
print("ready", flush=True)
sys.stdin.readline()
start, done = time.monotonic(), 0
while done < len(data):
    rest = memoryview(data)[done:]
    done += {
        "write": lambda: os.write(fd, rest),
        "pwrite": lambda: os.pwrite(fd, rest, done),
        "writev": lambda: os.writev(fd, [rest[:100_000], rest[100_000:]]),
        "pwritev": lambda: os.pwritev(fd, [rest[:100_000], rest[100_000:]], done),
    }[call]()
seconds = time.monotonic() - start
os.fsync(fd)
print(seconds)
"""


@pytest.fixture
def target(tmp_path):
    directory = tmp_path / "target"
    directory.mkdir()
    return directory


def environment(target, bandwidth=BANDWIDTH):
    return {
        **os.environ,
        "LD_PRELOAD": str(LIBRARY),
        "HOCKET_LIMIT_DIR": str(target),
        "HOCKET_LIMIT_BYTES_PER_S": str(bandwidth),
    }


class Writer:
    def __init__(self, target, path, mib, call="pwrite"):
        self.path, self.mib = path, mib
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, path, call, str(mib)],
            env=environment(target),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "ready\n", f"writer of {path} did not start"

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def seconds(self):
        out, _ = self.process.communicate(timeout=LIMIT_S)
        assert self.path.read_bytes() == bytes(range(256)) * 4096 * self.mib, f"{self.path} holds other bytes"
        return float(out)


def run(*writers):
    for writer in writers:
        writer.go()
    return [writer.seconds() for writer in writers]


def takes(expected_s, rel, start_writers):
    """One of some tries takes as long as expected, for a busy machine lengthens some; none is faster than the limit."""
    seconds = []
    for _ in range(TRIES):
        seconds.append(run(*start_writers()))
        assert max(seconds[-1]) >= max(expected_s) * (1 - rel), seconds
        if seconds[-1] == pytest.approx(expected_s, rel=rel):
            return
    raise AssertionError(f"expected were {expected_s} s, {TRIES} times it took {seconds}")


@pytest.mark.parametrize("call", ["write", "pwrite", "writev", "pwritev"])
def test_alone_gets_the_stated_bandwidth(target, call):
    takes([16 * MIB / BANDWIDTH], 0.05, lambda: [Writer(target, target / "a", 16, call)])


def test_two_writers_share_it_evenly(target):
    takes([24 * MIB / BANDWIDTH] * 2, 0.2, lambda: [Writer(target, target / name, 12) for name in "ab"])


def test_a_short_write_beside_a_long_one_shares_only_while_both_write(target):
    expected_s = [32 * MIB / BANDWIDTH, 16 * MIB / BANDWIDTH]
    takes(expected_s, 0.1, lambda: [Writer(target, target / "long", 24), Writer(target, target / "short", 8)])


def test_other_directories_are_not_limited(target, tmp_path):
    beside = tmp_path / "target-of-another-name"  # begins with the same letters
    beside.mkdir()
    limited_s = 16 * MIB / BANDWIDTH
    for _ in range(TRIES):
        limited, free = run(Writer(target, target / "a", 16), Writer(target, beside / "b", 16))
        assert limited >= limited_s * 0.95
        if free < limited_s / 2:
            return
    raise AssertionError(f"beside the target it took {free} s, in the target {limited} s")


def test_a_killed_writer_does_not_block_the_other(target):
    victim, other = Writer(target, target / "victim", 60), Writer(target, target / "other", 24)
    victim.go()
    other.go()
    while (target / "victim").stat().st_size < 4 * MIB:  # both are in the middle of their writes
        time.sleep(0.01)
    victim.process.send_signal(signal.SIGKILL)
    victim.process.communicate(timeout=LIMIT_S)
    written = (target / "victim").stat().st_size
    assert other.seconds() >= 0.9 * (written + 24 * MIB) / BANDWIDTH


def test_a_clock_from_before_a_restart_is_not_believed(target):
    (target / ".device-clock").write_bytes((1 << 62).to_bytes(8, "little"))
    run(Writer(target, target / "a", 8))  # would wait for years


def test_errors_of_the_real_write_are_handed_on(target):
    script = """
import errno, os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDONLY)
for attempt in (lambda: os.write(fd, b"x"), lambda: os.pwrite(fd, b"x", 0), lambda: os.writev(fd, [b"x"])):
    try:
        attempt()
    except OSError as error:
        assert error.errno == errno.EBADF, error
    else:
        raise AssertionError("a file that is open for reading was written")
"""
    done = subprocess.run(
        [sys.executable, "-c", script, target / "a"], env=environment(target), timeout=LIMIT_S, capture_output=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"HOCKET_LIMIT_BYTES_PER_S": "fast"}, "HOCKET_LIMIT_BYTES_PER_S 'fast'"),
        ({"HOCKET_LIMIT_BYTES_PER_S": "1"}, "1000000 or more"),
        ({"HOCKET_LIMIT_DIR": "/nonesuch"}, "'/nonesuch': not a directory"),
    ],
)
def test_bad_settings_end_the_program_with_one_line(target, settings, words):
    done = subprocess.run(
        ["true"], env={**environment(target), **settings}, timeout=LIMIT_S, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and words in done.stderr
