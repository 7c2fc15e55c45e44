"""A virtual cluster with Slurm: hosts of hosts.py, each with a slurmd, and slurmctld on the first of them.

    with Slurm(hosts) as slurm:
        run = finish(slurm.srun(["-N2", "hostname"]))

Slurm's state is in /run/slurm of each host, and ends with it. Jobs are those of root, unless the caller changes the
user. Debian's Slurm 22.05 is what it was written for.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import hosts
import runtime_kit as kit
from host_cluster import variables
from hosts import Host, Hosts

PROGRAMS = {
    "munged": "munge",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "srun": "slurm-client",
    "sbatch": "slurm-client",
    "salloc": "slurm-client",
    "scontrol": "slurm-client",
    "sinfo": "slurm-client",
}  # with the package of Debian that has it
PMI = {"mpich": "pmi2", "openmpi": "pmix"}  # of srun, for programs of each MPI
STATE = Path("/run/slurm")
START_LIMIT_S = 60
LIMIT_S = 60

CONFIGURATION = """\
ClusterName=virtual
SlurmctldHost={first}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation={state}/state
SlurmdSpoolDir={state}/spool
SlurmctldPidFile={state}/slurmctld.pid
SlurmdPidFile={state}/slurmd.pid
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
ReturnToService=2
SchedulerParameters=sched_interval=1,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
KillWait=2
PlugStackConfig={state}/plugstack.conf
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeAddr={address} CPUs={cores} State=UNKNOWN"
CORES = 4  # of each node; more than the machine has

# proctrack/cgroup wants these two hierarchies.
CGROUPS = """
mount -t tmpfs tmpfs /sys/fs/cgroup
mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/freezer
mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
mount -t cgroup -o freezer cgroup /sys/fs/cgroup/freezer
"""
# slurmd sees them from a group of its own, as if that were their root: $1 is the group, $2… the command.
IN_GROUP = f"""{CGROUPS}
echo $$ >/sys/fs/cgroup/freezer/$1/cgroup.procs
shift
exec unshare --mount --cgroup sh -e -c '{CGROUPS}exec "$@"' sh "$@"
"""


@functools.cache
def what_is_missing() -> str:
    """Return why there can be no virtual Slurm here; "" if there can."""
    if absent := sorted({package for program, package in PROGRAMS.items() if shutil.which(program) is None}):
        return f"Slurm is not installed: Debian's packages {', '.join(absent)} are missing"
    return hosts.what_is_missing()


def environment_of(mpi: kit.Mpi) -> dict[str, str]:
    """Return the variables that ranks of this MPI need in the jobs of such a cluster."""
    _, environment = mpi.command(1, [], preload="", settings={})
    # MPICH would use shared memory between hosts; this Open MPI has no munge, which Slurm's PMIx prefers.
    return variables(environment) | {"UCX_TLS": "tcp,self", "PMIX_MCA_psec": "native"}


def commands_on(host: Host) -> list[str]:
    """Return the command lines of the processes of a host."""
    found = []
    for file in Path(f"/proc/{host.first}/root/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            found.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def _with_cgroups(script: str) -> subprocess.CompletedProcess:
    command = ["unshare", "--mount", "sh", "-e", "-c", CGROUPS + script]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)


@functools.cache
def why_no_cgroups() -> str:
    """Return why proctrack/cgroup cannot be tested here; "" if it can: it needs cgroups of version 1."""
    done = _with_cgroups("")
    return "" if done.returncode == 0 else f"proctrack/cgroup needs cgroups of version 1: {done.stderr.strip()}"


@contextlib.contextmanager
def group_of_processes() -> Iterator[str]:
    """Make a group of processes in the machine's freezer cgroup. It ends with all groups in it."""
    name = f"hocket-test-{os.getpid()}"
    path = f"/sys/fs/cgroup/freezer/{name}"
    made = _with_cgroups(f"mkdir {path}")
    assert made.returncode == 0, made.stderr
    try:
        yield name
    finally:
        # The kernel takes processes out of the group a moment after they have ended.
        empty = f"find {path} -depth -type d -exec rmdir {{}} + 2>/dev/null"
        _with_cgroups(f"for i in $(seq 100); do {empty} && exit 0; sleep 0.05; done; exit 1").check_returncode()


def finish(process: subprocess.Popen, limit_s: float = LIMIT_S) -> kit.Run:
    """Wait for the end of a command of Slurm. What it says while it waits for its nodes does not count."""
    run = hosts.finish(process, limit_s)
    run.err = re.sub(r"^srun: job \d+ (queued and waiting for|has been allocated) resources\n", "", run.err, flags=re.M)
    return run


class Slurm:
    """Slurm on all hosts of a `Hosts`. Its processes end with the hosts."""

    def __init__(
        self,
        several: Hosts,
        *,
        plugins: Mapping[str, str] | str = "",
        group: str = "",
        compute: Sequence[str] = (),
    ) -> None:
        """Start Slurm, and wait until all nodes are idle.

        `plugins`: plugstack.conf, for all hosts or by their names; `group`: of `group_of_processes`, for
        proctrack/cgroup; `compute`: names of the hosts that run jobs (all).
        """
        self.hosts = several
        self.group = group
        self._started: list[subprocess.Popen] = []
        self.first = next(iter(several))
        self.nodes = [host for host in several if not compute or host.name in compute]
        lines = [NODE.format(name=host.name, address=host.address, cores=CORES) for host in self.nodes]
        written = CONFIGURATION.format(
            first=f"{self.first.name}({self.first.address})",
            state=STATE,
            proctrack="cgroup" if group else "linuxproc",
            nodes="\n".join(lines),
        )
        key = os.urandom(1024)
        for host in several:
            stack = plugins if isinstance(plugins, str) else plugins.get(host.name, "")
            self._prepare(host, written, key, stack)
        self._start_on(self.first, ["slurmctld", "-D", "-c"], "slurmctld.log")
        for host in self.nodes:
            self._start_on(host, ["slurmd", "-D"], "slurmd.log")
        self._await_idle()

    def _prepare(self, host: Host, configuration: str, key: bytes, stack: str) -> None:
        made = host.run(["mkdir", "-p", "-m", "755", STATE, STATE / "spool", STATE / "state", "/run/munge"])
        assert made.code == 0, made.err
        host.write(STATE / "slurm.conf", configuration.encode())
        host.write(STATE / "plugstack.conf", stack.encode())
        host.write(STATE / "cgroup.conf", b"CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        host.write(STATE / "munge.key", key)
        # /run of a host is open to all, which munged and hocketd do not accept.
        assert host.run(["sh", "-c", f"chmod 755 /run && chmod 600 {STATE}/munge.key"]).code == 0
        munged = ["munged", "--foreground", "--force", f"--key-file={STATE}/munge.key", "--num-threads=1"]
        places = [
            f"--pid-file={STATE}/munged.pid",
            f"--seed-file={STATE}/munged.seed",
            f"--log-file={STATE}/munged.log",
        ]
        self._start_on(host, [*munged, *places], "munged.out")
        socket = Path(f"/proc/{host.first}/root/run/munge/munge.socket.2")
        kit.wait_until(socket.exists, START_LIMIT_S, f"munged listens on {host.name}")

    def _start_on(self, host: Host, words: Sequence[str], log: str) -> None:
        """Start a program of Slurm itself."""
        within: list[str] = []
        if self.group and words[0] == "slurmd":
            within = ["unshare", "--mount", "sh", "-e", "-c", IN_GROUP, "sh", self.group]
        script = f'exec "$@" >{STATE}/{log} 2>&1'
        started = host.start([*within, "sh", "-c", script, "sh", *words], self.variables())
        self._started.append(started)

    @staticmethod
    def variables() -> dict[str, str]:
        return {"SLURM_CONF": str(STATE / "slurm.conf")}

    def _await_idle(self) -> None:
        def all_idle() -> bool:
            told = self.run(["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"])
            return told.code == 0 and len(told.out.split()) == len(self.nodes)

        try:
            kit.wait_until(all_idle, START_LIMIT_S, "all nodes of Slurm are idle")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def logs(self) -> str:
        """Return the last lines of the logs of Slurm on all hosts."""
        told = [host.run(["sh", "-c", f"tail -n 15 {STATE}/*.log"]).out for host in self.hosts]
        return "\n".join(f"{host.name}:\n{text}" for host, text in zip(self.hosts, told, strict=True))

    def start(
        self, words: Sequence[str | Path], env: Mapping[str, str] | None = None, host: Host | None = None
    ) -> subprocess.Popen:
        """Start a command on a host (the first one), for `finish`.

        Unlike other programs of hosts, it has no HOCKET_DIR: it uses the daemon of all users, if there is one.
        """
        words = ["env", "--unset=HOCKET_DIR", *words]
        return (host or self.first).start(words, {**self.variables(), **(env or {})})

    def run(
        self, words: Sequence[str | Path], env: Mapping[str, str] | None = None, host: Host | None = None
    ) -> kit.Run:
        """Run a command to its end."""
        return finish(self.start(words, env, host))

    def srun(self, words: Sequence[str | Path], env: Mapping[str, str] | None = None) -> subprocess.Popen:
        return self.start(["srun", *words], env)

    def batch(self, script: str, *options: str, env: Mapping[str, str] | None = None) -> kit.Run:
        """Run a batch script in a job of its own to its end, and return what it wrote."""
        place = STATE / "script.sh"
        self.first.write(place, f"#!/bin/bash\n{script}\n".encode())
        output = hosts.SHARED / "output-%j"
        submitted = self.run(["sbatch", "--wait", "--parsable", f"--output={output}", *options, place], env)
        job = submitted.out.strip().partition(";")[0]
        assert job.isdecimal(), submitted.err
        return kit.Run(submitted.code, (self.hosts.store / f"output-{job}").read_text(), submitted.err)
