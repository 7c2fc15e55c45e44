"""What Slurm's commands say of jobs, and the requests that change them. Each waits for at most ANSWER_S."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hocket import mpi, paths
from hocket.errors import HocketError

ANSWER_S = 20.0  # time limit of a command of Slurm
NO_STEPS = ("batch", "extern", "interactive")  # what runs on nodes without being a step of the user
REQUESTED_LIKE = ("time", "partition", "account", "qos")  # of the first job
MEMORY = {"SLURM_MEM_PER_NODE": "--mem", "SLURM_MEM_PER_CPU": "--mem-per-cpu"}  # in MB
NONE = ("", "null", "N/A", "NOT_SET", "INVALID")  # no value in what squeue writes
LAUNCHER_VARIABLES = ("HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP", "HYDRA_LAUNCHER_EXEC", "HYDRA_BOOTSTRAP_EXEC")
LAUNCHER_OPTIONS = ("launcher", "launcher-exec", "bootstrap", "bootstrap-exec")

Nodes = dict[str, int]  # cores by node


class SlurmError(HocketError):
    """Slurm refuses a request, or does not answer."""


class SilentError(SlurmError):
    """Slurm has not answered in time. It may carry out the request, or has done it."""


def command(*words: str, directory: str | None = None, given: str = "", env: Mapping[str, str] | None = None) -> str:
    """Run a command of Slurm with the input `given`, and return what it writes. Raises SlurmError."""
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            check=False,
            input=given,
            cwd=directory,
            env=env,
        )
    except subprocess.TimeoutExpired:
        raise SilentError(f"{words[0]} has not answered for {ANSWER_S:g} s") from None
    except OSError as error:
        raise SlurmError(f"{words[0]} cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        error = SilentError if "timed out" in done.stderr else SlurmError
        raise error(said[-1].removeprefix(f"{words[0]}: error: ") if said else f"{words[0]} failed")
    return done.stdout


def expand(names: str) -> list[str]:
    """Return the nodes of a list like "n[1-3],m7". Raises SlurmError."""
    return command("scontrol", "show", "hostnames", names).split() if names else []


def count_of(ids: str) -> int:
    """Return how many numbers "0-3,6" has. Raises ValueError."""
    sum_ = 0
    for part in ids.split(","):
        first, _, last = part.partition("-")
        sum_ += int(last or first) - int(first) + 1
    return sum_


def nodes_of(job: str) -> Nodes:
    """Return the nodes of a job with the cores that it holds there, as Slurm knows them. Raises SlurmError."""
    told = command("scontrol", "show", "job", "--detail", "--oneliner", job)
    # The other lines are of other tasks of an array, or of other parts of a heterogeneous job.
    told = "\n".join(line for line in told.splitlines() if line.startswith(f"JobId={job} "))
    nodes: Nodes = {}
    try:
        for names, ids in re.findall(r"(?<!\S)Nodes=(\S+) CPU_IDs=(\S+)", told):
            nodes |= dict.fromkeys(expand(names), count_of(ids))
    except ValueError:
        nodes = {}
    if not nodes:
        raise SlurmError(f"scontrol does not say which cores job {job} holds")
    return nodes


def busy_nodes(job: str) -> set[str]:
    """Return the nodes on which steps of a job run. Raises SlurmError."""
    busy: set[str] = set()
    for line in command("squeue", "--noheader", "--steps", "--jobs", job, "--format", "%i %N").splitlines():
        step, _, names = line.strip().partition(" ")
        if step.rpartition(".")[2] not in NO_STEPS:
            busy |= set(expand(names.strip()))
    return busy


# A second job holds its nodes while the first one runs or is suspended, if nobody cancels it before. One that was
# requeued has another start. Slurm may be silent for ten minutes.
HOLD = """#!/bin/sh
silent=0
while [ $silent -lt 20 ]; do
  sleep 30 & wait $!
  silent=$((silent + 1))
  if state=$(squeue --noheader --jobs={job} --format='%T|%S' 2>/dev/null); then
    case $state in
      'RUNNING|{start}' | 'SUSPENDED|{start}' | 'STOPPED|{start}') silent=0 ;;
      'SIGNALING|{start}' | 'RESIZING|{start}') silent=0 ;;
      *) exit 0 ;;
    esac
  fi
done
"""


@dataclass(frozen=True)
class JobSettings:
    start: str
    options: list[str]  # of sbatch, for a job like it that takes as long as it has left


def settings_of(job: str) -> JobSettings:
    """Return the time, partition, account, QOS and memory of a job. Raises SlurmError."""
    told = command("squeue", "--noheader", "--jobs", job, "--format", "%S|%L|%P|%a|%q").strip().split("|")
    start, *told = told
    if len(told) != len(REQUESTED_LIKE):
        raise SlurmError(f"squeue does not describe job {job}")
    chosen = [
        f"--{name}={value}" for name, value in zip(REQUESTED_LIKE, told, strict=True) if value.strip("()") not in NONE
    ]
    memory = [f"{option}={os.environ[name]}" for name, option in MEMORY.items() if os.environ.get(name)]
    return JobSettings(start, chosen + memory)


def name_of_further(job: str) -> str:
    """Return the name of the jobs for further nodes that this process submits."""
    return f"hocket-{job}-{os.getpid()}"


def request_nodes(job: str, like: JobSettings, count: int, cores: int, held: Sequence[str]) -> str:
    """Submit a job for `count` further nodes with `cores` each, with the settings of `job`. Return its number.

    Raises SlurmError.
    """
    size = [f"--nodes={count}", f"--ntasks-per-node={cores}", f"--exclude={','.join(held)}"]
    quiet = ["--output=/dev/null", "--no-requeue", f"--job-name={name_of_further(job)}", "--export=PATH,SLURM_CONF"]
    # Options of the first job's submission, in variables, would hold for this one, too.
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
    if "SLURM_CONF" in os.environ:
        clean["SLURM_CONF"] = os.environ["SLURM_CONF"]
    submitted = command(
        "sbatch", "--parsable", *like.options, *size, *quiet, given=HOLD.format(job=job, start=like.start), env=clean
    )
    return submitted.strip().partition(";")[0]


def hocket_srun() -> Path:
    return paths.prefix() / "lib" / "hocket" / "slurm" / "hocket-srun"


def why_fixed(job: mpi.Job, environment: Mapping[str, str]) -> str:
    """Return why the program of `job` cannot give nodes back; "" if it can."""
    if environment.get("SLURM_ARRAY_JOB_ID"):
        return "it is one of an array, which Slurm might change with it"
    if environment.get("SLURM_HET_SIZE"):
        return "it is heterogeneous"
    if job.mpi != mpi.MPICH:
        return "Open MPI has a process on each node, and ends with it"
    if chosen := [name for name in LAUNCHER_VARIABLES if environment.get(name)]:
        return f"{chosen[0]} is set, so the ranks are not started by Slurm"
    options = {word.lstrip("-").partition("=")[0] for word in job.command[1:] if word.startswith("-")}
    if chosen := sorted(options.intersection(LAUNCHER_OPTIONS)):
        return f"-{chosen[0]} is given, so the ranks are not started by Slurm"
    return "" if hocket_srun().exists() else f"there is no {hocket_srun()}"
