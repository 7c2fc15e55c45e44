"""From the events of a trace, or of the live bus, to what each application did when.

The one analysis that the report, the live view, the exports and the demo share. Feed it events in their order; it
keeps, for each application, its I/O operations, its I/O phases and the intervals in which it computed, waited and did
I/O. START_IO → GRANT_IO is waiting, GRANT_IO → FINISH_IO is I/O, but for PAUSED_IO → GRANT_IO, which is waiting again;
I/O that asks for no grant is known by its IO_PHASE.

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
from hocket.lanes import IO, WAITING, Interval, overlaps, overlay
from hocket.periods import IRREGULAR
from hocket.reconfigurations import Reconfiguration
from hocket.trace import Trace, collector_at_rest


@dataclass
class Operation:
    """One I/O operation that asked for a grant. Times are None where it did not come so far."""

    member: int
    request: int
    asked_ns: int
    target: str = ""
    file: str = ""
    routine: str = ""
    bytes: int = 0  # of all processes; 0 where it was not known before
    asker_bytes: int = 0  # of the rank that asked
    granted_ns: int | None = None
    finished_ns: int | None = None
    io_ns: int = 0
    pauses: list[tuple[int, int | None]] = field(default_factory=list)  # from when to when it was interrupted
    stops_for: str = ""  # the application for which it was to stop last

    @property
    def is_paused(self) -> bool:
        return bool(self.pauses) and self.pauses[-1][1] is None

    def parts(self, now_ns: int) -> Iterator[Interval]:
        """Its waiting and its I/O. One that went on without a grant did at its end what is left of its `io_ns`."""
        end = self.finished_ns if self.finished_ns is not None else now_ns
        waits = [(self.asked_ns, self.granted_ns), *self.pauses]
        done_ns = 0  # of its I/O
        for (since, until), following in zip(waits, [*self.pauses, (end, None)], strict=True):
            begin = max(since, end - self.io_ns + done_ns) if until is None else until
            if begin > since:
                yield Interval(WAITING, since, begin)
            if following[0] > begin:
                done_ns += following[0] - begin
                yield Interval(IO, begin, following[0])

    def busy(self, now_ns: int) -> Iterator[Part]:
        """The same, for sums: a burst of accesses ends with a gap, which is no I/O."""
        exact = self.finished_ns is not None and self.io_ns > 0 and not self.pauses
        for part in self.parts(now_ns):
            is_io = part.kind == IO
            end_ns = min(part.end_ns, part.start_ns + self.io_ns) if is_io and exact else part.end_ns
            yield Part(part.start_ns, end_ns, float(is_io), float(not is_io))


@dataclass(frozen=True)
class Phase:
    """An I/O phase as the monitor of `member` reported it (IO_PHASE)."""

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
    iteration: int = -1  # done at the last control point before its end; -1: the program has none
    processes: int = 0  # that computed then; 0: not told
    flop: float = 0.0  # of all processes since the previous phase; 0: not known
    io_intervals: str = ""  # when the process was in I/O (hocket.busy); both "": only the sums are known
    wait_intervals: str = ""
    of_one_process: bool = False  # the process's own I/O, beside others: busy time, and no I/O phase of the application
    told_processes: int = 0  # that told it what they had spent since they began; 0: none
    all_cpu_ns: int = 0  # sums over those, and the largest of one
    all_comm_ns: int = 0
    cpu_most_ns: int = 0
    comm_most_ns: int = 0

    def parts(self) -> list[Part]:
        """What the process did in it."""
        return parts_of(self.start_ns, self.end_ns, self.io_ns, self.wait_ns, self.io_intervals, self.wait_intervals)


@dataclass(frozen=True)
class Spent:
    """What processes spent on computing and communication from their starts on: the mean and the largest of one."""

    processes: int = 0  # 0: it is not known
    cpu_s: float = 0.0
    comm_s: float = 0.0
    cpu_most_s: float = 0.0  # 0: not known
    comm_most_s: float = 0.0


@dataclass(frozen=True)
class Decision:
    """What the coordinator told an application: "granted", "queued" (`behind` whom), "interrupted" (for whom), "goes
    on", "lease expired" or "refused".
    """

    time_ns: int
    application: str
    kind: str
    behind: str = ""
    waited_ns: int = 0
    target: str = ""

    def text(self) -> str:
        """What was decided, in words."""
        if self.kind == "queued" and self.behind:
            return f"queued behind {self.behind}"
        if self.kind == "interrupted" and self.behind:
            return f"interrupted for {self.behind}"
        if self.kind in ("granted", "goes on") and self.waited_ns >= 1_000_000:
            return f"{self.kind} after {self.waited_ns / 1e9:.2f} s"
        return self.kind


@dataclass(frozen=True)
class Iterations:
    """What some iterations took that a malleable program did between two control points."""

    time_ns: int
    processes: int
    count: int
    computed_ns: int  # in neither I/O nor waiting for it
    comm_ns: int = 0  # of that, in communication


@dataclass
class Application:
    """One application: every process of one `hocket run`."""

    name: str
    app: int = 0
    job: str = ""
    program: str = ""
    mpi: str = ""
    processes: int = 0  # of a malleable one: now
    start_ns: int = 0
    end_ns: int | None = None  # None: it still ran when the events ended
    lost: str = ""  # why, where it did not leave in order
    open_members: set[int] = field(default_factory=set)
    operations: list[Operation] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    sums: Counter[str] = field(default_factory=Counter)  # of its members' BYE: cpu_ns, comm_ns, io_ns, …
    most: Counter[str] = field(default_factory=Counter)  # of the same: cpu_most_ns, comm_most_ns
    latest: dict[tuple[int, int], Operation] = field(default_factory=dict, repr=False)
    iterations: list[Iterations] = field(default_factory=list)  # reports of control points
    sizes: list[tuple[int, int]] = field(default_factory=list)  # since when how many processes; [] unless malleable
    reconfigurations: list[Reconfiguration] = field(default_factory=list)
    flop_per_iteration: float = 0.0  # as it declared it; 0: not known
    flop_of_profile: float = 0.0  # of an iteration, as an earlier run told; 0: not known
    irregular: bool = False  # no period fits its I/O phases, as the controller told last
    interruptions: int = 0  # how often it stopped in the middle of its I/O for another
    forgotten: Times = field(default_factory=Times, repr=False)  # of phases that were dropped
    forgotten_ns: int = 0  # up to when

    @property
    def io_phases(self) -> list[Phase]:
        """Its I/O phases, without what single processes reported of their own I/O beside."""
        return [phase for phase in self.phases if not phase.of_one_process]

    @property
    def flop_source(self) -> str:
        """How its FLOP are known: a key of hocket.flop.WORDS. The coordinator's rule (src/model/flop.hpp)."""
        if any(phase.flop > 0 for phase in self.phases):
            return COUNTERS
        return DECLARED if self.flop_per_iteration > 0 else PROFILE if self.flop_of_profile > 0 else UNKNOWN

    def intervals(self, now_ns: int, from_ns: int | None = None) -> list[Interval]:
        """What it did from `from_ns` (default: its start) to its end or `now_ns`, without gaps or overlaps."""
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
        """How long it was in I/O, and how long it waited for grants (hocket.busy): what its processes reported, and
        what the operations since then say.
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

    def io_s(self, now_ns: int = 0) -> float:
        """Time during which at least one of its processes was in I/O. `now_ns` is needed while it runs."""
        return self.times(now_ns).io_ns / 1e9

    def wait_s(self, now_ns: int) -> float:
        """Time during which at least one of its processes waited for a grant, and none was in I/O."""
        return self.times(now_ns).wait_ns / 1e9

    def spent(self) -> Spent:
        """Of all its processes once it has left; before, of those that its members told of with their I/O phases."""
        if not self.open_members and (self.sums["cpu_ns"] or self.sums["comm_ns"]):
            # Older traces, and simulated ones, do not say of how many.
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
        """From its first HELLO to its last BYE."""
        return ((self.end_ns if self.end_ns is not None else now_ns) - self.start_ns) / 1e9

    def bytes(self, direction: str) -> int:
        """`direction`: "read" or "written". Of all its processes once it has left, else of those that reported."""
        key = f"bytes_{direction}"
        return self.sums[key] or sum(getattr(phase, key) for phase in self.phases)

    def resized(self, time_ns: int, processes: int) -> None:
        """It has this many processes from then on; from its start, if that was not known before."""
        if not self.sizes:
            self.sizes.append((self.start_ns, processes))
        elif self.sizes[-1][1] != processes:
            self.sizes.append((max(time_ns, self.sizes[-1][0]), processes))
        self.processes = processes

    def size_at(self, time_ns: int) -> int:
        """Its number of processes then."""
        then = [count for since_ns, count in self.sizes if since_ns <= time_ns]
        return then[-1] if then else self.sizes[0][1] if self.sizes else self.processes

    def forget_before(self, time_ns: int) -> None:
        """Drop what ended before `time_ns`: a live view keeps only what it shows."""
        self.operations = [o for o in self.operations if o.finished_ns is None or o.finished_ns >= time_ns]
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


def _is_covered(phase: Phase, asked: list[int]) -> bool:
    """The phase's operations asked for grants (at times in rising order), so they tell more than it does."""
    at = bisect_left(asked, phase.start_ns)
    return at < len(asked) and asked[at] <= phase.end_ns


class Analysis:
    """The applications that the events fed so far tell of, in the order in which they came."""

    def __init__(self) -> None:
        self.applications: list[Application] = []
        self.decisions: list[Decision] = []
        self.about_cores = Decisions()
        self.policy = ""  # all in force, as one text
        self._replaced: dict[int, str] = {}  # by tool: the policy before the one that it has set, until it is refused
        self.now_ns = 0
        self._asked: dict[int, Event] = {}  # member → its HELLO, until WELCOME
        self._resizes: dict[int, Event] = {}  # by tool, not answered yet
        self._of_member: dict[int, Application] = {}
        self._last: dict[str, Decision] = {}  # by application

    def feed(self, event: Event) -> None:
        """Take one event or command in. Types that it does not know are ignored."""
        self.now_ns = max(self.now_ns, event.time_ns)
        self.about_cores.feed(event)
        handler = getattr(self, f"_on_{event.type.lower()}", None)
        if handler:
            handler(event)

    def named(self, name: str) -> Application:
        """The application that goes by this name (the last one). Raises KeyError."""
        for application in reversed(self.applications):
            if application.name == name:
                return application
        raise KeyError(name)

    @property
    def start_ns(self) -> int:
        """When the first application began; 0 without any."""
        return min((application.start_ns for application in self.applications), default=0)

    def end_all_but(self, names: Collection[str], now_ns: int) -> None:
        """These were running at `now_ns`, and no others: an end that was not seen, before we listened, is told so."""
        for application in self.applications:
            if application.end_ns is None and application.start_ns <= now_ns and application.name not in names:
                application.end_ns = now_ns

    def overlaps(self) -> list[Interval]:
        """Where two or more applications did I/O at once."""
        return overlaps([application.intervals(self.now_ns) for application in self.applications])

    def _application(self, event: Event) -> Application | None:
        """Whose event it is; None for tools. One that was there before we listened is found by its name."""
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
        self._join(application, event.member)
        return application

    def _join(self, application: Application, member: int) -> None:
        self._of_member[member] = application
        application.open_members.add(member)

    def _on_hello(self, event: Event) -> None:
        self._asked[event.member] = event

    def _on_welcome(self, event: Event) -> None:
        self.policy = self.policy or event.get("policy", "")  # the access policy alone
        hello = self._asked.pop(event.member, None)
        if hello is None or not hello.get("job"):
            return
        # Spawned processes may come after those that spawned them have left: the same job is the same application.
        application = next((a for a in self.applications if a.job == hello["job"]), None)
        if application is None:
            application = Application(
                name=event.get("application_given", event.application),
                app=event.get("app", 0),
                job=hello["job"],
                program=hello.get("program", ""),
                mpi=hello.get("mpi", ""),
                start_ns=hello.time_ns,
            )
            self.applications.append(application)
        if not application.sizes:  # of a malleable one MALLEABLE and RECONFIGURATION tell
            application.processes += hello.get("processes", 0)
        application.end_ns = None
        self._join(application, event.member)

    def _on_start_io(self, event: Event) -> None:
        if application := self._application(event):
            operation = Operation(
                member=event.member,
                request=event.get("request", 0),
                asked_ns=event.time_ns,
                target=event.get("target", ""),
                file=event.get("file", ""),
                routine=event.get("operation", ""),
                bytes=event.get("bytes", 0),
            )
            application.operations.append(operation)
            application.latest[event.member, operation.request] = operation

    def _on_queued_io(self, event: Event) -> None:
        if application := self._application(event):
            operation = application.latest.get((event.member, event.get("request", 0)))
            if operation and operation.is_paused:
                return  # why it waits was told
            target = operation.target if operation else ""
            self._decide(Decision(event.time_ns, application.name, "queued", event.get("behind", ""), target=target))

    def _on_grant_io(self, event: Event) -> None:
        if application := self._application(event):
            operation = application.latest.get((event.member, event.get("request", 0)))
            waited, target, kind = event.get("waited_ns", 0), event.get("target", ""), "granted"
            if operation and operation.is_paused:
                since_ns = operation.pauses[-1][0]
                operation.pauses[-1] = (since_ns, event.time_ns)
                waited, kind = event.time_ns - since_ns, "goes on"
            elif operation and operation.granted_ns is not None:
                return  # another share of the target's bandwidth
            elif operation:
                operation.granted_ns = event.time_ns
            self._decide(Decision(event.time_ns, application.name, kind, "", waited, target))

    def _on_pause_io(self, event: Event) -> None:
        application = self._application(event)
        operation = application and application.latest.get((event.member, event.get("request", 0)))
        if operation:
            operation.stops_for = event.get("because_of", "")

    def _on_paused_io(self, event: Event) -> None:
        application = self._application(event)
        operation = application and application.latest.get((event.member, event.get("request", 0)))
        if application and operation and not operation.is_paused:
            operation.pauses.append((event.time_ns, None))
            application.interruptions += 1
            told = Decision(event.time_ns, application.name, "interrupted", operation.stops_for, 0, operation.target)
            self._decide(told)

    def _decide(self, decision: Decision) -> None:
        """Note it, but for the keep-alives of a wait, and a lease's end told to several, that are noted already."""
        last = self._last.get(decision.application)
        again = last is not None and (last.kind, last.behind) == (decision.kind, decision.behind)
        if again and (decision.kind == "queued" or last.time_ns == decision.time_ns):
            return
        self._last[decision.application] = decision
        self.decisions.append(decision)

    def _on_finish_io(self, event: Event) -> None:
        application = self._application(event)
        operation = application and application.latest.pop((event.member, event.get("request", 0)), None)
        if operation:
            operation.finished_ns = event.time_ns
            operation.io_ns = event.get("io_ns", 0)
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

    def _refuse_resize(self, asked: Event, refused: Event) -> None:
        """The application was not asked at all, or has ended: no RECONFIGURATION tells of it."""
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

    def _on_malleable(self, event: Event) -> None:
        if application := self._application(event):
            application.resized(event.time_ns, event.get("processes", 0))
            application.flop_per_iteration = event.get("flop_per_iteration", 0.0)

    def _on_reconfiguration(self, event: Event) -> None:
        """The member's report; that which is handed on to the tool that asked is addressed to no application."""
        self._resizes.pop(event.member, None)
        if application := self._application(event):
            told = Reconfiguration.of(event, application.name)
            application.reconfigurations.append(told)
            if not application.sizes:
                application.resized(told.begin_ns, told.sources)
            if told.done:
                application.resized(told.end_ns, told.targets)

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
        self._replaced = {event.member: self.policy}
        self.policy = event.get("policy", "") or self.policy

    def _on_application(self, event: Event) -> None:
        """An answer to LIST: tells of those that came before we listened. Some have ended since, as we know."""
        same = [a for a in self.applications if a.name == event["application"]]
        if any(a.end_ns is None or a.app == event.get("app", 0) for a in same):
            return
        known = ("job", "program", "mpi", "processes", "app")
        fields = {key: event[key] for key in known if key in event.fields}
        since = event.get("since_ns", event.time_ns) or event.time_ns
        self.applications.append(Application(event["application"], start_ns=since, **fields))

    def _on_daemon(self, event: Event) -> None:
        self.policy = event.get("policy", self.policy)
        self.now_ns = max(self.now_ns, event.get("now_ns", 0))


def analyse(trace: Trace) -> Analysis:
    """Everything that the trace holds."""
    analysis = Analysis()
    analysis.policy = str(trace.settings.get("policy", ""))
    with collector_at_rest():
        for event in trace.events:
            analysis.feed(event)
    return analysis
