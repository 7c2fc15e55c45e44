"""`hocket run` inside of Slurm jobs, and the daemon that it uses there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import hosts
import pytest
import runtime_kit as kit
from daemon_kit import Daemon
from hocket import paths
from hosts import SHARED
from slurm_kit import PMI, Slurm, commands_on, environment_of, finish

pytestmark = pytest.mark.timeout(180)
LIMIT_S = 60
RUN = [sys.executable, "-m", "hocket.cli", "run"]
OWN_DAEMON = r"hocket: job (\d+) has a hocketd of its own, which ends with the job: .*\n"


def launched_by(launcher: str, mpi: kit.Mpi) -> list[str]:
    """Return the words that start a program of this MPI on all nodes of a job."""
    return ["srun", f"--mpi={PMI[mpi.name]}"] if launcher == "srun" else [*mpi.mpiexec, "-n", "2"]


def text(*words: str | Path) -> str:
    return shlex.join(map(str, words))


@pytest.mark.parametrize("within", ["sbatch", "salloc"])
@pytest.mark.parametrize("launcher", ["srun", "mpiexec"])
def test_hocket_run_in_a_job_of_two_nodes(
    within: str, launcher: str, mpi: kit.Mpi, built: Callable[..., Path], start_nodes
):
    """The plugin is there, too, and adds nothing."""
    nodes = start_nodes("one", "two")
    actions = [built("script.c"), f"open={SHARED / 'a'}", "write=1000", "close"]
    command = [*RUN, "--name", "wide", "--", *launched_by(launcher, mpi), *actions]
    environment = environment_of(mpi)
    if within == "sbatch":
        run = nodes.slurm.batch(text(*command), "-N2", "-n2", env=environment)
        assert (run.code, run.out) == (0, ""), run
    else:
        run = nodes.slurm.run(["salloc", "--quiet", "-N2", "-n2", *command], environment)
        assert (run.code, run.out, run.err) == (0, "", "")
    nodes.story.awaits("FINISH_IO")
    hello = nodes.story.all("HELLO", mpi=mpi.name)
    assert {(line["application_asked"], line["processes"]) for line in hello} == {("wide", 2)}, hello
    assert len({line["job"] for line in hello}) == 1 and not hello[0]["job"].startswith("slurm:")
    nodes.story.awaits("FINISH_IO", application="wide")
    assert (nodes.store / "a").read_bytes() == 1000 * b"A" + 1000 * b"B"


def test_a_malleable_program_grows_over_the_nodes_of_its_job(mpi: kit.Mpi, start_nodes):
    """It starts with one process. The launcher of the MPI asks Slurm for the others, and for the end of some."""
    nodes = start_nodes("one", "two")
    solver = [mpi.library / "apps" / f"jacobi-{mpi.name}", "--system", SHARED / "system", "--generate", "200"]
    solver += ["--tolerance", "0", "--iterations", "400", "--iteration-time", "0.02"]
    command = [*RUN, "--name", "solver", "--malleable", "-n", "4", "--", *mpi.mpiexec, *solver]
    allocation = ["salloc", "--quiet", "-N2", "-n4", "--ntasks-per-node=2"]
    job = nodes.slurm.start([*allocation, *command], environment_of(mpi))
    grown = nodes.story.awaits("RECONFIGURATION", application="solver")
    assert (grown["sources"], grown["targets"]) == (1, 4), grown
    running = [any(f"jacobi-{mpi.name}" in one for one in commands_on(host)) for host in nodes.slurm.nodes]
    assert running == [True, mpi.name == "mpich"], running  # PRRTE starts all where the first one is
    resized = nodes.slurm.run([sys.executable, "-m", "hocket.cli", "resize", "solver", "2"])
    assert resized.code == 0 and "solver: 4 → 2 processes" in resized.out, resized
    run = finish(job)
    assert run.code == 0 and "iteration 400 residual" in run.out, run.err


def test_the_job_may_keep_variables_from_its_steps(mpi: kit.Mpi, built: Callable[..., Path], start_slurm):
    """hocket's pass, with no plugin to set them: by srun's option, and by what sbatch leaves for srun."""
    slurm = start_slurm("one")
    show = ["/bin/sh", "-c", "/usr/bin/env | /bin/grep -E '^(HOCKET_JOB|LD_PRELOAD|LANG)='"]
    launcher = ["srun", f"--mpi={PMI[mpi.name]}"]
    for options, exported in (([], "NONE"), (["--export=NONE"], ""), (["--export", "LANG"], ""), ([], "LANG")):
        environment = environment_of(mpi) | {"LANG": "C", **({"SLURM_EXPORT_ENV": exported} if exported else {})}
        run = slurm.run([*RUN, "--", *launcher, *options, *show], environment)
        names = sorted(line.partition("=")[0] for line in run.out.splitlines())
        given = "LANG" in (*options, exported)
        assert names == ["HOCKET_JOB", *(["LANG"] if given else []), "LD_PRELOAD"], (options, exported, run)


def test_a_job_has_a_daemon_of_its_own(mpi: kit.Mpi, built: Callable[..., Path], start_slurm):
    """Where no operator runs one. Its runs share it; a directory that the login node had does not matter."""
    slurm = start_slurm("one")
    actions = [built("script.c"), f"open={SHARED / 'a'}", "write=1000", "close"]
    ls = text(sys.executable, "-m", "hocket.cli", "daemon", "status")
    script = "\n".join([*2 * [text(*RUN, "--", *launched_by("mpiexec", mpi), *actions)], ls])
    run = slurm.batch(script, "-n2", env=environment_of(mpi) | {"XDG_RUNTIME_DIR": "/run/user/of-the-login-node"})
    said = re.match(OWN_DAEMON, run.out)
    assert run.code == 0 and said and run.out.count("has a hocketd of its own") == 1, run.out
    assert f"/tmp/hocket-0-job{said[1]}/hocketd.sock" in run.out


def daemons_of(slurm: Slurm) -> list[str]:
    """Return the commands of the daemons that run on the first host."""
    return [command for command in commands_on(slurm.first) if "bin/hocketd" in command]


def test_the_daemon_of_a_job_ends_with_it(mpi: kit.Mpi, built: Callable[..., Path], start_slurm, group_of_jobs: str):
    """proctrack/cgroup kills all processes of a job. So another job's programs do not depend on this one's daemon."""
    slurm = start_slurm("one", group=group_of_jobs)
    script, environment = built("script.c"), environment_of(mpi)
    run_it = text(*RUN, "--", *launched_by("mpiexec", mpi), script)
    hold = f"open={SHARED / 'b'} begin=1000 mark={SHARED / 'held'} await={SHARED / 'go'} finish write=1000 close"
    slurm.first.write(Path("/run/other.sh"), f"#!/bin/bash\n{run_it} {hold}\n".encode())
    output = f"--output={SHARED / 'other'}"
    other = slurm.run(["sbatch", "--parsable", "-n2", output, "/run/other.sh"], environment).out.strip()
    kit.wait_until((slurm.hosts.store / "held").exists, LIMIT_S, "the other job is in its I/O")
    first = slurm.batch(f"{run_it} open={SHARED / 'a'} write=1000 close", "-n2", env=environment)
    assert first.code == 0 and re.fullmatch(OWN_DAEMON, first.out), first
    kit.wait_until(lambda: len(daemons_of(slurm)) == 1, LIMIT_S, "one daemon has ended with its job")
    assert f"-job{other}" in daemons_of(slurm)[0]
    (slurm.hosts.store / "go").touch()
    kit.wait_until(lambda: not daemons_of(slurm), LIMIT_S, "the other daemon has ended with its job")
    said = (slurm.hosts.store / "other").read_text()
    assert re.fullmatch(OWN_DAEMON, said), said
    assert (slurm.hosts.store / "b").read_bytes() == 2 * (1000 * b"A" + 1000 * b"B")


def test_a_job_uses_the_users_daemon_if_one_runs(mpi: kit.Mpi, built: Callable[..., Path], start_slurm, prefix: Path):
    """Started outside of all jobs, it serves them all."""
    slurm = start_slurm("one")
    directory = "/run/session/hocket"
    assert slurm.first.run(["mkdir", "-p", "-m", "700", directory]).code == 0
    daemon = slurm.first.start([prefix / "bin" / "hocketd", "--dir", directory])
    assert "listens on" in hosts.first_line(daemon, LIMIT_S)
    actions = [built("script.c"), f"open={SHARED / 'a'}", "write=1000", "close"]
    environment = environment_of(mpi) | {"XDG_RUNTIME_DIR": "/run/session"}
    run = slurm.batch(text(*RUN, "--", *launched_by("srun", mpi), *actions), "-n2", env=environment)
    assert (run.code, run.out) == (0, "")
    assert len(daemons_of(slurm)) == 1


def test_libraries_find_the_daemon_of_the_job(prefix: Path, hocket_dir: Path, monkeypatch: pytest.MonkeyPatch):
    """C and Python choose the same directory (src/control/bus/local_socket.cpp, python/hocket/paths.py)."""
    session, in_tmp, too_long = hocket_dir / "session", f"/tmp/hocket-{os.getuid()}", f"/tmp/{150 * 'x'}"
    for name in ("HOCKET_DIR", "HOCKET_SOCKET"):
        monkeypatch.delenv(name, raising=False)

    def is_chosen(expected: str, job: str, runtime: str) -> None:
        monkeypatch.setenv("SLURM_JOB_ID", job)
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        assert str(paths.runtime_dir()) == expected
        words = [prefix / "bin/hocketd", "--print-config"]
        told = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
        assert f'dir = "{expected}"' in told.stdout.replace("'", '"'), told

    is_chosen(f"{in_tmp}-job17", "17", str(session))
    is_chosen(f"{in_tmp}-job17", "17", too_long)
    is_chosen(f"{session}/hocket", "", str(session))
    is_chosen(f"{session}/hocket", "../x", str(session))
    (session / "hocket").mkdir(mode=0o700, parents=True)
    Daemon(prefix / "bin/hocketd", session / "hocket").kill()
    is_chosen(f"{in_tmp}-job17", "17", str(session))  # its socket is there, and nobody answers
    daemon = Daemon(prefix / "bin/hocketd", session / "hocket")
    is_chosen(f"{session}/hocket", "17", str(session))
    daemon.kill()
