"""Each call that `hocket forward` intercepts, by its name: it is forwarded once, and moves the right bytes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import runtime_kit as kit
from checkout import PROGRAMS
from forward_kit import LIMIT_S, NEEDS_MOUNTS, build, forwarded, start_servers

pytestmark = pytest.mark.timeout(240)

READ, WRITTEN, OLD = "012345678\n", "abcdefghi\n", "----------"
CALLS = {
    "descriptors": "read write pread pwrite pread64 pwrite64 readv writev preadv pwritev preadv64 pwritev64 "
    "preadv2 pwritev2 preadv64v2 pwritev64v2 preadv2_of_the_offset pwritev2_of_the_offset "
    "copy_file_range sendfile sendfile64",
    "numbers": "SYS_read SYS_write SYS_pread64 SYS_pwrite64 SYS_readv SYS_writev SYS_preadv SYS_pwritev "
    "SYS_preadv2 SYS_pwritev2 SYS_copy_file_range SYS_sendfile",
    "checked": "__read_chk __pread_chk __pread64_chk __fread_chk __fgets_chk __fprintf_chk",
    "streams": "fread fread_unlocked fgets getline getc fwrite fputs fputs_exit putc fprintf dprintf",
    "other names": "__read __write __pread64 __pwrite64",
}


@pytest.fixture(scope="module", params=["dynamic", pytest.param("static", marks=NEEDS_MOUNTS)])
def each_data_call(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("each") / request.param
    options = ["-static"] if request.param == "static" else []
    source = PROGRAMS / "each_data_call.c"
    subprocess.run(["cc", "-O1", *options, "-o", program, source], check=True, timeout=LIMIT_S)
    return program


def what_is_made_of(name: str) -> str:
    """Return what the second file holds after the call."""
    if "copy" in name or "sendfile" in name:
        return READ
    return OLD if "read" in name or "get" in name else WRITTEN


@pytest.mark.parametrize("kind", CALLS)
def test_each_call_is_forwarded(
    kind: str, each_data_call: Path, start_forward, start_daemon, mount: Path, prefix: Path, tmp_path: Path
):
    """One call of the program is one forwarded call; those of a static program are seen by a mount."""
    start_daemon()
    start_servers(1, mount, prefix)
    counts, source, made = tmp_path / "counts", mount / "source", mount / "made"
    found, wanted = {}, {}
    for name in CALLS[kind].split():
        source.write_text(READ)
        made.write_text(OLD)
        process = start_forward(each_data_call, name, source, made, options=("--counts", str(counts)))
        run = kit.finish(process, LIMIT_S)
        told = json.loads(counts.read_text())
        found[name] = (run.code, run.out, told["calls"], told["bytes"], told["unpatched"], made.read_text())
        # Through a mount sendfile is a read and a write.
        calls = 2 if each_data_call.name == "static" and "sendfile" in name else 1
        wanted[name] = (0, "", calls, calls * len(READ), 0, what_is_made_of(name))
    assert found == wanted


def test_no_call_of_the_program_is_left_out(each_data_call: Path):
    listed = subprocess.run([each_data_call], capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout
    assert set(listed.split()) == set(" ".join(CALLS.values()).split())


# ---- processes whose libc cannot be changed -------------------------------------------------------------------------

# Tools that are preloaded behind hocket's library, so that their constructors run first.
TOOLS = {
    "another thread": """
#include <pthread.h>
#include <unistd.h>
static void* waits(void* unused) { while (1) pause(); return unused; }
__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  pthread_create(&thread, 0, waits, 0);
}
""",
    "code is read-only": """
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int mprotect(void* where, size_t bytes, int protection) {
  if ((protection & PROT_WRITE) && (protection & PROT_EXEC)) return errno = EACCES, -1;
  return (int)syscall(SYS_mprotect, where, bytes, protection);
}
""",
}

# Calls that libc makes within its other functions are seen only if its code is changed.
WITHIN_LIBC = {*CALLS["streams"].split(), *CALLS["other names"].split(), "__fread_chk", "__fgets_chk", "__fprintf_chk"}


@pytest.fixture(scope="module", params=TOOLS)
def tool(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(TOOLS[request.param], tmp_path_factory.mktemp("tool") / "tool.so", "-shared", "-fPIC", "-pthread")


def preloading(tool: Path) -> str:
    """Return what in a shell has the next command load the tool behind what is preloaded already."""
    return f'LD_PRELOAD="$LD_PRELOAD:{tool}"'


@pytest.mark.parametrize("kind", CALLS)
def test_each_call_of_a_process_whose_libc_cannot_be_changed(
    kind: str, tool: Path, forward, mount: Path, tmp_path: Path
):
    """Its own calls are forwarded, and those that libc makes are direct."""
    program, counts, names = tmp_path / "each", tmp_path / "counts", CALLS[kind].split()
    subprocess.run(["cc", "-O1", "-o", program, PROGRAMS / "each_data_call.c"], check=True, timeout=LIMIT_S)
    (mount / "source").write_text(READ)
    for name in names:
        (mount / name).write_text(OLD)
    one = f'{preloading(tool)} {program} $i source $i || echo "$i failed"'
    script = f"cd {mount}; for i in {' '.join(names)}; do {one}; done"
    run = forward("sh", "-c", script, options=("--counts", str(counts)))
    assert (run.code, run.out) == (0, ""), run.err
    assert {name: (mount / name).read_text() for name in names} == {name: what_is_made_of(name) for name in names}
    told = json.loads(counts.read_text())
    assert (told["calls"], told["unpatched"]) == (len(set(names) - WITHIN_LIBC), len(names))
    assert f"{len(names)} processes in which C's streams were not forwarded" in run.err


@pytest.mark.parametrize("consistency", ["synchronous", "close-to-open"])
def test_random_calls_of_a_process_whose_libc_cannot_be_changed(
    consistency: str, tool: Path, forward, programs: Path, mount: Path
):
    script = f"{preloading(tool)} {programs / 'random_calls'} 5 4000 {mount}"
    run = forward("sh", "-c", script, options=("--servers", "2", "--consistency", consistency))
    assert (run.code, run.out) == (0, "ok 4000\n"), run.out + run.err
    assert forwarded(run) > 1600 and "C's streams were not forwarded" in run.err
