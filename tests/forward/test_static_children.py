"""Static programs under `hocket forward` that stand behind other programs, in the command or at run time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from forward_kit import LIMIT_S, NEEDS_MOUNTS, build, forwarded
from hocket.mpi import programs_of

pytestmark = pytest.mark.timeout(180)

BUSYBOX = "/bin/busybox"
NAMED = {
    "env -i A=1 /bin/busybox sh": ["env", BUSYBOX],
    "nohup nice -n 5 /bin/busybox sh": ["nohup", "nice", BUSYBOX],
    "mpiexec -n 2 cat x : -n 3 env A=1 /bin/busybox cat": ["mpiexec", "cat", "env", BUSYBOX],
    "hocket run --name a -- mpiexec -n 2 /bin/busybox cat": ["hocket", "mpiexec", BUSYBOX],
    "cat /bin/busybox": ["cat"],
    "sh script -c /bin/busybox": ["sh"],
    "sh -c": ["sh"],
}
IN_SHELL = {
    "/bin/busybox": [BUSYBOX],
    "cd x && A=1 B='2 3' exec timeout 5 /bin/busybox cat < y": ["cd", "timeout", BUSYBOX],
    "if test -e x; then (cat y | /bin/busybox cat) & fi": ["test", "cat", BUSYBOX, "fi"],
    "cat x\n/bin/busybox true": ["cat", BUSYBOX],
    "cat '/bin/busybox; /bin/busybox'": ["cat"],
    "sh -ec '/bin/busybox true'": ["sh", BUSYBOX],
    "cat it's": ["cat"],  # no shell takes that
}


@pytest.mark.parametrize("command", NAMED)
def test_programs_that_a_command_names(command: str):
    assert programs_of(command.split()) == NAMED[command]


@pytest.mark.parametrize("text", IN_SHELL)
def test_programs_that_the_text_of_a_shell_names(text: str):
    assert programs_of(["bash", "-c", text]) == ["bash", *IN_SHELL[text]]


def behind(mount: Path) -> dict[str, tuple[list[str | Path], int]]:
    """Return commands with a static program that writes, and how many calls it makes."""
    writes = [BUSYBOX, "sh", "-c", f"echo a >> {mount}/a"]
    script = mount / "script"
    script.write_text(f"#!{BUSYBOX} sh\necho a >> {mount}/a\n")
    script.chmod(0o755)
    return {
        "env": (["env", "A=1", *writes], 1),
        "two wrappers": (["timeout", "60", "nice", "-n", "1", *writes], 1),
        "shell": (["sh", "-c", f"exec {BUSYBOX} sh -c 'echo a >> {mount}/a'"], 1),
        "script": ([script], 1),
        "launcher": ([Path(sys.prefix) / "bin" / "mpiexec", "-n", "2", *writes], 2),
    }


@NEEDS_MOUNTS
@pytest.mark.parametrize("name", ["env", "two wrappers", "shell", "script", "launcher"])
def test_a_static_program_behind_others_is_forwarded(name: str, forward, mount: Path):
    command, calls = behind(mount)[name]
    run = forward(*command)
    assert (run.code, (mount / "a").read_text()) == (0, "a\n" * calls), run.err
    assert forwarded(run) >= calls  # a script is read, too
    assert "static" not in run.err


@NEEDS_MOUNTS
def test_one_that_no_mount_forwards_is_told_before_and_after(forward, mount: Path):
    hides = 'mount --bind /dev/null /dev/fuse && exec "$@"'
    command = ("env", "A=1", BUSYBOX, "sh", "-c", f"echo a > {mount}/a")
    run = forward(*command, within=("unshare", "-m", "sh", "-c", hides, "sh"))
    assert (run.code, (mount / "a").read_text(), forwarded(run)) == (0, "a\n", 0), run.err
    before, after, _ = run.err.splitlines()
    assert before.startswith(f"hocket: {BUSYBOX} is statically linked, and FUSE cannot forward it (")
    assert after.startswith("hocket: 1 static program ran directly (busybox): ")


# It executes as many static programs, each in another way.
EXECUTED = 10
EXECUTING = """
import os, subprocess, sys
busybox, script = sys.argv[1:]
def child(become):
    pid = os.fork()
    if pid == 0:
        become()
    assert os.waitpid(pid, 0)[1] == 0
subprocess.run([script], check=True)
subprocess.run([busybox, "true"], check=True)
subprocess.run([busybox, "true"], check=True, preexec_fn=lambda: None)
assert os.system(f"{busybox} true") == 0
assert os.popen(f"{busybox} echo a").read() == "a\\n"
assert os.waitpid(os.posix_spawn(busybox, ["busybox", "true"], os.environ), 0)[1] == 0
assert os.waitpid(os.posix_spawnp("busybox", ["busybox", "true"], os.environ), 0)[1] == 0
child(lambda: os.execv(busybox, ["busybox", "true"]))
child(lambda: os.execvp("busybox", ["busybox", "true"]))
child(lambda: os.execve(os.open(busybox, os.O_RDONLY), ["busybox", "true"], os.environ))
"""
# The program executes none.
NOT_EXECUTING = """
import ctypes, errno, os, subprocess, sys
busybox, script = sys.argv[1:]
for path in ("/bin/true", "/proc/self/exe", "/dev/null", "/bin", "/missing", "./made", "./empty"):
    if path == "./made":
        open(path, "wb").write(open(busybox, "rb").read())
    elif path == "./empty":
        open(path, "wb").close()
    try:
        subprocess.run([path, "-c", ""])
    except OSError:
        pass
# The loader loads the library with the program; and the kernel refuses a path that is not there.
loader = next(line.split()[-1] for line in open("/proc/self/maps") if "/ld-linux" in line)
subprocess.run([loader, "/bin/true"], check=True)
libc = ctypes.CDLL(None, use_errno=True)
nowhere = ctypes.c_void_p(-4096)
assert libc.execve(nowhere, None, None) == -1 and ctypes.get_errno() == errno.EFAULT
assert libc.syscall(ctypes.c_long(59), nowhere, None, None) == -1 and ctypes.get_errno() == errno.EFAULT
"""


def test_static_programs_that_show_at_their_execution_are_counted(forward, mount: Path, tmp_path: Path):
    script = tmp_path / "script"
    script.write_text(f"#! {BUSYBOX} true\n")
    script.chmod(0o755)
    run = forward(sys.executable, "-c", EXECUTING, BUSYBOX, script, options=("--servers", "1"))
    assert run.code == 0, run.err
    assert f"hocket: {EXECUTED} static programs ran directly (the first: busybox): " in run.err


def test_what_is_not_static_or_not_executed_is_not_counted(forward, mount: Path, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = forward(sys.executable, "-c", NOT_EXECUTING, BUSYBOX, "-")
    assert run.code == 0 and "static" not in run.err, run.err


CALLED_BY_NUMBER = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  char* const words[] = {"busybox", "true", 0};
  return (int)syscall(SYS_execve, "/bin/busybox", words, environ);
}
"""


def test_they_are_told_without_check_also_if_called_by_number(
    hocket_dir: Path, prefix: Path, mount: Path, tmp_path: Path, monkeypatch
):
    monkeypatch.setenv("HOCKET_PREFIX", str(prefix))
    program = build(CALLED_BY_NUMBER, tmp_path / "program")
    words = [sys.executable, "-m", "hocket.cli", "forward", "--mount", mount, "--", program]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0
    assert done.stderr.startswith("hocket: 1 static program ran directly (busybox): ") and done.stderr.count("\n") == 1


COLLECTING = """
import os, sys
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for i in range(9):
    os.write(file, b"a")
os.execv("/bin/busybox", ["busybox", "cat", sys.argv[1]])
"""


def test_close_to_open_counts_them_and_stores_what_was_collected(forward, mount: Path):
    run = forward(sys.executable, "-c", COLLECTING, mount / "a", options=("--consistency", "close-to-open"))
    assert (run.code, run.out) == (0, "a" * 9), run.err
    assert "1 static program ran directly (busybox)" in run.err
