"""Decisions of policies about cores and access, and what came of them: the facts of DECISION and OUTCOME events.

hocketd makes the sentences about them (hocket.sentences). Before many are shown, `tell` asks for all of them at once,
because each question that is new starts a process.

Times are nanoseconds of the node's clock. A decision in an answer of the daemon carries no time. `Decisions.feed` and
`Decisions.learn_from` add what a trace says besides: the time, and how long the application stood still.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from hocket.bus import Event
from hocket.mounts import with_mount_points
from hocket.sentences import sentences_of

# Actions about access to a target.
ACCESS_ACTIONS = (
    "interrupt",
    "wait",
    "hold",
    "interfere",
    "delay",
    "deadlock",
    "resume",
    "estimate",
    "doubt",
    "ignore",
    "believe",
    "whole",
    "wrong",
    "held",
)
CHANGING = ("expand", "shrink", "return", "reclaim")
FOUND_OUT = ("stopped_ns", "until_ns", "outcomes", "node")  # of a decision; no fields of the event
CORES = "cores"  # the quantity of outcomes that are no predictions


@dataclass(frozen=True)
class Outcome:
    """A prediction behind a decision, compared with what happened."""

    decision: int = 0
    decided_for: str = ""
    quantity: str = ""
    predicted_s: float = 0.0
    actual_s: float = 0.0
    met: bool = False
    text: str = ""
    time_ns: int = 0
    uncertainty_s: float = -1.0  # assumed, plus or minus; -1: not reported
    period_s: float = 0.0  # I/O period, predicted or expected at the decision; 0: not known
    how: str = ""  # "missing", "ended", "returned"; "": the phase or the period came
    processes: int = 0  # that the application has, if it has returned to its size

    @classmethod
    def of(cls, event: Event) -> Outcome:
        fields = {key: event.fields[key] for key in cls.__dataclass_fields__ if key in event.fields}
        return cls(**{**fields, "time_ns": event.time_ns})

    @property
    def is_prediction(self) -> bool:
        """True unless it reports how many lent cores came back, which is bookkeeping."""
        return self.quantity != CORES

    @property
    def error_s(self) -> float:
        """Return actual minus predicted seconds. Above 0: later, or more, than predicted."""
        return self.actual_s - self.predicted_s

    @property
    def error_share(self) -> float | None:
        """Return the error as a share of the I/O period, never negative; None: not known."""
        return abs(self.error_s) / self.period_s if self.period_s > 0 else None

    def brief(self) -> str:
        """Return the error in a few words."""
        return str(self._told()["brief"])

    def sentence(self) -> str:
        """Return a sentence with the numbers."""
        return str(self._told()["sentence"])

    def line(self) -> dict[str, Any]:
        """Return the event for hocket.sentences."""
        return {"out": "OUTCOME", **asdict(self)}

    def _told(self) -> dict[str, Any]:
        return sentences_of([self.line()])[0]


@dataclass
class PolicyDecision:
    """A decision of a policy about cores or about access to a target, or its reason to leave a conflict alone.

    Sizes and iterations are 0 in decisions about access. `sources`, `targets`: numbers of processes.
    """

    number: int = 0
    policy: str = ""
    decided_for: str = ""
    because_of: str = ""
    action: str = ""
    sources: int = 0
    targets: int = 0
    at_iteration: int = 0
    return_at_iteration: int = 0
    conflict_ns: int = 0
    overlap_ns: int = 0
    start_before_ns: int = 0
    start_after_ns: int = 0
    period_after_ns: int = 0
    text: str = ""  # of a policy in Python; in traces of version 1 the whole sentence
    reason: dict[str, Any] = field(default_factory=dict)  # its "kind" and the numbers (src/core/event/reason.hpp)
    obstacle: dict[str, Any] = field(default_factory=dict)  # likewise
    wanted: int = 0  # processes of a change that was left alone
    time_ns: int = 0  # 0: not known
    stopped_ns: list[int] = field(default_factory=list)  # one for each reconfiguration that carried it out
    until_ns: int = 0  # end of the size that it chose; 0: not known
    outcomes: list[Outcome] = field(default_factory=list)
    node: str = ""  # the daemon's node

    @classmethod
    def of(cls, event: Event) -> PolicyDecision:
        renamed = {"from": "sources", "to": "targets"}
        fields = {renamed.get(key, key): value for key, value in event.fields.items()}
        known = {
            key: value for key, value in fields.items() if key in cls.__dataclass_fields__ and key not in FOUND_OUT
        }
        return cls(**{**known, "time_ns": event.time_ns})

    @property
    def is_about_access(self) -> bool:
        return self.action in ACCESS_ACTIONS

    @property
    def is_plain_wait(self) -> bool:
        """True for a wait in turn, where no costs were compared. QUEUED_IO reports it too."""
        return self.action == "wait" and "metric" not in self.reason and "; " not in self.text

    @property
    def changes(self) -> bool:
        """True if processes were requested to start or leave."""
        return self.action in CHANGING and self.sources != self.targets

    def expands(self, application: str) -> bool:
        """True if it let this application grow: its reconfiguration was done."""
        return self.decided_for == application and self.targets > self.sources and bool(self.stopped_ns)

    def holds_at(self, time_ns: int) -> bool:
        """True if the size that it chose was in use at `time_ns`, as far as is known."""
        return self.time_ns <= time_ns and (not self.until_ns or time_ns < self.until_ns)

    def heading(self) -> str:
        """Return who does what, as a short sentence."""
        return str(self._told()["heading"])

    def sentence(self) -> str:
        """Return why it was decided, with the numbers; a policy in Python says it in its own words."""
        return str(self._told()["sentence"])

    def sentences(self, zero_ns: int = 0) -> Iterator[tuple[str, str]]:
        """Yield (subject, sentence) pairs; times are seconds since `zero_ns`."""
        tell([self], zero_ns)
        yield from ((about, with_mount_points(words, self.node)) for about, words in self._told(zero_ns)["lines"])
        yield from (("came of it", outcome.sentence()) for outcome in self.outcomes)

    def line(self, zero_ns: int = 0) -> dict[str, Any]:
        """Return the event, and what followed it, for hocket.sentences."""
        fields = {key: value for key, value in asdict(self).items() if key not in ("outcomes", "node")}
        renamed = {"from": fields.pop("sources"), "to": fields.pop("targets")}
        return {"out": "DECISION", **fields, **renamed, "zero_ns": zero_ns}

    def _told(self, zero_ns: int = 0) -> dict[str, Any]:
        return sentences_of([self.line(zero_ns)])[0]


def tell(decisions: Iterable[PolicyDecision], zero_ns: int = 0) -> None:
    """Ask hocketd for the sentences of all these decisions and their outcomes at once, before they are shown."""
    shown = list(decisions)
    lines = [one.line(zero) for one in shown for zero in dict.fromkeys((0, zero_ns))]
    outcomes = [outcome for one in shown for outcome in one.outcomes]
    quantities = sorted({outcome.quantity for outcome in outcomes})
    sentences_of([*lines, *(outcome.line() for outcome in outcomes), *map(_of_quantity, quantities)])


def subject_of(quantity: str) -> str:
    """Return the quantity of an outcome in words, e.g. "start of the next I/O phase"."""
    return str(sentences_of([_of_quantity(quantity)])[0]["subject"])


def _of_quantity(quantity: str) -> dict[str, Any]:
    return {"out": "OUTCOME", "quantity": quantity}


class Decisions:
    """Collects decisions with their outcomes, in their order, from the events of a trace or of the bus."""

    def __init__(self) -> None:
        self.all: list[PolicyDecision] = []
        self.node = ""  # the daemon's node
        self.leader_place = 1  # in the list of leaders; above 1, the daemon only grants turns
        self._by_number: dict[int, PolicyDecision] = {}
        self._open: dict[str, PolicyDecision] = {}  # by application: reconfiguration or reversal is pending

    def feed(self, event: Event) -> None:
        self.node = self.node or event.node
        if event.type == "DECISION":
            self._decision(PolicyDecision.of(event))
        elif event.type == "OUTCOME":
            outcome = Outcome.of(event)
            if (decision := self._by_number.get(outcome.decision)) and outcome not in decision.outcomes:
                decision.outcomes.append(outcome)
        elif event.type == "LEADER_PLACE":
            self.leader_place = max(self.leader_place, int(event.get("place", 1)))
        elif event.type == "RECONFIGURATION" and event.application and event.get("done", False):
            self._reconfigured(event)

    def of(self, application: str = "", last: int = 0) -> list[PolicyDecision]:
        """Return the decisions for or because of `application` ("": all), or only the last `last` of them (0: all)."""
        found = [one for one in self.all if application in ("", one.decided_for, one.because_of)]
        return found[-last:] if last else found

    def forget_before(self, time_ns: int) -> None:
        """Drop older decisions: the live view keeps only what it shows."""
        self.all = [one for one in self.all if one.time_ns >= time_ns]
        self._by_number = {one.number: one for one in self.all}

    def learn_from(self, other: Decisions) -> None:
        """Copy the times and costs of the same decisions from `other`, which was read from a trace."""
        for one in self.all:
            if known := other._by_number.get(one.number):
                one.time_ns, one.stopped_ns, one.until_ns = known.time_ns, known.stopped_ns, known.until_ns

    def _decision(self, decision: PolicyDecision) -> None:
        decision.node = self.node
        self.all.append(decision)
        self._by_number[decision.number] = decision
        if decision.changes:
            before = self._open.get(decision.decided_for)
            # The way back belongs to the decision that made the application change.
            if before and decision.action in ("return", "reclaim") and decision.targets == before.sources:
                return
            self._open[decision.decided_for] = decision

    def _reconfigured(self, event: Event) -> None:
        decision = self._open.get(event.application)
        if decision is None:
            return
        sources, targets = event.get("sources", 0), event.get("targets", 0)
        if targets == decision.targets and not decision.stopped_ns:
            decision.stopped_ns.append(event.get("stopped_ns", 0))
        elif decision.stopped_ns and sources == decision.targets:
            decision.stopped_ns.append(event.get("stopped_ns", 0))
            decision.until_ns = event.time_ns
            del self._open[event.application]


def collect(events: Iterable[Event]) -> Decisions:
    found = Decisions()
    for event in events:
        found.feed(event)
    return found


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of the predictions of one quantity.

    Errors are absolute, in seconds, or shares of the I/O period (None: not known).
    """

    quantity: str
    predictions: int
    met: int
    median_s: float
    worst_s: float
    median_share: float | None = None
    worst_share: float | None = None

    def sentence(self) -> str:
        plural = "" if self.predictions == 1 else "s"
        return (
            f"{subject_of(self.quantity)}: {self.predictions} prediction{plural}, {self.met} within what was assumed; "
            f"error {self.median_s:.2f} s{_of_period(self.median_share)} at the median, "
            f"{self.worst_s:.2f} s{_of_period(self.worst_share)} at the worst"
        )


def _of_period(share: float | None) -> str:
    return "" if share is None else f" ({share:.0%} of the I/O period)"


def accuracies(decisions: Sequence[PolicyDecision]) -> list[Accuracy]:
    """Return one entry for each predicted quantity, starts of I/O phases first."""
    by_quantity: dict[str, list[Outcome]] = {}
    for outcome in (outcome for one in decisions for outcome in one.outcomes if outcome.is_prediction):
        by_quantity.setdefault(outcome.quantity, []).append(outcome)
    found = []
    # The names of quantities are such that, in reverse order, starts precede periods, also in traces of version 1.
    for quantity, outcomes in sorted(by_quantity.items(), reverse=True):
        errors = [abs(outcome.error_s) for outcome in outcomes]
        shares = [share for outcome in outcomes if (share := outcome.error_share) is not None]
        met = sum(outcome.met for outcome in outcomes)
        of_period = (median(shares), max(shares)) if len(shares) == len(outcomes) else (None, None)
        found.append(Accuracy(quantity, len(outcomes), met, median(errors), max(errors), *of_period))
    return found
