"""Runs a queue of jobs that share cores, each as an application of a daemon that is started for it.

A rigid job always has its `processes`. A malleable one starts with its least number under `hocket run --malleable`. The
daemon's policy lets it grow while cores are idle, and takes them back when the next job asks for them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from hocket import mpi
from hocket.errors import HocketError
from hocket.exploration.measure import Program, command_of
from hocket.private_daemon import Setting
from hocket.private_servers import private_servers
from hocket.profile.measure import without_count
from hocket.profile.store import default_path
from hocket.workload.jobs import Load, QueuedJob, Workload
from hocket.workload.maps import CoreHistory, histories_of
from hocket.workload.queue import FifoQueue
from hocket.workload.results import JobRun, PlannedRun
from hocket.workload.runner import HOCKET, Runner, StartedJob
from hocket.workload.subjects import Emulated

RIGID, MALLEABLE = "rigid", "malleable"
MODES = (RIGID, MALLEABLE)
POLICY = "fair"


def processes_at_start(one: QueuedJob, mode: str) -> int:
    """Return the processes with which a job starts, and which it never loses."""
    limits = one.kind.limits
    return limits.least if mode == MALLEABLE and limits else one.kind.job.processes


def daemon_settings(workload: Workload, run: PlannedRun) -> dict[str, Setting]:
    """Return [coordinator] of the daemon, and of the simulator. Only malleable jobs may grow, each to its limit."""
    assert workload.cores is not None
    most = {
        one.name: one.kind.limits.most if run.mode == MALLEABLE and one.kind.limits else one.kind.job.processes
        for one in workload.queue
    }
    limits = " ".join(f"{name}={processes}" for name, processes in most.items())
    return {**workload.coordinator, "policy": run.policy, "cores": workload.cores, "size_limits": limits}


class _OnCores:
    """Starts jobs as applications, under `hocket run`, and programs without MPI as they are."""

    def __init__(self, mode: str, servers: int) -> None:
        self._mode = mode
        self._servers = servers

    def words(self, one: QueuedJob, directory: Path, files: Path) -> list[str]:
        subject = one.kind.subject
        if not isinstance(subject, Program):
            return command_of(subject, files)
        size = processes_at_start(one, self._mode)
        settings: Mapping[str, str] = {}
        if isinstance(subject, Emulated):
            most = one.kind.limits.most if one.kind.limits else size
            settings, words = subject.started_with(size, most, files, directory)
        else:
            words = command_of(subject, files)
        job = _mpi_job(words)
        if job is None:
            return ["env", *words]  # which reports a missing program
        options = [f"--name={one.name}", *(["--io", "hocket"] if self._servers else [])]
        if self._mode == MALLEABLE and one.kind.limits is not None:
            words = without_count(job).command
            options += ["--malleable", "-n", str(size)]
        return ["env", *(f"{key}={value}" for key, value in settings.items()), *HOCKET, "run", *options, "--", *words]

    def outcome(self, one: StartedJob, ended_s: float) -> JobRun:
        size = processes_at_start(one.queued, self._mode)
        job = JobRun(
            one.queued.name,
            one.started_s,
            ended_s,
            one.queued.kind.bytes or 0,
            ended_s - one.started_s,
            one.failure(),
            (),
            ((one.started_s, size),),
        )
        subject = one.queued.kind.subject
        if job.failure or not isinstance(subject, Emulated):
            return job
        record = subject.record(one.directory)
        failure = "" if record.is_whole else one.said("it ended before its work was done")
        return replace(
            job,
            failure=failure,
            emulator_s=record.sum_s("own_ns"),
            control_s=record.sum_s("control_ns"),
            access_s=record.access_s,
        )


def _mpi_job(words: list[str]) -> mpi.Job | None:
    """Return the MPI job that a command starts; None for a program without MPI, or one that is missing."""
    try:
        return mpi.examine(words)
    except HocketError:
        return None


def with_history(job: JobRun, history: CoreHistory) -> JobRun:
    """Return the run with what the daemon's trace says of its cores."""
    # A job asks for cores a moment after its start.
    begun_s = max(job.started_s + history.waited_s, history.given_s)
    steps = [(begun_s, job.processes[0][1])]
    for at_s, number in history.sizes:
        if number != steps[-1][1] and begun_s <= at_s <= job.ended_s:
            steps.append((at_s, number))
    return replace(job, cores_wait_s=history.waited_s, processes=tuple(steps), resizes=tuple(history.resizes))


def run_on_cores(
    workload: Workload, directory: Path, run: PlannedRun, tell: Callable[[int, int], None], trace: Path
) -> list[JobRun]:
    """Run the queue under a daemon of its own, and keep its trace. Raises HocketError if that cannot be done."""
    try:
        with (
            tempfile.TemporaryDirectory(prefix="hocket-workload-", dir=directory) as files,
            private_servers(
                workload.servers,
                directory,
                ["--forward-limit", str(workload.limit)] if workload.limit else [],
                injected=[_injected(one) for one in workload.loads],
                coordinator={"profiles": _profiles(Path(files)), **daemon_settings(workload, run)},
                trace=trace,
            ) as environment,
        ):
            queue = FifoQueue(workload.queue, workload.cores, lambda one: processes_at_start(one, run.mode))
            runner = Runner(queue, Path(files), environment, _OnCores(run.mode, workload.servers), tell)
            jobs = runner.run()
    except OSError as error:
        raise HocketError(f"cannot run the queue below {directory}: {error.strerror}: {error.filename}") from error
    histories = histories_of(trace, runner.began_ns)
    return [with_history(one, histories[one.name]) if one.name in histories else one for one in jobs]


def _injected(load: Load) -> str:
    return f"delay={round(load.delay_s * 1e6)}us after={load.after}"


def _profiles(directory: Path) -> str:
    """Return a copy of the user's profiles: what the daemon learns in one run must not change the next one."""
    copy, store = directory / "profiles.db", default_path()
    if store.exists():
        shutil.copyfile(store, copy)
    return str(copy)
