"""`hocket forward` on a file system that is full, read-only, gone, or fails, and with servers that are not there."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import runtime_kit as kit
from forward_kit import LIMIT_S, READ_ONLY, build, forwarded, pids_of_servers, start_servers
from hocket.forward_page import ForwardPage
from mount_kit import IN_A_MOUNT_NAMESPACE

pytestmark = pytest.mark.timeout(180)
CONSISTENCIES = pytest.mark.parametrize("consistency", ["synchronous", "close-to-open"])


@pytest.fixture
def forward_on(mount: Path, prefix: Path, hocket_dir: Path) -> Callable[..., kit.Run]:
    """Return a function that runs a program under `hocket forward` on a new tmpfs with these options of mount."""

    def run(options: str, consistency: str, *program: str | Path, before: str = "") -> kit.Run:
        words = ["forward", "--check", "--mount", str(mount), "--consistency", consistency, "--", *map(str, program)]
        script = f'mount -t tmpfs -o {options} none {mount} && {before or "true"} && exec "$@"'
        command = [*IN_A_MOUNT_NAMESPACE, "sh", "-c", script, "sh"]
        if subprocess.run([*command, "true"], capture_output=True, timeout=20, check=False).returncode != 0:
            pytest.skip("no file system may be mounted here, not even in a mount namespace of its own")
        environment = os.environ | {"HOCKET_PREFIX": str(prefix)}
        return kit.finish(kit.launch([*command, sys.executable, "-m", "hocket.cli", *words], environment), LIMIT_S)

    return run


FILLS = """
import errno, os, sys
def attempt(path, blocks):
    f, done = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), 0
    try:
        while done < blocks:
            assert os.write(f, b'x' * 4096) == 4096
            done += 1
    except OSError as error:
        os.close(f)
        return done, errno.errorcode[error.errno]
    try: os.close(f)
    except OSError as error: return done, 'close: ' + errno.errorcode[error.errno]
    return done, 'well'
path, blocks = sys.argv[1], int(sys.argv[2])
done, told = attempt(path, blocks)
size = os.stat(path).st_size
assert size <= 1 << 20 and open(path, 'rb').read() == b'x' * size
print(told, size >= done * 4096)
os.truncate(path, 0)
print(*attempt(path, 20))
"""


@pytest.mark.parametrize(
    ("consistency", "size", "blocks", "told"),
    [
        ("synchronous", "1m", 2000, {"ENOSPC True"}),
        # Told when the server has begun to write, or at close.
        ("close-to-open", "1m", 2000, {"ENOSPC False"}),
        ("close-to-open", "128k", 60, {"ENOSPC False", "close: ENOSPC False"}),
    ],
)
def test_a_full_file_system_is_told(consistency: str, size: str, blocks: int, told: set[str], forward_on, mount: Path):
    run = forward_on(f"size={size}", consistency, sys.executable, "-c", FILLS, mount / "f", str(blocks))
    first, second = run.out.splitlines()
    assert run.code == 0 and first in told and second == "20 well", run.out + run.err
    assert forwarded(run) >= 60


@CONSISTENCIES
def test_a_read_only_file_system_is_read_and_not_written(consistency: str, forward_on, mount: Path):
    before = f"echo text > {mount}/f && {READ_ONLY} {mount}"
    run = forward_on("size=1m", consistency, "sh", "-c", 'cat "$0/f"; echo a >> "$0/f"', mount, before=before)
    assert run.out == "text\n"
    assert "Read-only file system" in run.err and run.code != 0
    assert forwarded(run) >= 1


@CONSISTENCIES
def test_a_file_system_can_be_made_read_only_when_files_are_closed(consistency: str, forward_on, mount: Path):
    """No server keeps a descriptor longer than the program does."""
    writes = (
        "import os, sys\n"
        "f = os.open(sys.argv[1] + '/f', os.O_WRONLY | os.O_CREAT)\n"
        "for i in range(100): os.write(f, b'%04d' % i)\n"
        "os.close(f)\n"
        f"assert os.system('{READ_ONLY} ' + sys.argv[1]) == 0\n"
        "assert os.stat(sys.argv[1] + '/f').st_size == 400\n"
    )
    run = forward_on("size=1m", consistency, sys.executable, "-c", writes, mount)
    assert run.code == 0, run.out + run.err
    assert forwarded(run) == 100


@CONSISTENCIES
def test_a_file_system_that_has_gone(consistency: str, forward_on, mount: Path):
    """An open file stays one, as with the kernel. What lies behind is another file system, and goes directly."""
    uses = (
        "import os, sys\n"
        "f = os.open(sys.argv[1] + '/f', os.O_RDWR | os.O_CREAT)\n"
        "for i in range(10): os.write(f, b'%04d' % i)\n"
        "assert os.system('umount -l ' + sys.argv[1]) == 0\n"
        "for i in range(10, 20): os.write(f, b'%04d' % i)\n"
        "assert os.pread(f, 1000, 0) == b''.join(b'%04d' % i for i in range(20))\n"
        "os.close(f)\n"
        "g = os.open(sys.argv[1] + '/g', os.O_RDWR | os.O_CREAT)\n"
        "for i in range(10): os.write(g, b'%04d' % i)\n"
        "assert os.fstat(g).st_size == 40 and os.pread(g, 4, 36) == b'0009'\n"
    )
    run = forward_on("size=1m", consistency, sys.executable, "-c", uses, mount)
    assert run.code == 0, run.out + run.err
    assert forwarded(run) >= 20
    assert (mount / "g").stat().st_size == 40


FAILS = """
#include <errno.h>
#include <sys/types.h>
#include <sys/uio.h>
ssize_t pwritev2(int fd, const struct iovec* parts, int count, off_t at, int flags) { errno = ERROR; return -1; }
ssize_t pwritev64v2(int, const struct iovec*, int, off_t, int) __attribute__((alias("pwritev2")));
ssize_t preadv2(int fd, const struct iovec* parts, int count, off_t at, int flags) { errno = ERROR; return -1; }
ssize_t preadv64v2(int, const struct iovec*, int, off_t, int) __attribute__((alias("preadv2")));
"""


@pytest.mark.parametrize("error", ["EIO", "EROFS", "EDQUOT", "ESTALE", "ENODEV"])
def test_an_error_of_the_storage_reaches_the_call_that_caused_it(
    error: str, start_forward, start_daemon, mount: Path, prefix: Path, tmp_path: Path, monkeypatch
):
    start_daemon()
    with monkeypatch.context() as patch:
        library = build(FAILS, tmp_path / "fails.so", "-shared", "-fPIC", f"-DERROR={error}")
        patch.setenv("LD_PRELOAD", str(library))
        start_servers(1, mount, prefix)
    program = (
        "import os, sys\n"
        "f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "for call in (lambda: os.write(f, b'a'), lambda: os.pwrite(f, b'a', 5), lambda: os.read(f, 1)):\n"
        "    try: call()\n"
        "    except OSError as error: print(error.errno)\n"
        "os.close(f)\n"
    )
    run = kit.finish(start_forward(sys.executable, "-c", program, mount / "f"), LIMIT_S)
    assert (run.code, run.out) == (0, f"{getattr(errno, error)}\n" * 3), run.err
    assert pids_of_servers()


# ---- servers that are not there --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [False, True])
@CONSISTENCIES
def test_a_map_that_names_a_server_that_does_not_exist(
    consistency: str, fails: bool, start_daemon, mount: Path, prefix: Path, hocket_dir: Path, tmp_path: Path
):
    """The next server is asked. If all that are named do not exist, calls are direct, or fail, as the user chose."""
    start_daemon()
    start_servers(1, mount, prefix)
    (real,) = hocket_dir.glob("servers/*.forward")
    page = ForwardPage(tmp_path / "page", str(mount), "app", 1, fails, consistency == "close-to-open")
    library = prefix / "lib" / "hocket" / "libhocket-forward.so"
    program = f"i=0; while [ $i -lt 20 ]; do echo $i || exit 1; i=$((i+1)); done > {mount}/f"
    environment = os.environ | {"LD_PRELOAD": str(library), "HOCKET_FORWARD": str(page.path)}

    def run() -> tuple[int, int]:
        before = page.counts()["calls"]
        command = ["sh", "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, timeout=LIMIT_S, check=False)
        return done.returncode, page.counts()["calls"] - before

    nowhere = str(tmp_path / "nowhere.forward")
    page.set_servers([nowhere, str(real), str(tmp_path / "no" / "directory.forward")])
    assert run() == (0, 20)
    assert len((mount / "f").read_text().split()) == 20
    page.set_servers([nowhere])
    assert run() == ((1 if fails else 0), 0)
    assert page.counts()["no_server"] > 0
    page.set_servers([nowhere, str(real)])
    assert run() == (0, 20)
    page.remove()
