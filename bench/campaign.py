"""`./dev bench campaign`: do all acknowledged bytes survive while components fail?

Each schedule is drawn from its seed: an MPI, ranks, I/O servers that write through or behind, and what happens to them,
to hocketd, to the storage, and to the ranks, and when. Seeds from 10,001 on may have data sets and two nodes, too. The
earlier ones keep the schedules that they had before these kinds were added. campaign.c is the application; it compares
every byte that it reads, and both files at the end, with a model. A schedule passes if nothing differs and nothing
hangs.

Schedules of this build that are in the results are not run again, so the campaign can be resumed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from both_mpis import environment, mpiexec
from hocket import paths
from hocket.process_group import signal_group

REPO = Path(__file__).resolve().parent.parent
SOURCE = Path(__file__).with_suffix(".c")
PREFIX = paths.prefix()
BIN = PREFIX / "bin"
HOCKET = Path(sys.prefix) / "bin" / "hocket"
HANG_S = 130  # campaign.c itself ends a call that takes longer than 100 s
STORAGE_MIB = 26  # of the file systems that are filled; both files together have 16
FIRST_OF_MORE_KINDS = 10_001  # the seeds from which on there are data sets and two nodes
DELAYS = ("200us", "2ms", "20ms")
# Each fault has a weight: how often it is drawn beside the others.
FAULTS = {
    "kill server": 4,
    "end server": 2,
    "stop server": 4,
    "kill hocketd": 2,
    "stop hocketd": 2,
    "drain server": 1,
    "add server": 2,
    "fill storage": 1,
    "kill ranks": 1,
}


@dataclass
class Fault:
    at_s: float
    kind: str
    server: str
    for_s: float  # until it is mended: the server is started again, or continues


@dataclass
class Schedule:
    """What one seed says."""

    seed: int
    mpi: str
    ranks: int
    servers: dict[str, list[str]]  # name: options
    faults: list[Fault] = field(default_factory=list)
    sets: bool = False  # the application exchanges data sets, too
    nodes: int = 1  # over which the ranks are dealt out, as MPICH sees it

    @property
    def sets_may_fail(self) -> bool:
        """True if a data set may be lost, or not be found: its server ends, or another one becomes its home."""
        return any(fault.kind not in ("fill storage", "kill ranks") for fault in self.faults)

    @property
    def fills(self) -> bool:
        return any(fault.kind == "fill storage" for fault in self.faults)

    @property
    def loses(self) -> bool:
        """True if data that servers hold may be lost, as docs/guarantees.md says."""
        behind = any("--write-behind" in options for options in self.servers.values())
        return behind and any(f.kind in ("kill server", "stop server", "fill storage") for f in self.faults)


def draw_schedule(seed: int, seconds: float) -> Schedule:
    draw = random.Random(seed)
    servers = {}
    behind = draw.random() < 0.6
    for name in ("s1", "s2", "s3", "s4")[: draw.choice((1, 2, 2, 3))]:
        options = ["--threads", str(draw.choice((1, 2, 4)))]
        if behind and draw.random() < 0.8:
            options.append("--write-behind")
        if draw.random() < 0.4:
            options += ["--inject", f"delay={draw.choice(DELAYS)}"]
        servers[name] = options
    schedule = Schedule(seed, draw.choice(("mpich", "mpich", "openmpi")), draw.choice((2, 3, 3, 4)), servers)
    for _ in range(draw.choice((0, 1, 1, 2, 3, 4))):
        kind = draw.choices(list(FAULTS), list(FAULTS.values()))[0]
        for_s = draw.choice((0.05, 0.3, 1.0, 3.0))
        if kind == "stop server" and draw.random() < 0.2:
            for_s = 15.0
        schedule.faults.append(Fault(draw.uniform(0.2, seconds), kind, draw.choice(list(servers)), for_s))
    schedule.faults.sort(key=lambda fault: fault.at_s)
    if seed >= FIRST_OF_MORE_KINDS:
        add_kinds(schedule)
    return schedule


def add_kinds(schedule: Schedule) -> None:
    """Draw data sets and nodes, by numbers of their own: what was drawn before stays as it is."""
    draw = random.Random(f"more kinds {schedule.seed}")
    schedule.sets = draw.random() < 0.85
    if schedule.mpi == "mpich" and draw.random() < 0.5:
        schedule.nodes = 2


class Site:
    """The processes and directories of one schedule."""

    def __init__(self, schedule: Schedule, directory: Path):
        self.schedule, self.directory = schedule, directory
        self.served = directory / "served"
        self.served.mkdir()
        self.mounted = False
        self.log = (directory / "log").open("ab")
        self.environment = environment(
            HOCKET_DIR=str(directory),
            XDG_DATA_HOME=str(directory),
            MPIR_CVAR_CH4_NETMOD="ofi" if schedule.nodes == 1 else "ucx",
            MPIR_CVAR_ENABLE_HEAVY_YIELD="1",
            OMPI_MCA_mpi_yield_when_idle="1",
            PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe",
        )
        self.processes: dict[str, subprocess.Popen] = {}
        self.job: subprocess.Popen | None = None
        self.lock = threading.RLock()
        self.closed = False

    def start(self, name: str, *command: object) -> None:
        with self.lock:
            if self.closed:
                return
            self.processes[name] = subprocess.Popen(
                [str(word) for word in command], env=self.environment, stdout=self.log, stderr=self.log
            )

    def start_hocketd(self) -> None:
        self.start("hocketd", BIN / "hocketd", "--dir", self.directory)

    def start_server(self, name: str) -> None:
        options = self.schedule.servers.get(name, ["--write-behind"] if self.schedule.loses else [])
        self.start(name, BIN / "hocket-server", "--name", name, "--dir", self.served, *options)

    def signal(self, name: str, number: int) -> None:
        process = self.processes.get(name)
        if process and process.poll() is None:
            process.send_signal(number)

    @staticmethod
    def has_ended(process: subprocess.Popen) -> bool:
        """Wait for the end of a process, a minute at most."""
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            return False
        return True

    def restart(self, name: str, number: int, after_s: float) -> None:
        """End a process by a signal, and start it again. Two faults may do so at the same time."""
        process = self.processes[name]
        self.signal(name, number)
        time.sleep(after_s)
        if not self.has_ended(process):
            return
        with self.lock:
            if self.processes[name] is not process:
                return  # the other fault has started it
            self.start_hocketd() if name == "hocketd" else self.start_server(name)

    def command(self, *words: str) -> None:
        subprocess.run([HOCKET, *words], env=self.environment, stdout=self.log, stderr=self.log, timeout=60)

    def mount(self) -> None:
        """Give the served files a small file system of their own, which can be filled."""
        words = ["mount", "-t", "tmpfs", "-o", f"size={STORAGE_MIB}m", "tmpfs", str(self.served)]
        self.mounted = subprocess.run(words, capture_output=True).returncode == 0

    def close(self) -> None:
        with self.lock:
            self.closed = True
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait(30)
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.served)], check=True)
        self.log.close()


def fill(site: Site, for_s: float) -> None:
    """Take all free bytes of the storage for that long. Without a file system of its own nothing is filled."""
    if not site.mounted:
        return
    ballast = site.served / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file:
            for _ in range(STORAGE_MIB * 16):
                file.write(bytes(1 << 16))
    except OSError:
        pass
    time.sleep(for_s)
    ballast.unlink(missing_ok=True)


def descendants(pid: int) -> list[int]:
    """Return a process, its children, theirs, and so on."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def kill_job(site: Site) -> None:
    """Kill the ranks and their launcher, which have the file's path as an argument."""
    path = str(site.served / "f").encode()
    for pid in descendants(site.job.pid) if site.job else []:
        with contextlib.suppress(OSError):
            if path in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)


def inflict(site: Site, fault: Fault) -> None:
    """Let one fault happen, and mend it after its time."""
    name = "hocketd" if "hocketd" in fault.kind else fault.server
    match fault.kind.split()[0]:
        case "kill" if fault.kind == "kill ranks":
            kill_job(site)
        case "kill":
            site.restart(name, signal.SIGKILL, fault.for_s)
        case "end":
            site.restart(name, signal.SIGTERM, fault.for_s)
        case "stop":
            site.signal(name, signal.SIGSTOP)
            time.sleep(fault.for_s)
            site.signal(name, signal.SIGCONT)
        case "drain":
            site.command("servers", "drain", name)
            time.sleep(fault.for_s)
            site.command("servers", "add", name)
        case "add":
            site.start_server(f"t{int(fault.at_s * 1000)}")
        case "fill":
            fill(site, fault.for_s)


def launch(site: Site, program: Path, seconds: float) -> subprocess.Popen:
    schedule = site.schedule
    words = [HOCKET, "run", "--io", "hocket", "--name", f"campaign-{schedule.seed}", "--"]
    words += [mpiexec(schedule.mpi), *(("-launcher", "fork", "-hosts", "n1,n2") if schedule.nodes == 2 else ())]
    words += ["-n", schedule.ranks, program, site.served / "f", site.directory / "table"]
    words += [schedule.seed, seconds]
    words += ["loses"] if schedule.loses else []
    words += ["fills"] if schedule.fills else []
    words += ["sets-may-fail" if schedule.sets_may_fail else "sets"] if schedule.sets else []
    return subprocess.Popen(
        [str(word) for word in words],
        env=site.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run(schedule: Schedule, programs: dict[str, Path], seconds: float) -> dict:
    """Run one schedule. The result has "ok", and what the job said."""
    directory = Path(tempfile.mkdtemp(prefix="hocket-campaign-", dir="/tmp"))
    site = Site(schedule, directory)
    began = time.monotonic()
    try:
        result = run_at(site, programs[schedule.mpi], seconds)
    finally:
        site.close()
    if result["ok"]:
        shutil.rmtree(directory, ignore_errors=True)
    else:
        result["log"] = str(directory / "log")
    return {"seed": schedule.seed, **result, "took_s": round(time.monotonic() - began, 1), "schedule": asdict(schedule)}


def run_at(site: Site, program: Path, seconds: float) -> dict:
    schedule = site.schedule
    if schedule.fills:
        site.mount()
    site.start_hocketd()
    time.sleep(0.3)
    for name in schedule.servers:
        site.start_server(name)
    time.sleep(0.5)
    job = site.job = launch(site, program, seconds)
    timers = [threading.Timer(fault.at_s, inflict, (site, fault)) for fault in schedule.faults]
    for timer in timers:
        timer.start()
    try:
        said, _ = job.communicate(timeout=seconds + HANG_S)
    except subprocess.TimeoutExpired:
        signal_group(job, signal.SIGKILL)
        said, _ = job.communicate()
        for timer in timers:
            timer.cancel()
        return {"ok": False, "why": "hangs", "said": findings(site) + said[-4000:]}
    for timer in timers:
        timer.join()
    return judge(site, program, job.returncode, said)


def findings(site: Site) -> str:
    """Return what ranks found wrong. A launcher may lose what an aborting job says, so they leave it in a file."""
    found = site.directory / "table.found"
    return found.read_text() if found.exists() else ""


def judge(site: Site, program: Path, code: int, said: str) -> dict:
    """Let the servers store what they hold, and compare the files."""
    killed = any(fault.kind == "kill ranks" for fault in site.schedule.faults)
    if found := findings(site):
        return {"ok": False, "why": "a rank has found a fault", "said": found + said[-4000:]}
    if code != 0 and not killed:
        return {"ok": False, "why": f"exit code {code}", "said": said[-4000:]}
    for name in [name for name in site.processes if name != "hocketd"]:
        site.signal(name, signal.SIGTERM)
        if not site.has_ended(site.processes[name]):
            return {"ok": False, "why": f"{name} does not end", "said": said[-4000:]}
    words = [str(word) for word in (program, "check", site.served / "f", site.directory / "table", site.schedule.seed)]
    checked = subprocess.run(words, capture_output=True, text=True, timeout=60)
    if checked.returncode != 0:
        return {"ok": False, "why": "another byte in the file", "said": checked.stderr + said[-4000:]}
    counts = [line for line in said.splitlines() if line.endswith(" unchecked")]
    return {"ok": True, "counts": counts[-1] if counts else "killed"}


def build_id() -> str:
    """Identify the build, and the program and schedules of the campaign."""
    parts = [BIN / "hocketd", BIN / "hocket-server", *sorted((PREFIX / "lib" / "hocket").glob("libhocket-*.so"))]
    parts += [Path(__file__), SOURCE]
    return hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()[:12]


def compile_programs(directory: Path, source: Path = SOURCE) -> dict[str, Path]:
    made = {}
    for mpi, compiler in (("mpich", "bin/mpicc"), ("openmpi", "openmpi/bin/mpicc")):
        made[mpi] = directory / f"campaign-{mpi}"
        words = [Path(sys.prefix) / compiler, "-O2", source, "-o", made[mpi]]
        words += [f"-I{REPO}/include", PREFIX / "lib" / "libhocket.so", f"-Wl,-rpath,{PREFIX}/lib"]
        subprocess.run([str(word) for word in words], check=True, timeout=60)
    return made


def seeds_of(text: str) -> set[int]:
    seeds: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds |= set(range(int(first), int(last or first) + 1))
    return seeds


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    seeds = "1-60,10001-10040"
    parser.add_argument("--seeds", type=seeds_of, default=seeds, help=f"the schedules, such as 7,12 ({seeds})")
    parser.add_argument("--seconds", type=float, default=6, help="the time that a job accesses its files")
    parser.add_argument("--jobs", type=int, default=3, help="schedules at a time")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no schedule after that time")
    parser.add_argument("--results", type=Path, default=REPO / "build" / "campaign.jsonl")
    arguments = parser.parse_args()
    build = build_id()
    lines = arguments.results.read_text().splitlines() if arguments.results.exists() else []
    done = [result for result in map(json.loads, lines) if result["build"] == build]
    results = [result for result in done if result["seed"] in arguments.seeds]
    todo = sorted(arguments.seeds - {result["seed"] for result in results})
    end = time.monotonic() + arguments.minutes * 60
    lock = threading.Lock()

    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(arguments.jobs) as pool:
        programs = compile_programs(Path(directory))

        def one(seed: int) -> None:
            if time.monotonic() > end:
                return
            result = run(draw_schedule(seed, arguments.seconds), programs, arguments.seconds)
            with lock:
                results.append({"build": build, **result})
                with arguments.results.open("a") as file:
                    file.write(json.dumps(results[-1]) + "\n")
                if not result["ok"]:
                    print(
                        f"bench: campaign: seed {seed}: {result['why']}; {result['log']}", file=sys.stderr, flush=True
                    )

        list(pool.map(one, todo))
    return report(results, len(arguments.seeds))


def report(results: list[dict], wanted: int) -> int:
    wrong = [result["seed"] for result in results if not result["ok"]]
    steps = sum(int(result["counts"].split()[0]) for result in results if result["ok"] and result["counts"] != "killed")
    line = {
        "bench": "campaign", "case": f"{len(results)} of {wanted} schedules", "value": len(wrong), "unit": "failed",
        "reference": 0, "ratio": 0, "bound": 0, "ok": not wrong, "steps": steps, "seeds": wrong[:20],
    }  # fmt: skip
    print(json.dumps(line))
    return 0 if not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
