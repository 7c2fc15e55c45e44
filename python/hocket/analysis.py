"""Turns the events of a trace, or of the live bus, into a timeline of each application.

The report, the live view, the exports and the demo all use this analysis. `Analysis.feed` takes the events in their
order. For each application the analysis keeps its I/O operations, its I/O phases, and the intervals in which it
computed, waited, and did I/O. The time from START_IO to GRANT_IO is waiting, and the time from GRANT_IO to FINISH_IO is
I/O. The time from PAUSED_IO to the next GRANT_IO is waiting again. I/O that requests no grant is known by its IO_PHASE.
An operation under a delegation has begun without a grant. Its events come in batches, and say how old they are.
What I/O servers store after the application's access has ended is none of that: the application does not wait for it.

Times are nanoseconds of the node's clock; figures for people are seconds and end in `_s`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from hocket.bus import Event
from hocket.busy import Part, Times, parts_of, times_of
from hocket.decisions import Decisions
from hocket.flop import COUNTERS, DECLARED, PROFILE, UNKNOWN
from hocket.forwarded import ForwardedOfServers
from hocket.lanes import COMPUTING, IO, WAITING, Interval, overlaps, overlay
from hocket.periods import IRREGULAR
from hocket.places import Place, nodes_in, other_user, slurm_job, without_user
from hocket.reconfigurations import Reconfiguration
from hocket.trace import Trace, collector_at_rest, consistent
from hocket.unstopped import Unstopped

WRITE_BACK = "write-back"  # the operation of I/O servers that store what an application wrote


@dataclass
class Operation:
    """One I/O operation that requested a grant. A time is None if its event has not arrived yet."""

    member: int
    request: int
    asked_ns: int
    target: str = ""
    file: str = ""
    routine: str = ""
    bytes: int = 0  # total of all processes; 0: not known in advance
    asker_bytes: int = 0  # bytes of the rank that sent START_IO
    granted_ns: int | None = None
    finished_ns: int | None = None
    io_ns: int = 0
    pauses: list[tuple[int, int | None]] = field(default_factory=list)  # start and end (or None) of each preemption
    stops_for: str = ""  # application for which PAUSE_IO last preempted this operation
    stop_asked_ns: int | None = None  # time of the last PAUSE_IO
    stop_awaited_by: list[Operation] = field(default_factory=list, repr=False)  # that waited for the target then

    @property
    def is_write_back(self) -> bool:
        return self.routine == WRITE_BACK

    @property
    def is_paused(self) -> bool:
        return bool(self.pauses) and self.pauses[-1][1] is None

    def waits_until(self, now_ns: int) -> int:
        """Return the end of its present or last wait for a grant."""
        granted_ns = self.pauses[-1][1] if self.pauses else self.granted_ns
        return next((end for end in (granted_ns, self.finished_ns) if end is not None), now_ns)

    def parts(self, now_ns: int) -> Iterator[Interval]:
        """Yield its waiting and its I/O.

        If an operation continued without a grant, what is left of its `io_ns` ends at its end.
        """
        end = self.finished_ns if self.finished_ns is not None else now_ns
        waits = [(self.asked_ns, self.granted_ns), *self.pauses]
        done_ns = 0  # I/O yielded so far
        for (since, until), following in zip(waits, [*self.pauses, (end, None)], strict=True):
            begin = max(since, end - self.io_ns + done_ns) if until is None else until
            if begin > since:
                yield Interval(WAITING, since, begin)
            if following[0] > begin:
                done_ns += following[0] - begin
                yield Interval(IO, begin, following[0])

    def busy(self, now_ns: int) -> Iterator[Part]:
        """Yield the same parts, but for sums.

        A burst of accesses ends with a gap that is no I/O: a finished operation without preemptions counts at most
        `io_ns` after its grant.
        """
        exact = self.finished_ns is not None and self.io_ns > 0 and not self.pauses
        for part in self.parts(now_ns):
            is_io = part.kind == IO
            end_ns = min(part.end_ns, part.start_ns + self.io_ns) if is_io and exact else part.end_ns
            yield Part(part.start_ns, end_ns, float(is_io), float(not is_io))


@dataclass(frozen=True)
class Phase:
    """An I/O phase, as the monitor of `member` reported it (IO_PHASE)."""

    member: int
    index: int
    start_ns: int
    end_ns: int
    io_ns: int
    wait_ns: int
    cpu_ns: int
    comm_ns: int
    operations: int
    bytes_read: int
    bytes_written: int
    target: str
    iteration: int = -1  # number of iterations done at the last control point before its end; -1: no control points
    processes: int = 0  # number of processes that computed then; 0: not reported
    flop: float = 0.0  # count of all processes since the previous phase; 0: not known
    io_intervals: str = ""  # intervals in I/O (hocket.busy); both texts "": only the sums are known
    wait_intervals: str = ""
    of_one_process: bool = False  # I/O of the reporting process alone: busy time, but no I/O phase of the application
    told_processes: int = 0  # number of processes in the sums below, which count from their starts; 0: none
    all_cpu_ns: int = 0  # sums over those processes, and the largest value of one process
    all_comm_ns: int = 0
    cpu_most_ns: int = 0
    comm_most_ns: int = 0

    def parts(self) -> list[Part]:
        """Return what the process did in this phase."""
        return parts_of(self.start_ns, self.end_ns, self.io_ns, self.wait_ns, self.io_intervals, self.wait_intervals)


@dataclass(frozen=True)
class Spent:
    """Computing and communication time of processes since their starts: the mean, and the largest of one process."""

    processes: int = 0  # 0: not known
    cpu_s: float = 0.0
    comm_s: float = 0.0
    cpu_most_s: float = 0.0  # 0: not known
    comm_most_s: float = 0.0


@dataclass(frozen=True)
class Decision:
    """A decision of the coordinator about an application.

    `kind` is "granted", "queued" (`behind` names the application it waits for), "preempted" (`behind` names the
    application it was preempted for), "resumed", "lease expired", or "refused".
    """

    time_ns: int
    application: str
    kind: str
    behind: str = ""
    waited_ns: int = 0
    target: str = ""
    of_servers: bool = False  # about what I/O servers hold for the application

    def text(self) -> str:
        """Return the decision in words."""
        return f"write-back {self._text()}" if self.of_servers else self._text()

    def _text(self) -> str:
        if self.kind == "queued" and self.behind:
            return f"queued behind {self.behind}"
        if self.kind == "preempted" and self.behind:
            return f"preempted for {self.behind}"
        if self.kind in ("granted", "resumed") and self.waited_ns >= 1_000_000:
            return f"{self.kind} after {self.waited_ns / 1e9:.2f} s"
        return self.kind


@dataclass(frozen=True)
class Iterations:
    """Iterations of a malleable program between two control points, and the time they took."""

    time_ns: int
    processes: int
    count: int
    computed_ns: int  # time in neither I/O nor waits for a grant
    comm_ns: int = 0  # the part of `computed_ns` in communication


@dataclass
class Application:
    """One application: all processes of one `hocket run`."""

    name: str
    app: int = 0
    job: str = ""
    slurm_step: str = ""
    user: int = -1  # -1: not known
    allocation: str = ""  # the resource manager's name of its allocation, if `hocket run` has reported one
    nodes: tuple[str, ...] = ()  # of the members that reported; if it is malleable, those on which it computes
    program: str = ""
    mpi: str = ""
    processes: int = 0  # current number, if it is malleable
    start_ns: int = 0
    end_ns: int | None = None  # None: still running at the last event
    lost: str = ""  # reason, if it did not end in order
    open_members: set[int] = field(default_factory=set)
    operations: list[Operation] = field(default_factory=list)
    write_backs: list[Operation] = field(default_factory=list)  # of its I/O servers
    phases: list[Phase] = field(default_factory=list)
    sums: Counter[str] = field(default_factory=Counter)  # from its BYE events: cpu_ns, comm_ns, io_ns, …
    most: Counter[str] = field(default_factory=Counter)  # maxima of these events: cpu_most_ns, comm_most_ns
    latest: dict[tuple[int, int], Operation] = field(default_factory=dict, repr=False)
    iterations: list[Iterations] = field(default_factory=list)  # from ITERATIONS events
    sizes: list[tuple[int, int]] = field(default_factory=list)  # start and processes of each size; [] unless malleable
    reconfigurations: list[Reconfiguration] = field(default_factory=list)
    flop_per_iteration: float = 0.0  # declared by the application; 0: not known
    flop_of_profile: float = 0.0  # per iteration, from its profile; 0: not known
    irregular: bool = False  # no period fits its I/O phases, by the last MODEL event
    interruptions: int = 0  # how often it was preempted in the middle of its I/O
    unstopped: list[Unstopped] = field(default_factory=list)  # accesses that were to be preempted, and could not stop
    forgotten: Times = field(default_factory=Times, repr=False)  # busy time of dropped phases
    forgotten_ns: int = 0  # end of the dropped time

    @property
    def io_phases(self) -> list[Phase]:
        """Return its I/O phases, without the reports that single processes made of their own I/O."""
        return [phase for phase in self.phases if not phase.of_one_process]

    @property
    def place(self) -> Place:
        told = {"slurm_step": self.slurm_step, "job": self.job}
        return Place(self.nodes, slurm_job(told) or self.allocation, other_user(self.user))

    @property
    def flop_source(self) -> str:
        """Return the source of its FLOP count: a key of hocket.flop.WORDS.

        The coordinator has the same rule (src/core/model/flop.hpp).
        """
        if any(phase.flop > 0 for phase in self.phases):
            return COUNTERS
        return DECLARED if self.flop_per_iteration > 0 else PROFILE if self.flop_of_profile > 0 else UNKNOWN

    def intervals(self, now_ns: int, from_ns: int | None = None) -> list[Interval]:
        """Return its activity from `from_ns` (default: its start) to its end or `now_ns`, without gaps or overlaps."""
        start = max(self.start_ns, from_ns) if from_ns is not None else self.start_ns
        end = self.end_ns if self.end_ns is not None else now_ns
        busy = [part for operation in self.operations for part in operation.parts(end)]
        asked: dict[int, list[int]] = {}
        for operation in self.operations:
            asked.setdefault(operation.member, []).append(operation.asked_ns)
        for phase in self.phases:
            if not _is_covered(phase, asked.get(phase.member, [])):
                busy.append(Interval(IO, phase.start_ns, phase.end_ns))
        return list(overlay(busy, start, end))

    def times(self, now_ns: int) -> Times:
        """Return how long it was in I/O, and how long it waited for grants (hocket.busy).

        The reports of its processes count first. Operations count if their process requested them after its last
        report.
        """
        end = self.end_ns if self.end_ns is not None else now_ns
        reported: dict[int, int] = {}
        for phase in self.phases:
            reported[phase.member] = max(phase.end_ns, reported.get(phase.member, 0))
        parts = [part for phase in self.phases for part in phase.parts()]
        for operation in self.operations:
            if operation.asked_ns > reported.get(operation.member, self.forgotten_ns):
                parts += operation.busy(end)
        return self.forgotten + times_of(parts)

    def stores(self, now_ns: int) -> list[Interval]:
        """Return when its I/O servers stored, in their turn, what it had written, and when they waited for that."""
        end = self.end_ns if self.end_ns is not None else now_ns
        parts = [part for one in self.write_backs for part in one.parts(end)]
        return [part for part in overlay(parts, self.start_ns, end) if part.kind != COMPUTING]

    def io_s(self, now_ns: int = 0) -> float:
        """Return the seconds in which at least one of its processes was in I/O.

        `now_ns` is needed while the application runs.
        """
        return self.times(now_ns).io_ns / 1e9

    def wait_s(self, now_ns: int) -> float:
        """Return the seconds in which at least one of its processes waited for a grant and none was in I/O."""
        return self.times(now_ns).wait_ns / 1e9

    def spent(self) -> Spent:
        """Return what its processes spent on computing and communication.

        After its end the figures cover all processes. Before, they cover the processes that its members reported with
        their I/O phases.
        """
        if not self.open_members and (self.sums["cpu_ns"] or self.sums["comm_ns"]):
            # Older and simulated traces do not report the number of processes.
            processes = self.sums["processes"] or self.processes or 1
            sums = (self.sums["cpu_ns"], self.sums["comm_ns"], self.most["cpu_most_ns"], self.most["comm_most_ns"])
            return _spent(processes, *sums)
        members = {phase.member for phase in self.phases}
        told = max((phase.told_processes for phase in self.phases), default=0)
        if told >= max(1, len(members)):
            last = [phase for phase in self.phases if phase.told_processes == told][-1]
            return _spent(told, last.all_cpu_ns, last.all_comm_ns, last.cpu_most_ns, last.comm_most_ns)
        own = [[phase for phase in self.phases if phase.member == member] for member in members]
        cpu = [sum(phase.cpu_ns for phase in phases) for phases in own]
        comm = [sum(phase.comm_ns for phase in phases) for phases in own]
        return _spent(len(own), sum(cpu), sum(comm), max(cpu, default=0), max(comm, default=0))

    def total_s(self, now_ns: int) -> float:
        """Return the seconds from its first HELLO to its last BYE."""
        return ((self.end_ns if self.end_ns is not None else now_ns) - self.start_ns) / 1e9

    def bytes(self, direction: str) -> int:
        """Return the bytes that were moved. `direction`: "read" or "written".

        The sum is that of its BYE events, or of its I/O phases before the first BYE.
        """
        key = f"bytes_{direction}"
        return self.sums[key] or sum(getattr(phase, key) for phase in self.phases)

    def resized(self, time_ns: int, processes: int) -> None:
        """Note that it has this many processes from `time_ns` on; from its start, if its size was not known before."""
        if not self.sizes:
            self.sizes.append((self.start_ns, processes))
        elif self.sizes[-1][1] != processes:
            self.sizes.append((max(time_ns, self.sizes[-1][0]), processes))
        self.processes = processes

    def size_at(self, time_ns: int) -> int:
        """Return its number of processes at `time_ns`."""
        then = [count for since_ns, count in self.sizes if since_ns <= time_ns]
        return then[-1] if then else self.sizes[0][1] if self.sizes else self.processes

    def forget_before(self, time_ns: int) -> None:
        """Drop what ended before `time_ns`: the live view keeps only what it shows."""
        self.operations = [o for o in self.operations if o.finished_ns is None or o.finished_ns >= time_ns]
        self.write_backs = [o for o in self.write_backs if o.finished_ns is None or o.finished_ns >= time_ns]
        old = [phase for phase in self.phases if phase.end_ns < time_ns]
        if old:
            self.forgotten += times_of(part for phase in old for part in phase.parts())
            self.phases = [phase for phase in self.phases if phase.end_ns >= time_ns]
        self.forgotten_ns = max(self.forgotten_ns, time_ns)
        self.reconfigurations = [one for one in self.reconfigurations if one.time_ns >= time_ns]
        ended = sum(since_ns < time_ns for since_ns, _ in self.sizes[1:])
        self.sizes = self.sizes[ended:]


def _spent(processes: int, cpu_ns: int, comm_ns: int, cpu_most_ns: int, comm_most_ns: int) -> Spent:
    means = (ns / 1e9 / max(processes, 1) for ns in (cpu_ns, comm_ns))
    return Spent(processes, *means, cpu_most_ns / 1e9, comm_most_ns / 1e9)


def _happened_ns(event: Event) -> int:
    """Return when the event happened, which may have waited in a batch before it was sent."""
    return event.time_ns - max(0, event.get("ago_ns", 0))


def _is_covered(phase: Phase, asked: list[int]) -> bool:
    """Return True if the operations of the phase requested grants.

    Such operations hold more detail than the phase. `asked`: the times of START_IO, in rising order.
    """
    at = bisect_left(asked, phase.start_ns)
    return at < len(asked) and asked[at] <= phase.end_ns


class Analysis:
    """The applications known from the events fed so far, in the order of their arrival."""

    def __init__(self) -> None:
        self.applications: list[Application] = []
        self.decisions: list[Decision] = []
        self.about_cores = Decisions()
        self.forwarded = ForwardedOfServers()
        self.policy = ""  # all policies in force, as one text
        self._replaced: dict[int, str] = {}  # policy before the last SET_POLICY, by tool, until a REFUSED
        self.now_ns = 0
        self.nodes: set[str] = set()  # of events, and of cores that are given out
        self._allocations: dict[str, str] = {}  # by job, the name of the allocation in the last HELD_NODES
        self._asked: dict[int, Event] = {}  # HELLO of each member, until its WELCOME
        self._resizes: dict[int, Event] = {}  # RESIZE without an answer yet, by tool
        self._of_member: dict[int, Application] = {}
        self._last: dict[str, Decision] = {}  # last decision, by application

    def feed(self, event: Event) -> None:
        """Add one event or command. Unknown types are ignored."""
        self.now_ns = max(self.now_ns, event.time_ns)
        if event.node:
            self.nodes.add(event.node)
        self.about_cores.feed(event)
        self.forwarded.feed(event)
        handler = getattr(self, f"_on_{event.type.lower()}", None)
        if handler:
            handler(event)

    def named(self, name: str) -> Application:
        """Return the last application of this name. Raises KeyError."""
        for application in reversed(self.applications):
            if application.name == name:
                return application
        raise KeyError(name)

    @property
    def has_several_nodes(self) -> bool:
        return len(self.nodes) > 1

    @property
    def start_ns(self) -> int:
        """Return the start of the first application; 0 without any."""
        return min((application.start_ns for application in self.applications), default=0)

    def end_all_but(self, names: Collection[str], now_ns: int) -> None:
        """Mark applications as ended that a listing at `now_ns` does not name.

        It covers ends that came before the analysis began to receive events.
        """
        for application in self.applications:
            if application.end_ns is None and application.start_ns <= now_ns and application.name not in names:
                application.end_ns = now_ns

    def overlaps(self) -> list[Interval]:
        """Return the intervals in which two or more applications did I/O at once."""
        return overlaps([application.intervals(self.now_ns) for application in self.applications])

    def _application(self, event: Event) -> Application | None:
        """Return the application that an event belongs to, or None for a tool.

        An application whose HELLO was not seen is found by its name, or added.
        """
        if event.member in self._of_member:
            return self._of_member[event.member]
        if not event.application:
            return None
        for application in reversed(self.applications):
            if application.name == event.application and application.end_ns is None:
                break
        else:
            application = Application(event.application, start_ns=event.time_ns)
            self.applications.append(application)
        self._join(application, event)
        return application

    def _join(self, application: Application, event: Event) -> None:
        """Note that the sender of the event is a process of the application."""
        self._of_member[event.member] = application
        application.open_members.add(event.member)
        if event.node and event.node not in application.nodes:
            application.nodes += (event.node,)

    def _on_hello(self, event: Event) -> None:
        self._asked[event.member] = event

    def _on_welcome(self, event: Event) -> None:
        self.policy = self.policy or event.get("policy", "")  # the access policy alone
        hello = self._asked.pop(event.member, None)
        if hello is None or not hello.get("job"):
            return
        # Spawned processes may say HELLO after their parents have left. The same job is the same application.
        application = next((a for a in self.applications if a.job == hello["job"]), None)
        if application is None:
            application = Application(
                name=event.get("application_given", event.application),
                app=event.get("app", 0),
                job=hello["job"],
                slurm_step=hello.get("slurm_step", ""),
                user=hello.get("user", -1),
                allocation=self._allocations.get(hello["job"], ""),
                program=hello.get("program", ""),
                mpi=hello.get("mpi", ""),
                start_ns=hello.time_ns,
            )
            self.applications.append(application)
        if not application.sizes:  # MALLEABLE and RECONFIGURATION report the size of a malleable application
            application.processes += hello.get("processes", 0)
        application.end_ns = None
        self._join(application, hello)

    def _on_start_io(self, event: Event) -> None:
        if application := self._application(event):
            operation = Operation(
                member=event.member,
                request=event.get("request", 0),
                asked_ns=_happened_ns(event),
                target=event.get("target", ""),
                file=event.get("file", ""),
                routine=event.get("operation", ""),
                bytes=event.get("bytes", 0),
            )
            (application.write_backs if operation.is_write_back else application.operations).append(operation)
            application.latest[event.member, operation.request] = operation
            if event.get("delegation", 0):
                operation.granted_ns = operation.asked_ns
                self._decide(Decision(operation.asked_ns, application.name, "granted", target=operation.target))

    def _on_queued_io(self, event: Event) -> None:
        if application := self._application(event):
            operation = application.latest.get((event.member, event.get("request", 0)))
            if operation and operation.is_paused:
                return  # the preemption was noted already
            target = operation.target if operation else ""
            of_servers = operation is not None and operation.is_write_back
            behind = event.get("behind", "")
            self._decide(Decision(event.time_ns, application.name, "queued", behind, 0, target, of_servers))

    def _on_grant_io(self, event: Event) -> None:
        if application := self._application(event):
            operation = application.latest.get((event.member, event.get("request", 0)))
            waited, target, kind = event.get("waited_ns", 0), event.get("target", ""), "granted"
            if operation and operation.is_paused:
                since_ns = operation.pauses[-1][0]
                operation.pauses[-1] = (since_ns, event.time_ns)
                waited, kind = event.time_ns - since_ns, "resumed"
            elif operation and operation.granted_ns is not None:
                return  # a GRANT_IO that only changes the bandwidth share
            elif operation:
                operation.granted_ns = event.time_ns
            of_servers = operation is not None and operation.is_write_back
            self._decide(Decision(event.time_ns, application.name, kind, "", waited, target, of_servers))

    def _on_pause_io(self, event: Event) -> None:
        application = self._application(event)
        operation = application and application.latest.get((event.member, event.get("request", 0)))
        if operation:
            operation.stops_for = event.get("because_of", "")
            operation.stop_asked_ns = event.time_ns
            operation.stop_awaited_by = [
                other
                for one in self.applications
                if one.name == operation.stops_for and one.end_ns is None
                for other in one.latest.values()
                if other.target == operation.target and (other.granted_ns is None or other.is_paused)
            ]

    def _on_paused_io(self, event: Event) -> None:
        application = self._application(event)
        operation = application and application.latest.get((event.member, event.get("request", 0)))
        if application and operation and not operation.is_paused:
            operation.pauses.append((event.time_ns, None))
            application.interruptions += 0 if operation.is_write_back else 1
            why, where, of_servers = operation.stops_for, operation.target, operation.is_write_back
            self._decide(Decision(event.time_ns, application.name, "preempted", why, 0, where, of_servers))

    def _decide(self, decision: Decision) -> None:
        """Note a decision.

        Repetitions are dropped: the keep-alives of a wait, and the end of a lease that is sent to several members.
        """
        last = self._last.get(decision.application)
        keys = ("kind", "behind", "of_servers")
        again = last is not None and all(getattr(last, key) == getattr(decision, key) for key in keys)
        if again and (decision.kind == "queued" or last.time_ns == decision.time_ns):
            return
        self._last[decision.application] = decision
        self.decisions.append(decision)

    def _on_finish_io(self, event: Event) -> None:
        application = self._application(event)
        operation = application and application.latest.pop((event.member, event.get("request", 0)), None)
        if operation:
            operation.finished_ns = _happened_ns(event)
            operation.io_ns = event.get("io_ns", 0)
            if event.get("unstopped", False):
                self._note_unstopped(application, operation, operation.finished_ns)
            operation.asker_bytes = event.get("bytes", 0)

    def _on_lease_expired(self, event: Event) -> None:
        holder = event.get("holder", event.application)
        self._decide(Decision(event.time_ns, holder, "lease expired", target=event.get("target", "")))

    def _on_resize(self, event: Event) -> None:
        self._resizes[event.member] = event

    def _on_refused(self, event: Event) -> None:
        if asked := self._resizes.pop(event.member, None):
            self._refuse_resize(asked, event)
        elif event.member in self._replaced:
            self.policy = self._replaced.pop(event.member)
        if event.application:
            self._decide(Decision(event.time_ns, event.application, "refused", target=event.get("text", "")))

    def _note_unstopped(self, application: Application, operation: Operation, end_ns: int) -> None:
        """Note that the operation ended, though it was to stop. The wait ends earlier if the others got a grant."""
        asked_ns = end_ns if operation.stop_asked_ns is None else operation.stop_asked_ns
        waits = [other.waits_until(end_ns) for other in operation.stop_awaited_by]
        until_ns = max(asked_ns, min(end_ns, max(waits, default=end_ns)))
        application.unstopped.append(Unstopped(asked_ns, until_ns, operation.stops_for))
        operation.stop_awaited_by = []

    def _refuse_resize(self, asked: Event, refused: Event) -> None:
        """Note a resize that the coordinator refused.

        No RECONFIGURATION follows: the application received no request, or has ended.
        """
        named = [a for a in self.applications if a.name == asked.get("application_asked", "")]
        if not named:
            return
        sources = named[-1].processes
        targets = asked.get("processes", 0) + (sources if asked.get("relative", False) else 0)
        reason = str(refused.get("text", "")).removeprefix("cannot resize: ")
        sizes = {"sources": sources, "targets": targets}
        named[-1].reconfigurations.append(
            Reconfiguration(named[-1].name, refused.time_ns, reason=reason, start_ns=refused.time_ns, **sizes)
        )

    def _on_io_phase(self, event: Event) -> None:
        if application := self._application(event):
            keys = ("start_ns", "end_ns", "io_ns", "wait_ns", "cpu_ns", "comm_ns", "operations")
            figures = {key: event.get(key, 0) for key in (*keys, "bytes_read", "bytes_written", "index")}
            defaults = {"iteration": -1, "processes": 0, "flop": 0.0, "io_intervals": "", "wait_intervals": ""}
            defaults |= {"of_one_process": False, "told_processes": 0}
            defaults |= dict.fromkeys(("all_cpu_ns", "all_comm_ns", "cpu_most_ns", "comm_most_ns"), 0)
            told = {key: event.get(key, default) for key, default in defaults.items()}
            application.phases.append(Phase(member=event.member, target=event.get("target", ""), **figures, **told))

    def _on_iterations(self, event: Event) -> None:
        if application := self._application(event):
            comm_ns = event.get("comm_ns", 0)
            computed_ns = event.get("cpu_ns", 0) + comm_ns
            count, processes = event.get("iterations", 0), event.get("processes", 0)
            application.iterations.append(Iterations(event.time_ns, processes, count, computed_ns, comm_ns))

    def _on_model(self, event: Event) -> None:
        for application in self.applications:
            if application.name == event.get("modelled", "") and application.end_ns is None:
                application.irregular = event.get("model", "") == IRREGULAR

    def _on_profile(self, event: Event) -> None:
        for application in self.applications:
            if application.app == event.get("app", 0) and application.end_ns is None:
                application.flop_of_profile = event.get("flop_per_iteration", 0.0)

    def _compute_on(self, application: Application, nodes: str) -> None:
        """Take the nodes of a malleable application, "n1=2 n2=1"; "": it did not report them."""
        application.nodes = nodes_in(nodes) or application.nodes
        self.nodes.update(application.nodes)

    def _on_node_cores(self, event: Event) -> None:
        self.nodes.update(nodes_in(event.get("on_node", "")))

    def _on_held_nodes(self, event: Event) -> None:
        """Take the allocation of an application that may not have started yet."""
        job, allocation = event.get("job", ""), without_user(event.get("allocation", ""))
        self._allocations[job] = allocation
        for application in self.applications:
            if application.job == job:
                application.allocation = allocation

    def _on_malleable(self, event: Event) -> None:
        if application := self._application(event):
            self._compute_on(application, event.get("nodes", ""))
            application.resized(event.time_ns, event.get("processes", 0))
            application.flop_per_iteration = event.get("flop_per_iteration", 0.0)

    def _on_reconfiguration(self, event: Event) -> None:
        """Take the member's report. The copy for the tool that requested the resize carries no application."""
        self._resizes.pop(event.member, None)
        if application := self._application(event):
            told = Reconfiguration.of(event, application.name)
            application.reconfigurations.append(told)
            if not application.sizes:
                application.resized(told.begin_ns, told.sources)
            if told.done:
                application.resized(told.end_ns, told.targets)
                self._compute_on(application, event.get("nodes", ""))

    def _on_bye(self, event: Event) -> None:
        if application := self._application(event):
            figures = {key: value for key, value in event.fields.items() if isinstance(value, int)}
            application.most |= Counter({key: figures.pop(key, 0) for key in ("cpu_most_ns", "comm_most_ns")})
            application.sums.update(figures)
            self._leave(application, event)

    def _on_lost(self, event: Event) -> None:
        if event.member not in self._of_member:
            return
        application = self._of_member[event.member]
        if event.member in application.open_members:
            application.lost = event.get("reason", "") or "connection lost"
            self._leave(application, event)

    def _leave(self, application: Application, event: Event) -> None:
        application.open_members.discard(event.member)
        for key in [key for key in application.latest if key[0] == event.member]:
            application.latest.pop(key).finished_ns = event.time_ns
        if not application.open_members:
            application.end_ns = event.time_ns

    def _on_set_policy(self, event: Event) -> None:
        if event.get("for_application", "") or event.get("target", ""):
            return  # of one application or target: the daemon's stays
        self._replaced = {event.member: self.policy}
        self.policy = event.get("policy", "") or self.policy

    def _on_application(self, event: Event) -> None:
        """Take one row of the answer to LIST: an application that started before the first event received.

        Applications that have ended since are known already and are left out.
        """
        place = Place.of_row(event.fields)
        self.nodes.update(place.nodes)
        same = [a for a in self.applications if a.name == event["application"]]
        known = [a for a in same if a.end_ns is None or a.app == event.get("app", 0)]
        for application in known:
            application.job = application.job or event.get("job", "")
            application.slurm_step = application.slurm_step or event.get("slurm_step", "")
            application.user = event.get("user", application.user)
            application.nodes = application.nodes or place.nodes
        if known:
            return
        keys = ("job", "slurm_step", "user", "program", "mpi", "processes", "app")
        fields = {key: event[key] for key in keys if key in event.fields}
        since = event.get("since_ns", event.time_ns) or event.time_ns
        self.applications.append(Application(event["application"], start_ns=since, nodes=place.nodes, **fields))

    def _on_daemon(self, event: Event) -> None:
        self.policy = event.get("policy", self.policy)
        if event.get("on_node", ""):
            self.nodes.add(event["on_node"])
        self.now_ns = max(self.now_ns, event.get("now_ns", 0))


def analyse(trace: Trace) -> Analysis:
    """Return the analysis of the whole trace. Raises TraceError if its records contradict each other."""
    analysis = Analysis()
    analysis.policy = str(trace.settings.get("policy", ""))
    if trace.node:
        analysis.nodes.add(trace.node)
    with collector_at_rest(), consistent(trace):
        for event in trace.events:
            analysis.feed(event)
    return analysis
