"""Asks the nodes of a job, before its ranks start, whether they have libhocket (tests/cluster/test_hosts.py).

Ranks with libhocket would wait for ever for those of a node without it. The launcher itself is asked: it starts a shell
in place of each rank, which compares the library's checksum. Slurm's plugin does the same for the steps of srun.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from hocket import mpi
from hocket.errors import HocketError

LIMIT_S = 30.0
# Options, variables, and files by which launchers get the names of several hosts.
NAMES = frozenset(("host", "hosts", "H"))
FILES = frozenset(("f", "hostfile", "machinefile", "machine", "default-hostfile"))
VARIABLES = (
    "HYDRA_HOST_FILE", "PRTE_MCA_prte_default_hostfile", "OMPI_MCA_orte_default_hostfile", "PBS_NODEFILE",
    "PE_HOSTFILE", "LSB_MCPU_HOSTS",
)  # fmt: skip
SLURM_NODES = "SLURM_JOB_NUM_NODES"
COMPARE = '[ "$(cat "$@" 2>/dev/null | cksum)" = "$0" ] || echo "libhocket differs on $(uname -n)"'
DIFFERS = re.compile(r"libhocket differs on (\S+)")


def check(job: mpi.Job, environment: Mapping[str, str]) -> None:
    """Raise HocketError if a node of the job lacks this version of libhocket, or gives no answer in time."""
    if not _may_span_nodes(job, environment):
        return
    files = mpi.loaded(job)
    command = _in_place_of_ranks(job.command, ["/bin/sh", "-c", COMPARE, checksum(files), *map(str, files)])
    if not command:
        return
    from hocket.process_group import run_limited  # late: most jobs have one node, and start sooner

    code, out, err = run_limited([str(job.program), *command[1:]], environment, LIMIT_S)
    if code is None:
        raise HocketError(f"not all nodes have said within {LIMIT_S:g} s that they have libhocket")
    if lacking := sorted(set(DIFFERS.findall(out + err))):
        others = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise HocketError(f"{lacking[0]}{others}: there is no {files[0]}, or it is another version's")


def checksum(files: Sequence[Path]) -> str:
    """Return what `cat FILES | cksum` prints (POSIX, cksum)."""
    import subprocess

    content = b"".join(path.read_bytes() for path in files)
    return subprocess.run(["cksum"], input=content, capture_output=True, check=True).stdout.decode().strip()


def _may_span_nodes(job: mpi.Job, environment: Mapping[str, str]) -> bool:
    if not job.launcher or job.malleable or job.other_mpi:
        return False  # a malleable program is linked with libhocket, so it does not start where that is absent
    if environment.get(SLURM_NODES, "1") != "1" or any(environment.get(name) for name in VARIABLES):
        return True
    return any(_names_others(options) for options, _ in mpi.parts_of(job.command))


def _names_others(options: Sequence[str]) -> bool:
    """Return True if options of a launcher name other hosts than this one."""
    for word, following in zip(options, [*options[1:], ""], strict=True):
        if not word.startswith("-"):
            continue
        name, has_value, value = word.lstrip("-").partition("=")
        names = {one.partition(":")[0] for one in (value if has_value else following).split(",")}
        if name in FILES or (name in NAMES and not names <= {"localhost", "127.0.0.1", os.uname().nodename}):
            return True
    return False


def _in_place_of_ranks(command: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the launcher's command with these words in place of each program; [] if a program is not recognised."""
    replaced = [command[0]]
    for options, program in mpi.parts_of(command):
        if not program:
            return []
        replaced += [*([":"] if len(replaced) > 1 else []), *options, *words]
    return replaced
