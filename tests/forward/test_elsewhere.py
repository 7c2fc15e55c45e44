"""Which files are forwarded: those that lie below the prefix, by whatever name a program opens them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from forward_kit import LIMIT_S, build, forwarded

pytestmark = pytest.mark.timeout(180)

# Each round writes 6 files that are below the prefix. From the first round on the process knows that there are others
# on the same file system, so that it looks at names first.
OPENS = """
import os, sys
inside, outside = sys.argv[1:]
def write(path):
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, b"a")
    os.close(file)
for i in range(3):
    write(f"{inside}/a")
    write(f"{outside}/to-inside/b")
    write(f"{outside}/../{os.path.basename(inside)}/c")
    os.chdir(inside)
    write("d")
    os.chdir("/")
    with open(f"{outside}/to-inside/e", "ab", 0) as file:
        file.write(b"a")
    file = os.open(f"{inside}/f", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    copy = os.dup(file)
    os.close(file)
    os.write(copy, b"a")
    os.close(copy)
    write(f"{outside}/g")
    write(f"{inside}/to-outside")
    write(f"{inside}-but-longer")
    write("/dev/null")
    os.close(os.open(inside, os.O_RDONLY))
"""


@pytest.mark.parametrize("consistency", ["synchronous", "close-to-open"])
def test_what_counts_is_where_a_file_is(consistency: str, forward, mount: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "to-inside").symlink_to(mount)
    (mount / "to-outside").symlink_to(outside / "h")
    run = forward(sys.executable, "-c", OPENS, mount, outside, options=("--consistency", consistency))
    assert (run.code, forwarded(run)) == (0, 3 * 6), run.err
    made = [*(mount / name for name in "abcdef"), outside / "g", outside / "h", Path(f"{mount}-but-longer")]
    assert {path: path.read_text() for path in made} == dict.fromkeys(made, "aaa")


def test_what_a_child_of_vfork_opens_changes_nothing_of_its_parent(forward, mount: Path):
    """Python starts programs by vfork, and gives the child's descriptors other files."""
    script = "import os, subprocess; os.write(1, b'a'); " \
        "subprocess.run(['true'], stdout=subprocess.DEVNULL, check=True); os.write(1, b'b')"  # fmt: skip
    run = forward("sh", "-c", f'exec "$0" -c "$1" > {mount}/a', sys.executable, script)
    assert (run.code, (mount / "a").read_text(), forwarded(run)) == (0, "ab", 2), run.err


IN_VFORK = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
#include <sys/wait.h>
int main(int count, char** words) {
  (void)count;
  const int fd = open(words[1], O_WRONLY | O_CREAT, 0600);
  if (write(fd, "a", 1) != 1) return 1;
  const pid_t child = vfork();
  if (child == 0) {
    close(fd);
    if (open("/dev/null", O_WRONLY) != fd || write(fd, "x", 1) != 1) _exit(1);
    _exit(0);
  }
  int status;
  if (waitpid(child, &status, 0) != child || status != 0) return 2;
  if (write(fd, "b", 1) != 1) return 3;
  const int other = open("/dev/null", O_WRONLY);  // the parent's own opens are looked at as before
  return dup2(fd, other) == other && write(other, "c", 1) == 1 ? 0 : 4;
}
"""


@pytest.mark.parametrize("consistency", ["synchronous", "close-to-open"])
def test_a_child_of_vfork_that_reuses_a_descriptor(consistency: str, forward, mount: Path, tmp_path: Path):
    program = build(IN_VFORK, tmp_path / "program")
    run = forward(program, mount / "a", options=("--consistency", consistency), limit_s=LIMIT_S)
    assert (run.code, (mount / "a").read_text(), forwarded(run)) == (0, "abc", 3), run.err
