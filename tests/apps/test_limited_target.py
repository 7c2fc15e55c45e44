"""The storage target of stated bandwidth: what it limits, how writers share it, and what it leaves alone."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import runtime_kit
from checkout import REPO

PREFIX = Path(os.environ.get("HOCKET_PREFIX", REPO / ".venv")).resolve()
LIBRARY = PREFIX / "lib" / "hocket" / "liblimited_target.so"
BANDWIDTH = 40_000_000
MIB = 1 << 20
LIMIT_S = 40
TRIES_S = 30
TOGETHER_S = 0.02  # starts of concurrent writers differ by less than this

# Prints "ready" and starts at a line on stdin. It writes MIB mebibytes with the given call, then prints start and end.
WRITER = """
import ctypes, os, sys, time
path, call, mib = sys.argv[1], sys.argv[2], int(sys.argv[3])
data = bytes(range(256)) * 4096 * mib
fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
libc = ctypes.CDLL(None)
libc.fdopen.restype, libc.fwrite.restype = ctypes.c_void_p, ctypes.c_size_t
stream = ctypes.c_void_p(libc.fdopen(fd, b"w")) if call == "fwrite" else None
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
        "fwrite": lambda: libc.fwrite(bytes(rest[:1_000_001]), ctypes.c_size_t(1), min(len(rest), 1_000_001), stream),
    }[call]()
if stream:
    libc.fclose(stream)
print(start, time.monotonic())
"""


@pytest.fixture
def target(memory):
    directory = memory / "target"
    directory.mkdir()
    return directory


def environment(target, bandwidth=BANDWIDTH, **more):
    return {
        **os.environ,
        "LD_PRELOAD": str(LIBRARY),
        "HOCKET_LIMIT_DIR": str(target),
        "HOCKET_LIMIT_BYTES_PER_S": str(bandwidth),
        **more,
    }


class Writer:
    def __init__(self, target, path, mib, call="pwrite", **more):
        self.path, self.mib = path, mib
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, path, call, str(mib)],
            env=environment(target, **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "ready\n", f"writer of {path} did not start"

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def times(self):
        """Return start and end by the machine's monotonic clock."""
        out, _ = self.process.communicate(timeout=LIMIT_S)
        assert self.path.read_bytes() == bytes(range(256)) * 4096 * self.mib, f"{self.path} holds other bytes"
        return tuple(map(float, out.split()))


def run(*writers):
    for writer in writers:
        writer.go()
    return [writer.times() for writer in writers]


def tries(run_once):
    """Yield the results of `run_once` for TRIES_S seconds: a busy machine lengthens some runs."""
    deadline = time.monotonic() + TRIES_S
    while time.monotonic() < deadline:
        yield run_once()


def takes(expected_s, rel, start_writers):
    """Check that writers which start together take the expected time in one of the tries, and never less."""
    seconds = []
    for times in tries(lambda: run(*start_writers())):
        starts, ends = zip(*times, strict=True)
        assert max(ends) - min(starts) >= max(expected_s) * (1 - rel), times
        seconds.append([end - start for start, end in times])
        if max(starts) - min(starts) < TOGETHER_S and seconds[-1] == pytest.approx(expected_s, rel=rel):
            return
    raise AssertionError(f"expected were {expected_s} s, in {TRIES_S} s it took {seconds}")


@pytest.mark.parametrize("call", ["write", "pwrite", "writev", "pwritev", "fwrite"])
def test_alone_gets_the_stated_bandwidth(target, call):
    takes([16 * MIB / BANDWIDTH], 0.05, lambda: [Writer(target, target / "a", 16, call)])


def test_two_writers_share_it_evenly(target):
    takes([24 * MIB / BANDWIDTH] * 2, 0.2, lambda: [Writer(target, target / name, 12) for name in "ab"])


def test_a_short_write_beside_a_long_one_shares_only_while_both_write(target):
    expected_s = [32 * MIB / BANDWIDTH, 16 * MIB / BANDWIDTH]
    takes(expected_s, 0.1, lambda: [Writer(target, target / "long", 24), Writer(target, target / "short", 8)])


def test_a_process_has_a_rate_of_its_own_until_the_device_is_the_limit(target):
    slow, quick = ({"HOCKET_LIMIT_PROCESS_BYTES_PER_S": str(rate)} for rate in (BANDWIDTH // 4, BANDWIDTH * 2))
    alone_s = 6 * MIB / (BANDWIDTH / 4)
    takes([alone_s], 0.05, lambda: [Writer(target, target / "a", 6, **slow)])
    takes([alone_s] * 2, 0.1, lambda: [Writer(target, target / name, 6, **slow) for name in "ab"])
    takes([24 * MIB / BANDWIDTH] * 2, 0.2, lambda: [Writer(target, target / name, 12, **quick) for name in "ab"])


def test_other_directories_are_not_limited(target, memory):
    beside = memory / "target-of-another-name"  # shares its first letters with the target
    beside.mkdir()
    limited_s = 16 * MIB / BANDWIDTH
    for times in tries(lambda: run(Writer(target, target / "a", 16), Writer(target, beside / "b", 16))):
        limited, free = (end - start for start, end in times)
        assert limited >= limited_s * 0.95
        if free < limited_s / 2:
            return
    raise AssertionError(f"beside the target it took {free} s, in the target {limited} s")


def test_a_killed_writer_does_not_block_the_other(target):
    victim, other = Writer(target, target / "victim", 30), Writer(target, target / "other", 24)
    other.go()
    runtime_kit.wait_until(lambda: other.path.stat().st_size > 0, LIMIT_S, "the other writes")
    victim.go()
    runtime_kit.wait_until(lambda: victim.path.stat().st_size >= 4 * MIB, LIMIT_S, "the victim is amid its write")
    victim.process.send_signal(signal.SIGKILL)
    victim.process.communicate(timeout=LIMIT_S)
    dead = time.monotonic()
    written = victim.path.stat().st_size
    begin, end = other.times()
    assert max(dead, end) - begin >= 0.9 * (written + 24 * MIB) / BANDWIDTH


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
        ({"HOCKET_LIMIT_PROCESS_BYTES_PER_S": ""}, "HOCKET_LIMIT_PROCESS_BYTES_PER_S ''"),
        ({"HOCKET_LIMIT_DIR": "/nonesuch"}, "'/nonesuch': not a directory"),
    ],
)
def test_bad_settings_end_the_program_with_one_line(target, settings, words):
    done = subprocess.run(
        ["true"], env={**environment(target), **settings}, timeout=LIMIT_S, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and words in done.stderr
