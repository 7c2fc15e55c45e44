"""Finds which MPI a command starts, and loads libhocket into its ranks, and only into them (src/libhocket/README.md).

MPICH's launcher gets an option. Open MPI's launchers start each rank through a small program. Without a known launcher,
every process of the job gets the library, which does nothing outside of MPI.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import namedtuple
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from hocket import paths
from hocket.elf import Elf, has_text, read_elf
from hocket.errors import HocketError, UsageError

MPICH, OPENMPI = "mpich", "openmpi"
HYDRA_WORDS = "HYDRA build details"
VERSION_WORDS = (
    (HYDRA_WORDS, MPICH),
    ("Intel(R) MPI", MPICH),
    ("Open MPI", OPENMPI),
    ("OpenRTE", OPENMPI),
    ("PRRTE", OPENMPI),
)
LIBRARIES = (("libmpi.so.12", MPICH), ("libmpich.so.12", MPICH), ("libmpi.so.40", OPENMPI))
LAUNCHER = re.compile(r"^(mpiexec|mpirun|orterun|prterun|prun)([.-].*)?$")
SRUN = "srun"  # Slurm's launcher starts programs of each MPI
PMI_MPIS = (("pmi2", MPICH), ("pmix", OPENMPI))  # what programs of each PMI usually have, by the beginning of its name
VERSION_LIMIT_S = 20
# Programs that run the program named after them, and interpreters. They do not give an application its name.
WRAPPERS = frozenset(
    (
        "env", "nice", "numactl", "taskset", "stdbuf", "time", "timeout", "valgrind", "gdb", "strace", "perf",
        "setarch", "chrt", "ionice", "nohup", "prlimit", "setsid",
    )
)  # fmt: skip
SHELLS = frozenset(("ash", "bash", "dash", "ksh", "mksh", "sh", "zsh"))
SHELL_MARKS = ";&|()\n"  # between two commands of a shell
BEFORE_COMMAND = frozenset(
    ("!", "{", "builtin", "command", "do", "elif", "else", "exec", "if", "then", "time", "until", "while")
)
EXEC_AGENTS = ("PRTE_MCA_odls_base_exec_agent", "OMPI_MCA_orte_fork_agent")  # Open MPI 5, Open MPI 4


# Settings for a program that starts processes as it grows. The user's own settings take precedence.
MALLEABLE_SETTINGS = {
    # The other transport sometimes fails to start processes, and does not let joining processes connect.
    MPICH: {"MPIR_CVAR_CH4_NETMOD": "ofi"},
    # Allow more processes than slots: the launcher was started for one (Open MPI 5, Open MPI 4).
    OPENMPI: {
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        # Old and new ranks would choose different algorithms for one collective, and block for ever.
        "OMPI_MCA_coll": "^han",
        "OMPI_MCA_osc": "^ucx",
        # So they would in MPI_File_open, for shared file pointers.
        "OMPI_MCA_sharedfp": "^sm",
    },
}
COUNT_OPTIONS = frozenset(("n", "np", "c"))
COUNT_OPTION = re.compile(r"-{1,2}(n|np|c)(?:=(\d+))?$")


def mpich_launcher() -> str:
    """Return MPICH's launcher: of the installation or this Python environment, else from PATH. Raises UsageError."""
    own = [Path(prefix) / "bin" / "mpiexec" for prefix in (paths.prefix(), sys.prefix)]
    found = next((str(path) for path in own if path.exists()), None) or shutil.which("mpiexec")
    if found is None:
        raise UsageError("no mpiexec in PATH: MPICH's is needed")
    return found


class ProgramNotFoundError(HocketError):
    exit_code = 127


# Named tuples, here and in elf.py: importing dataclasses and typing takes as long as the rest of `hocket run`.
class Job(
    namedtuple(
        "Job",
        ("command", "program", "mpi", "launcher", "name", "application", "malleable", "warnings", "other_mpi"),
        defaults=("", False, (), False),
    )
):
    """A command that starts an MPI application."""

    __slots__ = ()
    command: list[str]
    program: Path  # path of command[0]
    mpi: str  # MPICH or OPENMPI
    launcher: bool  # True if `program` is a launcher of that MPI
    name: str  # name of the application, for people
    application: str  # the program among the words of the command
    malleable: bool  # True if it is linked with libhocket, as programs are that can be resized
    warnings: Sequence[str]
    other_mpi: bool  # True if the application is known to use another MPI: it gets no libhocket


class Preload(namedtuple("Preload", ("command", "environment"))):
    """The way to start a job so that its ranks get libhocket: the command line, and variables to add."""

    __slots__ = ()
    command: list[str]
    environment: dict[str, str]


def examine(command: Sequence[str], mpi: str | None = None) -> Job:
    """Return what the command starts. `mpi`: given by the user, for launchers that do not report their MPI.

    Raises ProgramNotFoundError if the program does not exist, and UsageError if no MPI is found.
    """
    found = shutil.which(command[0])
    if found is None:
        raise ProgramNotFoundError(f"{command[0]}: no such program; is it in PATH?")
    program = Path(found).absolute()  # Path drops a leading "./", and PATH would be searched
    launcher = bool(LAUNCHER.match(program.name))
    application, elf = _application(command[1:] if launcher or program.name == SRUN else command)
    by_libraries = _mpi_of(elf)
    by_launcher = mpi_of_launcher(program) if launcher else None
    kind = mpi or by_launcher or by_libraries or _mpi_of_srun(command)
    if kind is None:
        raise UsageError(_no_mpi(command[0], launcher))
    warnings = []
    if elf and elf.static:
        warnings.append(f"{application} is statically linked: libhocket cannot be loaded, it runs uncoordinated")
    started = by_launcher or kind
    other_mpi = by_libraries is not None and by_libraries != started
    if other_mpi:
        warnings.append(
            f"{application} is built with {by_libraries}, but {program} starts {started} programs: "
            f"it runs uncoordinated; start it with {by_libraries}'s mpiexec"
        )
    return Job(
        list(command),
        program,
        kind,
        launcher and by_launcher is not None,
        _name(command, application),
        application,
        any(name.startswith("libhocket-") for name in (elf.needed if elf else ())),
        warnings,
        other_mpi,
    )


def name_of(command: Sequence[str]) -> str:
    """Return the name of the application that a command starts: a launcher, the application itself, or `hocket run`."""
    command = _behind_run(command)
    first = Path(command[0]).name
    starts_another = LAUNCHER.match(first) or first in WRAPPERS or first == SRUN
    return _name(command, _application(command[1:] if starts_another else command[:1])[0])


def programs_of(command: Sequence[str]) -> list[str]:
    """Return the programs that a command starts, as far as its words say: the first, and those behind it.

    These follow launchers, wrappers, and `hocket run`, or are in the text of `sh -c`.
    """
    behind = _behind_run(command)
    name = Path(command[0]).name
    parts: list[Sequence[str]] = []
    if behind != command:
        parts = [behind]
    elif name in SHELLS:
        parts = [*_shell_commands(command[1:])]
    elif LAUNCHER.match(name) or name in WRAPPERS or name == SRUN:
        for part in mpmd_parts(command) if LAUNCHER.match(name) else [command[1:]]:
            at = next((at for at in range(len(part)) if _program_at(part, at)), len(part))
            parts.append(part[at:])
    return [command[0], *(program for part in parts if part for program in programs_of(part))]


def _shell_commands(arguments: Sequence[str]) -> list[list[str]]:
    """Return the words of each command in the text of `sh -c TEXT`, as far as one can read it without a shell."""
    import shlex  # imported here: `hocket run` starts sooner

    at = next((at for at, word in enumerate(arguments) if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", word)), None)
    before = arguments[: at or 0]
    if at is None or at + 1 == len(arguments) or any(word[:1] not in ("-", "+") for word in before):
        return []
    reader = shlex.shlex(arguments[at + 1], posix=True, punctuation_chars=SHELL_MARKS)
    reader.whitespace, reader.whitespace_split = " \t\r", True
    commands: list[list[str]] = [[]]
    try:
        for word in reader:
            if word and set(word) <= set(SHELL_MARKS):
                commands.append([])
            elif commands[-1] or not (word in BEFORE_COMMAND or re.match(r"[A-Za-z_]\w*=", word)):
                commands[-1].append(word)
    except ValueError:  # a quotation mark without its partner
        pass
    return [words for words in commands if words]


def _behind_run(command: Sequence[str]) -> Sequence[str]:
    """Return the command that a `hocket run` starts; any other command as it is."""
    if Path(command[0]).name != "hocket" or list(command[1:2]) != ["run"]:
        return command
    for at, word in enumerate(command):
        if word == "--":
            return command[at + 1 :] or command
        if LAUNCHER.match(Path(word).name):
            return command[at:]
    return command


def start_small(job: Job, processes: int, environment: Mapping[str, str]) -> tuple[Job, dict[str, str]]:
    """Return the job with one process, and the variables that let a malleable program grow to `processes`.

    Each process but the first then has a world of its own, so that it can leave alone. Raises UsageError if the
    launcher is unknown, or was given a number of processes.
    """
    if not job.launcher:
        raise UsageError(f"--malleable needs mpiexec or mpirun of MPICH or Open MPI, not '{job.command[0]}'")
    for argument in job.command[1:]:
        if shutil.which(argument) and not argument.startswith("-"):
            break  # the program and its arguments follow
        if argument.startswith("-") and argument.lstrip("-").partition("=")[0] in COUNT_OPTIONS:
            raise UsageError(
                f"'{argument}' of {job.program.name} sets the number of processes, and so does --malleable: "
                f"write 'hocket run --malleable -n {processes} -- {job.program.name} ./app'"
            )
    small = job._replace(command=[job.command[0], "-n", "1", *job.command[1:]])
    settings = {name: value for name, value in MALLEABLE_SETTINGS[job.mpi].items() if name not in environment}
    return small, {"HOCKET_PROCESSES": str(processes), **settings}


def preload(job: Job, environment: Mapping[str, str]) -> Preload:
    """Return the command line and the variables that load libhocket into the ranks of `job`.

    Other entries of LD_PRELOAD stay. Raises HocketError if the library is not installed, or if LD_PRELOAD cannot
    hold its path. A program of another MPI does not get the library. Where that shows only at run time (a script,
    mpi4py), the library itself stands aside.
    """
    if job.other_mpi:
        return Preload(job.command, {})
    library = paths.libhocket(job.mpi)
    if not library.exists():
        raise HocketError(f"no {library}: hocket was built without {job.mpi}, or is not installed there")
    if re.search(r"[\s:]", str(library)):
        raise HocketError(f"'{library.parent}' has a space or a colon in its path, which LD_PRELOAD cannot hold")
    if not job.launcher:
        return Preload(job.command, {"LD_PRELOAD": _before(library, environment.get("LD_PRELOAD", ""))})
    if job.mpi == OPENMPI:
        agent = str(_open_mpi_agent(library))
        return Preload(job.command, {name: f"{agent} {environment.get(name, '')}".strip() for name in EXEC_AGENTS})
    value = _before(library, environment.get("LD_PRELOAD", ""))
    command = [job.command[0], "-genv", "LD_PRELOAD", value, *_with_library(job.command[1:], library)]
    return Preload(command, {})


def loaded(job: Job) -> list[Path]:
    """Return the files that each node needs: libhocket, and what starts Open MPI's ranks with it."""
    library = paths.libhocket(job.mpi)
    return [library, _open_mpi_agent(library)] if job.mpi == OPENMPI else [library]


def _open_mpi_agent(library: Path) -> Path:
    return library.parent / "hocket-preload"


def with_exports(command: Sequence[str], environment: dict[str, str]) -> list[str]:
    """Return the command; if it is srun's, and its options keep variables from the tasks, let hocket's pass.

    SLURM_EXPORT_ENV, which sbatch --export sets, is changed in the environment.
    """
    changed = list(command)
    if Path(command[0]).name != SRUN:
        return changed
    ours = sorted(name for name in environment if name == "LD_PRELOAD" or name.startswith("HOCKET_"))

    def let_pass(exported: str) -> str:
        words = [word for word in exported.split(",") if word]
        if not words or words[0].upper() == "ALL":
            return exported
        return ",".join([*(words if words[0].upper() not in ("NONE", "NIL") else []), *ours])

    program = _application(command[1:])[0]
    options = range(1, changed.index(program, 1) if program in changed[1:] else len(changed))
    for at in options:
        if changed[at] == "--export" and at + 1 in options:
            changed[at + 1] = let_pass(changed[at + 1])
        elif changed[at].startswith("--export="):
            changed[at] = "--export=" + let_pass(changed[at].partition("=")[2])
    if exported := environment.get("SLURM_EXPORT_ENV"):
        environment["SLURM_EXPORT_ENV"] = let_pass(exported)
    return changed


def _mpi_of_srun(command: Sequence[str]) -> str | None:
    """Return the MPI that fits srun's --mpi: where the program is a script, nothing else shows it."""
    if Path(command[0]).name != SRUN:
        return None
    given = [word.partition("=")[2] for word in command if word.startswith("--mpi=")]
    given += [after for word, after in pairwise(command) if word == "--mpi"]
    pmi = (given or [os.environ.get("SLURM_MPI_TYPE", "")])[0]
    return next((mpi for name, mpi in PMI_MPIS if pmi.startswith(name)), None)


def _before(library: Path, others: str) -> str:
    return f"{library}:{others}" if others else str(library)


def _with_library(arguments: Sequence[str], library: Path) -> list[str]:
    """Return MPICH's arguments with the library first in each LD_PRELOAD.

    Options and `env` that set LD_PRELOAD would override ours.
    """
    changed = list(arguments)
    for at, argument in enumerate(arguments):
        if argument.lstrip("-") in ("genv", "env") and argument.startswith("-") and at + 2 < len(arguments):
            if arguments[at + 1] == "LD_PRELOAD":
                changed[at + 2] = _before(library, arguments[at + 2])
        elif argument.startswith("LD_PRELOAD="):
            changed[at] = "LD_PRELOAD=" + _before(library, argument.partition("=")[2])
    return changed


def mpi_of_launcher(program: Path) -> str | None:
    """Return the MPI of a launcher by its version text.

    MPICH's launcher contains the text in its file: reading the file is faster than starting the launcher.
    """
    if has_text(program, HYDRA_WORDS):
        return MPICH
    import subprocess

    try:
        told = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=VERSION_LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = told.stdout + told.stderr
    return next((mpi for words, mpi in VERSION_WORDS if words in text), None)


def _mpi_of(elf: Elf | None) -> str | None:
    needed = elf.needed if elf else ()
    return next((mpi for library, mpi in LIBRARIES if library in needed), None)


def processes_of(command: Sequence[str]) -> int | None:
    """Return the number of processes that the options of a launcher ask for; None if they do not say.

    Each of several programs has its options: `-n 2 a : -n 6 b` (MPMD).
    """
    command = _behind_run(command)
    if not LAUNCHER.match(Path(command[0]).name):
        return None
    counts = [_count_in(_options_in(part)) for part in mpmd_parts(command)]
    return None if None in counts else sum(count for count in counts if count is not None)


def mpmd_parts(command: Sequence[str]) -> list[list[str]]:
    """Return the words behind a launcher, for each of its programs (`mpiexec -n 2 a : -n 6 b`)."""
    parts: list[list[str]] = [[]]
    for word in command[1:]:
        if word == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _options_in(part: list[str]) -> list[str]:
    """Return the launcher's options of one program."""
    program = _application(part)[0]
    return part[: part.index(program)] if program in part else part


def _count_in(options: list[str]) -> int | None:
    """Return the number of processes that the options of one program ask for; None if they do not say."""
    for word, following in pairwise([*options, ""]):
        found = COUNT_OPTION.match(word)
        count = (found[2] or following) if found else ""
        if count.isdecimal():
            return int(count)
    return None


def _application(arguments: Sequence[str]) -> tuple[str, Elf | None]:
    """Return the program among the arguments that is linked with MPI, else the first program, else ("", None)."""
    first: tuple[str, Elf | None] = ("", None)
    for at, argument in enumerate(arguments):
        found = _program_at(arguments, at)
        if found is None or Path(argument).name in WRAPPERS:
            continue
        elf = read_elf(Path(found))
        if _mpi_of(elf):
            return argument, elf
        if not first[0]:
            first = argument, elf
    return first


def _program_at(arguments: Sequence[str], at: int) -> str | None:
    """Return the path of the program that an argument names; None if it names none, or is an option."""
    if arguments[at].startswith("-") or (at and arguments[at - 1].lstrip("-") == "launcher-exec"):
        return None
    return shutil.which(arguments[at])


def _name(command: Sequence[str], application: str) -> str:
    """Return the name of a Python program's script or module, or of any other program's file."""
    name = Path(application or command[0]).name
    if name.startswith("python") and application in command:
        after = command[list(command).index(application) + 1 :]
        script = next((Path(word).stem for word in after if word.endswith(".py")), None)
        module = after[after.index("-m") + 1] if "-m" in after[:-1] else None
        return script or module or name
    return name


def _no_mpi(program: str, launcher: bool) -> str:
    if launcher:
        return f"cannot determine which MPI '{program}' starts; give --mpi mpich or --mpi openmpi"
    return (
        f"no MPI found: '{program}' is neither a launcher (mpiexec, mpirun) nor linked with MPICH or Open MPI; "
        "write 'hocket run -- mpiexec …', or give --mpi mpich or --mpi openmpi"
    )
