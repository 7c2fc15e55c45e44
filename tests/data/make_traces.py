"""Makes the golden traces of this folder: two applications that write to one target, by a model of one millisecond
steps in which those that write at once share the bandwidth. Run it to make them again; the tests read the files.

    python tests/data/make_traces.py
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
MS = 1_000_000
START_MS = 1_000  # the node's clock when a trace begins
BYTES_PER_MS = 24_000
TARGET = "dev:7:0"
OPERATIONS = 3  # of a phase


@dataclass
class Solver:
    """Computes, then writes a checkpoint of OPERATIONS collective operations, `phases` times."""

    name: str
    app: int
    compute_ms: int
    write_ms: int  # of a whole phase, alone
    phases: int = 5
    state: str = "computing"  # "waiting", "io", "done"
    since: int = 0
    left_ms: float = 0
    operation: int = 0
    phase: int = 0
    request: int = 0
    granted: int = 0
    phase_start: int = 0
    figures: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("io", "wait", "cpu"), 0))
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("io", "wait", "cpu"), 0))

    @property
    def operation_bytes(self) -> int:
        return self.write_ms * BYTES_PER_MS // OPERATIONS


class Recorder:
    def __init__(self, policy: str) -> None:
        header = {"hocket_trace": 1, "version": "0.1.0", "node": "node1", "start_unix_ns": 1_750_000_000 * 10**9}
        self.lines = [{**header, "start_ns": START_MS * MS, "settings": {"policy": policy}}]

    def add(self, direction: str, kind: str, at_ms: int, solver: Solver, name: str | None = None, **fields) -> None:
        head = {direction: kind, "time_ns": at_ms * MS, **({"node": "node1"} if direction == "in" else {})}
        shown = solver.name if name is None else name
        self.lines.append({**head, "application": shown, "member": solver.app * 10, **fields})

    def write(self, path: Path) -> None:
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))


class World:
    """The solvers, the target, and the coordinator under `policy`."""

    def __init__(self, solvers: list[Solver], policy: str) -> None:
        self.solvers, self.policy = solvers, policy
        self.record = Recorder(policy)
        self.holder: Solver | None = None
        self.now = START_MS

    def run(self) -> Recorder:
        for number, solver in enumerate(self.solvers):
            self.hello(solver, START_MS + 10 + 2 * number)
        while any(solver.state != "done" for solver in self.solvers):
            self.now += 1
            writing = sum(solver.state == "io" for solver in self.solvers)
            for solver in self.solvers:
                self.step(solver, writing)
            self.grant_next()
        return self.record

    def hello(self, solver: Solver, at_ms: int) -> None:
        solver.since, solver.left_ms = at_ms, solver.compute_ms
        job = {"job": f"node1-{solver.app}", "application_asked": solver.name, "program": "/opt/apps/jacobi"}
        who = {"mpi": "mpich", "version": "0.1.0", "pid": 4000 + solver.app, "processes": 2}
        self.record.add("in", "HELLO", at_ms, solver, name="", **job, **who)
        given = {"app": solver.app, "application_given": solver.name, "policy": self.policy, "lease_ns": 3000 * MS}
        self.record.add("out", "WELCOME", at_ms, solver, **given)

    def step(self, solver: Solver, writing: int) -> None:
        if solver.state == "computing" and self.now > solver.since:
            solver.left_ms -= 1
            solver.figures["cpu"] += 1
            if solver.left_ms <= 0:
                solver.phase_start, solver.operation = self.now, 0
                self.ask(solver)
        elif solver.state == "waiting":
            solver.figures["wait"] += 1
        elif solver.state == "io":
            solver.left_ms -= 1 / writing
            if solver.left_ms <= 0:
                self.finish(solver)

    def ask(self, solver: Solver) -> None:
        solver.request += 1
        solver.state, solver.since = "waiting", self.now
        what = {"target": TARGET, "file": f"/scratch/{solver.name}.{solver.phase}", "bytes": solver.operation_bytes}
        operation = {"request": solver.request, "operation": "MPI_File_write_at_all"}
        self.record.add("in", "START_IO", self.now, solver, **operation, **what)
        if self.policy == "interfere" or self.holder in (None, solver):
            self.grant(solver)
        else:
            queued = {"request": solver.request, "position": 1, "behind": self.holder.name}
            self.record.add("out", "QUEUED_IO", self.now, solver, **queued)

    def grant(self, solver: Solver) -> None:
        self.holder = solver if self.policy == "fcfs" else None
        waited = (self.now - solver.since) * MS
        fields = {"request": solver.request, "waited_ns": waited, "target": TARGET}
        self.record.add("out", "GRANT_IO", self.now, solver, **fields)
        solver.state, solver.granted, solver.left_ms = "io", self.now, solver.write_ms / OPERATIONS

    def grant_next(self) -> None:
        if self.policy == "fcfs" and self.holder is None:
            waiting = [solver for solver in self.solvers if solver.state == "waiting"]
            if waiting:
                self.grant(min(waiting, key=lambda solver: solver.since))

    def finish(self, solver: Solver) -> None:
        took = self.now - solver.granted
        solver.figures["io"] += took
        solver.operation += 1
        last = solver.operation == OPERATIONS
        fields = {"request": solver.request, "io_ns": took * MS, "bytes": solver.operation_bytes // 2}
        self.record.add("in", "FINISH_IO", self.now, solver, **fields, phase_over=last)
        if not last:
            self.ask(solver)
            return
        self.holder = None if self.holder is solver else self.holder
        self.end_phase(solver)

    def end_phase(self, solver: Solver) -> None:
        times = {"start_ns": solver.phase_start * MS, "end_ns": self.now * MS}
        spent = {f"{key}_ns": value * MS for key, value in solver.figures.items()}
        written = solver.operation_bytes * OPERATIONS
        moved = {"operations": OPERATIONS, "bytes_read": 0, "bytes_written": written // 2, "target": TARGET}
        fields = {"index": solver.phase, **times, **spent, "comm_ns": 0, **moved}
        self.record.add("in", "IO_PHASE", self.now, solver, **fields)
        for key, value in solver.figures.items():
            solver.sums[key] += value
            solver.figures[key] = 0
        solver.phase += 1
        if solver.phase == solver.phases:
            solver.state = "done"
            sums = {f"{key}_ns": 2 * value * MS for key, value in solver.sums.items()}
            calls = {"io_calls": 2 * OPERATIONS * solver.phases, "comm_calls": 0, "bytes_read": 0}
            total = {"comm_ns": 0, **calls, "bytes_written": written * solver.phases}
            self.record.add("in", "BYE", self.now, solver, **sums, **total)
        else:
            solver.state, solver.since, solver.left_ms = "computing", self.now, solver.compute_ms


@dataclass(frozen=True)
class Resize:
    """A reconfiguration as the application reports it; times in ms."""

    at_ms: int
    sources: int
    targets: int
    method: tuple[str, str, str, str]
    spawning: tuple[int, int]  # and of it, stood still
    constant: tuple[int, int]
    variable_ms: float
    resuming_ms: float
    gap_ms: int = 0  # to the control point at which variable data moved
    waited_ms: int = 0
    reason: str = ""  # why it was given up

    def fields(self, request: int) -> dict[str, object]:
        spawn, spawn_strategy, redistribution, strategy = self.method
        stopped_ms = self.spawning[1] + self.constant[1] + self.variable_ms + self.resuming_ms
        parts = {
            "start": self.at_ms,
            "wait": self.waited_ms,
            "spawning": self.spawning[0],
            "spawning_stopped": self.spawning[1],
            "constant": self.constant[0],
            "constant_stopped": self.constant[1],
            "variable": self.variable_ms,
            "resuming": self.resuming_ms,
            "stopped": stopped_ms,
        }
        grown = 0 if self.reason else self.targets - self.sources
        bytes_moved = 0 if self.reason else 96_000_000 * abs(grown) // max(self.sources, self.targets)
        return {
            "request": request,
            "done": not self.reason,
            "reason": self.reason,
            "sources": self.sources,
            "targets": self.targets,
            "iteration": self.at_ms // 10,
            "spawn": spawn,
            "spawn_strategy": spawn_strategy,
            "redistribution": redistribution,
            "redistribution_strategy": strategy,
            **{f"{key}_ns": int(value * MS) for key, value in parts.items()},
            "started": max(grown, 0),
            "woken": 0,
            "ended": max(-grown, 0),
            "put_to_sleep": 0,
            "bytes_moved": bytes_moved,
            "bytes_kept": 0 if self.reason else 96_000_000 - bytes_moved,
        }

    @property
    def end_ms(self) -> int:
        return int(
            self.at_ms + self.gap_ms + self.spawning[0] + self.constant[0] + self.variable_ms + self.resuming_ms + 1
        )


PLAIN = ("merge", "single", "collective", "blocking")
JOIN = ("merge", "join", "collective", "wait-sources")
RESIZES = [
    Resize(3_000, 2, 4, PLAIN, (221, 221), (48, 48), 3.2, 1.4, waited_ms=6),
    Resize(4_660, 4, 8, JOIN, (640, 22), (310, 0), 5.1, 2.2, gap_ms=40, waited_ms=11),
    Resize(7_210, 8, 16, PLAIN, (35, 35), (0, 0), 0, 0, reason="MPI_Comm_spawn: no such program: /opt/apps/jacobi"),
    Resize(9_610, 8, 2, PLAIN, (0, 0), (61, 61), 4.4, 6.9, waited_ms=4),
]


def with_resizes(record: Recorder, solver: Solver, resizes: list[Resize]) -> Recorder:
    """The run, with reconfigurations of one of its solvers, which go on beside its I/O."""
    header, *lines = record.lines
    more = Recorder("")
    more.add("in", "MALLEABLE", START_MS + 40, solver, processes=2, iteration=0, sleeping=0, method="merge single")
    for request, resize in enumerate(resizes, start=1):
        more.add("in", "RECONFIGURATION", resize.end_ms, solver, **resize.fields(request))
        handed_on = {**resize.fields(request), "request": request}
        tool = Solver("", 99, compute_ms=0, write_ms=0)
        more.add("out", "RECONFIGURATION", resize.end_ms, tool, **handed_on)
        size = resize.sources if resize.reason else resize.targets
        iteration = resize.at_ms // 10
        more.add("in", "MALLEABLE", resize.end_ms, solver, processes=size, iteration=iteration, sleeping=0, method="")
    record.lines = [header, *sorted([*lines, *more.lines[1:]], key=lambda line: line["time_ns"])]
    return record


EXPANSION = [
    Resize(4_120, 2, 4, PLAIN, (90, 90), (20, 20), 3.2, 1.4, waited_ms=6),
    Resize(6_010, 4, 2, PLAIN, (0, 0), (31, 31), 4.4, 6.9, waited_ms=4),
]
# At ms, type, fields; times in them in ms.
DECIDED = [
    (4_050, "DECISION", {"number": 1, "action": "expand", "from": 2, "to": 4, "at_iteration": 400,
     "return_at_iteration": 600, "conflict_ns": 5_260, "overlap_ns": 640, "start_before_ns": 5_260,
     "start_after_ns": 4_610, "text": "2 processes more bring the phase forward by 0.65 s and cost 0.24 s"}),
    (4_720, "OUTCOME", {"decision": 1, "quantity": "start of the next I/O phase", "predicted_s": 0.56,
     "actual_s": 0.67, "met": True, "text": ""}),
    (6_400, "DECISION", {"number": 2, "action": "leave", "from": 2, "to": 2, "at_iteration": 0,
     "return_at_iteration": 0, "conflict_ns": 7_300, "overlap_ns": 450, "start_before_ns": 7_300,
     "start_after_ns": 0, "text": "4 cores would not reach the speedup of 1.83 that is needed"}),
    (8_300, "OUTCOME", {"decision": 1, "quantity": "I/O period", "predicted_s": 2.4, "actual_s": 3.1, "met": False,
     "text": ""}),
]  # fmt: skip


def with_decisions(record: Recorder, solver: Solver) -> Recorder:
    """The run, with what a policy for cores told of one of its solvers."""
    header, *lines = record.lines
    more, nobody = Recorder(""), Solver("", 0, compute_ms=0, write_ms=0)
    for at_ms, kind, fields in DECIDED:
        who = {"policy": "phase-shift", "because_of": "jacobi-a", "period_after_ns": 0} if kind == "DECISION" else {}
        told = {key: value * MS if key.endswith("_ns") else value for key, value in fields.items()}
        more.add("out", kind, at_ms, nobody, **who, decided_for=solver.name, **told)
    record.lines = [header, *sorted([*lines, *more.lines[1:]], key=lambda line: line["time_ns"])]
    return record


def jacobi_a() -> Solver:
    return Solver("jacobi-a", 1, compute_ms=1500, write_ms=900)


def jacobi_b() -> Solver:
    return Solver("jacobi-b", 2, compute_ms=1100, write_ms=690, phases=6)


if __name__ == "__main__":
    World([jacobi_a()], "interfere").run().write(HERE / "alone-a.jsonl")
    World([jacobi_b()], "interfere").run().write(HERE / "alone-b.jsonl")
    World([jacobi_a(), jacobi_b()], "interfere").run().write(HERE / "uncoordinated.jsonl")
    World([jacobi_a(), jacobi_b()], "fcfs").run().write(HERE / "fcfs.jsonl")
    resized = World([jacobi_a(), jacobi_b()], "fcfs").run()
    with_resizes(resized, jacobi_b(), RESIZES).write(HERE / "resized.jsonl")
    steered = with_resizes(World([jacobi_a(), jacobi_b()], "fcfs").run(), jacobi_b(), EXPANSION)
    with_decisions(steered, jacobi_b()).write(HERE / "steered.jsonl")
