"""What a program on another node sees after an open of a file that a forwarded program has closed or synced.

Two hosts share a directory as nodes share one by NFS: each keeps pages and attributes of files until an open, and holds
writes until close or fsync (tests/programs/host_mount.c).
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hosts
import pytest
from checkout import PROGRAMS
from forward_hosts import MOUNT, Shell, forwarding, start_servers
from forward_kit import forwarded_in, wait_until, with_cached_mounts

pytestmark = pytest.mark.timeout(120)

OLD = "".join(f"old {number:04}\n" for number in range(1000))
NEW = "".join(f"new {number:04}\n" for number in range(1000))
HOW = {
    "direct": None,
    "synchronous": (),
    "close-to-open": ("--consistency", "close-to-open"),
    "fuse": ("--by", "fuse"),
    "fuse-cached": ("--by", "fuse"),  # as on a kernel before Linux 6.6
}
CASES = (
    "closes", "closes-a-duplicate-last", "replaces-the-descriptor", "closes-a-range", "closes-from",
    "closes-in-another-thread", "c-stream", "small-buffer", "reopened-stream", "cpp-stream", "scattered", "vectors",
    "asynchronous", "syncs", "syncs-data", "syncs-by-another-descriptor", "syncs-each-write", "stream-syncs", "exits",
    "exits-at-once", "becomes-another-program", "is-killed-after-sync", "child-writes", "child-closes-last",
    "child-of-vfork", "passes-the-descriptor", "copies-a-range", "sends-a-file", "stores-to-a-mapping",
    "renames-the-closed-file", "renames-the-synced-file", "closes-the-renamed-file", "truncates", "truncates-by-name",
    "begins-anew", "appends", "allocates-and-fills",
)  # fmt: skip
WAYS = ("read", "pread", "mapping", "stream", "ifstream", "sendfile", "direct")
FILE = MOUNT / "file"


@pytest.fixture(scope="module")
def hands_over(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("hands-over") / "hands_over"
    command = ["g++", "-std=c++20", "-O1", "-pthread", "-o", program, PROGRAMS / "hands_over.cpp"]
    subprocess.run(command, check=True, timeout=60)
    return program


@dataclass
class Pair:
    """A shell on each host, and the program that writes and reads."""

    one: Shell
    two: Shell
    program: Path

    def begin(self, case: str) -> str:
        """Start the program on host one. Return what it says when it is ready, or has ended."""
        self.one.out("[ -p /tmp/go ] || mkfifo /tmp/go; : >/tmp/said")
        self.one.out(f"{self.program} {case} {FILE} </tmp/go >/tmp/said & exec 9>/tmp/go")
        self.one.run("until [ -s /tmp/said ] || ! kill -0 $! 2>/dev/null; do sleep 0.002; done")
        return self.one.out('printf %s "$(</tmp/said)"')

    def end(self) -> tuple[int, str]:
        self.one.out("exec 9>&-")
        return self.one.run("wait $!")

    def read(self, way: str = "read") -> str:
        return self.two.out(f"{self.program} read {way} {FILE}")


@pytest.fixture(scope="module", params=HOW)
def how(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def pair(how: str, host_client: Path, hands_over: Path, prefix: Path, tmp_path_factory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("pair")
    options = HOW[how]
    used = with_cached_mounts(prefix, directory / "prefix") if how == "fuse-cached" else prefix
    visible = (hands_over.parent, directory, prefix)
    environment = {"HOCKET_PREFIX": str(used)}
    with hosts.Hosts(
        directory, "one", "two", client=host_client, how=("late",), visible=visible, env=environment
    ) as both:
        (both.store / "mount").mkdir()
        if options is not None:
            for host in both:
                start_servers(host, 1)
        pair = Pair(Shell(both["one"], options), Shell(both["two"], options), hands_over)
        yield pair
        last = pair.one.end()
        if options is not None:
            assert forwarded_in(last) > 0
        assert how == "close-to-open" or "were writes that were collected" not in last


def prepared(pair: Pair) -> None:
    """Both hosts have the old file in their caches."""
    pair.two.out(f"rm -f {MOUNT}/*; seq --format='old %04g' 0 999 > {FILE}")
    for shell in (pair.one, pair.two):
        assert shell.out(f"cat {FILE}") == OLD


@pytest.mark.parametrize("case", CASES)
def test_an_open_sees_what_was_closed_or_synced(case: str, pair: Pair):
    prepared(pair)
    assert pair.begin(case) in ("ready", "")
    assert pair.read(WAYS[CASES.index(case) % len(WAYS)]) == NEW
    code, said = pair.end()
    assert code in ((128 + 9,) if case == "is-killed-after-sync" else (0,)), said
    assert pair.read() == NEW


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_reading_sees_it(way: str, pair: Pair):
    for case in ("small-buffer", "syncs"):
        prepared(pair)
        assert pair.read(way) == OLD
        assert pair.begin(case) == "ready"
        assert pair.read(way) == NEW
        assert pair.end() == (0, "")


def test_appends_follow_one_another(pair: Pair):
    """One after the other, each host appends where the other one has ended."""
    prepared(pair)
    lines = []
    for number in range(20):
        shell = (pair.one, pair.two)[number % 2]
        shell.out(f"for i in 1 2 3; do echo 'line {number}.'$i; done >> {FILE}")
        lines += [f"line {number}.{i}\n" for i in (1, 2, 3)]
    for shell in (pair.one, pair.two):
        assert shell.out(f"cat {FILE}") == OLD + "".join(lines)


@pytest.mark.parametrize("kind", ["flock", "lockf", "record", "description"])
def test_what_was_written_under_a_lock_is_seen_by_who_gets_it(kind: str, pair: Pair):
    prepared(pair)
    pair.two.out(f"echo 00000000 > {FILE}")
    count = f"{pair.program} count {kind} {FILE}"
    pair.one.out(f"{count} & {count} &")
    pair.two.out(count)
    pair.two.out(count)
    pair.one.out("wait")
    assert int(pair.read()) == 4 * 50


def test_what_a_killed_program_had_written_is_seen_soon(pair: Pair):
    """It was neither closed nor synced, but it is the end of the process that closes the file."""
    prepared(pair)
    assert pair.begin("is-killed") == ""
    assert pair.end()[0] == 128 + signal.SIGKILL
    wait_until(lambda: pair.read() == NEW, "the write of what had been collected", 5)


def test_a_close_that_is_not_seen_takes_a_moment(pair: Pair, how: str):
    """The tests above would fail if what is collected were not written before a close returns."""
    prepared(pair)
    assert pair.begin("closes-unseen") == "ready"
    if how == "close-to-open":
        assert pair.read() != NEW
    wait_until(lambda: pair.read() == NEW, "the write of what had been collected", 5)
    assert pair.end() == (0, "")


@pytest.mark.parametrize("end", ["closes", "syncs"])
@pytest.mark.parametrize("how", ["direct", "synchronous", "close-to-open", "fuse"], scope="function")
def test_what_the_file_system_refuses_late_is_told(how: str, end: str, start_hosts, hands_over: Path, prefix: Path):
    """A file system such as NFS takes writes that it refuses at a close or sync, which may be an I/O server's."""
    options = HOW[how]
    visible = (hands_over.parent, prefix)
    host = start_hosts("one", how=("late", "small"), visible=visible)["one"]
    assert host.run(["mkdir", MOUNT]).code == 0
    words = [hands_over, f"outgrows-and-{end}", FILE]
    if options is not None:
        start_servers(host, 1)
        words = forwarding(*words, options=options)
    run = host.run(words)
    assert run.code == 0 and run.out in ("write\n", "close\n" if end == "closes" else "fsync\n"), run.out + run.err
