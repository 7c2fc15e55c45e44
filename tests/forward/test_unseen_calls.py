"""Calls that the preloaded library does not see are direct and right. A mount sees them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from forward_kit import NEEDS_MOUNTS, build, forwarded

pytestmark = pytest.mark.timeout(120)

WITHOUT_LIBC = """
#include <fcntl.h>
int main(int count, char** words) {
  long fd = open(words[1], O_WRONLY | O_CREAT, 0600), result;
#if defined(__x86_64__)
  __asm__ volatile("syscall" : "=a"(result) : "a"(1L), "D"(fd), "S"("text"), "d"(4L) : "rcx", "r11", "memory");
#else
  register long number __asm__("x8") = 64, a __asm__("x0") = fd, c __asm__("x2") = 4;
  register const char* b __asm__("x1") = "text";
  __asm__ volatile("svc #0" : "+r"(a) : "r"(number), "r"(b), "r"(c) : "memory");
  result = a;
#endif
  return result == 4 ? 0 : 3;
}
"""
LARGE_DESCRIPTOR = """
import os, resource, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
try: resource.setrlimit(resource.RLIMIT_NOFILE, (80000, max(hard, 80000)))
except (OSError, ValueError): sys.exit(77)
os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), 70000)
os.write(70000, b"text")
"""


@pytest.mark.parametrize("by", ["preload", pytest.param("fuse", marks=NEEDS_MOUNTS)])
@pytest.mark.parametrize("kind", ["cleaned environment", "without libc", "large descriptor"])
def test_calls_that_are_not_seen(kind: str, by: str, forward, mount: Path, tmp_path: Path):
    file = mount / "file"
    program = {
        "cleaned environment": ["env", "-i", "/bin/sh", "-c", 'printf text > "$0"', file],
        "without libc": [tmp_path / "program", file],
        "large descriptor": [sys.executable, "-c", LARGE_DESCRIPTOR, file],
    }[kind]
    if kind == "without libc":
        build(WITHOUT_LIBC, tmp_path / "program")
    run = forward(*program, options=("--by", by))
    if run.code == 77:
        pytest.skip("the limit of descriptors is too low here")
    assert (run.code, file.read_text()) == (0, "text"), run.err
    assert forwarded(run) == (1 if by == "fuse" else 0)
