"""hocket run: which MPI, which environment, whose exit code.

The launchers are stand-ins that print what they get. Real jobs under both MPIs are in test_run_mpi.py.
"""

from __future__ import annotations

import json
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hocket as hocket_package
import pytest
from hocket import daemon as daemon_module
from hocket.bus import Bus
from hocket.elf import read_elf
from hocket.errors import UsageError
from hocket.mpi import MPICH, OPENMPI, Job, ProgramNotFoundError, examine, preload, programs_of

pytestmark = pytest.mark.timeout(60)
HOCKET = (sys.executable, "-m", "hocket.cli")
LIMIT_S = 40
HYDRA = "HYDRA build details:\\n    Version:  5.0.2"
VERSIONS = {
    "hydra": (HYDRA, MPICH),
    "intel": ("Intel(R) MPI Library for Linux* OS, Version 2021.13", MPICH),
    "ompi4": ("mpirun (Open MPI) 4.1.4", OPENMPI),
    "ompi4-ort": ("mpiexec.openmpi (OpenRTE) 4.1.4", OPENMPI),
    "prrte": ("prterun (PRRTE) 3.0.14", OPENMPI),
}
TELL = """#!{python}
import json, os, sys
if sys.argv[1:] == ["--version"]:
    print("{version}")
    sys.exit(0)
print(json.dumps({{"argv": sys.argv, "env": dict(os.environ)}}))
"""


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def launcher(folder: Path, version: str, name: str = "mpiexec") -> Path:
    folder.mkdir(exist_ok=True)
    return script(folder / name, TELL.format(python=sys.executable, version=version))


@pytest.fixture
def fake_prefix(tmp_path: Path, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prefix with the real hocketd, in which the libraries are empty files."""
    root = tmp_path / "prefix"
    (root / "bin").mkdir(parents=True)
    (root / "lib/hocket").mkdir(parents=True)
    (root / "bin/hocketd").symlink_to(prefix / "bin/hocketd")
    for name in ("libhocket-mpich.so", "libhocket-openmpi.so", "hocket-preload"):
        (root / "lib/hocket" / name).touch()
    monkeypatch.setenv("HOCKET_PREFIX", str(root))
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    return root


@pytest.fixture
def stop_daemon(hocket_dir: Path) -> Iterator[None]:
    yield
    daemon_module.stop()


def hocket(*arguments: object, **more) -> subprocess.CompletedProcess[str]:
    words = [str(argument) for argument in arguments]
    return subprocess.run([*HOCKET, *words], capture_output=True, text=True, timeout=LIMIT_S, **more)


# ---- what it costs ------------------------------------------------------------------------------------------------


def test_imports_nothing_that_it_does_not_need(hocket_dir):
    """Each import here delays the start of each application."""
    program = "import sys; from hocket.cli import main; main(['run', '--name', 'a', '--']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT_S)
    modules = set(done.stdout.split())
    assert {name for name in modules if name.startswith("hocket.verbs.")} == {"hocket.verbs.run"}
    slow = {"dataclasses", "inspect", "json", "msgpack", "subprocess", "tempfile", "typing"}
    assert "hocket.mpi" in modules and not modules & slow


def test_the_list_of_verbs_is_whole():
    done = hocket("--help")
    listed = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("    ") and line[4] != " "}
    folder = Path(hocket_package.__file__).parent / "verbs"
    assert listed == {path.stem for path in folder.glob("*.py")} - {"__init__"}
    wrong = hocket("no-such-verb")
    assert (wrong.returncode, wrong.stderr.count("'no-such-verb' (choose from 'run', 'resize'")) == (2, 1)


# ---- which MPI ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flavour", VERSIONS)
def test_a_launcher_tells_its_mpi(tmp_path, flavour):
    version, expected = VERSIONS[flavour]
    job = examine([str(launcher(tmp_path / flavour, version)), "-n", "2", "./app"])
    assert (job.mpi, job.launcher) == (expected, True)


def elf(path: Path, *needed: str, static: bool = False) -> Path:
    """Build a real program linked with libraries of these names."""
    source = path.with_suffix(".c")
    source.write_text("int main(void) { return 0; }\n")
    flags = ["-static"] if static else []
    libraries = []
    for name in needed:
        library = path.parent / name
        subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", library, f"-Wl,-soname,{name}"], check=True)
        libraries.append(library)
    subprocess.run(["gcc", source, "-o", path, *flags, "-Wl,--no-as-needed", *libraries], check=True)
    return path


def test_a_launcher_with_the_words_in_its_file_is_not_started(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "main.c"
    source.write_text('#include <stdio.h>\nint main(void) { fopen("started", "w"); puts("HYDRA build details"); }\n')
    subprocess.run(["gcc", source, "-o", tmp_path / "mpiexec"], check=True)
    job = examine([str(tmp_path / "mpiexec"), "-n", "2", "./app"])
    assert (job.mpi, job.launcher) == (MPICH, True)
    assert not Path("started").exists()


@pytest.mark.parametrize(
    ("library", "mpi"), [("libmpi.so.12", MPICH), ("libmpich.so.12", MPICH), ("libmpi.so.40", OPENMPI)]
)
def test_where_the_launcher_does_not_tell_the_program_does(tmp_path, library, mpi):
    app = elf(tmp_path / "app", library)
    assert library in read_elf(app).needed
    job = examine([str(launcher(tmp_path / "l", "some launcher 1.0")), "-n", "2", "env", "A=1", str(app)])
    assert (job.mpi, job.launcher, job.name) == (mpi, False, "app")
    assert examine([str(app)]).mpi == mpi


def test_no_elf_is_none(tmp_path):
    (tmp_path / "short").write_bytes(b"\x7fELF\x02\x01")
    assert read_elf(tmp_path / "short") is None
    assert read_elf(tmp_path / "absent") is None
    assert read_elf(Path(__file__)) is None


def test_static_and_mismatched_programs_are_told(tmp_path):
    hydra = launcher(tmp_path / "h", HYDRA)
    static = elf(tmp_path / "static", static=True)
    assert [w for w in examine([str(hydra), str(static)]).warnings if "statically linked" in w]
    other = elf(tmp_path / "other", "libmpi.so.40")
    mismatched = examine([str(hydra), str(other)])
    assert [w for w in mismatched.warnings if "built with openmpi" in w]
    assert preload(mismatched, {}) == (mismatched.command, {}), "it gets no libhocket"
    assert examine([str(hydra), str(elf(tmp_path / "right", "libmpi.so.12"))]).warnings == []


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["-n", "4", "./solver", "in.txt"], "solver"),
        (["-n", "4", "python3", "-u", "heat.py"], "heat"),
        (["-n", "4", "python3", "-m", "heat3d", "x"], "heat3d"),
        (["-n", "1", "env", "A=b", "./solver"], "solver"),
        (["-launcher-exec", "./start", "-n", "1", "./solver"], "solver"),
        (["-n", "2", "./not-there"], "mpiexec"),
    ],
)
def test_an_application_is_named_after_its_program(tmp_path, monkeypatch, arguments, name):
    launcher(tmp_path, HYDRA)
    for program in ("solver", "start"):
        script(tmp_path / program, "#!/bin/sh\n")
    monkeypatch.chdir(tmp_path)
    assert examine(["./mpiexec", *arguments]).name == name


def test_srun_starts_programs_of_each_mpi(tmp_path, monkeypatch):
    """The program's file shows which; a script leaves that to --mpi, or to what srun takes for it."""
    launcher(tmp_path, "slurm 22.05", "srun")
    script(tmp_path / "solver", "#!/bin/sh\n")
    elf(tmp_path / "linked", "libmpi.so.40")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_MPI_TYPE", "pmix_v4")
    for words, expected in (
        (["--mpi=pmi2", "-n", "2", "./solver"], (MPICH, "solver")),
        (["--mpi", "pmix", "./solver"], (OPENMPI, "solver")),
        (["-n", "2", "python3", "heat.py"], (OPENMPI, "heat")),
        (["--mpi=pmi2", "./linked"], (OPENMPI, "linked")),
    ):
        job = examine(["./srun", *words])
        assert (job.mpi, job.name, job.launcher) == (*expected, False), words
    monkeypatch.delenv("SLURM_MPI_TYPE")
    with pytest.raises(UsageError, match="no MPI found"):
        examine(["./srun", "./solver"])
    assert programs_of(["srun", "-n", "2", "./solver"]) == ["srun", "./solver"]


# ---- how the ranks get libhocket ----------------------------------------------------------------------------------


def job_of(mpi: str, *arguments: str, is_launcher: bool = True) -> Job:
    return Job(["mpiexec", *arguments], Path("/usr/bin/mpiexec"), mpi, is_launcher, "app")


def test_mpich_gets_an_option_and_open_mpi_an_agent(fake_prefix):
    lib = fake_prefix / "lib/hocket"
    how = preload(job_of(MPICH, "-n", "2", "./app"), {})
    assert how.command == ["mpiexec", "-genv", "LD_PRELOAD", f"{lib}/libhocket-mpich.so", "-n", "2", "./app"]
    assert how.environment == {}
    how = preload(job_of(OPENMPI, "-n", "2", "./app"), {})
    assert how.command == ["mpiexec", "-n", "2", "./app"]
    agent = f"{lib}/hocket-preload"
    assert how.environment == {"PRTE_MCA_odls_base_exec_agent": agent, "OMPI_MCA_orte_fork_agent": agent}
    how = preload(job_of(OPENMPI, is_launcher=False), {})
    assert how.environment == {"LD_PRELOAD": f"{lib}/libhocket-openmpi.so"}


def test_an_ld_preload_that_is_there_stays_behind_ours(fake_prefix):
    ours = f"{fake_prefix}/lib/hocket/libhocket-mpich.so"
    there = {"LD_PRELOAD": "/opt/darshan.so:/opt/b.so"}
    assert preload(job_of(MPICH, "./app"), there).command[3] == f"{ours}:/opt/darshan.so:/opt/b.so"
    told = preload(job_of(MPICH, is_launcher=False), there).environment
    assert told == {"LD_PRELOAD": f"{ours}:/opt/darshan.so:/opt/b.so"}
    for given in (["-genv", "LD_PRELOAD", "/x.so"], ["-env", "LD_PRELOAD", "/x.so"], ["env", "LD_PRELOAD=/x.so"]):
        command = preload(job_of(MPICH, *given, "./app"), {}).command[4:]
        assert command == [word.replace("/x.so", f"{ours}:/x.so") for word in [*given, "./app"]]


def test_an_agent_that_is_there_is_started_by_ours(fake_prefix):
    there = {"OMPI_MCA_orte_fork_agent": "/opt/tool"}
    told = preload(job_of(OPENMPI, "./app"), there).environment
    assert told["OMPI_MCA_orte_fork_agent"] == f"{fake_prefix}/lib/hocket/hocket-preload /opt/tool"


# ---- the whole command --------------------------------------------------------------------------------------------


def test_the_environment_of_a_job(fake_prefix, hocket_dir, tmp_path, stop_daemon):
    mpiexec = launcher(tmp_path / "bin", HYDRA)
    done = hocket("run", "--name", "jacobi-a", "--no-coordinate", "--", mpiexec, "-n", "2", "app", "x y", "--", "*")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["argv"][1:] == [
        "-genv",
        "LD_PRELOAD",
        f"{fake_prefix}/lib/hocket/libhocket-mpich.so",
        *("-n", "2", "app", "x y", "--", "*"),
    ]
    env = told["env"]
    assert env["HOCKET_SOCKET"] == str(hocket_dir / "hocketd.sock")
    assert (env["HOCKET_NAME"], env["HOCKET_COORDINATE"]) == ("jacobi-a", "0")
    assert "LD_PRELOAD" not in env  # of the launcher itself
    assert "HOCKET_IO" not in env
    again = json.loads(hocket("run", "--io", "hocket", mpiexec, "app").stdout)
    assert again["env"]["HOCKET_JOB"] != env["HOCKET_JOB"]
    assert again["env"]["HOCKET_IO"] == "hocket"
    assert again["env"]["HOCKET_NAME"] == "mpiexec"
    assert "HOCKET_COORDINATE" not in again["env"]


def test_two_runs_share_one_daemon_and_it_ends_by_itself(fake_prefix, hocket_dir, tmp_path, stop_daemon):
    mpiexec = launcher(tmp_path / "bin", HYDRA)
    runs = [
        subprocess.Popen([*HOCKET, "run", "--", mpiexec, "app"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for run in runs:
        _, stderr = run.communicate(timeout=LIMIT_S)
        assert (run.returncode, stderr) == (0, b"")
    with Bus.connect() as bus:
        pid = bus.list().daemon["pid"]
    options = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    assert options[options.index(b"--exit-when-idle") + 1] == b"30"
    assert len(list((hocket_dir / "traces").iterdir())) == 1


def test_a_relative_runtime_directory_is_that_of_the_caller(fake_prefix, hocket_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("HOCKET_DIR", hocket_dir.name)
    monkeypatch.chdir(hocket_dir.parent)
    done = hocket("run", "--", launcher(tmp_path / "bin", HYDRA), "app")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["env"]["HOCKET_SOCKET"] == str(hocket_dir / "hocketd.sock")
    assert daemon_module.stop()


def test_output_input_and_exit_code_are_the_programs(fake_prefix, tmp_path, stop_daemon):
    body = f"""#!/bin/sh
[ "$1" = --version ] && {{ echo "{HYDRA}"; exit 0; }}
cat; echo out; echo err >&2; exit 42
"""
    done = hocket("run", "--", script(tmp_path / "mpiexec", body), "app", input="in\n")
    assert (done.returncode, done.stdout, done.stderr) == (42, "in\nout\n", "err\n")


@pytest.mark.parametrize("spawn", ["merge", "baseline"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGPIPE])
def test_death_by_a_signal_is_seen_as_without_hocket(fake_prefix, tmp_path, stop_daemon, monkeypatch, number, spawn):
    """A shell reports 128 + n, as it does without hocket: the signal ends the process that the shell started."""
    monkeypatch.setenv("HOCKET_SPAWN", spawn)
    body = f"""#!/bin/sh
[ "$1" = --version ] && {{ echo "{HYDRA}"; exit 0; }}
kill -{int(number)} $$
"""
    mpiexec = script(tmp_path / "mpiexec", body)
    done = hocket("run", "--", mpiexec, "app")
    assert done.returncode == -number
    line = f"{sys.executable} -m hocket.cli run -- {mpiexec} app; echo code $?"
    shell = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=LIMIT_S)
    assert shell.stdout == f"code {128 + number}\n"


@pytest.mark.parametrize("spawn", ["merge", "baseline"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_launcher(fake_prefix, tmp_path, stop_daemon, monkeypatch, number, spawn):
    monkeypatch.setenv("HOCKET_SPAWN", spawn)
    body = f"""#!{sys.executable}
import signal, sys
if sys.argv[1:] == ["--version"]:
    print("{HYDRA}"); sys.exit(0)
signal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}])  # one that comes before the wait is not lost
print("ready", flush=True)
signal.sigwait([{int(number)}])
sys.exit(7)
"""
    mpiexec = script(tmp_path / "mpiexec", body)
    run = subprocess.Popen([*HOCKET, "run", "--", mpiexec, "app"], stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    run.send_signal(number)
    assert run.wait(LIMIT_S) == 7
    run.stdout.close()


def test_the_launcher_has_no_child_that_it_did_not_start(fake_prefix, tmp_path, stop_daemon):
    body = f"""#!/bin/sh
[ "$1" = --version ] && {{ echo "{HYDRA}"; exit 0; }}
cat /proc/$$/task/$$/children
"""
    done = hocket("run", "--", script(tmp_path / "mpiexec", body), "app")
    assert len(done.stdout.split()) == 1, done.stdout  # the `cat` itself


def test_policy_of_a_running_daemon_is_set_and_told(fake_prefix, tmp_path, start_daemon):
    start_daemon("--policy", "fcfs")
    mpiexec = launcher(tmp_path / "bin", HYDRA)
    assert hocket("run", "--policy", "fcfs", "--", mpiexec, "app").stderr == ""
    told = hocket("run", "--policy", "interfere", "--", mpiexec, "app")
    assert (told.returncode, told.stderr.count("\n")) == (0, 1)
    assert told.stderr.startswith("hocket: the policy is interfere now, for all applications of this daemon")
    with Bus.connect() as bus:
        assert bus.list().daemon["policy"] == "interfere"
    told = hocket("run", "--metric", "io-time", "--", mpiexec, "app")
    assert told.stderr.startswith("hocket: the metric is io-time now, for all applications of this daemon")
    wrong = hocket("run", "--policy", "fcfss", "--", mpiexec, "app")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "fcfs" in wrong.stderr


def test_trace_goes_where_it_is_asked_for(fake_prefix, hocket_dir, tmp_path, stop_daemon):
    mpiexec = launcher(tmp_path / "bin", HYDRA)
    assert hocket("run", "--trace", "here.jsonl", "--", mpiexec, "app", cwd=tmp_path).stderr == ""
    assert "hocket_trace" in (tmp_path / "here.jsonl").read_text()
    told = hocket("run", "--trace", "there.jsonl", "--", mpiexec, "app", cwd=tmp_path)
    assert told.stderr.startswith(f"hocket: a daemon runs already, its trace is {tmp_path}/here.jsonl")


@pytest.mark.parametrize("broken", ["no hocketd", "directory", "library", "socket", "long path", "no directory"])
def test_without_a_daemon_the_job_runs_with_one_warning(fake_prefix, hocket_dir, tmp_path, monkeypatch, broken):
    if broken == "no hocketd":
        (fake_prefix / "bin/hocketd").unlink()
    elif broken == "directory":
        hocket_dir.chmod(0o777)
    elif broken == "library":
        (fake_prefix / "lib/hocket/libhocket-mpich.so").unlink()
    elif broken == "socket":
        (hocket_dir / "hocketd.sock").mkdir()
    elif broken == "long path":
        monkeypatch.setenv("HOCKET_DIR", str(tmp_path / ("x" * 108)))
    else:
        monkeypatch.setenv("HOCKET_DIR", "/proc/hocket")
    done = hocket("run", "--", launcher(tmp_path / "bin", HYDRA), "-n", "1", "app")
    assert done.returncode == 0
    assert json.loads(done.stdout)["argv"][1:] == ["-n", "1", "app"]
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.endswith("; the application runs uncoordinated\n")
    assert done.stderr.count("hocketd:") == 0, done.stderr
    assert ("must have 1 to 107 bytes" in done.stderr) == (broken == "long path")
    if broken == "library":
        daemon_module.stop()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "hocket: no command given; write 'hocket run -- mpiexec -n 4 ./app'\n"),
        (["--"], 2, "hocket: no command given"),
        (["--", "not-there", "x"], 127, "hocket: not-there: no such program; is it in PATH?\n"),
        (["--", "ls", "-l"], 2, "hocket: no MPI found: 'ls' is neither a launcher"),
        (["--", "./mpirun", "-n", "2", "ls"], 2, "hocket: cannot determine which MPI './mpirun' starts; give --mpi"),
        (["--nonsense", "--", "ls"], 2, "hocket: "),
        (["--name", "a\nb", "--", "ls"], 2, "hocket: --name 'a\\nb': a name has no line breaks"),
        (["--mpi", "lam", "--", "ls"], 2, "hocket: argument --mpi: invalid choice: 'lam'"),
    ],
)
def test_wrong_calls_are_one_line(fake_prefix, hocket_dir, tmp_path, arguments, code, message):
    launcher(tmp_path, "who knows 1.0", "mpirun")
    done = hocket("run", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1), done.stderr
    assert done.stderr.startswith(message)
    assert not (hocket_dir / "hocketd.sock").exists()


def test_a_program_that_cannot_be_started(fake_prefix, tmp_path, stop_daemon):
    bad = script(tmp_path / "app", "#!/not/there\n")
    done = hocket("run", "--mpi", "mpich", "--", bad)
    assert (done.returncode, done.stdout) == (127, "")
    assert "cannot be started" in done.stderr


def test_a_path_that_the_loader_cannot_take(fake_prefix, tmp_path, monkeypatch, stop_daemon):
    odd = tmp_path / "with space"
    shutil.copytree(fake_prefix, odd, symlinks=True)
    monkeypatch.setenv("HOCKET_PREFIX", str(odd))
    done = hocket("run", "--", launcher(tmp_path / "bin", HYDRA), "app")
    assert done.returncode == 0
    assert "has a space or a colon in its path" in done.stderr


def test_program_not_found_error_is_127():
    with pytest.raises(ProgramNotFoundError):
        examine(["/not/there/mpiexec"])
    assert ProgramNotFoundError.exit_code == 127


# ---- malleable ----------------------------------------------------------------------------------------------------


def malleable(*arguments: object, **more) -> dict:
    """Return what the launcher gets from `hocket run --malleable ARGUMENTS`."""
    ran = hocket("run", "--malleable", *arguments, **more)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_a_malleable_program_starts_with_one_process(tmp_path, fake_prefix, stop_daemon, monkeypatch):
    monkeypatch.delenv("MPIR_CVAR_CH4_NETMOD", raising=False)
    mpiexec = launcher(tmp_path / "l", HYDRA)
    got = malleable("-n", "4", "--", mpiexec, "-genv", "A", "1", "true", "-n", "7")
    rest = got["argv"][got["argv"].index("-n") :]
    assert rest == ["-n", "1", "-genv", "A", "1", "true", "-n", "7"], "what is the program's stays as it is"
    assert got["env"]["HOCKET_PROCESSES"] == "4"
    assert got["env"]["MPIR_CVAR_CH4_NETMOD"] == "ofi"
    monkeypatch.setenv("MPIR_CVAR_CH4_NETMOD", "ucx")
    assert malleable("-n", "4", "--", mpiexec, "true")["env"]["MPIR_CVAR_CH4_NETMOD"] == "ucx"


def test_a_malleable_program_of_open_mpi_may_grow_beyond_the_slots(tmp_path, fake_prefix, stop_daemon):
    got = malleable("-n", "4", "--", launcher(tmp_path / "l", VERSIONS["ompi4"][0]), "true")
    assert got["argv"][1:] == ["-n", "1", "true"]
    assert got["env"]["PRTE_MCA_rmaps_default_mapping_policy"] == ":oversubscribe"
    assert "MPIR_CVAR_CH4_NETMOD" not in got["env"]


def test_without_malleable_nothing_changes(tmp_path, fake_prefix, stop_daemon):
    told = json.loads(hocket("run", "--", launcher(tmp_path / "l", HYDRA), "-n", "2", "true").stdout)
    assert told["argv"][-3:] == ["-n", "2", "true"]
    assert "HOCKET_PROCESSES" not in told["env"]


@pytest.mark.parametrize(
    ("options", "behind", "why"),
    [
        (["--malleable", "-n", "4"], ["-n", "2"], "'-n' of mpiexec sets the number of processes"),
        (["--malleable", "-n", "4"], ["--np", "2"], "'--np' of mpiexec sets the number of processes"),
        (["--malleable"], [], "--malleable: -n is missing"),
        (["--malleable", "-n", "0"], [], "--malleable: -n 0"),
        (["-n", "4"], [], "-n belongs to --malleable"),
    ],
)
def test_a_wrong_malleable_call_is_one_line(tmp_path, hocket_dir, options, behind, why):
    ran = hocket("run", *options, "--", launcher(tmp_path / "l", HYDRA), *behind, "true")
    assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1)
    assert why in ran.stderr


def test_malleable_needs_a_launcher_that_is_known(tmp_path, hocket_dir):
    ran = hocket("run", "--malleable", "-n", "2", "--mpi", "mpich", "--", "true")
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
    assert "--malleable needs mpiexec or mpirun" in ran.stderr
