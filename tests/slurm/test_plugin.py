"""The SPANK plugin: each step of srun is an application of hocket, or runs as if there were no hocket."""

from __future__ import annotations

import random
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import hosts
import pytest
import runtime_kit as kit
from checkout import REPO
from cluster_kit import granted
from hocket import mpi as command
from host_cluster import TraceOnHost
from hosts import SHARED
from slurm_kit import PMI, environment_of, finish

pytestmark = pytest.mark.timeout(180)
LIMIT_S = 60
BUILD_ID = bytes((4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0)) + b"GNU\0"  # in front of the linker's checksum
HOLD = ("begin=1000", f"await={SHARED / 'go'}", "finish", "close")  # a grant that is held until the test says so
SHOW = ["sh", "-c", "env | grep -E '^(HOCKET_|LD_PRELOAD|SLURM_HOCKET)' | grep -v HOCKET_PREFIX | sort"]


def variables_of(run: kit.Run) -> dict[str, str]:
    """Return the variables that SHOW has printed."""
    return dict(line.partition("=")[::2] for line in run.out.splitlines())


def test_each_step_is_an_application(mpi: kit.Mpi, built: Callable[..., Path], start_nodes):
    """It has the names of Slurm, and `hocket ls` shows them and the node."""
    nodes = start_nodes("one")
    script = built("script.c")
    step = nodes.step(mpi, "-n2", script, f"open={SHARED / 'a'}", *HOLD)
    asked = nodes.story.awaits("HELLO", mpi=mpi.name)
    number = re.fullmatch(r"slurm:virtual:(\d+)\.0", asked["job"])[1]
    assert asked["application_asked"] == f"{script.name}-{number}.0" and asked["node"] == "one"
    nodes.story.awaits("GRANT_IO", application=f"{script.name}-{number}.0")
    listed = nodes.slurm.run([sys.executable, "-m", "hocket.cli", "ls"])
    assert re.search(rf"^{script.name}-{number}\.0 +{number}\.0 +one +io +2", listed.out, re.M), listed
    (nodes.store / "go").touch()
    run = finish(step)
    assert (run.code, run.out, run.err) == (0, "", "")
    assert (nodes.store / "a").read_bytes() == 1000 * b"A" + 1000 * b"B"


def test_jobs_on_two_nodes_take_turns(mpi: kit.Mpi, built: Callable[..., Path], start_nodes):
    nodes = start_nodes("one", "two")
    script, story = built("script.c"), nodes.story
    first = nodes.step(mpi, "-wone", "-n2", "--hocket-name=first", script, f"open={SHARED / 'a'}", *HOLD)
    story.awaits("GRANT_IO", application="first")
    second = nodes.step(
        mpi, "-wtwo", "-n2", "--hocket-name=second", script, f"open={SHARED / 'b'}", "write=1000", "close"
    )
    assert story.awaits("QUEUED_IO", application="second")["behind"] == "first"
    (nodes.store / "go").touch()
    for step in (first, second):
        run = finish(step)
        assert (run.code, run.out, run.err) == (0, "", "")
    story.awaits("FINISH_IO", application="second")
    assert [kind for kind, _ in granted(story, "first", "second")] == 2 * ["GRANT_IO", "FINISH_IO"]


def test_a_step_over_two_nodes_is_one_application(mpi: kit.Mpi, built: Callable[..., Path], start_nodes):
    nodes = start_nodes("one", "two")
    words = ["-N2", "-n4", "--hocket-name=wide", built("script.c"), f"open={SHARED / 'a'}", "write=1000", "close"]
    run = finish(nodes.step(mpi, *words))
    assert (run.code, run.out, run.err) == (0, "", "")
    nodes.story.awaits("FINISH_IO", application="wide")
    hello = nodes.story.all("HELLO", application_asked="wide")
    assert hello and {line["processes"] for line in hello} == {4} and len({line["job"] for line in hello}) == 1
    written = b"".join(1000 * bytes([letter]) for letter in b"ABCD")
    assert (nodes.store / "a").read_bytes() == written


def test_the_job_of_a_grant_is_cancelled(mpi: kit.Mpi, built: Callable[..., Path], start_nodes):
    """Its grant goes to the next one."""
    nodes = start_nodes("one", "two")
    script, story = built("script.c"), nodes.story
    first = nodes.step(mpi, "-wone", "-n2", "--hocket-name=first", script, f"open={SHARED / 'a'}", *HOLD)
    story.awaits("GRANT_IO", application="first")
    number = story.all("HELLO", application_asked="first")[0]["job"].split(":")[2].partition(".")[0]
    second = nodes.step(
        mpi, "-wtwo", "-n2", "--hocket-name=second", script, f"open={SHARED / 'b'}", "write=1000", "close"
    )
    story.awaits("QUEUED_IO", application="second")
    assert nodes.slurm.run(["scancel", number]).code == 0
    assert finish(first).code != 0
    run = finish(second)
    assert (run.code, run.out, run.err) == (0, "", "")
    lost, got = story.awaits("LOST", application="first"), story.awaits("GRANT_IO", application="second")
    assert lost["at"] < got["at"]


def test_a_step_of_several_programs_is_one_application(mpi: kit.Mpi, built: Callable[..., Path], start_nodes):
    """srun --multi-prog names a file. Each job of an array has the number that squeue shows."""
    nodes = start_nodes("one")
    script = built("script.c")
    parts = "".join(f"{rank} {script} open={SHARED / 'a'} write=1000 close\n" for rank in range(2))
    (nodes.store / "parts").write_text(parts)
    env = environment_of(mpi)
    step = f"srun --mpi={PMI[mpi.name]} -n2 --hocket-mpi={mpi.name} --multi-prog {SHARED / 'parts'}"
    batch = nodes.slurm.batch(step, "-n2", "--array=7", env=env)
    assert (batch.code, batch.out) == (0, ""), batch
    nodes.story.awaits("FINISH_IO")
    hello = nodes.story.all("HELLO")
    assert len({line["job"] for line in hello}) == 1 and hello[0]["processes"] == 2
    assert re.fullmatch(r"\w+-\d+_7\.0", hello[0]["application_asked"]), hello
    assert (nodes.store / "a").read_bytes() == 1000 * b"A" + 1000 * b"B"


def test_a_node_without_a_daemon_takes_part(mpi: kit.Mpi, built: Callable[..., Path], start_nodes):
    """The first node's agent has ended: rank 0 says that nobody answers. No rank waits for another."""
    nodes = start_nodes("one", "two")
    end = "kill $(cat /run/hocket/hocketd.lock) && while test -e /run/hocket/hocketd.sock; do sleep 0.01; done"
    assert nodes.slurm.hosts["one"].run(["sh", "-c", end]).code == 0
    words = ["-N2", "-n2", built("script.c"), f"open={SHARED / 'a'}", "write=1000", "close"]
    run = finish(nodes.step(mpi, *words))
    assert (run.code, run.out) == (0, "") and run.err.count("\n") == 1, run.err
    assert "no hocketd answers at /run/hocket/hocketd.sock" in run.err
    assert (nodes.store / "a").read_bytes() == 1000 * b"A" + 1000 * b"B"


def test_a_user_of_a_daemon_that_is_not_its_own(mpi: kit.Mpi, built: Callable[..., Path], start_slurm, prefix, plugin):
    """The plugin acts as the step's user, who may not write where the daemon does."""
    slurm = start_slurm("one", plugins=f"optional {plugin}\n")
    owner, user = 54320, 65534  # Slurm wants a user with a name
    host = slurm.first
    assert host.run(["sh", "-c", f"install -d -o {owner} -m 755 /run/hocket && chmod 711 /run/slurm"]).code == 0
    as_owner = ["setpriv", f"--reuid={owner}", f"--regid={owner}", "--clear-groups"]
    daemon = host.start([*as_owner, prefix / "bin/hocketd", "--dir", "/run/hocket", "--users", "all"])
    assert "listens on" in hosts.first_line(daemon, LIMIT_S)
    script = host.read(built("script.c"))
    host.write(Path("/run/program"), script)
    assert host.run(["chmod", "755", "/run/program"]).code == 0
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    words = ["srun", "-n2", f"--mpi={PMI[mpi.name]}", "/run/program", "open=/tmp/a", "begin=1000", "await=/run/go"]
    step = slurm.start([*become, *words, "finish", "close"], environment_of(mpi) | {"HOME": "/tmp"})
    story = TraceOnHost(host)
    name = story.awaits("HELLO")["application_asked"]
    assert re.fullmatch(r"program-\d+\.0", name)
    story.awaits("GRANT_IO")
    listed = host.run([sys.executable, "-m", "hocket.cli", "ls"])
    job = name.removeprefix("program-")
    assert re.search(rf"^{name} +nobody +{job} +io +2 ", listed.out, re.M), listed
    assert host.run(["touch", "/run/go"]).code == 0
    run = finish(step)
    assert (run.code, run.out, run.err) == (0, "", "")
    story.awaits("BYE")


# ---- steps that run as if there were no hocket ----------------------------------------------------------------------


def test_no_hocket(mpi: kit.Mpi, built: Callable[..., Path], start_nodes):
    """The option of srun, and of the job around it."""
    nodes = start_nodes("one")
    script = [built("script.c"), f"open={SHARED / 'a'}", "write=1000", "close"]
    assert variables_of(finish(nodes.step(mpi, *SHOW))).keys() >= {"HOCKET_JOB", "LD_PRELOAD"}
    assert finish(nodes.step(mpi, "--no-hocket", *SHOW)).out == ""
    run = finish(nodes.step(mpi, "-n2", "--no-hocket", *script))
    assert (run.code, run.out, run.err) == (0, "", "")
    batch = nodes.slurm.batch(f'srun --mpi=pmi2 {SHOW[0]} -c "{SHOW[2]}"', "--no-hocket")
    assert (batch.code, batch.out) == (0, "")
    assert not nodes.story.all("HELLO")


def test_a_step_without_mpi_stays_as_it_is(start_nodes):
    nodes = start_nodes("one", "two")
    for words in (SHOW, ["--mpi=pmi2", "--pty", "sh"], ["-N2", "hostname"], ["-N2", "--mpi=pmi2", "hostname"]):
        run = finish(nodes.slurm.srun(words))
        assert run.code in (0, 1) and "HOCKET" not in run.out and "hocket" not in run.err, run
    assert not nodes.story.all("HELLO")


def test_without_a_hocketd_nothing_happens(mpi: kit.Mpi, built: Callable[..., Path], start_slurm, plugin: Path):
    slurm = start_slurm("one", "two", plugins=f"optional {plugin}\n")
    for nodes in (1, 2):
        words = [f"-N{nodes}", "-n2", f"--mpi={PMI[mpi.name]}"]
        run = finish(slurm.srun([*words, *SHOW], environment_of(mpi)))
        assert (run.out, run.err) == ("", "")
        run = finish(
            slurm.srun([*words, built("script.c"), f"open={SHARED / 'a'}", "write=9", "close"], environment_of(mpi))
        )
        assert (run.code, run.out, run.err) == (0, "", "")


def libraries(directory: Path, **files: Path) -> str:
    """Make a directory with these libraries, and return it as a word of plugstack.conf."""
    directory.mkdir()
    for name, file in files.items():
        (directory / f"libhocket-{name}.so").symlink_to(file)
    return f"libraries={directory}"


@pytest.mark.parametrize("fault", ["absent", "other version", "other MPI", "no plugin"])
def test_one_node_has_another_libhocket(
    fault: str, mpi: kit.Mpi, built: Callable[..., Path], start_nodes, plugin: Path, built_programs
):
    """Ranks with libhocket would wait for those without for ever. So no rank gets it, and srun says why."""
    directory = built_programs[0] / f"libraries-{mpi.name}-{fault.replace(' ', '-')}"
    other = {"mpich": "openmpi", "openmpi": "mpich"}[mpi.name]
    if fault == "other version":
        changed = directory.with_suffix(".so")
        bytes_ = mpi.libhocket.read_bytes()
        at = bytes_.index(BUILD_ID) + len(BUILD_ID)
        changed.write_bytes(bytes_[:at] + b"another" + bytes_[at + 7 :])
        at = libraries(directory, **{mpi.name: changed})
    elif fault == "other MPI":
        at = libraries(directory, **{mpi.name: mpi.library / f"libhocket-{other}.so"})
    else:
        at = libraries(directory)
    healthy = f"optional {plugin} limit_s=2\n"
    plugins = {"adm": healthy, "one": healthy, "two": "" if fault == "no plugin" else f"{healthy.strip()} {at}\n"}
    nodes = start_nodes("one", "two", plugins=plugins)
    words = ["-N2", "-n2", built("script.c"), f"open={SHARED / 'a'}", "write=1000", "close"]
    run = finish(nodes.step(mpi, *words))
    assert (run.code, run.out) == (0, ""), run.err
    assert run.err.count("\n") == 1 and run.err.startswith("srun: hocket: "), run.err
    reason = {
        "absent": f"two: there is no {directory}/libhocket-{mpi.name}.so",
        "no plugin": "1 of 2 nodes did not say that they have libhocket",
    }.get(fault, "have different versions of libhocket")
    assert reason in run.err and "the step runs without hocket" in run.err
    assert (nodes.store / "a").read_bytes() == 1000 * b"A" + 1000 * b"B"
    assert not nodes.story.all("HELLO")


def test_srun_without_the_plugin_is_not_asked(mpi: kit.Mpi, built: Callable[..., Path], start_nodes, plugin: Path):
    """A login node lacks the line in plugstack.conf. Steps of one node need nobody's word."""
    stack = f"optional {plugin}\n"
    nodes = start_nodes("one", "two", plugins={"adm": "", "one": stack, "two": stack})
    script = [built("script.c"), f"open={SHARED / 'a'}", "write=1000", "close"]
    run = finish(nodes.step(mpi, "-N2", "-n2", *script))
    expected = "hocket: srun could not be asked if all nodes have libhocket; the step runs without hocket\n"
    assert (run.code, run.out, run.err) == (0, "", expected)
    assert not nodes.story.all("HELLO")
    run = finish(nodes.step(mpi, "-N1", "-n2", *script))
    assert (run.code, run.out, run.err) == (0, "", "")
    nodes.story.awaits("FINISH_IO")


def test_hocket_run_where_one_node_has_no_libhocket(
    mpi: kit.Mpi, built: Callable[..., Path], start_nodes, plugin: Path, prefix: Path, built_programs
):
    """`hocket run -- srun` has found it on its own node. The plugin takes it out of all ranks again."""
    elsewhere = built_programs[0] / "spank_hocket.so"
    if not elsewhere.exists():
        shutil.copy(plugin, elsewhere)
    nodes = start_nodes("one", "two", plugins=f"optional {elsewhere}\n")
    hide = ["mount", "-t", "tmpfs", "none", prefix / "lib" / "hocket"]
    assert nodes.slurm.hosts["two"].run(hide).code == 0
    step = [
        "srun",
        "-N2",
        "-n2",
        f"--mpi={PMI[mpi.name]}",
        built("script.c"),
        f"open={SHARED / 'a'}",
        "write=1000",
        "close",
    ]
    run = nodes.slurm.run([sys.executable, "-m", "hocket.cli", "run", "--", *step], environment_of(mpi))
    expected = f"srun: hocket: two: there is no {mpi.libhocket}; the step runs without hocket\n"
    assert (run.code, run.out, run.err) == (0, "", expected)
    assert (nodes.store / "a").read_bytes() == 1000 * b"A" + 1000 * b"B"


def test_a_node_alone_without_libhocket(mpi: kit.Mpi, built: Callable[..., Path], start_nodes, plugin: Path):
    nodes = start_nodes("one", plugins=f"optional {plugin} libraries=/run/none\n")
    run = finish(nodes.step(mpi, "-n2", built("script.c"), f"open={SHARED / 'a'}", "write=1000", "close"))
    expected = f"hocket: there is no /run/none/libhocket-{mpi.name}.so; the step runs without hocket\n"
    assert (run.code, run.out, run.err) == (0, "", expected)


def test_a_library_of_the_other_mpi_stands_aside(
    mpi: kit.Mpi, built: Callable[..., Path], start_nodes, plugin: Path, built_programs
):
    """It says so in one line, because only the running program shows it."""
    other = {"mpich": "openmpi", "openmpi": "mpich"}[mpi.name]
    at = libraries(built_programs[0] / f"wrong-{mpi.name}", **{mpi.name: mpi.library / f"libhocket-{other}.so"})
    nodes = start_nodes("one", plugins=f"optional {plugin} {at}\n")
    run = finish(nodes.step(mpi, "-n2", built("script.c"), f"open={SHARED / 'a'}", "write=1000", "close"))
    assert (run.code, run.out) == (0, "") and run.err.count("\n") == 1 and f"does not use {other}" in run.err, run


@pytest.mark.parametrize("mpi", ["mpich"], indirect=True)  # with pmix such steps hang at times, without any plugin
def test_a_heterogeneous_job_stays_as_it_is(mpi: kit.Mpi, built: Callable[..., Path], start_nodes):
    """Its components are several steps for Slurm, and one world for MPI."""
    nodes = start_nodes("one", "two")
    step = ["srun", "--het-group=0,1", f"--mpi={PMI[mpi.name]}", built("script.c"), f"open={SHARED / 'a'}"]
    words = ["salloc", "--quiet", "-N1", "-n1", ":", "-N1", "-n1", *step, "write=1000", "close"]
    run = nodes.slurm.run(words, environment_of(mpi))
    assert (run.code, run.out, run.err) == (0, "", "")
    assert not nodes.story.all("HELLO")
    assert (nodes.store / "a").read_bytes() == 1000 * b"A" + 1000 * b"B"


# ---- what the environment of tasks has ------------------------------------------------------------------------------


def test_what_the_user_has_set_stays(start_nodes, mpi: kit.Mpi):
    nodes = start_nodes("one")
    own = str(mpi.library / "hocket-preload")  # any file: the dynamic loader says that it is no library
    words = ["--hocket-name=mine", "--hocket-io=hocket", "--hocket-no-coordinate", "env"]
    run = finish(nodes.step(mpi, *words, env={"LD_PRELOAD": own, "HOCKET_MAX_WAIT_S": "7"}))
    told = variables_of(run)
    assert told["LD_PRELOAD"] == f"{mpi.libhocket}:{own}"
    assert (told["HOCKET_NAME"], told["HOCKET_IO"], told["HOCKET_COORDINATE"]) == ("mine", "hocket", "0")
    assert (told["HOCKET_MAX_WAIT_S"], told["HOCKET_SOCKET"]) == ("7", "/run/hocket/hocketd.sock")
    assert told["HOCKET_TARGET_NAMES"] == "/run/shared=shared" and "SLURM_HOCKET_STEP" not in told


def test_a_step_in_a_step_is_another_application(start_nodes, mpi: kit.Mpi):
    nodes = start_nodes("one")
    inner = f'srun --overlap --mpi=pmi2 {SHOW[0]} -c "{SHOW[2]}"'
    run = finish(nodes.step(mpi, "sh", "-c", inner, "script"))
    told = variables_of(run)
    assert told["HOCKET_JOB"].endswith(".1") and told["HOCKET_NAME"].endswith(".1"), run
    assert told["LD_PRELOAD"].count("libhocket") == 1


def test_processes_that_a_program_starts_belong_to_it(start_nodes, mpi: kit.Mpi):
    """Slurm starts them as a step of their own, and marks it.

    No program has asked for this one, so Slurm's plugin for PMI-2, which would tell that program, is left out: its srun
    crashes then, in most runs.
    """
    nodes = start_nodes("one")
    words = [mpi, "--mpi=none", f"--hocket-mpi={mpi.name}", *SHOW]
    of_another, mark = {"HOCKET_JOB": "slurm:c:1.0"}, {"SLURM_PMI2_SPAWN_SEQ": "1"}
    run = finish(nodes.step(*words, env=of_another | mark))
    assert variables_of(run).get("HOCKET_JOB") == "slurm:c:1.0", run
    run = finish(nodes.step(*words, env=of_another))
    assert variables_of(run)["HOCKET_JOB"].startswith("slurm:virtual:"), run


def test_export_does_not_matter(start_nodes, mpi: kit.Mpi):
    """srun --export=NONE keeps the user's variables from the tasks, not those of the plugin."""
    nodes = start_nodes("one", "two")
    run = finish(nodes.step(mpi, "-N2", "-n2", "--export=NONE", "/bin/sh", "-c", "/usr/bin/env", "script"))
    assert run.code == 0 and run.out.count("HOCKET_JOB=slurm:virtual:") == 2, run


ODD_VALUES = {
    "HOCKET_JOB": ("", "x", "slurm:", "slurm:c:1.0", "%s%n"),
    "HOCKET_SOCKET": ("", "relative", "/", "/run/hocket/hocketd.sock", 3000 * "/a"),
    "HOCKET_DIR": ("", "/", "relative", 5000 * "d"),
    "HOCKET_TARGET_NAMES": ("", "nonsense"),
    "LD_PRELOAD": ("", ":", "libhocket-mpich.so", "/run/none/libhocket-openmpi.so", 2000 * "libhocket-:", "/a b.so"),
    "PATH": ("", "::", "/usr/bin:/bin", 3000 * "/p:" + "/bin"),
    "SLURM_HOCKET_STEP": ("", "spawned", "0 x", "70000 0123456789abcdef", 3000 * "9"),
    "SLURM_CLUSTER_NAME": ("", 4000 * "c"),
}


def test_no_value_in_the_environment_stops_a_step(start_nodes):
    """Neither srun nor slurmstepd ends, whatever the user has set."""
    nodes = start_nodes("one", "two")
    chosen = random.Random(27)
    for round_ in range(24):
        env = {name: chosen.choice(values) for name, values in ODD_VALUES.items() if chosen.random() < 0.7}
        pairs = [f"{name}={value}" for name, value in env.items()]
        count = 1 + round_ % 2
        # The variables are those of srun alone: a wrong LD_PRELOAD would make its launchers complain, too.
        words = [
            "/usr/bin/env",
            *pairs,
            "/usr/bin/srun",
            f"-N{count}",
            "--mpi=pmi2",
            "/bin/sh",
            "-c",
            "echo ran",
            "script",
        ]
        run = finish(nodes.slurm.start(words))
        assert (run.code, run.out) == (0, count * "ran\n"), (env, run)


def test_mistakes_in_options_are_said(start_nodes):
    nodes = start_nodes("one")
    for option in ("--hocket-mpi=lam", "--hocket-io=none", "--hocket-name=a\nb"):
        run = finish(nodes.slurm.srun([option, "true"]))
        assert run.code != 0 and option.partition("=")[0] in run.err, run


def test_the_tables_of_the_plugin_are_those_of_the_command():
    source = (REPO / "src/tools/spank/program_mpi.c").read_text()

    def table(name: str) -> list[str]:
        body = re.search(rf"{name}\[\] = {{(.*?)}};", source, re.S)[1]
        return re.findall(r'"([^"]+)"', body)

    def pairs() -> list[tuple[str, str]]:
        body = re.search(r"} libraries\[\] = {(.*?)\n};", source, re.S)[1]
        return re.findall(r'{"([^"]+)", mpi_(\w+)}', body)

    assert tuple(pairs()) == command.LIBRARIES
    assert set(table("shells")) == command.SHELLS and set(table("wrappers")) == command.WRAPPERS
