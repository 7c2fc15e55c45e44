"""GekkoFWD's Fig. 9: the queue of 14 jobs on 96 nodes with 12 I/O servers, under four policies.

`hocket workload` runs it in the simulator at the paper's size (scenarios/workloads/gekkofwd-paper-size.toml), and live
and small (gekkofwd-queue.toml beside it), with the curves of Fig. 5.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from hocket.arbitration.jobs import MB
from hocket.errors import HocketError

from reproduce import plots
from reproduce.figure import Finding, Options, Results, Value, agreement, near
from reproduce.gekkofwd_applications import MEMORY, QUEUE, applications
from reproduce.gekkofwd_live import kept_in

POLICIES, RUNS = ("one", "static", "size", "mckp"), 5
PAPER_SIZE = QUEUE.with_name("gekkofwd-paper-size.toml")
PAPER, PAPER_GAIN = {"static": 8410.0, "mckp": 16020.0}, 1.9  # MB/s
PAPER_JOBS = {("static", "HACC"): 987.3, ("mckp", "HACC"): 3850.7, ("static", "POSIX-L"): 1963.9}  # MB/s
LEAST_GAIN = 1.3


def make_simulated(_: Options) -> Results:
    if not PAPER_SIZE.exists():
        raise HocketError(f"there is no {PAPER_SIZE}")
    with tempfile.TemporaryDirectory(prefix="hocket-reproduce-") as output:
        return _workload([PAPER_SIZE, "--simulate", "--output", output])


def make_live(_: Options) -> Results:
    applications()
    curves = kept_in("explored-applications") / "curves.toml"
    with tempfile.TemporaryDirectory(prefix="hocket-reproduce-", dir=MEMORY) as files:
        how = ["--curves", curves, "--dir", files, "--repeat", RUNS, "--output", kept_in("queue")]
        return _workload([QUEUE, *how])


def _workload(words: Sequence[object]) -> Results:
    how = ["--fifo", "--arbitrate", ",".join(POLICIES), "--json"]
    command = [sys.executable, "-m", "hocket.cli", "workload", *map(str, words), *how]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise HocketError(f"hocket workload ended with {done.returncode}; its message is above")
    return json.loads(done.stdout)


def _whole(results: Results) -> dict[str, float]:
    return {one["policy"]: one["bytes_per_s"]["mean"] / MB for one in results["policies"]}


def rate_of(results: Results, policy: str, job: str) -> float:
    """Return the MB/s of a job under a policy, the mean of its runs."""
    one = next(each for each in results["policies"] if each["policy"] == policy)
    return fmean(each["bytes_per_s"] / MB for run in one["runs"] for each in run["jobs"] if each["name"] == job)


def judge_simulated(results: Results) -> Finding:
    whole = _whole(results)
    gain = whole["mckp"] / whole["static"]
    values = [
        Value("MCKP / STATIC", "x", PAPER_GAIN, gain),
        *(Value(f"{one.upper()}: bandwidth of all jobs", "MB/s", PAPER.get(one), whole[one]) for one in whole),
        *(
            Value(f"{job} under {policy.upper()}", "MB/s", paper, rate_of(results, policy, job))
            for (policy, job), paper in PAPER_JOBS.items()
        ),
    ]
    verdict = (
        "Nodes, bytes and the order of the queue are the paper's, and so are the 12 points of the curves that its text "
        "has; the other 24 are assumed. They decide the gain: the paper's MCKP gives POSIX-L two servers for 90 % of "
        "its time. The simulator has no cost of a change, and no two applications slow each other down."
    )
    return Finding(tuple(values), agreement([_mckp_is_best(whole), near(gain, PAPER_GAIN)]), verdict)


def judge_live(results: Results) -> Finding:
    whole = _whole(results)
    foreseen = {one["policy"]: one["predicted"]["bytes_per_s"] / MB for one in results["policies"]}
    gain = whole["mckp"] / whole["static"]
    values = [
        Value("MCKP / STATIC", "x", PAPER_GAIN, gain),
        Value("… as the curves predict", "x", None, foreseen["mckp"] / foreseen["static"]),
        *(Value(f"{one.upper()}: bandwidth of all jobs", "MB/s", None, whole[one]) for one in whole),
        *(Value(f"{one.upper()}: beside the prediction", "x", None, whole[one] / foreseen[one]) for one in whole),
    ]
    verdict = (
        f"The queue is the paper's, with its nodes; bytes and bandwidth are scaled. MCKP gains {gain:.2f} over STATIC. "
        "How much it gains depends on how much applications differ in what a further server is worth to them: here "
        "they differ by their pauses and by how many processes do I/O, in the paper by how Lustre takes their accesses."
    )
    return Finding(tuple(values), agreement([_mckp_is_best(whole), gain >= LEAST_GAIN]), verdict)


def _mckp_is_best(whole: dict[str, float]) -> bool:
    return max(whole, key=whole.__getitem__) == "mckp"


def draw(results: Results, path: Path) -> None:
    """Draw each job's bandwidth, stacked, and the sum that the curves predict; the mean of the runs."""
    with plots.picture(path, 1, height=4.6) as (axis,):
        names = [one["name"] for one in results["queue"]]
        kinds = sorted({one["job"] for one in results["queue"]})
        for at, policy in enumerate(results["policies"]):
            left = 0.0
            for name, queued in zip(names, results["queue"], strict=True):
                rate = rate_of(results, policy["policy"], name)
                colour = plots.colour(kinds.index(queued["job"]))
                axis.barh(at, rate, 0.6, left=left, color=colour, edgecolor="white", linewidth=0.8)
                left += rate
            predicted = policy["predicted"]["bytes_per_s"] / MB
            right = max(left, predicted)
            axis.annotate(f"{left:.0f}", (right, at), (4, 0), textcoords="offset points", va="center", fontsize=9)
            axis.plot([predicted] * 2, [at - 0.4, at + 0.4], color=plots.PAPER, linewidth=1.5)
        for kind in kinds:
            axis.barh(0, 0, color=plots.colour(kinds.index(kind)), label=kind)
        axis.plot([], [], color=plots.PAPER, linewidth=1.5, label="predicted")
        axis.set_yticks(range(len(results["policies"])), [one["policy"].upper() for one in results["policies"]])
        axis.invert_yaxis()
        axis.margins(x=0.12)
        plots.finish(axis, "14 jobs, 12 I/O servers", "bandwidth of the jobs, MB/s", "")
