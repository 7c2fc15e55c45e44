"""GekkoFWD's Fig. 9, live and small: the queue of 14 jobs on 96 nodes with 12 I/O servers, under four policies.

`hocket workload` runs scenarios/workloads/gekkofwd-queue.toml, and predicts it from the curves of Fig. 5.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hocket.arbitration.jobs import MB
from hocket.errors import HocketError

from reproduce import plots
from reproduce.figure import Finding, Options, Results, Value, agreement
from reproduce.gekkofwd_applications import MEMORY, QUEUE, applications
from reproduce.gekkofwd_live import kept_in

POLICIES, RUNS = ("one", "static", "size", "mckp"), 2
PAPER = {"static": 8410.0, "mckp": 16020.0}  # MB/s


def make(_: Options) -> Results:
    applications()
    curves = kept_in("explored-applications") / "curves.toml"
    with tempfile.TemporaryDirectory(prefix="hocket-reproduce-", dir=MEMORY) as files:
        words: Sequence[object] = [
            *("workload", QUEUE, "--curves", curves, "--fifo", "--arbitrate", ",".join(POLICIES)),
            *("--dir", files, "--repeat", RUNS, "--output", kept_in("queue"), "--json"),
        ]
        command = [sys.executable, "-m", "hocket.cli", *map(str, words)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise HocketError(f"hocket workload ended with {done.returncode}; its message is above")
    return json.loads(done.stdout)


def _live(results: Results) -> dict[str, float]:
    return {one["policy"]: one["bytes_per_s"]["mean"] / MB for one in results["policies"]}


def judge(results: Results) -> Finding:
    live = _live(results)
    foreseen = {one["policy"]: one["predicted"]["bytes_per_s"] / MB for one in results["policies"]}
    gain = live["mckp"] / live["static"]
    values = [
        Value("MCKP / STATIC", "x", 1.9, gain),
        Value("… as the curves predict", "x", None, foreseen["mckp"] / foreseen["static"]),
        *(Value(f"{one.upper()}: bandwidth of all jobs", "MB/s", PAPER.get(one), live[one]) for one in live),
        *(Value(f"{one.upper()}: beside the prediction", "x", None, live[one] / foreseen[one]) for one in live),
    ]
    order = max(live, key=live.__getitem__) == "mckp"
    verdict = (
        f"The queue is the paper's, with its nodes; bytes and bandwidth are scaled. MCKP gains {gain:.2f} over STATIC. "
        "How much it gains depends on how much applications differ in what a further server is worth to them: here "
        "they differ by their pauses and by how many processes do I/O, in the paper by how Lustre takes their accesses."
    )
    return Finding(tuple(values), agreement([order, gain >= 1.3]), verdict)


def draw(results: Results, path: Path) -> None:
    """Draw each job's bandwidth, stacked, and the sum that the curves predict; the mean of the runs."""
    with plots.picture(path, 1, height=4.6) as (axis,):
        names = [one["name"] for one in results["queue"]]
        kinds = sorted({one["job"] for one in results["queue"]})
        for at, policy in enumerate(results["policies"]):
            left = 0.0
            for name, queued in zip(names, results["queue"], strict=True):
                rates = [
                    job["bytes_per_s"] / MB for run in policy["runs"] for job in run["jobs"] if job["name"] == name
                ]
                rate = sum(rates) / len(rates)
                colour = plots.colour(kinds.index(queued["job"]))
                axis.barh(at, rate, 0.6, left=left, color=colour, edgecolor="white", linewidth=0.8)
                left += rate
            axis.annotate(f"{left:.0f}", (left, at), (4, 0), textcoords="offset points", va="center", fontsize=9)
            predicted = policy["predicted"]["bytes_per_s"] / MB
            axis.plot([predicted] * 2, [at - 0.4, at + 0.4], color=plots.PAPER, linewidth=1.5)
        for kind in kinds:
            axis.barh(0, 0, color=plots.colour(kinds.index(kind)), label=kind)
        axis.plot([], [], color=plots.PAPER, linewidth=1.5, label="predicted")
        axis.set_yticks(range(len(results["policies"])), [one["policy"].upper() for one in results["policies"]])
        axis.invert_yaxis()
        axis.margins(x=0.12)
        plots.finish(axis, "14 jobs, 12 I/O servers", "bandwidth of the jobs, MB/s", "")
