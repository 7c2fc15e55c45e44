"""Asks the nodes of a job, before its ranks start, whether they have libhocket (tests/cluster/test_hosts.py).

Ranks with libhocket would wait for ever for those of a node without it. The launcher itself is asked: it starts a shell
in place of each rank, which compares the library's checksum. Slurm's plugin does the same for the steps of srun.

Where the program begins among the words of a launcher shows only if all options before it are known. With an unknown
one nothing is asked, so that nothing of the user's is started twice.
"""

from __future__ import annotations

import os
import re
import signal
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from hocket import mpi
from hocket.errors import HocketError

LIMIT_S = 30.0

# Options of MPICH's and Open MPI's launchers, by the number of words that follow them.
FLAGS = frozenset(
    (
        "verbose", "v", "q", "l", "prepend-rank", "print-all-exitcodes", "genvall", "genvnone", "envall", "envnone",
        "enable-x", "disable-x", "disable-hostname-propagation", "oversubscribe", "nooversubscribe",
        "allow-run-as-root", "tag-output", "timestamp-output", "report-bindings", "display-map", "display-allocation",
        "bynode", "byslot", "bycore", "nolocal", "use-hwthread-cpus", "pernode",
    )
)  # fmt: skip
WITH_VALUE = frozenset(
    (
        "n", "np", "c", "ppn", "perhost", "npernode", "N", "host", "hosts", "H", "f", "hostfile", "machinefile",
        "default-hostfile", "launcher", "launcher-exec", "rmk", "iface", "bind-to", "map-by", "rank-by", "membind",
        "wdir", "wd", "path", "genvlist", "envlist", "localhost", "x", "prefix", "rankfile", "usize", "order-nodes",
        "timeout",
    )
)  # fmt: skip
WITH_TWO_VALUES = frozenset(("env", "genv", "mca", "gmca", "prtemca", "pmixmca"))
# The answers must arrive here, so these are left out.
OF_OUTPUT = frozenset(("outfile-pattern", "errfile-pattern", "output-filename", "output"))

# Options, variables, and files by which launchers get the names of several hosts.
NAMES = frozenset(("host", "hosts", "H"))
FILES = frozenset(("f", "hostfile", "machinefile", "default-hostfile", "rankfile"))
VARIABLES = (
    "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE", "PRTE_MCA_prte_default_hostfile", "OMPI_MCA_orte_default_hostfile",
    "PBS_NODEFILE", "PE_HOSTFILE", "LSB_MCPU_HOSTS",
)  # fmt: skip
SLURM_NODES = "SLURM_JOB_NUM_NODES"

COMPARE = (
    'if [ "$(cat "$@" 2>/dev/null | cksum)" = "$0" ]; then has=same; else has=another; fi; '
    'echo "libhocket: $has on $(uname -n)"'
)
ANSWER = re.compile(r"libhocket: (same|another) on (\S+)")  # a launcher that shows the script gives no answer


# A named tuple, as in mpi.py.
class Option(namedtuple("Option", ("name", "value", "words"))):
    """An option of a launcher: its name without hyphens, its last value, and all of its words."""

    __slots__ = ()
    name: str
    value: str
    words: list[str]


def check(job: mpi.Job, environment: Mapping[str, str]) -> None:
    """Raise HocketError if a node of the job lacks this version of libhocket, or gives no answer in time."""
    if not job.launcher or job.malleable or job.other_mpi:
        return  # a malleable program is linked with libhocket, so it does not start where that is absent
    parts = [_options_of(part) for part in mpi.mpmd_parts(job.command)]
    options = [part for part in parts if part is not None]
    if len(options) < len(parts) or not _may_span_nodes(options, environment):
        return
    files = mpi.loaded(job)
    shell = ["/bin/sh", "-c", COMPARE, checksum(files), *map(str, files)]
    answers = _ask([str(job.program), *_with_shell(options, shell)], environment)
    if lacking := sorted({node for answer, node in answers if answer != "same"}):
        others = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise HocketError(f"{lacking[0]}{others}: there is no {files[0]}, or it is another version's")
    if len(answers) < (mpi.processes_of(job.command) or 1):
        raise HocketError("not all nodes have said that they have libhocket")


def checksum(files: Sequence[Path]) -> str:
    """Return what `cat FILES | cksum` prints (POSIX, cksum)."""
    import subprocess  # late: most jobs have one node, and start sooner

    try:
        content = b"".join(path.read_bytes() for path in files)
        return subprocess.run(["cksum"], input=content, capture_output=True, check=True).stdout.decode().strip()
    except (OSError, subprocess.SubprocessError) as error:
        raise HocketError(f"cannot compare libhocket on all nodes: {error}") from error


def _ask(command: Sequence[str], environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the answer of each rank, and its node's name; fewer if the launcher fails."""
    from hocket.process_group import run_limited  # late, as in checksum()

    try:
        with _signals_as_exits():
            code, out, err = run_limited(command, environment, LIMIT_S)
    except OSError as error:
        raise HocketError(f"cannot ask all nodes for libhocket: {error}") from error
    if code is None:
        raise HocketError(f"not all nodes have said within {LIMIT_S:g} s that they have libhocket")
    return ANSWER.findall(out + err)


@contextmanager
def _signals_as_exits() -> Iterator[None]:
    """End this process in order by signals that would otherwise leave the launcher behind."""

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _options_of(part: Sequence[str]) -> list[Option] | None:
    """Return the launcher's options before a program; None if one is unknown, or there is no program."""
    found: list[Option] = []
    at = 0
    while at < len(part) and part[at].startswith("-"):
        name, has_value, value = part[at].lstrip("-").partition("=")
        follow = _words_behind(name, bool(has_value))
        if follow is None:
            return None
        words = list(part[at : at + 1 + follow])
        found.append(Option(name, value if has_value else words[-1], words))
        at += len(words)
    return found if at < len(part) else None


def _words_behind(name: str, has_value: bool) -> int | None:
    """Return how many words belong to an option behind its own; None: it is unknown."""
    if name in FLAGS:
        return 0
    if name in WITH_VALUE | OF_OUTPUT:
        return 0 if has_value else 1
    return 2 if name in WITH_TWO_VALUES and not has_value else None


def _with_shell(parts: Sequence[Sequence[Option]], shell: Sequence[str]) -> list[str]:
    """Return the launcher's words with a shell in place of each program, whose output comes here."""
    words: list[str] = []
    for part in parts:
        words += [":"] if words else []
        words += [word for option in part if option.name not in OF_OUTPUT for word in option.words]
        words += shell
    return words


def _may_span_nodes(parts: Sequence[Sequence[Option]], environment: Mapping[str, str]) -> bool:
    if environment.get(SLURM_NODES, "1") != "1" or any(environment.get(name) for name in VARIABLES):
        return True
    return any(_names_others(option) for part in parts for option in part)


def _names_others(option: Option) -> bool:
    """Return True if the option names other hosts than this one."""
    if option.name in FILES:
        return True
    names = {one.partition(":")[0] for one in option.value.split(",")}
    return option.name in NAMES and not names <= {"localhost", "127.0.0.1", os.uname().nodename}
