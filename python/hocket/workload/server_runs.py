"""Runs a queue of jobs that share I/O servers, which are started for it.

queue ── start(now) ──► hocket forward … ── exit, time limit ──► end ──► start(now) …
                            │ HELLO, BYE                  hocketd gives out the servers anew, by its policy
                            └─────────────► hocketd ──────► SERVER_MAP, in its trace
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hocket.arbitration.allocate import Rules
from hocket.arbitration.jobs import MB
from hocket.errors import HocketError
from hocket.exploration.measure import command_of, replayed
from hocket.exploration.patterns import Pattern
from hocket.exploration.results import jobs_text
from hocket.private_servers import private_servers
from hocket.workload.jobs import QueuedJob, Workload, arbitration_settings
from hocket.workload.maps import servers_of
from hocket.workload.queue import FifoQueue
from hocket.workload.results import JobRun
from hocket.workload.runner import HOCKET, Runner, StartedJob
from hocket.workload.subjects import Emulated


class _Forwarding:
    """Starts jobs under `hocket forward`, which tells hocketd their sizes and curves."""

    def __init__(self, workload: Workload, directory: Path) -> None:
        self._curves = directory / "curves.toml"
        self._curves.write_text(_curves_of(workload), encoding="utf-8")

    def words(self, one: QueuedJob, directory: Path, files: Path) -> list[str]:
        how = ["--mount", str(files), "--group", str(one.kind.subject.group), f"--name={one.name}"]
        how += ["--counts", str(directory / "counts.json"), "--curves", str(self._curves)]
        return [*HOCKET, "forward", *how, "--", *command_of(one.kind.subject, files, directory)]

    def outcome(self, one: StartedJob, ended_s: float) -> JobRun:
        """Return what became of a job. One that hocket could not serve did not run as it should."""
        kind = one.queued.kind
        counts = _counts(one.directory / "counts.json")
        bytes_, seconds, failure = 0, ended_s - one.started_s, one.failure()
        if not failure and not counts:
            failure = one.said("it ran directly")
        elif not failure and isinstance(kind.subject, Emulated) and not kind.subject.record(one.directory).is_whole:
            failure = one.said("it ended before its work was done")
        elif not failure and isinstance(kind.subject, Pattern):
            try:
                bytes_, seconds = replayed((one.directory / "out").read_text(errors="replace"), one.queued.name)
            except HocketError as error:
                failure = str(error)
        elif not failure:
            bytes_ = kind.bytes or counts["bytes"]
        return JobRun(one.queued.name, one.started_s, ended_s, bytes_, seconds, failure, ())


def _curves_of(workload: Workload) -> str:
    """Return a file that tells hocketd the size and the curve of each job of the queue, by its name there."""
    jobs = [one.job for one in workload.queue]
    curves = [{servers: rate / MB for servers, rate in one.bandwidth.items()} for one in jobs]
    return jobs_text((one.name, one.nodes, one.processes, rates) for one, rates in zip(jobs, curves, strict=True))


def _counts(path: Path) -> dict[str, int]:
    """Return what was forwarded; nothing if the program ran without hocket, or did not end by itself."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def run_queue(
    workload: Workload,
    nodes: int | None,
    directory: Path,
    policy: str,
    rules: Rules,
    tell: Callable[[int, int], None],
    trace: Path,
) -> list[JobRun]:
    """Run the queue through servers of its own, which a policy gives out, and keep the daemon's trace.

    Raises HocketError if servers cannot be started or files cannot be made.
    """
    options = ["--forward-limit", str(workload.limit)] if workload.limit else []
    try:
        with (
            private_servers(
                workload.servers,
                directory,
                options,
                coordinator={"policy": policy, "slow_server": 0},
                arbitration=arbitration_settings(workload, rules),
                trace=trace,
            ) as environment,
            tempfile.TemporaryDirectory(prefix="hocket-workload-", dir=directory) as files,
        ):
            queue = FifoQueue(workload.queue, nodes)
            runner = Runner(queue, Path(files), environment, _Forwarding(workload, Path(files)), tell)
            jobs = runner.run()
    except OSError as error:
        raise HocketError(f"cannot run the queue below {directory}: {error.strerror}: {error.filename}") from error
    maps = servers_of(trace, runner.began_ns)
    return [replace(one, servers=tuple(maps.get(one.name, ()))) for one in jobs]
