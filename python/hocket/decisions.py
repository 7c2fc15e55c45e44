"""Decisions of policies about cores and access, and what came of them: DECISION and OUTCOME events, as text for people.

Times are nanoseconds of the node's clock. A decision in an answer of the daemon carries no time. `Decisions.feed` and
`Decisions.learn_from` add what a trace says besides: the time, and how long the application stood still.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from hocket.bus import Event
from hocket.mounts import with_mount_points

ACTIONS = {
    "expand": "expands",
    "shrink": "shrinks",
    "return": "goes back",
    "reclaim": "gives cores back",
    "cancel": "is left as it is",
    "leave": "is left alone",
}
# Actions about access to a target. The first text is followed by the other application's name; the second is for
# decisions without another application.
ACCESS_ACTIONS = {
    "interrupt": ("interrupts", "goes first"),
    "wait": ("waits for", "waits"),
    "interfere": ("goes on beside", "goes on at once"),
    "delay": ("begins later because of", "begins later"),
    "deadlock": ("breaks a deadlock with", "goes on at once"),
    "resume": ("goes on after", "goes on"),
    "estimate": ("ended beside", "ended"),
}
CHANGING = ("expand", "shrink", "return", "reclaim")
MEASURING = "probe"  # in place of a policy's name: the coordinator itself measures an application's times
PHASE_START, CORES = "start of the next I/O phase", "cores"


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
        off = abs(self.error_s)
        if not self.is_prediction:
            return f"{self.actual_s:.0f} came back"
        if off < 0.005:
            return "as predicted"
        later = "later" if self.error_s > 0 else "earlier"
        way = later if self.quantity == PHASE_START else "more" if self.error_s > 0 else "less"
        return f"{off:.2f} s {way} than predicted"

    def sentence(self) -> str:
        """Return a sentence with the numbers."""
        if not self.is_prediction:
            missing = f" of {self.predicted_s:.0f}" if self.error_s else ""
            return f"{self.quantity}: {self.actual_s:.0f}{missing} came back"
        plus_minus = f" ± {self.uncertainty_s:.2f} s" if self.uncertainty_s >= 0 else ""
        figures = f"predicted {self.predicted_s:.2f} s{plus_minus}, came {self.actual_s:.2f} s"
        of_period = "" if self.error_share is None else f" ({self.error_share:.0%} of the I/O period)"
        return f"{self.quantity}: {figures}: {self.brief()}{of_period}, {self._judgement()}"

    def _judgement(self) -> str:
        if self.met:
            return "within what was assumed"
        if abs(self.error_s) <= self.uncertainty_s:
            return "off: what was assumed is too wide to predict anything"
        return "outside of what was assumed: the prediction was off"


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
    text: str = ""
    time_ns: int = 0  # 0: not known
    stopped_ns: list[int] = field(default_factory=list)  # one for each reconfiguration that carried it out
    until_ns: int = 0  # end of the size that it chose; 0: not known
    outcomes: list[Outcome] = field(default_factory=list)
    node: str = ""  # the daemon's node

    @classmethod
    def of(cls, event: Event) -> PolicyDecision:
        renamed = {"from": "sources", "to": "targets"}
        fields = {renamed.get(key, key): value for key, value in event.fields.items()}
        known = {key: value for key, value in fields.items() if key in cls.__dataclass_fields__}
        return cls(**{**known, "time_ns": event.time_ns})

    @property
    def is_about_access(self) -> bool:
        return self.action in ACCESS_ACTIONS

    @property
    def is_plain_wait(self) -> bool:
        """True for a wait in turn, where no costs were compared. QUEUED_IO reports it too."""
        return self.action == "wait" and "; " not in self.text

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
        if self.is_about_access:
            with_other, without = ACCESS_ACTIONS[self.action]
            return f"{self.decided_for} " + (f"{with_other} {self.because_of}" if self.because_of else without)
        doing = ACTIONS.get(self.action, self.action)
        if self.changes:
            doing += f" from {self.sources} to {self.targets} processes"
        return f"{self.decided_for} {doing}" + (f" because of {self.because_of}" if self.because_of else "")

    def sentences(self, zero_ns: int = 0) -> Iterator[tuple[str, str]]:
        """Yield (subject, sentence) pairs; times are seconds since `zero_ns`."""
        if self.conflict_ns:
            others = f"{self.decided_for} and {self.because_of}" if self.because_of else self.decided_for
            at = f"at {_at(self.conflict_ns, zero_ns)}, for {self.overlap_ns / 1e9:.2f} s"
            yield "predicted", f"the I/O phases of {others} meet {at}"
        if self.changes:
            yield "chosen", self._chosen(zero_ns)
            yield from (("cost", words) for words in [self._cost()] if words)
        if self.text:
            yield "in its words", with_mount_points(self.text, self.node)
        for outcome in self.outcomes:
            yield "came of it", outcome.sentence()

    def _chosen(self, zero_ns: int) -> str:
        when = f"from iteration {self.at_iteration} on" if self.at_iteration else "at the next control point"
        back = (
            f"{self.sources} again at iteration {self.return_at_iteration}" if self.return_at_iteration else "for good"
        )
        if self.policy == MEASURING:
            back = f"{self.sources} again when it is measured"
        parts = [f"{self.targets} processes {when}, {back}"]
        if self.start_before_ns and self.start_after_ns:
            before, after = _at(self.start_before_ns, zero_ns), _at(self.start_after_ns, zero_ns)
            parts.append(f"its next I/O phase begins at {after} instead of {before}")
        if self.period_after_ns:
            parts.append(f"its I/O period becomes {self.period_after_ns / 1e9:.2f} s")
        return "; ".join(parts)

    def _cost(self) -> str:
        if not self.stopped_ns:
            return ""
        count = len(self.stopped_ns)
        resizes = f"{count} resize{'' if count == 1 else 's'}"
        stood = f"stood still {sum(self.stopped_ns) / 1e9:.3f} s in {resizes}"
        more = self.targets - self.sources
        if more <= 0 or self.until_ns <= self.time_ns:
            return stood
        return f"{more} core{'' if more == 1 else 's'} for {(self.until_ns - self.time_ns) / 1e9:.2f} s; {stood}"


def _at(time_ns: int, zero_ns: int) -> str:
    return f"{(time_ns - zero_ns) / 1e9:.2f} s"


class Decisions:
    """Collects decisions with their outcomes, in their order, from the events of a trace or of the bus."""

    def __init__(self) -> None:
        self.all: list[PolicyDecision] = []
        self.node = ""  # the daemon's node
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
        return (
            f"{self.quantity}: {self.predictions} prediction{'' if self.predictions == 1 else 's'}, {self.met} within "
            f"what was assumed; error {self.median_s:.2f} s{_of_period(self.median_share)} at the median, "
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
    for quantity, outcomes in sorted(by_quantity.items(), key=lambda item: item[0] != PHASE_START):
        errors = [abs(outcome.error_s) for outcome in outcomes]
        shares = [share for outcome in outcomes if (share := outcome.error_share) is not None]
        met = sum(outcome.met for outcome in outcomes)
        of_period = (median(shares), max(shares)) if len(shares) == len(outcomes) else (None, None)
        found.append(Accuracy(quantity, len(outcomes), met, median(errors), max(errors), *of_period))
    return found
