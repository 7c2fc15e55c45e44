"""A cluster of hosts (hosts.py): a leader on the first, agents on the others, and remote shells between them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import hosts
import runtime_kit as kit
from checkout import KIT
from daemon_kit import START_LIMIT_S
from hosts import SHARED, Host, Hosts
from story import Story

LIMIT_S = 40
RUNTIME = Path("/run/hocket")
LEADER_PORT = 7117
LEADER_ADDRESS = f"{hosts.NETWORK}.1:{LEADER_PORT}"

Clocks = Mapping[str, tuple[str, ...]]  # by host, the words that give a job another clock
Jobs = tuple[subprocess.Popen, subprocess.Popen]


def on_host(host: Host, path: Path) -> Path:
    """Return the path at which this process finds a file of the host, by the process that keeps the host's mounts."""
    return Path(f"/proc/{host.first}/root{path}")


class TraceOnHost(Story):
    """The trace of the daemon of a host."""

    def __init__(self, host: Host, runtime: Path = RUNTIME) -> None:
        found = sorted(on_host(host, runtime / "traces").glob("*.jsonl"))
        self._file = found[-1].open()
        self._part = ""
        self.lines = []


class HostCluster:
    """A leader on the first host, and agents on the others.

    `target_names` are those that the operator chose; "": each target has the name of its mount.
    """

    def __init__(self, several: Hosts, prefix: Path, target_names: str = f"{SHARED}=shared") -> None:
        self.hosts = several
        self.prefix = prefix
        self.started: list[subprocess.Popen] = []
        key = several.store / "key"
        subprocess.run([prefix / "bin" / "hocketd", "--make-key", key], check=True, timeout=LIMIT_S)
        for host in several:
            host.run(["sh", "-c", f"cp {SHARED}/key /run/key && chmod 600 /run/key"])
            host.write(Path("/run/hocket.toml"), f'[daemon]\ntarget_names = "{target_names}"\n'.encode())

    def give_boot_ids(self) -> None:
        """Give each host a boot id of its own, by which servers and their clients recognise their node."""
        for number, host in enumerate(self.hosts, 1):
            host.write(Path("/run/boot_id"), f"{number:08x}-0000-4000-8000-000000000000\n".encode())
            bound = host.run(["mount", "--bind", "/run/boot_id", "/proc/sys/kernel/random/boot_id"])
            assert bound.code == 0, bound.err

    def hocket(self, host: Host, *words: str, limit_s: float = LIMIT_S) -> kit.Run:
        """Run a `hocket` command on the host to its end."""
        return host.run([sys.executable, "-m", "hocket.cli", *words], limit_s=limit_s)

    def servers(self, host: Host) -> dict[str, dict[str, Any]]:
        """Return what 'hocket servers' shows on the host, by name."""
        listed = self.hocket(host, "servers", "--json")
        assert listed.code == 0, listed.err
        return {one["server"]: one for one in json.loads(listed.out)["servers"]}

    def daemon(
        self, host: Host, *options: str, within: tuple[str, ...] = (), wait: bool = True, runtime: Path = RUNTIME
    ) -> subprocess.Popen:
        words = [self.prefix / "bin" / "hocketd", "--dir", runtime, "--config", "/run/hocket.toml"]
        process = host.start([*within, *words, *options])
        self.started.append(process)
        if wait:
            line = hosts.first_line(process, START_LIMIT_S)
            assert "listens on" in line, f"hocketd on {host.name} did not start: {line!r}"
        return process

    def lead(self, host: Host, *options: str, within: tuple[str, ...] = ()) -> subprocess.Popen:
        return self.daemon(host, "--leader", "--key", "/run/key", *options, within=within)

    def join(
        self, host: Host, within: tuple[str, ...] = (), *options: str, leaders: Sequence[str] = (LEADER_ADDRESS,)
    ) -> subprocess.Popen:
        how = ("--agent", "--leaders", " ".join(leaders), "--key", "/run/key", *options)
        return self.daemon(host, *how, within=within)

    def log(self, host: Host) -> str:
        """Return the log of the daemon of the host."""
        return on_host(host, RUNTIME / "hocketd.log").read_text()

    def job(self, host: Host, name: str, mpi: kit.Mpi, *program: Any, within: tuple[str, ...] = ()) -> subprocess.Popen:
        mpiexec, environment = mpi.command(2, list(program), preload="", settings={})
        run = [sys.executable, "-m", "hocket.cli", "run", "--name", name, "--"]
        return host.start([*within, *run, *mpiexec], variables(environment))


def start_two_jobs(
    cluster: HostCluster, story: Story, mpi: kit.Mpi, script: Path, clocks: Clocks = MappingProxyType({})
) -> Jobs:
    """Start `first` on host one, which uses the shared file system, and `second` on two, which waits for its end."""
    _, one, two = cluster.hosts
    hold = ("begin=1000", f"await={SHARED / 'go'}", "finish", "close")
    first = cluster.job(one, "first", mpi, script, f"open={SHARED / 'a'}", *hold, within=clocks.get("one", ()))
    story.awaits("GRANT_IO", application="first")
    write = (f"open={SHARED / 'b'}", "write=1000", "close")
    second = cluster.job(two, "second", mpi, script, *write, within=clocks.get("two", ()))
    assert story.awaits("QUEUED_IO", application="second")["behind"] == "first"
    return first, second


def end_two_jobs(cluster: HostCluster, story: Story, jobs: Jobs) -> None:
    """Let the first job go on, and check that both end without a message."""
    (cluster.hosts.store / "go").touch()
    for job in jobs:
        run = hosts.finish(job, LIMIT_S)
        assert (run.code, run.out, run.err) == (0, "", "")
    story.awaits("BYE", application="second")


def variables(environment: dict[str, str]) -> dict[str, str]:
    """Return what a host's own environment lacks."""
    return {key: value for key, value in environment.items() if os.environ.get(key) != value or key == "PATH"}


def said(run: kit.Run) -> tuple[int, str, str]:
    """Return exit code, output, and messages, without a warning of Open MPI, which loses a race with ssh at times."""
    lines = run.err.splitlines(keepends=True)
    return run.code, run.out, "".join(line for line in lines if "plm:ssh: Warning: setpgid" not in line)


def spread(mpi: kit.Mpi, ranks: int, names: list[str]) -> list[str]:
    """Return the words of a launcher that deals the ranks out to the hosts."""
    if mpi.name == "mpich":
        shell = str(KIT / "remote_shell.py")
        return [*mpi.mpiexec, "-launcher", "ssh", "-launcher-exec", shell, "-hosts", ",".join(names), "-n", str(ranks)]
    slots = ",".join(f"{name}:{ranks}" for name in names)
    agent = f"{sys.executable} {KIT / 'remote_shell.py'}"
    return [*mpi.mpiexec, "--prtemca", "plm_ssh_agent", agent, "--host", slots, "--map-by", "node", "-n", str(ranks)]
