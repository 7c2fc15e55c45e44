"""Shared by the tests of programs under `hocket forward`."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest
import runtime_kit as kit
from hocket import io_servers
from hocket.bus import Bus
from hocket.daemon import is_alive
from mount_kit import IN_A_MOUNT_NAMESPACE

LIMIT_S = 60

SQL = "create table t(a); with recursive n(i) as (select 1 union all select i+1 from n where i<2000) " \
    "insert into t select i from n; select sum(a) from t;"  # fmt: skip

# Each makes the file "made" below the mount, from "source" there and "outside".
COMMON = {
    "cat": "cat source source > made",
    "cp": "cp source made",
    "dd": "dd if=source of=made bs=3k status=none",
    "dd-direct": "dd if=/dev/zero of=made bs=64k count=16 oflag=direct status=none",
    "tar": "tar cf made source && tar tf made",
    "sort": "sort -S 1m -T . source -o made",
    "awk": "awk '{print length($0)}' source > made",
    "sed-in-place": "cp source made && sed -i s/e/E/g made",
    "shell": "head -n 500 source > part; while read -r line; do printf '%s\\n' \"$line\"; done < part > made",
    "append": "for i in 1 2 3; do echo $i >> made; done",
    "python": 'python3 -c \'text = open("source").read(); open("made", "w").write(text[::-1])\'',
    "python-mmap": 'cp source made && python3 -c \'import mmap; f = open("made", "r+b"); '
    'm = mmap.mmap(f.fileno(), 0); m[0:4] = b"MMAP"; m.flush(); f.write(b"wr"); f.flush(); '
    'assert m[0:4] == b"wrAP"\'',
    "sqlite": f'sqlite3 base "{SQL}" > made && sqlite3 base "pragma integrity_check" >> made',
    "sqlite-wal": f'sqlite3 base "pragma journal_mode=wal; {SQL}" > made',
    "git": "git init -q r && cd r && cp ../source a && git add a && git -c user.name=n -c user.email=e commit -qm m && "
    "git fsck && git show HEAD:a > ../made",
    "compiler": "echo 'int main(void) { return 5; }' > p.c && cc p.c -o p; ./p || echo $? > made",
    "gzip": "gzip -nc source > z && gunzip -c z > made",
    "rsync": "mkdir from to && cp source from/a && cp source from/b && chmod 640 from/b && touch -d @9 from/a to/gone "
    "&& sed s/9/8/ source > to/a && rsync -a --inplace --no-whole-file --checksum --delete from/ to/ && "
    "ls to > made && stat -c '%a %s' to/* >> made && stat -c %Y to/a >> made && cat to/a to/b >> made && "
    "rsync -ani --checksum --delete from/ to/ >> made",
    "rsync-whole": "mkdir from && cp source from/a && rsync -a --whole-file from/ to/ && cat to/a > made",
    "outside": "cp outside made",
    "to-outside": "cp source outside-copy && cp outside-copy made",
}

# The words before the directory of a tmpfs that is to become read-only. With its device's name, mount(8) does not hand
# on the present options: in a user namespace these name users of the outside, which the kernel refuses.
READ_ONLY = "mount -t tmpfs -o remount,ro none"

CORNERS = (
    "errors", "offsets", "no-name", "locks", "close-all", "children", "handlers", "cancel", "cancel-pipe", "limit",
    "threads", "fork", "many", "direct", "large", "jump", "seccomp", "part", "part-large", "limited",
    "rights", "stack", "mapped", "names", "record-locks",
)  # fmt: skip


def _mounts_are_allowed() -> bool:
    """Return True if this user may mount by FUSE in a mount namespace of its own, whatever hocket does."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
        how = [*IN_A_MOUNT_NAMESPACE, "true"]
        return subprocess.run(how, capture_output=True, timeout=LIMIT_S, check=False).returncode == 0
    except OSError:
        return False


NEEDS_MOUNTS = pytest.mark.skipif(
    not _mounts_are_allowed(), reason="no FUSE mount in a namespace of its own is allowed to this user here"
)


def forwarded_in(said: str) -> int:
    """Return how many calls --check says were forwarded."""
    found = re.search(r"forwarded (\d+) calls", said)
    assert found, said
    return int(found[1])


def forwarded(run: kit.Run) -> int:
    return forwarded_in(run.err)


def with_cached_mounts(prefix: Path, made: Path) -> Path:
    """Make a prefix whose mounts are as on a kernel before Linux 6.6. Return it."""
    helper = "libexec/hocket/hocket-forward-fuse"
    (made / helper).parent.mkdir(parents=True)
    for name in ("bin", "lib"):
        (made / name).symlink_to(prefix / name)
    (made / helper).write_text(f'#!/bin/sh\nexec {prefix / helper} --cached "$@"\n')
    (made / helper).chmod(0o755)
    return made


def hocket(*words: str, prefix: Path) -> subprocess.CompletedProcess:
    environment = os.environ | {"HOCKET_PREFIX": str(prefix)}
    command = [sys.executable, "-m", "hocket.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment, check=False)


def pids_of_servers() -> dict[str, int]:
    with Bus.connect() as bus:
        return {name: one["pid"] for name, one in io_servers.running(bus).items()}


def wait_until(condition: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {limit_s} s"
        time.sleep(0.02)


def start_servers(count: int, mount: Path, prefix: Path, *options: str) -> None:
    done = hocket("server", "start", "-n", str(count), "--dir", str(mount), *options, prefix=prefix)
    assert done.returncode == 0, done.stderr


def build(source: str, target: Path, *options: str) -> Path:
    subprocess.run(["cc", *options, "-o", target, "-xc", "-"], input=source.encode(), check=True, timeout=LIMIT_S)
    return target


def kill_servers_while(process: subprocess.Popen, mount: Path, prefix: Path, pause_s: float, most: float = inf) -> int:
    """Kill the servers one after the other, and start another for each, until the process ends or `most` are killed.

    Return how many were killed.
    """
    killed = 0
    while process.poll() is None and killed < most:
        for pid in pids_of_servers().values():
            time.sleep(pause_s)
            os.kill(pid, signal.SIGKILL)
            killed += 1
            start_servers(1, mount, prefix)
    return killed


def change_servers_while(process: subprocess.Popen, prefix: Path) -> int:
    """Assign other servers to the application "app", one set after the other, until the process ends. Return how often.

    Sometimes it is given none, so that its calls are made directly.
    """
    changes = 0
    while process.poll() is None:
        done = hocket("servers", "assign", "app", ("1", "2", "0", "all", "s2", "s3")[changes % 6], prefix=prefix)
        changes += done.returncode == 0
    return changes


def stop_or_kill_servers_while(
    process: subprocess.Popen, mount: Path, prefix: Path, choice: random.Random, most: int
) -> dict[int, int]:
    """Stop servers for good, or kill them, one after the other, until the process ends or there were `most`.

    A client that waits for a stopped server, or hocketd, kills it; this function waits for that. Another server is
    started for each. Return how often each signal was sent.
    """
    sent = dict.fromkeys((signal.SIGSTOP, signal.SIGKILL), 0)
    while process.poll() is None and sum(sent.values()) < most:
        pid = choice.choice(sorted(pids_of_servers().values()))
        time.sleep(choice.uniform(0, 0.3))
        number = choice.choice(list(sent))
        os.kill(pid, number)
        sent[number] += 1
        wait_until(lambda pid=pid: not is_alive(pid) or process.poll() is not None, "the end of the server")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # one that was stopped when the process ended
        start_servers(1, mount, prefix)
    return sent
