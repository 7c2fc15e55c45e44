"""Shared by the tests of libhocket: the MPIs, and the programs under test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from checkout import INCLUDES, PROGRAMS, REPO
from hocket.process_group import signal_group

MPICH = Path(os.environ.get("HOCKET_MPICH_PREFIX", REPO / ".venv"))
OPENMPI = Path(os.environ.get("HOCKET_OPENMPI_PREFIX", REPO / ".venv" / "openmpi"))

# Both MPIs need these settings to run more ranks than cores, and to run as root.
ENVIRONMENT = {
    "MPIR_CVAR_DEVICE_COLLECTIVES": "none",
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
    "MPIR_CVAR_CH4_NETMOD": "ofi",  # with UCX one spawn in eight fails, with and without libhocket
    **{f"{runtime}_ALLOW_RUN_AS_ROOT{end}": "1" for runtime in ("OMPI", "PRTE") for end in ("", "_CONFIRM")},
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


@dataclass
class Run:
    """A program that has ended."""

    code: int
    out: str
    err: str

    @property
    def warnings(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("hocket:")]


@dataclass
class Mpi:
    """One MPI: how to compile for it, and how to start ranks with libhocket (as src/libhocket/README.md says)."""

    name: str  # of the libhocket build
    mpiexec: list[str]
    compilers: dict[str, list[str]]  # by the suffix of the source
    library: Path  # the folder lib/hocket
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def libhocket(self) -> Path:
        return self.library / f"libhocket-{self.name}.so"

    def compile(self, source: str, output: Path, *flags: str) -> Path:
        compiler = self.compilers[Path(source).suffix]
        subprocess.run([*compiler, "-O1", "-o", output, PROGRAMS / source, *flags], check=True, timeout=60)
        return output

    def compile_with(self, sources: list[Path], output: Path, *libraries: str | Path) -> Path:
        """Build a program from C++ sources that use parts of libhocket which the library does not export.

        The sources compile in parallel. Those that use no MPI compile once for all programs of the directory.
        `libraries` come before the MPI itself.
        """
        prefix = Path(self.mpiexec[0]).parent.parent
        flags = ["-std=c++20", "-O1", "-pthread", *INCLUDES, f"-I{REPO}/include", "-isystem", prefix / "include"]
        about_mpi = {"libhocket", "tests"}
        objects = [
            output.with_name(f"{output.name if about_mpi & set(source.parts) else source.parent.name}-{source.stem}.o")
            for source in sources
        ]
        compilers = [
            subprocess.Popen(["g++", *flags, "-c", source, "-o", made])
            for source, made in zip(sources, objects, strict=True)
            if not made.exists()
        ]
        for compiler in compilers:
            assert compiler.wait(120) == 0, f"{compiler.args} failed"
        library = prefix / "lib"
        mpi = [library / "libmpi.so", f"-Wl,-rpath,{library}"]
        link = ["g++", "-pthread", "-o", output, *objects, *libraries, *mpi, "-ldl"]
        subprocess.run(link, check=True, timeout=120)
        return output

    def command(self, ranks: int, program: list[Any], preload: str, settings: dict[str, str]) -> tuple[list[str], dict]:
        """Return command and environment. An empty `preload` starts the ranks without libhocket."""
        words = [str(word) for word in program]
        environment = {**os.environ, **ENVIRONMENT, **self.environment}
        environment.pop("LD_PRELOAD", None)
        if self.name == "mpich":
            pairs = {**settings, "LD_PRELOAD": preload} if preload else settings
            options = [word for key, value in pairs.items() for word in ("-genv", key, value)]
            return [*self.mpiexec, *options, "-n", str(ranks), *words], environment
        environment |= settings
        if preload:
            agent = str(self.library / "hocket-preload")
            environment |= {"PRTE_MCA_odls_base_exec_agent": agent, "OMPI_MCA_orte_fork_agent": agent}
        others = [name for name in preload.split(":") if name and name != str(self.libhocket)]
        if others:  # the user stacks tools: env passes the ranks the order of the test
            words = ["env", f"LD_PRELOAD={preload}", *words]
            environment.pop("PRTE_MCA_odls_base_exec_agent"), environment.pop("OMPI_MCA_orte_fork_agent")
        return [*self.mpiexec, "--oversubscribe", "-n", str(ranks), *words], environment

    def start(
        self, program: list[Any], settings: dict[str, str] | None = None, *, ranks: int = 2, preload: str | None = None
    ) -> subprocess.Popen:
        preload = str(self.libhocket) if preload is None else preload
        return launch(*self.command(ranks, program, preload, settings or {}))

    def run(self, program: list[Any], settings: dict[str, str] | None = None, *, limit_s: float = 60, **how) -> Run:
        return finish(self.start(program, settings, **how), limit_s)


def launch(command: list[str], environment: dict[str, str]) -> subprocess.Popen:
    """Start a job for `finish`, in its own session."""
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen, limit_s: float = 60) -> Run:
    """Wait for the end of a job. A job that exceeds the limit is killed; the error shows its output."""
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        signal_group(process, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"{process.args} did not end within {limit_s} s; it said:\n{out}\n{err}") from None
    return Run(process.returncode, out, err)


def mpich(library: Path) -> Mpi:
    bin_ = MPICH / "bin"
    path = {"PATH": f"{bin_}:{os.environ['PATH']}"}
    return Mpi("mpich", [str(bin_ / "mpiexec")], {".c": [str(bin_ / "mpicc")]}, library, path)


WITH_TWO_NODES = ["mpich", "openmpi", "mpich_on_two_nodes"]  # for the fixture `mpi`, in tests of protocols of ranks


def mpich_on_two_nodes(library: Path) -> Mpi:
    """Return MPICH with ranks dealt out to two nodes in turn, as it sees them. Both are this machine.

    Its default network module carries messages between them.
    """
    found = mpich(library)
    found.mpiexec += ["-launcher", "fork", "-hosts", "n1,n2"]
    found.environment |= {"MPIR_CVAR_CH4_NETMOD": "ucx"}
    return found


def openmpi(library: Path) -> Mpi:
    bin_ = OPENMPI / "bin"
    path = {"PATH": f"{bin_}:{os.environ['PATH']}"}
    return Mpi("openmpi", [str(bin_ / "mpiexec")], {".c": [str(bin_ / "mpicc")]}, library, path)


def debian_mpich(library: Path, directory: Path) -> Mpi:
    """Return Fortran of Debian's MPICH on our MPICH, which has the same ABI.

    A symbolic link gives our library the name that programs of Debian's compiler load.
    """
    link = directory / "libmpich.so.12"
    if not link.exists():
        link.symlink_to(MPICH / "lib" / "libmpi.so.12")
    found = mpich(library)
    found.compilers = {".F90": ["mpif90.mpich", "-fallow-argument-mismatch"]}
    found.environment |= {"LD_LIBRARY_PATH": f"{directory}:{MPICH / 'lib' / 'mpich'}"}
    return found


def debian_openmpi(library: Path) -> Mpi:
    compilers = {".F90": ["mpif90.openmpi"], ".c": ["mpicc.openmpi"]}
    return Mpi("openmpi", [shutil.which("mpiexec.openmpi") or "mpiexec.openmpi"], compilers, library)


def wait_until(condition: Callable[[], Any], limit_s: float, what: str) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {limit_s} s: {what}"
        time.sleep(0.005)


def stop(pid: int) -> None:
    """Send SIGSTOP and wait until every thread has stopped. Threads may run on until one of them takes the signal."""
    os.kill(pid, signal.SIGSTOP)

    wait_until(lambda: stands_still(pid), 20, f"process {pid} stands still")


def stands_still(pid: int) -> bool:
    threads = [stat_fields(thread) for thread in Path(f"/proc/{pid}/task").glob("*")]
    return all(fields and fields[0] in "TZ" for fields in threads)  # an empty list is a thread that has just ended


def stat_fields(process: Path) -> list[str]:
    """Return the fields of /proc/PID/stat after the program's name, for a process or a thread; none if it is gone."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def settings(socket: Path, **others: Any) -> dict[str, str]:
    """Return the environment of a job, as `hocket run` sets it."""
    return {"HOCKET_SOCKET": str(socket), "HOCKET_JOB": "job-1", "HOCKET_NAME": "a"} | {
        f"HOCKET_{key.upper()}": str(value) for key, value in others.items()
    }
