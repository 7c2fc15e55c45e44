"""`hocket forward --consistency close-to-open`: what a program sees of its own writes, and what survives it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from forward_kit import (
    LIMIT_S,
    build,
    forwarded,
    hocket,
    kill_servers_while,
    pids_of_servers,
    start_servers,
    wait_until,
)

pytestmark = pytest.mark.timeout(180)

CASES = (
    "sizes", "accesses", "mappings", "attributes", "streams", "children", "ends", "unseen", "handlers", "jumping",
    "threads", "cancelled", "shared", "many", "large", "two-descriptors",
)  # fmt: skip
LINES = [f"{number:04}" for number in range(1, 201)]
ASKED = ("--consistency", "close-to-open")


@pytest.mark.parametrize("case", CASES)
def test_a_program_sees_its_writes_as_without_hocket(case: str, forward, programs: Path, mount: Path):
    program = [programs / "collected_writes", case]
    direct = subprocess.run([*program, mount / "direct"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (direct.returncode, direct.stdout) == (0, "")
    run = forward(*program, mount / "file", options=ASKED)
    assert (run.code, run.out) == (0, ""), run.err
    assert "of the forwarded calls were writes that were collected" in run.err
    assert "failed with EIO" not in run.err


ALONE = ("sizes", "accesses", "mappings", "attributes", "streams", "unseen", "many", "large")  # no shared offsets


def test_a_program_sees_its_writes_while_servers_are_killed(
    start_forward, start_daemon, programs: Path, mount: Path, prefix: Path
):
    start_daemon()
    start_servers(2, mount, prefix)
    cases = f"for case in {' '.join(ALONE)}; do {programs}/collected_writes $case {mount}/$case || exit; done"
    process = start_forward("sh", "-c", f"for i in $(seq 8); do {cases}; done", options=ASKED)
    killed = kill_servers_while(process, mount, prefix, 0.01)
    run = kit.finish(process, LIMIT_S)
    assert (run.code, run.out) == (0, ""), run.out + run.err
    assert killed > 2 and "were collected first" in run.err


@pytest.fixture
def start_waiting(start_forward, programs: Path, mount: Path) -> Callable[..., subprocess.Popen]:
    """Return a function that starts a program which writes 100 lines, waits, and writes 100 more."""

    def start(*options: str) -> subprocess.Popen:
        script = f"exec 3< {mount.parent}/fifo; {programs}/collected_writes waiting {mount}/file <&3 & "
        script += f"echo $! > {mount.parent}/pid; wait $!"
        os.mkfifo(mount.parent / "fifo")
        process = start_forward("sh", "-c", script, options=(*ASKED, *options))
        process.told = (mount.parent / "fifo").open("w")
        return process

    return start


def await_ready(process: subprocess.Popen) -> None:
    assert process.stdout.readline() in ("ready\n", b"ready\n")


def go_on(process: subprocess.Popen) -> kit.Run:
    process.told.write("\n")
    process.told.close()
    return kit.finish(process, LIMIT_S)


def written(mount: Path) -> list[str]:
    return (mount / "file").read_text().split()


def test_what_a_killed_program_has_written_is_in_the_file(start_waiting, mount: Path):
    process = start_waiting()
    await_ready(process)
    os.kill(int((mount.parent / "pid").read_text()), signal.SIGKILL)
    wait_until(lambda: written(mount) == LINES[:100], "the write of what had been collected")
    assert kit.finish(process, LIMIT_S).code == 128 + signal.SIGKILL


def test_what_is_collected_is_written_after_a_short_time_and_the_descriptor_given_back(
    start_waiting, start_daemon, mount: Path, prefix: Path
):
    start_daemon()
    start_servers(1, mount, prefix)
    (server,) = pids_of_servers().values()

    def is_kept() -> bool:
        with contextlib.suppress(FileNotFoundError):  # a descriptor that was closed meanwhile
            return any(one.readlink() == mount / "file" for one in Path(f"/proc/{server}/fd").iterdir())
        return True

    process = start_waiting()
    await_ready(process)
    wait_until(lambda: written(mount) == LINES[:100], "the write of what had been collected")
    wait_until(lambda: not is_kept(), "the end of the server's descriptor")
    assert go_on(process).code == 0
    assert written(mount) == LINES


@pytest.mark.parametrize("choice", ["direct", "fail"])
def test_what_a_killed_server_had_not_written_is_written_again(
    choice: str, start_waiting, start_daemon, mount: Path, prefix: Path
):
    start_daemon()
    start_servers(2, mount, prefix)
    process = start_waiting("--without-servers", choice)
    await_ready(process)
    for pid in pids_of_servers().values():
        os.kill(pid, signal.SIGKILL)
    if choice == "fail":
        start_servers(1, mount, prefix)
    run = go_on(process)
    assert run.code == 0, run.out + run.err
    assert written(mount) == LINES


def test_what_a_server_had_written_before_it_hung_is_not_written_again(
    start_waiting, start_daemon, mount: Path, prefix: Path
):
    """Another program may have written there since."""
    start_daemon()
    start_servers(1, mount, prefix)
    (server,) = pids_of_servers().values()
    process = start_waiting()
    await_ready(process)
    wait_until(lambda: written(mount) == LINES[:100], "the write of what had been collected")
    kit.stop(server)  # before it gives the descriptor back, which it does a moment later
    with (mount / "file").open("r+") as file:
        file.seek(50)
        file.write("over")
    assert go_on(process).code == 0
    assert written(mount) == [*LINES[:10], "over", *LINES[11:]]


def test_a_server_that_hangs_is_ended_and_nothing_is_lost(start_waiting, start_daemon, mount: Path, prefix: Path):
    start_daemon()
    start_servers(1, mount, prefix)
    process = start_waiting()
    await_ready(process)
    (pid,) = pids_of_servers().values()
    kit.stop(pid)
    run = go_on(process)
    assert run.code == 0, run.out + run.err
    assert written(mount) == LINES


def test_a_server_that_ends_in_order_writes_what_is_collected(start_waiting, start_daemon, mount: Path, prefix: Path):
    start_daemon()
    start_servers(1, mount, prefix)
    process = start_waiting()
    await_ready(process)
    assert hocket("server", "stop", prefix=prefix).returncode == 0
    assert written(mount) == LINES[:100]
    assert go_on(process).code == 0
    assert written(mount) == LINES


FAILS_LATE = """
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) {
  char link[64], path[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, path, sizeof path - 1) < 0 || strstr(path, "/mount/") == NULL)  // the server's own files
    return syscall(SYS_pwrite64, fd, data, bytes, at);
  errno = ENOSPC;
  return -1;
}
ssize_t pwrite64(int, const void*, size_t, off_t) __attribute__((alias("pwrite")));
"""


def test_an_error_is_told_by_the_next_write_by_sync_or_by_close(
    start_forward, start_daemon, programs: Path, mount: Path, prefix: Path, tmp_path: Path, monkeypatch
):
    start_daemon()
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(build(FAILS_LATE, tmp_path / "fails.so", "-shared", "-fPIC")))
        start_servers(1, mount, prefix)
    run = kit.finish(start_forward(programs / "collected_writes", "failing", mount / "file", options=ASKED), LIMIT_S)
    assert (run.code, run.out) == (0, ""), run.err


def test_other_programs_see_a_file_when_it_is_closed(forward, mount: Path):
    write = "dd if=/dev/zero of=$0/f bs=100 count=200 status=none"
    run = forward("sh", "-c", f"for i in $(seq 50); do {write}; wc -c < $0/f; done", mount, options=ASKED)
    assert (run.code, run.out) == (0, "20000\n" * 50), run.err
    assert forwarded(run) == 50 * 200
    assert f"{50 * 199} of the forwarded calls were writes that were collected" in run.err


def test_it_is_asked_for_and_its_words_are_checked(mount: Path, prefix: Path, forward):
    run = forward("dd", "if=/dev/zero", f"of={mount}/f", "bs=10", "count=100", "status=none")
    assert (run.code, forwarded(run)) == (0, 100)
    assert "collected" not in run.err
    done = hocket("forward", "--mount", str(mount), "--consistency", "none", "--", "true", prefix=prefix)
    assert done.returncode == 2
    assert "--consistency" in done.stderr
