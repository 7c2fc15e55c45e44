"""One run of a real program with one resize, under a private daemon."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from hocket import paths
from hocket.bus import Bus
from hocket.errors import HocketError
from hocket.mpi import mpich_launcher
from hocket.process_group import run_limited
from hocket.reconfigurations import Reconfiguration
from hocket.reconfigure.methods import Method

APPS = ("cg", "jacobi")
RUN_LIMIT_S = 90  # time limit of a run, which is then killed and counts as failed
RESIZE_LIMIT_S = 30  # time limit of a resize, after which libhocket ends the job
RECORD_LIMIT_S = 5  # time limit for the record to arrive after the end of the program
START_LIMIT_S = 20
CORES = 64  # cores of the daemon's settings; processes share the cores of this machine
# Settings for MPICH with more ranks than cores. Over UCX one spawn in eight fails.
MPICH_SETTINGS = {
    "MPIR_CVAR_DEVICE_COLLECTIVES": "none",
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
    "MPIR_CVAR_CH4_NETMOD": "ofi",
}


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run. `reason`: why it counts as failed; "" if it succeeded."""

    reason: str
    execution_s: float = 0.0  # as the program reports it; of cg, from its first iteration to its last
    check: float | None = None  # figure of the result, which all runs must have in common
    record: Reconfiguration | None = None


def summary_of(out: str) -> dict | None:
    """Return the summary in JSON that a program of apps/ prints on its last line."""
    try:
        summary = json.loads(last_line(out))
    except ValueError:
        return None
    return summary if isinstance(summary, dict) else None


@dataclass(frozen=True)
class Program:
    """A program to be resized, the command that runs it, and what finds its summary in its output."""

    app: str
    command: list[str]
    summary: Callable[[str], dict | None] = summary_of


def prepare(app: str, size: int, iterations: int, iteration_s: float, directory: Path) -> Program:
    """Return the command that runs the installed program. `size`: points along an edge (cg), or unknowns (jacobi).

    Raises HocketError if the program is not installed, or cannot make its input.
    """
    program = installed(app)
    steps = ["--iterations", str(iterations), "--tolerance", "0", "--print-every", str(iterations)]
    steps += ["--iteration-time", str(iteration_s)]
    if app == "cg":
        return Program(app, [str(program), "--stencil", str(size), *steps])
    system = directory / "system.bin"
    made = subprocess.run(
        [*launcher(1), str(program), "--generate", str(size), "--system", str(system)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=RUN_LIMIT_S,
    )
    if made.returncode != 0:
        raise HocketError(f"{program} could not write its system: {last_line(made.stderr)}")
    return Program(app, [str(program), "--system", str(system), *steps])


def installed(app: str) -> Path:
    """Return the program of apps/, or raise HocketError if it is not installed."""
    program = paths.apps() / f"{app}-mpich"
    if not program.exists():
        raise HocketError(f"no {program}: is hocket built and installed? (HOCKET_PREFIX says where)")
    return program


def launcher(processes: int) -> list[str]:
    return [mpich_launcher(), "-n", str(processes)]


def environment() -> dict[str, str]:
    """Return the environment of a run: MPICH's programs first in PATH, and no setting of hocket except its prefix."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HOCKET_") or key == "HOCKET_PREFIX"}
    return {**kept, **MPICH_SETTINGS, "PATH": f"{Path(launcher(1)[0]).parent}:{kept.get('PATH', '')}"}


class Runner:
    """A private daemon, and runs under it. Use it as a context: the daemon ends with it."""

    def __init__(self, trace: Path, resize_limit_s: int = RESIZE_LIMIT_S, run_limit_s: int = RUN_LIMIT_S) -> None:
        self.trace = trace
        self._resize_limit_s, self._run_limit_s = resize_limit_s, run_limit_s
        self._directory = Path(tempfile.mkdtemp(prefix="hocket-bench-", dir="/tmp"))  # socket paths must be short
        self._count = 0

    def __enter__(self) -> Runner:
        try:
            self._daemon = self._start_daemon()
            self._bus = Bus.connect(self._directory / "hocketd.sock")
            self._records = self._bus.subscribe("RECONFIGURATION")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if hasattr(self, "_bus"):
            self._bus.close()
        if hasattr(self, "_daemon"):
            self._daemon.terminate()
            try:
                self._daemon.wait(10)
            except subprocess.TimeoutExpired:
                self._daemon.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def settings(self) -> dict[str, str]:
        """Return the variables by which the next run finds the daemon. Each call names another job."""
        self._count += 1
        return {
            "HOCKET_SOCKET": str(self._directory / "hocketd.sock"),
            "HOCKET_JOB": f"bench-{os.getpid()}-{self._count}",
            "HOCKET_NAME": f"run-{self._count}",
            "HOCKET_RESIZE_MAX_S": str(self._resize_limit_s),
        }

    def run(self, program: Program, sources: int, targets: int, method: Method, at: int) -> Outcome:
        """Run the program, and resize it from `sources` to `targets` processes after `at` iterations."""
        wanted = {"HOCKET_PROCESSES": str(sources), "HOCKET_RESIZE": f"{at}:{targets}"}
        # The end of the iterations waits for processes that start in the background.
        wanted["HOCKET_RESIZE_WAIT_S"] = str(self._resize_limit_s)
        job = self.settings()
        code, out, err = run_limited(
            [*launcher(1), *program.command], environment() | job | method.environment | wanted, self._run_limit_s
        )
        if code is None:
            return Outcome(f"did not end within {self._run_limit_s} s")
        if code != 0:
            return Outcome(f"exit code {code}: {last_line(err)}")
        summary = program.summary(out)
        if summary is None or "seconds" not in summary:
            return Outcome(f"no summary of its run; its last line is '{last_line(out)}'")
        record = self.record(job["HOCKET_NAME"], sources, targets)
        if record is None:
            return Outcome(f"no RECONFIGURATION {sources} → {targets} was reported; {last_line(err)}")
        if not record.done:
            return Outcome(f"given up: {record.reason}", record=record)
        check = summary.get("residual")
        execution_s = float(summary.get("iterating_seconds", summary["seconds"]))
        return Outcome("", execution_s, None if check is None else float(check), record)

    def record(self, name: str, sources: int, targets: int) -> Reconfiguration | None:
        """Return the record of this resize.

        The growth before the first iteration has its own record, with other sizes.
        """
        found = (one for one in self.records(name) if (one.sources, one.targets) == (sources, targets))
        return next(found, None)

    def records(self, name: str) -> Iterator[Reconfiguration]:
        """Yield the records of a run that has ended, as they arrive.

        It ends when none arrives for RECORD_LIMIT_S, so request no more than exist.
        """
        while event := self._records.wait(timeout=RECORD_LIMIT_S):
            if event.application == name:
                yield Reconfiguration.of(event, name)

    def _start_daemon(self) -> subprocess.Popen:
        program, config = paths.hocketd(), self._directory / "hocket.toml"
        config.write_text(f"[coordinator]\ncores = {CORES}\n")
        if not program.exists():
            raise HocketError(f"no hocketd at {program}; is hocket built and installed? (HOCKET_PREFIX says where)")
        options = ["--dir", str(self._directory), "--config", str(config), "--trace", str(self.trace)]
        daemon = subprocess.Popen(
            [str(program), *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        readable, _, _ = select.select([daemon.stdout], [], [], START_LIMIT_S)
        if not readable or "listens on" not in daemon.stdout.readline():
            daemon.kill()
            raise HocketError(f"hocketd did not start: {last_line(daemon.communicate()[1])}")
        return daemon


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
