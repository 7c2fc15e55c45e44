"""Programs under `hocket forward`: what they write is right, goes through servers, and survives the servers."""

from __future__ import annotations

import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from forward_kit import (
    COMMON,
    CORNERS,
    LIMIT_S,
    READ_ONLY,
    build,
    forwarded,
    hocket,
    pids_of_servers,
    start_servers,
    wait_until,
)
from hocket.daemon import is_alive
from hocket.forward_page import PAGE_BYTES, ForwardPage
from mount_kit import IN_A_MOUNT_NAMESPACE

pytestmark = pytest.mark.timeout(180)

CONSISTENCIES = pytest.mark.parametrize("consistency", ["synchronous", "close-to-open"])


@CONSISTENCIES
@pytest.mark.parametrize("name", COMMON)
def test_what_common_programs_make_is_the_same(
    name: str, consistency: str, forward: Callable[..., kit.Run], mount: Path, tmp_path: Path
):
    text = "".join(f"line {i} of the source, {i * i}\n" for i in range(9000))
    (tmp_path / "outside").write_text(text)
    shell = [
        "sh",
        "-ec",
        f'cd "$0" && ln -s {tmp_path}/outside . && ln -s {tmp_path}/copy outside-copy; {COMMON[name]}',
    ]
    (tmp_path / "copy").write_text("")
    direct = tmp_path / "direct"
    for directory in (direct, mount):
        directory.mkdir(exist_ok=True)
        (directory / "source").write_text(text)
    wanted = subprocess.run([*shell, direct], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert wanted.returncode == 0, wanted.stderr
    (tmp_path / "copy").write_text("")
    run = forward(*shell, mount, options=("--consistency", consistency))
    assert (run.code, run.out) == (0, wanted.stdout), run.err
    assert (mount / "made").read_bytes() == (direct / "made").read_bytes()
    assert forwarded(run) > 0


def test_fio_verifies_what_it_wrote(forward: Callable[..., kit.Run], mount: Path):
    options = [
        "--name=j",
        f"--directory={mount}",
        "--size=4m",
        "--rw=randrw",
        "--verify=crc32c",
        "--do_verify=1",
        "--verify_state_save=0",
    ]
    for engine in ("sync", "psync", "vsync", "pvsync2"):
        run = forward("fio", *options, f"--ioengine={engine}", "--bsrange=512-64k", "--numjobs=2", "--fallocate=none")
        assert run.code == 0, run.out + run.err
        assert forwarded(run) > 200, engine


@CONSISTENCIES
@pytest.mark.parametrize("corner", CORNERS)
def test_corners_are_as_the_kernel_has_them(corner: str, consistency: str, forward, programs: Path, mount: Path):
    program = [programs / "forward_corners", corner]
    direct = subprocess.run([*program, mount / "direct"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (direct.returncode, direct.stdout) == (0, "")
    run = forward(*program, mount / "file", options=("--consistency", consistency))
    assert (run.code, run.out) == (0, ""), run.err
    if corner not in ("cancel-pipe", "limit"):
        assert forwarded(run) > 0
    assert "failed with EIO" not in run.err
    assert ("the size of files is limited" in run.err) == (corner == "limit")
    if corner == "jump":
        assert "no free connection" not in run.err


def test_the_number_of_servers_changes_while_a_program_runs(
    start_forward, start_daemon, mount: Path, prefix: Path, hocket_dir: Path
):
    """Eight processes use as many servers as are assigned, from their next calls on."""
    start_daemon()
    start_servers(4, mount, prefix)
    script = "for i in 1 2 3 4 5 6 7 8; do (while [ ! -e stop ]; do echo $i >> out-$i; sleep 0.01; done) & done; wait"
    process = start_forward("sh", "-c", f"cd {mount}; {script}", options=("--name", "app", "--servers", "1"))

    def users() -> int:
        """Return how many servers have connections of the program's processes."""
        listed = subprocess.run(["ss", "-xH"], capture_output=True, text=True, check=True).stdout
        return len({word for word in listed.split() if word.startswith(str(hocket_dir)) and word.endswith(".forward")})

    wait_until(lambda: (mount / "out-8").exists(), "the first write of the last process")
    wait_until(lambda: users() == 1, "the use of one server")
    assert hocket("servers", "assign", "app", "4", prefix=prefix).returncode == 0
    wait_until(lambda: users() == 4, "the use of four servers")
    assert hocket("servers", "assign", "app", "2", prefix=prefix).returncode == 0
    wait_until(lambda: users() == 2, "the use of two servers")
    (mount / "stop").touch()
    run = kit.finish(process, LIMIT_S)
    assert run.code == 0, run.err
    for number in range(1, 9):
        assert set((mount / f"out-{number}").read_text().split()) == {str(number)}


@pytest.mark.parametrize(
    ("options", "servers", "calls"),
    [
        ((), 4, [1 + 16, 2 + 32, 4 + 64, 8 + 128]),
        (("--group", "2"), 4, [1 + 2, 4 + 8, 16 + 32, 64 + 128]),
        (("--group", "2"), 2, [1 + 2 + 16 + 32, 4 + 8 + 64 + 128]),
        (("--group", "4"), 4, [0, 0, 1 + 2 + 4 + 8, 16 + 32 + 64 + 128]),
    ],
)
def test_processes_of_a_group_use_the_same_server(
    options: tuple[str, ...], servers: int, calls: list[int], forward, start_daemon, mount: Path, prefix: Path
):
    """Eight processes in a row make 1, 2, 4 … calls, so that the calls of a server say which processes used it."""
    start_daemon()
    start_servers(servers, mount, prefix)
    write = "for i in $(seq $1); do echo $i; done > $0/$1"
    run = forward("sh", "-c", f"for n in 1 2 4 8 16 32 64 128; do sh -c '{write}' {mount} $n; done", options=options)
    assert (run.code, forwarded(run)) == (0, 255), run.err

    def calls_of_servers() -> list[int]:
        listed = json.loads(hocket("servers", "--json", prefix=prefix).stdout)["servers"]
        return sorted(one["forwarded"] for one in listed)

    wait_until(lambda: sum(calls_of_servers()) >= 255, "the servers' reports")
    assert calls_of_servers() == calls


def test_a_server_that_hangs_is_ended_and_nothing_is_lost(start_forward, start_daemon, mount: Path, prefix: Path):
    start_daemon()
    start_servers(1, mount, prefix)
    wait = "while [ ! -e go ]; do sleep 0.05; done"
    script = f"cd {mount}; echo begun > a; {wait}; echo one >> a; echo two >> a"
    process = start_forward("sh", "-c", script)
    wait_until(lambda: (mount / "a").exists() and (mount / "a").read_text() == "begun\n", "the first write")
    (pid,) = pids_of_servers().values()
    kit.stop(pid)
    (mount / "go").touch()
    run = kit.finish(process, LIMIT_S)
    assert run.code == 0, run.err
    assert (mount / "a").read_text() == "begun\none\ntwo\n"


WRITES = (
    "import os, sys; f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); os.write(f, b'x'); sys.stdin.readline(); "
    "os.write(f, b'y')"
)


@pytest.mark.parametrize(("choice", "code"), [("direct", 0), ("fail", 1)])
def test_without_servers_calls_are_direct_or_fail_as_the_user_chose(
    choice: str, code: int, start_forward, start_daemon, mount: Path, prefix: Path
):
    start_daemon()
    start_servers(1, mount, prefix)
    script = f'{sys.executable} -c "{WRITES}" {mount}/a < {mount}/../fifo'
    os.mkfifo(mount.parent / "fifo")
    process = start_forward("sh", "-c", script, options=("--without-servers", choice))
    with (mount.parent / "fifo").open("w") as end:
        wait_until(lambda: (mount / "a").exists() and (mount / "a").read_bytes() == b"x", "the first write")
        (pid,) = pids_of_servers().values()
        os.kill(pid, signal.SIGKILL)
        end.write("go\n")
    run = kit.finish(process, LIMIT_S)
    assert run.code == code, run.err
    assert ("Input/output error" in run.err) == (choice == "fail")
    assert (mount / "a").read_bytes() == (b"xy" if choice == "direct" else b"x")


def test_the_last_run_ends_the_servers(start_forward, mount: Path):
    """A run goes on through servers that another one has started, when that one has ended."""
    until = f"while [ ! -e {mount}/{{0}} ]; do sleep 0.05; done"
    first = start_forward("sh", "-c", f"echo a > {mount}/first; {until.format('end')}")
    wait_until((mount / "first").exists, "the first run's write")
    writes = f"for i in $(seq 20); do echo $i >> {mount}/second || exit; {until.format('go')}; done"
    second = start_forward("sh", "-c", writes, options=("--without-servers", "fail"))
    wait_until((mount / "second").exists, "the second run's write")
    (mount / "end").touch()
    assert kit.finish(first, LIMIT_S).code == 0
    (mount / "go").touch()
    run = kit.finish(second, LIMIT_S)
    assert (run.code, forwarded(run)) == (0, 20), run.err
    assert not pids_of_servers()


def test_servers_of_a_killed_run_end_with_the_next_one(start_forward, forward, mount: Path, hocket_dir: Path):
    killed = start_forward("sh", "-c", f"echo a > {mount}/a; sleep 1")
    wait_until((mount / "a").exists, "the write")
    killed.kill()
    killed.wait()
    assert pids_of_servers()
    assert list(hocket_dir.glob("forward-*"))
    assert forwarded(forward("sh", "-c", f"echo a > {mount}/a")) == 1
    assert not pids_of_servers()
    assert not list(hocket_dir.glob("forward-*"))


def test_servers_end_with_the_run_although_hocketd_was_killed(start_forward, start_daemon, mount: Path):
    daemon = start_daemon()
    until = f"while [ ! -e {mount}/go ]; do sleep 0.05; done"
    process = start_forward("sh", "-c", f"echo a > {mount}/a; {until}; echo b >> {mount}/a")
    wait_until((mount / "a").exists, "the first write")
    (server,) = pids_of_servers().values()
    daemon.kill()
    (mount / "go").touch()
    run = kit.finish(process, LIMIT_S)
    assert (run.code, forwarded(run), (mount / "a").read_text()) == (0, 2, "a\nb\n"), run.err
    assert not is_alive(server)


DIES_AFTER_A_CALL = """
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
ssize_t pwritev2(int fd, const struct iovec* parts, int count, off_t at, int flags) {
  syscall(SYS_pwritev2, fd, parts, count, at, 0, flags);
  return raise(SIGKILL);
}
ssize_t pwritev64v2(int, const struct iovec*, int, off64_t, int) __attribute__((alias("pwritev2")));
ssize_t copy_file_range(int from, off64_t* from_at, int fd, off64_t* at, size_t bytes, unsigned flags) {
  syscall(SYS_copy_file_range, from, from_at, fd, at, bytes, flags);
  return raise(SIGKILL);
}
"""


@pytest.mark.parametrize("corner", ["append-at", "append-flag", "append-before", "copy-from"])
def test_a_call_is_made_once_although_its_server_dies_after_it(
    corner: str, start_forward, start_daemon, programs: Path, mount: Path, prefix: Path, tmp_path: Path, monkeypatch
):
    start_daemon()
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(build(DIES_AFTER_A_CALL, tmp_path / "dies.so", "-shared", "-fPIC")))
        start_servers(1, mount, prefix)
    run = kit.finish(start_forward("sh", "-c", f"cd {mount} && {programs}/forward_corners {corner} file"), LIMIT_S)
    assert (run.code, run.out) == (0, ""), run.err
    assert "calls failed with EIO" in run.err


IS_SLOW = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
ssize_t pwritev2(int fd, const struct iovec* parts, int count, off_t at, int flags) {
  sleep(12);
  return syscall(SYS_pwritev2, fd, parts, count, at, 0, flags);
}
ssize_t pwritev64v2(int, const struct iovec*, int, off64_t, int) __attribute__((alias("pwritev2")));
"""


def test_a_program_that_closes_the_connection_of_a_slow_call_does_not_hang(
    start_forward, start_daemon, programs: Path, mount: Path, prefix: Path, tmp_path: Path, monkeypatch
):
    start_daemon()
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(build(IS_SLOW, tmp_path / "slow.so", "-shared", "-fPIC")))
        start_servers(1, mount, prefix)
    before = pids_of_servers()
    corner = f"ulimit -n 1024; {programs}/forward_corners close-slow {mount}/file"
    run = kit.finish(start_forward("sh", "-c", corner), LIMIT_S)
    assert (run.code, run.out) == (0, ""), run.err
    assert pids_of_servers() == before


def test_a_program_that_was_killed_writes_no_more(start_forward, start_daemon, mount: Path, prefix: Path):
    """Who has awaited its end may rely on that, although the server gets to the call only later."""
    start_daemon()
    start_servers(1, mount, prefix)
    writes = f"import os; f = os.open('{mount}/a', os.O_WRONLY | os.O_CREAT); os.write(f, b'1'); print(flush=True); "
    shell = f"{sys.executable} -c \"{writes} input(); os.write(f, b'2')\" & echo $! > {mount}/pid; wait $!"
    os.mkfifo(mount.parent / "fifo")
    process = start_forward("sh", "-c", f"exec 3< {mount.parent}/fifo; {shell.replace(' & ', ' <&3 & ')}")
    with (mount.parent / "fifo").open("w") as end:
        wait_until(lambda: (mount / "a").exists() and (mount / "a").read_bytes() == b"1", "the first write")
        (server,) = pids_of_servers().values()
        kit.stop(server)
        end.write("go\n")
        end.flush()
        time.sleep(1)  # the request waits in the server's queue
        os.kill(int((mount / "pid").read_text()), signal.SIGKILL)
        assert kit.finish(process, LIMIT_S).code == 128 + signal.SIGKILL
    (mount / "a").write_bytes(b"")
    os.kill(server, signal.SIGCONT)
    done = start_forward("sh", "-c", f"echo b > {mount}/b")
    assert kit.finish(done, LIMIT_S).code == 0
    assert (mount / "a").read_bytes() == b""


def test_servers_are_not_forwarded_themselves(forward, mount: Path, prefix: Path):
    """A server that a forwarded program starts would wait for itself."""
    start = f"{sys.executable} -m hocket.cli server start -n 2 --dir {mount}"
    run = forward("sh", "-ec", f"{start}; for i in 1 2 3 4 5 6; do sh -c 'echo $0 > {mount}/$0' $i; done")
    assert (run.code, forwarded(run)) == (0, 6), run.err


def test_a_mount_of_any_name(forward, mount: Path):
    for name in (b"a b", "ü%41".encode(), b"line\nbreak"):
        directory = mount / os.fsdecode(name)
        directory.mkdir()
        run = forward("sh", "-c", 'echo a > "$0/f"', str(directory), options=("--mount", str(directory)))
        assert (run.code, forwarded(run)) == (0, 1), run.err


def test_a_mount_whose_name_is_not_utf8(forward, mount: Path):
    directory = mount / os.fsdecode(b"\xff")
    directory.mkdir()
    run = forward("sh", "-c", 'echo a > "$0/f"', str(directory), options=("--mount", str(directory)))
    assert (run.code, (directory / "f").read_text()) == (0, "a\n")
    assert "servers cannot serve a directory whose name is not UTF-8; the program runs directly" in run.err


def test_a_run_with_closed_standard_files(prefix: Path, hocket_dir: Path, mount: Path):
    command = f"{sys.executable} -m hocket.cli forward --check --mount {mount} -- sh -c 'echo a > {mount}/a'"
    environment = os.environ | {"HOCKET_PREFIX": str(prefix)}
    done = subprocess.run(["sh", "-c", f"{command} <&- >&- 2>&-"], timeout=LIMIT_S, env=environment, check=False)
    assert (done.returncode, (mount / "a").read_text()) == (0, "a\n")


def test_what_a_server_cannot_copy_goes_directly_and_the_rest_through_it(forward, mount: Path):
    program = (
        "import os, sys; f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); p = os.open('/dev/zero', 0)\n"
        "try: os.sendfile(f, p, 0, 9)\n"
        "except OSError: pass\n"
        "for i in range(9): os.write(f, b'a')"
    )
    run = forward(sys.executable, "-c", program, mount / "a")
    assert (run.code, forwarded(run)) == (0, 9), run.err


WRITES_ARGUMENT = """
#include <stdio.h>
int main(int count, char** words) { fputs("text", fopen(words[count - 1], "w")); return 0; }
"""


def test_a_static_program_runs_directly_if_the_library_is_asked_for(forward, mount: Path, tmp_path: Path):
    program = build(WRITES_ARGUMENT, tmp_path / "static", "-static")
    run = forward(program, mount / "a", options=("--by", "preload"))
    assert (run.code, forwarded(run), (mount / "a").read_text()) == (0, 0, "text")
    said = f"hocket: {program} is statically linked, so its own data go directly; those of its children do not\n"
    assert run.err.startswith(said)


def test_a_program_with_address_sanitizer(forward, mount: Path, tmp_path: Path):
    run = forward(build(WRITES_ARGUMENT, tmp_path / "checked", "-fsanitize=address"), mount / "a")
    assert (run.code, forwarded(run), (mount / "a").read_text()) == (0, 1, "text"), run.err


JUMPING_CLOCK = """
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec* now) {
  static long calls;
  return *now = (struct timespec){1000 * ++calls, 0}, 0;
}
"""


def test_a_tool_that_replaces_the_time_ends_no_server(start_forward, start_daemon, mount: Path, prefix: Path, tmp_path):
    start_daemon()
    start_servers(1, mount, prefix)
    before = pids_of_servers()
    tool = build(JUMPING_CLOCK, tmp_path / "clock.so", "-shared", "-fPIC")
    script = f"export LD_PRELOAD=$LD_PRELOAD:{tool}; for i in 1 2 3; do sh -c 'echo $0 > {mount}/$0' $i; done"
    run = kit.finish(start_forward("sh", "-c", script), LIMIT_S)
    assert (run.code, forwarded(run)) == (0, 3), run.err
    assert pids_of_servers() == before


def test_the_page_has_its_storage(tmp_path: Path):
    """A page that needs more storage later, of a file system that is full by then, would end programs by SIGBUS."""
    page = ForwardPage(tmp_path / "page", "/prefix", "name", 1, False)
    about = page.path.stat()
    assert about.st_blocks * 512 >= about.st_size == PAGE_BYTES


def test_a_server_without_free_descriptors_leaves_the_calls_to_the_programs(
    start_forward, start_daemon, mount: Path, prefix: Path
):
    start_daemon()
    start_servers(1, mount, prefix)
    until = f"while [ ! -e {mount}/go ]; do :; done"
    new = f"for i in 1 2 3; do sh -c 'echo c > {mount}/$0' $i; done"
    process = start_forward("sh", "-c", f"exec > {mount}/a; echo a; (echo a; {until}; echo b) && {new}")
    wait_until(lambda: (mount / "a").exists() and (mount / "a").read_bytes() == b"a\na\n", "both writes")
    (pid,) = pids_of_servers().values()
    used = {int(one.name) for one in Path(f"/proc/{pid}/fd").iterdir()}
    most = next(number for number in itertools.count() if number not in used)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))
    (mount / "go").touch()
    begun = time.monotonic()
    run = kit.finish(process, LIMIT_S)
    assert (run.code, (mount / "a").read_text()) == (0, "a\na\nb\n"), run.err
    assert time.monotonic() - begun < 5, "each process has waited for the server"


FILLS = """
import errno, os, sys
f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
try:
    while True: os.write(f, b"a" * 65536)
except OSError as error: print(errno.errorcode[error.errno], os.lseek(f, 0, os.SEEK_CUR))
os.ftruncate(f, 4096)
print(os.pwrite(f, b"b", 0), os.pread(f, 2, 0))
"""


@pytest.mark.parametrize("by", ["preload", "fuse"])
def test_a_file_system_that_is_full(by: str, forward, mount: Path):
    """The error and what was written before are those of the kernel, and calls that need no room are made."""
    fresh = f'mount -t tmpfs -o size=1000k none {mount} && exec "$@"'
    within = (*IN_A_MOUNT_NAMESPACE, "sh", "-c", fresh, "sh")
    program = [sys.executable, "-c", FILLS, str(mount / "a")]
    direct = subprocess.run([*within, *program], capture_output=True, text=True, check=True, timeout=LIMIT_S)
    assert direct.stdout.startswith("ENOSPC 1")
    run = forward(*program, options=("--by", by), within=within)
    assert (run.code, run.out) == (0, direct.stdout), run.err
    assert forwarded(run) > 15


@pytest.mark.parametrize("by", ["preload", "fuse"])
def test_a_file_system_that_is_read_only_and_then_gone(by: str, forward, mount: Path, tmp_path: Path):
    """What the kernel refuses is refused, and open files of a file system without a name go on."""
    fresh = f'mount -t tmpfs none {mount} && echo old > {mount}/a && {READ_ONLY} {mount} && exec "$@"'
    within = (*IN_A_MOUNT_NAMESPACE, "sh", "-c", fresh, "sh")
    script = f"cat {mount}/a; echo new > {mount}/a || echo refused; exec 5< {mount}/a; umount -l {mount}; cat <&5"
    run = forward("sh", "-c", script, options=("--by", by), within=within)
    assert run.out == "old\nrefused\nold\n", run.err
    assert "Read-only file system" in run.err


def test_a_server_has_no_rights_that_it_does_not_need(start_daemon, mount: Path, prefix: Path):
    start_daemon()
    start_servers(1, mount, prefix)
    (pid,) = pids_of_servers().values()
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    about = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    opening = 0b1110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
    assert about["NoNewPrivs"] == "1"
    assert int(about["CapEff"], 16) & ~opening == int(about["CapPrm"], 16) & ~opening == int(about["CapInh"], 16) == 0
    if os.geteuid() == 0:  # others may not change the bounding set, and get nothing of it
        assert int(about["CapBnd"], 16) == 0


def test_two_programs_write_the_same_file(start_forward, mount: Path):
    loop = "for i in $(seq 200); do echo {0} >> {1}/common; done"
    both = [start_forward("sh", "-c", loop.format(name, mount)) for name in ("left", "right")]
    for process in both:
        assert kit.finish(process, LIMIT_S).code == 0
    lines = (mount / "common").read_text().split()
    assert sorted(lines) == ["left"] * 200 + ["right"] * 200


STRIPES = (
    "import os, sys\n"
    "f, mine = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), int(sys.argv[2])\n"
    "for i in range(mine, 4000, 2):\n"
    "    os.lseek(f, 100 * i, 0)\n"
    "    for j in range(10): os.write(f, b'%09d\\n' % (10 * i + j))\n"
    "os.close(f)\n"
)


@CONSISTENCIES
def test_two_programs_write_parts_of_the_same_file(consistency: str, start_forward, mount: Path):
    """Each has servers of its own run; neither writes over the other's parts."""
    options = ("--consistency", consistency, "--servers", "2")
    both = [start_forward(sys.executable, "-c", STRIPES, mount / "f", mine, options=options) for mine in (0, 1)]
    for process in both:
        run = kit.finish(process, LIMIT_S)
        assert (run.code, forwarded(run)) == (0, 20000), run.err
    assert (mount / "f").read_text().split() == [f"{number:09}" for number in range(40000)]


def test_the_edge_of_the_prefix(forward, mount: Path, tmp_path: Path):
    """Symbolic links and ".." are resolved: what counts is where a file is."""
    beside = tmp_path / "mount-beside"
    beside.mkdir()
    (mount / "in").symlink_to(beside / "file")
    (beside / "out").symlink_to(mount / "file")
    run = forward("sh", "-ec", f"echo a > {mount}/../mount-beside/b; echo c > {mount}/in; echo d > {beside}/e")
    assert (run.code, forwarded(run)) == (0, 0), run.err
    run = forward("sh", "-ec", f"echo a > {beside}/../mount/b; echo c > {beside}/out")
    assert (run.code, forwarded(run)) == (0, 2), run.err
    run = forward("sh", "-ec", f"exec 5> {mount}/f; echo a >&5; mv {mount}/f {beside}/f; echo b >&5; cat {beside}/f")
    assert (run.code, run.out) == (0, "a\nb\n"), run.err
    run = forward("sh", "-ec", f"exec 5> {beside}/g; echo a >&5; mv {beside}/g {mount}/g; echo b >&5; cat {mount}/g")
    assert (run.code, run.out) == (0, "a\nb\n"), run.err
    (beside / "directory").mkdir()
    moves = f"cd {beside}/directory; echo a > h; mv {beside}/directory {mount}/d; echo b >> h; cat {mount}/d/h"
    run = forward("sh", "-ec", moves)
    assert (run.code, run.out, forwarded(run)) == (0, "a\nb\n", 3), run.err  # the append, and two reads by cat


def test_it_says_what_is_wrong(forward, mount: Path, prefix: Path, hocket_dir: Path):
    nothing = forward("/nonexistent/program")
    assert (nothing.code, nothing.err) == (
        127,
        "hocket: /nonexistent/program: there is no such program; is it in PATH?\n",
    )
    for words, said in (
        (("--mount", "/nonexistent", "--", "true"), "--mount /nonexistent: there is no such directory"),
        (("--mount", "", "--", "true"), "--mount : there is no such directory"),
        (
            ("--mount", "/tmp", "--counts", "/nonexistent/counts", "--", "touch", "/nonexistent-too"),
            "--counts /nonexistent/counts: No such file or directory; give a file that can be written",
        ),
        (("--mount", str(mount), "--servers", "0", "--", "true"), "--servers 0: give 1 to 64"),
        (("--mount", str(mount), "--group", "-1", "--", "true"), "--group -1: give 1 to 1048576"),
        (("--mount", str(mount)), "no command given; write 'hocket forward --mount DIR -- ./program'"),
    ):
        done = hocket("forward", *words, prefix=prefix)
        assert (done.returncode, done.stderr) == (2, f"hocket: {said}\n")


def test_its_exit_is_that_of_the_program_and_it_leaves_nothing(forward, mount: Path, hocket_dir: Path):
    assert forward("sh", "-c", f"echo a > {mount}/a; exit 7").code == 7
    assert forward("sh", "-c", "kill -TERM $$").code == -signal.SIGTERM
    assert not pids_of_servers()
    assert not list(hocket_dir.glob("forward-*"))
    assert not list((hocket_dir / "servers").glob("*.forward"))
