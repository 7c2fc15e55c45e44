#!/usr/bin/env python3
"""A stand-in for hocket-sim without a model: its results and traces depend only on policy and seed.

Two applications write PHASES times. A phase takes 2 s uncoordinated and 1 s under any other policy. B waits before each
phase: 1 s under fcfs, 0.25 s under other policies. The seed lengthens all I/O and waiting times by so many per cent.
"""

import argparse
import json
import sys
from pathlib import Path

PHASES, COMPUTE_S, S = 4, 5.0, 1_000_000_000
ALONE_S = PHASES * (COMPUTE_S + 1.0)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario")
    parser.add_argument("--policy", default="fcfs")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--trace")
    parser.add_argument("--policy-file")
    given = parser.parse_args()
    if "wrong" in given.policy:
        print(f"hocket-sim: unknown policy '{given.policy}'; did you mean 'fcfs'?", file=sys.stderr)
        return 2
    if "crash" in given.policy:
        return 3
    if "silent" in given.policy:
        return 0
    if given.policy_file:
        given.policy = f"file:{given.policy_file}"
    stretch = 1 + given.seed / 100
    io_s = (2.0 if given.policy in ("none", "interfere") else 1.0) * stretch
    wait_s = {"none": 0.0, "interfere": 0.0, "fcfs": 1.0}.get(given.policy, 0.25) * stretch
    applications = [told("A", io_s, 0.0), told("B", io_s, wait_s)]
    if given.trace:
        write_trace(given.trace, given.policy, io_s, wait_s)
    result = {"hocket_sim": 1, "scenario": "stand-in", "policy": given.policy, "seed": given.seed}
    result |= {"simulated_s": max(one["total_s"] for one in applications), "applications": applications}
    result["targets"] = [{"target": "gpfs", "busy_s": 2 * PHASES * io_s, "overlap_s": 0.0, "bytes": 8}]
    print(json.dumps(result | {"flops": 1e12 / io_s, "decisions": 3, "events": 100, "wall_s": 0.01}))
    return 0


def told(name: str, io_s: float, wait_s: float) -> dict:
    total_s = PHASES * (COMPUTE_S + io_s + wait_s)
    return {
        "application": name, "processes_first": 4, "processes_last": 4, "start_s": 0.0, "end_s": total_s,
        "total_s": total_s, "alone_s": ALONE_S, "compute_s": PHASES * COMPUTE_S, "io_s": PHASES * io_s,
        "io_alone_s": PHASES * 1.0, "wait_s": PHASES * wait_s, "stopped_s": 0.0, "phases": PHASES,
        "iterations": PHASES, "flop": 1e12, "reconfigurations": 0, "bytes_written": 4,
    }  # fmt: skip


def write_trace(path: str, policy: str, io_s: float, wait_s: float) -> None:
    lines = [{"hocket_trace": 1, "version": "t", "node": "simulated", "start_ns": 0, "start_unix_ns": 0}]
    for member, (name, waits_s) in enumerate((("A", 0.0), ("B", wait_s)), start=1):

        def add(direction: str, kind: str, at_s: float, who=(name, member), **fields) -> None:
            time_ns = {"time_ns": int(at_s * S), "application": who[0], "member": who[1]}
            lines.append({direction: kind, **time_ns, **fields})

        add("in", "HELLO", 0, job=name, program=name, processes=4)
        add("out", "WELCOME", 0, app=member, application_given=name, policy=policy)
        now_s = 0.0
        for request in range(1, PHASES + 1):
            now_s += COMPUTE_S
            add("in", "START_IO", now_s, request=request, target="gpfs")
            now_s += waits_s
            add("out", "GRANT_IO", now_s, request=request, target="gpfs", waited_ns=int(waits_s * S))
            now_s += io_s
            add("in", "FINISH_IO", now_s, request=request, io_ns=int(io_s * S), bytes=1)
        add("in", "BYE", now_s, io_calls=PHASES)
    header, *events = lines
    records = [header, *sorted(events, key=lambda line: line["time_ns"])]
    Path(path).write_text("".join(json.dumps(record) + "\n" for record in records))


if __name__ == "__main__":
    sys.exit(main())
