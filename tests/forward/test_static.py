"""Static programs under `hocket forward`, whose data go through a mount that they alone see."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import runtime_kit as kit
from forward_kit import (
    CORNERS,
    LIMIT_S,
    NEEDS_MOUNTS,
    SQL,
    change_servers_while,
    forwarded,
    kill_servers_while,
    pids_of_servers,
    start_servers,
    wait_until,
)
from processes import descendants

pytestmark = [pytest.mark.timeout(180), NEEDS_MOUNTS]

BUSYBOX = "/bin/busybox"
SERVES_MOUNT = "hocket-forward-fuse"


def mount_processes() -> set[int]:
    """Return the processes that serve mounts of this test. Those that have ended are reaped."""
    found = set()
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            if not SERVES_MOUNT.startswith(Path(f"/proc/{pid}/comm").read_text().strip()):
                continue
            found.add(pid)
            if os.waitpid(pid, os.WNOHANG) != (0, 0):
                found.remove(pid)
    return found


@pytest.fixture(autouse=True)
def no_mount_left(hocket_dir: Path, mount: Path):
    yield
    # The last close of thousands of files without a name takes its time.
    kit.wait_until(lambda: not mount_processes(), LIMIT_S, "the processes of mounts end")
    assert str(mount) not in Path("/proc/self/mounts").read_text()


@pytest.mark.parametrize("corner", CORNERS)
def test_corners_are_as_the_kernel_has_them(corner: str, forward, mounting: Path, static_programs: Path, mount: Path):
    program = [static_programs / "forward_corners", corner]
    run = forward(*program, mount / "file", hocket=mounting, limit_s=150)
    assert (run.code, run.out) == (0, ""), run.err
    assert "statically linked" not in run.err
    if corner not in ("cancel-pipe",):
        assert forwarded(run) > 0
    assert "failed with EIO" not in run.err


@pytest.mark.parametrize("seed", range(2))
def test_random_calls_are_as_a_model_says(seed: int, forward, mounting: Path, static_programs: Path, mount: Path):
    run = forward(
        static_programs / "random_calls", str(seed), "4000", mount, options=("--servers", "2"), hocket=mounting
    )
    assert (run.code, run.out) == (0, "ok 4000\n"), run.out + run.err
    assert forwarded(run) > 1600


def test_random_calls_survive_servers_that_are_killed(
    start_forward, start_daemon, static_programs: Path, mount: Path, prefix: Path
):
    start_daemon()
    start_servers(2, mount, prefix)
    process = start_forward(static_programs / "random_calls", "3", "20000", mount)
    killed = kill_servers_while(process, mount, prefix, 0.05, 12)
    run = kit.finish(process, LIMIT_S)
    assert (run.code, run.out) == (0, "ok 20000\n"), run.out + run.err
    assert killed > 2 and forwarded(run) > 100


def test_random_calls_survive_changes_of_the_servers(
    start_forward, start_daemon, static_programs: Path, mount: Path, prefix: Path
):
    start_daemon()
    start_servers(3, mount, prefix)
    process = start_forward(static_programs / "random_calls", "4", "20000", mount, options=("--name", "app"))
    changes = change_servers_while(process, prefix)
    run = kit.finish(process, LIMIT_S)
    assert (run.code, run.out) == (0, "ok 20000\n"), run.out + run.err
    assert changes > 3 and forwarded(run) > 100 and "calls found no server" not in run.err


# Each makes the file "made" in the present directory, from "source" there.
COMMON = {
    "cat": "cat source source > made",
    "cp": "cp source made",
    "dd": "dd if=source of=made bs=3k",
    "tar": "mkdir d && cp source d/a && ln d/a d/b && ln -s a d/c && tar cf made d && rm -r d && tar xf made",
    "sort": "sort source > made",
    "sed-in-place": "cp source made && sed -i s/e/E/g made",
    "append": "for i in 1 2 3; do echo $i >> made; done",
    "gzip": "gzip -c source > z && gunzip -c z > made",
    "patch": "head -n 50 source > x && mv x source && cp source x && echo more >> x && (diff -u source x > p || true) "
    "&& cp source made && patch made p",
    "find": "mkdir -p a/b/c && touch a/b/x a/y && find a | sort > made && rm -r a",
    "dynamic child": 'python3 -c \'open("made", "w").write(open("source").read()[::-1])\'',
    "sqlite": f'/usr/bin/sqlite3 base "pragma journal_mode=wal; {SQL}" > made',
    "compiler": "echo 'int main(void) { return 5; }' > p.c && cc p.c -o p; ./p || echo $? > made",
}


@pytest.mark.parametrize("name", COMMON)
def test_what_common_programs_make_is_the_same(name: str, forward, mounting: Path, mount: Path, tmp_path: Path):
    text = "".join(f"line {i} of the source, {i * i}\n" for i in range(9000))
    shell = [BUSYBOX, "sh", "-ec", f'cd "$0"; {COMMON[name]}']
    direct = tmp_path / "direct"
    for directory in (direct, mount):
        directory.mkdir(exist_ok=True)
        (directory / "source").write_text(text)
    wanted = subprocess.run([*shell, direct], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert wanted.returncode == 0, wanted.stderr
    run = forward(*shell, mount, hocket=mounting)
    assert run.code == 0, run.err
    if name != "tar":  # times
        assert (mount / "made").read_bytes() == (direct / "made").read_bytes()
    listed = [sorted(path.relative_to(one) for path in one.rglob("*")) for one in (direct, mount)]
    assert listed[0] == listed[1]
    assert forwarded(run) > 0


def test_a_dynamic_program_by_its_own_mount(forward, mount: Path):
    run = forward("sh", "-c", f"echo a > {mount}/a; cat {mount}/a", options=("--by", "fuse"))
    assert (run.code, run.out, forwarded(run)) == (0, "a\n", 3), run.err


def test_a_run_with_closed_standard_files(prefix: Path, hocket_dir: Path, mount: Path):
    words = f"{sys.executable} -m hocket.cli forward --counts {mount}.json --mount {mount}"
    command = f"{words} -- {BUSYBOX} sh -c 'echo a > {mount}/a' <&- >&- 2>&-"
    environment = os.environ | {"HOCKET_PREFIX": str(prefix)}
    done = subprocess.run(["sh", "-c", command], timeout=LIMIT_S, env=environment, check=False)
    assert (done.returncode, (mount / "a").read_text()) == (0, "a\n")
    assert json.loads(Path(f"{mount}.json").read_text())["calls"] == 1


def test_bytes_are_seen_at_once_inside_and_outside(start_forward, mounting: Path, mount: Path):
    until = f"while [ ! -s {mount}/{{0}} ]; do :; done"
    script = f"exec 5>> {mount}/a; echo one >&5; {until.format('b')}; cat {mount}/b; echo three >&5; cat {mount}/a"
    process = start_forward(BUSYBOX, "sh", "-c", script, hocket=mounting)
    wait_until(lambda: (mount / "a").exists() and (mount / "a").read_text() == "one\n", "the write inside")
    with (mount / "a").open("a") as file:
        file.write("two\n")
    (mount / "b").write_text("outside\n")
    run = kit.finish(process, LIMIT_S)
    assert (run.code, run.out) == (0, "outside\none\ntwo\nthree\n"), run.err
    assert (mount / "a").read_text() == "one\ntwo\nthree\n"


LOCKS = """
import fcntl, os, sys
f = open(sys.argv[1], "w")
try: {call}
except BlockingIOError: print("held")
else: print("free")
"""


@pytest.mark.parametrize(
    "call", ["fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)", "fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)"]
)
def test_locks_hold_inside_and_outside(call: str, forward, start_forward, mount: Path):
    script = ["-c", LOCKS.format(call=call), mount / "a"]
    with (mount / "a").open("w") as file:
        assert forward(sys.executable, *script, options=("--by", "fuse")).out == "free\n"
        exec(call, {"f": file, "fcntl": __import__("fcntl")})
        assert forward(sys.executable, *script, options=("--by", "fuse")).out == "held\n"
    holds = f"import fcntl, time; f = open('{mount}/a', 'w'); {call}; open('{mount}/b', 'w'); time.sleep(60)"
    holding = start_forward(sys.executable, "-c", holds, options=("--by", "fuse"))
    wait_until((mount / "b").exists, "the lock inside")
    assert subprocess.run([sys.executable, *script], capture_output=True, text=True, check=True).stdout == "held\n"
    holding.terminate()
    kit.finish(holding, LIMIT_S)
    kit.wait_until(lambda: not mount_processes(), 10, "the process of the mount ends")
    assert subprocess.run([sys.executable, *script], capture_output=True, text=True, check=True).stdout == "free\n"


def test_nobody_else_sees_the_mount_and_it_ends_with_the_last_child(start_forward, mount: Path):
    until = f"while [ ! -e {mount}/go ]; do sleep 0.05; done"
    process = start_forward(
        BUSYBOX, "sh", "-c", f"({until}; echo later > {mount}/b) > /dev/null 2>&1 & echo a > {mount}/a; exit 5"
    )
    assert kit.finish(process, LIMIT_S).code == 5
    assert str(mount) not in Path("/proc/self/mounts").read_text()
    assert len(mount_processes()) == 1
    (mount / "go").touch()
    wait_until(lambda: (mount / "b").exists() and (mount / "b").read_text() == "later\n", "the child's write")


def test_a_killed_run_leaves_no_mount(start_forward, mount: Path):
    process = start_forward(BUSYBOX, "sh", "-c", f"echo a > {mount}/a; echo $$ > {mount}/pid; sleep 60")
    wait_until(lambda: (mount / "pid").exists() and (mount / "pid").read_text().endswith("\n"), "the write")
    pid = int((mount / "pid").read_text())
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        os.kill(int(child), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    assert kit.finish(process, LIMIT_S).code == -signal.SIGKILL


def test_calls_fail_if_the_process_of_the_mount_is_killed(start_forward, mount: Path):
    writes = f"exec 5> {mount}/a; echo a >&5; until ! echo b >&5; do sleep 0.05; done; echo c > {mount}/c || exit 9"
    process = start_forward(BUSYBOX, "sh", "-c", writes)
    wait_until(lambda: (mount / "a").exists() and (mount / "a").read_text().startswith("a\nb\n"), "the writes")
    for pid in mount_processes():
        os.kill(pid, signal.SIGKILL)
    begun = time.monotonic()
    run = kit.finish(process, LIMIT_S)
    assert run.code != 0 and time.monotonic() - begun < 10
    assert "Software caused connection abort" in run.err or "Transport endpoint is not connected" in run.err


def test_a_server_that_hangs_is_ended_and_nothing_is_lost(start_forward, start_daemon, mount: Path, prefix: Path):
    start_daemon()
    start_servers(1, mount, prefix)
    script = f"cd {mount}; echo begun > a; while [ ! -e go ]; do sleep 0.05; done; echo one > b; echo two >> b"
    process = start_forward(BUSYBOX, "sh", "-c", script)
    wait_until(lambda: (mount / "a").exists() and (mount / "a").read_text() == "begun\n", "the first write")
    (pid,) = pids_of_servers().values()
    kit.stop(pid)
    (mount / "go").touch()
    run = kit.finish(process, LIMIT_S)
    assert (run.code, (mount / "b").read_text()) == (0, "one\ntwo\n"), run.err


def test_more_files_than_descriptors(forward, mount: Path):
    """The process of the mount keeps at most a quarter of its descriptors for files that are not open."""
    script = "cd $0; for i in $(seq 700); do mkdir -p d$((i % 9)); echo $i > d$((i % 9))/$i; done; " \
        "ls -lR > /dev/null; cat d*/* | sort -n | tail -n 1; mv d0 e; rm d1/*; ls e d1 | wc -l; rm -r *"  # fmt: skip
    run = forward(BUSYBOX, "sh", "-ec", script, mount, within=("prlimit", "--nofile=256:256"))
    assert (run.code, run.out) == (0, "700\n80\n"), run.err
    assert not list(mount.iterdir())


def test_it_runs_directly_and_says_so_where_no_mount_is_allowed(forward, mount: Path):
    hides = 'mount --bind /dev/null /dev/fuse && exec "$@"'
    run = forward(BUSYBOX, "sh", "-c", f"echo a > {mount}/a", within=("unshare", "-m", "sh", "-c", hides, "sh"))
    assert (run.code, (mount / "a").read_text(), forwarded(run)) == (0, "a\n", 0)
    said = "/bin/busybox is statically linked, and FUSE cannot forward it (no FUSE mount is allowed: Invalid argument)"
    assert run.err.startswith(f"hocket: {said}, so its own data go directly\n")
    hocket = ("--by", "fuse")
    run = forward("cp", "/etc/passwd", mount, within=("unshare", "-m", "sh", "-c", hides, "sh"), options=hocket)
    assert run.code == 0 and forwarded(run) > 0
    assert "FUSE cannot forward" in run.err


@pytest.fixture
def short_directory():
    """A directory whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="hocket-test-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


def test_it_is_allowed_to_a_user_who_is_not_root(
    start_forward, static_programs: Path, tmp_path: Path, short_directory: Path
):
    """In a user namespace, whose user is the program's own."""
    mount = short_directory / "mount"
    mount.mkdir()
    how = {"options": ("--mount", str(mount)), "within": ()}
    if os.geteuid() == 0:  # the device may be root's only, so the user gets another one of its own
        device = tmp_path / "fuse"
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(10, 229))
        device.chmod(0o666)
        for path in (short_directory, mount):
            os.chown(path, 65534, 65534)
        static_programs.chmod(0o755)
        script = (
            f"mount --bind {device} /dev/fuse && export HOCKET_DIR={short_directory} HOME={short_directory} && "
            'exec setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all "$@"'
        )
        how["within"] = ("unshare", "-m", "sh", "-c", script, "sh")
    look = f"echo a > {mount}/a; id -u; id -g; stat -c %u {mount}/a; cat /proc/self/status | grep CapEff"
    process = start_forward(BUSYBOX, "sh", "-c", look, **how)
    run = kit.finish(process, LIMIT_S)
    user = 65534 if how["within"] else os.geteuid()
    group = 65534 if how["within"] else os.getegid()
    assert (run.code, run.out) == (0, f"{user}\n{group}\n{user}\nCapEff:\t0000000000000000\n"), run.err
    assert forwarded(run) > 0 and "statically linked" not in run.err
    for corner in ("rights", "no-name", "names", "record-locks", "mapped"):
        process = start_forward(static_programs / "forward_corners", corner, mount / f"file-{corner}", **how)
        run = kit.finish(process, LIMIT_S)
        assert (run.code, run.out) == (0, ""), run.err
        assert forwarded(run) > 0
    secret = short_directory / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)
    os.link(secret, mount / "secret")
    run = kit.finish(start_forward(BUSYBOX, "cat", mount / "secret", **how), LIMIT_S)
    assert (run.code, run.out) == ((1, "") if how["within"] else (0, "root's")), run.err
